"""Approvals: before the allowed calls of a turn run, somebody decides about those that need it (T8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from protocol.codec import digest_of
from protocol.errors import InvalidDecision
from protocol.events import ApprovalRequired, ApprovalResolved
from protocol.ids import new_id
from protocol.run import Asked

from ..tools import ArgumentsInvalid, render_error
from ._arbiter import ApprovalQuestion, Approvals, ProviderFault
from ._callbacks import EndRun, call_user, failed
from ._core import RunCore
from ._gate import stopped_at_gate
from ._policies import Remote
from ._resolve import Ready
from ._services import Services

__all__ = ("approved",)


async def approved(core: RunCore, services: Services, calls: list[Ready]) -> list[Ready]:
    """Those of the calls that may run; the others have their results. Raises `EndRun`.

    All requests of the turn are opened together, and all are decided before anything runs.
    """
    asked = [item for item in calls if await _needs_approval(core, item)]
    if not asked:
        return [item for item in calls if item.call.id not in core.state.results]
    if core.state.stop_requested is not None:
        raise EndRun(stopped_at_gate(core))
    provider = core.acting.approval or core.spec.approval
    if provider is None:  # a hook brought the tool in
        for item in asked:
            core.answer(item.call, "denied", "Not run: it needs approval, and nobody is there to give it.")
    else:
        questions = [ApprovalQuestion(_request_of(core, item), _check_of(item)) for item in asked]
        core.activity.wait()
        try:
            resolutions = await services.arbiter.ask(Approvals(tuple(questions), provider))
        except ProviderFault as fault:
            cause = fault.__cause__
            assert isinstance(cause, Exception)
            raise EndRun(failed("approval_provider_error", "the approval provider", cause)) from cause
        finally:
            core.activity.resume()
        if any(resolution.outcome in {"cancelled", "agent_ended"} for resolution in resolutions):
            raise EndRun(stopped_at_gate(core))
        for item, resolution in zip(asked, resolutions, strict=True):
            _settle(core, item, resolution)
    return [item for item in calls if item.call.id not in core.state.results]


async def _needs_approval(core: RunCore, item: Ready) -> bool:
    needs = item.tool.needs_approval
    if isinstance(needs, bool):
        return needs
    try:
        shown = copy.deepcopy(item.shown)
        return bool(await call_user(needs, shown, seconds=core.acting.callback_timeout_seconds))
    except Exception as error:  # noqa: BLE001  in doubt nothing runs
        text = f"Not run: whether {item.tool.name} needs approval could not be told: {render_error(error)}"
        core.answer(item.call, "error", text)
        return False


def _request_of(core: RunCore, item: Ready) -> ApprovalRequired:
    """The question about a call; a restored one keeps its id."""
    spec = core.acting if core.acting.approval is not None else core.spec
    seconds = spec.approval_timeout_seconds
    provider = spec.approval
    if isinstance(provider, Remote) and (
        provider.timeout_seconds is None or isinstance(provider.timeout_seconds, (int, float))
    ):
        seconds = provider.timeout_seconds
    call = item.call
    digest = digest_of((core.run, call.id, call.name, item.shown))
    asked = core.state.approvals.get(call.id)
    if asked is None or asked.digest != digest:  # an answer binds what was shown: other arguments are another question
        if asked is not None:
            core.requests.end(asked.request, "cancelled")
        asked = core.state.approvals[call.id] = Asked(new_id("q"), digest)
    return ApprovalRequired(
        run=core.run,
        agent_path=core.path,
        request=asked.request,
        call=call.id,
        name=call.name,
        arguments=copy.deepcopy(item.shown),  # whoever is asked may change its copy; what was shown is what runs
        expires_in_seconds=seconds,
        digest=digest,
    )


def _check_of(item: Ready) -> Callable[[Mapping[str, Any]], None]:
    def check(arguments: Mapping[str, Any]) -> None:
        try:
            item.bind(arguments)
        except ArgumentsInvalid as error:
            raise InvalidDecision(f"the edited arguments do not fit {item.tool.name}: {error}") from error

    return check


def _settle(core: RunCore, item: Ready, resolution: ApprovalResolved) -> None:
    match resolution.outcome:
        case "approved":
            pass
        case "edited":
            item.rebind(resolution.arguments or {})
            item.edited = True
        case "denied":
            reason = f" {resolution.reason}" if resolution.reason else ""
            core.answer(item.call, "denied", f"Not run: declined.{reason}")
        case "timed_out":
            core.answer(item.call, "not_run", "Not run: nobody approved it in time, and the request has expired.")
        case "failed" | "cancelled" | "agent_ended":
            core.answer(item.call, "not_run", "Not run: the request for approval was closed.")
