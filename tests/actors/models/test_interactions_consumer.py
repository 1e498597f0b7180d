"""`Interactions.stream()`: what whoever iterates it can rely on, to the end, before it, and when it is cancelled."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from protocol.errors import ContinuationInterrupted, ModelError, ModelReplyError
from tests.actors.models._line import ASK, Line, after, line_to, spoken, sse, whole
from tests.actors.models._wire import Pause, answer, raw
from tests.protocol.decode.speech import completed, created, delta, start, stop, update

CHECKED = [created(), start(), delta("Chunk 1 "), update("ck1"), delta("Chunk 2 "), update("ck2")]
REST = [created("i2"), start(), delta("Chunk 3"), stop(), completed(id="i2")]


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


async def test_a_stream_that_nobody_iterates_to_its_end(line: Line) -> None:
    """The next request goes out when its first event is asked for, and not before."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(*spoken("i2", "B")))
    async with line.client.stream(**ASK) as stream:
        async for given in stream:
            if given.get("event_type") == "interaction.completed":  # type: ignore[union-attr]
                break
        await wait_all_tasks_blocked()
        asked = line.count
        final = await stream.final()

    assert 1 == asked
    assert "AB" == final["output_text"]


async def test_final_after_the_block(line: Line) -> None:
    """Of a stream that had come to its end it is there; of another one it is not, but its progress is."""
    line.answers(sse(*spoken("i1", "A")), sse(*spoken("i1", "A")))
    async with line.client.stream(**ASK) as stream:
        await line.heard.listen(stream)
    async with line.client.stream(**ASK) as left:
        await anext(left)

    assert "A" == (await stream.final())["output_text"]
    assert (("i1",), ({},), None) == (stream.continuation_ids, stream.usage_by_hop, stream.usage_total)
    with pytest.raises(trio.ClosedResourceError):
        await left.final()
    assert ["i1"] == (left.progress().interaction() or {})["continuation_ids"]


async def test_an_error_of_the_consumer_comes_out_as_it_is(line: Line) -> None:
    """In no group, and the connection is closed."""
    line.answers(sse(created(), end="hang"))
    with pytest.raises(KeyError, match="mine"):
        async with line.client.stream(**ASK) as stream:
            await anext(stream)
            raise KeyError("mine")

    assert 0 == line.client.statistics().calls


async def test_an_error_is_raised_as_often_as_it_is_asked_for(line: Line) -> None:
    """By iterating and by `final()`."""
    line.answers(answer(400, "no"))
    async with line.client.stream(**ASK) as stream:
        for _ in range(2):
            with pytest.raises(ModelError, match="400"):
                await anext(stream)
            with pytest.raises(ModelError, match="400"):
                await stream.final()


@pytest.mark.parametrize("place", ["head", "body", "reconnect", "retry"])
async def test_cancelled_anywhere_it_leaves_what_it_has(line: Line, place: str, autojump_clock: MockClock) -> None:
    """The cancel passes through, the connection is closed, and the progress can be resumed."""
    line.answers(sse(*CHECKED, end="cut"))
    match place:
        case "head":
            line.answers(after(99, sse(*REST)))
        case "body":
            line.answers(sse(created("i2"), Pause(99)))
        case "reconnect":
            line.answers(*[sse(end="cut")] * 9)
        case _:
            line.answers(answer(503, headers=["retry-after: 50"]))
    with trio.move_on_after(0.3 if place == "reconnect" else 5) as scope:
        async with line.client.stream(**ASK) as stream:
            await line.heard.listen(stream)
    progress = stream.progress()

    assert scope.cancelled_caught
    assert "Chunk 1 Chunk 2 " == (progress.interaction() or {})["output_text"]
    assert {"continuation_token": "ck2", "previous_interaction_id": "i1"} == progress.resume_kwargs()
    assert 0 == line.client.statistics().calls


async def test_streams_do_not_touch_each_other(line: Line) -> None:
    """Two at a time, event by event."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(*spoken("i2", "B", token="t2")))
    line.answers(sse(*spoken("i3", "C")), sse(*spoken("i4", "D")))
    async with line.client.stream(**ASK) as one, line.client.stream(**ASK) as two:
        for _ in range(10):
            await anext(one)
            await anext(two)
        texts = {(await one.final())["output_text"], (await two.final())["output_text"]}

    assert texts in ({"AC", "BD"}, {"AD", "BC"})


async def test_replay_takes_back_and_goes_on(line: Line, autojump_clock: MockClock) -> None:
    """A drop after output is told by a `Rollback`; who obeys it has everything once."""
    line.answers(sse(created(), start(), delta("A"), update("ck1"), delta("lost"), end="cut"), sse(*spoken("i2", "B")))
    final = await line.hear(delivery="replay")

    assert (1, "AB", "AB") == (line.heard.rollbacks, line.heard.text, final["output_text"])


async def test_output_after_a_checkpoint_is_fatal_by_default(line: Line) -> None:
    """All of it is in the error; `resume_kwargs()` go on from the checkpoint."""
    line.answers(sse(created(), start(), delta("A"), update("ck1"), delta("B"), end="cut"), whole("i2", "B", "C"))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()
    resumed = await line.client.create(model="gemini-x", **caught.value.resume_kwargs())

    assert ("AB", "BC") == ((caught.value.interaction or {})["output_text"], resumed["output_text"])
    assert "input" not in line.bodies[1]


async def test_a_consumers_time_can_be_left_out(line: Line, autojump_clock: MockClock) -> None:
    """Then only what the server takes is counted, and a slow consumer does not make it time out."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(*spoken("i2", "B")))
    async with line.client.stream(**ASK, timeout_seconds=10, count_consumer_time=False) as stream:
        async for _ in stream:
            await trio.sleep(100)
        final = await stream.final()

    assert "AB" == final["output_text"]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"event_type": "error"}, "it did not say what"),
        ({"error": {"message": "too hot"}}, "too hot"),
        ('event: error\ndata: {"message": "too hot"}\n\n', "too hot"),
        ('data: [{"error": {"message": "too hot"}}]\n\n', "too hot"),
    ],
)
async def test_an_error_is_an_error_however_it_is_told(line: Line, sent: Any, words: str) -> None:
    """Without words, in another format, or under the name of its event alone."""
    line.answers(sse(created(), sent))
    with pytest.raises(ModelError, match=f"reported an error in its reply: {words}"):
        await line.hear()

    assert "error" == line.heard.events[-1]["event_type"]


async def test_an_event_that_is_too_long_is_an_error(line: Line) -> None:
    """The stream is not to be trusted."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: "
    line.answers(raw(head, b"x" * (17 * 1024 * 1024)))
    with pytest.raises(ModelReplyError, match="longer than"):
        await line.hear()


@pytest.mark.parametrize("step", [Pause(99), [b": still here\n\n", Pause(2)]])
async def test_a_stream_that_stays_open_after_its_end(line: Line, step: Any, autojump_clock: MockClock) -> None:
    """It is followed for a moment; silence and comments do not hold up what is whole."""
    trail = step * 50 if isinstance(step, list) else [step]
    line.answers(sse(*spoken("i1", "A"), *trail, end="hang"))

    assert "A" == (await line.hear())["output_text"]
    assert trio.current_time() < 8
