"""A model that follows a script: for tests of your own, with the real loop, tools, limits and events around it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
import trio

from protocol.errors import ModelError
from protocol.model import CallDelta, ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import Finish, Part, TextPart, ToolCall, Turn, raw_text_of
from protocol.usage import UNKNOWN_USAGE, Usage

__all__ = ("Scripted", "ScriptedTurn", "call", "reply")

ScriptedTurn: TypeAlias = Turn | str | Exception
"""A whole turn; a text, for a turn that answers with it; an exception, to raise."""

ScriptFunction: TypeAlias = Callable[[ModelRequest], ScriptedTurn | Awaitable[ScriptedTurn]]


def call(name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str = "") -> ToolCall:
    """A tool call; `arguments` as a mapping, or as the raw text a model might send."""
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(dict(arguments or {})).decode()
    return ToolCall(id, name, text)


def reply(
    text: str = "",
    *calls: ToolCall,
    finish: Finish | None = None,
    usage: Usage = UNKNOWN_USAGE,
) -> Turn:
    """A turn with a text, calls, or both; its finish reason is what a server would give unless you say so."""
    parts: tuple[Part, ...] = ((TextPart(text),) if text else ()) + calls
    reason: Finish = finish or ("tool_calls" if calls else "stop")
    return Turn(parts, reason, reason, usage)


class Scripted:
    """A model whose turns come from a list, in order, or from a function of the request.

    Text is streamed in one delta. The list used up, a call raises `ModelError`. `requests` keeps what was asked.
    """

    def __init__(
        self,
        turns: Iterable[ScriptedTurn] | ScriptFunction,
        *,
        name: str = "scripted",
        profile: Profile | None = None,
    ) -> None:
        self._name = name
        self._profile = profile or Profile(keeps_tools_when_off=True, reports_sending=True)
        self._next: ScriptFunction = turns if callable(turns) else _from_list(turns)
        self.requests: list[ModelRequest] = []
        """Every request, in order."""

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def profile(self) -> Profile:
        """As given."""
        return self._profile

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        """Return the script's next turn. Raises its exception if it is one."""
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        emit(RequestSent())
        answer = self._next(request)
        turn = await answer if inspect.isawaitable(answer) else answer
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            turn = reply(turn)
        text = raw_text_of(turn.parts)
        if text:
            emit(TextDelta(text))
        for index, wanted in enumerate(turn.calls):
            emit(CallDelta(index, wanted.arguments, wanted.name))
        return turn


def _from_list(turns: Iterable[ScriptedTurn]) -> ScriptFunction:
    script = iter(turns)

    def following(_request: ModelRequest) -> ScriptedTurn:
        for turn in script:
            return turn
        return ModelError("the script has no further turn")

    return following
