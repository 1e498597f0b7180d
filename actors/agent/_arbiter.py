"""The arbiter actor: puts the gate's question to whoever may decide, and brings the one answer back.

The question is stored, not waited for: the table of requests is the agent's, decisions close a request there in one
synchronous step, whoever makes them, and closing it wakes the run. The actor adds what needs tasks: the deadline and
the call of the provider.
"""

from __future__ import annotations

import inspect
import logging
from functools import partial

import attrs
import trio

from protocol.errors import InvalidDecision
from protocol.events import ContinuationRequired, ContinuationResolved
from protocol.gate import ContinuationResponse, resolution_of

from ..kit import Ask, Mailbox
from ._core import RunCore
from ._foreign import FOREIGN, as_failure
from ._policies import Continuation, ContinuationFunction, Remote

__all__ = ("Arbiter", "ProviderFault", "Question")

logger = logging.getLogger("onward")


class ProviderFault(Exception):
    """The provider raised, or did not answer with a response; the cause is chained."""


@attrs.define(eq=False)
class Question(Ask[ContinuationResolved]):
    """May this go on? Fails with `ProviderFault`."""

    request: ContinuationRequired
    provider: Continuation


@attrs.define(eq=False)
class Arbiter:
    """Owns the deadlines of the run's questions and the calls of its provider."""

    core: RunCore

    async def run(self, mailbox: Mailbox[Question]) -> None:
        """Open each question and go on receiving."""
        async with trio.open_nursery() as nursery:
            async for question in mailbox:
                self._open(question, nursery)

    def _open(self, question: Question, nursery: trio.Nursery) -> None:
        core = self.core
        request = question.request
        seconds = request.expires_in_seconds
        deadline = None if seconds is None else trio.current_time() + seconds
        watch = trio.CancelScope()
        core.requests.open(request, deadline, partial(self._closed, question, watch))
        if request.request not in core.log.grammar.open_requests:  # a restored question has been asked already
            core.reach(request.limit)
            core.log.emit(request)
            core.state.open_request = request.request
        question.reply.on_drop(partial(self._end, request))
        if core.state.stop_requested is not None:
            self._end(request)
        else:
            nursery.start_soon(self._watch, question, deadline, watch, name=request.request)

    def _end(self, request: ContinuationRequired) -> None:
        self.core.requests.end(request.request, self.core.requests_end_as)

    def _closed(self, question: Question, watch: trio.CancelScope, resolution: ContinuationResolved) -> None:
        self.core.log.emit(resolution)
        question.reply.set(resolution)
        watch.cancel("resolved")

    async def _watch(self, question: Question, deadline: float | None, watch: trio.CancelScope) -> None:
        """Run the deadline and the provider side by side: one that ignores its cancel cannot outlive its time.

        What the provider says or raises once the request is closed changes nothing.
        """
        try:
            with watch:
                async with trio.open_nursery() as nursery:
                    if deadline is not None:
                        nursery.start_soon(self._expire, question.request, deadline)
                    if isinstance(question.provider, Remote):
                        await trio.sleep_forever()
                    await self._ask(question, question.provider)
        except* (Exception, SystemExit):  # noqa: BLE001  raised while it was being cancelled: the request is closed
            self._log_late_failure()

    async def _ask(self, question: Question, provider: ContinuationFunction) -> None:
        requests = self.core.requests
        request = question.request
        try:
            resolution = await _decision_of(provider, request)
        except FOREIGN as error:
            failure = as_failure(error)
            if failure is None:
                raise
            if requests.resolution(request.request) is None:
                fault = ProviderFault("the continuation provider failed")
                fault.__cause__ = failure
                question.reply.fail(fault)
                requests.end(request.request, "failed")
            else:
                self._log_late_failure()
        else:
            requests.close(resolution)

    def _log_late_failure(self) -> None:
        logger.warning("a continuation provider of agent %s failed after its request was closed", self.core.spec.name)

    async def _expire(self, request: ContinuationRequired, deadline: float) -> None:
        await trio.sleep_until(deadline)
        self.core.requests.expire(request.request)


async def _decision_of(provider: ContinuationFunction, request: ContinuationRequired) -> ContinuationResolved:
    response = provider(request)
    if inspect.isawaitable(response):
        response = await response
    if not isinstance(response, ContinuationResponse):
        raise InvalidDecision(
            f"a continuation provider must return a ContinuationResponse; it returned {type(response).__name__}"
        )
    return resolution_of(request, response, by="provider")
