"""generateContent replies, as the format has them."""

from __future__ import annotations

from typing import Any

from protocol.turns import OpaquePart
from tests.actors.models._wire import event


def reply(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One object of a stream, or a whole reply."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", **more}


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> str:
    """The same as an event."""
    return event(reply(*parts, finish=finish, **more))


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, **more}


def thought(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, "thought": True, **more}


def call(name: str, args: Any = None, *, id: str = "", signature: str = "") -> dict[str, Any]:  # noqa: A002
    function = {"name": name, "args": args or {}, **({"id": id} if id else {})}
    return {"functionCall": function, **({"thoughtSignature": signature} if signature else {})}


def kept(data: str, call_id: str | None = None) -> OpaquePart:
    return OpaquePart("gemini", data, call_id)
