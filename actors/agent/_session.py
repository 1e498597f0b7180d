"""The session actor: one model turn at a time, from the request to the canonical turn."""

from __future__ import annotations

from functools import partial

import attrs
import trio

from protocol.errors import ModelError, ModelReplyError
from protocol.events import (
    ContentDelta,
    HopFinished,
    HopStarted,
    ModelRetry,
    ReasoningDelta,
    Rollback,
    ToolCallDelta,
)
from protocol.ids import new_id
from protocol.model import (
    CallDelta,
    HopBegan,
    HopEnded,
    Model,
    ModelEmit,
    ModelEvent,
    ModelRequest,
    RequestSent,
    Retrying,
    TextDelta,
    Undone,
)
from protocol.model import ReasoningDelta as ReasoningPiece
from protocol.normalise import normalise
from protocol.turns import TextPart, Turn

from ..kit import Ask, Mailbox
from ._charges import book
from ._core import RunCore
from ._foreign import FOREIGN, as_failure
from ._hops import HopInFlight
from ._model_slots import ModelSlots

__all__ = ("Session", "Think", "ask")


async def ask(core: RunCore, model: Model, request: ModelRequest, emit: ModelEmit) -> Turn:
    """Make one model call of a run, inside its probe if it has one. Raises what the model raises."""
    probe, outcome = core.probe, "failed"
    try:
        if probe is None:
            turn = _checked(model, await model.turn(request, emit))
        else:
            with probe.model_call(request, model) as span:
                turn = _checked(model, await model.turn(request, emit))
                span.came(turn)
        outcome = "ok"
        return turn
    finally:
        core.shared.watch.calls[outcome] += 1


def _checked(model: Model, turn: object) -> Turn:
    if not isinstance(turn, Turn):
        raise ModelReplyError(f"model {model.name} returned {type(turn).__name__}, not a Turn")
    return turn


@attrs.define(eq=False)
class Think(Ask[Turn]):
    """Make one model call. Fails with what the model raises."""

    request: ModelRequest
    model: Model
    hop: HopInFlight | None = None
    """Set where it continues the turn that is being shown."""


@attrs.define(eq=False)
class Session:
    """Owns the model call in flight."""

    core: RunCore
    _asked: Model | None = None
    """The model of the last call."""

    async def run(self, mailbox: Mailbox[Think]) -> None:
        """Make one call at a time; a call whose asker leaves is cancelled."""
        while True:
            # One scope for all calls, and a new one after a cancel: a scope for each is a twentieth of an iteration.
            with trio.CancelScope() as scope:
                async for message in mailbox:
                    message.reply.on_drop(partial(scope.cancel, "the asker left"))
                    if self.core.shared.slots is None:
                        await self._think(message)
                    else:
                        await self._think_in_turn(message, self.core.shared.slots)

    async def _think_in_turn(self, message: Think, slots: ModelSlots) -> None:
        """Make a call that may have to wait for others: until it need not any more, it is not about to leave."""
        core = self.core
        limiter = slots.of(message.model)
        if limiter is None:
            await self._think(message)
            return
        waits = core.journal.durable and not limiter.has_room(core.root)
        if waits:
            core.state.leaving = False
            core.keep()
        async with limiter.slot(core.root):
            if waits:
                core.state.leaving = True
                await core.barrier()
            await self._think(message)

    async def _think(self, message: Think) -> None:
        core = self.core
        core.history.check()
        model, hop = message.model, message.hop
        if model is not self._asked:
            self._asked = model
            core.models.hold(model)
        profile = model.profile
        state = core.state
        # A cancel may have come while this task was on its way here: then nothing is sent any more.
        await trio.lowlevel.checkpoint_if_cancelled()
        state.sent = not profile.reports_sending
        heard: Turn | None = None
        emit = self._emitter() if hop is None else hop.emitter(self._emitter(hop))
        core.hop = hop
        try:
            turn = await ask(core, model, message.request, emit)
            heard = turn
        except FOREIGN as error:
            failure = as_failure(error)
            if failure is None:
                raise
            heard = failure.partial if isinstance(failure, ModelError) else None
            message.reply.fail(failure)
            return
        finally:
            if hop is not None:
                hop.end()
            if heard is None and state.sent:  # failed or cut, without a word of what it used
                before = 0 if hop is None else len(hop.shown)
                heard = Turn((TextPart("".join(state.shown)[before:]),))
            if heard is not None:
                book(core, heard, model.name)
        turn, arguments = normalise(turn, knows_call=core.history.knows_call, max_calls=profile.max_calls_per_turn)
        core.arguments = arguments
        if hop is not None:
            hop.replace()
        message.reply.set(turn)

    def _emitter(self, hop: HopInFlight | None = None) -> ModelEmit:
        """Shows a message: a new one, or more of the one that the turn which is continued began."""
        core = self.core
        state = core.state
        if hop is None or not core.message:
            state.shown, core.message = [], new_id("m")
        shown, message = state.shown, core.message

        def emit(event: ModelEvent) -> None:
            if core.log.over:
                return
            match event:
                case TextDelta(text=text):
                    shown.append(text)
                    core.log.emit(ContentDelta(run=core.run, agent_path=core.path, message=message, text=text))
                case ReasoningPiece(text=text):
                    core.log.emit(ReasoningDelta(run=core.run, agent_path=core.path, message=message, text=text))
                case CallDelta(index=index, arguments=arguments, name=name):
                    core.log.emit(
                        ToolCallDelta(
                            run=core.run, agent_path=core.path, message=message, index=index, text=arguments, name=name
                        )
                    )
                case RequestSent():
                    state.sent = True
                case Undone():
                    shown[:] = ["".join(shown)[: event.text]]
                    core.log.emit(
                        Rollback(
                            run=core.run,
                            agent_path=core.path,
                            message=message,
                            to=event.text,
                            reasoning_to=event.reasoning,
                            calls_to=event.calls,
                        )
                    )
                case Retrying() | HopBegan() | HopEnded():
                    core.log.emit(_course_event(core, event))

        return emit


def _course_event(core: RunCore, event: Retrying | HopBegan | HopEnded) -> ModelRetry | HopStarted | HopFinished:
    """How a call that takes several requests is getting on."""
    run, path = core.run, core.path
    match event:
        case Retrying():
            return ModelRetry(
                run=run, agent_path=path, attempt=event.attempt, seconds=event.seconds, reason=event.reason
            )
        case HopBegan():
            return HopStarted(run=run, agent_path=path, hop=event.hop, strategy=event.strategy)
        case HopEnded():
            return HopFinished(
                run=run,
                agent_path=path,
                hop=event.hop,
                interaction=event.interaction,
                status=event.status,
                usage=event.usage,
            )
