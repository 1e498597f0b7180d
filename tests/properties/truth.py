"""What really happened, as the model and the tools of a world saw it: written down apart from all that the engine tells."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import trio

from actors import Agent, Run
from actors.agent import current_run
from protocol.model import ModelRequest, Resume
from protocol.result import RunResult
from protocol.turns import AssistantMessage, Turn
from protocol.usage import Usage

from .world import Around, Call, Say, World

CHANGED, EDITED = 20_000, 10_000
"""What a hook and a person add to the number of a call: who was the last to decide about it shows in what runs."""

How: TypeAlias = Literal["inside", "returned", "odd", "raised", "stopped", "failed", "cancelled", "swallowed"]


HELPER_PROMPT = "Sum it up."


@attrs.define(eq=False)
class Asked:
    """A request, as the model got it."""

    run: str
    offered: frozenset[str]
    """Names of the tools that may be called."""
    tail: str | None
    say: Say | None
    sent: bool = False
    shown: str = ""
    """Visible text that was streamed."""
    turn: Turn | None = None
    """What was returned."""
    usage: Usage | None = None
    """What was reported."""
    resume: Resume | None = None
    """The turn that it goes on with."""
    max_tokens: int | None = None
    helps: bool = False
    """It is beside the conversation: a helper call of a hook."""
    tokens_before: int = 0
    """Reported by all calls, of whatever run, up to then."""


@attrs.define(eq=False)
class Entered:
    """A body that was entered."""

    run: str
    tool: str
    arguments: dict[str, Any]
    asked: Asked
    """The last request of that run."""
    how: How = "inside"

    @property
    def number(self) -> int:
        return int(self.arguments["n"]) % EDITED


@attrs.define(eq=False)
class Truth:
    """All of it."""

    world: World
    asked: list[Asked] = attrs.field(factory=list)
    entered: list[Entered] = attrs.field(factory=list)
    numbers: dict[int, tuple[Call, Asked]] = attrs.field(factory=dict)
    """Of each call that a model has made: what was asked for, and where."""
    arounds: dict[int, Around] = attrs.field(factory=dict)
    """What the hook around a call did."""
    faults: list[str] = attrs.field(factory=list)
    """What was found wrong on the spot."""
    hidden: bool = False
    """A hook has hidden `t0` in this step."""
    wild: bool = True
    """In the second run all are tame."""
    agent: Agent | None = None
    run: Run | None = None
    results: list[RunResult] = attrs.field(factory=list)
    errors: list[Exception | None] = attrs.field(factory=list)
    runs: list[Run] = attrs.field(factory=list)
    answers: dict[tuple[str, ...], int] = attrs.field(factory=dict)
    accepted: dict[str, int] = attrs.field(factory=dict)
    """How many decisions were taken, by request."""
    cut_at: float | None = None
    """When somebody first ended the run from outside."""
    ended_at: float = 0.0
    began: float = 0.0
    barriers: int = 0
    half: AssistantMessage | None = None
    """The answer that the second run goes on with."""
    stopped: bool = False
    """Somebody stopped the agent."""

    def fault(self, text: str) -> None:
        self.faults.append(text)

    def is_cut(self) -> bool:
        """Whether the root run, or the one that speaks, has been cancelled or is over."""
        context = current_run.get()
        cores = [context.core] if context is not None else []
        if self.run is not None:
            cores.append(self.run._core)
        return any(core.cancel_reason is not None or core.over.is_set() for core in cores)

    @property
    def run_is_ending(self) -> bool:
        """Whether somebody has stopped the root run, or it is cut."""
        return self.is_cut() or (self.run is not None and self.run._core.state.stop_requested is not None)

    def ask(self, request: ModelRequest, say: Say | None) -> Asked:
        """A model is asked."""
        context = current_run.get()
        assert context is not None
        names = [definition.name for definition in request.tools] if request.tools_on else []
        asked = Asked(context.run, frozenset(names), request.tail, say)
        asked.resume, asked.max_tokens = request.resume, request.max_tokens
        if self.hidden and not context.path and "t0" in names:
            self.fault("t0 was hidden, and is offered")
        asked.tokens_before = sum(one.usage.total_tokens for one in self.asked if one.usage is not None)
        self.asked.append(asked)
        return asked

    def send(self, asked: Asked) -> None:
        """A request leaves."""
        asked.sent = True
        if self.is_cut():
            self.fault("a request was sent after the cancel, or the end")

    def enter(self, tool: str, arguments: dict[str, Any]) -> Entered:
        """A body is entered."""
        context = current_run.get()
        assert context is not None
        last = [asked for asked in self.asked if asked.run == context.run][-1]
        entered = Entered(context.run, tool, arguments, last)
        self.entered.append(entered)
        if self.is_cut():
            self.fault(f"a body of {tool} was entered after the cancel, or the end")
        return entered

    def cut(self) -> None:
        if self.cut_at is None:
            self.cut_at = trio.current_time()

    def next_of(self, key: str, path: tuple[str, ...], planned: tuple[Any, ...], after: Any) -> Any:
        """The next of what was planned, and `after` when that is used up."""
        place = self.answers.get((key, *path), 0)
        self.answers[key, *path] = place + 1
        return planned[place] if self.wild and place < len(planned) else after

    def world_of(self, path: tuple[str, ...]) -> World:
        if not path:
            return self.world
        assert self.world.child is not None
        return self.world.child
