"""A run that is cancelled, out of time or failed while `around_tool` stands around its calls (H7, B5, T6)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import FailRun, PendingTool, Run, deny, remote
from actors.models.scripted import call, reply
from protocol.errors import ApprovalProviderError, RunCancelledError, RunFailedError
from protocol.events import ApprovalRequired, ToolFinished, ToolStarted
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.play import event_of, play
from tests.support.scripts import Bench
from tests.support.specs import agent


def calls(*ids: str, then: str = "never") -> list[Any]:
    return [reply("", *[call("t", {}, id=id) for id in ids]), then]


async def catches_errors(_call: PendingTool, proceed: Any) -> Any:
    try:
        return await proceed()
    except Exception:  # noqa: BLE001
        return "error"


async def catches_all(_call: PendingTool, proceed: Any) -> Any:
    try:
        return await proceed()
    except BaseException:  # noqa: ASYNC103, BLE001
        return "error"  # noqa: ASYNC104


async def catches_all_and_goes_on(_call: PendingTool, proceed: Any) -> Any:
    try:
        return await proceed()
    except BaseException:  # noqa: ASYNC103, BLE001
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "error"  # noqa: ASYNC104


HOOKS = [catches_errors, catches_all, catches_all_and_goes_on]


@pytest.mark.parametrize("around", HOOKS)
def test_no_hook_can_swallow_a_cancel(around: Any) -> None:
    """TEX-17: whatever the hook catches and returns, the run is cancelled and the call `interrupted`."""

    async def act(run: Run) -> None:
        await event_of(run, ToolStarted)
        await trio.sleep(1)
        run.cancel("enough")

    played = play(agent(calls("a"), Bench().tool(seconds=60), around_tool=around), act=act)

    assert isinstance(played.error, RunCancelledError)
    assert ({"a": "interrupted"}, 1) == (statuses(played), len(played.asked))


@pytest.mark.parametrize("around", HOOKS)
def test_no_hook_can_swallow_the_end_of_the_time(around: Any) -> None:
    """B5, H7: what is running is cut and `timed_out`."""
    played = play(agent(calls("a"), Bench().tool(seconds=60), around_tool=around, wall_clock_seconds=5))

    assert ("wall_clock", {"a": "timed_out"}, 1) == (played.result.stopped_by, statuses(played), len(played.asked))


@pytest.mark.parametrize("around", HOOKS)
def test_no_hook_can_swallow_the_failure_of_a_sibling(around: Any) -> None:
    """T6, H7: `FailRun` cancels the siblings behind their hooks too; nothing runs on."""
    bench = Bench()
    turn = reply("", call("slow", {}, id="a"), call("bad", {}, id="b"))

    async def only_slow(pending: PendingTool, proceed: Any) -> Any:
        return await (around(pending, proceed) if pending.name == "slow" else proceed())

    failing = bench.tool("bad", FailRun(ValueError("boom")), seconds=2)
    played = play(agent([turn], bench.tool("slow", seconds=60), failing, around_tool=only_slow))

    assert isinstance(played.error, RunFailedError)
    assert {"a": "interrupted", "b": "error"} == statuses(played)


def test_a_cancel_while_hooks_wait_for_a_decision() -> None:
    """G10, H7: the hooks end with the run; calls that were not entered are `not_run`."""
    pay, paid = payer()
    left: list[str] = []

    async def around(call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        finally:
            left.append(call.id)

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired)
        run.cancel()

    played = play(agent(pays(1, 2), pay, approval=remote(), around_tool=around), act=act)

    assert (["c1", "c2"], []) == (sorted(left), paid)
    assert {"c1": "not_run", "c2": "not_run"} == statuses(played)


@pytest.mark.parametrize("end", ["stop", "provider fails"])
def test_an_end_at_the_approvals_ends_the_hooks(end: str) -> None:
    """M2, G7, H7: hooks that wait in `proceed` do not outlive a turn whose calls will not run."""
    pay, paid = payer()
    left: list[str] = []

    async def around(call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        finally:
            left.append(call.id)

    async def provider(_request: Any) -> Any:
        await trio.sleep(3)
        raise ValueError("k3y")

    async def act(run: Run) -> None:
        await event_of(run, ApprovalRequired)
        if end == "stop":
            run.stop()

    played = play(agent(pays(1, 2), pay, approval=provider, around_tool=around), act=act)

    assert (["c1", "c2"], []) == (sorted(left), paid)
    assert {"c1": "not_run", "c2": "not_run"} == statuses(played)
    assert isinstance(played.error, ApprovalProviderError) == (end != "stop")


def test_a_cancel_before_the_hooks_have_come_to_proceed() -> None:
    """H7: nothing is entered any more."""
    bench = Bench()

    async def around(_call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(30)
        return await proceed()

    async def act(run: Run) -> None:
        await trio.sleep(3)
        run.cancel()

    played = play(agent(calls("a", "b"), bench.tool(), around_tool=around), act=act)

    assert ({"a": "not_run", "b": "not_run"}, {}) == (statuses(played), bench.runs)


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_hook_may_fail_the_run_before_any_body_is_entered(seconds: float) -> None:
    """T6, H7: the failure is the run's, its cause is kept, and no call of the turn runs."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(seconds)
        if call.id == "b":
            await trio.sleep(seconds)
            raise FailRun(ValueError("boom"))
        return await proceed()

    played = play(agent(calls("a", "b", "c"), bench.tool(), around_tool=around))

    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, ValueError)
    assert ({"a": "not_run", "b": "error", "c": "not_run"}, {}) == (statuses(played), bench.runs)
    assert "tool_failed_run" == played.result.finish_reason


