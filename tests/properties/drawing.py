"""Strategies: how worlds are drawn. The first of every choice is the plain one, so that failures shrink to it."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from protocol.model import TextContinuation

from .world import (
    Act,
    Answer,
    Approver,
    Arguments,
    Around,
    Body,
    Call,
    Compacts,
    Disturbance,
    Does,
    Gate,
    Hooks,
    Instruction,
    Prepared,
    Say,
    Settings,
    Stops,
    Submits,
    Verdict,
    World,
)

MANY: Any = st.sampled_from


def few(choices: Any, most: int) -> st.SearchStrategy[Any]:
    """A tuple of some of them."""
    one: st.SearchStrategy[Any] = choices if isinstance(choices, st.SearchStrategy) else MANY(get_args(choices))
    some: st.SearchStrategy[Any] = st.lists(one, max_size=most).map(tuple)
    return some


def rarely(value: st.SearchStrategy[Any], plain: Any = None, *, one_in: int = 4) -> st.SearchStrategy[Any]:
    """The plain value, most of the time."""
    return st.integers(1, one_in).flatmap(lambda n: value if n == one_in else st.just(plain))


calls = st.builds(
    Call,
    tool=MANY([0, 0, 0, 1, 1, 1, 2, 2, 3, -1]),
    args=rarely(MANY(get_args(Arguments)), "good", one_in=5),
    id=MANY(["new", "new", "same", ""]),
)
FINISHES = ["stop", "tool_calls", "length", "paused", "content_filter", "malformed", "other", None]
says = st.builds(
    Say,
    text=MANY(["", "text", " \n", "more text", "lone \ud800 half"]),
    calls=rarely(st.lists(calls, min_size=1, max_size=4).map(tuple), (), one_in=2),
    finish=rarely(MANY(FINISHES), "auto", one_in=3),
    lost=rarely(st.just(True), False, one_in=12),
    fails=rarely(MANY(["before", "after", "unsent", "foreign", "overflow", "overflow"]), one_in=10),
    usage=MANY([7, 7, None, 0, 40]),
    seconds=MANY([0, 0, 0.5, 3]),
)
calling = st.builds(
    Say,
    text=MANY(["", "text"]),
    calls=st.lists(calls, min_size=1, max_size=3).map(tuple),
    usage=MANY([7, 7, None]),
    seconds=MANY([0, 0, 0.5]),
)
cut = st.builds(
    Say,
    text=MANY(["text", "more text", "", " \n", "lone \ud800 half"]),
    calls=rarely(st.lists(calls, min_size=1, max_size=2).map(tuple), (), one_in=3),
    finish=MANY(["length", "length", "length", "paused"]),
    usage=MANY([7, 7, None]),
    seconds=MANY([0, 0, 0.5]),
)
turns = st.lists(st.one_of(calling, calling, calling, says, cut), min_size=1, max_size=6).map(tuple)

SECONDS = MANY([0, 0, 1, 2.5, 8])
PLAIN_BODIES = [body for body in get_args(Body) if body not in {"agent", "external"}]


def tools(bodies: Any) -> st.SearchStrategy[Any]:
    one = st.builds(
        Does,
        body=rarely(MANY(bodies), "return", one_in=2),
        seconds=SECONDS,
        timeout=rarely(MANY([1, 2.5]), one_in=4),
        approval=rarely(st.just(True), False, one_in=4),
        ends_run=rarely(st.just(True), False, one_in=10),
        submits=MANY(get_args(Submits)),
    )
    return st.lists(one, min_size=1, max_size=4).map(tuple)


finals = rarely(MANY(get_args(Instruction)), one_in=3)
settings = st.builds(
    Settings,
    max_tool_iterations=MANY([None, 1, 1, 2, 3]),
    max_llm_calls=MANY([None, None, None, 1, 2, 3, 4, 6]),
    max_tool_calls=rarely(MANY([1, 2, 3, 5]), one_in=4),
    max_total_tokens=rarely(MANY([1000, 500, 300]), one_in=6),
    max_cost=rarely(MANY([1.0, 0.3, 0.05]), one_in=6),
    wall_clock_seconds=rarely(MANY([60.0, 5.0, 1.0]), one_in=5),
    tool_final=finals,
    llm_final=finals,
    budget_final=finals,
    stop_final=finals,
    finalization_retry=st.booleans(),
    stop_when=rarely(few(Stops, 2), (), one_in=5),
    max_reasks=MANY([1, 0, 2]),
    max_continues=MANY([2, 0, 1]),
    automatic_continuation=MANY([None, True, True, False]),
    max_hops=MANY([3, 1, 32]),
    continues_text=MANY(get_args(TextContinuation)),
    bigger_cap=st.booleans(),
    max_parallel_tools=MANY([None, 1, 2]),
    tool_timeout_seconds=rarely(st.just(2), one_in=4),
    required=rarely(st.just(True), False, one_in=8),
    keeps_tools=MANY([True, False]),
    flatten=rarely(st.just(True), False, one_in=3),
    reports_sending=MANY([True, True, False]),
)
GATED = ["llm_calls", "tool_calls", "total_tokens", "cost", "wall_clock"]
gates = st.builds(
    Gate,
    kind=MANY(["remote", "function"]),
    answers=few(MANY([*get_args(Answer), "approve", "approve", "discard", "some", "grant"]), 4),
    seconds=MANY([0, 0, 2]),
    timeout=MANY([10, 1]),
    approves_on_timeout=rarely(st.just(True), False, one_in=4),
    gate_on=rarely(few(MANY(GATED), 3), (), one_in=2),
)
approvers = st.builds(
    Approver,
    kind=MANY(["remote", "function"]),
    answers=few(MANY([*get_args(Verdict), "approve", "approve", "edit"]), 4),
    seconds=MANY([0, 0, 2]),
    timeout=MANY([10, 1]),
)
hooks = st.builds(
    Hooks,
    call=rarely(few(Prepared, 4), (), one_in=4),
    step=rarely(few(Prepared, 4), (), one_in=4),
    continues=rarely(MANY([1, 2, 3]), 0),
    rejects=rarely(MANY([1, 2, 3]), 0),
    around=rarely(few(Around, 4), (), one_in=3),
    shortens=st.booleans(),
    compacts=rarely(few(Compacts, 5), (), one_in=2),
    observes=rarely(st.just(True), False),
).map(
    lambda drawn: (
        drawn
        if not (drawn.call and drawn.step)
        else Hooks(step=drawn.step, around=drawn.around, compacts=drawn.compacts)
    )
)
disturbances = rarely(
    st.lists(
        st.builds(
            Disturbance,
            at=st.one_of(MANY([0.0, 0.5, 1.0, 1.5, 2.5, 4.0, 9.0]), st.integers(1, 150)),
            act=MANY(get_args(Act)),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    (),
    one_in=2,
)
children = st.builds(
    World,
    turns=st.lists(st.one_of(calling, says, cut), max_size=3).map(tuple),
    tools=tools(PLAIN_BODIES),
    settings=settings,
    gate=rarely(gates, one_in=2),
    approver=approvers,
)
worlds = st.builds(
    World,
    turns=turns,
    again=MANY([False, True, True]),
    tools=tools([*get_args(Body), "agent", "agent", "external"]),
    settings=settings,
    gate=st.one_of(st.none(), gates, gates),
    approver=approvers,
    hooks=rarely(hooks, Hooks(), one_in=2),
    child=children,
    shared_child=st.booleans(),
    disturbances=disturbances,
    continues=st.booleans(),
    order=st.integers(0, 3),
)
