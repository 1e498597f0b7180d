"""Commands: what each takes, and that the schema says the same as the reader does."""

from __future__ import annotations

import copy
import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.wire import METHODS, ErrorWord, Role, read_frame
from protocol.wire.envelope import Asked, Fault
from protocol.wire.words import ERRORS, ERRORS_OF_ALL, INVALID_PARAMS

from .checks import faults, fits
from .samples import FULL, NEEDED, frame

BY_ROLE = {
    "observe": {
        "hello",
        "ping",
        "ack",
        "agent.list",
        "agent.attach",
        "agent.detach",
        "agent.fetch",
        "request.list",
    },
    "decide": {"continuation.decide", "approval.decide"},
    "operate": {"agent.spawn", "agent.stop", "run.start", "run.cancel", "run.steer", "tools.submit"},
    "admin": set[str](),
}
each_method = pytest.mark.parametrize("method", METHODS)


def read(value: Any) -> Asked | Fault:
    return read_frame(json.dumps(value))


def test_every_command_of_the_protocol_exists_and_has_its_role() -> None:
    """Sixteen commands, under their names, each for whoever holds its role."""
    assert set(FULL) == set(METHODS) == set().union(*BY_ROLE.values())
    for role in get_args(Role):
        assert BY_ROLE[role] == {name for name, method in METHODS.items() if method.role == role}


@each_method
def test_a_command_with_all_its_parameters_is_read(method: str) -> None:
    """The reader takes it, and the schema knows every parameter by the same name."""
    asked = read(frame(method, FULL[method]))

    assert isinstance(asked, Asked)
    assert [] == faults(frame(method, FULL[method]), "ClientFrame")
    if method != "ack":
        assert set(FULL[method]) == {name.rstrip("_") for name in METHODS[method].params.__struct_fields__}


@each_method
def test_what_may_be_left_out(method: str) -> None:
    """A command with what it needs alone is read; where nothing is needed, `params` may be absent too."""
    least = {name: value for name, value in FULL[method].items() if name in NEEDED[method]}
    bare = {key: value for key, value in frame(method, {}).items() if key != "params"}

    assert isinstance(read(frame(method, least)), Asked)
    assert [] == faults(frame(method, least), "ClientFrame")
    assert (not NEEDED[method]) == isinstance(read(bare), Asked) == fits(bare, "ClientFrame")


@pytest.mark.parametrize(("method", "name"), [(method, name) for method in NEEDED for name in sorted(NEEDED[method])])
def test_what_may_not_be_left_out(method: str, name: str) -> None:
    """The command is refused as not fitting, with the name of what is missing."""
    params = {key: value for key, value in FULL[method].items() if key != name}
    fault = read(frame(method, params))

    assert isinstance(fault, Fault)
    assert (INVALID_PARAMS, True) == (fault.code, f"`{name}`" in fault.message)
    assert not fits(frame(method, params), "ClientFrame")


@each_method
def test_unknown_parameters_are_ignored(method: str) -> None:
    """A newer client may say more than a server knows."""
    if method != "ack":
        assert isinstance(read(frame(method, {**FULL[method], "new_in_v1": [1]})), Asked)
        assert fits(frame(method, {**FULL[method], "new_in_v1": [1]}), "ClientFrame")


