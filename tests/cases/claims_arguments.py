"""What must hold of the cases about the arguments of tools, beyond their checks."""

from __future__ import annotations

import json

from protocol.events import ToolRequested, ToolStarted

from .claims import calls_in, claim, results_in
from .runner import run_case


@claim("ARG-01", "the tool gets {} ; variant: arguments '   ' behaves the same")
def no_arguments_are_an_empty_object() -> None:
    (empty,) = run_case("ARG-01")
    (blank,) = run_case("ARG-01", "remote", ("turns.0.calls.0.2", "   "))

    for came in (empty, blank):
        assert [("ping", {})] == came.tools.received
        assert [("a", "ok", "pong")] == [(r.call, r.status, r.text) for r in results_in(came.asked[1].messages)]
        assert ["{}"] == [call.arguments for call in calls_in(came.asked[1].messages)]
        assert () == came.faults
        assert came.last.result.answered


@claim(
    "ARG-04",
    "one of: (1) coerced because the schema says array, the tool sees a list of length 1 and the stored/approved arguments are the coerced ones; (2) an error result that names property edits and says array expected, string given",
)
def a_list_in_a_string_is_the_list() -> None:
    (came,) = run_case("ARG-04")
    wanted = {"edits": [{"o": "x", "n": "y"}]}
    (stored,) = calls_in(came.messages)

    assert [("edit", wanted)] == came.tools.received
    assert [("ok", "1")] == [(end.status, end.text) for end in came.results["a"]]
    assert wanted == came.last.only(ToolRequested).arguments
    assert wanted == json.loads(stored.arguments)


@claim("ARG-04", "a parameter declared as string is never coerced: value '[1]' stays a string")
def a_string_stays_a_string() -> None:
    (came,) = run_case(
        "ARG-04",
        "remote",
        ("tools.edit", "parameter text: string; return text"),
        ("turns.0.calls.0.2", json.dumps({"text": "[1]"})),
    )

    assert [("edit", {"text": "[1]"})] == came.tools.received
    assert [("ok", "[1]")] == [(end.status, end.text) for end in came.results["a"]]


@claim("ARG-06", "the tool body is never entered")
def what_is_no_object_runs_nothing() -> None:
    (came,) = run_case("ARG-06")

    assert [] == came.tools.received
    assert [] == came.last.all(ToolStarted)
    assert [False] * 3 == [result.entered for result in results_in(came.asked[1].messages)]
    for result, raw in zip(results_in(came.asked[1].messages), ('{"path": ', "[1,2]", "5"), strict=True):
        assert f"must be one JSON object; nothing was run. They were: {raw}" in result.text


@claim("ARG-09", "the known sibling is executed")
def the_known_sibling_runs() -> None:
    (came,) = run_case("ARG-09")
    unknown, known = results_in(came.asked[1].messages)

    assert ("b", "ok", "1", True) == (known.call, known.status, known.text, known.entered)
    assert ("a", "error", False) == (unknown.call, unknown.status, unknown.entered)
    assert "get_date" in unknown.text
    assert [("t", {})] == came.tools.received
