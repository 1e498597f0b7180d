"""The hops of a decode as one interaction."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.decode import merge, merge_usage, output_text
from tests.protocol.decode.speech import said, usage

TEXT = {"type": "text", "text": "x"}


def hop(id: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "status": "completed", "steps": said(*texts), **more}


def test_the_last_hop_is_the_base() -> None:
    """Its fields stand, unknown ones too; three are the first one's, or are missing with it."""
    first = hop("i1", created="c1", previous_interaction_id="p", input="hi", only_first=1, continuation_token="t")
    last = hop("i2", created="c2", updated="u2", errors=[1], future={"a": 1})
    merged = merge([first, last])

    assert "i2" == merged["id"]
    assert ("c1", "p", "hi") == (merged["created"], merged["previous_interaction_id"], merged["input"])
    assert ("u2", [1], {"a": 1}) == (merged["updated"], merged["errors"], merged["future"])
    assert not {"only_first", "continuation_token"} & merged.keys()
    assert "created" not in merge([hop("i1"), last])


def test_one_hop_keeps_all_its_fields() -> None:
    """Merging adds the ids, the text and, where they are missing, the steps."""
    one = {"id": "i1", "created": "c", "usage": {"strange": 3}}

    assert {**one, "steps": [], "continuation_ids": ["i1"], "output_text": ""} == merge([one])


def test_steps_are_joined_and_a_repeated_input_is_left_out() -> None:
    """What the first hop holds stays; a text that was cut stays two steps; a hop without steps loses nothing."""
    asked = {"type": "user_input", "content": [TEXT]}
    merged = merge([
        {"id": "i1", "steps": [asked, *said("A ")]},
        {"id": "i2"},
        {"id": "i3", "steps": None},
        {"id": "i4", "steps": [asked, asked, *said("B"), asked]},
    ])

    assert [asked, *said("A "), *said("B"), asked] == merged["steps"]


def test_ids_are_in_order_and_named_once() -> None:
    """What a hop knows of those before it counts; what is no id does not."""
    hops: list[dict[str, Any]] = [
        {"id": "i2", "continuation_ids": ["i1", "", 7]},
        {"id": None},
        {"id": "i2"},
        {"id": "i3", "continuation_ids": "i9"},
    ]

    assert ["i1", "i2", "i3"] == merge(hops)["continuation_ids"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ""),
        (said("A ", "B"), "A B"),
        ([*said("A "), {"type": "thought"}, *said("B")], "A B"),
        ([*said("before "), {"type": "function_call"}, *said("after")], "after"),
        ([*said("before"), {"type": "function_call"}], "before"),
        ([*said("old "), {"type": "user_input", "content": [TEXT]}, *said("new")], "new"),
        ([{"type": "model_output", "content": [TEXT, {"type": "image"}, {"type": "text", "text": "y"}]}], "y"),
        ([{"type": "model_output", "content": [TEXT, {"type": "image"}]}], "x"),
        ([7, None, {"type": "model_output", "content": "?"}, {"type": "model_output", "content": [None, TEXT]}], "x"),
    ],
)
def test_the_output_text_is_what_the_interaction_ends_with(steps: list[Any], expected: str) -> None:
    """[6] Thoughts are passed over; an input, a tool or anything that is no text ends it."""
    assert expected == output_text(steps)


def test_usage_is_added() -> None:
    """Tokens and counts are; the first hop's input stays what it was; modalities are added one by one."""
    first = usage(
        10, 20, input_tokens_by_modality=[{"modality": "text", "tokens": 8}, {"modality": "image", "tokens": 2}]
    )
    second = usage(
        20,
        30,
        input_tokens_by_modality=[{"modality": "image", "tokens": 1}, {"modality": "audio", "tokens": 5}],
        grounding_tool_count=[{"type": "google_search", "count": 2}],
        future_tokens=4,
    )
    third = usage(30, 5, grounding_tool_count=[{"type": "google_search", "count": 1}], future_tokens=5)

    assert {
        **usage(60, 55),
        "initial_input_tokens": 10,
        "input_tokens_by_modality": [
            {"modality": "text", "tokens": 8},
            {"modality": "image", "tokens": 3},
            {"modality": "audio", "tokens": 5},
        ],
        "grounding_tool_count": [{"type": "google_search", "count": 3}],
        "future_tokens": 9,
    } == merge_usage([first, second, third])


