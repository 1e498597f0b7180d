"""The tools of a case: what each does, in the words of the cases, as real functions."""

from __future__ import annotations

import ast
import builtins
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

import attrs
import trio

from actors.tools import Tool, tool

from .phrases import Phrases


@attrs.define(eq=False)
class Workshop:
    """Where the tools of one case stand: it counts who enters them, and keeps what they leave."""

    run_agent: Callable[[str], Awaitable[str]]
    """Runs an agent of the case, below the run that calls the tool."""
    scale: float = 1.0
    """What one second of the case takes."""
    runs: dict[str, int] = attrs.field(factory=dict[str, int])
    """How often the body of each tool was entered."""
    received: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list[tuple[str, dict[str, Any]]])
    """The arguments of each entry."""
    written: list[Any] = attrs.field(factory=list[Any])
    """The list X of the cases: what tools did to the world."""
    released: threading.Event = attrs.field(factory=threading.Event)
    """Set when the case is over, so that no thread outlives it."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def enter(self, name: str, **arguments: Any) -> None:
        """A body is entered, in any thread."""
        with self._lock:
            self.runs[name] = self.runs.get(name, 0) + 1
            self.received.append((name, arguments))

    def seconds(self, told: str) -> float:
        return float(told) * self.scale

    def make(self, told: Mapping[str, str], timeouts: Mapping[str, float | None]) -> list[Tool]:
        """The tools that are told of, each with its own timeout in the case's seconds."""
        made: list[Tool] = []
        for name, does in told.items():
            body = does.removeprefix(NEEDS_APPROVAL)
            maker, found = BEHAVIOURS.find(body)
            seconds = timeouts.get(name)
            made.append(
                tool(
                    maker(self, name, found),
                    name=name,
                    description=f"The tool {name}.",
                    timeout_seconds=None if seconds is None else seconds * self.scale,
                    needs_approval=body != does,
                )
            )
        return made


Maker: TypeAlias = Callable[[Workshop, str, re.Match[str]], Callable[..., Any]]

BEHAVIOURS = Phrases[Maker]("tools")
NEEDS_APPROVAL = "needs approval; "
"""Begins what is told of a tool that somebody must allow."""
VALUES: dict[str, Callable[[], Any]] = {
    "dict  (the class itself)": lambda: dict,
    "a list that contains itself": lambda: _containing_itself(),
    "'A'*5000000 + 'END'": lambda: "A" * 5_000_000 + "END",
    r"'12345\ud83d' + 'x'*50": lambda: "12345\ud83d" + "x" * 50,
    r"b'\xff\xfeabc'.decode('utf-8','surrogateescape')": lambda: b"\xff\xfeabc".decode("utf-8", "surrogateescape"),
    r"{'at': datetime(2030,1,1), 'ids': {1,2}, 'raw': b'\x00\xff', 'x': float('nan'), 'd': Decimal('1.5')}": lambda: {
        "at": datetime(2030, 1, 1),  # noqa: DTZ001  as the case has it
        "ids": {1, 2},
        "raw": b"\x00\xff",
        "x": float("nan"),
        "d": Decimal("1.5"),
    },
}
"""What tools return that is no literal."""


def _containing_itself() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def value_of(told: str) -> Any:
    """What a tool returns."""
    return VALUES[told]() if told in VALUES else ast.literal_eval(told)


def error_of(told: str) -> BaseException:
    """What a tool raises: a built-in error by its name, with or without a text."""
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?", told)
    assert found, told
    kind: type[BaseException] = getattr(builtins, found[1])
    return kind(ast.literal_eval(found[2])) if found[2] else kind()


# ---------------------------------------------------------------- return, raise, wait


