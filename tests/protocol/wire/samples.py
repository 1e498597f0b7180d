"""Commands and replies as they may be: with all their fields, and with what must be there."""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.codec import encode
from protocol.limits import Counters
from protocol.turns import (
    AssistantMessage,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from protocol.wire import WireLimits
from protocol.wire.replies import (
    AgentInfo,
    Agents,
    Attached,
    AttachedAll,
    ChildInfo,
    Decided,
    Fetched,
    Nothing,
    OpenApproval,
    OpenContinuation,
    OpenPause,
    Reply,
    Requests,
    Snapshot,
    Spawned,
    Started,
    Steered,
    Welcome,
)
from tests.protocol.samples import SAMPLES, USAGE

HERE = {"epoch": "epoch-1", "seq": 7}
FULL: dict[str, dict[str, Any]] = {
    "hello": {"client": {"name": "console", "version": "2"}, "want": ["colours"]},
    "ping": {},
    "ack": {"agent-1": 12, "agent-2": 0},
    "agent.list": {},
    "agent.spawn": {"spec": {"template": "auditor", "name": "a", "overrides": {"max_llm_calls": 3}}, "idem": "i-1"},
    "agent.stop": {"agent": "agent-1", "mode": "now", "reason": "enough"},
    "agent.attach": {"agent": "*", "from": HERE, "deltas": False, "types": ["usage"]},
    "agent.detach": {"agent": "agent-1"},
    "agent.fetch": {"agent": "agent-1", "from": HERE, "limit": 20},
    "run.start": {
        "agent": "agent-1",
        "prompt": "go",
        "idem": "i-1",
        "limits": {
            "max_tool_iterations": 1,
            "max_llm_calls": 2,
            "max_tool_calls": 3,
            "max_total_tokens": 4,
            "max_cost": 0.5,
            "wall_clock_seconds": 60,
        },
        "if_busy": "queue",
    },
    "run.cancel": {"run": "run-1", "mode": "now", "reason": "enough"},
    "run.steer": {"run": "run-1", "text": "faster", "idem": "i-1"},
    "tools.submit": {"run": "run-1", "results": {"call-1": {"any": ["JSON", 1, None]}}},
    "request.list": {},
    "continuation.decide": {
        "request": "q-1",
        "decision": "approve",
        "digest": "abc",
        "idem": "i-1",
        "message": "go on",
        "discard_tool_calls": ["call-1"],
        "tool_message": "not this one",
        "grant": 2,
    },
    "approval.decide": {
        "request": "q-1",
        "decision": "approve",
        "digest": "abc",
        "idem": "i-1",
        "reason": "because",
        "arguments": {"a": 1},
    },
}
"""By method, every parameter there is."""

NEEDED: dict[str, set[str]] = {
    "hello": set(),
    "ping": set(),
    "ack": set(),
    "agent.list": set(),
    "agent.spawn": {"spec", "idem"},
    "agent.stop": {"agent"},
    "agent.attach": {"agent"},
    "agent.detach": {"agent"},
    "agent.fetch": {"agent", "from"},
    "run.start": {"agent", "prompt", "idem"},
    "run.cancel": {"run"},
    "run.steer": {"run", "text", "idem"},
    "tools.submit": {"run", "results"},
    "request.list": set(),
    "continuation.decide": {"request", "decision", "digest", "idem"},
    "approval.decide": {"request", "decision", "digest", "idem"},
}
"""By method, the parameters that must be there."""


def frame(method: str, params: Any, id: Any = 1) -> dict[str, Any]:
    """A command as it is sent."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _open(kind: Any, of: str, **more: Any) -> Any:
    """A request that waits, with all that its event says."""
    event = next(sample for sample in SAMPLES if sample.type == of)
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return kind(**fields | {"agent": "agent-1", "expires_in_seconds": 12.5} | more)


OPEN = (
    _open(OpenContinuation, "continuation_required"),
    _open(OpenApproval, "approval_required"),
    _open(OpenPause, "run_paused", expires_in_seconds=None),
)
MESSAGES = (
    UserMessage("go"),
    AssistantMessage(
        (
            ReasoningPart("hm", "signed"),
            TextPart("I look."),
            ToolCall("c1", "add", "{}", malformed="{", vendor_id="v", repaired=True),
            OpaquePart("openai-chat", "{}", call="c1"),
        ),
        partial=True,
    ),
    ToolMessage((ToolResult("c1", "add", "ok", "3", entered=True),)),
)
SNAPSHOT = Snapshot(
    state="waiting",
    run="run-1",
    step_number=2,
    counters=Counters(1, 2, 3, 4, 5),
    usage=USAGE,
    history=tuple(msgspec.Raw(encode(message)) for message in MESSAGES),
    children=(ChildInfo(run="run-2", agent_path=("child",), state="running"),),
)
EVENTS = tuple(msgspec.Raw(encode(sample)) for sample in SAMPLES) + (msgspec.Raw(b'{"type":"skipped","n":3}'),)
ATTACHED = Attached(epoch="e", head=9, oldest=1, recovered=False, open_requests=OPEN, snapshot=SNAPSHOT)
REPLIES: tuple[tuple[str, Reply], ...] = (
    (
        "hello",
        Welcome(
            connection="c-1",
            server_time="2026-01-01T00:00:00+00:00",
            heartbeat_seconds=20.0,
            limits=WireLimits(),
            capabilities={"templates": ["a"]},
            principal="ada",
            roles=("observe", "decide"),
        ),
    ),
    ("ping", Nothing()),
    (
        "agent.list",
        Agents(agents=(AgentInfo(agent="a", name="n", state="idle", run=None, epoch="e", head=0, open_requests=0),)),
    ),
    ("agent.spawn", Spawned(agent="agent-1", name="a", replayed=True)),
    ("agent.attach", ATTACHED),
    ("agent.attach", AttachedAll(agents={"agent-1": ATTACHED})),
    ("agent.fetch", Fetched(epoch="e", seq=1, events=EVENTS, more=True)),
    ("run.start", Started(run="run-1", seq=4, replayed=True, state="ended")),
    ("run.steer", Steered(replayed=True)),
    ("request.list", Requests(requests=OPEN)),
    ("continuation.decide", Decided(status="accepted", request="q-1", replayed=True)),
)
"""Every reply, with all its fields, and a method that it answers."""
