"""`Interactions.stream()`: the assertions on streams that the provider's own client ships with.

A number in brackets is that of the assertion in docs/decisions/0012.
"""

from __future__ import annotations

import warnings
from itertools import starmap
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.models.gemini import _interactions
from protocol.errors import ContinuationInterrupted, ModelError, ModelRateLimited, ModelTimeout
from tests.actors.models._line import ASK, Heard, Line, line_to, spoken, sse
from tests.actors.models._wire import Pause, answer, event
from tests.protocol.decode.speech import completed, created, delta, start, stop, update, usage

CHECKED = [created(), start(), delta("Chunk 1 "), update("ck1"), delta("Chunk 2 "), update("ck2")]
REST = [created("i2"), start(), delta("Chunk 3"), stop(), completed(id="i2")]


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


@pytest.fixture
def not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the beginning of a process."""
    monkeypatch.setattr(_interactions, "_warned", [])


@pytest.mark.parametrize("hops", [2, 3])
async def test_the_events_of_all_hops_are_handed_over(line: Line, hops: int) -> None:
    """[1, 3] Verbatim and in order; each hop presents the token of the one before, and no input."""
    spoke = [
        spoken(f"i{n}", f"{n} ", token=f"t{n}" if n < hops else None, usage=usage(10, n)) for n in range(1, hops + 1)
    ]
    line.answers(*starmap(sse, spoke))
    ask: dict[str, Any] = {**ASK}
    final = await line.hear(**ask)

    assert [event for events in spoke for event in events] == line.heard.events
    assert [{**ASK, "stream": True}] + [
        {"model": "gemini-x", "stream": True, "continuation_token": f"t{n}", "previous_interaction_id": f"i{n}"}
        for n in range(1, hops)
    ] == line.bodies
    assert {"model": "gemini-x", "input": "Tell me."} == ask
    assert [f"i{n}" for n in range(1, hops + 1)] == final["continuation_ids"]


async def test_leaving_in_the_second_hop_closes_it(line: Line) -> None:
    """[2] Its connection ends with the block."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(created("i2"), start(), delta("B"), end="hang"))
    async with line.client.stream(**ASK) as stream:
        async for given in stream:
            if given == delta("B"):
                break
    await wait_all_tasks_blocked()

    assert 1 == len(line.network.server.gone)
    assert 0 == line.client.statistics().calls


@pytest.mark.parametrize("last", [completed("requires_action", "t9"), completed("requires_continuation")])
async def test_it_stops_where_there_is_nothing_to_go_on_with(line: Line, last: dict[str, Any]) -> None:
    """[13] At a call for the caller's own tools, whatever token is with it, and without a token."""
    line.answers(sse(created(), start(), delta("A"), last))

    assert last["interaction"]["status"] == (await line.hear())["status"]
    assert 1 == line.count


async def test_the_end_voids_a_checkpoint(line: Line) -> None:
    """[14] A token that `interaction.completed` does not name is not used."""
    line.answers(sse(created(), start(), delta("A"), update("ck"), completed("requires_continuation")))
    await line.hear()

    assert 1 == line.count


@pytest.mark.parametrize("end", ["cut", "close", "silent"])
async def test_a_dead_connection_is_resumed_at_the_last_checkpoint(
    line: Line, end: str, autojump_clock: MockClock
) -> None:
    """[15] Broken, silent or just ended: the last token is presented, nothing is handed over twice."""
    broken = sse(*CHECKED, Pause(99), end="hang") if end == "silent" else sse(*CHECKED, end=end)
    line.answers(broken, sse(*REST))
    final = await line.hear()

    assert CHECKED + REST == line.heard.events
    assert (2, "ck2", "i1") == (
        line.count,
        line.bodies[1]["continuation_token"],
        line.bodies[1]["previous_interaction_id"],
    )
    assert ("Chunk 1 Chunk 2 Chunk 3", ["i1", "i2"]) == (final["output_text"], final["continuation_ids"])


