"""A helper call: one model call of a hook's or a tool's own, drawn on the run's account (B1, B2)."""

from __future__ import annotations

from protocol.errors import LimitReachedError, ModelError, RunOver, SpecError
from protocol.ids import new_id
from protocol.ledger import Account
from protocol.model import Model, ModelEvent, ModelRequest, RequestSent
from protocol.text import clean, is_visible
from protocol.turns import Turn, UserMessage
from protocol.usage import UNKNOWN_USAGE

from ._charges import amounts_of, estimate_of, report_usage, spending_of
from ._context import current_run
from ._core import RunCore
from ._session import ask

__all__ = ("ask_model",)


async def ask_model(
    prompt: str, *, model: Model | None = None, system: str | None = None, max_tokens: int | None = None
) -> Turn:
    """Ask a model something beside the conversation, inside a hook or a tool: to summarise, to judge, to choose.

    `model` is the acting agent's unless given. The call counts on every account up to the root, and leaves the run's
    last call alone where that is held for its final answer. Raises `LimitReachedError` if a limit has no room for it
    (which, leaving a hook, is the run's limit), what the model raises, and `SpecError` for a prompt that says nothing.
    """
    core = _core_here()
    if not isinstance(prompt, str) or not is_visible(prompt):
        raise SpecError(f"ask_model(prompt): say what the model should do; it is {prompt!r}")
    model = model or core.acting.model
    account = Account(new_id("helper"), parents=(core.account,))
    request = ModelRequest(messages=(UserMessage(clean(prompt)),), system=system, max_tokens=max_tokens)
    estimate = estimate_of(core, request, model)
    amounts = amounts_of(core, request, model, estimate)
    grant = account.reserve()
    refused = grant.refused or account.hold(grant.number, *amounts)
    if refused is not None:
        account.release(grant.number)
        partial = core.partial_result(limit=refused)
        raise LimitReachedError(
            f"the limit {refused.name} ({refused.max}) has no room for a helper call", partial=partial
        )
    core.models.hold(model)
    sent = False

    def emit(event: ModelEvent) -> None:
        nonlocal sent
        sent = sent or isinstance(event, RequestSent)

    reply: Turn | None = None
    try:
        if core.journal.durable:  # written down before it leaves, so that it is not lost count of
            await core.barrier()
        async with core.shared.slot(model, core.root):
            sent = not model.profile.reports_sending
            turn = reply = await ask(core, model, request, emit)
    except ModelError as error:
        reply = error.partial
        raise
    finally:
        if reply is not None or sent:
            usage = reply.usage if reply is not None else UNKNOWN_USAGE
            account.settle(grant.number, spending_of(core, usage, reply, model.name, estimate))
            if not core.over.is_set():
                report_usage(core)
        else:
            account.release(grant.number)
    return turn


def _core_here() -> RunCore:
    context = current_run.get()
    if context is None:
        raise SpecError("ask_model is for hooks and tools of a run: outside of one, use the model itself")
    core: RunCore = context.core
    if core.over.is_set():
        raise RunOver(f"run {core.run} has ended and makes no more model calls: use the model itself")
    return core
