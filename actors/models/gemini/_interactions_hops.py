"""Drives a decode over HTTP: sends what `LoopState` wants sent, and hands it what comes. Models and clients share it.

Within one request, what failed before anything of a reply came is repeated by the rules of all models (`Attempts`).
Where a token could resume the decode, a connection that fails is left to `LoopState`, which counts it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import trio

from protocol.decode import Done, HopRecord, LoopState, NextHop, Raise, kind_of
from protocol.errors import ModelError, ModelRefused, ModelReplyError, ModelTimeout
from protocol.model import ModelEvent

from ..wire import (
    Attempts,
    EventStreamDecoder,
    EventTooLargeError,
    HttpClient,
    HttpReply,
    ServerFault,
    ServerSentEvent,
    encode_body,
    fault_in,
    mapping,
    parse,
    read_head,
    refusal,
)
from ._interactions_clock import CallClock

__all__ = ("HopObserver", "run_hops")

_TRAILING_SECONDS = 5.0
"""How long a reply is followed that has come to its end, but not to the end of its stream."""


class HopObserver:
    """What is told of a decode while it goes on. Override what you want to know."""

    waits: bool = False
    """Whether the asynchronous methods may wait for somebody: no deadline of the server runs meanwhile."""

    async def on_event(self, event: Mapping[str, Any]) -> None:
        """An event has come: of a stream as it is, of a whole reply the one that says the same."""

    async def on_undone(self, to: int) -> None:
        """Of all events that stood up to now, only the first `to` stand: the rest will come again."""

    async def on_next_hop(self) -> None:
        """A request has come to its end, and another one is to follow when this returns."""

    def on_sent(self) -> None:
        """A request has been handed to a connection."""

    def on_retrying(self, event: ModelEvent) -> None:
        """A request failed before anything of a reply came, and is sent again: a `Retrying`."""

    def on_hop_began(self, hop: int) -> None:
        """A request of the decode begins; the first is 0."""

    def on_hop_ended(self, record: HopRecord) -> None:
        """It has ended, or broken off."""


async def run_hops(
    client: HttpClient,
    state: LoopState,
    observer: HopObserver,
    *,
    timeout_seconds: float | None = None,
    counts_consumer: bool = True,
) -> None:
    """Go on until the decode is done: `state.merged()` or `state.records` is then the result.

    `timeout_seconds` is for all of it, by default the connection's; `counts_consumer` says whether the time that
    `observer` waits is part of it. Raises `ModelError`: as it came, if nothing had been gained, else
    `ContinuationInterrupted`. What had come up to an error or a cancel stays in `state`.
    """
    seconds = client.policy.call_seconds if timeout_seconds is None else timeout_seconds
    clock = CallClock(seconds, counts_consumer=counts_consumer)
    driver = _Driver(client, state, observer, clock)
    with clock.scope:
        await driver.run()
    if clock.scope.cancelled_caught:
        driver.cut()


class _Driver:
    def __init__(self, client: HttpClient, state: LoopState, observer: HopObserver, clock: CallClock) -> None:
        self._client = client
        self._state = state
        self._observer = observer
        self._clock = clock
        self._in_hop = False

    async def run(self) -> None:
        while True:
            self._observer.on_hop_began(self._state.hop.number)
            self._in_hop = True
            error: ModelError | None = None
            try:
                await self._exchange()
            except ModelError as failed:
                error = failed
            match self._end(error):
                case Done():
                    return
                case Raise(failure, cause):
                    raise failure from cause
                case NextHop() as following:
                    await self._prepare(following)

    def cut(self) -> None:
        """The time of the call is over."""
        error = ModelTimeout(
            f"the call to {self._client.endpoint.address} took longer than {self._clock.seconds:g} s"
            " (timeout_seconds, call_timeout_seconds)",
            retryable=True,
        )
        decision = self._end(error, deadline=True)
        if isinstance(decision, Raise):
            raise decision.error from decision.cause

    def _end(self, error: ModelError | None, *, deadline: bool = False) -> NextHop | Done | Raise:
        hop = self._state.hop
        decision = self._state.end_hop(error, reason="deadline" if deadline else None)
        if self._in_hop:
            self._in_hop = False
            self._observer.on_hop_ended(hop.record())
        return decision

    async def _prepare(self, following: NextHop) -> None:
        if following.rollback_to is not None:
            with self._for_consumer(None):
                await self._observer.on_undone(following.rollback_to)
        if following.reconnects is None:
            with self._for_consumer(None):
                await self._observer.on_next_hop()
        else:
            draw = self._client.policy.draw()
            await trio.sleep(self._state.policy.reconnect_seconds(following.reconnects, draw))

    async def _exchange(self) -> None:
        """One request, and its repeats as long as nothing of a reply has come."""
        hop = self._state.hop
        body = encode_body(self._state.request_body())
        attempts = Attempts(self._client.policy, self._observer.on_retrying, deadline=self._clock.scope.deadline)
        while True:
            try:
                async with self._client.post(body, self._observer.on_sent) as reply:
                    hop.opened = True
                    await self._read(reply)
            except ModelError as error:
                left_to_state = hop.start_token is not None and not isinstance(error, ModelRefused)
                if hop.touched or left_to_state:
                    raise
                await attempts.again(error)
                hop.opened = False
            else:
                return

    async def _read(self, reply: HttpReply) -> None:
        kind, chunk = await read_head(reply)
        if kind == "json":
            await self._take_whole(await reply.read(chunk), reply)
            return
        decoder = EventStreamDecoder()
        enough = math.inf
        while chunk and trio.current_time() < enough:
            try:
                events = decoder.feed(chunk)
            except EventTooLargeError as error:
                raise ModelReplyError(f"{reply.endpoint.address}: {error}") from error
            for event in events:
                await self._take(event, reply)
                if self._state.hop.done:
                    return
            if self._state.hop.ended and enough == math.inf:
                reply.expect_end(within_seconds=_TRAILING_SECONDS)
                enough = trio.current_time() + _TRAILING_SECONDS
            chunk = await reply.receive()

    async def _take(self, sent: ServerSentEvent, reply: HttpReply) -> None:
        data = sent.data.strip()
        if not data:
            return
        if data == "[DONE]":
            self._state.hop.done = True
            return
        event = _parse(data)
        fault = fault_in({"error": event} if sent.event == "error" and fault_in(event) is None else event)
        if event is None or not (fault or isinstance(event, dict)):
            raise _not_understood(reply, "an event is no JSON object", data)
        event = mapping(event) or {"error": event}
        if not event.get("event_type"):
            name = "error" if fault else sent.event
            event = {**event, "event_type": name}
        self._state.observe(event)
        await self._tell(event, reply)
        if kind_of(event) == "error" and self._state.hop.fault:
            raise refusal(reply.endpoint, fault or ServerFault("it did not say what"))

    async def _take_whole(self, body: bytes, reply: HttpReply) -> None:
        whole = _parse(body)
        fault = fault_in(whole)
        interaction = mapping(whole)
        if not any(name in interaction for name in ("id", "status", "steps", "outputs")):
            if fault is not None:
                raise refusal(reply.endpoint, fault)
            raise _not_understood(reply, "the reply is no interaction", body.decode("utf-8", "replace"))
        await self._tell(self._state.observe_whole(interaction), reply)

    async def _tell(self, event: Mapping[str, Any], reply: HttpReply) -> None:
        if self._observer.waits:
            with self._for_consumer(reply):
                await self._observer.on_event(event)
        else:
            await self._observer.on_event(event)

    def _for_consumer(self, reply: HttpReply | None) -> ExitStack:
        clocks = ExitStack()
        clocks.enter_context(self._clock.paused())
        if reply is not None:
            clocks.enter_context(reply.paused())
        return clocks


def _parse(data: str | bytes) -> Any:
    try:
        return parse(data)
    except ValueError:
        return None


def _not_understood(reply: HttpReply, what: str, text: str) -> ModelReplyError:
    return ModelReplyError(f"{reply.endpoint.address}: {what}: {reply.endpoint.quote(text, max_chars=200)}")