@BEHAVIOURS.says(r"(?:sleep (?P<seconds>[\d.]+); )?return (?!args\.)(?P<value>.*)")
def _returns(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body(n: int | None = None, c: str | None = None) -> Any:  # some cases give its calls something
        work.enter(name, **{key: value for key, value in {"n": n, "c": c}.items() if value is not None})
        if told["seconds"]:
            await trio.sleep(work.seconds(told["seconds"]))
        return value_of(told["value"])

    return body


@BEHAVIOURS.says(r"no parameters; return (?P<value>.*)")
def _takes_nothing(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> Any:
        work.enter(name)
        return value_of(told["value"])

    return body


@BEHAVIOURS.says(r"delete (\w+)")
def _deletes(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> None:
        work.enter(name)
        work.written.append(("delete", told[1]))

    return body


@BEHAVIOURS.says(r"record (\w+)")
def _records(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body(amount: int) -> str:
        work.enter(name, amount=amount)
        work.written.append((told[1], amount))
        return "recorded"

    return body


@BEHAVIOURS.says(r"return args\.n")
def _returns_its_argument(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(n: int) -> int:
        work.enter(name, n=n)
        return n

    return body


@BEHAVIOURS.says(r"(?:sleep (?P<seconds>[\d.]+); )?raise (?P<error>.*)")
def _raises(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> None:
        work.enter(name)
        if told["seconds"]:
            await trio.sleep(work.seconds(told["seconds"]))
        raise error_of(told["error"])

    return body


@BEHAVIOURS.says(r"await forever|(?:await |sleep )(?P<seconds>\d+)(?: s)?")
def _waits(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> None:
        work.enter(name)
        await trio.sleep(work.seconds(told["seconds"] or "inf"))

    return body


@BEHAVIOURS.says(r"every (\d+) s append to list X, (\d+) times")
def _keeps_writing(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> None:
        work.enter(name)
        for _ in range(int(told[2])):
            work.written.append(trio.current_time())
            await trio.sleep(work.seconds(told[1]))

    return body


@BEHAVIOURS.says(r"run agent (\w+)")
def _runs_an_agent(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body(q: str = "go") -> str:
        work.enter(name, q=q)
        return await work.run_agent(told[1])

    return body


# ---------------------------------------------------------------- cancels


@BEHAVIOURS.says(
    r"with its own cancel scope: sleep 60, cancelled by itself after 1 s; then (?:return nothing|raise (?P<error>.*))"
)
def _cancels_itself(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> None:
        work.enter(name)
        with trio.move_on_after(work.seconds("1")):
            await trio.sleep(work.seconds("60"))
        if told["error"]:
            raise error_of(told["error"])

    return body


@BEHAVIOURS.says(r"try: sleep 60; except cancelled: return '(.*)'")
def _swallows_its_cancel(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body() -> str:
        work.enter(name)
        try:
            await trio.sleep(work.seconds("60"))
        except trio.Cancelled:  # noqa: ASYNC103  a tool that does what no tool may
            return told[1]  # noqa: ASYNC104
        return "slept"

    return body


# ---------------------------------------------------------------- parameters


@BEHAVIOURS.says(r"parameter edits: array of objects; return len\(edits\)")
def _edits(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(edits: list[dict[str, Any]]) -> int:
        work.enter(name, edits=edits)
        return len(edits)

    return body


@BEHAVIOURS.says(r"parameter text: string; return text")
def _echoes(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(text: str) -> str:
        work.enter(name, text=text)
        return text

    return body


@BEHAVIOURS.says(r"parameter path default '(.*)'; return '(.*)'")
def _has_a_default(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    async def body(path: str = told[1]) -> str:
        work.enter(name, path=path)
        return told[2]

    return body


@BEHAVIOURS.says(r"parameters path, content; store content")
def _stores(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(path: str, content: str) -> None:
        work.enter(name, path=path, content=content)
        work.written.append((path, content))

    return body


@BEHAVIOURS.says(r"parameters title, text required")
def _takes_two(work: Workshop, name: str, _told: re.Match[str]) -> Callable[..., Any]:
    async def body(title: str, text: str) -> None:
        work.enter(name, title=title, text=text)

    return body


# ---------------------------------------------------------------- threads


@BEHAVIOURS.says(r"in a (?:worker )?thread: return (.*)")
def _returns_from_a_thread(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    def body() -> Any:
        work.enter(name)
        return value_of(told[1])

    return body


@BEHAVIOURS.says(r"in a thread: time\.sleep\((\d+)\)")
def _blocks(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    def body() -> str:
        work.enter(name)
        # As deaf to a cancel as the sleep is; but when the case is over, it need not be waited for.
        work.released.wait(work.seconds(told[1]))
        return "too late"

    return body


@BEHAVIOURS.says(r"in a thread: (?:sleep (?P<first>\d+) s, then append to X|append to X after (?P<after>\d+) s)")
def _writes_late(work: Workshop, name: str, told: re.Match[str]) -> Callable[..., Any]:
    def body() -> str:
        work.enter(name)
        time.sleep(work.seconds(told["first"] or told["after"]))
        work.written.append(name)
        return "too late"

    return body
