"""`around_tool`: what the user's function around a call may do, and what it may not (H7)."""

from __future__ import annotations

from typing import Any

import pytest

from actors import PendingTool, StopRun, ToolError
from actors.models.scripted import call, reply
from protocol.events import ToolFinished, ToolStarted
from tests.support.deciders import Approver, payer, pays, results, statuses
from tests.support.ids import shown
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.specs import agent


def calls(*ids: str, name: str = "t", then: str = "ok") -> list[Any]:
    """A script: one turn with these calls of one tool, then an answer."""
    return [reply("", *[call(name, {}, id=id) for id in ids]), then]


async def through(_call: PendingTool, proceed: Any) -> Any:
    return await proceed()


def test_a_hook_that_passes_everything_on_changes_nothing() -> None:
    """H7: the events and the results are those of a run without it."""
    bench = Bench()
    bare = play(agent(calls("a", "b"), bench.tool(value={"n": 1}, seconds=1)))
    hooked = play(agent(calls("a", "b"), bench.tool(value={"n": 1}, seconds=1), around_tool=through))

    assert bare.types == hooked.types
    assert results(bare) == results(hooked) == {"a": ("ok", '{"n":1}'), "b": ("ok", '{"n":1}')}
    assert bare.seconds == hooked.seconds == 1


def test_a_hook_sees_the_call_and_the_runs_context() -> None:
    """H7: id, name, validated arguments and the caller's context; the arguments are a copy."""
    pay, paid = payer()
    seen: list[PendingTool] = []

    async def around(call: PendingTool, proceed: Any) -> Any:
        seen.append(call)
        call.arguments["n"] = 1000  # type: ignore[index]
        return await proceed()

    play(agent(pays(7), pay, approval=Approver(), around_tool=around), context="ctx")

    assert [("c1", "pay", "ctx")] == [(call.id, call.name, call.context) for call in seen]
    assert [7] == paid


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "Not run: declined."), ("not on Sundays", "Not run: declined. not on Sundays")],
    ids=["silent", "with a reason"],
)
def test_not_calling_proceed_denies_the_call(value: Any, text: str) -> None:
    """H7: the body is not entered, the result is `denied` and gives what the hook returned as the reason."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        return value if call.id == "a" else await proceed()

    played = play(agent(calls("a", "b"), bench.tool(), around_tool=around))

    assert {"a": ("denied", text), "b": ("ok", "1")} == results(played)
    assert ({"t": 1}, 1) == (bench.runs, len(played.all(ToolStarted)))


def test_a_hook_may_change_the_arguments() -> None:
    """H7: they are validated like the model's own, and run."""
    pay, paid = payer(False)

    async def around(call: PendingTool, proceed: Any) -> Any:
        return await proceed({"n": call.arguments["n"] * 2})

    played = play(agent(pays(1, 2), pay, around_tool=around))

    assert [2, 4] == sorted(paid)
    assert {"c1": ("ok", "paid 2"), "c2": ("ok", "paid 4")} == results(played)


@pytest.mark.parametrize("arguments", [{"n": "x"}, {}, {"n": 1, "m": 1}, {"n": object()}, 7], ids=shown)
def test_arguments_that_do_not_fit_are_raised_at_the_hook(arguments: Any) -> None:
    """H7: the body is not entered with what the schema refuses; a hook that lets the error pass fails its call."""
    pay, paid = payer(False)

    async def around(_call: PendingTool, proceed: Any) -> Any:
        return await proceed(arguments)

    played = play(agent(pays(1), pay, around_tool=around))

    assert ([], {"c1": "error"}) == (paid, statuses(played))
    assert not played.only(ToolFinished).started


