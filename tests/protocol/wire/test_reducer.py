"""What a client knows of an agent, event by event."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from protocol.events import Event, EventUnion
from protocol.limits import Counters
from protocol.usage import Usage
from protocol.wire.cursor import Numbered
from protocol.wire.reducer import KEPT_RUNS, KEPT_WARNINGS, apply_event, start_from
from protocol.wire.replies import Attached, ChildInfo, OpenApproval, Snapshot
from protocol.wire.state import ClientState

USAGE = Usage(10, 0, 0, 5, None, complete=True)
COUNTERS = {"steps": 1, "llm_calls": 1, "tool_iterations": 1, "window": 1, "tool_calls": 1}
SUMMARY = {
    "text": "done",
    "answered": True,
    "finish_reason": "stop",
    "stopped_by": "model",
    "stop_reason": None,
    "limit": None,
    "finalized": None,
    "usage": msgspec.to_builtins(USAGE),
    "context_tokens": None,
    "cost": None,
    "counters": COUNTERS,
    "elapsed_seconds": 1.0,
}
ASKED: dict[str, Any] = {
    "request": "q1",
    "call": "c1",
    "name": "t",
    "arguments": {},
    "expires_in_seconds": 60.0,
    "digest": "d",
}


def event(kind: str, **fields: Any) -> Event:
    if not kind.startswith("agent_"):
        fields = {"run": "r", **fields}
    made: Event = msgspec.convert({"type": kind, **fields}, EventUnion)
    return made


def told(*events: Event, state: ClientState | None = None, now: float = 100) -> ClientState:
    """The state behind these events."""
    state = state or ClientState(agent="a")
    for one in events:
        apply_event(state, Numbered(state.seq + 1, one, state.seq + 1), now=now)
    return state


STARTED = event("run_started", agent="ada", model="m", prompt="go")
STEP = event("step_started", step=1)


def said(text: str, **fields: Any) -> Event:
    return event("content_delta", **{"message": "m", "text": text, **fields})


def test_a_run_goes_from_its_start_to_its_end() -> None:
    """The agent is idle, running, idle; the run keeps what it came to."""
    state = told(event("agent_spawned", agent="a", name="ada"))
    before = state.status
    told(STARTED, state=state)
    during = (state.status, state.run)
    told(event("run_finished", summary=SUMMARY), state=state)
    run = state.runs["r"]

    assert ("idle", ("running", "r"), "idle", None) == (before, during, state.status, state.run)
    assert ("ada", 3, "go", "finished", USAGE) == (state.name, state.seq, run.prompt, run.status, run.usage)
    assert Counters(1, 1, 1, 1, 1) == state.counters


def test_texts_reasoning_and_arguments_grow() -> None:
    """Each by its message, arguments by their index."""
    state = told(
        STARTED,
        STEP,
        said("Hel"),
        said("lo"),
        event("reasoning_delta", message="m", text="hm"),
        event("tool_call_delta", message="m", index=1, text='{"a"', name="t"),
        event("tool_call_delta", message="m", index=1, text=":1}"),
        said("other", message="n"),
    )
    message = state.runs["r"].messages["m"]

    assert ("Hello", "hm", ["", '{"a":1}'], False) == (message.text, message.reasoning, message.calls, message.partial)
    assert "other" == state.runs["r"].messages["n"].text


@pytest.mark.parametrize("index", [-1, 1_000_000_000])
def test_an_index_beyond_reason_is_passed_over(index: int) -> None:
    """No list of a billion texts is made."""
    state = told(STARTED, event("tool_call_delta", message="m", index=index, text="x"))

    assert [] == state.runs["r"].messages["m"].calls


def test_a_rollback_takes_back_what_was_shown() -> None:
    """By characters, as a person counts them, not by bytes or halves of them."""
    state = told(
        STARTED,
        said("\U0001f600\U0001f600ab"),
        event("reasoning_delta", message="m", text="hm"),
        event("tool_call_delta", message="m", index=0, text="x"),
        event("rollback", message="m", to=2, reasoning_to=1, calls_to=0),
        said("c"),
    )
    message = state.runs["r"].messages["m"]

    assert ("\U0001f600\U0001f600c", "h", []) == (message.text, message.reasoning, message.calls)


def test_tools_go_from_request_to_result() -> None:
    """With the last word from inside."""
    state = told(
        STARTED,
        event("tool_requested", call="c", name="t", arguments={"a": 1}),
        event("tool_started", call="c", name="t"),
        event("tool_progress", call="c", text="half"),
    )
    tool = state.runs["r"].tools["c"]
    during = tool.status
    told(event("tool_finished", call="c", name="t", status="ok", started=True, text="all"), state=state)

    assert ("running", "ok", "half", "all", {"a": 1}) == (during, tool.status, tool.progress, tool.text, tool.arguments)


def test_a_question_waits_until_it_is_resolved() -> None:
    """With its seconds on the client's own clock; the agent waits as long as there is one."""
    state = told(STARTED, event("approval_required", **ASKED), event("approval_required", **{**ASKED, "request": "q2"}))
    asked = state.requests["q1"]
    before, left = state.status, [asked.seconds_left(now) for now in (110, 1000)]
    resolved = [
        event("approval_resolved", request=request, call="c1", outcome="denied", by=None) for request in ("q1", "q2")
    ]
    told(resolved[0], state=state)
    between = state.status
    told(resolved[1], state=state)

    assert ("OpenApproval", "a") == (type(asked.request).__name__, asked.request.agent)
    assert [50, 0] == left
    assert ("waiting", "waiting", "running", {}) == (before, between, state.status, state.requests)


