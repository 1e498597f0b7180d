"""`Interactions.create()`: the assertions on unary calls that the provider's own client ships with.

A number in brackets is that of the assertion in docs/decisions/0012.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from actors.models.gemini import DecodeProgress, _interactions
from protocol.errors import ContinuationInterrupted, ModelServerError
from tests.actors.models._line import ASK, Line, after, line_to, whole
from tests.actors.models._wire import answer
from tests.protocol.decode.speech import said, usage

BACKGROUND_OFF: dict[str, Any] = {"background": True, "automatic_continuation": False}


@pytest.fixture
async def line(nursery: trio.Nursery) -> Line:
    return line_to(nursery)


@pytest.fixture
def not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the beginning of a process."""
    monkeypatch.setattr(_interactions, "_warned", [])


async def test_hops_are_merged(line: Line) -> None:
    """[7] Last id and status, no token, all ids, all steps, summed usage; the caller's objects stay as they are."""
    line.answers(
        whole("i1", "A ", token="t1", usage=usage(10, 20, total_cached_tokens=5)),
        whole("i2", "B", usage={**usage(50, 50), "total_tokens": 105}),
    )
    config = {"temperature": 0.5}
    ask = {**ASK, "generation_config": config}
    before = copy.deepcopy(ask)
    merged = await line.client.create(**ask)

    assert ("i2", "completed", None) == (merged["id"], merged["status"], merged.get("continuation_token"))
    assert ["i1", "i2"] == merged["continuation_ids"]
    assert said("A ", "B") == merged["steps"]
    assert "A B" == merged["output_text"]
    assert (60, 70, 135, 5, 10) == tuple(
        merged["usage"][name]
        for name in (
            *("total_input_tokens", "total_output_tokens", "total_tokens", "total_cached_tokens"),
            "initial_input_tokens",
        )
    )
    assert before == ask
    assert [
        ask,
        {
            "model": "gemini-x",
            "generation_config": config,
            "continuation_token": "t1",
            "previous_interaction_id": "i1",
        },
    ] == line.bodies


async def test_three_hops(line: Line) -> None:
    """[10] Each presents the token of the one before."""
    line.answers(whole("i1", "A", token="t1"), whole("i2", "B", token="t2"), whole("i3", "C"))
    merged = await line.client.create(**ASK)

    assert "ABC" == merged["output_text"]
    assert [("t1", "i1"), ("t2", "i2")] == [
        (body["continuation_token"], body["previous_interaction_id"]) for body in line.bodies[1:]
    ]


@pytest.mark.parametrize("number", [1, 2])
async def test_background_cannot_be_switched_off(line: Line, number: int) -> None:
    """[4] A `ValueError` before anything is sent, for whole replies and for streams."""
    with pytest.raises(ValueError, match="background"):
        if number == 1:
            await line.client.create(**ASK, **BACKGROUND_OFF)
        else:
            line.client.stream(**ASK, **BACKGROUND_OFF)

    assert 0 == line.count


async def test_without_storage_the_input_is_sent_again(line: Line) -> None:
    """[5] No hop names another."""
    line.answers(whole("i1", "A ", token="t1"), whole("i2", "B"))
    merged = await line.client.create(**ASK, store=False)

    assert ("A B", ["i1", "i2"]) == (merged["output_text"], merged["continuation_ids"])
    assert {**ASK, "store": False, "continuation_token": "t1"} == line.bodies[1]


async def test_switched_off_it_is_one_request_and_its_reply(line: Line) -> None:
    """[8] Both as they were written: nothing is added, nothing is taken away."""
    reply: dict[str, Any] = {"id": "i1", "status": "requires_continuation", "continuation_token": "t", "x": [None]}
    line.answers(answer(200, reply))
    got = await line.client.create(**ASK, continuation_token="mine", automatic_continuation=False)

    assert reply == got
    assert [{**ASK, "continuation_token": "mine"}] == line.bodies


async def test_modalities_are_added(line: Line) -> None:
    """[9] Each for itself."""
    line.answers(
        whole("i1", token="t", usage={"output_tokens_by_modality": [{"modality": "text", "tokens": 3}]}),
        whole(
            "i2",
            usage={
                "output_tokens_by_modality": [{"modality": "audio", "tokens": 1}, {"modality": "text", "tokens": 4}]
            },
        ),
    )
    merged = await line.client.create(**ASK)

    assert [{"modality": "text", "tokens": 7}, {"modality": "audio", "tokens": 1}] == merged["usage"][
        "output_tokens_by_modality"
    ]


@pytest.mark.parametrize("token", [None, ""])
async def test_without_a_token_it_stops(line: Line, token: str | None) -> None:
    """[11] The one id is there all the same."""
    line.answers(whole("i1", "A", token=token, status="requires_continuation"))
    merged = await line.client.create(**ASK)

    assert (1, ["i1"], "requires_continuation") == (line.count, merged["continuation_ids"], merged["status"])


async def test_a_callers_token_is_for_the_first_request(line: Line) -> None:
    """[12] The next one presents the new token."""
    line.answers(whole("i1", "A", token="t1"), whole("i2", "B"))
    await line.client.create(model="gemini-x", continuation_token="mine", previous_interaction_id="i0")

    assert [("mine", "i0"), ("t1", "i1")] == [
        (body["continuation_token"], body["previous_interaction_id"]) for body in line.bodies
    ]


async def test_a_hop_that_is_refused_for_now_is_repeated(line: Line, autojump_clock: MockClock) -> None:
    """[22] The same token again; the hop before is not made again."""
    line.answers(whole("i1", "A", token="t1"), answer(503, "later"), whole("i2", "B"))
    merged = await line.client.create(**ASK)

    assert "AB" == merged["output_text"]
    assert line.bodies[1] == line.bodies[2]


