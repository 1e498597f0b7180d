"""What a server says in a case: turns of blocks, whatever the wire format."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

import attrs

Told: TypeAlias = dict[str, Any] | str
"""A turn in the words of the cases."""


@attrs.frozen
class Text:
    text: str


@attrs.frozen
class Call:
    id: str
    name: str
    arguments: str


@attrs.frozen
class Reasoning:
    """An item to be sent back as it is."""

    data: dict[str, Any]


Block: TypeAlias = Text | Call | Reasoning


@attrs.frozen
class Said:
    """One turn."""

    blocks: tuple[Block, ...]
    finish: str | None
    """In the words of the cases; `None`: what fits."""
    tokens: dict[str, int] | None

    @property
    def calls(self) -> list[Call]:
        return [block for block in self.blocks if isinstance(block, Call)]


BLOCKS = re.compile(
    r"redacted_thinking \{data:'(?P<redacted>.*?)'\}"
    r"|thinking \{thinking:'(?P<thought>.*?)',signature:'(?P<signature>.*?)'\}"
    r"|reasoning (?P<reasoning>\w+)"
    r"|(?:tool_use|function_call) (?P<call>\w+)"
    r"|(?:text|message) '(?P<text>.*?)'"
    r"|none, end_turn"
)


def said_of(told: Told, tools: list[str]) -> Said:
    """Read a turn. `tools`: what a call that names no tool asks for."""
    if isinstance(told, str):
        return Said(tuple(_blocks(told, tools[0] if tools else "")), None, None)
    blocks: list[Block] = [Text(told["text"])] if "text" in told else []
    blocks += _calls(told.get("calls", []))
    return Said(tuple(blocks), told.get("finish"), told.get("usage"))


def _calls(told: Any) -> list[Call]:
    if isinstance(told, str):
        found = re.fullmatch(r"(\d+) calls: ids (\w)0\.\.\2\d+, tool (\w+)", told)
        assert found is not None, f"no calls are known for: {told}"
        return [Call(f"{found[2]}{number}", found[3], "{}") for number in range(int(found[1]))]
    return [Call(id, name, given if isinstance(given, str) else json.dumps(given)) for id, name, given in told]


def _blocks(told: str, tool: str) -> list[Block]:
    rest = BLOCKS.sub("", told.removeprefix("blocks: ").removeprefix("output: "))
    assert not rest.strip(" ,+"), f"no blocks are known for: {rest}"
    blocks: list[Block] = []
    for found in BLOCKS.finditer(told):
        if (data := found["redacted"]) is not None:
            blocks.append(Reasoning({"type": "redacted_thinking", "data": data}))
        elif (signature := found["signature"]) is not None:
            blocks.append(Reasoning({"type": "thinking", "thinking": found["thought"], "signature": signature}))
        elif (id := found["reasoning"]) is not None:
            blocks.append(Reasoning({"type": "reasoning", "id": id, "summary": [], "encrypted_content": f"E-{id}"}))
        elif (call := found["call"]) is not None:
            blocks.append(Call(call, tool, "{}"))
        elif (text := found["text"]) is not None:
            blocks.append(Text(text))
    return blocks


def data(value: Any, event: str | None = None) -> str:
    """One event of a stream."""
    head = f"event: {event}\n" if event is not None else ""
    return f"{head}data: {json.dumps(value)}\n\n"


def is_object(text: Any) -> bool:
    """Whether it is the text of a JSON object."""
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False
