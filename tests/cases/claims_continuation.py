"""What must hold of the cases about going on at a limit, beyond their checks."""

from __future__ import annotations

from protocol.events import ContinuationRequired, ContinuationResolved, LimitReached, RunStarted, ToolStarted
from protocol.limits import LimitState
from protocol.turns import ToolMessage, UserMessage

from .came import Came
from .claims import answered, called, claim, said
from .program import CALL_SECONDS, Gate
from .runner import run_case


def requests_around_prompts(came: Came) -> list[tuple[int, int]]:
    """For each prompt, how many requests had been sent when it was answered, and how many at the next one."""
    counts: list[int] = []
    requests = 0
    for event in came.last.events:
        if event.type == "step_started":
            requests += 1
        elif isinstance(event, ContinuationResolved):
            counts.append(requests)
    return list(zip(counts, [*counts[1:], requests], strict=True))


@claim("CON-01", "exactly two prompts, with two different request ids")
def two_prompts(gate: Gate) -> None:
    (came,) = run_case("CON-01", gate)

    assert 2 == len(came.prompts) == len({prompt.request for prompt in came.prompts})


@claim("CON-01", "after each approve exactly one more iteration is allowed before the next prompt")
def one_more_each_time(gate: Gate) -> None:
    (came,) = run_case("CON-01", gate)
    kinds = [type(e) for e in came.last.events if isinstance(e, (ToolStarted, ContinuationRequired))]

    assert [ToolStarted, ContinuationRequired, ToolStarted, ContinuationRequired, ToolStarted] == kinds
    assert [(1, 1), (1, 2)] == [(prompt.max_iterations, prompt.total_iterations) for prompt in came.prompts]


@claim(
    "CON-01",
    "no call has two results (a pending call is either run after the approve, or discarded and asked again)",
)
def one_result_each(gate: Gate) -> None:
    (came,) = run_case("CON-01", gate)

    assert [1, 1, 1] == [len(ends) for ends in came.results.values()]
    assert [(id, "ok") for id in called(came.last.messages)] == answered(came.last.messages)


@claim(
    "CON-04",
    "the message list of the first request after an approve starts with the exact message list of the last request before the prompt",
)
def the_context_stays(gate: Gate) -> None:
    (came,) = run_case("CON-04", gate)
    around = requests_around_prompts(came)

    assert 2 == len(around)
    for before, _ in around:
        earlier, later = came.asked[before - 1].conversation, came.asked[before].conversation

        assert earlier == later[: len(earlier)]
        assert len(later) > len(earlier)


@claim("CON-04", "it still contains 'KEEP-ME'")
def the_results_stay(gate: Gate) -> None:
    (came,) = run_case("CON-04", gate)
    for before, _ in requests_around_prompts(came):
        after = came.asked[before].conversation
        texts = [result.text for message in after if isinstance(message, ToolMessage) for result in message.results]

        assert ["KEEP-ME"] * before == texts


@claim("CON-05", "an approve without a message adds no user-role text to any later request")
def no_word_is_added(gate: Gate) -> None:
    (came,) = run_case("CON-05", gate)

    assert [["go"]] * 4 == [asked.texts for asked in came.asked]
    assert ["go"] == said(came.last.messages)


@claim("CON-05", "an approve with message 'be brief' (second variant) adds that text exactly once")
def the_message_is_added_once(gate: Gate) -> None:
    (came,) = run_case("CON-05", gate, ("actions.0.message", "be brief"))
    (first, second) = requests_around_prompts(came)

    assert ["go", "be brief"] == came.asked[first[0]].texts
    assert ["go", "be brief", "be brief"] == came.asked[second[0]].texts
    for before, number in ((first[0], 1), (second[0], 2)):
        assert UserMessage("be brief") == came.asked[before].conversation[-1]
        assert number == came.asked[before].texts.count("be brief")


@claim("CON-07", "nothing is raised to the caller")
def nothing_is_raised() -> None:
    (came,) = run_case("CON-07")

    assert came.last.error is None
    assert "run_finished" == came.last.types[-1]


@claim("CON-07", "the run result says it was finalized at the limit")
def it_says_finalized() -> None:
    (came,) = run_case("CON-07")
    result = came.last.result

    assert ("model", LimitState("tool_iterations", 2, 2), "tool_iterations", True) == (
        result.finalized,
        result.limit,
        result.stopped_by,
        result.answered,
    )


@claim("CON-08", "the text 'use cached data' occurs exactly once in the last request, after all tool results")
def the_reason_is_told(gate: Gate) -> None:
    (came,) = run_case("CON-08", gate)
    last = came.asked[-1].conversation
    (place,) = [n for n, m in enumerate(last) if isinstance(m, UserMessage) and "use cached data" in m.text]

    assert 1 == repr(last).count("use cached data")
    assert place > max(n for n, m in enumerate(last) if isinstance(m, ToolMessage))


@claim("CON-08", "the pending call is not executed")
def the_pending_call_is_not_run(gate: Gate) -> None:
    (came,) = run_case("CON-08", gate)
    (asked,) = came.prompts[0].tool_calls
    (end,) = came.results[asked.id]

    assert ("discarded", False) == (end.status, end.started)


@claim("CON-10", "after 30 virtual seconds the configured timeout policy applies and the run ends")
def the_timeout_ends_it(gate: Gate) -> None:
    (came,) = run_case("CON-10", gate)

    assert 30 + 3 * CALL_SECONDS == came.last.seconds
    assert "timed_out" == came.last.only(ContinuationResolved).outcome
    assert ("final", "run_finished") == (came.last.result.text, came.last.types[-1])


@claim("CON-10", "the run is never auto-approved and never restarted")
def nobody_approves(gate: Gate) -> None:
    (came,) = run_case("CON-10", gate)
    resolved = came.last.only(ContinuationResolved)

    assert (False, None) == (resolved.goes_on, resolved.effect)
    assert 1 == len([event for event in came.stream if isinstance(event, RunStarted)])
    assert 1 == came.last.result.counters.tool_iterations


@claim(
    "CON-12",
    "approving renews the tool-iteration counter only: the run still ends at 3 model calls with a budget stop",
)
def the_budget_stands(gate: Gate) -> None:
    (came,) = run_case("CON-12", gate)

    assert LimitState("llm_calls", 3, 3) == came.last.result.limit
    assert ("llm_calls", "max_llm_calls", 3) == (
        came.last.result.stopped_by,
        came.last.result.finish_reason,
        came.last.result.counters.llm_calls,
    )
    assert "approved" == came.last.all(ContinuationResolved)[0].outcome


@claim("CON-12", "no 4th request is sent and no further prompt is shown after that")
def nothing_comes_after(gate: Gate) -> None:
    (came,) = run_case("CON-12", gate)
    last_limit = [n for n, event in enumerate(came.last.events) if isinstance(event, LimitReached)][-1]

    assert 3 == len(came.asked)
    assert ["run_finished"] == came.last.types[last_limit + 1 :]
