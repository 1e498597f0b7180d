"""The schema: every event fits it, nothing that is broken does, and it can be read by itself."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gateway._pages import Pages
from protocol.codec import decode_event, encode_event
from protocol.events import Event, EventUnion
from protocol.turns import Message
from protocol.wire.schema import wire_schema, wire_schema_bytes
from tests.protocol.samples import SAMPLES

from .checks import faults, fits
from .samples import MESSAGES

DEFS = wire_schema()["$defs"]


def value_of(event: Event) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_event(event))
    return value


def test_it_is_a_schema() -> None:
    """Of the dialect that it names; every reference leads somewhere, and every definition is used."""
    text = wire_schema_bytes().decode()
    used = set(re.findall(r'"#/\$defs/(\w+)"', text))

    jsonschema.Draft202012Validator.check_schema(wire_schema())
    assert set(re.findall(r'"\$ref": "([^"]+)"', text)) == {f"#/$defs/{name}" for name in used}
    assert used | {"Params", "Results"} == set(DEFS)


def test_it_is_made_of_one_mould() -> None:
    """The bytes that are served are the schema, the same at every call."""
    assert json.loads(json.dumps(wire_schema())) == json.loads(wire_schema_bytes())
    assert wire_schema_bytes.__wrapped__() == wire_schema_bytes()
    assert wire_schema_bytes() == Pages(ready=lambda: True).schema()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type)
def test_every_event_fits(sample: Event) -> None:
    """With all its fields, as an event and as nothing else."""
    assert [] == faults(value_of(sample), "Event")
    assert [] == faults(value_of(sample), type(sample).__name__)
    assert set(value_of(sample)) == set(DEFS[type(sample).__name__]["properties"])


def test_the_union_holds_every_event_once() -> None:
    """By its `type`."""
    tags = [DEFS[member["$ref"].rpartition("/")[2]]["properties"]["type"]["const"] for member in DEFS["Event"]["oneOf"]]

    assert [kind.__struct_config__.tag for kind in get_args(EventUnion)] == tags


def test_what_is_no_event_does_not_fit() -> None:
    """Neither an unknown type, nor what only stands for events; the log holds both kinds."""
    assert not fits({"type": "brand_new", "run": "r"}, "Event")
    assert not fits({"type": "skipped", "n": 2}, "Event")
    assert fits({"type": "skipped", "n": 2}, "LoggedEvent")
    assert not fits({"type": "skipped"}, "LoggedEvent")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_of_a_history_fits(message: Message) -> None:
    """All three roles, with all kinds of parts."""
    assert [] == faults(json.loads(msgspec.json.encode(message)), "Message")


WRONG: dict[type, Any] = {str: 5, bool: "yes", int: "3", float: "3", list: {"0": 1}, dict: ["a"], type(None): {"a": 1}}


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """An event with a field that it needs missing, or with one of another type."""
    sample = draw(st.sampled_from(SAMPLES))
    value = value_of(sample)
    schema = DEFS[type(sample).__name__]
    if draw(st.booleans()):
        del value[draw(st.sampled_from(sorted(schema["required"])))]
    else:
        name = draw(st.sampled_from(sorted(value)))
        value[name] = WRONG[type(value[name])]
    return value


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(broken())
def test_no_broken_event_fits(value: dict[str, Any]) -> None:
    """The schema refuses what the decoder refuses."""
    assert not fits(value, "Event")
    with pytest.raises(msgspec.ValidationError):
        decode_event(json.dumps(value))


def test_every_event_and_command_says_what_it_is() -> None:
    """A reader of the schema alone is told, in words of JSON and without the names of rules that stand elsewhere."""
    text = wire_schema_bytes().decode()
    silent = [name for name, schema in DEFS.items() if not schema.get("description") and not name.endswith("Message")]

    assert [] == silent
    assert [] == re.findall(r"\([A-Z]\d+[^)]*\)|\w+\.md|`None`|`True`|`False`", text)


def test_fields_are_described() -> None:
    """By the text under them, also where it stands in the class that theirs is made from."""
    assert "sub-agent" in DEFS["ContentDelta"]["properties"]["agent_path"]["description"]
    assert "sub-agent" in DEFS["ReasoningDelta"]["properties"]["agent_path"]["description"]
    assert DEFS["AgentAttach"]["properties"]["from"]["description"].startswith("Behind a position")
    assert "description" not in wire_schema({})["$defs"]["AgentAttach"]["properties"]["from"]
