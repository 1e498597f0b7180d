"""When a decode is continued, and what its continuation says."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from protocol.decode import Policy, enabled, hop_body
from protocol.errors import SpecError

BODY = {
    "model": "m",
    "input": "hi",
    "previous_interaction_id": "before",
    "generation_config": {"max_output_tokens": 7},
    "tools": [{"type": "function", "name": "f"}],
    "stream": True,
}


@pytest.mark.parametrize(
    ("body", "option", "expected"),
    [
        ({}, None, True),
        ({}, True, True),
        ({}, False, False),
        ({"background": True}, None, False),
        ({"background": True}, True, False),
        ({"background": False}, None, True),
        ({"background": "yes"}, None, True),
        ({"agent": "a"}, None, False),
        ({"agent": "a"}, True, False),
        ({"agent_config": {}}, None, False),
        ({"agent": None, "agent_config": None}, None, True),
        ({"store": False}, None, True),
        ({"continuation_token": "t"}, None, True),
    ],
)
def test_a_model_is_continued_and_nothing_else(body: dict[str, Any], option: bool | None, expected: bool) -> None:
    """A background run and an agent are left to the server; `False` switches it off."""
    assert expected is enabled(body, automatic_continuation=option)


def test_a_background_run_cannot_be_kept_from_going_on() -> None:
    """`False` with a background run is refused, as a `ValueError`."""
    with pytest.raises(ValueError, match="background"):
        enabled({"background": True}, automatic_continuation=False)


def test_an_option_that_is_no_bool_is_refused() -> None:
    """The text names the option and its value."""
    option: Any = "no"

    with pytest.raises(SpecError, match="automatic_continuation must be True, False or None; it is 'no'"):
        enabled({}, automatic_continuation=option)


def test_the_owner_stands_for_the_input_where_interactions_are_stored() -> None:
    """The input goes, the owner takes the place of what came before, and all else is sent again."""
    expected = {**BODY, "continuation_token": "t", "previous_interaction_id": "owner"}
    del expected["input"]

    assert expected == hop_body(BODY, "t", "owner")


@pytest.mark.parametrize(("more", "owner"), [({"store": False}, "owner"), ({}, None), ({"store": False}, None)])
def test_the_input_is_sent_again_where_nothing_is_stored_or_the_owner_is_not_known(
    more: dict[str, Any], owner: str | None
) -> None:
    """Then only the token is new."""
    assert {**BODY, **more, "continuation_token": "t"} == hop_body({**BODY, **more}, "t", owner)


def test_the_first_body_is_never_changed() -> None:
    """Neither it nor what it holds."""
    body = copy.deepcopy(BODY)
    hop_body(body, "t", "owner")

    assert BODY == body


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_hops", -1),
        ("max_hops", True),
        ("max_hops", 1.0),
        ("max_reconnects", -1),
        ("max_barren_hops", 0),
        ("max_barren_hops", None),
        ("max_output_tokens", 0),
        ("reconnect_base_seconds", 0),
        ("reconnect_base_seconds", None),
        ("reconnect_cap_seconds", float("inf")),
        ("reconnect_cap_seconds", "5"),
    ],
)
def test_a_policy_takes_only_what_can_be_a_bound(field: str, value: Any) -> None:
    """The error names the field and the value."""
    with pytest.raises(SpecError, match=rf"{field} must be .* it is {value!r}"):
        Policy(**{field: value})


def test_waits_double_up_to_a_cap() -> None:
    """The fraction spreads them over all of it, and no attempt is too many."""
    policy = Policy(reconnect_base_seconds=0.2, reconnect_cap_seconds=1.0)

    assert [0.2, 0.4, 0.8, 1.0, 1.0] == [policy.reconnect_seconds(attempt, 1.0) for attempt in range(5)]
    assert 0.1 == policy.reconnect_seconds(0, 0.5)
    assert 0.0 == policy.reconnect_seconds(3, 0.0)
    assert 1.0 == policy.reconnect_seconds(10**6, 1.0)