def test_a_hook_may_fail_the_run_while_others_wait_for_a_decision() -> None:
    """T6, H7: a hook that has left its `proceed` fails the run; what is approved afterwards does not run."""
    pay, paid = payer()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "c1":
            with trio.move_on_after(3):
                return await proceed()
            raise FailRun(ValueError("boom"))
        return await proceed()

    played = play(agent(pays(1, 2), pay, approval=Approver(seconds=10), around_tool=around))

    assert isinstance(played.error, RunFailedError)
    assert isinstance(played.error.__cause__, ValueError)
    assert ([], {"c1": "error", "c2": "not_run"}) == (paid, statuses(played))


def test_the_hooks_own_work_counts_as_time() -> None:
    """B5: a hook that works before or after the body is no wait for a decision: the wall clock runs, and cuts it."""

    async def before(_call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(30)
        return await proceed()

    async def after(_call: PendingTool, proceed: Any) -> Any:
        value = await proceed()
        await trio.sleep(30)
        return value

    first = play(agent(calls("a"), Bench().tool(seconds=1), around_tool=before, wall_clock_seconds=5))
    second = play(agent(calls("a"), Bench().tool(seconds=1), around_tool=after, wall_clock_seconds=5))

    assert (5.0, {"a": "not_run"}, "wall_clock") == (first.seconds, statuses(first), first.result.stopped_by)
    assert (5.0, {"a": "timed_out"}, "wall_clock") == (second.seconds, statuses(second), second.result.stopped_by)


def test_time_stands_still_for_hooks_that_wait_for_a_decision() -> None:
    """B5, H7: waiting in `proceed` for a person is no work of the hook."""
    pay, paid = payer()

    async def around(_call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(1)
        value = await proceed()
        await trio.sleep(1)
        return value

    spec = agent(pays(7, then="ok"), pay, approval=Approver(seconds=100), around_tool=around, wall_clock_seconds=3)
    played = play(spec)

    assert ([7], "ok", 102.0) == (paid, played.result.text, played.seconds)


def test_a_hook_is_not_counted_while_its_body_is_timed() -> None:
    """T4, H7: the tool's timeout is the body's alone; the hook has its own."""

    async def around(_call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(3)
        value = await proceed()
        await trio.sleep(3)
        return value

    played = play(agent(calls("a", then="ok"), Bench().tool(seconds=3), around_tool=around, tool_timeout_seconds=4))

    assert ({"a": ("ok", "1")}, 9.0) == (results(played), played.seconds)


def test_a_turn_of_refused_calls_leaves_no_hook_behind() -> None:
    """H7: every hook has ended when the exchange is stored."""
    pay, _ = payer()
    inside: set[str] = set()

    async def around(call: PendingTool, proceed: Any) -> Any:
        inside.add(call.id)
        try:
            return await proceed()
        finally:
            await trio.sleep(2)  # noqa: ASYNC102
            inside.discard(call.id)

    seen: list[int] = []

    def look(_step: Any) -> None:
        seen.append(len(inside))

    played = play(agent(pays(1, 2, then="ok"), pay, approval=lambda _r: deny(), around_tool=around, on_step=look))

    assert [0, 0] == seen
    assert ["denied", "denied"] == [event.status for event in played.all(ToolFinished)]