@pytest.mark.parametrize(
    ("method", "name", "good", "bad"),
    [
        ("agent.fetch", "limit", [1, 500], [0, 501, "20", None, True]),
        ("agent.fetch", "from", [{"epoch": "e", "seq": 2**53}], ["head", {"epoch": "e", "seq": -1}, {"epoch": "e"}]),
        ("agent.attach", "agent", ["*", "a" * 64, "A_-9"], ["", "**", "a" * 65, "a b", "a\n", "ä", None]),
        ("agent.attach", "from", ["head", "start"], ["tail", None, 7]),
        ("agent.attach", "types", [None, [], ["x" * 64]], ["usage", [1], ["x" * 65]]),
        ("agent.detach", "agent", ["*"], [""]),
        ("agent.stop", "agent", ["a"], ["*", "a\n"]),
        ("agent.stop", "mode", ["boundary", "now"], ["later", None]),
        ("run.cancel", "mode", ["boundary", "now"], ["later", None]),
        ("run.start", "prompt", ["x", "x" * 8193], ["", None, 1]),
        ("run.start", "if_busy", ["refuse", "queue"], ["wait"]),
        ("run.start", "limits", [None, {}, {"max_cost": 0.01}], [{"max_cost": 0}, {"max_llm_calls": 0}, []]),
        ("run.start", "idem", ["x" * 64], ["", "x" * 65, 7, None]),
        ("run.steer", "text", ["x"], [""]),
        ("ack", "agent-1", [0, 2**53], [-1, 1.5, "3", 2**53 + 1]),
        ("hello", "client", [{}, "console", {"name": "x" * 64}], [7, None, "x" * 65, {"name": "x" * 65}]),
        ("continuation.decide", "decision", ["approve", "timeout", "sure"], [None, True]),
        ("continuation.decide", "grant", [1, 1.5, None], [0, 0.5, -1, "2", True]),
        ("continuation.decide", "discard_tool_calls", [True, False, [], ["c"]], ["c", None, [1]]),
        ("approval.decide", "arguments", [None, {}, {"a": [1]}], [[], "x"]),
        ("tools.submit", "results", [{}, {"c": None}], [[], None]),
    ],
)
def test_bounds(method: str, name: str, good: list[Any], bad: list[Any]) -> None:
    """What lies within them is read and what does not is refused: by the reader, and by the schema as well."""
    frames = [[frame(method, {**FULL[method], name: value}) for value in values] for values in (good, bad)]

    assert [True] * len(good) == [isinstance(read(value), Asked) for value in frames[0]]
    assert [False] * len(bad) == [isinstance(read(value), Asked) for value in frames[1]]
    assert [True] * len(good) == [fits(value, "ClientFrame") for value in frames[0]]
    assert [False] * len(bad) == [fits(value, "ClientFrame") for value in frames[1]]


VALUES = st.sampled_from([
    None,
    True,
    0,
    1,
    -1,
    501,
    0.5,
    2**53 + 1,
    "",
    "x",
    "*",
    "head",
    "boundary",
    "x" * 65,
    "a b",
    "a\n",
    [],
    ["x"],
    [1],
    {},
    {"x": 1},
    {"epoch": "e", "seq": 0},
    {"template": "t"},
])


@st.composite
def mangled(draw: st.DrawFn) -> dict[str, Any]:
    """A command of which something, somewhere, is another value or missing."""
    method = draw(st.sampled_from(sorted(METHODS)))
    value: dict[str, Any] = copy.deepcopy(frame(method, FULL[method]))
    for _ in range(draw(st.integers(1, 3))):
        place = value
        while inner := [item for item in place.values() if isinstance(item, dict) and item]:
            if place is not value and draw(st.booleans()):
                break
            place = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(sorted(set(place) - {"jsonrpc"}) or ["new"]))
        if draw(st.booleans()):
            place.pop(key, None)
        else:
            place[key] = copy.deepcopy(draw(VALUES))
        if not isinstance(value.get("params"), dict):
            break
    return value


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(mangled())
def test_the_schema_and_the_reader_agree(value: dict[str, Any]) -> None:
    """Whatever is wrong with a command, `jsonrpc` aside: what one of them takes, the other takes."""
    assert isinstance(read(value), Asked) == fits(value, "ClientFrame")


def test_every_word_of_refusal_is_explained() -> None:
    """Each has its text, and each command names the ones it may be refused with, once."""
    assert set(get_args(ErrorWord)) == set(ERRORS)
    for method in METHODS.values():
        assert len({*method.errors, *ERRORS_OF_ALL}) == len(method.errors) + len(ERRORS_OF_ALL)


@each_method
def test_a_command_that_is_done_once_says_so(method: str) -> None:
    """`idem` is among the parameters exactly of those, and they may be refused for it."""
    rule = METHODS[method]

    assert rule.idempotent == ("idem" in NEEDED[method]) == ("idem_conflict" in rule.errors)