def test_a_pause_waits_until_the_run_goes_on() -> None:
    """It has no deadline."""
    state = told(STARTED, event("run_paused", request="q", calls=[]))
    paused = state.requests["q"]
    before = state.status
    told(event("run_resumed", counters=COUNTERS), state=state)

    assert ("OpenPause", None) == (type(paused.request).__name__, paused.seconds_left(1))
    assert ("paused", "running", {}) == (before, state.status, state.requests)


def test_usage_is_the_sum_of_steps_or_what_was_reported() -> None:
    """A report is the whole so far; what was told hop by hop is not counted again at the end of the step."""
    usage = msgspec.to_builtins(USAGE)
    step = event("step_finished", step=1, finish_reason="stop", usage=usage)
    hop = event("hop_finished", hop=1, interaction=None, status="ok", usage=usage)
    report = event("usage", usage=msgspec.to_builtins(USAGE + USAGE + USAGE), cost=None, context_tokens=None)
    state = told(STARTED, step, step)
    twice = state.runs["r"].usage
    told(hop, report, step, state=state)
    thrice = state.runs["r"].usage
    told(step, state=state)

    assert (USAGE + USAGE, USAGE + USAGE + USAGE) == (twice, thrice)
    assert USAGE + USAGE + USAGE + USAGE == state.runs["r"].usage


def test_messages_to_a_run_are_queued_and_delivered_or_dropped() -> None:
    """As the person who sent them wants to see."""
    state = told(
        STARTED,
        event("message_queued", message="x", text="be quick"),
        event("message_queued", message="y", text="be slow"),
        event("message_delivered", message="x"),
        event("message_dropped", message="y", reason="over"),
    )

    assert {"x": ("be quick", "delivered"), "y": ("be slow", "dropped")} == {
        id: (steering.text, steering.status) for id, steering in state.runs["r"].steering.items()
    }


@pytest.mark.parametrize(
    ("kind", "more"), [("run_failed", {"error": {"code": "c", "message": "why"}}), ("run_cancelled", {"reason": "why"})]
)
def test_the_end_of_a_run_closes_what_waited(kind: str, more: dict[str, Any]) -> None:
    """And says why."""
    state = told(STARTED, event("approval_required", **ASKED), event(kind, summary=SUMMARY, **more))

    assert (kind.removeprefix("run_"), "why", {}, "idle") == (
        state.runs["r"].status,
        state.runs["r"].reason,
        state.requests,
        state.status,
    )


def test_a_sub_agents_run_is_not_the_agents_own() -> None:
    """It is there beside it; its question makes the agent wait; its end does not end the agent's run."""
    below = {"run": "s", "agent_path": ["sub"]}
    state = told(STARTED, event("run_started", agent="b", model="m", prompt="p", **below))
    told(event("approval_required", **ASKED, **below), state=state)
    waits = state.status
    told(event("run_finished", summary=SUMMARY, **below), state=state)

    assert ("waiting", "running", "r") == (waits, state.status, state.run)
    assert ("finished", ("sub",)) == (state.runs["s"].status, state.runs["s"].agent_path)


