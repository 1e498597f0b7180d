"""The ready policies: what each says, and the arguments it refuses (G11)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from actors import always, never, remote, up_to, within
from actors.models.scripted import ScriptFunction, call, reply
from protocol.events import ContinuationRequired, ContinuationResolved, LimitReached
from protocol.limits import LimitState
from protocol.model import ModelRequest
from protocol.turns import ToolResult, Turn
from protocol.usage import Usage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent


def run_with(policy: Any, *, window: int = 2, seconds: float = 0, usage: Usage | None = None, **options: Any) -> Played:
    tool = Bench().tool(seconds=seconds)
    script: Any = with_usage(usage) if usage is not None else calls_while_on()
    return play(agent(script, tool, max_tool_iterations=window, continuation=policy, **options))


def with_usage(usage: Usage) -> ScriptFunction:
    numbers = iter(range(1, 1000))

    def follow(request: ModelRequest) -> Turn:
        if not request.tools_on:
            return reply("final", usage=usage)
        return reply("", call("t", {}, id=f"c{next(numbers)}"), usage=usage)

    return follow


def outcomes(played: Played) -> list[tuple[str, float | None]]:
    return [(event.outcome, event.granted) for event in played.all(ContinuationResolved)]


def test_always_approves_until_something_else_ends_the_run() -> None:
    """G11: `always()` never says no: another limit, or the model, ends the run."""
    played = run_with(always(), max_llm_calls=9)

    assert [("approved", 2)] * 3 == outcomes(played)
    assert LimitState("llm_calls", 9, 9) == played.result.limit
    assert ("done", None) == (
        (
            ended := play(agent(calls_until(7), Bench().tool(), max_tool_iterations=2, continuation=always())).result
        ).text,
        ended.limit,
    )


def test_never_recovers_at_the_limit() -> None:
    """G11: `never()` declines at once: the model reads that its calls were not run, and answers."""
    played = run_with(never())

    assert [("declined", None)] == outcomes(played)
    assert ("final", True, "max_iterations", 2) == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.counters.tool_iterations,
    )
    assert "System notification: Maximum iteration limit reached. Continuation declined." == played.asked[-1].texts[1]


def test_never_with_its_own_texts() -> None:
    """G11: `never(message, tool_message=)` puts its texts where a decline's stand."""
    played = run_with(never("use the cache", tool_message="closed"))

    assert ToolResult("c3", "t", "discarded", "closed") == played.result.steps[2].results[0]
    assert "System notification: use the cache" == played.asked[-1].texts[1]


@pytest.mark.parametrize(
    ("n", "window", "granted", "rounds"),
    [
        (1, 2, [None], 2),
        (2, 2, [None], 2),
        (3, 2, [1, None], 3),
        (4, 2, [2, None], 4),
        (5, 2, [2, 1, None], 5),
        (10, 4, [4, 2, None], 10),
    ],
)
def test_up_to_makes_never_more_rounds(n: int, window: int, granted: list[float | None], rounds: int) -> None:
    """G11: `up_to(n)` grants min(window, n - total) and declines from `n` rounds on."""
    played = run_with(up_to(n), window=window)

    assert granted == [event.granted for event in played.all(ContinuationResolved)]
    assert rounds == played.result.counters.tool_iterations
    assert "declined" == played.all(ContinuationResolved)[-1].outcome
    assert len(granted) == len(played.all(LimitReached)) == len(played.all(ContinuationRequired))


def test_within_seconds() -> None:
    """G11: approves while less time has gone by; rounds of 10 s in windows of one, 25 s allowed: asked at 10, 20, 30."""
    played = run_with(within(seconds=25), window=1, seconds=10)

    assert [("approved", 1), ("approved", 1), ("declined", None)] == outcomes(played)
    assert [10.0, 20.0, 30.0] == [event.elapsed_seconds for event in played.all(ContinuationRequired)]


