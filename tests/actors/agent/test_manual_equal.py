"""A loop of the user's own and the engine's loop are one: whatever is drawn, the same events, messages and requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors import (
    AgentSpec,
    ContinuationResponse,
    Loop,
    Run,
    StepOverrides,
    append_exchange,
    approve,
    deny,
    edit,
    evaluate_stop,
    execute_tools,
    generate_step,
    has_tool_call,
    max_steps,
    should_continue,
    tool,
    unanswered_calls,
)
from actors.models.scripted import call, reply
from protocol.errors import ModelError
from protocol.model import ModelRequest
from protocol.turns import Turn

from ...support.play import Played, Stage, perform
from ...support.scripts import Bench
from ...support.specs import agent

IDS = re.compile(r"\b[a-z]+-[0-9a-f]{8}-\d+\b")
KINDS = (
    "call",
    "three",
    "wrong",
    "text",
    "empty",
    "announced",
    "malformed",
    "cut text",
    "cut call",
    "error",
    "blocked",
)


async def by_hand(loop: Loop) -> None:
    """The loop of the module's docstring."""
    while should_continue(loop):
        await generate_step(loop)
        if unanswered_calls(loop.messages):
            await execute_tools(loop)
        await append_exchange(loop)
        if should_continue(loop) and (reason := await evaluate_stop(loop)):
            loop.stop(reason)


@attrs.frozen
class Plan:
    """What is drawn: turns, limits, decisions, and what happens beside the run."""

    turns: tuple[str, ...]
    finals: tuple[str, ...]
    limits: dict[str, Any]
    options: dict[str, Any]
    decisions: tuple[str, ...]
    approvals: tuple[str, ...]
    hooks: frozenset[str]
    acts: tuple[tuple[str, float], ...]


def turn_of(kind: str, number: int) -> Turn | Exception:
    match kind:
        case "call":
            return reply("", call("t", {}, id=f"c{number}"))
        case "three":
            names = ("slow", "boom", "careful")
            return reply("on it", *[call(name, {}, id=f"c{number}-{name}") for name in names])
        case "wrong":
            return reply("", call("nobody", {}, id=f"c{number}"), call("t", {"x": 1}, id=f"c{number}-x"))
        case "text":
            return reply(f"answer {number}")
        case "empty":
            return reply("")
        case "announced":
            return reply("so", finish="tool_calls")
        case "malformed":
            return reply("", finish="malformed")
        case "cut text":
            return reply("half", finish="length")
        case "cut call":
            return reply("", call("t", {}, id=f"c{number}"), finish="length")
        case "blocked":
            return reply("no", finish="content_filter")
        case _:
            return ModelError("down")


def spec_of(plan: Plan) -> AgentSpec:
    """The agent of a plan, with scripts and hooks that nobody has used."""
    bench = Bench()
    turns, finals = iter(plan.turns), iter(plan.finals)
    decisions, approvals = iter(plan.decisions), iter(plan.approvals)
    numbers = iter(range(1000))
    answered = iter([None, None])

    def script(request: ModelRequest) -> Any:
        number = next(numbers)
        kind = next(turns, "text") if request.tools_on else next(finals, "text")
        return turn_of(kind, number)

    def decide(request: Any) -> ContinuationResponse:
        match next(decisions, "decline"):
            case "discard":
                return ContinuationResponse("approve", discard_tool_calls=True)
            case "discard one":
                return ContinuationResponse("approve", discard_tool_calls=[request.tool_calls[0].id])
            case "steer":
                return ContinuationResponse("approve", message="be brief", grant=1)
            case "approve":
                return ContinuationResponse("approve")
            case other:
                return ContinuationResponse("decline" if other == "decline" else "timeout", message="stop it")

    def allow(_request: Any) -> Any:
        said = next(approvals, "approve")
        return {"approve": approve(), "deny": deny("no"), "edit": edit({})}[said]

    async def careful() -> str:
        """Needs approval."""
        return "done"

    def more(_state: Any) -> str | None:
        return "more, please" if next(answered, "done") is None else None

    def complain(text: str) -> str | None:
        return "not that one" if text in {"answer 0", "answer 2"} else None

    def prepare(state: Any) -> StepOverrides | None:
        if state.step_number == 1:
            return StepOverrides(system="anew", active_tools=("t", "boom", "slow"))
        return None

    def watch(step: Any) -> None:
        if step.number == 1:
            raise ValueError("an observer that fails")

    hooks: dict[str, Any] = {
        "continue_when": more,
        "check_answer": complain,
        "prepare_step": prepare,
        "on_step": watch,
        "continuation": decide,
    }
    tools = [
        bench.tool("t"),
        bench.tool("slow", seconds=2),
        bench.tool("boom", ValueError("boom")),
        tool(careful, needs_approval=True),
    ]
    given = {name: hook for name, hook in hooks.items() if name in plan.hooks}
    return agent(script, *tools, approval=allow, **plan.limits, **plan.options, **given)