def test_a_hook_may_try_other_arguments_after_bad_ones() -> None:
    """H7: a refused `proceed` has not been the one call."""
    pay, paid = payer(False)

    async def around(_call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed({"n": "x"})
        except Exception:  # noqa: BLE001
            return await proceed({"n": 5})

    played = play(agent(pays(1), pay, around_tool=around))

    assert ([5], {"c1": ("ok", "paid 5")}) == (paid, results(played))


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        ("shorter", "ok", "shorter"),
        (None, "ok", "(no output)"),
        ({"a": 1}, "ok", '{"a":1}'),
        (object, "error", "Tool 't' returned"),
    ],
    ids=repr,
)
def test_a_hook_may_change_the_result(value: Any, status: str, text: str) -> None:
    """H7, T5: what it returns is the result, rendered like a tool's own."""

    async def around(_call: PendingTool, proceed: Any) -> Any:
        assert 1 == await proceed()
        return value

    played = play(agent(calls("a"), Bench().tool(), around_tool=around))
    (found,) = results(played).values()

    assert status == found[0]
    assert found[1].startswith(text)
    assert played.only(ToolFinished).started


def test_a_hook_may_mend_what_the_body_raised() -> None:
    """H7: `proceed` raises what the body raises; who catches it decides what the model reads."""

    async def around(_call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        except ValueError as error:
            return f"mended {error}"

    played = play(agent(calls("a"), Bench().tool(value=ValueError("boom")), around_tool=around))

    assert {"a": ("ok", "mended boom")} == results(played)


@pytest.mark.parametrize("entered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (ToolError("try b"), "try b"),
        (SystemExit(3), "SystemExit: 3"),
        (ExceptionGroup("one", [KeyError("k")]), "KeyError: 'k'"),
    ],
    ids=repr,
)
def test_what_a_hook_raises_counts_as_raised_by_the_tool(error: BaseException, text: str, *, entered: bool) -> None:
    """H7, T4: an error result of this call, before and after the body; the run and the siblings go on."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "b":
            return await proceed()
        if entered:
            await proceed()
        raise error

    played = play(agent(calls("a", "b"), bench.tool(), around_tool=around))

    assert {"a": ("error", text), "b": ("ok", "1")} == results(played)
    assert entered == {event.call: event.started for event in played.all(ToolFinished)}["a"]


@pytest.mark.parametrize("entered", [False, True], ids=["before", "after"])
def test_a_hook_may_stop_the_run(entered: bool) -> None:  # noqa: FBT001
    """T6, H7: `StopRun` ends the run after the exchange; a call that was never entered is no success."""

    async def around(_call: PendingTool, proceed: Any) -> Any:
        if entered:
            await proceed()
        raise StopRun("that will do")

    played = play(agent(calls("a"), Bench().tool(), around_tool=around))

    assert ("tool", "that will do") == (played.result.stopped_by, played.result.text)
    assert {"a": ("ok" if entered else "denied", "that will do")} == results(played)


def test_proceed_is_called_once() -> None:
    """H7: a second call raises and runs nothing again."""
    bench = Bench()
    raised: list[str] = []

    async def around(_call: PendingTool, proceed: Any) -> Any:
        first = await proceed()
        try:
            await proceed()
        except RuntimeError as error:
            raised.append(str(error))
        return first

    played = play(agent(calls("a"), bench.tool(), around_tool=around))

    assert (["proceed() may be called once"], {"t": 1}) == (raised, bench.runs)
    assert {"a": ("ok", "1")} == results(played)


def test_a_hook_that_lets_the_second_proceed_fail_keeps_the_entered_body() -> None:
    """H7, R4: the error is the call's, and says that the body was entered."""

    async def around(_call: PendingTool, proceed: Any) -> Any:
        await proceed()
        return await proceed()

    played = play(agent(calls("a"), Bench().tool(), around_tool=around))

    assert {"a": ("error", "RuntimeError: proceed() may be called once")} == results(played)
    assert played.only(ToolFinished).started


def test_a_proceed_that_outlives_its_hook_runs_nothing() -> None:
    """H7: the hook has ended and the call has its result: a `proceed` that was kept is dead."""
    bench = Bench()
    kept: list[Any] = []

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "a":
            kept.append(proceed)
            return None
        with pytest.raises(RuntimeError):
            await kept[0]()
        return await proceed()

    script = [*calls("a")[:1], *calls("b")]
    played = play(agent(script, bench.tool(), around_tool=around))

    assert ({"a": "denied", "b": "ok"}, {"t": 1}) == (statuses(played), bench.runs)
