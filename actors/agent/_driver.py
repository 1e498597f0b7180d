"""The driver: what a run does, in order (loop.md section 3). Straight-line code over `RunState`.

    loop:
        no turn in hand?  think: reserve - final? - steering - the model call
        then handle it:   gate or limit - tools - store the exchange - conditions

Each function returns how the run ends, or `None` to go on. All that must outlive an await stands in the state, and
that first question is the whole of re-entry: a state restored with a turn goes on at its gate or its tools.
"""

from __future__ import annotations

from typing import assert_never

import attrs

from protocol.errors import ActorCrashed, ActorGone, ModelError, ModelReplyError
from protocol.events import (
    MessageDelivered,
    StepStarted,
    ToolRequested,
)
from protocol.finalization import flatten_tools
from protocol.model import ModelRequest
from protocol.normalise import parse_arguments
from protocol.outcome import outcome_of
from protocol.run import Finished, RunEnd
from protocol.turns import AssistantMessage, TextPart, ToolCall, Turn, UserMessage

from ..kit import Port
from ._arbiter import ProviderFault, Question
from ._budget import Reserve
from ._callbacks import failed, met_condition
from ._core import RunCore, finish_word
from ._final import end_without_call, handle_final, prepare_final
from ._gate import decline, end_at_limit, question_of, stopped, stopped_at_gate
from ._session import Think
from ._toolbox import RunTools

__all__ = ("Driver",)

DISCARDED_TEXT = "Tool execution canceled by user during continuation."
CUT_TEXT = (
    "Not run: your output was cut by the token limit before the tool calls were complete, and nothing was run."
    " Write less before the call, or split the work into smaller calls."
)
EMPTY_REASK = "Your last reply was empty: it held neither text nor a tool call. Answer, or call a tool."
MALFORMED_REASK = "Your last reply could not be read as text or as a tool call. Answer, or make the call again."


