"""The world that a swept run lives in: a model and tools that know the truth, and points where they can crash."""

from __future__ import annotations

import collections
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import trio

from protocol.gate import ContinuationRequest, ContinuationResponse
from protocol.model import ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import TextPart, ToolCall, ToolMessage, Turn, UserMessage
from protocol.usage import Usage

PROMPTS = ("first prompt", "second prompt")
ROUNDS = 4
TOKENS = 15
USAGE = Usage(10, 0, 0, 5, 0, True)


class Boom(Exception):
    """The crash that a sweep puts in."""


@attrs.define
class Points:
    """Every place where a crash can be put in, counted as they are passed; the one numbered `crash_at` raises."""

    crash_at: int | None = None
    armed: bool = False
    passed: list[str] = attrs.field(factory=list)
    crashed: str | None = None

    def hit(self, label: str) -> None:
        if not self.armed:
            return
        self.passed.append(label)
        if len(self.passed) == self.crash_at:
            self.crashed = label
            raise Boom(label)


@attrs.define
class World:
    """What really happened, as model and tools saw it."""

    slow: bool = False
    width: int = 2
    points: Points = attrs.field(factory=Points)
    entered: set[str] = attrs.field(factory=set)
    """Calls whose body was entered."""
    completed: set[str] = attrs.field(factory=set)
    """Calls whose effect has happened."""
    inside: set[str] = attrs.field(factory=set)
    """Calls whose body is running now."""
    sent: int = 0
    """Requests that left."""
    whole: int = 0
    """Replies that came back whole."""
    requests: list[ModelRequest] = attrs.field(factory=list)
    _turns: int = 0

    async def pause(self) -> None:
        if self.slow:
            await trio.sleep(0.01)
        else:
            await trio.lowlevel.checkpoint()

    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        call = f"c{a}-{b}"
        self.entered.add(call)
        self.inside.add(call)
        try:
            self.points.hit("tool/before the effect")
            await self.pause()
            self.completed.add(call)
            self.points.hit("tool/after the effect")
            if b == 1:
                await self._linger()
        finally:
            self.inside.discard(call)
        return a + b

    async def _linger(self) -> None:
        """The effect has happened, and the tool goes on for a while; its clean-up takes a moment too."""
        try:
            await trio.sleep(0.005)
        finally:
            with trio.move_on_after(0.02, shield=True):
                await trio.sleep(0.01)

    async def condition(self, _state: Any) -> None:
        self.points.hit("condition/before")
        await self.pause()
        self.points.hit("condition/after")

    async def instruction(self, _context: Any) -> str:
        self.points.hit("instruction/before")
        await self.pause()
        self.points.hit("instruction/after")
        return "Answer now."

    async def provider(self, _request: ContinuationRequest) -> ContinuationResponse:
        self.points.hit("provider/before")
        await trio.sleep(0.5)
        self.points.hit("provider/after")
        return ContinuationResponse("approve", message="go on")


@attrs.define
class KnowingModel:
    """Asks for `ROUNDS` rounds of tools after each prompt, then answers; counts what it really sent and gave."""

    world: World
    reports_sending: bool = True
    name: str = "knowing"

    @property
    def profile(self) -> Profile:
        return Profile(keeps_tools_when_off=True, reports_sending=self.reports_sending)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        world = self.world
        world.requests.append(request)
        if not self.reports_sending:
            world.sent += 1
        world.points.hit("model/before sending")
        await world.pause()
        if self.reports_sending:
            world.sent += 1
            emit(RequestSent())
        world.points.hit("model/sent")
        text = self._text(request)
        for piece in (text[:2], text[2:]):
            await world.pause()
            emit(TextDelta(piece))
            world.points.hit("model/streaming")
        world.whole += 1
        if not self._wants_tools(request):
            return Turn((TextPart(text),), "stop", "stop", USAGE)
        world._turns += 1
        calls = [
            ToolCall(f"c{world._turns}-{i}", "add", f'{{"a": {world._turns}, "b": {i}}}') for i in range(world.width)
        ]
        return Turn((TextPart(text), *calls), "tool_calls", "tool_calls", USAGE)

    def _text(self, request: ModelRequest) -> str:
        return "let me see" if self._wants_tools(request) else "done"

    def _wants_tools(self, request: ModelRequest) -> bool:
        return request.tools_on and rounds_since_prompt(request.messages) < ROUNDS


def rounds_since_prompt(messages: Sequence[Any]) -> int:
    rounds = 0
    for message in reversed(messages):
        if isinstance(message, UserMessage) and message.text in PROMPTS:
            return rounds
        if isinstance(message, ToolMessage):
            rounds += 1
    return rounds


@attrs.define(eq=False)
class TappedMailbox:
    """A mailbox with a crash point on each side of every message: received, and handled."""

    box: Any
    label: str
    points: Points
    handling: bool = False

    @property
    def name(self) -> str:
        return str(self.box.name)

    def __aiter__(self) -> TappedMailbox:
        return self

    async def __anext__(self) -> Any:
        if self.handling:
            self.points.hit(f"{self.label}/handled")
        message = await self.box.__anext__()
        self.handling = True
        self.points.hit(f"{self.label}/received")
        return message


def tapped(kind: type[Any], label: str, points: Points) -> type[Any]:
    """The service class `kind`, with crash points in its loop."""

    class Tapped(kind):  # type: ignore[misc]
        async def run(self, mailbox: Any) -> None:
            await super().run(TappedMailbox(mailbox, label, points))

    return Tapped


class StopAt(trio.abc.Instrument):
    """Counts scheduler steps from when it is armed, and calls `act` after the step with the number `at`."""

    def __init__(self, at: int | None, act: Callable[[], None]) -> None:
        self.at, self.act = at, act
        self.steps = 0
        self.armed = False

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.armed:
            self.steps += 1
            if self.steps == self.at:
                self.act()


def child_tasks(task: trio.lowlevel.Task) -> list[str]:
    """Names of all tasks below `task`, as a sorted list."""
    names: list[str] = []
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            names.append(child.name)
            names.extend(child_tasks(child))
    return sorted(names)


def count(labels: Sequence[str]) -> collections.Counter[str]:
    return collections.Counter(labels)


Decide = Callable[[str, ContinuationResponse], Awaitable[object]]
