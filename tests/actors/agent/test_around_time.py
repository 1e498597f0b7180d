"""`around_tool` and time: hooks that are too slow, and bodies behind hooks that are (H7, T4)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import PendingTool, ToolError, deny
from actors.models.scripted import call, reply
from protocol.events import ToolFinished
from tests.support.deciders import payer, pays, results
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.specs import agent


def calls(*ids: str, name: str = "t", then: str = "ok") -> list[Any]:
    """A script: one turn with these calls of one tool, then an answer."""
    return [reply("", *[call(name, {}, id=id) for id in ids]), then]


@pytest.mark.parametrize("swallows", [False, True], ids=["plain", "swallows its cancel"])
def test_a_hook_that_is_too_slow_before_the_body(swallows: bool) -> None:  # noqa: FBT001
    """H7: `callback_timeout_seconds` bounds what it does before `proceed`; the body is not entered."""
    bench = Bench()

    async def around(call: PendingTool, proceed: Any) -> Any:
        if call.id == "a":
            try:
                await trio.sleep(100)
            except BaseException:  # noqa: ASYNC103
                if not swallows:
                    raise
                return "as if nothing had been"  # noqa: ASYNC104
        return await proceed()

    spec = agent(calls("a", "b"), bench.tool(), around_tool=around, callback_timeout_seconds=4)
    played = play(spec)

    assert {"a": ("error", "The hook around t took longer than 4 seconds."), "b": ("ok", "1")} == results(played)
    assert ({"t": 1}, 4.0) == (bench.runs, played.seconds)


def test_a_hook_that_is_too_slow_after_the_body() -> None:
    """H7: and what it does after; waiting for the body itself is not its time."""
    bench = Bench()

    async def around(_call: PendingTool, proceed: Any) -> Any:
        await trio.sleep(3)
        value = await proceed()
        await trio.sleep(100)
        return value

    played = play(agent(calls("a"), bench.tool(seconds=50), around_tool=around, callback_timeout_seconds=4))

    assert {"a": ("error", "The hook around t took longer than 4 seconds.")} == results(played)
    assert (57.0, True) == (played.seconds, played.only(ToolFinished).started)


def test_a_hook_that_hangs_once_its_call_was_refused_is_cut() -> None:
    """H7: its time runs again when `proceed` raises, so a turn cannot hang in the hook of a call that does not run."""
    pay, paid = payer()

    async def around(_call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        except ToolError:
            await trio.sleep_forever()

    spec = agent(pays(7), pay, approval=lambda _r: deny(), around_tool=around, callback_timeout_seconds=4)
    played = play(spec)

    assert ([], {"c1": ("denied", "Not run: declined.")}, 4.0) == (paid, results(played), played.seconds)


def test_a_slow_body_times_out_at_the_hook() -> None:
    """H7, T4: the tool's timeout is raised by `proceed`; let pass it is `timed_out`, caught it is the hook's result."""

    async def around(call: PendingTool, proceed: Any) -> Any:
        try:
            return await proceed()
        except ToolError as error:
            if call.id == "a":
                raise
            return f"gave up: {error}"

    played = play(agent(calls("a", "b"), Bench().tool(seconds=9), around_tool=around, tool_timeout_seconds=2))
    text = "The tool t timed out after 2 seconds; it may have had an effect."

    assert {"a": ("timed_out", text), "b": ("ok", f"gave up: {text}")} == results(played)
