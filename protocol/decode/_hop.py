"""One request of a decode: what its events say about where it could be taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..untyped import items, mapping, number, string
from ._fold import InteractionFold, Mark, kind_of

__all__ = ("HopRecord", "HopState")

_RUNNING = {"", "in_progress", "queued"}
_FINAL = {
    *("completed", "requires_action", "failed", "cancelled", "incomplete", "budget_exceeded", "idle"),
    "requires_continuation",
}
"""Statuses that are known to end a request. One that is not known ends it only where the stream says so, too."""


@attrs.frozen(kw_only=True)
class HopRecord:
    """A request of the decode that is over."""

    number: int
    """Of the request, from 0."""
    interaction: Mapping[str, Any]
    """What it brought, without what it would bring again."""
    status: str
    """The provider's word for how it ended; `lost` if it broke off."""
    ended: bool
    """Whether it came to an end of its own."""

    @property
    def id(self) -> str | None:
        """The interaction's id, if it told one."""
        return string(self.interaction.get("id")) or None

    @property
    def usage(self) -> dict[str, Any]:
        """What it told of its usage, in the provider's form."""
        return mapping(self.interaction.get("usage"))

    @property
    def output_tokens(self) -> int:
        """Output tokens, thoughts included."""
        return sum(number(self.usage.get(name)) or 0 for name in ("total_output_tokens", "total_thought_tokens"))

    @property
    def barren(self) -> bool:
        """Whether it brought no output at all."""
        steps = items(self.interaction.get("steps"))
        return not self.output_tokens and all(mapping(step).get("type") == "user_input" for step in steps)


class HopState:
    """The request that is under way."""

    def __init__(self, number: int, token: str | None, owner: str | None) -> None:
        self.number = number
        self.start_token = token
        self.token = token
        """What resumes the decode, as far as is known: what was presented, or what was handed out since."""
        self.owner = owner
        """The interaction that issued `token`. A hop's own id is not it before the hop has issued one."""
        self.interaction_id: str | None = None
        self.status = ""
        self.opened = False
        """Whether the head of a reply has come."""
        self.fault = False
        """Whether the server has reported an error inside its reply."""
        self.output_since_checkpoint = False
        self.events_since_checkpoint = 0
        self._fold = InteractionFold()
        self._mark: Mark = ()
        self._completed = False
        self._final_status = False
        self.done = False
        """Whether the stream has said that nothing follows."""

    @property
    def ended(self) -> bool:
        """Whether a positive end has come: nothing that breaks after it matters."""
        if self.fault:
            return False
        return self._completed or self._final_status or (self.done and self.status not in _RUNNING)

    @property
    def continues(self) -> bool:
        """Whether the provider asks to be called again."""
        at_checkpoint = self.token is not None and not self.output_since_checkpoint
        return at_checkpoint and self.status == "requires_continuation"

    def observe(self, event: Mapping[str, Any]) -> bool:
        """Take an event; returns whether it is a checkpoint."""
        kind = kind_of(event)
        before = self.token
        inner = mapping(event.get("interaction"))
        self.interaction_id = string(event.get("interaction_id")) or string(inner.get("id")) or self.interaction_id
        self._fold.add(event, kind)
        self.events_since_checkpoint += 1
        if kind == "error":
            self.fault = self.fault or not self.ended
        else:
            self._read_state(event, inner, kind)
        if self.token is not None and self.token != before:
            self.owner = self.interaction_id
        return self._follow_output(event, kind)

    def rewind(self) -> None:
        """Forget the output since the last checkpoint, or since the hop began."""
        self._fold.rewind(self._mark)
        self.events_since_checkpoint = 0
        self.output_since_checkpoint = False

    @property
    def touched(self) -> bool:
        """Whether anything of a reply has come."""
        return self._fold.touched

    def head(self) -> dict[str, Any]:
        """What it has told of its interaction up to now, without the steps."""
        return self._fold.head()

    def record(self) -> HopRecord:
        """What it has brought up to now."""
        status = self.status or "completed" if self.ended else "lost"
        return HopRecord(number=self.number, interaction=self._fold.interaction(), status=status, ended=self.ended)

    def _read_state(self, event: Mapping[str, Any], inner: Mapping[str, Any], kind: str) -> None:
        handed_out = string(inner.get("continuation_token")) or None
        if kind == "interaction.completed":
            self._completed = True
            self.token = handed_out  # none here is none at all: what was handed out earlier is void
        elif handed_out is not None:
            self.token = handed_out
        self.token = string(event.get("continuation_token")) or self.token
        self.status = string(event.get("status")) or string(inner.get("status")) or self.status

    def _follow_output(self, event: Mapping[str, Any], kind: str) -> bool:
        is_status = kind == "interaction.status_update"
        checkpoint = kind == "interaction.completed" or (is_status and bool(string(event.get("continuation_token"))))
        if checkpoint:
            self._mark = self._fold.mark()
            self.output_since_checkpoint = False
            self.events_since_checkpoint = 0
        elif not is_status and kind != "interaction.created":
            self.output_since_checkpoint = True
        if is_status:
            self._final_status = self.status in _FINAL
        elif self.output_since_checkpoint:
            self._final_status = False
        return checkpoint