async def test_a_later_failure_has_everything(line: Line) -> None:
    """[23] The merged beginning, token, owner, ids, usage, hops; the cause is the error."""
    line.answers(
        whole("i1", "A ", token="t1", usage=usage(1, 2)),
        whole("i2", "B ", token="t2", usage=usage(3, 4)),
        answer(400, {"error": {"code": "invalid_argument", "message": "no"}}),
    )
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.client.create(**ASK)

    error = caught.value

    assert ("http_status", "t2", "i2", ("i1", "i2"), 2) == (
        error.reason,
        error.token,
        error.interaction_id,
        error.continuation_ids,
        error.hops,
    )
    assert ("A B ", "requires_continuation") == (
        (error.interaction or {})["output_text"],
        (error.interaction or {})["status"],
    )
    assert {**usage(4, 6), "initial_input_tokens": 1} == error.usage
    assert "invalid_argument" in str(error.__cause__)


async def test_the_first_failure_is_plain(line: Line, autojump_clock: MockClock) -> None:
    """[23] Nothing was gained."""
    line.answers(*[answer(500)] * 5)
    with pytest.raises(ModelServerError):
        await line.client.create(**ASK)

    assert 5 == line.count


@pytest.mark.parametrize("config", [None, {"temperature": 0.1}, {"max_output_tokens": 7}])
async def test_no_output_cap_is_made_up(line: Line, config: dict[str, Any] | None) -> None:
    """[24, 25] What was given is sent with each hop; what was not given is not there."""
    given: dict[str, Any] = {} if config is None else {"generation_config": config}
    line.answers(whole("i1", "A", token="t1"), whole("i2", "B"))
    await line.client.create(**ASK, **given)

    assert [config, config] == [body.get("generation_config") for body in line.bodies]


@pytest.mark.filterwarnings("ignore:an interaction ended unfinished")
@pytest.mark.parametrize(
    "settings",
    [{"agent": "a"}, {"background": True}, {"automatic_continuation": False}],
    ids=lambda settings: next(iter(settings)),
)
async def test_neither_is_one_where_nothing_is_continued(line: Line, settings: dict[str, Any]) -> None:
    """[26] For an agent, a background run, a call that is not continued: one request, as it was asked."""
    line.answers(whole("i1", "A", token="t1"))
    got = await line.client.create(**{**ASK, **settings})
    expected = {name: value for name, value in {**ASK, **settings}.items() if name != "automatic_continuation"}

    assert [expected] == line.bodies
    assert "continuation_ids" not in got


@pytest.mark.usefixtures("not_warned")
async def test_it_warns_once_where_it_is_switched_off(line: Line) -> None:
    """[27] The second time it is known."""
    line.answers(whole("i1", "A", token="t1"), whole("i2", "A", token="t1"))
    with pytest.warns(UserWarning, match="automatic_continuation=False") as caught:
        await line.client.create(**ASK, automatic_continuation=False)
        await line.client.create(**ASK, automatic_continuation=False)

    assert 1 == len(caught)


@pytest.mark.usefixtures("not_warned")
@pytest.mark.parametrize(
    "settings",
    [
        {"automatic_continuation": False, "continuation_token": "mine"},
        {"background": True},
        {"agent": "a"},
        {"agent": "a", "automatic_continuation": False, "continuation_token": "mine"},
    ],
)
async def test_it_does_not_warn_who_knows(line: Line, settings: dict[str, Any]) -> None:
    """[28, 30] Not who continues by hand, nor for what is never continued here."""
    line.answers(whole("i1", "A", token="t1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await line.client.create(**{**ASK, **settings})


async def test_without_storage_the_error_names_no_owner(line: Line) -> None:
    """[37] The token is all there is, and the input has to be given again."""
    line.answers(whole("i1", "A", token="t1"), answer(400))
    with pytest.raises(ContinuationInterrupted) as caught:
        await line.client.create(**ASK, store=False)

    assert (None, {"continuation_token": "t1"}) == (caught.value.interaction_id, caught.value.resume_kwargs())


async def test_a_cancelled_call_leaves_what_it_has(line: Line, autojump_clock: MockClock) -> None:
    """The cancel passes through; what had come is in the caller's own object, and can be resumed."""
    line.answers(whole("i1", "A ", token="t1", usage=usage(1, 2)), after(99, whole("i9")))
    progress = DecodeProgress()
    with trio.move_on_after(5) as scope:
        await line.client.create(**ASK, progress=progress)

    assert scope.cancelled_caught
    assert "A " == (progress.interaction() or {})["output_text"]
    assert (("i1",), 1, usage(1, 2)) == (progress.continuation_ids, progress.hops, progress.usage_total)
    assert {"continuation_token": "t1", "previous_interaction_id": "i1"} == progress.resume_kwargs()


async def test_progress_where_nothing_is_stored(line: Line) -> None:
    """The token goes without an owner."""
    line.answers(whole("i1", "A", token="t1"), answer(400))
    progress = DecodeProgress()
    with pytest.raises(ContinuationInterrupted):
        await line.client.create(**ASK, store=False, progress=progress)

    assert {"continuation_token": "t1"} == progress.resume_kwargs()


def test_progress_that_shows_nothing() -> None:
    """Before a call there is nothing to show."""
    progress = DecodeProgress()

    assert (None, (), None, (), 0) == (
        progress.interaction(),
        progress.continuation_ids,
        progress.usage_total,
        progress.usage_by_hop,
        progress.hops,
    )
    assert (None, None, {}) == (progress.token, progress.interaction_id, progress.resume_kwargs())
