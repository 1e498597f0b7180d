"""How many model calls and rounds a run may make, worked out from its settings alone: a small model of the rules.

It knows nothing of turns, tools and time. The model that is meant asks for one tool whenever it may, and answers when it
may not; or its turns are of the kinds that make no progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

Decision: TypeAlias = Literal["approve", "discard", "decline"]
Kind: TypeAlias = Literal["call", "empty", "malformed", "cut"]


@attrs.frozen(kw_only=True)
class Plan:
    """The settings that count."""

    window: int
    most_calls: int | None = None
    tool_final: bool = False
    llm_final: bool = False
    decisions: tuple[Decision, ...] | None = None
    """Of the gate, and after them it declines; `None`: there is no gate."""


@attrs.frozen
class Count:
    """What the run came to."""

    calls: int
    rounds: int
    end: str
    asked: tuple[tuple[int, int], ...] = ()
    """The window and the rounds up to then, of each question of the gate."""


def count(plan: Plan) -> Count:
    """What a model that always asks for one tool comes to (the tables of finalization and of the gate)."""
    calls = rounds = used = 0
    window = plan.window
    decisions = list(plan.decisions or ())
    asked: list[tuple[int, int]] = []
    while True:
        left = None if plan.most_calls is None else plan.most_calls - calls
        if left == 0:
            return Count(calls, rounds, "llm_calls", tuple(asked))
        final_for_calls = plan.llm_final and left == 1
        full = used == window
        final_for_window = plan.tool_final and full and (plan.decisions is None or left == 1)
        calls += 1
        if final_for_calls or final_for_window:
            return Count(calls, rounds, "answer", tuple(asked))
        if full:
            if plan.decisions is None:
                return Count(calls, rounds, "tool_iterations", tuple(asked))
            if left == 1:
                return Count(calls, rounds, "llm_calls", tuple(asked))
            asked.append((window, rounds))
            decision = decisions.pop(0) if decisions else "decline"
            if decision == "decline":
                return Count(calls + 1, rounds, "answer", tuple(asked))
            used = 0
            if decision == "discard":
                continue
        used += 1
        rounds += 1


def count_without_progress(kinds: Sequence[Kind], *, max_reasks: int, most_calls: int | None) -> Count:
    """What a run comes to whose turns are of these kinds; after them the model answers (R5)."""
    calls = rounds = reasks = 0
    ends = {"empty": "empty", "malformed": "failure", "cut": "length"}
    last: str = "llm_calls"
    for kind in [*kinds, "answer"]:
        if calls == most_calls:
            return Count(calls, rounds, last)
        calls += 1
        if kind == "answer":
            break
        rounds += kind in {"call", "cut"}
        if kind == "call":
            reasks, last = 0, "llm_calls"
            continue
        last = ends[kind]
        if reasks == max_reasks:
            return Count(calls, rounds, last)
        reasks += 1
    return Count(calls, rounds, "answer")
