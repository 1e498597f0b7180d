"""How a hop is written: as a whole interaction, or as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from tests.actors.models._wire import DONE, Pause

from ._script import Call, Checkpoint, Hop, Piece, Raw, Step, Text, Thought, usage_of

Frame = str | bytes | Pause

OLDER_NAMES = {
    "interaction.created": "interaction.start",
    "interaction.completed": "interaction.complete",
    "step.start": "content.start",
    "step.delta": "content.delta",
    "step.stop": "content.stop",
}


def whole(script: Hop, pieces: tuple[Piece, ...], interaction_id: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The interaction as one JSON object."""
    return _over({**_resource(script, pieces, interaction_id, request), "steps": steps_of(pieces)}, script.over)


def to_json(value: Any) -> str:
    """As JSON; half a character is escaped, since it cannot be encoded."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def steps_of(pieces: tuple[Piece, ...]) -> list[dict[str, Any]]:
    """The steps that these pieces come to."""
    steps: list[dict[str, Any]] = []
    texts: list[str] | None = None
    for piece in pieces:
        if isinstance(piece, Text):
            if texts is None:
                texts = []
                steps.append({"type": "model_output", "content": [{"type": "text", "text": ""}]})
            texts.append(piece.text)
            steps[-1]["content"][0]["text"] = "".join(texts)
        elif not isinstance(piece, (Checkpoint, Raw)):
            texts = None
            steps.append(_step(piece))
    return steps


def events(
    script: Hop,
    pieces: tuple[Piece, ...],
    interaction_id: str,
    request: Mapping[str, Any],
    *,
    older: bool = False,
) -> list[Frame]:
    """The interaction as a stream; each frame is one event, with its blank line."""
    writer = _Stream(older=older)
    begun = {"id": interaction_id, "status": "in_progress", "object": "interaction", "model": request.get("model")}
    writer.event("interaction.created", interaction=begun)
    for piece in pieces:
        writer.piece(piece, interaction_id)
    writer.close_step()
    if script.terminal:
        final = _over(_resource(script, pieces, interaction_id, request), script.over)
        writer.event("interaction.completed", interaction=final)
    if script.done:
        writer.frames.append(DONE)
    return writer.frames


@attrs.define(eq=False)
class _Stream:
    older: bool
    frames: list[Frame] = attrs.field(factory=list)
    index: int = -1
    in_text: bool = False
    open: bool = False
    number: int = 0

    def event(self, event_type: str, **fields: Any) -> None:
        self.number += 1
        name = OLDER_NAMES.get(event_type, event_type) if self.older else event_type
        if self.older and "step" in fields:
            fields["content"] = fields.pop("step")
        data = {"event_type": name, **fields, "event_id": f"e{self.number}"}
        self.frames.append(f"event: {name}\ndata: {to_json(data)}\n\n")

    def piece(self, piece: Piece, interaction_id: str) -> None:
        if isinstance(piece, Raw):
            data = piece.data
            self.frames.append(f"data: {to_json(data)}\n\n" if isinstance(data, Mapping) else data)
        elif isinstance(piece, Checkpoint):
            self.event(
                "interaction.status_update",
                interaction_id=interaction_id,
                status=piece.status,
                continuation_token=piece.token,
            )
        elif isinstance(piece, Text):
            if not self.in_text:
                self.start({"type": "text" if self.older else "model_output"})
                self.in_text = True
            self.delta({"type": "text", "text": piece.text})
        elif isinstance(piece, Thought):
            self.start({"type": "thought"})
            if piece.summary:
                self.delta({"type": "thought_summary", "content": {"type": "text", "text": piece.summary}})
            self.delta({"type": "thought_signature", "signature": piece.signature})
            self.close_step()
        elif isinstance(piece, Call):
            self.start({**_step(piece), "arguments": {}})
            whole = (json.dumps(piece.arguments),)
            for text in whole if piece.pieces is None else piece.pieces:
                self.delta({"type": "arguments_delta", "arguments": text}, piece.index)
            self.close_step()
        else:
            self.start(dict(piece.step))
            self.close_step()

    def start(self, step: dict[str, Any]) -> None:
        self.close_step()
        self.index += 1
        self.event("step.start", index=self.index, step=step)
        self.open = True

    def delta(self, delta: dict[str, Any], index: int | None = None) -> None:
        self.event("step.delta", index=self.index if index is None else index, delta=delta)

    def close_step(self) -> None:
        if self.open:
            self.event("step.stop", index=self.index)
        self.open = self.in_text = False


def _step(piece: Thought | Call | Step) -> dict[str, Any]:
    if isinstance(piece, Step):
        return dict(piece.step)
    if isinstance(piece, Thought):
        summary = [{"type": "text", "text": piece.summary}] if piece.summary else []
        return {"type": "thought", "signature": piece.signature, "summary": summary}
    step = {"type": "function_call", "id": piece.id, "name": piece.name, "arguments": dict(piece.arguments)}
    return step if piece.signature is None else {**step, "signature": piece.signature}


def _resource(
    script: Hop, pieces: tuple[Piece, ...], interaction_id: str, request: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "id": interaction_id,
        "status": script.status,
        "object": "interaction",
        "model": request.get("model"),
        "created": "2026-11-30T01:00:00Z",
        "updated": "2026-11-30T01:00:40Z",
        **({} if script.token is None else {"continuation_token": script.token}),
        **({} if (usage := usage_of(script, pieces)) is None else {"usage": usage}),
    }


def _over(value: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in {**value, **over}.items() if item is not None}
