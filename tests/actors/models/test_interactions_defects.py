"""What the provider's own client gets wrong, and this one does not. D1 to D16 are named in docs/decisions/0012."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from protocol.decode import Policy
from protocol.errors import ContinuationInterrupted, ModelError, ModelReplyError, ModelServerError, ModelTimeout
from tests.actors.models._line import ASK, Line, after, line_to, spoken, sse, whole
from tests.actors.models._wire import Pause, answer, raw, stream
from tests.protocol.decode.speech import completed, created, delta, said, start, update, usage


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


@pytest.mark.parametrize("end", ["done", "close"])
async def test_d1_a_stream_without_an_end_is_no_success(line: Line, end: str) -> None:
    """Whether it says `[DONE]` or just stops."""
    line.answers(sse(created(), start(), delta("A"), end=end))
    with pytest.raises(ModelReplyError, match="ended in the middle of the reply"):
        await line.hear()


async def test_d2_ends_that_repeat_are_no_success(line: Line, autojump_clock: MockClock) -> None:
    """They are an interruption with a reason of their own."""
    line.answers(sse(created(), update("ck"), end="close"), *[sse(end="close")] * 4)
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert ("truncated", 5) == (caught.value.reason, line.count)


async def test_d3_tokens_in_a_circle_end(line: Line) -> None:
    """The second time round there is no third."""
    tokens = ["a", "b", "a"]
    line.answers(*[sse(*spoken(f"i{n}", "x", token=token)) for n, token in enumerate(tokens)])
    line.answers(*[whole(f"i{n}", "x", token=token) for n, token in enumerate(tokens)])

    assert "xxx" == (await line.hear())["output_text"]
    assert "xxx" == (await line.client.create(**ASK))["output_text"]


async def test_d3_tokens_without_end_end(nursery: trio.Nursery) -> None:
    """After 32 continuations, or what the policy says, and with all there is."""
    line = line_to(nursery)
    line.answers(*[whole(f"i{n}", "x", token=f"t{n}") for n in range(33)])
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.client.create(**ASK)
    short = line_to(nursery, policy=Policy(max_output_tokens=3))
    short.answers(*[whole(f"i{n}", "x", token=f"t{n}", usage=usage(1, 2)) for n in range(2)])
    with pytest.raises(ContinuationInterrupted) as spent:
        await short.client.create(**ASK)

    assert ("hop_limit", 33, "x" * 33) == (
        caught.value.reason,
        line.count,
        (caught.value.interaction or {})["output_text"],
    )
    assert ("token_limit", 2) == (spent.value.reason, short.count)


@pytest.mark.parametrize("place", ["sleep", "drip", "comments", "head"])
async def test_d4_the_time_of_a_call_is_all_its_time(line: Line, place: str, autojump_clock: MockClock) -> None:
    """Waits between tries, bodies that drip, comments that keep a stream alive: nothing is outside."""
    drip = [step for _ in range(99) for step in (b" ", Pause(0.4))]
    match place:
        case "sleep":
            line.answers(*[answer(503)] * 9)
        case "drip":
            line.answers(raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{", *drip))
        case "comments":
            line.answers(stream(*[step for _ in range(99) for step in (b": \n\n", Pause(0.4))]))
        case _:
            line.answers(after(99, whole("i1")))
    with pytest.raises((ModelTimeout, ModelServerError)):
        await line.client.create(**ASK, timeout_seconds=3)

    assert trio.current_time() <= 3.01


async def test_d5_a_connection_that_fails_is_tried_again(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """In the first request as often as one that is refused for now."""
    line = line_to(nursery, retries=2)
    line.network.refuse = True
    with pytest.raises(ModelError, match="3 attempts"):
        await line.client.create(**ASK)
    nursery.start_soon(_mend_soon, line)
    line.answers(whole("i1", "A"))

    assert "A" == (await line.client.create(**ASK))["output_text"]


async def _mend_soon(line: Line) -> None:
    await trio.sleep(0.3)
    line.network.refuse = False


async def test_d6_a_hop_without_steps_loses_nothing(line: Line) -> None:
    """What the others brought is there, and so are the ids."""
    line.answers(whole("i1", "A", token="t1"), answer(200, {"id": "i2", "status": "completed"}))
    merged = await line.client.create(**ASK)

    assert (said("A"), ["i1", "i2"]) == (merged["steps"], merged["continuation_ids"])


async def test_d7_what_is_laid_over_the_body_counts(line: Line) -> None:
    """Decisions are made on the body as it is sent."""
    line.answers(whole("i1", "A", token="t1"), whole("i2", "B"), whole("i3", token="t3"))
    await line.client.create(**ASK, extra_body={"store": False})
    await line.client.create(**ASK, extra_body={"background": True})

    assert {**ASK, "store": False, "continuation_token": "t1"} == line.bodies[1]
    assert 3 == line.count


async def test_d8_json_in_place_of_a_stream_is_read(line: Line) -> None:
    """As the whole interaction that it is; a stream in place of JSON likewise."""
    line.answers(
        sse(*spoken("i1", "A", token="t1")), whole("i2", "B"), sse(*spoken("i3", "C", token="t3")), whole("i4", "D")
    )
    final = await line.hear()
    merged = await line.client.create(**ASK)

    assert ("AB", "CD") == (final["output_text"], merged["output_text"])
    assert "B" == line.heard.events[-1]["interaction"]["steps"][0]["content"][0]["text"]


@pytest.mark.parametrize(
    "body", ["[]", "3", '{"some": "thing"}', "{", '{"error": {"code": 503, "message": "later"}}', "<html>", ""]
)
async def test_d8_json_that_is_no_interaction_is_an_error(nursery: trio.Nursery, body: str) -> None:
    """For whole replies and for streams, in later hops with what there was."""
    line = line_to(nursery, retries=0)
    line.answers(answer(200, body), sse(*spoken("i1", "A", token="t1")), answer(200, body))
    with pytest.raises((ModelReplyError, ModelServerError)):
        await line.client.create(**ASK)
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert "A" == (caught.value.interaction or {})["output_text"]


@pytest.mark.parametrize("data", ["{oops", '"text"', "[1]", "null", "3"])
async def test_d9_an_event_that_is_no_object_is_an_error(line: Line, data: str) -> None:
    """It is not handed over, and not tried again."""
    line.answers(sse(created(), update("ck"), f"data: {data}\n\n", completed()))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert [created(), update("ck")] == line.heard.events
    assert ("protocol", 1) == (caught.value.reason, line.count)
    assert "an event is no JSON object" in str(caught.value.__cause__)


async def test_d10_a_decode_that_waits_its_turn_is_resumed(line: Line, autojump_clock: MockClock) -> None:
    """`queued` is no end."""
    line.answers(sse(created(), update("ck", "queued"), end="close"), sse(*spoken("i2", "A")))

    assert "A" == (await line.hear())["output_text"]


async def test_d13_there_is_a_wait_between_reconnects(line: Line, autojump_clock: MockClock) -> None:
    """It grows, and is spread."""
    line.client._client.policy = _certain(line)
    line.answers(sse(created(), update("ck"), end="cut"), *[sse(end="cut")] * 3, sse(*spoken("i2", "A")))
    await line.hear()

    assert 0.2 + 0.4 + 0.8 + 1.6 == pytest.approx(trio.current_time())


def _certain(line: Line) -> Any:
    import attrs

    return attrs.evolve(line.client._client.policy, draw=lambda: 1.0)


@pytest.mark.parametrize("asked", [3, 50])
async def test_d13_the_servers_wait_ends_within_the_call(line: Line, asked: int, autojump_clock: MockClock) -> None:
    """One that does not is not begun: it could only be for nothing."""
    line.answers(whole("i1", "A", token="t1"), answer(429, headers=[f"retry-after: {asked}"]), whole("i2", "B"))
    if asked == 3:
        await line.client.create(**ASK, timeout_seconds=10)
    else:
        with pytest.raises(ContinuationInterrupted, match="pause of 50 s"):
            await line.client.create(**ASK, timeout_seconds=10)

    assert (3.0 if asked == 3 else 0.0) == pytest.approx(trio.current_time())


async def test_d14_a_stream_has_a_result(line: Line) -> None:
    """What `create()` would have returned, the ids, and the usage in all and by hop."""
    hops = [("i1", "A ", "t1", usage(10, 2, level=1)), ("i2", "B", None, usage(20, 3, level=2))]
    line.answers(*[sse(*spoken(id, text, token=token, usage=used)) for id, text, token, used in hops])
    line.answers(*[whole(id, text, token=token, usage=used) for id, text, token, used in hops])
    async with line.client.stream(**ASK) as stream:
        final = await stream.final()

    assert await line.client.create(**ASK) == final
    assert ("i1", "i2") == stream.continuation_ids
    assert {**usage(30, 5), "initial_input_tokens": 10} == stream.usage_total
    assert (usage(10, 2, level=1), usage(20, 3, level=2)) == stream.usage_by_hop


async def test_d16_numbers_that_nobody_knows_are_not_added(line: Line) -> None:
    """They stand in their hop."""
    line.answers(whole("i1", "A", token="t1", usage={"queue_position": 3}), whole("i2", usage={"queue_position": 4}))

    assert "queue_position" not in (await line.client.create(**ASK))["usage"]
