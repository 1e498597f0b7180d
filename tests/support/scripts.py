"""Scripts and tools that many tests use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs
import trio

from actors.models.scripted import ScriptFunction, call, reply
from actors.tools import Tool, tool
from protocol.errors import ModelError
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import TextPart, ToolMessage, Turn

Piece: TypeAlias = str | float | Turn | Exception
"""Of a reply that arrives bit by bit: visible text, seconds of silence, and how it ends."""


def calls_while_on(answer: str = "final", *, name: str = "t", text: str = "", first: int = 1) -> ScriptFunction:
    """One call with a fresh id (`c1`, `c2`, ...) while tools are on; when they are off, `answer`."""
    numbers = itertools.count(first)

    def follow(request: ModelRequest) -> Turn | str:
        return reply(text, call(name, {}, id=f"c{next(numbers)}")) if request.tools_on else answer

    return follow


def calls_until(results: int, answer: str = "done", *, name: str = "t") -> ScriptFunction:
    """One call with a fresh id until the request holds that many results, then `answer`."""
    numbers = itertools.count(1)

    def follow(request: ModelRequest) -> Turn | str:
        return answer if results_in(request.messages) >= results else reply("", call(name, {}, id=f"c{next(numbers)}"))

    return follow


def results_in(messages: Iterable[object]) -> int:
    """How many tool results the messages hold."""
    return sum(len(message.results) for message in messages if isinstance(message, ToolMessage))


@attrs.define
class Bench:
    """Tools that count how often their bodies are entered. They are async: virtual time does not wait for threads."""

    runs: dict[str, int] = attrs.field(factory=dict)

    def tool(
        self, name: str = "t", value: Any = 1, *, seconds: float = 0, then: Callable[[], Any] | None = None
    ) -> Tool:
        """A tool without parameters that takes `seconds` and returns `value`, raises it, or returns what `then` does."""

        async def body() -> Any:
            self.runs[name] = self.runs.get(name, 0) + 1
            if seconds:
                await trio.sleep(seconds)
            if isinstance(value, BaseException):
                raise value
            return then() if then is not None else value

        return tool(body, name=name, description=f"The tool {name}.")


class Trickle:
    """A model whose replies arrive piece by piece; a turn at the end is returned, an error raised with the text so far.

    A reply without an end of its own is an answer with the text that was sent.
    """

    def __init__(self, replies: Iterable[Sequence[Any]], *, profile: Profile | None = None) -> None:
        self._replies = iter(replies)
        self._profile = profile or Profile(keeps_tools_when_off=True, reports_sending=True)

    @property
    def name(self) -> str:
        return "trickle"

    @property
    def profile(self) -> Profile:
        return self._profile

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        emit(RequestSent())
        text = ""
        for piece in next(self._replies):
            await trio.lowlevel.checkpoint()
            if isinstance(piece, str):
                text += piece
                emit(TextDelta(piece))
            elif isinstance(piece, float):
                await trio.sleep(piece)
            elif isinstance(piece, Turn):
                return piece
            else:
                if isinstance(piece, ModelError):
                    piece.partial = Turn((TextPart(text),), end="lost") if text else None
                raise piece
        return reply(text)
