"""Agents as tools of other agents (loop.md section 11).

A sub-agent is a run like any other, started inside a tool: it has its own window, limits and gate, draws on its caller's
account, speaks in the root's stream under its path, and is cancelled with its caller.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import final

import trio

from protocol.errors import RunCancelledError, RunError, RunOver, SpecError, ToolError
from protocol.finalization import allowance
from protocol.result import RunResult
from protocol.stopwatch import Activity, Stopwatch

from ..kit import AskCycle, Party, current_party, waiting_for
from ..tools import NeedsApproval, Tool, tool
from ._agent import Agent
from ._context import RunContext, current_activity, current_run
from ._spec import AgentSpec

__all__ = ("Background", "ask_agent", "background_agent", "start_agent", "sub_agent")


def sub_agent(
    target: AgentSpec | Agent,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_seconds: float | None = None,
    needs_approval: NeedsApproval = False,
) -> Tool:
    """A tool that gives an agent a task and returns its answer.

    Of an `AgentSpec`, every call makes an agent of its own, so that calls of one turn run side by side; an `Agent` that is
    there already goes on with its own conversation, one task after the other. The tool is named `ask_` and the agent's name
    unless told otherwise. A child that does not come to an answer is an error result that says how it ended.
    """
    who = _name_of(target)

    async def ask(task: str) -> str:
        return await ask_agent(target, task)

    return tool(
        ask,
        name=name or f"ask_{who}",
        description=description
        or f"Give the agent {who} a task and wait for its answer. It knows only what the task says.",
        timeout_seconds=timeout_seconds,
        needs_approval=needs_approval,
    )


async def ask_agent(target: AgentSpec | Agent, task: str) -> str:
    """Give an agent a task, inside a tool of another, and return its answer (N2).

    Raises `ToolError` if it came to none, with how it ended and its text so far; or if the agent waits for this task itself.
    """
    try:
        return await _ask(target, task)
    except AskCycle as error:
        raise ToolError(str(error)) from error


async def _ask(target: AgentSpec | Agent, task: str) -> str:
    async with _hosted(target) as agent, agent.run(task, if_busy="queue") as run:
        try:
            result = await run.result()
        except RunCancelledError as error:
            raise ToolError(_told(agent.name, f"was cancelled: {error}", error.partial)) from error
        except RunError as error:
            raise ToolError(_told(agent.name, f"failed: {error}", error.partial)) from error
        if result.stopped_by == "pending_tools":
            wanted = ", ".join([call.name for call in run.pending])
            how = f"came to no answer: it waits for results that nobody here can give it, those of {wanted}"
            raise ToolError(_told(agent.name, how, result))
    return _answer(agent.name, result)


def background_agent(
    target: AgentSpec, *, name: str | None = None, description: str | None = None
) -> tuple[Tool, Tool]:
    """Two tools: `start_NAME` begins a task in the background and returns a handle, `wait_for_NAME` returns its answer.

    What is not waited for ends with the run (N5).
    """
    who = name or _name_of(target)

    async def start(task: str) -> dict[str, str]:
        await trio.lowlevel.checkpoint()
        started = start_agent(target, task)
        return {"handle": started.id}

    async def wait_for(handle: str) -> str:
        background = _context().core.background
        started = background.get(handle)
        if started is None:
            raise ToolError(f"there is no handle {handle!r}; there are: {', '.join(background) or 'none'}")
        answer: str = await started.answer()
        return answer

    return (
        tool(
            start,
            name=f"start_{who}",
            description=description
            or f"Give the agent {who} a task and go on; wait_for_{who} with the handle it returns gives the answer.",
        ),
        tool(wait_for, name=f"wait_for_{who}", description=f"Wait for the answer to a task that start_{who} began."),
    )


class _Task(Party):
    """A task in the background, where others wait for it."""

    __slots__ = ("_title",)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    @property
    def title(self) -> str:
        return self._title


@final
class Background:
    """A task that an agent does while its caller goes on; made by `start_agent`."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._scope = trio.CancelScope()
        self._party = _Task(id)
        self._done = trio.Event()
        self._answer: str | None = None
        self._error: ToolError | None = None
        self._reason = ""
        # Its own, so that its run counts as its work, and a tool that waits for it works only while that run does.
        self._work = Stopwatch(math.inf, trio.current_time)
        self._activity = Activity((self._work,))

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    async def answer(self) -> str:
        """Wait for its answer. Raises `ToolError` as `ask_agent` does, or if it was cancelled."""
        with waiting_for(self._party), self._waited_for():
            await self._done.wait()
        if self._error is not None:
            raise self._error
        if self._answer is None:
            raise ToolError(f"{self.id} came to no answer: {self._reason or 'it was cancelled'}")
        return self._answer

    def cancel(self, reason: str = "cancelled by its caller") -> None:
        """End it now. Once it has its answer, this changes nothing."""
        if not self._done.is_set() and not self._scope.cancel_called:
            self._reason = reason
            self._scope.cancel(reason)

    async def run(self, target: AgentSpec | Agent, task: str) -> None:
        """The runtime's own: do the task."""
        current_activity.set(self._activity)
        current_party.set(self._party)
        self._activity.start()
        try:
            with self._scope:
                self._answer = await ask_agent(target, task)
        except ToolError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  whoever waits for it is told; the run that started it goes on
            self._error = ToolError(f"{self.id} could not be done: {type(error).__name__}: {error}")
            self._error.__cause__ = error
        finally:
            self._done.set()

    @contextmanager
    def _waited_for(self) -> Generator[None, None, None]:
        """While it waits for a decision, so does the tool that waits for it (B5, N3)."""
        activity = current_activity.get()
        if activity is None or self._done.is_set():
            yield
            return
        waits = False

        def follow() -> None:
            nonlocal waits
            if waits == (self._work.deadline is not None):
                waits = not waits
                (activity.wait if waits else activity.resume)()

        self._work.watchers.append(follow)
        try:
            follow()
            yield
        finally:
            self._work.watchers.remove(follow)
            if waits:
                activity.resume()