@attrs.define(eq=False)
class Driver:
    """Asks the run's services; nobody asks it."""

    core: RunCore
    budget: Port[Reserve]
    session: Port[Think]
    toolbox: Port[RunTools]
    arbiter: Port[Question]

    async def run(self) -> RunEnd:
        """Drive the run to its end, and say which that is."""
        while True:
            end = await self._think() if self.core.state.turn is None else None
            if end is None:
                end = await self._handle()
            if end is not None:
                return end

    # ------------------------------------------------------------ thinking

    async def _think(self) -> RunEnd | None:
        """Make one model call (steps 1 to 6)."""
        core = self.core
        state = core.state
        if state.stop_requested is not None:
            return stopped(core)
        state.step_began = core.elapsed_seconds
        grant = await self.budget.ask(Reserve(state.reservation, state.spent))
        state.reservation, state.sent, state.spent = grant.number, False, None
        if grant.refused is not None:
            return end_without_call(core, grant.refused)
        await prepare_final(core, grant)
        self._deliver_steering()
        core.log.emit(StepStarted(run=core.run, agent_path=core.path, step=state.step, final=state.final is not None))
        request = self._request()
        if core.journal.durable:
            await core.journal.flushed()
        try:
            turn = await self.session.ask(Think(request))
        except (ActorGone, ActorCrashed):
            raise
        except Exception as error:  # noqa: BLE001  a model is foreign code
            if isinstance(error, ModelError) and error.partial is not None:
                text = error.partial.text
                if len(text) > len("".join(state.shown)):
                    state.shown = [text]
            return failed(_code_of(error), "the model", error)
        self._take(turn, request.max_tokens)
        return None

    def _deliver_steering(self) -> None:
        core = self.core
        waiting, core.state.steering = core.state.steering, []
        for message in waiting:
            core.history.append(UserMessage(message.text))
            core.log.emit(MessageDelivered(run=core.run, agent_path=core.path, message=message.id))

    def _request(self) -> ModelRequest:
        core = self.core
        spec = core.spec
        final = core.state.final
        view = core.history.view()
        definitions = core.definitions
        if final is None:
            return ModelRequest(
                messages=view,
                system=spec.system,
                tail=core.state.reask,
                tools=definitions,
                temperature=spec.temperature,
                max_tokens=spec.max_tokens,
            )
        profile = spec.model.profile
        return ModelRequest(
            messages=flatten_tools(view) if profile.flatten_without_tools else view,
            system=spec.system,
            tail=final.instruction,
            tools=definitions if profile.keeps_tools_when_off else (),
            tool_choice="none",
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
        )

    def _take(self, turn: Turn, max_tokens: int | None) -> None:
        """Take the turn in hand: what it is, and which calls it asks for."""
        core = self.core
        state = core.state
        core.hold(turn)
        state.shown = []
        state.reask = state.reasked_as = None
        state.context_tokens = turn.usage.input_tokens if turn.usage.uncached_input_tokens is not None else None
        outcome = state.outcome = outcome_of(turn, max_tokens)
        if core.text:
            state.texts.append(core.text)
        if state.final is None and outcome.kind == "calls":
            for call in core.calls:
                arguments = parse_arguments(call.arguments) or {}
                event = ToolRequested(
                    run=core.run, agent_path=core.path, call=call.id, name=call.name, arguments=arguments
                )
                core.log.emit(event)

    # ------------------------------------------------------------ handling the turn

    async def _handle(self) -> RunEnd | None:
        """Steps 7 to 11: what becomes of the turn in hand."""
        core = self.core
        state = core.state
        if state.final is not None:
            return handle_final(core)
        turn, outcome = state.turn, state.outcome
        assert turn is not None
        assert outcome is not None
        match outcome.kind:
            case "calls":
                return await self._calls(turn)
            case "answer":
                return await self._answer(turn)
            case "empty" | "malformed":
                return await self._no_progress(turn)
            case "truncated":
                self._store_cut()
                return Finished("model", "length")
            case "blocked":
                self._store_cut()
                return Finished("model", "content_filter", stop_reason=outcome.detail)
            case "failed":
                self._store_cut()
                return failed("model_reply_error", "the model", ModelReplyError(outcome.detail))
            case _:
                assert_never(outcome.kind)

    async def _answer(self, turn: Turn) -> RunEnd | None:
        core = self.core
        state = core.state
        text = core.text
        core.history.append(AssistantMessage(turn.parts))
        core.close_step()
        state.reasks = 0
        if state.steering and state.stop_requested is None:
            return await met_condition(core, finish_word(turn))
        return Finished("model", "stop", answer=text)

    def _store_cut(self) -> None:
        """Keep the visible text of a turn that is no whole answer, marked partial."""
        core = self.core
        if core.text:
            core.history.append(AssistantMessage((TextPart(core.text),), partial=True))
        core.close_step()

    async def _no_progress(self, turn: Turn) -> RunEnd | None:
        """Ask again for an empty or malformed turn, of which nothing is stored; a few times in a row (R5)."""
        core = self.core
        state = core.state
        outcome = state.outcome
        assert outcome is not None
        core.close_step()
        if state.reasks < core.spec.max_reasks:
            state.reasks += 1
            empty = outcome.kind == "empty"
            state.reask = EMPTY_REASK if empty else MALFORMED_REASK
            state.reasked_as = outcome.kind
            return await met_condition(core, finish_word(turn))
        if outcome.kind == "malformed":
            return failed("model_reply_error", "the model", ModelReplyError(f"malformed reply: {outcome.detail}"))
        return Finished("model", "empty", stop_reason=outcome.detail)

    async def _calls(self, turn: Turn) -> RunEnd | None:
        """Steps 8 to 11: the gate or the limit, the tools, the exchange, the conditions."""
        core = self.core
        state = core.state
        if state.decision is None and not state.counted and state.window_is_full():
            end = await self._gate()
            if end is not None:
                return end
        decision = state.decision
        if decision is not None and not decision.goes_on:
            decline(core, decision)
            return None
        for call in core.calls:
            if decision is not None and call.id in decision.discarded:
                core.answer(call, "discarded", decision.tool_message or DISCARDED_TEXT)
        left = tuple([call for call in core.calls if call.id not in state.results])
        assert state.outcome is not None
        cut = state.outcome.cut
        if left or decision is None:
            if not state.counted:
                state.counted = True
                state.window += 1
                state.tool_iterations += 1
            await self._run_tools(left, cut=cut)
        core.store_exchange(decision.message if decision is not None else None)
        if not cut:
            state.reasks = 0
        elif state.reasks >= core.spec.max_reasks:
            return Finished("model", "length")
        else:
            state.reasks += 1
            state.reasked_as = "length"
        return await met_condition(core, finish_word(turn))

    async def _run_tools(self, calls: tuple[ToolCall, ...], *, cut: bool) -> None:
        core = self.core
        if cut:
            for call in calls:
                core.answer(call, "error", CUT_TEXT)
        elif calls:
            if core.journal.durable:
                await core.journal.flushed()
            await self.toolbox.ask(RunTools(calls))

    # ------------------------------------------------------------ the gate

    async def _gate(self) -> RunEnd | None:
        """The window is full and the model wants tools: end at the limit, or ask whether it may go on (G1)."""
        core = self.core
        state = core.state
        provider = core.spec.continuation
        if provider is None:
            return end_at_limit(core, state.tool_limit())
        if state.stop_requested is not None:
            return stopped_at_gate(core)
        refusal = core.account.refusal()
        if refusal is not None:
            return end_at_limit(core, refusal)
        request = question_of(core)
        try:
            decision = await self.arbiter.ask(Question(request, provider))
        except ProviderFault as fault:
            cause = fault.__cause__
            assert isinstance(cause, Exception)
            return failed("continuation_provider_error", "the continuation provider", cause)
        state.open_request = None
        state.decision = decision
        if decision.outcome in {"cancelled", "agent_ended"}:
            return stopped_at_gate(core)
        if decision.goes_on:
            state.window = 0
            state.window_max = int(decision.granted or 0) or core.spec.max_tool_iterations
        return None


def _code_of(error: Exception) -> str:
    name = type(error).__name__ if type(error).__module__.startswith("protocol.") else "ModelError"
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")
