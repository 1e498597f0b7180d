"""The events of `onward.v1`: their names and fields are a contract."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest

from protocol import events
from protocol.codec import decode_event, encode_event
from protocol.events import TERMINAL_EVENTS, ContinuationRequired, Event, EventUnion, RunEvent

from .samples import SAMPLES

NAMES = (
    "run_started",
    "step_started",
    "content_delta",
    "reasoning_delta",
    "tool_call_delta",
    "tool_requested",
    "tool_started",
    "tool_progress",
    "tool_finished",
    "handed_off",
    "context_compacted",
    "hop_started",
    "hop_finished",
    "rollback",
    "model_retry",
    "warning",
    "step_finished",
    "usage",
    "message_queued",
    "message_delivered",
    "message_dropped",
    "continuation_required",
    "continuation_resolved",
    "approval_required",
    "approval_resolved",
    "limit_reached",
    "finalizing",
    "run_paused",
    "run_resumed",
    "agent_spawned",
    "agent_failed",
    "agent_stopped",
    "agent_warning",
    "run_finished",
    "run_failed",
    "run_cancelled",
)
"""The words of the protocol, as the document has them."""

WRITTEN_OUT = {
    "tool_requested": {"call", "name", "arguments", "repaired"},
    "tool_finished": {"call", "name", "status", "started", "text"},
    "hop_finished": {"hop", "interaction", "status", "usage"},
    "rollback": {"message", "to", "reasoning_to", "calls_to"},
    "warning": {"code", "text", "call"},
    "message_dropped": {"message", "reason"},
    "approval_required": {"request", "call", "name", "arguments", "expires_in_seconds", "digest"},
    "limit_reached": {"limit"},
    "run_paused": {"request", "calls"},
    "run_resumed": {"counters"},
    "handed_off": {"agent", "model"},
    "context_compacted": {
        "by",
        "messages_before",
        "messages_after",
        "tokens_before",
        "tokens_after",
        "summary_chars",
        "refused",
    },
    "agent_warning": {"agent", "code", "text"},
    "run_finished": {"summary"},
    "continuation_resolved": {
        "request",
        "outcome",
        "by",
        "message",
        "tool_message",
        "granted",
        "effect",
        "discarded",
    },
    "continuation_required": {
        "request",
        "limit",
        "max_iterations",
        "total_iterations",
        "tool_calls",
        "text",
        "usage",
        "cost",
        "elapsed_seconds",
        "expires_in_seconds",
        "decisions",
        "default_grant",
        "max_grant",
        "on_timeout",
        "digest",
    },
}
"""Fields that clients are promised, `run` and `agent_path` aside."""


def fields_of(event: Event) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_event(event))
    return value


def test_every_event_of_the_protocol_exists() -> None:
    """The union holds exactly the events of the document, under their names there."""
    members = get_args(EventUnion)

    assert sorted(NAMES) == sorted(member.__struct_config__.tag for member in members)
    assert {type(sample) for sample in SAMPLES} == set(members)
    assert len(members) == len(SAMPLES)


def test_every_event_class_can_be_imported() -> None:
    """What stands in the union is public, and nothing that is an event is left out of it."""
    public = {getattr(events, name) for name in events.__all__}
    classes = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Event)}

    assert classes - {Event, RunEvent} == set(get_args(EventUnion))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type)
def test_every_event_round_trips(sample: Event) -> None:
    """An event decodes, by its `type`, to what it was."""
    data = encode_event(sample)

    assert sample == decode_event(data)
    assert sample.type == json.loads(data)["type"]
    assert data.startswith(b'{"type":"')


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type)
def test_every_field_is_on_the_wire(sample: Event) -> None:
    """What is set is written, under the name of the field."""
    assert {"type", *sample.__struct_fields__} == set(fields_of(sample))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type)
def test_whose_event_it_is(sample: Event) -> None:
    """Each carries `run`, and `agent_path` where a sub-agent speaks; those of an agent carry `agent`."""
    expected = {"agent"} if sample.type.startswith("agent_") else {"run", "agent_path"}

    assert expected <= set(fields_of(sample))


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_fields_that_clients_are_promised(name: str) -> None:
    """The documented fields, no less and no more."""
    sample = next(sample for sample in SAMPLES if sample.type == name)

    assert WRITTEN_OUT[name] == set(sample.__struct_fields__) - {"run", "agent_path"}


def test_a_root_does_not_write_its_path() -> None:
    """What is absent on the wire takes no room."""
    assert b'{"type":"tool_started","run":"r","call":"c","name":"n"}' == encode_event(
        events.ToolStarted(run="r", call="c", name="n")
    )


def test_the_terminal_events() -> None:
    """Three ways to end, each with what the run had come to; the messages are not among it."""
    ends = [sample for sample in SAMPLES if isinstance(sample, TERMINAL_EVENTS)]

    assert ["run_finished", "run_failed", "run_cancelled"] == [end.type for end in ends]
    for end in ends:
        assert "messages" not in fields_of(end)["summary"]
        assert {"text", "finish_reason", "limit", "usage", "counters"} <= set(fields_of(end)["summary"])


def test_an_event_cannot_be_changed() -> None:
    """A log and its readers share one object."""
    with pytest.raises(AttributeError):
        SAMPLES[0].run = "another"  # type: ignore[attr-defined]


def test_unknown_fields_are_ignored_and_unknown_types_are_named() -> None:
    """A field may be added within v1; a type that is not known is told apart from a broken event."""
    assert events.MessageDelivered(run="r", message="m") == decode_event(
        '{"type":"message_delivered","run":"r","message":"m","new":1}'
    )
    with pytest.raises(msgspec.ValidationError, match="brand_new"):
        decode_event('{"type":"brand_new","run":"r"}')


def test_a_schema_can_be_generated() -> None:
    """JSON Schema of all events, each with its description."""
    schema = msgspec.json.schema(EventUnion)
    definitions = schema["$defs"]

    assert len(NAMES) == len(schema["anyOf"]) == len(schema["discriminator"]["mapping"])
    for member in get_args(EventUnion):
        assert definitions[member.__name__]["description"]
        assert "type" in definitions[member.__name__]["required"]


def test_a_question_is_its_event() -> None:
    """What a provider is asked is what clients see: one object."""
    from protocol.gate import ContinuationRequest

    assert ContinuationRequired is ContinuationRequest
