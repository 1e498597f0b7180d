"""What a provider sends, in the fewest words."""

from __future__ import annotations

from typing import Any


def created(id: str | None = "i1", status: str = "in_progress", **more: Any) -> dict[str, Any]:
    interaction = {"status": status, **({} if id is None else {"id": id}), **more}
    return {"event_type": "interaction.created", "interaction": interaction}


def start(index: int = 0, type: str = "model_output", **step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": {"type": type, **step}}


def delta(text: str | None = None, index: Any = 0, **fields: Any) -> dict[str, Any]:
    if text is not None:
        fields = {"type": "text", "text": text, **fields}
    return {"event_type": "step.delta", "index": index, "delta": fields}


def stop(index: int = 0, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index, **more}


def update(token: str | None = None, status: str = "in_progress", id: str = "i1", **more: Any) -> dict[str, Any]:
    token_field = {} if token is None else {"continuation_token": token}
    return {
        "event_type": "interaction.status_update",
        "interaction_id": id,
        "status": status,
        **token_field,
        **more,
    }


def completed(
    status: str = "completed", token: str | None = None, id: str | None = "i1", **more: Any
) -> dict[str, Any]:
    interaction = {"status": status, **({} if id is None else {"id": id}), **more}
    if token is not None:
        interaction["continuation_token"] = token
    return {"event_type": "interaction.completed", "interaction": interaction}


def usage(input: int, output: int, **more: Any) -> dict[str, Any]:
    return {
        "total_input_tokens": input,
        "total_output_tokens": output,
        "total_tokens": input + output,
        **more,
    }


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "model_output", "content": [{"type": "text", "text": text}]} for text in texts]
