"""Merging the deltas of messages that have long been whole: the numbers stay, the pieces become one."""

from __future__ import annotations

import msgspec

from protocol.codec import decode_event, encode_event
from protocol.events import ContentDelta, Event, ReasoningDelta, ToolCallDelta

__all__ = ("merged",)

Delta = ContentDelta | ReasoningDelta | ToolCallDelta


def merged(events: bytes) -> bytes:
    """The lines of a record, with neighbouring deltas of one message made one, which says how many it stands for."""
    lines: list[bytes] = []
    held: Delta | None = None
    for line in events.split(b"\n") if events else []:
        event = decode_event(line) if b'_delta"' in line else None
        if isinstance(event, (ContentDelta, ReasoningDelta, ToolCallDelta)):
            if held is not None and _continues(held, event):
                held = msgspec.structs.replace(held, text=held.text + event.text, n=held.n + event.n)
                continue
            _put(lines, held)
            held = event
        else:
            _put(lines, held)
            held = None
            lines.append(line)
    _put(lines, held)
    return b"\n".join(lines)


def _continues(before: Delta, after: Delta) -> bool:
    if type(before) is not type(after) or (before.run, before.message) != (after.run, after.message):
        return False
    return not isinstance(before, ToolCallDelta) or (isinstance(after, ToolCallDelta) and before.index == after.index)


def _put(lines: list[bytes], event: Event | None) -> None:
    if event is not None:
        lines.append(encode_event(event))