def test_within_seconds_at_the_very_second_is_used_up() -> None:
    """G11: exactly as much as is given is not less."""
    assert [("approved", 1), ("declined", None)] == outcomes(run_with(within(seconds=20), window=1, seconds=10))


def test_within_tokens() -> None:
    """G11: approves while fewer tokens have been used; each call uses 100, asked after 200, 300, ..."""
    usage = Usage(60, 0, 0, 40, 0, complete=True)

    assert [("approved", 1), ("approved", 1), ("declined", None)] == outcomes(
        run_with(within(tokens=350), window=1, usage=usage)
    )


def test_within_tokens_at_the_very_number_is_used_up() -> None:
    """G11: exactly as many tokens as are given are not fewer."""
    usage = Usage(60, 0, 0, 40, 0, complete=True)

    assert [("declined", None)] == outcomes(run_with(within(tokens=200), window=1, usage=usage))
    assert ("approved", 1) == outcomes(run_with(within(tokens=201), window=1, usage=usage))[0]


def test_within_counts_what_is_unknown_as_used_up() -> None:
    """G11: a call without usage, or a cost without prices, is no reason to go on."""
    part = Usage(1, 0, 0, None, 0)

    assert [("declined", None)] == outcomes(run_with(within(tokens=10**9)))
    assert [("declined", None)] == outcomes(run_with(within(tokens=10**9), usage=part))
    assert [("declined", None)] == outcomes(run_with(within(cost=10**9)))


def test_within_needs_all_that_is_given() -> None:
    """G11: of several bounds each must hold."""
    usage = Usage(60, 0, 0, 40, 0, complete=True)

    assert [("declined", None)] == outcomes(run_with(within(tokens=100, seconds=100), usage=usage))
    assert [("declined", None)] == outcomes(run_with(within(tokens=10**6, seconds=1), usage=usage, seconds=1))
    assert (
        "approved"
        == outcomes(run_with(within(tokens=10**6, seconds=100), usage=usage, seconds=1, max_llm_calls=6))[0][0]
    )


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: up_to(0), r"up_to\(n\): n must be an integer >= 1; it is 0"),
        (lambda: up_to(True), r"up_to\(n\): n must be an integer >= 1; it is True"),
        (lambda: up_to(2.0), r"up_to\(n\): n must be an integer >= 1; it is 2.0"),  # type: ignore[arg-type]
        (lambda: within(), r"within\(\) needs at least one of cost=, tokens= and seconds="),
        (lambda: within(tokens="many"), "tokens"),  # type: ignore[arg-type]
        (lambda: within(tokens=-1), "tokens"),
        (lambda: within(seconds=-0.5), "seconds"),
        (lambda: within(cost=math.nan), "cost"),
        (lambda: remote(timeout_seconds=0), r"timeout_seconds.* above 0"),
        (lambda: remote(timeout_seconds=-1), r"timeout_seconds.* above 0"),
        (lambda: remote(timeout_seconds=math.nan), r"timeout_seconds.* above 0"),
        (lambda: remote(timeout_seconds="5"), r"timeout_seconds.* above 0"),  # type: ignore[arg-type]
        (lambda: remote(on_timeout="ask"), "must be 'decline' or 'approve'; it is 'ask'"),  # type: ignore[arg-type]
        (lambda: never(5), "message"),  # type: ignore[arg-type]
        (lambda: never(tool_message=b"x"), "tool_message"),  # type: ignore[arg-type]
    ],
)
def test_arguments_that_cannot_be_right(make: Callable[[], object], told: str) -> None:
    """G11: a policy refuses what it cannot mean where it is made, and says what would be right."""
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("seconds", [1, 0.5, 3.25, math.inf, None])
def test_remote_takes_any_time_above_zero_and_none(seconds: float | None) -> None:
    """G8: a number of seconds, or `None` for as long as the run lives."""
    assert seconds == remote(timeout_seconds=seconds).timeout_seconds
