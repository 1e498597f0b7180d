"""Plays a case, and keeps what came of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import attrs
import trio

from actors import Agent, AgentSpec, Budget, ask_agent, remote
from protocol.events import (
    RunEvent,
    RunStarted,
)
from protocol.model import Model
from tests.actors.models._wire import Network, Server
from tests.support.play import Stage, perform
from tests.support.strict import StrictModel

from .actions import NOTES, Clients, approval_function, gate_function
from .came import Came
from .conditions import Seen, conditions_of
from .crowd import crowd_of
from .gateway.clients import Remote
from .hooks import Kept, hooks_of, keeps_books
from .model import CaseModel, rule_of
from .program import (
    CALL_SECONDS,
    GATEWAY_CALL_SECONDS,
    NEXT,
    REAL_CALL_SECONDS,
    REAL_TIME,
    Case,
    Change,
    Gate,
    configs_of,
    endings_of,
    input_of,
    is_crowd,
    is_remote,
    is_served,
    programs_of,
    prompt_of,
    scripts_of,
    spec_of,
    timeouts_of,
)
from .tools import Workshop
from .wire.models import model_of, prices_of, stored_before, wire_of
from .wire.server import CaseServer

LATER_SECONDS = 120
"""How long one looks on after the last run: what still goes on then shows."""


def run_case(id: str, gate: Gate = "remote", *changes: Change, order: int = 0) -> tuple[Came, ...]:
    """Each program of a case, or of the variant that the changes make of it, played and judged.

    `order` draws the order of tasks that wake at the same time. What was played once is remembered.
    """
    return _run_case(id, gate, json.dumps(changes), order)


@functools.cache
def _run_case(id: str, gate: Gate, changes: str, order: int) -> tuple[Came, ...]:
    scale = REAL_TIME.get(id)
    return tuple(_Program(told, gate, scale).play(order) for told in programs_of(input_of(id, json.loads(changes))))


@attrs.define(eq=False)
class _Program:
    """One program of a case while it is played."""

    told: Case
    gate: Gate
    real_scale: float | None
    """What one second takes where time is real."""
    seen: Seen = attrs.field(factory=Seen)
    kept: Kept = attrs.field(factory=Kept)
    stage: Stage = attrs.field(init=False)
    clients: Clients = attrs.field(init=False)
    tools: Workshop = attrs.field(init=False)
    specs: dict[str, AgentSpec] = attrs.field(factory=dict[str, AgentSpec])
    served: CaseServer = attrs.field(init=False)
    network: Network | None = None
    budget: Budget | None = None
    raised: BaseException | None = None
    began: float = 0.0
    seconds: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.served = CaseServer(wire_of(self.told), self.told)

    def play(self, order: int) -> Came:
        """Play it to its end; `Came` is put together when nothing can change any more."""
        try:
            perform(
                self._served_scene if is_served(self.told) else self._scene,
                order=order,
                real_time=self.real_scale is not None,
            )
        except KeyboardInterrupt as error:
            self._keep(error)
        except BaseExceptionGroup as group:
            if group.split(KeyboardInterrupt)[1] is not None:
                raise
            self._keep(group)
        return self._came()

    def _keep(self, error: BaseException) -> None:
        """A tool of the case raised what no run may hold; the judge, whom it kept away, is called in afterwards."""
        if "raise KeyboardInterrupt" not in self.told["tools"].values():
            raise error
        self.raised = error
        faults = trio.run(self.stage.judge)
        assert [] == faults

    async def _served_scene(self, stage: Stage) -> None:
        """The same with a server, in memory, which the real model of its wire format asks."""
        async with trio.open_nursery() as nursery:
            self.network = Network(nursery, Server([self.served]), refuse="refused" in str(self.told.get("http")))
            stage.faults_expected = True
            await self._scene(stage)
            nursery.cancel_scope.cancel("the case is over")

    def _model(self, script: Any, seconds: float) -> Model:
        if self.network is not None:
            return model_of(self.told, self.network)
        return CaseModel(rule_of(script), seconds=seconds)

    async def _scene(self, stage: Stage) -> None:
        told = self.told
        scale = 1.0 if self.real_scale is None else self.real_scale
        actions = list(_actions(told))
        self.stage = stage
        self.tools = Workshop(self._run_agent, scale=scale)
        if is_crowd(told):
            crowd = await crowd_of(told, stage)
            await crowd.play()
            *others, last = crowd.agents
            self.budget = crowd.budget
            self.clients = Clients(stage, last, self.gate, [], others=others, played=crowd.played)
            return
        scripts = scripts_of(told)
        endings = endings_of(told)
        for name, config in configs_of(told).items():
            seconds = CALL_SECONDS if self.real_scale is None else REAL_CALL_SECONDS
            if is_remote(told):
                seconds = GATEWAY_CALL_SECONDS
            options = conditions_of(told, self.seen) | hooks_of(told, self.kept)
            if name in endings:
                seconds = endings[name].answers_at
                options["on_run_end"] = keeps_books(endings[name].bookkeeping, self.kept)
            model = self._model(scripts[name], seconds)
            options |= prices_of(told, model)
            tools = self.tools.make(told.get("tools", {}), timeouts_of(config))
            function = self.gate == "function"
            options["answers"] = gate_function(list(actions)) if function else remote()
            options["approves"] = approval_function(list(actions)) if function else remote()
            self.specs[name] = spec_of(name, config, model, tools, scale=scale, **options)
        agent = await stage.spawn(next(iter(self.specs.values())), messages=stored_before(told))
        kind = Remote if is_remote(told) else Clients
        self.clients = kind(stage, agent, self.gate, actions, if_busy=told.get("if_busy", "refuse"))
        self.began = trio.current_time()
        try:
            await self.clients.play(prompt_of(told))
        finally:
            self.seconds = trio.current_time() - self.began
            self.tools.released.set()
        if self.real_scale is not None:
            with trio.fail_after(30):
                # Nobody tells of the end of a thread that was left behind.
                while stage.runtime.statistics().tool_threads.abandoned:  # noqa: ASYNC110
                    await trio.sleep(0.01)
        else:
            await trio.sleep(LATER_SECONDS)
        assert not self.clients.undone, f"these moments never came: {self.clients.undone}"

    async def _run_agent(self, name: str) -> str:
        """Run an agent inside a tool, one of its own for each call."""
        return await ask_agent(await self.stage.spawn(self.specs[name]), "from above")

    def _came(self) -> Came:
        agent = self.clients.agent
        model = agent.spec.model
        assert isinstance(model, StrictModel)
        stream = tuple(event for served in (*self.clients.others, agent) for event in _events(served))
        began = [event.run for event in stream if isinstance(event, RunStarted)]
        return Came(
            played=tuple(sorted(self.clients.played, key=lambda played: began.index(played.run))),
            asked=tuple(model.asked),
            faults=tuple(model.faults),
            stream=stream,
            conversations={agent.name: tuple(agent.messages) for agent in self.stage.agents},
            tools=self.tools,
            seen=self.seen,
            kept=self.kept,
            statistics=tuple(run.statistics() for run in self.stage.runs),
            replies=tuple(self.clients.replies),
            times=self.clients.times,
            refused=tuple(self.clients.refused),
            budget=self.budget,
            raised=self.raised,
            seconds=self.seconds,
            served=self.served,
            place=self.clients.place if isinstance(self.clients, Remote) else None,
        )


def _actions(told: Case) -> Iterator[Case]:
    for action in told.get("actions", []):
        if isinstance(action, dict):
            yield action
        elif is_remote(told):
            yield {"when": NEXT, "do": action}
        else:
            assert action in NOTES, f"no action is known for: {action}"


def _events(agent: Agent) -> Iterator[RunEvent]:
    for event, _ in agent._stream.read(0, agent._stream.end)[1]:
        if isinstance(event, RunEvent):
            yield event