def test_a_stopped_agent_stays_stopped() -> None:
    """Whatever still waited waits no longer."""
    state = told(STARTED, event("approval_required", **ASKED), event("agent_stopped", agent="a", reason="enough"))
    told(event("agent_warning", agent="a", code="c", text="late"), state=state)

    assert ("stopped", None, {}) == (state.status, state.run, state.requests)


def test_warnings_are_kept() -> None:
    """Those of a run, of the agent, and why it failed."""
    error = {"code": "crashed", "message": "why"}
    state = told(
        STARTED,
        event("warning", code="slow", text="it is"),
        event("agent_warning", agent="a", code="odd", text="it was"),
        event("agent_failed", agent="a", error=error),
    )

    assert [("slow", "it is"), ("odd", "it was"), ("crashed", "why")] == [
        (warning.code, warning.text) for warning in state.warnings
    ]


def test_what_is_kept_is_bounded() -> None:
    """Of runs that have ended and of warnings, the last ones."""
    state = ClientState(agent="a")
    for number in range(60):
        run = {"run": f"r{number}"}
        told(
            event("run_started", agent="a", model="m", prompt="p", **run),
            event("warning", code=str(number), text="", **run),
            event("run_finished", summary=SUMMARY, **run),
            state=state,
        )

    assert [f"r{number}" for number in range(60 - KEPT_RUNS - 1, 60)] == list(state.runs)
    assert [str(number) for number in range(60 - KEPT_WARNINGS, 60)] == [warning.code for warning in state.warnings]


def snapshot(**changes: Any) -> Attached:
    known: dict[str, Any] = {
        "state": "waiting",
        "run": "r",
        "step_number": 3,
        "counters": Counters(3, 3, 2, 1, 4),
        "usage": USAGE,
        "history": (msgspec.Raw(b'{"role":"user","text":"hi"}'),),
        "children": (ChildInfo(run="s", agent_path=("sub",), state="running"),),
        **changes,
    }
    request = OpenApproval(run="s", agent_path=("sub",), agent="a", **ASKED)
    return Attached(epoch="e", head=41, oldest=7, recovered=False, open_requests=(request,), snapshot=Snapshot(**known))


def test_a_snapshot_is_where_it_begins() -> None:
    """All that it says, and the requests with their seconds from now."""
    state = start_from("a", snapshot(), now=100, name="ada")

    assert ("ada", "e", 41, "waiting", "r") == (state.name, state.epoch, state.seq, state.status, state.run)
    assert (3, USAGE, ("sub",)) == (state.runs["r"].step, state.runs["r"].usage, state.runs["s"].agent_path)
    assert ([b'{"role":"user","text":"hi"}'], 30) == (
        [bytes(message) for message in state.history],
        state.requests["q1"].seconds_left(130),
    )


def test_a_message_that_was_begun_before_the_snapshot_is_partial() -> None:
    """A rollback in it leaves nothing, as nobody knows where it stands; the next message is whole."""
    state = start_from("a", snapshot(), now=100)
    told(said("...end of it"), state=state)
    partial = state.runs["r"].messages["m"]
    before = (partial.text, partial.partial)
    told(event("rollback", message="m", to=40), event("step_started", step=4), said("x", message="n"), state=state)

    assert (("...end of it", True), "", False) == (before, partial.text, state.runs["r"].messages["n"].partial)


def test_a_reply_without_a_snapshot_begins_at_the_first_number() -> None:
    """All that there is follows as events."""
    state = start_from("a", Attached(epoch="e", head=9, oldest=1, recovered=True, open_requests=()), now=0)

    assert ("e", 0, "idle", {}) == (state.epoch, state.seq, state.status, state.runs)


def test_compactions_are_counted() -> None:
    """A run's view says how often its conversation was compacted; what was shown stays shown."""
    sizes = {"messages_before": 9, "messages_after": 3, "tokens_before": 900, "tokens_after": 300}
    compacted = event("context_compacted", by="trim", **sizes)
    state = told(STARTED, STEP, event("content_delta", message="m", text="hi"), compacted, compacted)

    assert (2, "hi") == (state.runs["r"].compactions, state.runs["r"].messages["m"].text)
