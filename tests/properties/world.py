"""What a random run meets, as plain data: a failure prints it, and the print is the example that plays it again."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs

from protocol.model import TextContinuation

Fails: TypeAlias = Literal["before", "after", "unsent", "foreign", "overflow"]
"""A model error before or after its text, before it was sent, no `ModelError` at all, a request that is too long."""
Arguments: TypeAlias = Literal["good", "bad", "more", "text", "malformed", "cut", "empty", "object"]
"""Of a call: right; of a wrong type; with one too many; an object written as text; three that are no object; none."""
Ids: TypeAlias = Literal["new", "", "same"]
Body: TypeAlias = Literal[
    "return", "odd", "raise", "exit", "sleep", "stubborn", "swallow", "itself", "stop_run", "fail_run", "agent",
    "steer", "stop", "cancel", "external",
]  # fmt: skip
Submits: TypeAlias = Literal["whole", "parts", "late", "error", "never"]
Stops: TypeAlias = Literal["third", "called", "raises", "slow", "wrong"]
Answer: TypeAlias = Literal["approve", "discard", "some", "grant", "decline", "timeout", "nobody", "raise", "wrong"]
Verdict: TypeAlias = Literal["approve", "deny", "edit", "bad_edit", "timeout", "nobody", "raise", "wrong"]
Compacts: TypeAlias = Literal["trim", "summarise", "helper", "raise", "broken", "slow"]
Prepared: TypeAlias = Literal[
    "nothing", "hide", "prune", "required", "none", "force", "system", "raise", "wrong", "broken"
]
Around: TypeAlias = Literal["pass", "deny", "change", "bad_change", "alter", "raise", "raise_after", "swallow", "twice"]
Act: TypeAlias = Literal["steer", "stop", "cancel", "nursery", "leave", "decide", "submit", "override", "stop_agent"]
Instruction: TypeAlias = Literal["", "text", "raises", "slow"]
Provider: TypeAlias = Literal["remote", "function"]


class Plain:
    """Prints what differs from the defaults, and no more."""

    def __repr__(self) -> str:
        told: list[str] = []
        for field in attrs.fields(type(self)):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                told.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"


@attrs.frozen(repr=False)
class Call(Plain):
    """A call in a turn; `tool` counts the tools, -1 is one that there is not."""

    tool: int = 0
    args: Arguments = "good"
    id: Ids = "new"


@attrs.frozen(repr=False)
class Say(Plain):
    """A turn of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: Any = "auto"
    """`auto`: what fits; else a finish reason, or `None`."""
    lost: bool = False
    fails: Fails | None = None
    usage: int | None = 7
    """Input tokens, with 3 of output; 0: both are 0; `None`: not reported."""
    seconds: float = 0


@attrs.frozen(repr=False)
class Does(Plain):
    """A tool."""

    body: Body = "return"
    seconds: float = 0
    timeout: float | None = None
    approval: bool = False
    ends_run: bool = False
    submits: Submits = "whole"


@attrs.frozen(repr=False)
class Settings(Plain):
    """Limits and what goes with them; the names are `AgentSpec`'s, those of instructions shortened."""

    max_tool_iterations: int | None = None
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    wall_clock_seconds: float | None = None
    tool_final: Instruction | None = None
    llm_final: Instruction | None = None
    budget_final: Instruction | None = None
    stop_final: Instruction | None = None
    finalization_retry: bool = False
    stop_when: tuple[Stops, ...] = ()
    max_reasks: int = 1
    max_continues: int = 2
    automatic_continuation: bool | None = None
    max_hops: int = 3
    continues_text: TextContinuation = "exact_prefix"
    bigger_cap: bool = False
    """The model's own cap is 3 tokens, and it would take a bigger one."""
    max_parallel_tools: int | None = None
    tool_timeout_seconds: float | None = None
    required: bool = False
    keeps_tools: bool = True
    flatten: bool = False
    reports_sending: bool = True


@attrs.frozen(repr=False)
class Gate(Plain):
    """Who is asked at the gate, and what it answers, in turn; after that it declines."""

    kind: Provider = "remote"
    answers: tuple[Answer, ...] = ()
    seconds: float = 0
    timeout: float | None = 10
    approves_on_timeout: bool = False
    gate_on: tuple[Any, ...] = ()


@attrs.frozen(repr=False)
class Approver(Plain):
    """Who approves calls, and what it answers, in turn; after that it approves."""

    kind: Provider = "remote"
    answers: tuple[Verdict, ...] = ()
    seconds: float = 0
    timeout: float = 10


@attrs.frozen(repr=False)
class Hooks(Plain):
    """What the hooks do, in turn; after that, nothing."""

    call: tuple[Prepared, ...] = ()
    step: tuple[Prepared, ...] = ()
    continues: int = 0
    rejects: int = 0
    around: tuple[Around, ...] = ()
    shortens: bool = False
    compacts: tuple[Compacts, ...] = ()
    observes: bool = False


@attrs.frozen(repr=False)
class Disturbance(Plain):
    """Something from outside, at a second of virtual time, or after so many steps of the scheduler (an `int`)."""

    at: float | int = 0.0
    act: Act = "cancel"


@attrs.frozen(repr=False)
class World(Plain):
    """One run, and all that it meets."""

    turns: tuple[Say, ...] = ()
    again: bool = False
    """The turns come again and again, else the model answers `done` after them."""
    tools: tuple[Does, ...] = (Does(),)
    settings: Settings = Settings()
    gate: Gate | None = None
    approver: Approver | None = None
    hooks: Hooks = Hooks()
    child: World | None = None
    """The agent behind the tools that are agents."""
    shared_child: bool = False
    """One agent for all its tasks, or one for each."""
    disturbances: tuple[Disturbance, ...] = ()
    continues: bool = False
    """The second run goes on with the answer that the first one left half, if it did."""
    order: int = 0
    """Of tasks that wake at the same time."""
