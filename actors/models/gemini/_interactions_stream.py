"""The events of a decode, for somebody who iterates them at their own pace.

A task drives the decode and hands over one event at a time. It waits for whoever iterates, and begins the next
request only when its first event is asked for: who stops early pays for nothing more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio

from protocol.decode import LoopState
from protocol.errors import ModelError

from ..wire import HttpClient
from ._interactions_hops import HopObserver, run_hops
from ._interactions_progress import DecodeProgress

__all__ = ("InteractionEvent", "InteractionStream", "Rollback", "open_stream")


@attrs.frozen
class Rollback:
    """With `delivery="replay"`: the connection broke, and what came after the last checkpoint will come again.

    Of the provider's events up to now only the first `to` stand: `del events[rollback.to:]`.
    """

    to: int


InteractionEvent: TypeAlias = Mapping[str, Any] | Rollback
"""An event of the provider's, verbatim, or the notice that some are void."""


class InteractionStream:
    """Iterate it for the events of a decode, then ask for what they come to. Made by `Interactions.stream()`.

    The events are those of all hops, in order, `interaction.created` and `interaction.completed` of each included.
    An error event is handed over like any other; then its error is raised, as whatever else ends the decode.
    """

    def __init__(self, state: LoopState, receive: trio.MemoryReceiveChannel[InteractionEvent]) -> None:
        self._state = state
        self._receive = receive
        self._demand = trio.Event()
        self._error: ModelError | None = None
        self._over = False

    def __aiter__(self) -> InteractionStream:
        return self

    async def __anext__(self) -> InteractionEvent:
        self._demand.set()
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            if self._error is not None:
                raise self._error from self._error.__cause__
            raise StopAsyncIteration from None

    async def final(self) -> dict[str, Any]:
        """The merged interaction, when the decode is done; events that were not iterated are passed over.

        Raises what iterating raises, and `trio.ClosedResourceError` if the block was left before the end.
        """
        if not self._over:
            async for _ in self:
                pass
        if self._error is not None:
            raise self._error from self._error.__cause__
        await trio.lowlevel.checkpoint()
        return self._state.merged() or {}

    def progress(self) -> DecodeProgress:
        """What has come up to now; it stays readable after an error or a cancel."""
        progress = DecodeProgress()
        progress.attach(self._state)
        return progress

    @property
    def continuation_ids(self) -> tuple[str, ...]:
        """The interactions up to now, in order."""
        return self._state.continuation_ids

    @property
    def usage_total(self) -> dict[str, Any] | None:
        """The usage of all requests up to now; `None` if none has told any."""
        return self._state.usage_total

    @property
    def usage_by_hop(self) -> tuple[dict[str, Any], ...]:
        """What each request has told of its usage, unknown numbers included."""
        return self._state.usage_by_hop

    async def wait_wanted(self) -> None:
        """Return when somebody asks for the next event; for the task that drives the decode."""
        if not self._receive.statistics().tasks_waiting_receive:
            self._demand = trio.Event()
            await self._demand.wait()

    def end(self, error: ModelError | None = None) -> None:
        """Nothing more comes; for the task that drives the decode."""
        self._over = True
        self._error = error


class _Hand(HopObserver):
    """Hands events over to whoever iterates."""

    waits = True

    def __init__(self, stream: InteractionStream, send: trio.MemorySendChannel[InteractionEvent]) -> None:
        self._stream = stream
        self._send = send

    async def on_event(self, event: Mapping[str, Any]) -> None:
        await self._send.send(event)

    async def on_undone(self, to: int) -> None:
        await self._send.send(Rollback(to))

    async def on_next_hop(self) -> None:
        await self._stream.wait_wanted()


@asynccontextmanager
async def open_stream(
    client: HttpClient,
    state: LoopState,
    on_done: Callable[[], None],
    *,
    timeout_seconds: float | None,
    counts_consumer: bool,
) -> AsyncGenerator[InteractionStream]:
    """A stream whose decode goes on inside the block, and ends with it. `on_done` is called when it is done."""
    send, receive = trio.open_memory_channel[InteractionEvent](0)
    stream = InteractionStream(state, receive)
    hand = _Hand(stream, send)

    async def drive() -> None:
        with send:
            try:
                await run_hops(client, state, hand, timeout_seconds=timeout_seconds, counts_consumer=counts_consumer)
            except ModelError as error:
                stream.end(error)
            else:
                on_done()
                stream.end()

    failure: Exception | None = None
    with receive:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, name="interactions/decode")
            try:
                yield stream
            except Exception as error:  # noqa: BLE001  the caller's own: a nursery would wrap it
                failure = error
            nursery.cancel_scope.cancel("the stream was left")
    if failure is not None:
        raise failure
