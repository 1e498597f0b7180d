"""What clients do in a case: at each moment that is told of, the deed that is told of.

A moment is a text, such as `tool_started:a`; an event of a run is one or several of them. A deed is a function. An
action is done at the first moment that fits it, or, if it ends in `:*`, at each.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import attrs
import trio

from actors import (
    Agent,
    ApprovalRequest,
    ApprovalResponse,
    ContinuationRequest,
    ContinuationResponse,
    Run,
    approve,
    deny,
    prune_messages,
)
from protocol.errors import AgentBusy
from protocol.events import ApprovalRequired, ContinuationRequired, RunEvent, StepStarted, ToolFinished, ToolStarted
from protocol.requests import DecisionReply
from tests.support.play import Played, Stage

from .phrases import Phrases
from .program import Case, Gate

NOTES = {"no client is attached"}
"""Actions that say that nobody does anything."""


@attrs.define(eq=False)
class Clients:
    """All who use the agent of a case, and what they saw."""

    stage: Stage
    agent: Agent
    gate: Gate
    actions: list[Case]
    if_busy: str = "refuse"
    played: list[Played] = attrs.field(factory=list[Played])
    """In the order in which they ended."""
    refused: list[AgentBusy] = attrs.field(factory=list[AgentBusy])
    """Starts that the agent refused."""
    replies: list[DecisionReply] = attrs.field(factory=list[DecisionReply])
    """What the runtime said to each decision."""
    others: list[Agent] = attrs.field(factory=list[Agent])
    """Further agents that were used: before the one here took up their conversation, or beside it."""
    surrounding: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Of what surrounds the last run."""
    times: dict[str, float] = attrs.field(factory=dict[str, float])
    """When each moment came first."""

    async def play(self, first: str = "go") -> None:
        """Everything that is told, from the first message to the last."""
        if not any(action["when"] == "immediately" for action in self.actions):
            await self.say(first)
        await self.happens("immediately")
        await self.happens("all ended")

    async def say(self, text: str, **options: Any) -> None:
        """One run to its end, and what follows upon it."""
        with trio.CancelScope() as self.surrounding:
            self.played.append(await self.stage.play(self.agent, text, act=self.follow, **options))
        await self.happens("run_ended")

    async def follow(self, run: Run) -> None:
        """Watch a run, and act at its moments."""
        seen: Counter[str] = Counter()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for seconds in sorted({seconds for action in self.actions if (seconds := time_of(action)) is not None}):
                nursery.start_soon(self._comes, began + seconds, f"t={seconds:g}", run)
            async for event in run:
                if isinstance(event, RunEvent) and event.run == run.id:
                    seen[event.type] += 1
                    for moment in moments_of(event, seen[event.type]):
                        await self.happens(moment, run, event)
            nursery.cancel_scope.cancel("the run is over")

    async def _comes(self, time: float, moment: str, run: Run) -> None:
        await trio.sleep_until(time)
        await self.happens(moment, run)

    async def happens(self, moment: str, run: Run | None = None, event: RunEvent | None = None) -> None:
        """Do what is to be done at a moment."""
        self.times.setdefault(moment, trio.current_time())
        while action := next((action for action in self.actions if action["when"] == moment), None):
            if not moment.endswith(":*"):
                self.actions.remove(action)
            deed, told = DEEDS.find(action["do"])
            await deed(Now(self, action, told, run, event))
            if moment.endswith(":*"):
                return

    @property
    def undone(self) -> list[Case]:
        """Actions whose moment never came; those for each moment of a kind may have none."""
        return [action for action in self.actions if not action["when"].endswith(":*")]


@attrs.frozen(eq=False)
class Now:
    """A moment: what is to be done, and in which run, at which event, if in one."""

    clients: Clients
    action: Case
    told: re.Match[str]
    at_run: Run | None
    event: RunEvent | None

    @property
    def run(self) -> Run:
        assert self.at_run is not None, self.action
        return self.at_run


Deed: TypeAlias = Callable[[Now], Awaitable[None]]

DEEDS = Phrases[Deed]("deeds")


