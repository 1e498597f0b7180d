"""The arbiter actor: puts a run's questions to whoever may decide, and brings the one answer to each back.

A question is stored, not waited for: the table of requests is the agent's, decisions close a request there in one
synchronous step, whoever makes them, and closing it wakes the run. The actor adds what needs tasks: the deadline and
the call of the provider. All questions of one turn are opened together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import attrs
import trio

from protocol.approval import ApprovalResponse
from protocol.errors import InvalidDecision
from protocol.events import ApprovalRequired, ApprovalResolved, ContinuationRequired, ContinuationResolved
from protocol.gate import ContinuationResponse
from protocol.requests import Request, Resolution, resolution_of

from ..kit import Ask, Mailbox
from ..logs import bound, get_logger
from ._core import RunCore
from ._foreign import FOREIGN, as_failure
from ._policies import Approval, Continuation, Remote

__all__ = ("ApprovalQuestion", "Approvals", "Arbiter", "ArbiterAsk", "ProviderFault", "Question")

logger = get_logger(__name__)

KEEP_SECONDS = 30.0
"""How often the time that is left to an open request is written down."""


class ProviderFault(Exception):
    """The provider raised, or did not answer with a response; the cause is chained."""


@attrs.define(eq=False)
class Question(Ask[ContinuationResolved]):
    """May this go on? Fails with `ProviderFault`."""

    request: ContinuationRequired
    provider: Continuation


@attrs.frozen(eq=False)
class ApprovalQuestion:
    """May this call run?"""

    request: ApprovalRequired
    check_arguments: Callable[[Mapping[str, Any]], object]
    """Raises `InvalidDecision` for edited arguments that the tool would not take."""


@attrs.define(eq=False)
class Approvals(Ask[tuple[ApprovalResolved, ...]]):
    """May these calls run? Answered when all are decided, in their order. Fails with `ProviderFault`."""

    questions: tuple[ApprovalQuestion, ...]
    provider: Approval


ArbiterAsk: TypeAlias = Question | Approvals


@attrs.define(eq=False)
class _Open:
    """A request that is open, and what becomes of its answer."""

    request: Request
    provider: Continuation | Approval
    deadline: float | None
    resolved: Callable[[Any], object]
    failed: Callable[[Exception], object]
    watch: trio.CancelScope = attrs.field(factory=trio.CancelScope)


@attrs.define(eq=False)
class Arbiter:
    """Owns the deadlines of the run's questions and the calls of its providers."""

    core: RunCore

    async def run(self, mailbox: Mailbox[ArbiterAsk]) -> None:
        """Open each question and go on receiving."""
        async with trio.open_nursery() as nursery:
            async for message in mailbox:
                if isinstance(message, Question):
                    self._ask_gate(message, nursery)
                else:
                    self._ask_approvals(message, nursery)

    def _ask_gate(self, question: Question, nursery: trio.Nursery) -> None:
        core, request = self.core, question.request
        one = _Open(request, question.provider, _deadline(request), question.reply.set, question.reply.fail)
        if (standing := core.requests.resolution(request.request)) is not None:  # decided before a restart
            _answer(one, standing)
            return
        one.deadline = core.requests.open(request, one.deadline, partial(self._closed, one))
        if request.request not in core.log.grammar.open_requests:  # a restored question has been asked already
            core.reach(request.limit)
            core.log.emit(request)
            core.state.open_request = request.request
        question.reply.on_drop(partial(self._end, request.request))
        self._start(one, nursery)

    def _ask_approvals(self, approvals: Approvals, nursery: trio.Nursery) -> None:
        core = self.core
        found: dict[str, ApprovalResolved] = {}
        asked = [question.request.request for question in approvals.questions]

        def resolved(resolution: ApprovalResolved) -> None:
            found[resolution.request] = resolution
            if len(found) == len(asked):
                approvals.reply.set(tuple([found[request] for request in asked]))

        opened: list[_Open] = []
        for question in approvals.questions:
            request = question.request
            one = _Open(request, approvals.provider, _deadline(request), resolved, approvals.reply.fail)
            if (standing := core.requests.resolution(request.request)) is not None:
                _answer(one, standing)
                continue
            opened.append(one)
            one.deadline = core.requests.open(
                request, one.deadline, partial(self._closed, one), check_arguments=question.check_arguments
            )
            if request.request not in core.log.grammar.open_requests:
                core.log.emit(request)
        approvals.reply.on_drop(partial(self._end, *asked))
        for one in opened:
            self._start(one, nursery)

    def _start(self, one: _Open, nursery: trio.Nursery) -> None:
        if self.core.state.stop_requested is not None:
            self._end(one.request.request)
        else:
            nursery.start_soon(self._watch, one, name=one.request.request)
            logger.info("request open", request=one.request.request, kind=_kind_of(one.request))

    def _end(self, *requests: str) -> None:
        for request in requests:
            self.core.requests.end(request, self.core.requests_end_as)

    def _closed(self, one: _Open, resolution: Resolution) -> None:
        if self.core.log.emit(resolution):
            self.core.requests.note_number(resolution.request, self.core.log.number)
        one.resolved(resolution)
        one.watch.cancel("resolved")
        logger.info(
            "request closed",
            request=resolution.request,
            run=self.core.run,
            agent_name=self.core.spec.name,
            outcome=resolution.outcome,
            by=resolution.by or "nobody",
        )

    async def _watch(self, one: _Open) -> None:
        """Run the deadline and the provider side by side: one that ignores its cancel cannot outlive its time.

        What the provider says or raises once the request is closed changes nothing.
        """
        try:
            with bound(request=one.request.request), one.watch:
                async with trio.open_nursery() as nursery:
                    if one.deadline is not None:
                        nursery.start_soon(self._expire, one.request.request, one.deadline)
                    if isinstance(one.provider, Remote):
                        await trio.sleep_forever()
                    await self._ask(one)
        except* (Exception, SystemExit):  # noqa: BLE001  raised while it was being cancelled: the request is closed
            self._log_late_failure(one.request)

    async def _ask(self, one: _Open) -> None:
        requests, request = self.core.requests, one.request
        try:
            requests.close(await _decision_of(one.provider, request))
        except FOREIGN as error:
            failure = as_failure(error)
            if failure is None:
                raise
            if requests.resolution(request.request) is None:
                fault = ProviderFault("the provider failed")
                fault.__cause__ = failure
                one.failed(fault)
                requests.end(request.request, "failed")
            else:
                self._log_late_failure(request)

    def _log_late_failure(self, request: Request) -> None:
        logger.warning(
            "a provider failed after its request was closed", kind=_kind_of(request), request=request.request
        )

    async def _expire(self, request: str, deadline: float) -> None:
        if (
            self.core.journal.durable
        ):  # the time that is left is written down now and then, as a crash does not say when
            while trio.current_time() + KEEP_SECONDS < deadline:
                await trio.sleep(KEEP_SECONDS)
                self.core.keep()
        await trio.sleep_until(deadline)
        self.core.requests.expire(request)


def _kind_of(request: Request) -> str:
    return "continuation" if isinstance(request, ContinuationRequired) else "approval"


def _answer(one: _Open, standing: Resolution) -> None:
    """Bring back an answer that had been given before the process ended."""
    if standing.outcome == "failed":
        fault = ProviderFault("the provider failed")
        fault.__cause__ = RuntimeError("it failed before the process was started again")
        one.failed(fault)
    else:
        one.resolved(standing)


def _deadline(request: Request) -> float | None:
    seconds = request.expires_in_seconds
    return None if seconds is None else trio.current_time() + seconds


async def _decision_of(provider: Any, request: Request) -> Resolution:
    response = provider(request)
    if inspect.isawaitable(response):
        response = await response
    wanted = ContinuationResponse if isinstance(request, ContinuationRequired) else ApprovalResponse
    if not isinstance(response, wanted):
        kind = "a continuation" if wanted is ContinuationResponse else "an approval"
        raise InvalidDecision(f"{kind} provider must return {wanted.__name__}; it returned {type(response).__name__}")
    return resolution_of(request, response, by="provider")
