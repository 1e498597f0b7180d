"""What must hold of the cases about parallel tools and the ids of calls, beyond their checks."""

from __future__ import annotations

import msgspec

from protocol.errors import RunFailedError
from protocol.turns import AssistantMessage, ToolMessage

from .claims import answered, called, calls_in, claim, results_in
from .runner import run_case

LATE_FAILURE = "sleep 3.5; raise ValueError"
"""What the failing tool does in a variant: by then its sibling has done something."""


@claim("PAR-01", "results a and c contain 'G'")
def the_siblings_keep_their_results() -> None:
    (came,) = run_case("PAR-01")

    assert [("a", "G"), ("b", "ValueError: boom"), ("c", "G")] == [
        (result.call, result.text) for result in results_in(came.asked[1].messages)
    ]


@claim("PAR-03", "the run itself is not cancelled")
def the_run_goes_on() -> None:
    (came,) = run_case("PAR-03")

    assert came.last.error is None
    assert ("ok", True) == (came.last.result.text, came.last.result.answered)


@claim(
    "PAR-03",
    "b has exactly one result and it says what the body did: its scope absorbed its own cancel and the body returned, so ok with no output; a body that raises after it is error",
)
def a_scope_of_its_own_is_its_own_business() -> None:
    (came,) = run_case("PAR-03")
    raises = (
        "tools.self_cancel",
        "with its own cancel scope: sleep 60, cancelled by itself after 1 s; then raise RuntimeError('afterwards')",
    )
    (raised,) = run_case("PAR-03", "remote", raises)

    assert [("ok", "(no output)")] == [(end.status, end.text) for end in came.results["b"]]
    assert [("error", "RuntimeError: afterwards")] == [(end.status, end.text) for end in raised.results["b"]]
    assert [("a", "ok"), ("b", "error"), ("c", "ok")] == answered(raised.messages)
    assert raised.last.result.answered


@claim("PAR-04", "the text of b is not empty: it names RuntimeError even though the exception has no message")
def an_error_without_a_message_has_a_name() -> None:
    (came,) = run_case("PAR-04")

    assert [("a", "1"), ("b", "RuntimeError")] == [(r.call, r.text) for r in results_in(came.asked[1].messages)]


@claim("PAR-05", "result order in request 2 is a, b")
def results_stand_in_the_order_of_calls() -> None:
    (came,) = run_case("PAR-05")

    assert [("a", "ok"), ("b", "ok")] == answered(came.asked[1].messages)
    assert came.times["tool_finished:b"] < came.times["tool_finished:a"]


@claim("PAR-05", "repeating 20 times gives byte-identical request 2")
def the_request_is_the_same_every_time() -> None:
    bodies = {msgspec.json.encode(run_case("PAR-05", order=order)[0].asked[1]) for order in range(20)}

    assert 1 == len(bodies)


@claim("IDS-03", "request 2 has two calls with distinct ids, each with its own result (1 and 2)")
def repeated_ids_are_told_apart() -> None:
    (came,) = run_case("IDS-03")
    second = came.asked[1].messages
    first_id, second_id = called(second)

    assert first_id
    assert second_id
    assert first_id != second_id
    assert ['{"n":1}', '{"n":2}'] == [call.arguments for call in calls_in(second)]
    assert [(first_id, "1"), (second_id, "2")] == [(result.call, result.text) for result in results_in(second)]


@claim("IDS-04", "request 4 contains the results 1, 2 and 3, each after its own call")
def a_constant_id_loses_nothing() -> None:
    (came,) = run_case("IDS-04")
    fourth = came.asked[3].messages
    exchanges = [
        (calls_in([asked])[0].arguments, results_in([told])[0].text)
        for asked, told in zip(fourth, fourth[1:], strict=False)
        if isinstance(asked, AssistantMessage) and isinstance(told, ToolMessage)
    ]

    assert [('{"n":1}', "1"), ('{"n":2}', "2"), ('{"n":3}', "3")] == exchanges
    assert 3 == len(set(called(fourth)))
    assert called(fourth) == [result.call for result in results_in(fourth)]


@claim("PAR-10", "when the run result is delivered no tool of the batch is still running: X does not grow any more")
def a_hard_stop_stops_the_siblings() -> None:
    """One looks on for two minutes after the end; the tool would have written for ten seconds."""
    (came,) = run_case("PAR-10")
    (long,) = run_case("PAR-10", "remote", ("tools.bad", LATE_FAILURE))
    began = came.times["tool_started:a"]

    assert [began] == came.tools.written
    assert [began + second for second in range(4)] == long.tools.written
    assert (began, began + 3.5) == (came.times["run_ended"], long.times["run_ended"])
    for played in (came.last, long.last):
        assert isinstance(played.error, RunFailedError)
        assert isinstance(played.error.__cause__, ValueError)


@claim("PAR-10", "a has a cancelled result in stored history")
def the_sibling_is_answered_as_cut() -> None:
    for (came,) in (run_case("PAR-10"), run_case("PAR-10", "remote", ("tools.bad", LATE_FAILURE))):
        a, b = results_in(came.messages)

        assert [("a", "interrupted", True), ("b", "error", True)] == [(r.call, r.status, r.entered) for r in (a, b)]
        assert ["a", "b"] == called(came.messages)
        assert {"a": ["interrupted"], "b": ["error"]} == {
            id: [end.status for end in ends] for id, ends in came.results.items()
        }
