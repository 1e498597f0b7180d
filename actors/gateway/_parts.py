"""The events of one message, in order: as they are, merged, left out, or cut where no frame could hold them."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import attrs
import msgspec

from protocol.codec import encode, encode_event
from protocol.events import ContentDelta, Event, ReasoningDelta, ToolCallDelta
from protocol.text import cut_middle

__all__ = ("DELTAS", "Delta", "Parts", "shrunk")

Delta: TypeAlias = ContentDelta | ReasoningDelta | ToolCallDelta
"""A piece of a message that is being made."""
DELTAS = (ContentDelta, ReasoningDelta, ToolCallDelta)
_SKIPPED = b'{"type":"skipped","n":%d}'
_SHORTEST_CUT = 64


@attrs.define(eq=False)
class Parts:
    """Collects the events of one message."""

    skipped: int = 0
    """Events that were left out behind the last part: no part tells them yet."""
    size: int = 0
    """An upper bound of the bytes of all parts."""
    shown: int = 0
    """About how many bytes they will be, merged as they are."""
    _parts: list[bytes] = attrs.field(factory=list[bytes])
    _merged: Delta | None = None
    _texts: list[str] = attrs.field(factory=list[str])
    _numbers: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing but events that were left out."""
        return not self._parts and self._merged is None

    def skip(self) -> None:
        """An event that is not wanted."""
        self._put_merged()
        self.skipped += 1

    def add(self, data: bytes) -> None:
        """An event as it is."""
        self._put_merged()
        self._put_skipped()
        self._parts.append(data)
        self.size += len(data) + 1
        self.shown += len(data) + 1

    def merge(self, event: Delta, size: int) -> None:
        """A delta of `size` bytes, joined to the one before it if it goes on with that."""
        self.size += size + 1
        if self._merged is not None and _goes_on(self._merged, event):
            self.shown += len(event.text)
        else:
            self._put_merged()
            self._put_skipped()
            self._merged = event
            self.shown += size + 1
        self._texts.append(event.text)
        self._numbers += event.n

    def joined(self) -> bytes:
        """All of it, with what was left out at the end."""
        self._put_merged()
        self._put_skipped()
        return b",".join(self._parts)

    def _put_merged(self) -> None:
        if self._merged is None:
            return
        whole = self._merged
        if len(self._texts) > 1:
            whole = msgspec.structs.replace(whole, text="".join(self._texts), n=self._numbers)
        self._parts.append(encode_event(whole))
        self._merged, self._texts, self._numbers = None, [], 0

    def _put_skipped(self) -> None:
        if self.skipped:
            self._parts.append(_SKIPPED % self.skipped)
            self.size += len(self._parts[-1]) + 1
            self.skipped = 0


def _goes_on(merged: Delta, event: Delta) -> bool:
    """Whether a delta goes on with another one."""
    if (
        type(event) is not type(merged)
        or event.message != merged.message
        or event.run != merged.run
        or event.agent_path != merged.agent_path
    ):
        return False
    if isinstance(merged, ToolCallDelta) and isinstance(event, ToolCallDelta):
        return event.index == merged.index and event.name in {"", merged.name}
    return True


def shrunk(value: Event | msgspec.Struct, most_bytes: int) -> bytes:
    """The JSON of an event in at most `most_bytes`: long texts in it are cut in the middle, and say so."""
    plain = msgspec.to_builtins(value, enc_hook=repr)
    longest = most_bytes // 2
    while longest >= _SHORTEST_CUT:
        data = encode(_cut(plain, longest))
        if len(data) <= most_bytes:
            return data
        longest //= 2
    return encode({key: plain[key] for key in ("type", "kind", "request", "agent", "run") if key in plain})


def _cut(value: Any, longest: int) -> Any:
    match value:
        case str():
            return cut_middle(value, longest)
        case list() | tuple():
            return [_cut(item, longest) for item in cast("list[Any]", value)[:longest]]
        case dict():
            pairs = list(cast("dict[str, Any]", value).items())[:longest]
            return {cut_middle(key, longest): _cut(item, longest) for key, item in pairs}
        case _:
            return value
