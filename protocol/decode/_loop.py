"""A decode over all its requests: what has come, what is asked next, and when it is over.

The rules of `end_hop()`, in order:

1. The request came to its positive end and the provider does not ask to be called again: done.
2. The call's own time is over: the decode is interrupted.
3. It came to its end and is to go on: next hop, unless its token was presented before (then the provider cannot get
   further, and what there is is the result), or one of the policy's bounds is reached.
4. It broke off. With an answer other than a reply (an error status, an error event, what is no interaction): it is
   interrupted; the layer below has repeated what is worth it. So it is without a token, and where output came after
   the last checkpoint, unless the delivery is `replay`: then that output is void.
5. Otherwise the latest token is presented again, a few times; a checkpoint that is new makes them start anew.

An interruption before anything was gained is the plain error; after that, it is `ContinuationInterrupted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from ..errors import ContinuationInterrupted, ModelError, ModelRefused, ModelReplyError
from ..model import InterruptReason
from ..untyped import mapping
from ._hop import HopRecord, HopState
from ._merge import ids_of, merge
from ._plan import hop_body, token_in
from ._policy import Policy
from ._usage import merge_usage

__all__ = ("Decision", "Delivery", "Done", "LoopState", "NextHop", "Raise")

Delivery: TypeAlias = Literal["strict", "replay"]
"""What becomes of output after the last checkpoint when the connection drops: `strict` fails, `replay` takes it back."""


@attrs.frozen
class NextHop:
    """Another request goes out: `LoopState.request_body()` says which."""

    token: str
    reconnects: int | None = None
    """Where the last request broke off: how many in a row got no further than this token. `None` where it ended."""
    rollback_to: int | None = None
    """Only so many of the events up to now stand; `None`: all of them."""


@attrs.frozen
class Done:
    """The decode is over; `LoopState.merged()` is its result."""

    repeated_token: bool = False
    """The provider asks to be called with a token that it had before: it cannot get further."""


@attrs.frozen
class Raise:
    """The decode is interrupted: `raise error from cause`."""

    error: ModelError
    cause: ModelError | None = None


Decision: TypeAlias = NextHop | Done | Raise
"""What follows a request."""


class LoopState:
    """Follows one decode. `body` is the effective body of the first request; it is never changed."""

    def __init__(
        self,
        body: Mapping[str, Any],
        *,
        enabled: bool = True,
        policy: Policy | None = None,
        delivery: Delivery = "strict",
        where: str = "the server",
    ) -> None:
        self.policy = policy or Policy()
        self.enabled = enabled
        self.hop = HopState(0, token_in(body), None)
        """The request that is under way."""
        self.records: list[HopRecord] = []
        """The requests that are over and have brought anything."""
        self.whole: dict[str, Any] | None = None
        """The last reply that was one interaction and no stream, as it came."""
        self.events = 0
        """Events that stand."""
        self._body = body
        self._delivery: Delivery = delivery
        self._where = where
        self._initial = self.hop.token
        self._presented = {self._initial} - {None}
        self._hops = 0
        self._reconnects = 0

    def request_body(self) -> dict[str, Any]:
        """What the request that is under way says."""
        if self.hop.start_token is None or self.hop.number == 0:
            return dict(self._body)
        return hop_body(self._body, self.hop.start_token, self.hop.owner)

    def observe(self, event: Mapping[str, Any]) -> bool:
        """Take an event of a stream; returns whether it is a checkpoint."""
        self.events += 1
        return self.hop.observe(event)

    def observe_whole(self, interaction: dict[str, Any]) -> dict[str, Any]:
        """Take a reply that is one interaction; returns the event that says the same."""
        self.whole = interaction
        event = {"event_type": "interaction.completed", "interaction": interaction}
        self.observe(event)
        return event

    def end_hop(self, error: ModelError | None = None, *, reason: InterruptReason | None = None) -> Decision:
        """The request is over, by `error` or by itself: say what follows. `reason` overrules what the error says."""
        hop = self.hop
        if hop.ended or (not self.enabled and hop.done and not hop.fault):
            if not (self.enabled and hop.continues):
                self._commit()
                return Done()
            if reason is None:
                return self._go_on()
        if error is None and not hop.ended:
            reason = reason or ("server_error" if hop.fault else "truncated")
            error = ModelReplyError(
                f"{self._where}: the stream ended in the middle of the reply, with no final status", retryable=True
            )
        why = reason or self._reason_of(error)
        if why not in {"transport", "truncated"} or not self.enabled or hop.token is None:
            return self._interrupt(why, error)
        return self._reconnect(why, error)

    def told(self) -> list[HopRecord]:
        """The requests that have brought anything, the one under way included."""
        return [*self.records, self.hop.record()] if self.hop.touched else list(self.records)

    def merged(self) -> dict[str, Any] | None:
        """All that has come up to now as one interaction; `None` if nothing has."""
        hops = [record.interaction for record in self.told()]
        return merge(hops) if hops else None

    @property
    def began_with_token(self) -> bool:
        """Whether the caller continues a decode by hand."""
        return self._initial is not None

    @property
    def token(self) -> str | None:
        """What resumes the decode now."""
        return self.hop.token

    @property
    def owner(self) -> str | None:
        """The interaction that issued the token; `None` where nothing is stored, or it is not known."""
        heads = self._heads()
        not_stored = self._body.get("store") is False or (bool(heads) and heads[0].get("store") is False)
        return None if not_stored else self.hop.owner

    @property
    def continuation_ids(self) -> tuple[str, ...]:
        """The interactions up to now, in order."""
        return tuple(dict.fromkeys(name for head in self._heads() for name in ids_of(head)))

    @property
    def usage_by_hop(self) -> tuple[dict[str, Any], ...]:
        """What each request has told of its usage, in the provider's form, unknown numbers included."""
        return tuple([mapping(head.get("usage")) for head in self._heads()])

    @property
    def usage_total(self) -> dict[str, Any] | None:
        """The usage of all requests; `None` if none has told any."""
        return merge_usage(self.usage_by_hop)

    @property
    def hops(self) -> int:
        """Requests that came to their end."""
        return sum(record.ended for record in self.records) + self.hop.ended

    def _heads(self) -> list[Mapping[str, Any]]:
        heads = [record.interaction for record in self.records]
        return [*heads, self.hop.head()] if self.hop.touched else heads

    def _go_on(self) -> Decision:
        """The request has ended at a token."""
        token = self.hop.token
        if token in self._presented:
            self._commit()
            return Done(repeated_token=True)
        told, policy = self.told(), self.policy
        last = [record for record in told if record.ended][-policy.max_barren_hops :]
        if len(last) == policy.max_barren_hops and all(record.barren for record in last):
            return self._interrupt("no_progress", None, f"{len(last)} hops in a row brought no output")
        spent = sum(record.output_tokens for record in told)
        if policy.max_output_tokens is not None and spent >= policy.max_output_tokens:
            return self._interrupt("token_limit", None, f"{spent} output tokens are spent (max_output_tokens)")
        self._reconnects = 0
        return self._advance(None)

    def _reconnect(self, why: InterruptReason, error: ModelError | None) -> Decision:
        """The request broke off, and there is a token."""
        hop = self.hop
        if hop.output_since_checkpoint and self._delivery == "strict":
            return self._interrupt(why, error)
        gained = hop.token != hop.start_token
        if gained and hop.token in self._presented:
            return self._interrupt("no_progress", error)
        self._reconnects = 0 if gained else self._reconnects + 1
        if self._reconnects > self.policy.max_reconnects:
            return self._interrupt(why, error)
        return self._advance(error, reconnects=self._reconnects)

    def _advance(self, error: ModelError | None, *, reconnects: int | None = None) -> Decision:
        hop = self.hop
        assert hop.token is not None
        if hop.token != hop.start_token:
            if self._hops == self.policy.max_hops:
                return self._interrupt("hop_limit", error, f"{self._hops} continuations are spent (max_hops)")
            self._hops += 1
        rollback: int | None = None
        if hop.output_since_checkpoint:
            self.events -= hop.events_since_checkpoint
            rollback = self.events
            hop.rewind()
        self._presented.add(hop.token)
        self._commit()
        self.hop = HopState(hop.number + 1, hop.token, hop.owner)
        return NextHop(hop.token, reconnects, rollback)

    def _commit(self) -> None:
        if self.hop.touched:
            self.records.append(self.hop.record())
        self.hop = HopState(self.hop.number, self.hop.token, self.hop.owner)

    def _reason_of(self, error: ModelError | None) -> InterruptReason:
        if isinstance(error, ModelRefused):
            return "server_error" if self.hop.opened else "http_status"
        return "protocol" if isinstance(error, ModelReplyError) else "transport"

    def _interrupt(self, reason: InterruptReason, error: ModelError | None, text: str = "") -> Raise:
        ids = self.continuation_ids
        token = self.token
        if error is not None and (token is None or token == self._initial or not self.enabled):
            if ids:
                error.add_note(f"interactions of the decode: {', '.join(ids)}")
            return Raise(error)
        requests = self.hop.number + 1
        interrupted = ContinuationInterrupted(
            f"the decode was interrupted in request {requests} ({reason}): {text or error}; `resume_kwargs()` says"
            " how it goes on from where it can be resumed",
            reason=reason,
            token=token,
            interaction_id=self.owner,
            continuation_ids=ids,
            interaction=self.merged(),
            usage=self.usage_total,
            hops=self.hops,
            retryable=error is not None and error.retryable,
        )
        return Raise(interrupted, error)