def start_agent(target: AgentSpec | Agent, task: str) -> Background:
    """Give an agent a task, inside a tool of another, and go on: the handle gives the answer. It ends with the run (N5)."""
    core = _context().core
    background = Background(f"{_name_of(target)}-{len(core.background) + 1}")
    core.background[background.id] = background
    core.nursery.start_soon(background.run, target, task, name=background.id)
    return background


def _context() -> RunContext:
    context = current_run.get()
    if context is None:
        raise SpecError("an agent is given a task inside a tool or a hook of another: start a run of your own instead")
    if context.core.over.is_set():
        raise RunOver(f"run {context.run} has ended and gives no more tasks: start a run of your own instead")
    return context


def _name_of(target: AgentSpec | Agent) -> str:
    if not isinstance(target, (AgentSpec, Agent)):
        raise SpecError(f"a sub-agent is an AgentSpec or an Agent; this is {target!r}")
    return target.name


@asynccontextmanager
async def _hosted(target: AgentSpec | Agent) -> AsyncGenerator[Agent, None]:
    context = _context()
    if isinstance(target, Agent):
        yield target
        return
    if context.spawn is None:
        raise SpecError("this run lives in no runtime that could make another agent: use open_runtime()")
    agent: Agent | None = None
    with trio.CancelScope(shield=True):  # it takes no time, and an agent that is there must be stopped
        agent = await context.spawn(target)
    assert agent is not None
    try:
        yield agent
    finally:
        agent.stop("its task is done")


def _answer(name: str, result: RunResult) -> str:
    if not result.answered:
        raise ToolError(_told(name, f"came to no answer: {_why(result)}", result))
    limit = result.limit
    if limit is None:
        return result.text
    return f"{result.text}\n\n({name} reached its limit of {allowance(limit)}: this is what it could say.)"


def _why(result: RunResult) -> str:
    if result.limit is not None:
        return f"its limit of {allowance(result.limit)} was reached"
    match result.stopped_by:
        case "stop_condition" | "caller":
            return f"it was stopped, {result.stop_reason}"
        case "tool":
            return "one of its tools ended it"
        case _:
            return f"its model's last turn ended with {result.finish_reason!r}"


def _told(name: str, how: str, result: RunResult) -> str:
    return f"The agent {name} {how}. Its text so far: {result.text or '(none)'}"