async def test_a_drop_before_any_token_is_plain(line: Line) -> None:
    """[15] There is nothing to resume; what had come stays readable."""
    line.answers(sse(created(), start(), delta("Early"), end="cut"))
    async with line.client.stream(**ASK) as stream:
        with pytest.raises(ModelError) as caught:
            await line.heard.listen(stream)

    assert not isinstance(caught.value, ContinuationInterrupted)
    assert "Early" == (stream.progress().interaction() or {})["output_text"]
    assert 1 == line.count


async def test_switched_off_a_drop_is_plain(line: Line) -> None:
    """[15] Whatever tokens have come."""
    line.answers(sse(*CHECKED, end="cut"))
    with pytest.raises(ModelError) as caught:
        await line.hear(automatic_continuation=False)

    assert not isinstance(caught.value, ContinuationInterrupted)
    assert 1 == line.count


async def test_drops_without_progress_are_bounded(line: Line, autojump_clock: MockClock) -> None:
    """[15] The hop and three reconnects with its token; then the interruption names it."""
    line.answers(sse(*CHECKED, end="cut"), *[sse(created("i2"), end="cut")] * 4)
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    error = caught.value

    assert ["ck2"] * 4 == [body["continuation_token"] for body in line.bodies[1:]]
    assert ("transport", "ck2", "i1") == (error.reason, error.token, error.interaction_id)
    assert isinstance(error.__cause__, ModelError)
    assert "Chunk 1 Chunk 2 " == (error.interaction or {})["output_text"]


async def test_an_error_event_is_handed_over_and_raised(line: Line) -> None:
    """[15, otherwise] It does not pass for an end, and it is not tried again."""
    fault = {"event_type": "error", "error": {"code": "resource_exhausted", "message": "quota"}}
    line.answers(sse(*CHECKED, fault))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert [*CHECKED, fault] == line.heard.events
    assert ("server_error", "ck2", 1) == (caught.value.reason, caught.value.token, line.count)
    assert isinstance(caught.value.__cause__, ModelRateLimited)


async def test_a_drop_before_a_hops_first_checkpoint_presents_the_hops_token(
    line: Line, autojump_clock: MockClock
) -> None:
    """[16] And its owner, though the hop has told its own id."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(created("i2"), end="cut"), sse(*spoken("i3", "B")))
    final = await line.hear()

    assert [("t1", "i1")] * 2 == [
        (body["continuation_token"], body["previous_interaction_id"]) for body in line.bodies[1:]
    ]
    assert ("AB", ["i1", "i2", "i3"]) == (final["output_text"], final["continuation_ids"])


async def test_a_drop_presents_the_callers_token(line: Line, autojump_clock: MockClock) -> None:
    """[17] With the body as it was."""
    line.answers(sse(created(), end="cut"), sse(*spoken("i2", "A")))
    await line.hear(continuation_token="mine")

    assert line.bodies[0] == line.bodies[1] == {**ASK, "continuation_token": "mine", "stream": True}


async def test_each_checkpoint_makes_the_reconnects_start_anew(line: Line, autojump_clock: MockClock) -> None:
    """[18] Five drops, six requests."""
    for number in range(5):
        line.answers(sse(created(f"i{number}"), start(), delta("x"), update(f"ck{number}"), end="cut"))
    line.answers(sse(*spoken("i9", "y")))
    final = await line.hear()

    assert (6, "xxxxxy") == (line.count, final["output_text"])


async def test_with_the_callers_token_alone_it_stays_plain(line: Line, autojump_clock: MockClock) -> None:
    """[19] Four requests, and the error of the last."""
    line.answers(*[sse(created(), end="cut")] * 4)
    with pytest.raises(ModelError) as caught:
        await line.hear(continuation_token="mine")

    assert not isinstance(caught.value, ContinuationInterrupted)
    assert 4 == line.count


async def test_a_refusal_is_not_a_drop(line: Line) -> None:
    """[20] It interrupts at once, where it is not worth repeating."""
    line.answers(sse(*CHECKED, end="cut"), answer(403, "no"))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert ("http_status", 2) == (caught.value.reason, line.count)


async def test_a_server_that_is_gone_is_tried_three_times(line: Line, autojump_clock: MockClock) -> None:
    """[20] More than its connection did not come to stand."""
    line.answers(sse(*CHECKED, end="cut"))
    line.network.on_close = lambda: setattr(line.network, "refuse", True)
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear()

    assert "transport" == caught.value.reason
    assert "nothing was sent" in str(caught.value.__cause__)


async def test_an_unchanged_token_ends_it(line: Line) -> None:
    """[21] As with whole replies."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(*spoken("i2", "B", token="t1")))

    assert ("requires_continuation", "t1") == (
        (final := await line.hear())["status"],
        final["continuation_token"],
    )
    assert 2 == line.count


