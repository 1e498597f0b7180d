"""Plays a world in virtual time: a first run that is disturbed, then a tame one on the same agent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import trio

from actors import Agent, AgentSpec, Run, remote
from actors.agent import StepOverrides, current_run
from actors.journal import MemoryJournal
from protocol.codec import decode, encode
from protocol.errors import AgentStopped, RunError, RunOver, SubmissionRefused
from protocol.events import Event
from protocol.gate import ContinuationResponse
from protocol.run import RunState
from protocol.turns import Message
from protocol.usage import Usage
from tests.support.play import Stage, numbered_events, perform

from .cast import ScriptModel, tools_of
from .deciding import Person, approver_of, gate_of
from .hooking import conditions_of, hooks_of, instruction_of
from .judge import faults_of
from .truth import Truth
from .world import Act, Approver, Disturbance, World

LATE_SECONDS = 60
"""What is late gets its chance."""
REST = (
    *("max_tool_iterations", "max_llm_calls", "max_tool_calls", "max_total_tokens", "max_cost", "wall_clock_seconds"),
    *(
        "automatic_continuation",
        "max_hops",
        "finalization_retry",
        "max_reasks",
        "max_continues",
        "max_parallel_tools",
        "tool_timeout_seconds",
    ),
)
"""Settings that have the same name here and there."""


class Prices:
    """A cent for a token."""

    def cost(self, model: str, usage: Usage) -> float | None:
        return usage.total_tokens * 0.01 if usage.complete else None

    def estimate(self, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        return 0.001


@attrs.define
class Barriers(MemoryJournal):
    """A journal that writes down, at each barrier, the state of the run that waits there, and reads it again."""

    truth: Truth
    durable = True

    async def flushed(self, position: int | None = None) -> None:
        context = current_run.get()
        if context is not None:
            state = context.core.state
            self.truth.barriers += 1
            if decode(encode(state), RunState) != state:
                self.truth.fault("the state of a run is not what was written down of it")
        await trio.lowlevel.checkpoint()


class Steps(trio.abc.Instrument):
    """Acts after so many steps of the scheduler."""

    def __init__(self, acts: list[tuple[int, Callable[[], None]]]) -> None:
        self._acts = acts
        self._steps = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._steps += 1
        for at, act in self._acts:
            if at == self._steps:
                act()


def spec_of(world: World, truth: Truth, path: tuple[str, ...], child: AgentSpec | Agent | None) -> AgentSpec:
    """The agent of a world, or of the world of its child."""
    settings, gate, approver = world.settings, world.gate, world.approver or Approver()
    options: dict[str, Any] = {name: getattr(settings, name) for name in REST}
    options |= {"model": ScriptModel(world, truth), "name": path[-1] if path else "agent"}
    options |= {"tools": tools_of(world, truth, child), "max_tool_output_chars": 2000}
    options |= {
        "tool_iteration_limit_finalization": instruction_of(settings.tool_final),
        "llm_call_limit_finalization": instruction_of(settings.llm_final),
        "budget_finalization": instruction_of(settings.budget_final),
        "finalize_on_stop": instruction_of(settings.stop_final),
        "prices": Prices(),
        "tool_choice": "required" if settings.required else "auto",
        **conditions_of(truth, path),
    }
    if gate is not None:
        options["continuation"] = (
            remote(timeout_seconds=gate.timeout, on_timeout="approve" if gate.approves_on_timeout else "decline")
            if gate.kind == "remote"
            else gate_of(truth, path)
        )
        options["continuation_timeout_seconds"] = gate.timeout
        options["continuation_on_timeout"] = "approve" if gate.approves_on_timeout else "decline"
        options["gate_on"] = gate.gate_on
    if any(does.approval for does in world.tools):
        options["approval"] = remote() if approver.kind == "remote" else approver_of(truth, path)
        options["approval_timeout_seconds"] = approver.timeout
    if not path:
        options |= hooks_of(truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AgentSpec(**options)


@attrs.define
class Player:
    """Plays one world."""

    world: World
    truth: Truth
    stage: Stage
    agent: Agent
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    left: trio.Event = attrs.field(factory=trio.Event)

    async def play(self) -> None:
        truth = self.truth
        root = trio.lowlevel.current_task()
        before = tasks_below(root)
        instrument = Steps([
            (one.at, partial(self.act, one.act)) for one in self.world.disturbances if isinstance(one.at, int)
        ])
        trio.lowlevel.add_instrument(instrument)
        truth.began = trio.current_time()
        with self.scope:
            await self._run("go", disturbed=True)
        truth.ended_at = trio.current_time()
        trio.lowlevel.remove_instrument(instrument)
        await self._look(truth.runs[0] if truth.runs else None)
        await trio.sleep(LATE_SECONDS)
        after = tasks_below(root)
        if sorted(set(after) - set(before)):
            truth.fault(f"tasks are left: {sorted(set(after) - set(before))}")
        truth.wild = False
        truth.half = self.agent._history.partial if self.world.continues else None
        if self.world.settings.continues_text == "none":
            truth.half = None
        try:
            await self._run("once more" if truth.half is None else None, disturbed=False)
            await self._look(truth.runs[-1])
        except AgentStopped:
            if not truth.stopped:
                truth.fault("the agent takes no second run")

    async def _run(self, prompt: str | None, *, disturbed: bool) -> None:
        truth = self.truth
        async with self.stage.run(self.agent, prompt) as run, trio.open_nursery() as nursery:
            truth.run = run
            truth.runs.append(run)
            nursery.start_soon(Person(truth, run).follow)
            if disturbed:
                nursery.start_soon(self._leave_early, nursery.cancel_scope)
                for one in self.world.disturbances:
                    if isinstance(one.at, float):
                        nursery.start_soon(self._disturb, one)
            await run.wait_ended()
            nursery.cancel_scope.cancel()

    async def _leave_early(self, scope: trio.CancelScope) -> None:
        await self.left.wait()
        scope.cancel()

    async def _disturb(self, one: Disturbance) -> None:
        await trio.sleep(one.at)
        self.act(one.act)

    def act(self, act: Act) -> None:
        """Disturb the run, if there is one."""
        run, truth = self.truth.run, self.truth
        if run is None:
            return
        try:
            self._act(act, run)
        except (RunOver, SubmissionRefused):
            if act == "submit" or run.over:
                return
            truth.fault(f"{act} was refused")
        except Exception as error:  # noqa: BLE001  an instrument must not raise
            truth.fault(f"{act} raised {error!r}")

    def _act(self, act: Act, run: Run) -> None:
        truth = self.truth
        if act in {"cancel", "nursery", "leave"} and not run.over:
            truth.cut()
        match act:
            case "steer":
                run.steer("said from outside")
            case "stop":
                run.stop("enough")
            case "cancel":
                run.cancel("no more")
            case "nursery":
                self.scope.cancel()
            case "leave":
                self.left.set()
            case "decide":
                reply = self.agent.requests.decide("q-nobody", ContinuationResponse("approve"), "host")
                if reply.status != "not_found":
                    truth.fault(f"a decision about nothing got {reply}")
            case "submit":
                run.submit({"nobody": 1})
                truth.fault("a result that nobody waits for was taken")
            case "override":
                run.override_next(StepOverrides(system="overridden"))
            case "stop_agent":
                truth.stopped = True
                self.agent.stop("closing")

    async def _look(self, run: Run | None) -> None:
        """See what has come of a run, from its handle."""
        if run is None:
            return
        truth = self.truth
        with trio.move_on_after(1) as timer:
            try:
                truth.results.append(await run.result())
                truth.errors.append(None)
            except RunError as error:
                truth.results.append(error.partial)
                truth.errors.append(error)
        if timer.cancelled_caught:
            truth.fault(f"{run.id} gives no result")
        if self.agent.requests.pending():
            truth.fault("requests are still open")
        for account in run._core.account.chain:
            books = account.books
            if account.open_reservations or books.held_tokens or abs(books.held_cost) > 1e-9:
                truth.fault(f"{account.name} still holds {books.held_tokens} tokens, {books.held_cost} dollars")


def tasks_below(task: trio.lowlevel.Task) -> list[str]:
    """Names of all tasks below one."""
    names: list[str] = []
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            names += [f"{child.name} {id(child)}", *tasks_below(child)]
    return names


def play(world: World) -> list[str]:
    """All that is wrong with a world that is played."""
    return faults_of(*act_out(world))


def act_out(world: World) -> tuple[Truth, list[Event], list[Message]]:
    """Play a world: what really happened, and what the engine told of it."""
    truth = Truth(world)
    events: list[Event] = []
    messages: list[Message] = []

    async def scene(stage: Stage) -> None:
        child: AgentSpec | Agent | None = None
        if world.child is not None:
            child = spec_of(world.child, truth, ("child",), None)
            if world.shared_child:
                child = await stage.spawn(child)
        truth.agent = await stage.spawn(spec_of(world, truth, (), child))
        await Player(world, truth, stage, truth.agent).play()
        events.extend(event for _, event in await numbered_events(truth.agent))
        messages.extend(truth.agent.messages)

    perform(scene, order=world.order, journal=Barriers(truth), event_log_bytes=8_000_000)
    return truth, events, messages
