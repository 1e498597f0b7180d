"""What the driver of a decode tells of it, for models and clients alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from actors.models.gemini._interactions_hops import HopObserver, run_hops
from protocol.decode import HopRecord, LoopState
from protocol.errors import ContinuationInterrupted, ModelError
from protocol.model import ModelEvent, Retrying
from tests.actors.models._line import ASK, Line, line_to, spoken, sse, whole
from tests.actors.models._wire import answer
from tests.protocol.decode.speech import created, delta, start, update


@attrs.define(eq=False)
class Notes(HopObserver):
    """All that was told, in short."""

    told: list[Any] = attrs.Factory(list[Any])

    async def on_event(self, event: Mapping[str, Any]) -> None:
        self.told.append(event["event_type"].partition(".")[2])

    async def on_undone(self, to: int) -> None:
        self.told.append(("undone", to))

    async def on_next_hop(self) -> None:
        self.told.append("next")

    def on_sent(self) -> None:
        self.told.append("sent")

    def on_retrying(self, event: ModelEvent) -> None:
        assert isinstance(event, Retrying)
        self.told.append(("retry", event.attempt))

    def on_hop_began(self, hop: int) -> None:
        self.told.append(("began", hop))

    def on_hop_ended(self, record: HopRecord) -> None:
        self.told.append(("ended", record.number, record.id, record.status))


async def play(line: Line, *, timeout_seconds: float | None = None, delivery: Any = "strict") -> list[Any]:
    notes = Notes()
    try:
        await run_hops(line.client._client, LoopState(ASK, delivery=delivery), notes, timeout_seconds=timeout_seconds)
    except ModelError as error:
        notes.told.append(error.reason if isinstance(error, ContinuationInterrupted) else type(error).__name__)
    return notes.told


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


async def test_everything_is_told_in_its_order(line: Line, autojump_clock: MockClock) -> None:
    """Retries within a hop, a drop, a rollback, the next hop."""
    line.answers(
        answer(503),
        sse(created(), start(), delta("A"), update("ck"), delta("lost"), end="cut"),
        whole("i2", "B", token="t2"),
        sse(*spoken("i3", "C")),
    )

    assert [
        *(("began", 0), "sent", ("retry", 1), "sent", "created", "start", "delta", "status_update", "delta"),
        *(("ended", 0, "i1", "lost"), ("undone", 4)),
        *(("began", 1), "sent", "completed", ("ended", 1, "i2", "requires_continuation"), "next"),
        *(("began", 2), "sent", "created", "start", "delta", "stop", "completed", ("ended", 2, "i3", "completed")),
    ] == await play(line, delivery="replay")


async def test_a_hop_that_brings_nothing_ends_too(line: Line, autojump_clock: MockClock) -> None:
    """It has no interaction."""
    line.answers(*[answer(500)] * 5)
    told = await play(line)

    assert [("ended", 0, None, "lost"), "ModelServerError"] == told[-2:]


async def test_a_hop_ends_once(line: Line, autojump_clock: MockClock) -> None:
    """Also where the time of the call ends in the wait behind it."""
    line.answers(sse(created(), update("ck"), end="cut"), *[sse(end="cut")] * 3)
    line.client._client.policy = attrs.evolve(line.client._client.policy, draw=lambda: 1.0)
    told = await play(line, timeout_seconds=0.5)

    assert [0, 1] == [entry[1] for entry in told if entry[0] == "began"]
    assert [0, 1] == [entry[1] for entry in told if entry[0] == "ended"]
    assert "deadline" == told[-1]


async def test_a_refusal_after_an_error_in_a_reply_is_a_refusal(line: Line, autojump_clock: MockClock) -> None:
    """What the try before it met does not matter."""
    line.answers(whole("i1", "A", token="t1"), answer(200, {"error": {"code": 503}}), answer(400))

    assert "http_status" == (await play(line))[-1]