def test_what_is_not_known_to_be_an_amount_is_not_added() -> None:
    """An integer with another name stands in its hop alone; other values are the last hop's."""
    merged = merge_usage([{"level": 3, "tier": "flex", "total_tokens": 1}, {"level": 4, "tier": "standard"}])

    assert {"tier": "standard", "total_tokens": 1, "initial_input_tokens": None} == merged


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([{"initial_input_tokens": 3, "total_input_tokens": 9}, {}], 3),
        ([{"total_input_tokens": 9}, {"initial_input_tokens": 4}], 9),
        ([{"total_output_tokens": 9}, {"initial_input_tokens": 4}], None),
        ([None, {"initial_input_tokens": 4, "total_input_tokens": 4}], None),
    ],
)
def test_the_initial_input_is_the_first_hops_alone(usages: list[dict[str, Any] | None], expected: int | None) -> None:
    """[38] A later hop's does not pass for it."""
    merged = merge_usage(usages)

    assert merged is not None
    assert expected == merged["initial_input_tokens"]


def test_an_initial_input_that_is_not_known_stays_so() -> None:
    """Also where the hops are merged one after the other."""
    hops: list[dict[str, Any]] = [hop("i1"), hop("i2", usage=usage(4, 1)), hop("i3", usage=usage(5, 1))]
    merged = merge([merge(hops[:2]), hops[2]])

    assert {**usage(9, 2), "initial_input_tokens": None} == merged["usage"]


def test_no_usage_is_none() -> None:
    """Nothing is made up."""
    assert merge_usage([None, {}]) is None
    assert "usage" not in merge([hop("i1"), hop("i2")])


def test_usage_that_makes_no_sense_is_survived() -> None:
    """What can be added is, what has no key is kept."""
    merged = merge_usage([
        {"total_tokens": "x", "input_tokens_by_modality": [7, {"modality": "text", "tokens": None}], "a_tokens": True},
        {"total_tokens": 3.0, "input_tokens_by_modality": [{"modality": "text", "tokens": 4}], "a_tokens": 2},
    ])

    assert {
        "total_tokens": 3,
        "input_tokens_by_modality": [7, {"modality": "text", "tokens": 4}],
        "a_tokens": 2,
        "initial_input_tokens": None,
    } == merged


names = st.sampled_from(["total_tokens", "total_input_tokens", "initial_input_tokens", "tool_count", "level", "tier"])
entries = st.lists(
    st.fixed_dictionaries({"modality": st.sampled_from(["text", "image", 3]), "tokens": st.integers(0, 9)})
)
values = st.one_of(st.integers(0, 9), st.sampled_from(["flex", None, True, 2.5]), entries)
usages = st.one_of(
    st.none(),
    st.dictionaries(names, values).flatmap(
        lambda made: st.one_of(st.just(made), entries.map(lambda e: {**made, "input_tokens_by_modality": e}))
    ),
)
kinds = st.sampled_from(["user_input", "model_output", "thought", "function_call"])
steps = st.lists(kinds.map(lambda kind: {"type": kind, "content": [TEXT]}), max_size=3)
hops = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["i1", "i2", "i3", "i4", None])},
        optional={
            "steps": steps,
            "usage": usages,
            "created": st.sampled_from("abc"),
            "status": st.sampled_from(["requires_continuation", "completed"]),
            "continuation_token": st.sampled_from("tu"),
            "continuation_ids": st.lists(st.sampled_from(["i0", "i1"])),
        },
    ),
    min_size=2,
    max_size=6,
)


@given(hops, st.data())
def test_merging_is_associative(made: list[dict[str, Any]], data: st.DataObject) -> None:
    """Any run of hops may be merged first: the whole comes to the same, and nothing that was given is changed."""
    before = copy.deepcopy(made)
    low = data.draw(st.integers(0, len(made) - 1))
    high = data.draw(st.integers(low + 1, len(made)))
    at_once = merge(made)
    in_parts = merge([*made[:low], merge(made[low:high]), *made[high:]])

    assert at_once == in_parts
    assert before == made


@given(hops)
def test_nothing_is_lost_in_a_merge(made: list[dict[str, Any]]) -> None:
    """All steps but repeated inputs, all ids, and the sum of all tokens are in the whole."""
    merged = merge(made)
    outputs = [step for one in made for step in one.get("steps") or [] if step["type"] != "user_input"]
    totals = [one["usage"]["total_tokens"] for one in made if (one.get("usage") or {}).get("total_tokens") is not None]
    integers = [total for total in totals if isinstance(total, int) and not isinstance(total, bool)]

    assert outputs == [step for step in merged["steps"] if step["type"] != "user_input"]
    assert {one["id"] for one in made} - {None} <= set(merged["continuation_ids"])
    if integers and not any(isinstance(total, list) for total in totals):
        assert sum(integers) == merged["usage"]["total_tokens"]
