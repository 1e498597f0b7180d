"""Hooks that fail: the run ends with `HookError`, or at the limit that left the hook (H4, B2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from actors import Run, RunResult, StepState
from protocol.errors import HookError, LimitReachedError, ModelError, RunFailedError, SpecError
from protocol.events import LimitReached, RunFailed, StepStarted
from protocol.limits import Counters, LimitState
from protocol.usage import UNKNOWN_USAGE
from tests.actors.agent._failing_hooks import HOOKS, spec_with
from tests.support.play import event_of, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import agent

SECRET = RuntimeError("k3y")


def raises(error: BaseException) -> Callable[[Any], Any]:
    def act(_seen: Any) -> Any:
        raise error

    return act


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("error", [SECRET, SystemExit(3)], ids=["error", "exit"])
def test_a_hook_that_raises_ends_the_run(name: str, error: BaseException) -> None:
    """H4: `HookError` with the cause and what the run had come to; clients are told no more than its type."""
    _, asked = HOOKS[name]
    played = play(spec_with(name, raises(error)))
    partial = played.result
    told = played.only(RunFailed)

    assert type(played.error) is HookError
    assert isinstance(played.error, RunFailedError)
    assert error in {played.error.__cause__, getattr(played.error.__cause__, "__cause__", None)}
    assert ("failure", "hook_error", False) == (partial.stopped_by, partial.finish_reason, partial.answered)
    assert partial.text.startswith("Let me look.")
    assert ("ok", asked) == (partial.steps[0].results[0].status, len(played.asked))
    assert ("hook_error", True) == (told.error.code, f"the hook {name}" in told.error.message)
    assert "k3y" not in repr(played.events)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_is_too_slow_ends_the_run(name: str) -> None:
    """H4: an async hook is bounded by `callback_timeout_seconds`."""

    async def sleep(_seen: Any) -> Any:
        await trio.sleep_forever()

    played = play(spec_with(name, sleep, callback_timeout_seconds=7.0))

    assert (HookError, trio.TooSlowError) == (
        type(played.error),
        type(played.error.__cause__ if played.error else None),
    )
    assert 7.0 == played.seconds


def test_a_call_that_a_hook_kept_from_leaving_is_not_counted() -> None:
    """H4, B1: a call is reserved before the hooks, and given back if its request never left."""
    played = play(spec_with("prepare_step", raises(SECRET)))

    assert Counters(1, 1, 1, 1, 1) == played.result.counters
    assert [0, 1] == [event.step for event in played.all(StepStarted)]


def limit_reached() -> LimitReachedError:
    limit = LimitState("cost", 1.0, 1.0)
    partial = RunResult(
        run="run_x",
        text="",
        answered=False,
        finish_reason="budget",
        stopped_by="cost",
        stop_reason=None,
        limit=limit,
        finalized=None,
        steps=(),
        messages=(),
        usage=UNKNOWN_USAGE,
        context_tokens=None,
        cost=None,
        counters=Counters(0, 0, 0, 0, 0),
        undelivered=(),
        elapsed_seconds=0.0,
    )
    with pytest.raises(LimitReachedError) as caught:
        partial.raise_for_limit()
    return caught.value


@pytest.mark.parametrize("name", HOOKS)
def test_a_limit_that_leaves_a_hook_is_the_limit(name: str) -> None:
    """B2, B6: the run ends at it as at its own: a result, no error, told once."""
    played = play(spec_with(name, raises(limit_reached())))
    limit = LimitState("cost", 1.0, 1.0)

    assert played.error is None
    assert ("cost", "budget", limit, None, False) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.limit,
        played.result.finalized,
        played.result.answered,
    )
    assert [limit] == [event.limit for event in played.all(LimitReached)]


def test_a_hook_that_fails_before_the_final_call_fails_the_run() -> None:
    """F8: a final call whose hook fails is not tried again, and no fallback text covers it up."""
    spec = agent(
        calls_while_on(),
        Bench().tool(),
        prepare_step=lambda state: raises(SECRET)(state) if state.final is not None else None,
        max_tool_iterations=1,
        tool_iteration_limit_finalization="",
        finalization_retry=True,
    )
    played = play(spec)

    assert type(played.error) is HookError
    assert (1, None, False) == (len(played.asked), played.result.finalized, played.result.answered)
    assert "tool_iterations" == (played.result.limit.name if played.result.limit else None)


def test_a_cancel_during_a_hook_is_a_cancel() -> None:
    """H4: `Cancelled` passes through a hook and is no failure of it."""

    async def hook(_state: StepState) -> None:
        await trio.sleep_forever()

    async def act(run: Run) -> None:
        await event_of(run, StepStarted)
        run.cancel("enough")

    played = play(agent(["yes"], prepare_step=hook), act=act)

    assert ("cancel", "enough", 0) == (played.result.stopped_by, played.result.stop_reason, len(played.asked))


def test_an_error_of_the_model_is_none_of_a_hook() -> None:
    """H4: only what a hook does is a `HookError`."""
    played = play(agent([ModelError("down")], prepare_step=lambda _: None))

    assert type(played.error) is RunFailedError


def test_spec_errors_in_a_hook_are_told_with_their_text() -> None:
    """H4: an error of ours that a hook provokes says what would be right; it holds no text of a user's."""
    played = play(spec_with("prepare_step", raises(SpecError("prune_messages(keep_last=) must be >= 0"))))

    assert "prune_messages(keep_last=) must be >= 0" == played.only(RunFailed).error.message
