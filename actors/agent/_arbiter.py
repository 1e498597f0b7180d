"""The arbiter actor: puts the gate's question to whoever may decide, and brings the one answer back.

The question is stored, not waited for: the table of requests is the agent's, decisions close a request there in one
synchronous step, whoever makes them, and closing it wakes the run. The actor adds what needs tasks: the deadline and
the call of the provider.
"""

from __future__ import annotations

import inspect
import math
from functools import partial

import attrs
import trio

from protocol.errors import InvalidDecision
from protocol.events import ContinuationRequired, ContinuationResolved
from protocol.gate import ContinuationResponse, resolution_of

from ..kit import Ask, Mailbox
from ._core import RunCore
from ._policies import Continuation, Remote

__all__ = ("Arbiter", "ProviderFault", "Question")


class ProviderFault(Exception):
    """The provider raised, or did not answer with a response; the cause is chained."""


@attrs.frozen(eq=False)
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
                request = question.request
                watch = trio.CancelScope()
                if request.expires_in_seconds is not None:
                    watch.deadline = trio.current_time() + request.expires_in_seconds
                deadline = None if math.isinf(watch.deadline) else watch.deadline
                self.core.requests.open(request, deadline, partial(self._closed, question, watch))
                self.core.reach(request.limit)
                self.core.log.emit(request)
                question.reply.on_drop(partial(self.core.requests.end, request.request, self.core.requests_end_as))
                if self.core.state.stop_requested is not None:
                    self.core.requests.end(request.request, self.core.requests_end_as)
                nursery.start_soon(self._watch, question, watch, name=f"{mailbox.name}/{request.request}")

    def _closed(self, question: Question, watch: trio.CancelScope, resolution: ContinuationResolved) -> None:
        self.core.log.emit(resolution)
        question.reply.set(resolution)
        watch.cancel("resolved")

    async def _watch(self, question: Question, watch: trio.CancelScope) -> None:
        """Wait for the provider or the deadline, whichever comes first; a decision from elsewhere ends both."""
        requests = self.core.requests
        request = question.request
        with watch:
            if isinstance(question.provider, Remote):
                await trio.sleep_forever()
            try:
                response = question.provider(request)
                if inspect.isawaitable(response):
                    response = await response
                resolution = _resolution(request, response)
            except Exception as error:  # ruff: ignore[blind-except]  a provider is foreign code
                if watch.cancel_called:
                    requests.expire(request.request)
                    return
                fault = ProviderFault(f"{type(error).__name__}: {error}")
                fault.__cause__ = error
                question.reply.fail(fault)
                requests.end(request.request, "failed")
            else:
                requests.close(resolution)
        if watch.cancelled_caught:
            requests.expire(request.request)


def _resolution(request: ContinuationRequired, response: object) -> ContinuationResolved:
    if not isinstance(response, ContinuationResponse):
        raise InvalidDecision(
            f"a continuation provider must return a ContinuationResponse; it returned {type(response).__name__}"
        )
    return resolution_of(request, response, by="provider")