async def test_an_output_cap_is_sent_as_it_is(line: Line) -> None:
    """[26] With each hop."""
    config = {"max_output_tokens": 9}
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(*spoken("i2", "B")))
    await line.hear(generation_config=config)

    assert [config, config] == [body["generation_config"] for body in line.bodies]


@pytest.mark.usefixtures("not_warned")
async def test_it_warns_once_when_the_stream_is_over(line: Line) -> None:
    """[29] Not before, and not who continues by hand."""
    line.answers(*[sse(*spoken("i1", "A", token="t1"))] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await line.hear(automatic_continuation=False, continuation_token="mine")
    with pytest.warns(UserWarning, match="automatic_continuation=False") as caught:
        await line.hear(automatic_continuation=False)
        await line.hear(automatic_continuation=False)

    assert 1 == len(caught)


async def test_what_came_in_time_is_handed_over(line: Line, autojump_clock: MockClock) -> None:
    """[35] All of it; where the time ends between two hops, the interruption follows, with the token."""
    line.answers(sse(*spoken("i1", "A", "B", token="t1")), sse(*spoken("i2", "C")))
    heard = Heard()
    async with line.client.stream(**ASK, timeout_seconds=10) as stream:
        with pytest.raises(ContinuationInterrupted) as caught:
            async for given in stream:
                heard.take(given)
                if given == spoken("i1", token="t1")[-1]:
                    await trio.sleep(11)

    assert spoken("i1", "A", "B", token="t1") == heard.events
    assert ("deadline", "t1") == (caught.value.reason, caught.value.token)
    assert isinstance(caught.value.__cause__, ModelTimeout)


async def test_what_was_received_is_handed_over(line: Line, autojump_clock: MockClock) -> None:
    """A consumer that is slower than the call may take gets all that had come with the last bytes."""
    together = "".join(event(sent) for sent in CHECKED)
    line.answers(sse(together, Pause(1), delta("more")))
    heard = Heard()
    async with line.client.stream(**ASK, timeout_seconds=10) as stream:
        with pytest.raises(ContinuationInterrupted) as caught:
            async for given in stream:
                heard.take(given)
                await trio.sleep(4)

    assert CHECKED == heard.events
    assert "deadline" == caught.value.reason


async def test_the_time_ends_in_the_middle_of_a_hop(line: Line, autojump_clock: MockClock) -> None:
    """[36, otherwise] At the second; what had come is handed over, with the token before and both ids."""
    line.answers(sse(*spoken("i1", "A", token="t1")), sse(created("i2"), start(), Pause(20), delta("late")))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear(timeout_seconds=10)

    error = caught.value

    assert [*spoken("i1", "A", token="t1"), created("i2"), start()] == line.heard.events
    assert ("deadline", "t1", "i1", ("i1", "i2")) == (
        error.reason,
        error.token,
        error.interaction_id,
        error.continuation_ids,
    )
    assert 10.0 == pytest.approx(trio.current_time(), abs=0.1)


async def test_without_storage_nobody_owns_the_token(line: Line) -> None:
    """[37] In streams, too."""
    line.answers(sse(*spoken("i1", "A", token="t1")), answer(400))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.hear(store=False)

    assert (None, "t1", ("i1",)) == (
        caught.value.interaction_id,
        caught.value.token,
        caught.value.continuation_ids,
    )
    assert {**ASK, "store": False, "stream": True, "continuation_token": "t1"} == line.bodies[1]