def beside(plan: Plan) -> Any:
    async def act(run: Run) -> None:
        for what, seconds in plan.acts:
            await trio.sleep(seconds)
            if run.over:
                return
            match what:
                case "steer":
                    run.steer(f"after {seconds}")
                case "stop":
                    if plan.limits["stop_when"] is None:
                        run.stop("enough")
                case _:
                    run.cancel("enough")

    return act


def played(plan: Plan, **options: Any) -> Played:
    seen: list[Played] = []

    async def scene(stage: Stage) -> None:
        seen.append(await stage.play(await stage.spawn(spec_of(plan)), act=beside(plan), **options))

    try:
        perform(scene)
    except AssertionError as error:  # a final call that a stop condition led to has no limit (S6)
        if plan.options["finalize_on_stop"] is None or "finalized without a limit" not in str(error):
            raise
    return seen[0]


def told(played: Played) -> Sequence[bytes]:
    """What was seen of a run, byte for byte, with ids numbered in the order in which they appear."""
    names: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"id{len(names)}")

    texts = [msgspec.json.encode(event).decode() for event in played.events]
    texts += [msgspec.json.encode(message).decode() for message in played.messages]
    texts += [repr((asked.system, asked.texts, asked.tools, asked.tool_choice)) for asked in played.asked]
    texts += [repr(played.outcome), f"{type(played.error)}: {played.error}"]
    return [IDS.sub(numbered, re.sub(r'"digest":"\w+"', "", text)).encode() for text in texts]


def lists(*kinds: str, least: int = 0, most: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(kinds), min_size=least, max_size=most).map(tuple)


CONDITIONS = ((max_steps(1),), (max_steps(2),), (has_tool_call("boom"),))
PLANS = st.builds(
    Plan,
    lists("call", "call", "call", "three", "three", *KINDS, least=1, most=7),
    lists("text", "call", "empty", "three", "cut text", "error", most=2),
    st.fixed_dictionaries({
        "max_tool_iterations": st.sampled_from((None, 1, 1, 2, 3)),
        "max_llm_calls": st.sampled_from((None, None, 1, 2, 3, 4, 5)),
        "max_tool_calls": st.sampled_from((None, None, 1, 2, 3)),
        "wall_clock_seconds": st.sampled_from((None, None, 1, 3, 5)),
        "stop_when": st.sampled_from((None, None, None, *CONDITIONS)),
    }),
    st.fixed_dictionaries({
        "tool_iteration_limit_finalization": st.sampled_from((None, "")),
        "llm_call_limit_finalization": st.sampled_from((None, "")),
        "finalize_on_stop": st.sampled_from((None, "Sum up.")),
        "finalization_retry": st.booleans(),
        "max_reasks": st.integers(0, 2),
        "max_parallel_tools": st.sampled_from((None, 1)),
    }),
    lists("approve", "discard", "discard one", "steer", "decline", "timeout", most=4),
    lists("approve", "deny", "edit", most=3),
    st.frozensets(st.sampled_from(("continue_when", "check_answer", "prepare_step", "on_step", "continuation"))),
    st.lists(
        st.tuples(st.sampled_from(("steer", "steer", "stop", "cancel")), st.sampled_from((0.5, 1.5, 2.5))), max_size=2
    ).map(tuple),
)


@pytest.mark.slow
@settings(
    max_examples=250, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(PLANS)
def test_by_hand_and_by_the_engine(plan: Plan) -> None:
    """Limits, gates, approvals, final calls, re-asks, hooks, steering, stop and cancel: nothing tells the two apart."""
    assert told(played(plan)) == told(played(plan, loop=by_hand))
