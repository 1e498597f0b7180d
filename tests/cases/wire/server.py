"""The server of a case: it refuses what the strictest server of its wire format refuses, and else says what is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from email.utils import format_datetime
from itertools import repeat
from typing import Any

import attrs
import trio

from tests.actors.models._wire import Pause, Reply, Server, Step, answer, raw, stream

from ..program import Case
from . import chat, gemini, messages, responses
from .speech import Said, Told, said_of

SAYS: dict[str, Callable[[Said], list[str]]] = {
    "openai-chat": chat.say,
    "openai-responses": responses.say,
    "anthropic": messages.say,
    "gemini": gemini.say,
}
ENDS = {"reset": "cut"}
"""How a network in memory ends a reply that a socket would end otherwise."""


@attrs.define(eq=False)
class CaseServer:
    """What a server was asked, and what it thinks of it."""

    wire: str
    told: Case
    bodies: list[Any] = attrs.field(factory=list[Any])
    """The requests, in order."""
    times: list[float] = attrs.field(factory=list[float])
    """When they came."""
    faults: list[str] = attrs.field(factory=list[str])
    """What a strict server refuses of them."""
    given: list[Said] = attrs.field(factory=list[Said])
    """The turns that it gave."""
    _script: Iterator[Reply] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = self._replies()

    async def __call__(self, server: Server, connection: trio.abc.Stream) -> bool:
        """Answer the request that has just come."""
        server.replies.append(self)  # it answers the next one too
        self.times.append(trio.current_time())
        faults = self._look_at(server.requests[-1].body)
        self.faults += [f"request {len(self.bodies)}: {fault}" for fault in faults]
        if faults:
            return await answer(400, {"error": {"message": "; ".join(faults)}})(server, connection)
        return await next(self._script)(server, connection)

    def _look_at(self, data: bytes) -> list[str]:
        try:
            body = json.loads(data.decode(), parse_constant=_refuse)
            json.dumps(body, ensure_ascii=False).encode()
        except ValueError as error:
            return [f"no strict JSON in UTF-8 (S8): {error}"]
        self.bodies.append(body)
        match self.wire:
            case "openai-chat":
                return chat.faults(body)
            case "openai-responses":
                return responses.faults(body)
            case "anthropic":
                return messages.faults(body, self.given)
            case _:
                return gemini.faults(body)

    def _replies(self) -> Iterator[Reply]:
        told = self.told
        if "usage" in told:
            yield stream(*_reporting(told["usage"]))
        elif "http" not in told:
            yield from map(self._say, told["turns"])
        elif isinstance(told["http"], str):
            yield from self._for_ever(told["http"])
        else:
            yield from map(self._reply, told["http"])
            if "then" in told:  # of what comes after it, nothing is told
                yield self._say({"text": "done"})

    def _clock(self) -> dict[str, str]:
        """What the server says what time it is, if the case does."""
        if "clock" not in self.told:
            return {}
        return {"Date": format_datetime(datetime.fromisoformat(self.told["clock"]), usegmt=True)}

    def _say(self, turn: Told) -> Reply:
        said = said_of(turn, list(self.told.get("tools", ())))
        self.given.append(said)
        return stream(*SAYS[self.wire](said))

    def _for_ever(self, told: str) -> Iterator[Reply]:
        if found := re.fullmatch(r"every time: status (\d+), empty body", told):
            return repeat(answer(int(found[1])))
        found = re.fullmatch(r"every call: streamed answer of (\d+) characters, no usage anywhere", told)
        assert found, f"no replies are known for: {told}"
        return map(self._say, repeat({"text": "x" * int(found[1])}))

    def _reply(self, told: Case) -> Reply:
        if "end" in told and told.get("sse") is None:
            return raw()
        if told.get("sse") is None:
            headers = [f"{name}: {value}" for name, value in (self._clock() | told.get("headers", {})).items()]
            return answer(told.get("status", 200), told.get("json", ""), headers)
        if isinstance(told["sse"], str):
            found = re.fullmatch(r"\(normal answer '(.*)'\)", told["sse"])
            assert found, f"no answer is known for: {told['sse']}"
            return self._say({"text": found[1]})
        end: str = told.get("end", "done")
        return stream(*map(_step, told["sse"]), end=ENDS.get(end, end))


def _step(told: Any) -> Step:
    match told:
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"pause": seconds}:
            return Pause(seconds)
        case _:
            return str(told)


def _reporting(usage: dict[str, int]) -> list[str]:
    """An answer on the Anthropic wire, with this usage."""
    steps = messages.say(said_of({"text": "fine"}, []))
    first = json.loads(steps[0].partition("data: ")[2])
    first["message"]["usage"] = usage
    last = json.loads(steps[-2].partition("data: ")[2])
    last["usage"] = {"output_tokens": usage["output_tokens"]}
    return [f"data: {json.dumps(first)}\n\n", *steps[1:-2], f"data: {json.dumps(last)}\n\n", steps[-1]]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
