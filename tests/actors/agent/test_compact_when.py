"""When `compact` is asked: what a request is estimated to take, what is learnt of that, and what is not tried again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from actors import (
    AgentSpec,
    CompactState,
    StepOverrides,
    trim,
)
from actors.models.scripted import Scripted, call, reply
from protocol.estimate import message_size
from protocol.events import RunFailed, StepStarted
from protocol.model import ModelRequest, Profile
from protocol.turns import Message, ToolMessage
from protocol.usage import Usage
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent

from .test_compact import OLD, Look, Shorter


@pytest.mark.parametrize(
    ("options", "profile", "asked"),
    [
        ({"compact_at_tokens": 400}, {}, True),
        ({"compact_at_tokens": 401}, {}, False),
        ({}, {}, False),
        ({}, {"context_window": 501}, True),
        ({}, {"context_window": 502}, False),
        ({"max_tokens": 100}, {"context_window": 500}, True),
        ({"max_tokens": 102}, {"context_window": 503}, False),
        ({}, {"context_window": 503, "default_max_tokens": 103}, True),
        ({"max_tokens": 10_000}, {"context_window": 801}, True),
        ({"max_tokens": 10_000}, {"context_window": 802}, False),
        ({"compact_at_tokens": 401}, {"context_window": 10}, False),
        ({"compact_at_tokens": 6}, {"count_tokens": lambda request: 7}, True),
        ({"compact_at_tokens": 7}, {"count_tokens": lambda request: 7}, False),
    ],
)
def test_when_it_is_asked(options: dict[str, Any], profile: dict[str, Any], asked: bool) -> None:
    """Above what is set, or four fifths of a known window, less where the reply needs more; at least half of it."""
    shorter = Shorter()
    model = Scripted(["done"], profile=Profile(reports_sending=True, **profile))
    play(agent(model, compact=shorter, **options), messages=OLD)

    assert asked is bool(shorter.asked)


def test_it_is_not_asked_for_nothing_again_and_again() -> None:
    """What was of no use is tried again when the context has grown by an eighth of the threshold."""
    asked: list[int] = []

    def useless(state: CompactState) -> Sequence[Message]:
        asked.append(state.estimated_tokens)
        return state.messages

    def go_on(request: Any) -> Any:
        rounds = sum(isinstance(message, ToolMessage) for message in request.messages)
        return reply("x" * 76, call("t", {}, id=f"c{rounds}")) if rounds < 12 else "done"

    played = play(agent(go_on, Bench().tool(), compact=useless, compact_at_tokens=400), messages=OLD)

    assert 13 == len(played.all(StepStarted))
    assert 2 <= len(asked) <= 6
    assert all(later - earlier > 50 for earlier, later in zip(asked, asked[1:], strict=False))


def test_a_fixed_part_that_is_too_big_is_no_reason_to_try_for_ever() -> None:
    """The system prompt alone is above the threshold: it helps once, and is not asked again in the agent's next runs."""
    shorter = Shorter()

    async def scene(stage: Stage) -> None:
        at_work = await stage.spawn(
            agent(lambda _: "done", compact=shorter, compact_at_tokens=100, system="s" * 4000), messages=OLD
        )
        for _ in range(5):
            await stage.play(at_work)

    perform(scene)

    assert 1 == len(shorter.asked)


def test_all_that_is_sent_is_estimated() -> None:
    """The system prompt that a hook has put in place, and the word at the end with which a turn is asked for again."""
    look = Look()

    def prepare(state: Any) -> StepOverrides | None:
        return StepOverrides(system="s" * 400) if state.step_number == 0 else None

    spec = agent(["", "done"], compact=look, compact_at_tokens=1, prepare_step=prepare)
    played = play(spec, messages=OLD)
    before, after = [state.estimated_tokens for state in look.asked]

    assert (401, 401) == (before, look.asked[1].count_tokens(look.asked[1].messages))
    assert played.asked[1].tail is not None
    assert 501 + len(played.asked[1].tail) // 4 <= after <= 502 + len(played.asked[1].tail) // 4


def test_what_was_of_no_use_may_be_of_use_later() -> None:
    """Once the request is below the threshold again, the next time it is above is a first time."""
    asked: list[int] = []

    def useless(state: CompactState) -> Sequence[Message]:
        asked.append(state.estimated_tokens)
        return state.messages

    def half_of_the_estimate(request: ModelRequest) -> Any:
        return reply("done", usage=Usage(sum(map(message_size, request.messages)) // 8, 0, 0, 1, 0, True))

    async def scene(stage: Stage) -> None:
        spec = agent(half_of_the_estimate, compact=useless, compact_at_tokens=300)
        at_work = await stage.spawn(spec, messages=OLD)
        await stage.play(at_work)
        await stage.play(at_work, "x" * 400)
        await stage.play(at_work, "x" * 400)

    perform(scene)

    assert 401 == asked[0]
    assert 2 == len(asked)
    assert 300 < asked[1] < 401 + 300 // 8


def test_what_the_server_counts_is_learnt() -> None:
    """Where it counts twice as many tokens as the estimate, the hook is asked at half of it; for the agent's runs to come."""
    shorter = Shorter()
    used = Usage(802, 0, 0, 1, 0, True)

    async def scene(stage: Stage) -> None:
        spec = agent(lambda _: reply("done", usage=used), compact=shorter, compact_at_tokens=600)
        at_work = await stage.spawn(spec, messages=OLD)
        await stage.play(at_work)
        assert [] == shorter.asked
        await stage.play(at_work)

    perform(scene)
    (state,) = shorter.asked

    assert 2 * 402 <= state.estimated_tokens <= 2 * 404
    assert state.estimated_tokens == state.count_tokens(state.messages)


def test_a_counter_that_breaks_fails_the_run_like_its_model() -> None:
    """It is the model's own, and says so; nothing crashes."""

    def count(_request: Any) -> int:
        raise ValueError("secret")

    model = Scripted(["never"], profile=Profile(count_tokens=count, reports_sending=True))
    played = play(AgentSpec(model=model, compact=trim(), compact_at_tokens=10))

    assert ("model_error", "the model raised ValueError") == (
        played.only(RunFailed).error.code,
        played.only(RunFailed).error.message,
    )
    assert 0 == played.result.counters.llm_calls
