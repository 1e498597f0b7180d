"""Who decides in a world: providers that are functions, and the person at `remote()`, who is late, wrong or absent."""

from __future__ import annotations

from typing import Any

import attrs
import trio

from actors import ContinuationRequest, ContinuationResponse, Run
from protocol.approval import ApprovalRequest, ApprovalResponse, approve, deny, edit
from protocol.errors import InvalidDecision, RunOver, SubmissionRefused
from protocol.events import (
    ApprovalRequired,
    ApprovalResolved,
    ContinuationRequired,
    ContinuationResolved,
    PendingCall,
    RunPaused,
)

from .truth import EDITED, Truth
from .world import Answer, Approver, Verdict

APPROVE = ContinuationResponse("approve")


def response_to(request: ContinuationRequest, answer: Answer) -> ContinuationResponse:
    """The answer in words that the gate takes, or not."""
    match answer:
        case "discard":
            return ContinuationResponse("approve", discard_tool_calls=True, tool_message="not this")
        case "some":
            first = [call.id for call in request.tool_calls][:1]
            return ContinuationResponse("approve", discard_tool_calls=first, message="go on")
        case "grant":
            return ContinuationResponse("approve", grant=1)
        case "decline":
            return ContinuationResponse("decline", message="enough")
        case "timeout":
            return ContinuationResponse("timeout")
        case "wrong":
            return ContinuationResponse("approve", discard_tool_calls=["nobody's"])
        case _:
            return APPROVE


def verdict_on(request: ApprovalRequest, verdict: Verdict) -> ApprovalResponse:
    """The same for a call."""
    number = int(request.arguments["n"])
    match verdict:
        case "deny":
            return deny("no")
        case "edit":
            return edit({"n": number + EDITED})
        case "bad_edit":
            return edit({"n": "x"})
        case "timeout":
            return ApprovalResponse("timeout")
        case _:
            return approve()


def gate_of(truth: Truth, path: tuple[str, ...]) -> Any:
    """A continuation provider that is a function."""
    gate = truth.world_of(path).gate
    assert gate is not None

    async def provider(request: ContinuationRequest) -> Any:
        answer: Answer = truth.next_of("gate", path, gate.answers, "decline")
        await trio.sleep(gate.seconds)
        if answer == "nobody":
            await trio.sleep_forever()
        if answer == "raise":
            raise ValueError("provider")
        return "yes" if answer == "wrong" else response_to(request, answer)

    return provider


def approver_of(truth: Truth, path: tuple[str, ...]) -> Any:
    """An approval provider that is a function."""
    approver = truth.world_of(path).approver or Approver()

    async def provider(request: ApprovalRequest) -> Any:
        verdict: Verdict = truth.next_of("approval", path, approver.answers, "approve")
        await trio.sleep(approver.seconds)
        if verdict == "nobody":
            await trio.sleep_forever()
        if verdict == "raise":
            raise ValueError("provider")
        return "yes" if verdict == "wrong" else verdict_on(request, verdict)

    return provider


@attrs.define
class Person:
    """Follows the root run, decides what is asked from outside, and gives the results of the caller's own tools."""

    truth: Truth
    run: Run

    async def follow(self) -> None:
        async with trio.open_nursery() as nursery:
            async for event in self.run:
                match event:
                    case ContinuationRequired():
                        nursery.start_soon(self._at_the_gate, event)
                    case ApprovalRequired():
                        nursery.start_soon(self._about_a_call, event)
                    case ContinuationResolved() | ApprovalResolved():
                        await self._too_late(event)
                    case RunPaused() if event.run == self.run.id:
                        nursery.start_soon(self._submit, event)
                    case _:
                        pass
            nursery.cancel_scope.cancel()

    async def decide(self, request: str, response: Any) -> None:
        reply = await self.run.decide(request, response)
        if reply.status == "accepted":
            self.truth.accepted[request] = self.truth.accepted.get(request, 0) + 1
        elif reply.status != "already_resolved":
            self.truth.fault(f"{request} was asked, and is {reply.status}")

    async def _at_the_gate(self, event: ContinuationRequired) -> None:
        gate = self.truth.world_of(event.agent_path).gate
        if gate is None or gate.kind != "remote":
            return
        answer: Answer = self.truth.next_of("gate", event.agent_path, gate.answers, "decline")
        await trio.sleep(gate.seconds)
        if answer in {"nobody", "raise"}:
            return
        await self._decide(event.request, response_to(event, answer), wrong=answer in {"wrong", "timeout"})

    async def _about_a_call(self, event: ApprovalRequired) -> None:
        approver = self.truth.world_of(event.agent_path).approver or Approver()
        if approver.kind != "remote":
            return
        verdict: Verdict = self.truth.next_of("approval", event.agent_path, approver.answers, "approve")
        await trio.sleep(approver.seconds)
        if verdict in {"nobody", "raise", "wrong"}:
            return
        await self._decide(event.request, verdict_on(event, verdict), wrong=verdict in {"bad_edit", "timeout"})

    async def _decide(self, request: str, response: Any, *, wrong: bool) -> None:
        if not wrong:
            await self.decide(request, response)
            await self.decide(request, response)
            return
        try:
            await self.decide(request, response)
        except InvalidDecision:
            return
        if self.truth.agent is not None and self.truth.agent.requests.resolution(request) is None:
            self.truth.fault(f"{request} took {response}, which was not on offer")

    async def _too_late(self, event: ContinuationResolved | ApprovalResolved) -> None:
        late: Any = APPROVE if isinstance(event, ContinuationResolved) else approve()
        reply = await self.run.decide(event.request, late)
        if (reply.status, reply.resolution) != ("already_resolved", event):
            self.truth.fault(f"a late decision about {event} got {reply}")

    async def _submit(self, event: RunPaused) -> None:
        plans = {call.id: self.truth.world.tools[int(call.name[1:])].submits for call in event.calls}
        waiting = {call.id: call for call in event.calls}
        early = {call: _value(waiting[call]) for call, plan in plans.items() if plan == "parts"}
        late = {call: _value(waiting[call]) for call, plan in plans.items() if plan in {"whole", "late"}}
        late |= {call: ValueError("outside") for call, plan in plans.items() if plan == "error"}
        try:
            if early:
                self.run.submit(early)
                self._refused(early)
            await trio.sleep(20 if "late" in plans.values() else 0)
            if late:
                self.run.submit(late)
            await trio.sleep(5)
        except (RunOver, SubmissionRefused):
            if not (self.run.over or self.truth.run_is_ending):
                self.truth.fault(f"results for {event} were refused")
        if "never" in plans.values():
            self.run.stop("nobody answers")

    def _refused(self, results: dict[str, Any]) -> None:
        """Given once more, they must be refused."""
        try:
            self.run.submit(results)
        except (RunOver, SubmissionRefused):
            return
        self.truth.fault("results were taken twice")


def _value(call: PendingCall) -> Any:
    return {"given": call.id}
