"""Says what is wrong with a world that was played: what the engine told, held against the truth and against the rules.

The shape of events and conversations is judged by `tests.support`; here is what takes the truth, or the settings, to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protocol.events import Event, RunFailed
from protocol.history import first_fault
from protocol.limits import finish_reason_for
from protocol.result import RunResult
from protocol.text import clean, is_visible
from protocol.turns import Message, raw_text_of

from .judging_tools import tool_faults
from .seen import Seen, seen_of
from .truth import Asked, Truth

GRACE_SECONDS = 7
"""From a cancel to the end: what stubborn tools are waited for, and a little."""
LIMITS = {"tool_iterations", "llm_calls", "tool_calls", "total_tokens", "cost", "wall_clock"}


def faults_of(truth: Truth, events: Sequence[Event], messages: Sequence[Message]) -> list[str]:
    """Every rule that was broken, in words."""
    runs = seen_of(events)
    fault = first_fault(messages)
    faults = [*truth.faults, *([] if fault is None else [fault])]
    faults += tool_faults(truth, runs)
    for run in runs.values():
        faults += [f"{'/'.join(run.path) or 'root'} {run.prompt!r}: {told}" for told in _run(truth, run, runs)]
    for result in truth.results:
        faults += _result(truth, result)
    faults += _whole(truth, runs)
    return faults


def _run(truth: Truth, run: Seen, runs: dict[str, Seen]) -> Iterator[str]:
    tree = {run.id, *(other.id for other in runs.values() if other.root == run.id)}
    asked = [one for one in truth.asked if one.run in tree and one.sent]
    bodies = [one for one in truth.entered if one.run in tree]
    settings = truth.world_of(run.path).settings
    summary = run.summary
    if summary is None:
        yield "it has no end"
        return
    if isinstance(run.end, RunFailed) and run.end.error.code == "actor_crashed":
        yield f"it crashed: {run.end.error.message}"
    stopped = [one for one in truth.runs if one.id == run.id and one._core.state.stop_requested is not None]
    if summary.stopped_by == "model" and summary.answered and run.left & run.waited and not stopped:
        yield "it ended although a message waited"
    if summary.counters.llm_calls != len(asked):
        yield f"{summary.counters.llm_calls} model calls counted, {len(asked)} made"
    tokens = sum(one.usage.total_tokens for one in asked if one.usage is not None)
    if summary.usage.total_tokens != tokens:
        yield f"{summary.usage.total_tokens} tokens counted, {tokens} reported"
    if summary.usage.complete != all(one.usage is not None and one.usage.complete for one in asked):
        yield f"usage complete={summary.usage.complete}, reported were {[one.usage for one in asked]}"
    for name, most, used in (
        ("llm_calls", settings.max_llm_calls, len(asked)),
        ("tool_calls", settings.max_tool_calls, len(bodies)),
    ):
        allowed = None if most is None else most + run.granted.get(name, 0)
        if allowed is not None and used > allowed:
            yield f"{used} {name}, allowed are {allowed}"
    if run.prompt == "go":
        for name, limit, price in (
            ("total_tokens", settings.max_total_tokens, 1.0),
            ("cost", settings.max_cost, 0.01),
        ):
            for one in asked:
                if limit is not None and one.tokens_before * price >= limit + run.granted.get(name, 0):
                    yield f"a request was sent with {one.tokens_before} tokens used, {name} is {limit}"
    if settings.max_tool_iterations is not None:
        yield from run.window_faults(settings.max_tool_iterations)
    if run.final_steps > 1 + settings.finalization_retry:
        yield f"{run.final_steps} final calls"


def _result(truth: Truth, result: RunResult) -> Iterator[str]:
    """The table of results, and the rule of the text (section 7)."""
    asked = [one for one in truth.asked if one.run == result.run]
    if result.answered:
        last = next((one for one in reversed(asked) if one.turn is not None and not one.helps), None)
        turn = None if last is None else last.turn
        if turn is None or clean(decodes(asked)[-1]) != result.text:
            yield f"the answer is {result.text!r}, the last turn was {turn}"
        elif turn.end != "complete" or turn.finish in {"length", "paused", "content_filter", "malformed"}:
            yield f"an answer that is not whole: {turn}"
        elif result.finalized is None and (turn.calls or turn.finish == "tool_calls"):
            yield f"an answer that asked for tools: {turn}"
    else:
        said = "\n\n".join(clean(text) for text in decodes(asked) if is_visible(text))
        if not (result.text == said or result.text.startswith(f"{said}\n\n") or not said):
            yield f"the text is {result.text!r}, the visible texts were {said!r}"
    if result.stopped_by in LIMITS:
        if result.limit is None or result.limit.name != result.stopped_by:
            yield f"stopped by {result.stopped_by}, the limit is {result.limit}"
        elif result.finalized != "model" and result.finish_reason != finish_reason_for(result.limit.name):
            yield f"{result.limit} ended it as {result.finish_reason}"
    if result.finalized == "fallback" and result.answered:
        yield "a fallback is no answer"
    if result.stopped_by == "model" and (result.finish_reason == "stop") != result.answered:
        yield f"ended by the model, {result.finish_reason}, answered={result.answered}"
    if result.stopped_by in {"failure", "cancel", "caller", "tool"} and result.answered:
        yield f"{result.stopped_by}, and answered"


def decodes(asked: Sequence[Asked]) -> list[str]:
    """The text of each decode, whichever number of requests it took: what one says that goes on stands behind the rest.

    A request with the bigger cap makes the piece before it anew, once it says something.
    """
    texts: list[str] = []
    before: Asked | None = None
    for one in asked:
        if one.helps:
            continue
        own = raw_text_of(one.turn.parts) if one.turn is not None else one.shown
        anew = one.max_tokens is not None and before is not None and before.max_tokens is None
        if one.resume is None and not anew:
            texts.append(own)
        elif one.turn is not None or own:
            texts[-1:] = [own if one.resume is None else raw_text_of(one.resume.parts) + own]
        before = one
    return texts


def _whole(truth: Truth, runs: dict[str, Seen]) -> Iterator[str]:
    if truth.cut_at is not None and truth.ended_at - truth.cut_at > GRACE_SECONDS:
        yield f"it ended {truth.ended_at - truth.cut_at} seconds after it was cancelled"
    for request, times in truth.accepted.items():
        if times > 1:
            yield f"{request} was decided {times} times"
    resolved = {name: outcome for run in runs.values() for name, outcome in run.resolved.items()}
    for request in truth.accepted:
        if resolved.get(request) not in {"approved", "declined", "denied", "edited"}:
            yield f"a decision about {request} was taken, and came to {resolved.get(request)}"
    if len(truth.runs) > 1 and not truth.stopped:
        second = truth.results[-1]
        answer = "second" if truth.half is None else f"{raw_text_of(truth.half.parts)}second"
        limits = truth.world.settings
        # A call that is final for one limit may find that there is no room for it in another.
        short = second.limit is not None and (limits.max_total_tokens or limits.max_cost)
        if not (second.answered and second.text == answer) and not short:
            yield f"the second run came to {second.stopped_by} {second.text!r} {truth.errors[-1]!r}"
