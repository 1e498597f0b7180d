"""Says what is wrong with a life that came after another one: what the disk tells, held against what really happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from protocol.codec import decode_event
from protocol.events import ContinuationResolved, RunFailed, StepStarted
from protocol.history import first_fault
from tests.properties.judging_tools import entry_faults
from tests.properties.seen import Seen, SeenCall, seen_of

from .lives import faults_of_events
from .torn import Torn, lines_of

MAY_HAVE_RUN = {"ok", "error", "timed_out", "interrupted"}


def faults_of(torn: Torn) -> list[str]:
    """Every promise that was broken, in words."""
    faults = [*torn.faults, *torn.truth.faults]
    fault = first_fault(torn.messages)
    faults += [] if fault is None else [fault]
    events = [decode_event(line) for line in lines_of(torn)]
    faults += faults_of_events(events)
    if torn.read != list(enumerate(lines_of(torn), 1))[torn.seen :]:
        faults.append("a client that goes on where it stood got other events than the disk holds")
    if torn.before is not None and not torn.came_back:
        return faults  # it had been stopped, or nothing of it had been written: what was seen is another agent's
    runs = seen_of(torn.events)
    faults += _bodies(torn, runs)
    for run in runs.values():
        faults += [f"{'/'.join(run.path) or 'root'} {run.prompt!r}: {told}" for told in _run(torn, run, runs)]
    faults += _decided(torn, runs)
    if torn.before is not None:
        faults += _kept(torn, torn.before)
    return faults


def _bodies(torn: Torn, runs: dict[str, Seen]) -> Iterator[str]:
    calls = {call.number: call for run in runs.values() for call in run.calls.values() if call.number is not None}
    often = {number: times for number, times in Counter(one.number for one in torn.truth.entered).items() if times > 1}
    if often:
        yield f"bodies were entered more than once: {often}"
    for one in torn.truth.entered:
        call: SeenCall | None = calls.get(one.number)
        if call is None:
            yield f"call {one.number} of {one.tool} was entered, and nothing tells of it"
            continue
        end = call.finished
        if not call.started or end is None or end.status not in MAY_HAVE_RUN:
            yield f"call {one.number} of {one.tool} was entered, told is {end}"
        elif end.status == "ok" and one.how not in {"returned", "odd", "stopped", "swallowed"} and not _hooked(torn):
            yield f"call {one.number} of {one.tool} {one.how}, told is {end}"
        for told in entry_faults(torn.truth, one, call):
            yield f"call {one.number} of {one.tool}: {told}"


def _hooked(torn: Torn) -> bool:
    return bool(torn.world.hooks.around)


def _run(torn: Torn, run: Seen, runs: dict[str, Seen]) -> Iterator[str]:
    tree = {run.id, *(other.id for other in runs.values() if other.root == run.id)}
    sent = sum(one.sent for one in torn.truth.asked if one.run in tree)
    bodies = sum(one.run in tree for one in torn.truth.entered)
    settings = torn.truth.world_of(run.path).settings
    summary = run.summary
    if summary is None:
        yield "it has no end"
        return
    if isinstance(run.end, RunFailed) and run.end.error.code == "actor_crashed":
        yield f"it crashed: {run.end.error.message}"
    counted = summary.counters.llm_calls
    if counted < sent:
        yield f"{counted} model calls counted, {sent} sent"
    for name, most, used in (
        ("llm_calls", settings.max_llm_calls, max(sent, counted)),
        ("tool_calls", settings.max_tool_calls, bodies),
    ):
        allowed = None if most is None else most + run.granted.get(name, 0)
        if allowed is not None and used > allowed:
            yield f"{used} {name}, allowed are {allowed}"
    if settings.max_tool_iterations is not None:
        yield from run.window_faults(settings.max_tool_iterations)
    finals = {one.step for one in torn.events if isinstance(one, StepStarted) and one.run == run.id and one.final}
    if len(finals) > 1 + settings.finalization_retry:
        yield f"the steps {sorted(finals)} are final calls"


def _decided(torn: Torn, runs: dict[str, Seen]) -> Iterator[str]:
    """What was acknowledged stands."""
    resolved = {name: outcome for run in runs.values() for name, outcome in run.resolved.items()}
    for request, times in torn.truth.accepted.items():
        if times > 1:
            yield f"{request} was decided {times} times"
        if resolved.get(request) not in {"approved", "declined", "denied", "edited"}:
            yield f"a decision about {request} was acknowledged, and came to {resolved.get(request)}"


def _kept(torn: Torn, before: Torn) -> Iterator[str]:
    """What was on the disk, or shown, is there as it was; and the events go on behind it, in the same epoch."""
    mark = before.marks[torn.first] if torn.first < len(before.marks) else before.mark()
    lines, kept = lines_of(torn), lines_of(before, torn.first)
    if lines[: len(kept)] != kept:
        yield "the events on the disk have been changed"
    if mark.visible > len(kept):
        yield f"{mark.visible} events could be seen when {len(kept)} were on the disk"
    if torn.epoch != before.epoch:
        yield f"the epoch was {before.epoch}, and is {torn.epoch}"
    asked = [event.request for event in map(decode_event, lines) if isinstance(event, ContinuationResolved)]
    if len(asked) != len(set(asked)):
        yield f"requests were resolved more than once: {asked}"
    if mark.told and torn.went_on:
        yield "the result had been given, and the run went on"
