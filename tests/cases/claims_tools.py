"""What must hold of the cases about the running of tools and their output, beyond their checks."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from protocol.events import RunCancelled, RunFinished, StepStarted, ToolStarted, Warned

from .came import Came
from .claims import answered, claim, results_in, said
from .runner import run_case


def not_strict(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def texts_of(came: Came, request: int = 1) -> dict[str, str]:
    """The text of each result in a request."""
    return {result.call: result.text for result in results_in(came.asked[request].messages)}


@claim("TEX-01", "a's result at 10 virtual seconds says timed out and names the tool")
def a_tool_that_hangs_times_out() -> None:
    (came,) = run_case("TEX-01")
    (end,) = came.results["a"]

    assert 10 == came.times["tool_finished:a"] - came.times["tool_started:a"]
    assert ("timed_out", "hang") == (end.status, end.name)
    assert "hang timed out after 10 seconds" in texts_of(came)["a"]
    assert 0 == came.times["tool_finished:b"] - came.times["tool_started:b"]


@claim("TEX-02", "each block call is answered as timed out, its late return value is ignored")
def what_comes_too_late_is_ignored() -> None:
    (came,) = run_case("TEX-02")
    blocks = [f"block{number}" for number in range(50)]

    assert [(id, ["timed_out"]) for id in blocks] == [(id, [e.status for e in came.results[id]]) for id in blocks]
    # Their threads have returned in the meantime.
    assert came.last.messages == came.messages
    assert "too late" not in repr((came.messages, came.stream))
    assert sorted(blocks) == sorted([event.call or "" for event in came.last.all(Warned)])


@claim(
    "TEX-02",
    "quick finishes within a second of real time: abandoned threads do not use up its slot for ever",
)
def the_pool_is_not_used_up() -> None:
    (came,) = run_case("TEX-02")

    assert came.times["tool_finished:q"] - came.times["request:2 in flight"] < 1
    assert "1" == texts_of(came, 2)["q"]


@claim("TEX-02", "ending the run does not wait 30 s")
def the_end_waits_for_no_thread() -> None:
    (came,) = run_case("TEX-02")

    assert came.last.seconds < 10
    assert 50 == came.tool_runs["block"]


@claim(
    "TEX-04",
    "the child's run gets a terminal event (cancelled) and its stored history has k answered with 'outcome unknown'",
)
def the_child_ends_properly() -> None:
    (came,) = run_case("TEX-04")
    ends = [event for event in came.stream if isinstance(event, RunCancelled)]
    (result,) = results_in(came.conversations["child"])

    assert [("child",)] == [event.agent_path for event in ends]
    assert ("k", "interrupted", True) == (result.call, result.status, result.entered)
    assert "its thread may still run, and it may have had an effect" in result.text
    assert "it may have had an effect" in result.text


@claim("TEX-04", "an event says that a thread was left running; nothing is dropped in silence")
def the_thread_is_told_of() -> None:
    (came,) = run_case("TEX-04")
    (warning,) = [event for event in came.stream if isinstance(event, Warned)]

    assert ("thread_abandoned", "k", ("child",)) == (warning.code, warning.call, warning.agent_path)
    # It did go on, and what it did is what the event is about.
    assert ["inner"] == came.tools.written
    assert "too late" not in repr((came.conversations, came.stream))


@claim("TEX-05", "both calls have exactly one result")
def a_cancel_leaves_no_call_open() -> None:
    (came,) = run_case("TEX-05")

    assert {"a": 1, "s": 1} == {id: len(ends) for id, ends in came.results.items()}
    assert [("a", "interrupted"), ("s", "interrupted")] == answered(came.asked[-1].messages)
    assert ("next", ["go", "hi"]) == (came.last.result.text, said(came.messages))


@claim(
    "TEX-05",
    "if the thread of s outlives the run, its result says so (may still complete); a late return value never changes history",
)
def the_result_tells_of_the_thread() -> None:
    (came,) = run_case("TEX-05")
    (end,) = came.results["s"]
    first, second = came.played

    assert ["s_tool"] == came.tools.written
    assert "it may have had an effect" in end.text
    assert ("thread_abandoned", "s") == (first.only(Warned).code, first.only(Warned).call)
    assert second.messages == came.messages
    assert "too late" not in repr((came.messages, came.stream))


@claim(
    "TEX-06",
    "the interrupt propagates out of the run (after cleanup); it is not sent to the model as a result",
)
def an_interrupt_is_obeyed() -> None:
    (came,) = run_case("TEX-06")
    raised = came.raised

    assert isinstance(raised, KeyboardInterrupt) or (
        isinstance(raised, BaseExceptionGroup) and raised.split(KeyboardInterrupt)[1] is None
    )
    assert 1 == len(came.asked)
    assert [False] == [isinstance(end, RunFinished) for end in came.ends]
    assert "KeyboardInterrupt" not in repr(came.messages)


@claim("TEX-06", "stored history is still valid: a has one result")
def an_interrupt_leaves_the_history_whole() -> None:
    (came,) = run_case("TEX-06")

    assert [("a", "interrupted")] == answered(came.messages)
    assert 1 == len(came.results["a"])


@claim("TEX-08", "no model request is sent after the cancel even though the tool swallowed it")
def a_swallowed_cancel_is_a_cancel() -> None:
    (came,) = run_case("TEX-08")

    assert 1 == len(came.last.all(StepStarted)) == len(came.asked)
    assert "run_cancelled" == came.last.types[-1]


@claim("TEX-08", "a has one result")
def the_swallower_has_its_result() -> None:
    (came,) = run_case("TEX-08")

    assert [("a", came.results["a"][0].status)] == answered(came.messages)
    assert 1 == len(came.results["a"])
    assert 1 == len(came.last.all(ToolStarted))


@claim("TEX-10", "the text holds 2030-01-01 and 1.5; the request body is strict JSON (no NaN literal)")
def values_of_python_become_json() -> None:
    (came,) = run_case("TEX-10")
    text = texts_of(came)["a"]
    body = json.dumps(msgspec.to_builtins(came.asked[1]), allow_nan=False)

    assert "2030-01-01" in text
    assert {"d": "1.5", "x": "NaN", "ids": [1, 2]} == {
        name: value for name, value in json.loads(text, parse_constant=not_strict).items() if name in {"d", "x", "ids"}
    }
    assert body == json.dumps(json.loads(body, parse_constant=not_strict))


@claim(
    "TEX-11",
    "each result is an error naming the tool and the type, or a bounded repr; nothing raises outside the tool step",
)
def what_no_text_can_stand_for_is_an_error() -> None:
    (came,) = run_case("TEX-11")
    texts = texts_of(came)

    assert [("a", "error"), ("b", "error")] == answered(came.messages)
    assert "'t'" in texts["a"]
    assert "the class dict" in texts["a"]
    assert "'cyc'" in texts["b"]
    assert "a list that contains itself" in texts["b"]
    assert (None, True) == (came.last.error, came.last.result.answered)


@claim(
    "TEX-12",
    "texts: c is '0', f is '{}', g is '[]'; a and b are sent in a form the wire accepts and that says 'no output'",
)
def nothing_is_said_to_be_nothing() -> None:
    (came,) = run_case("TEX-12")

    assert {"a": "(no output)", "b": "(no output)", "c": "0", "f": "{}", "g": "[]"} == texts_of(came)


@claim(
    "TEX-14",
    "request bodies, event frames and stored session encode as UTF-8 without error; lone surrogates are replaced",
)
def half_characters_are_replaced() -> None:
    (came,) = run_case("TEX-14")
    (uncut,) = run_case("TEX-14", "remote", ("config.max_tool_output_chars", 11))

    for variant in (came, uncut):
        frames = [msgspec.json.encode(told) for told in (*variant.asked, *variant.stream, *variant.messages)]

        assert [frame.decode().encode() for frame in frames] == frames
        assert "\ufffd\ufffdabc" == texts_of(variant)["b"]
        assert ["ok", "still ok"] == [played.result.text for played in variant.played]
    assert texts_of(came)["a"].startswith("12345\n")
    assert texts_of(uncut)["a"].startswith("12345\ufffd\n")


@claim(
    "TEX-16",
    "the result text is at most 10000 characters plus a notice that states the original size; it keeps the beginning and 'END'",
)
def a_huge_output_is_cut() -> None:
    (came,) = run_case("TEX-16")
    text = texts_of(came)["a"]

    assert "5000003" in text
    assert len(text) <= 10_000 + 100
    assert text.startswith("A" * 1000)
    assert text.endswith("END")


@claim("TEX-16", "the event frames to clients are bounded too")
def a_huge_output_bursts_no_frame() -> None:
    (came,) = run_case("TEX-16")

    assert max(len(msgspec.json.encode(event)) for event in came.stream) < 11_000
