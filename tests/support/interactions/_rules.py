"""What the server refuses: the rules of tokens, their owners, and what each hop has to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

FIELDS = {
    *("model", "agent", "agent_config", "input", "previous_interaction_id", "continuation_token", "tools"),
    *("system_instruction", "generation_config", "response_format", "safety_settings", "service_tier", "store"),
    *("stream", "background", "labels", "environment", "webhook_config", "response_mime_type", "cached_content"),
    "response_modalities",
}
SAME_ON_EVERY_HOP = ("model", "tools", "system_instruction", "generation_config", "response_format", "store")


class RefusedError(Exception):
    """The request breaks a rule."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@attrs.frozen
class Place:
    """Where a token resumes, and what was asked when it was issued."""

    decode: int
    hop: int
    piece: int
    body: Mapping[str, Any]


@attrs.define(eq=False)
class Tokens:
    """The tokens that were issued, by the interactions that issued them."""

    single_use: bool = False
    issued: dict[str, dict[str, Place]] = attrs.field(factory=dict)
    stored: set[str] = attrs.field(factory=set)
    spent: set[tuple[str, str]] = attrs.field(factory=set)
    signatures: dict[str, str] = attrs.field(factory=dict)
    """Of the calls that were made, by their ids."""

    def issue(self, token: str, owner: str, place: Place) -> None:
        self.issued.setdefault(token, {})[owner] = place

    def resume(self, body: Mapping[str, Any]) -> Place | None:
        """The place that a request resumes; `None` for one that begins. Raises `RefusedError`."""
        unknown = sorted(set(body) - FIELDS)
        if unknown:
            raise RefusedError(f"unknown field: {', '.join(unknown)}")
        token, previous = body.get("continuation_token"), body.get("previous_interaction_id")
        if previous is not None and previous not in self.stored:
            raise RefusedError(f"interaction {previous!r} is not stored", 404)
        if token is None:
            if "input" not in body:
                raise RefusedError("input is missing")
            check_steps(body["input"], self.signatures)
            return None
        owners = self.issued.get(token)
        if not owners:
            raise RefusedError("continuation_token is unknown")
        if body.get("store") is False:
            if "input" not in body:
                raise RefusedError("input is missing: nothing is stored")
            owner = next(reversed(owners))
        elif previous is None:
            if "input" not in body:
                raise RefusedError("previous_interaction_id is missing, and so is input")
            owner = next(reversed(owners))
        else:
            if previous not in owners:
                raise RefusedError("continuation_token does not belong to previous_interaction_id")
            if "input" in body:
                raise RefusedError("input does not go with a stored interaction that is continued")
            owner = previous
        if self.single_use and (token, owner) in self.spent:
            raise RefusedError("continuation_token has been used")
        self.spent.add((token, owner))
        place = owners[owner]
        changed = [name for name in SAME_ON_EVERY_HOP if body.get(name) != place.body.get(name)]
        if changed:
            raise RefusedError(f"{', '.join(changed)} differs from the hop before")
        return place


def check_steps(given: Any, signatures: Mapping[str, str]) -> None:
    """Whether a list of steps is a conversation: each call has one result and its signature."""
    if not isinstance(given, list) or not any("type" in step and step["type"] in _STEPS for step in given):
        return
    open_calls: list[str] = []
    last = ""
    for step in given:
        last = step["type"]
        if last == "function_call":
            if not isinstance(step["arguments"], dict):
                raise RefusedError("the arguments of a function_call must be an object")
            if step.get("signature") != signatures.get(step["id"]):
                raise RefusedError(f"function_call {step['id']!r} is missing its signature")
            open_calls.append(step["id"])
        elif last == "function_result":
            if step["call_id"] not in open_calls:
                raise RefusedError(f"function_result for {step['call_id']!r}, which was not called")
            open_calls.remove(step["call_id"])
        elif last == "user_input" and open_calls:
            raise RefusedError(f"no function_result for {', '.join(open_calls)}")
        if last in {"user_input", "model_output"} and not step["content"]:
            raise RefusedError(f"a {last} without content")
    if open_calls:
        raise RefusedError(f"no function_result for {', '.join(open_calls)}")
    if last not in {"user_input", "function_result"}:
        raise RefusedError("the input must end with user_input or function_result")


_STEPS = {"user_input", "model_output", "thought", "function_call", "function_result"}
