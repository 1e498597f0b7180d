"""The part of the judge that knows tools: which bodies were entered, with what, and whether their results say the truth."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from actors import AgentSpec
from protocol.events import ApprovalRequired, ApprovalResolved, RunFinished

from .seen import Seen, SeenCall
from .truth import CHANGED, EDITED, Entered, Truth

RIGHT = {"good", "text"}
"""Arguments that fit the schema, or do when text in them is read."""
BY_THE_HOOK = {"alter", "raise_after", "twice", "swallow"}
"""What a hook does that makes the result its own."""
GRACE_SECONDS: float = attrs.fields(AgentSpec).cancel_grace_seconds.default or 0
"""How long a cancelled run waits for its tools."""


def tool_faults(truth: Truth, runs: dict[str, Seen]) -> Iterator[str]:
    """What is wrong with tools."""
    calls = {call.number: call for run in runs.values() for call in run.calls.values() if call.number is not None}
    started = sorted(number for number, call in calls.items() if call.started)
    entered = sorted(one.number for one in truth.entered)
    if started != entered:
        yield f"started are the calls {started}, entered were {entered}"
    for run in runs.values():
        for call in run.calls.values():
            if call.started and call.number is None:
                yield f"{call.requested} was started"
            if call.started and call.discarded:
                yield f"{call.requested} was discarded, and started"
    for one in truth.entered:
        asked = calls.get(one.number)
        if asked is None:
            yield f"a body of {one.tool} was entered that nobody asked for: {one.arguments}"
            continue
        for told in (*entry_faults(truth, one, asked), *_status(truth, one, asked, runs)):
            yield f"call {one.number} of {one.tool}: {told}"


def entry_faults(truth: Truth, one: Entered, call: SeenCall) -> Iterator[str]:
    """A body is entered only when all that must hold does (I12), with what was shown and decided (I7)."""
    plan, asked = truth.numbers[one.number]
    turn = asked.turn
    if plan.args not in RIGHT:
        yield f"it was entered with {plan.args} arguments"
    if turn is None or turn.end != "complete" or turn.finish in {"length", "paused"}:
        yield "it was entered for a turn that is not whole"
    if one.asked is not asked:
        yield "it was entered after another request"
    if one.tool not in asked.offered or one.tool != call.requested.name:
        yield f"it was entered, offered were {sorted(asked.offered)}, asked for was {call.requested.name}"
    shown = one.number + (CHANGED if truth.arounds.get(one.number) == "change" else 0)
    edited = [a.arguments for a in call.approvals if isinstance(a, ApprovalResolved) and a.arguments is not None]
    for question in call.approvals:
        if isinstance(question, ApprovalRequired) and question.arguments["n"] != shown:
            yield f"shown was {question.arguments}, not {shown}"
    expected = {"n": shown} if plan.args == "good" else {"n": shown, "o": {"a": 1}}
    if edited:
        expected = {"n": shown + EDITED}
    if one.arguments != expected:
        yield f"it was entered with {one.arguments}, decided was {expected}"
    does = truth.world_of(call.run.path).tools[int(one.tool[1:])]
    if does.approval and not (call.approvals and call.approved_first):
        yield f"nobody had approved it: {call.approvals}"


def _status(truth: Truth, one: Entered, call: SeenCall, runs: dict[str, Seen]) -> Iterator[str]:
    """A result says what was (I3)."""
    if call.finished is None:
        yield "it has no result"
        return
    status, how = call.finished.status, one.how
    settings = truth.world_of(call.run.path).settings
    does = truth.world_of(call.run.path).tools[int(one.tool[1:])]
    plan = truth.arounds.get(one.number)
    hooked = plan in BY_THE_HOOK
    told = f"its body {how}, the result is {status}: {call.finished.text[:80]!r}"
    if status == "ok" and not hooked and how not in {"returned", "odd", "stopped", "swallowed"}:
        yield told
    if status == "error" and not hooked and how not in {"raised", "odd", "failed"}:
        yield told
    # Behind a hook, a cancel that comes when the body has just returned is told as that.
    # One that holds out longer than the run waits for it returns when its result has been told.
    late = does.body == "stubborn" and does.seconds > GRACE_SECONDS
    known = how in {"returned", "odd", "raised", "stopped"} and plan is None and not late
    if status in {"timed_out", "interrupted"} and known:
        yield told
    if status == "timed_out" and not (
        does.timeout or settings.tool_timeout_seconds or truth.world.settings.wall_clock_seconds
        or settings.wall_clock_seconds
    ):  # fmt: skip
        yield f"{told}, and no time was set"
    if status in {"denied", "discarded", "not_run"}:
        yield told
    if does.body == "agent" and how == "returned":
        ends = [run.end for run in runs.values() if run.prompt == f"task {one.number}"]
        if not any(isinstance(end, RunFinished) and end.summary.answered for end in ends):
            yield f"its agent came to no answer, and it returned: {ends}"