def moments_of(event: RunEvent, number: int) -> Iterator[str]:
    """What the cases call an event that is the `number`th of its kind in the run."""
    match event:
        case ToolStarted(call=call):
            yield f"tool_started:{call}"
        case ToolFinished(call=call):
            yield f"tool_finished:{call}"
        case StepStarted():
            yield f"request:{number} in flight"
        case ContinuationRequired():
            yield f"limit_prompt:{number}"
            yield "limit_prompt:*"
        case ApprovalRequired(call=call):
            yield f"approval_prompt:{call}"
        case _:
            pass


@DEEDS.says(r"user_message(?: in S)?")
async def _user_message(now: Now) -> None:
    await now.clients.say(now.action["text"])


@DEEDS.says(r"start another run in S")
async def _start_another_run(now: Now) -> None:
    try:
        await now.clients.say("another", if_busy=now.clients.if_busy)
    except AgentBusy as busy:
        now.clients.refused.append(busy)


@DEEDS.says(r"cancel")
async def _cancel(now: Now) -> None:
    now.run.cancel()


@DEEDS.says(r"steer")
async def _steer(now: Now) -> None:
    now.run.steer(now.action["text"])


@DEEDS.says(r"approve|decline(?: \(.*\))?")
async def _decide(now: Now) -> None:
    if now.clients.gate == "remote":
        request = now.event
        if request is None:  # at a time, whatever is open then
            (request,) = now.run.open_requests
        assert isinstance(request, (ContinuationRequired, ApprovalRequired))
        response = approval_of(now.action) if isinstance(request, ApprovalRequired) else response_of(now.action)
        now.clients.replies.append(await now.run.decide(request.request, response, by="user"))


@DEEDS.says(r"cancel the surrounding nursery, not only the run")
async def _cancel_what_is_around(now: Now) -> None:
    now.clients.surrounding.cancel("the host goes down")


@DEEDS.says(r"compact history keeping the last (\d+) messages(?: \(.*\))?")
async def _compact(now: Now) -> None:
    """The conversation goes on in another agent, which begins with what is kept of it."""
    clients = now.clients
    kept = prune_messages(clients.agent.messages, keep_last=int(now.told[1]))
    clients.others.append(clients.agent)
    clients.agent = await clients.stage.spawn(clients.agent.spec, messages=kept)
    await clients.happens("compacted")


def time_of(action: Case) -> float | None:
    """The seconds after the start of a run at which an action is done, if that is its moment."""
    when: str = action["when"]
    return float(when.removeprefix("t=")) if when.startswith("t=") else None


def approval_of(action: Case) -> ApprovalResponse:
    """The answer to an approval prompt that an action is."""
    return approve() if action["do"] == "approve" else deny(action.get("message"))


def response_of(action: Case) -> ContinuationResponse:
    """The answer to a limit prompt that an action is."""
    return ContinuationResponse(action["do"].partition(" ")[0], message=action.get("message"))


def gate_function(actions: list[Case]) -> Callable[[ContinuationRequest], Any]:
    """The answers of a case as a provider function; where nobody answers, it never does."""
    numbers = itertools.count(1)

    async def provider(_request: ContinuationRequest) -> ContinuationResponse:
        moments = {f"limit_prompt:{next(numbers)}", "limit_prompt:*"}
        return response_of(await _answer_at(actions, moments))

    return provider


def approval_function(actions: list[Case]) -> Callable[[ApprovalRequest], Any]:
    """The same for approvals."""

    async def provider(request: ApprovalRequest) -> ApprovalResponse:
        return approval_of(await _answer_at(actions, {f"approval_prompt:{request.call}"}))

    return provider


async def _answer_at(actions: list[Case], moments: set[str]) -> Case:
    """The action that answers a request, when it is time for it."""
    action = next((action for action in actions if action["when"] in moments or time_of(action) is not None), None)
    if action is None:
        await trio.sleep_forever()
    if (seconds := time_of(action)) is not None:
        await trio.sleep_until(seconds)  # virtual time begins at 0, and so does the one run of such a case
    return action
