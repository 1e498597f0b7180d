"""The events of a hop, as the interaction that they tell of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from protocol.decode import InteractionFold, kind_of
from tests.protocol.decode.speech import completed, created, delta, said, start, stop, update, usage


def fold(*events: dict[str, Any]) -> InteractionFold:
    made = InteractionFold()
    for event in events:
        made.add(event, kind_of(event))
    return made


def steps(*events: dict[str, Any]) -> Any:
    return fold(*events).interaction()["steps"]


def test_a_stream_comes_to_what_a_whole_reply_would_be() -> None:
    """Fields of the last event win, steps are put together, usage is the last that was told."""
    made = fold(
        created(model="m", created="c"),
        start(type="thought"),
        delta(type="thought_summary", content={"type": "text", "text": "Hm"}),
        delta(type="thought_signature", signature="sig"),
        stop(),
        start(1),
        delta("Once ", 1),
        update("ck1", usage={"total_output_tokens": 1}),
        delta("upon", 1),
        stop(1),
        start(2, "function_call", id="c1", name="f", arguments={}, signature="s2"),
        delta(index=2, type="arguments_delta", arguments='{"a":'),
        delta(index=2, type="arguments_delta", arguments="1}"),
        stop(2),
        completed("requires_action", updated="u", usage=usage(9, 3)),
    ).interaction()

    assert {
        "id": "i1",
        "status": "requires_action",
        "model": "m",
        "created": "c",
        "updated": "u",
        "steps": [
            {"type": "thought", "summary": [{"type": "text", "text": "Hm"}], "signature": "sig"},
            *said("Once upon"),
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}, "signature": "s2"},
        ],
        "usage": usage(9, 3),
    } == made


def test_a_checkpoint_is_a_field_until_the_end_says_otherwise() -> None:
    """A token that the end does not name is void."""
    assert "ck1" == fold(created(), update("ck1")).interaction()["continuation_token"]
    assert "continuation_token" not in fold(created(), update("ck1"), completed()).interaction()
    assert "t" == fold(update("ck1"), completed("requires_continuation", "t")).interaction()["continuation_token"]


def test_the_older_names_say_the_same() -> None:
    """Proxies of the first preview call steps contents."""
    made = fold(
        {"event_type": "interaction.start", "interaction": {"id": "i1", "status": "in_progress"}},
        {"event_type": "content.start", "index": 0, "content": {"type": "text"}},
        {"event_type": "content.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}},
        {"event_type": "content.stop", "index": 0},
        {"event_type": "content.start", "index": 1, "content": {"type": "text", "text": "!"}},
        {"event_type": "content.start", "index": 2, "content": {"type": "function_call", "id": "c", "name": "f"}},
        {"event_type": "interaction.complete", "interaction": {"id": "i1", "status": "completed"}},
    ).interaction()

    assert [*said("Hi", "!"), {"type": "function_call", "id": "c", "name": "f"}] == made["steps"]
    assert "completed" == made["status"]


def test_text_and_its_annotations_are_one() -> None:
    """Wherever the annotations come, they end up at the text they follow; other content stands between texts."""
    note, other = {"start": 1}, {"start": 2}

    assert [
        {
            "type": "model_output",
            "content": [
                {"type": "text", "text": "ABC", "annotations": [note, other]},
                {"type": "image", "uri": "u"},
                {"type": "text", "text": "D"},
            ],
        }
    ] == steps(
        start(),
        delta("A"),
        delta("B"),
        delta(type="text_annotation_delta", annotations=[note]),
        delta(type="text", text="C", annotations=[other]),
        delta(type="image", uri="u"),
        delta("D"),
    )


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        (['{"a"', ": 1}"], {"a": 1}),
        (['{"a": "cut of'], '{"a": "cut of'),
        ([""], {}),
        ([{"a": 1}], {"a": 1}),
        ([], {"start": 1}),
    ],
)
def test_arguments_that_are_no_object_stay_the_text_that_came(fragments: list[Any], expected: Any) -> None:
    """Nothing of a call that was cut is lost, and nothing is made up."""
    pieces = [delta(type="arguments_delta", arguments=fragment) for fragment in fragments]
    [step] = steps(start(type="function_call", id="c", arguments={"start": 1}), *pieces)

    assert expected == step["arguments"]


def test_arguments_find_their_call_whatever_index_they_carry() -> None:
    """They are those of the call that is open, or of the last one; `partial_arguments` are the same."""
    made = steps(
        start(0, "thought"),
        start(1, "function_call", id="c1"),
        delta(index=0, type="arguments_delta", arguments='{"a":'),
        delta(index=9, type="arguments_delta", partial_arguments="1}"),
        stop(1),
        delta(index=0, type="arguments_delta", arguments=" "),
    )

    assert [{"type": "thought"}, {"type": "function_call", "id": "c1", "arguments": {"a": 1}}] == made


def test_arguments_with_a_strange_index_are_those_of_the_open_call() -> None:
    """One that has stopped takes no more."""
    made = steps(
        start(1, "function_call", id="c1"),
        start(2, "function_call", id="c2"),
        stop(2),
        delta(index=0, type="arguments_delta", arguments="{}"),
    )

    assert [
        {"type": "function_call", "id": "c1", "arguments": {}},
        {"type": "function_call", "id": "c2"},
    ] == made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "text", "text": "x"}, said("x")),
        ({"type": "thought_signature", "signature": "s"}, [{"type": "thought", "signature": "s"}]),
        ({"type": "arguments_delta", "arguments": "{}"}, [{"type": "function_call", "arguments": {}}]),
        ({"type": "new_thing", "a": 1}, [{"type": "new_thing", "a": 1}]),
    ],
)
def test_a_step_whose_beginning_was_not_told_is_there(given: dict[str, Any], expected: Any) -> None:
    """What was added to it says what it is."""
    assert expected == steps(delta(index=3, **given))
    assert expected == steps(delta(index=None, **given))


def test_what_the_providers_own_tools_add_is_kept() -> None:
    """Lists and results grow, objects are laid over, the rest is replaced."""
    [step] = steps(
        start(type="code_execution_result", result="1\n", found=[1], arguments={"a": 1}),
        delta(type="code_execution_result", result="2\n", found=[2], arguments={"b": 2}, signature="s", is_error=False),
    )

    assert {
        "type": "code_execution_result",
        "result": "1\n2\n",
        "found": [1, 2],
        "arguments": {"a": 1, "b": 2},
        "signature": "s",
        "is_error": False,
    } == step


def test_steps_that_the_end_tells_whole_are_taken() -> None:
    """They hold all that the deltas did."""
    assert said("whole") == steps(start(), delta("who"), completed(steps=said("whole")))
    assert said("who") == steps(start(), delta("who"), completed(steps=[]))


def test_usage_of_a_stream_that_broke_off_is_what_was_told_last() -> None:
    """Running totals come beside deltas, at the end of steps and with checkpoints."""
    running = {**delta("x"), "metadata": {"total_usage": {"total_output_tokens": 5, "total_input_tokens": 2}}}
    made = fold(start(), running, stop(usage={"total_output_tokens": 7}), update("t", usage={"total_tokens": None}))

    assert {"total_output_tokens": 7, "total_input_tokens": 2} == made.interaction()["usage"]


def test_a_mark_is_gone_back_to() -> None:
    """Output after it is forgotten, what is known of the interaction stays."""
    made = fold(created(), start(), delta("A"))
    mark = made.mark()
    for event in (delta("B"), stop(), start(1), delta("C", 1), update(status="in_progress", usage={"total_tokens": 4})):
        made.add(event, kind_of(event))
    made.rewind(mark)

    assert said("A") == made.interaction()["steps"]
    assert {"total_tokens": 4} == made.interaction()["usage"]


def test_a_character_that_was_cut_in_two_is_whole_again() -> None:
    """And half of one that stays half does not keep the interaction from being encoded."""
    made = fold(
        created(model="\ud83d"),
        start(),
        delta("\ud83d"),
        delta("\ude00"),
        start(1, "function_call", name="\ud83d"),
        {"event_type": "error", "error": {"message": "\ud83d"}},
    ).interaction()

    assert said("\U0001f600") == made["steps"][:1]
    assert msgspec.json.encode(made)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"event_type": 7},
        {"event_type": "step.delta"},
        {"event_type": "step.delta", "index": [], "delta": "x", "metadata": 3},
        {"event_type": "step.start", "index": None, "step": "x"},
        {"event_type": "step.start"},
        {"event_type": "step.stop", "index": {"a": 1}},
        {"event_type": "interaction.created", "interaction": [1]},
        {"event_type": "interaction.completed"},
        {"event_type": "interaction.status_update", "status": 3, "usage": "x"},
        {"event_type": "error"},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_summary", "content": "x"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": 3}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": ["x"], "text": 3}},
    ],
)
def test_events_that_make_no_sense_are_survived(event: dict[str, Any]) -> None:
    """What came before them is still there."""
    made = fold(created(), start(), delta("A"), event)

    assert "A" in str(made.interaction()["steps"])
    assert "i1" == made.interaction()["id"]
