"""The reducer in JavaScript and the one in Python come to the same state, whatever they are given."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.client import ClientPace
from protocol.codec import decode, decode_event, encode
from protocol.events import Event
from protocol.wire import may_reconnect
from protocol.wire.cursor import Numbered
from protocol.wire.reducer import apply_event, start_from
from protocol.wire.replies import Attached
from protocol.wire.state import ClientState
from tests.peers._node import NODE, PROGRAMS

Items = list[tuple[dict[str, Any], float]]
REDUCE = PROGRAMS / "reduce.mjs"
MAPS = {"runs", "requests", "messages", "tools", "steering"}


def in_python(items: Items) -> Any:
    """The state, as JSON has it: what the program of node prints."""
    state = ClientState(agent="a", epoch="e")
    for item, now in items:
        if item["kind"] == "event":
            numbered = Numbered(item["number"], decode_event(json.dumps(item["event"])), item["last"])
            apply_event(state, numbered, now=now)
        else:
            state = start_from("a", decode(json.dumps(item["reply"]), Attached), now=now, name=state.name)
    return json.loads(encode(plain(state)))


def plain(view: Any) -> Any:
    """A view as the program prints it: what is a map there is a list of pairs."""
    if not attrs.has(type(view)) or type(view).__module__ != "protocol.wire.state":
        return [plain(item) for item in view] if isinstance(view, list) else view
    fields = {field.name: getattr(view, field.name) for field in attrs.fields(type(view))}
    return {
        name: [[key, plain(item)] for key, item in value.items()] if name in MAPS else plain(value)
        for name, value in fields.items()
    }


@attrs.define
class InNode:
    """The program of node: a line in, a line out."""

    process: subprocess.Popen[str]

    def __call__(self, line: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def in_node() -> Iterator[InNode]:
    with subprocess.Popen([NODE, REDUCE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield InNode(process)
        assert process.stdin is not None
        process.stdin.close()


small = st.integers(-2, 5)
texts = st.text(st.sampled_from("aé日\U0001f600\u200d "), max_size=6)
runs = st.sampled_from([("r1", []), ("r2", ["sub"]), ("__proto__", ["sub", "sub"]), ("7", [])])
messages = st.sampled_from(["m1", "m2", "constructor"])
calls = st.sampled_from(["c1", "12", "3", "__proto__"])
requests = st.sampled_from(["q1", "q2", "1"])
left = st.one_of(st.none(), st.floats(0, 600))
tokens = st.one_of(st.none(), st.integers(0, 2**40))
usage = st.fixed_dictionaries({
    "uncached_input_tokens": tokens,
    "cache_read_tokens": tokens,
    "cache_write_tokens": tokens,
    "output_tokens": tokens,
    "reasoning_tokens": tokens,
    "complete": st.booleans(),
})
counters = st.fixed_dictionaries({
    name: st.integers(0, 9) for name in ("steps", "llm_calls", "tool_iterations", "window", "tool_calls")
})
limit = st.fixed_dictionaries({"name": st.just("llm_calls"), "max": st.integers(1, 9), "used": st.integers(1, 9)})
summary = st.fixed_dictionaries({
    "text": texts,
    "answered": st.booleans(),
    "finish_reason": st.just("stop"),
    "stopped_by": st.just("model"),
    "stop_reason": st.none(),
    "limit": st.one_of(st.none(), limit),
    "finalized": st.none(),
    "usage": usage,
    "context_tokens": st.none(),
    "cost": st.one_of(st.none(), st.floats(0, 3)),
    "counters": counters,
    "elapsed_seconds": st.floats(0, 9),
})
pending = st.lists(
    st.fixed_dictionaries({"id": calls, "name": texts, "arguments": st.dictionaries(texts, small, max_size=2)}),
    max_size=2,
)
OF_A_RUN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "run_started": {"agent": texts, "model": texts, "prompt": texts},
    "handed_off": {"agent": texts, "model": texts},
    "context_compacted": {
        "by": texts,
        "messages_before": small,
        "messages_after": small,
        "tokens_before": small,
        "tokens_after": small,
    },
    "step_started": {"step": small},
    "content_delta": {"message": messages, "text": texts},
    "reasoning_delta": {"message": messages, "text": texts},
    "tool_call_delta": {"message": messages, "text": texts, "index": st.one_of(small, st.integers(0, 5000))},
    "rollback": {"message": messages, "to": small, "reasoning_to": small, "calls_to": small},
    "hop_started": {"hop": small},
    "hop_finished": {"hop": small, "interaction": st.none(), "status": texts, "usage": usage},
    "usage": {"usage": usage, "cost": st.none(), "context_tokens": st.none()},
    "step_finished": {"step": small, "finish_reason": st.none(), "usage": usage},
    "model_retry": {"attempt": small, "seconds": st.just(1.5), "reason": texts},
    "warning": {"code": texts, "text": texts},
    "tool_requested": {"call": calls, "name": texts, "arguments": st.dictionaries(texts, small, max_size=2)},
    "tool_started": {"call": calls, "name": texts},
    "tool_progress": {"call": calls, "text": texts},
    "tool_finished": {
        "call": calls,
        "name": texts,
        "status": st.sampled_from(["ok", "error"]),
        "started": st.booleans(),
        "text": texts,
    },
    "message_queued": {"message": messages, "text": texts},
    "message_delivered": {"message": messages},
    "message_dropped": {"message": messages, "reason": texts},
    "limit_reached": {"limit": limit},
    "finalizing": {"limit": limit},
    "continuation_required": {
        "request": requests,
        "limit": limit,
        "max_iterations": st.just(1),
        "total_iterations": st.just(1),
        "tool_calls": pending,
        "text": texts,
        "usage": usage,
        "cost": st.none(),
        "elapsed_seconds": st.just(1.5),
        "expires_in_seconds": left,
        "decisions": st.just(["approve", "decline"]),
        "default_grant": st.just(1.0),
        "max_grant": st.none(),
        "digest": st.just("d1"),
    },
    "continuation_resolved": {"request": requests, "outcome": st.just("approved"), "by": st.none()},
    "approval_required": {
        "request": requests,
        "call": calls,
        "name": texts,
        "arguments": st.dictionaries(texts, small, max_size=2),
        "expires_in_seconds": left,
        "digest": st.just("d1"),
    },
    "approval_resolved": {"request": requests, "call": calls, "outcome": st.just("denied"), "by": texts},
    "run_paused": {"request": requests, "calls": pending},
    "run_resumed": {"counters": counters},
    "run_finished": {"summary": summary},
    "run_failed": {"summary": summary, "error": st.fixed_dictionaries({"code": texts, "message": texts})},
    "run_cancelled": {"summary": summary, "reason": texts},
}
OF_AN_AGENT: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "agent_spawned": {"agent": texts, "name": texts},
    "agent_warning": {"agent": texts, "code": texts, "text": texts},
    "agent_failed": {"agent": texts, "error": st.fixed_dictionaries({"code": texts, "message": texts})},
    "agent_stopped": {"agent": texts, "reason": texts},
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from([*OF_A_RUN, *OF_AN_AGENT]))
    fields = OF_A_RUN.get(kind) or OF_AN_AGENT[kind]
    event = {"type": kind, **{name: draw(strategy) for name, strategy in fields.items()}}
    if kind in OF_A_RUN:
        event["run"], path = draw(runs)
        if path:
            event["agent_path"] = path
    return event


open_request = st.fixed_dictionaries({
    "kind": st.just("approval"),
    "agent": st.just("a"),
    "agent_path": st.just([]),
    "run": st.just("r1"),
    **OF_A_RUN["approval_required"],
})
snapshots = st.fixed_dictionaries({
    "state": st.sampled_from(["idle", "running", "waiting", "paused"]),
    "run": st.sampled_from([None, "r1"]),
    "step_number": st.integers(0, 9),
    "counters": st.one_of(st.none(), counters),
    "usage": st.one_of(st.none(), usage),
    "history": st.lists(st.fixed_dictionaries({"role": st.just("user"), "text": texts}), max_size=2),
    "children": st.just([{"run": "r2", "agent_path": ["sub"], "state": "running"}]),
})
attaches = st.fixed_dictionaries({
    "epoch": st.just("e"),
    "head": st.just(3),
    "oldest": st.just(1),
    "recovered": st.booleans(),
    "open_requests": st.lists(open_request, max_size=2),
    "snapshot": st.one_of(st.none(), snapshots),
})


@st.composite
def sequences(draw: st.DrawFn) -> Items:
    """Events of any kind in any order: more than an agent would ever say."""
    items: Items = []
    if draw(st.booleans()):
        items.append(({"kind": "attached", "agent": "a", "reply": draw(attaches)}, 5.0))
    for number, event in enumerate(draw(st.lists(events(), max_size=25)), 1):
        items.append((
            {"kind": "event", "agent": "a", "epoch": "e", "number": number, "last": number, "event": event},
            float(number),
        ))
    return items


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(items=sequences())
def test_both_reducers_come_to_one_state(in_node: InNode, items: Items) -> None:
    """Of any events in any order, from any snapshot."""
    assert in_python(items) == in_node(items)


@pytest.mark.slow
def test_both_know_the_same_events_codes_and_waits(in_node: InNode) -> None:
    """What the module knows of events, close codes and waits is what the protocol says."""
    types, told = in_node("types"), in_node("waits")
    pace = ClientPace()

    assert sorted(str(kind.__struct_config__.tag) for kind in leaves(Event)) == sorted(types)
    assert {*OF_A_RUN, *OF_AN_AGENT} == set(types)
    assert [code for code in range(5100) if may_reconnect(code)] == told["codes"]
    assert [pace.wait_seconds(tries, 0.5) for tries in (0, 1, 2, 5, 6, 7, 50, 5000)] == told["waits"]


def leaves(kind: type[Event]) -> list[type[Event]]:
    """All events that have no further kinds below them and are part of the protocol."""
    below = [sub for sub in kind.__subclasses__() if sub.__module__.startswith("protocol.events")]
    return [leaf for sub in below for leaf in leaves(sub)] if below else [kind]
