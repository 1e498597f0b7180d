"""A turn that was cut goes on, in the same step and the same message (loop.md section 8, D4 and D5).

A provider's token is the model's own affair, within one call. Every continuation here is a call of its own: counted
before it leaves, without hooks, with its tokens and cost held (B1). Refused by a limit, the turn stays what it is.
"""

from __future__ import annotations

import msgspec

from protocol.errors import ContextOverflow
from protocol.events import HopFinished, HopStarted
from protocol.joining import cap_of, continuing, input_of, join, kept_of, lose, status_of, strategy_of, with_first_hop
from protocol.model import Model, ModelRequest, Profile, Resume, Strategy
from protocol.outcome import Outcome, outcome_of
from protocol.seam import Seam
from protocol.text import clean, is_visible
from protocol.turns import Part, ReasoningPart, Turn, raw_text_of
from protocol.usage import NO_USAGE, UNKNOWN_USAGE

from ._budget import Reserve
from ._charges import hold, report_usage
from ._core import RunCore
from ._given import hook_fault
from ._hops import HopInFlight
from ._prepare import tools_off
from ._services import Services
from ._session import Think

__all__ = ("continued", "resume_stored", "resuming")

IDLE_HOPS = 2
"""Continuations in a row that bring nothing new, after which a turn is not continued any more."""


def resuming(core: RunCore, request: ModelRequest, profile: Profile) -> ModelRequest:
    """The first request of a run that continues a stored answer. Raises `EndRun` if a hook chose a model that cannot."""
    stored = core.state.resumed
    assert stored is not None
    strategy = profile.continues_text
    if strategy == "none":
        raise hook_fault(
            "the model that a hook chose cannot continue the answer: its profile's continues_text is 'none'"
        )
    return msgspec.structs.replace(request, resume=Resume(stored.parts, strategy))


async def resume_stored(
    core: RunCore, services: Services, request: ModelRequest, model: Model, *, refused: int = 0
) -> Turn:
    """Make the first call of a run that continues a stored answer: the answer with what the call brought.

    So many calls for it were `refused` before: each was a request.
    """
    resume = request.resume
    assert resume is not None
    turn = Turn(resume.parts, "length", "length", NO_USAGE)
    for _ in range(refused):
        turn = lose(turn, resume.strategy)
    return await _hop(core, services, request, model, turn, resume.strategy)


async def continued(
    core: RunCore, services: Services, request: ModelRequest, model: Model, turn: Turn
) -> tuple[ModelRequest, Turn, Outcome]:
    """Continue a turn that was cut as far as it may be: the last request, the turn with all its pieces, what it is."""
    state, profile = core.state, model.profile
    idle = 0
    for _ in range(core.acting.max_hops):
        _keep_shown(core, turn)
        strategy = strategy_of(turn, request, profile, final=state.final is not None)
        if strategy is None or idle == IDLE_HOPS:
            break
        following = await _reserved(core, services, continuing(request, profile, turn, strategy), model)
        if following is None:
            break
        if not turn.hops:
            _tell_end(core, 0, turn)
        state.context_tokens = input_of(turn)
        report_usage(core)
        turn = with_first_hop(turn, strategy)
        earlier, state.spent = state.spent, None
        kept = kept_of(turn, request, strategy)
        request = following
        try:
            joined = await _hop(core, services, request, model, kept, strategy)
        except ContextOverflow:  # full after all
            turn = lose(turn, strategy)
            break
        finally:
            if earlier is not None:
                state.spent = earlier if state.spent is None else earlier + state.spent
        idle = idle + 1 if _adds_nothing(kept, joined, strategy) else 0
        turn = joined
    return request, turn, outcome_of(turn, cap_of(request, profile))


def _keep_shown(core: RunCore, turn: Turn) -> None:
    """Keep what was shown as it can be written down, and a text that its model did not stream (R3)."""
    shown, text = clean("".join(core.state.shown)), _new_text(core, turn.parts)
    core.state.shown[:] = [text if len(text) > len(shown) else shown]


async def _reserved(core: RunCore, services: Services, request: ModelRequest, model: Model) -> ModelRequest | None:
    """Count the call that a continuation is: its request, or `None` if there is no room for it."""
    state = core.state
    grant = await services.budget.ask(Reserve())
    state.reservation, state.sent = grant.number, False
    if grant.refused is not None:
        state.uncontinued = grant.refused
        return None
    if grant.spent is not None and state.final is None and core.spec.llm_call_limit_finalization is not None:
        if request.resume is None:  # the call is held for a final one, or to continue an answer; this is neither (B2)
            core.account.release(grant.number)
            state.reservation = 0
            return None
        request = tools_off(request, model.profile)  # no call would be left to read what a tool says
        core.offered, state.offered = {}, ()
    state.uncontinued = hold(core, request, model)
    if state.uncontinued is None and core.journal.durable:
        state.leaving = True
        await core.barrier()
    return request if state.uncontinued is None else None


async def _hop(
    core: RunCore, services: Services, request: ModelRequest, model: Model, kept: Turn, strategy: Strategy
) -> Turn:
    """Make one request more: what stands of the turn, with what it brought."""
    resume, anew = request.resume, strategy == "restart_bigger"
    shown = "".join(core.state.shown)
    hop = HopInFlight(
        len(kept.hops),
        shown[: len(_new_text(core, kept.parts))] if anew else shown,
        sum(len(part.text) for part in kept.parts if isinstance(part, ReasoningPart)),
        Seam(raw_text_of(kept.parts)) if resume is not None and resume.strategy == "user_turn" else None,
        anew,
    )
    core.log.emit(HopStarted(run=core.run, agent_path=core.path, hop=hop.number, strategy=strategy))
    piece: Turn | None = None
    try:
        piece = await services.session.ask(Think(request, model, hop))
        return join(kept, piece, request, strategy)
    finally:
        if not hop.told:
            _tell_end(core, hop.number, piece)


def _new_text(core: RunCore, parts: tuple[Part, ...]) -> str:
    """The text of a turn, without that of a stored answer that the run continues: what is shown of it in this run."""
    stored = core.state.resumed
    return raw_text_of(parts)[0 if stored is None else len(raw_text_of(stored.parts)) :]


def _tell_end(core: RunCore, hop: int, piece: Turn | None) -> None:
    """Tell how a request ended; `None`: it broke off."""
    core.log.emit(
        HopFinished(
            run=core.run,
            agent_path=core.path,
            hop=hop,
            interaction=None if piece is None else piece.response,
            status="lost" if piece is None else status_of(piece),
            usage=UNKNOWN_USAGE if piece is None else piece.usage,
        )
    )


def _adds_nothing(kept: Turn, joined: Turn, strategy: Strategy) -> bool:
    """Whether a piece holds nothing that a person would see; of a turn that the server paused, nothing at all."""
    if strategy == "resend":
        return joined.parts == kept.parts
    added = raw_text_of(joined.parts)[len(raw_text_of(kept.parts)) :]
    return not joined.calls and not is_visible(added)
