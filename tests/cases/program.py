"""The cases, and their settings in the runtime's own words."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from actors import AgentSpec, Price, Prices
from actors.tools import Tool
from protocol.model import Model
from tests.support.specs import agent

from .gateway.runs import RUNS
from .tools import NEEDS_APPROVAL

Case: TypeAlias = dict[str, Any]
Gate: TypeAlias = Literal["remote", "function"]
"""How a question is answered: from outside, or by a function of the agent's."""
Change: TypeAlias = tuple[str, Any]
"""A variant of a case: a place in its input, such as `turns.0.finish`, and what stands there instead."""

CASES: dict[str, Case] = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}

CALL_SECONDS = 1.0
"""Virtual time that each model call takes, so that something may happen while it is in flight."""
REAL_CALL_SECONDS = 0.01
"""The same where time is real."""
GATEWAY_CALL_SECONDS = 0.05
"""The same where a gateway's clients tell the time from the first prompt on."""
NEXT = "next"
"""The moment of an action that follows upon the one before it."""
REAL_TIME: dict[str, float] = {"BUD-03": 0.01, "TEX-02": 1.0, "TEX-04": 0.25, "TEX-05": 0.5}
"""Cases whose tools run in threads, which virtual time does not wait for, and the real time of one of their seconds."""

SETTINGS = {
    "max_tool_iterations": "max_tool_iterations",
    "max_llm_calls": "max_llm_calls",
    "max_tool_calls": "max_tool_calls",
    "max_cost": "max_cost",
    "max_output_tokens": "max_tokens",
    "max_tokens_total": "max_total_tokens",
    "malformed_call_retries": "max_reasks",
    "wall_clock_s": "wall_clock_seconds",
    "tool_concurrency": "max_parallel_tools",
    "max_tool_output_chars": "max_tool_output_chars",
    "empty_retry_max": "max_reasks",
}
"""A case's word for a setting, and the runtime's."""
OF_THE_MODEL = {"retries", "delivery", "stream_idle_timeout_s", "max_calls_per_turn"}
"""Settings that are the model's."""
HOOKS = {"output_check", "on_tool_failure"}
"""Settings of a case that are hooks in the runtime."""


def input_of(id: str, changes: Iterable[Change] = ()) -> Case:
    """What a case is played with, changed where a variant of it is wanted."""
    told: Case = copy.deepcopy(CASES[id]["input"])
    for place, value in changes:
        *path, last = [int(step) if step.isdigit() else step for step in place.split(".")]
        node: Any = told
        for step in path:
            node = node[step]
        node[last] = value
    return told


def programs_of(told: Case) -> list[Case]:
    """Most cases are one program; some tell of several."""
    runs: list[Any] = told.get("runs", [told])
    return [RUNS[run] | {"level": told["level"]} if isinstance(run, str) else run for run in runs]


def configs_of(program: Case) -> dict[str, Case]:
    """The settings of each agent by its name; the first one is what the case is about."""
    shared: Case = program.get("config", {})
    own: dict[str, Case] = program.get("agents") or {name: {} for name in scripts_of(program)}
    return {name: shared | config for name, config in own.items()}


def scripts_of(program: Case) -> dict[str, Any]:
    """What the model of each agent says: turns, or a rule."""
    if is_served(program):
        return {"agent": None}  # a server says it
    scripts: dict[str, Any] = program.get("script") or {"agent": program.get("turns") or program["model"]}
    return scripts


def asks_somebody(told: Case) -> bool:
    """Whether a person is asked in the case, so that it matters how the answer comes."""
    if is_remote(told):
        return False  # it is asked from afar, and the answers come from there
    programs = [program for program in programs_of(told) if not is_crowd(program)]
    configs = [config for program in programs for config in configs_of(program).values()]
    return any(config.get("on_limit") == "ask" for config in configs) or any(map(needs_approval, programs))


def needs_approval(program: Case) -> bool:
    """Whether it has a tool that somebody must allow."""
    return any(does.startswith(NEEDS_APPROVAL) for does in program.get("tools", {}).values())


def is_remote(program: Case) -> bool:
    """Whether it is played through a gateway."""
    return program.get("level") == "gateway"


def is_served(program: Case) -> bool:
    """Whether a server says what the model says."""
    return program.get("level") == "client" or (is_remote(program) and "http" in program)


def is_crowd(program: Case) -> bool:
    """Whether it tells of many agents that are all alike."""
    return isinstance(program.get("agents"), str)


@attrs.frozen
class Ending:
    """When an agent answers, and how long its run takes to end then."""

    answers_at: float
    bookkeeping: float


def endings_of(program: Case) -> dict[str, Ending]:
    """What a note tells of the end of an agent, by its name."""
    told = r"the (\w+) answers at ([\d.]+) s and its last bookkeeping takes ([\d.]+) s"
    found = re.fullmatch(told, program.get("note", ""))
    return {found[1]: Ending(float(found[2]), float(found[3]))} if found else {}


def prompt_of(program: Case) -> str:
    """What is said first: the last of what is stored, or as long as the request shall be, at four bytes for a token."""
    if "stored_history" in program:
        return str(program["stored_history"][-1]["text"])
    return "go! " * program["request_size_tokens"] if "request_size_tokens" in program else "go"


def timeouts_of(config: Case) -> dict[str, float | None]:
    """The timeouts of single tools, in the case's seconds."""
    told = config.get("tool_timeout_s")
    return told if isinstance(told, dict) else {}


def spec_of(
    name: str,
    config: Case,
    model: Model,
    tools: Collection[Tool],
    *,
    scale: float,
    answers: Any,
    approves: Any,
    **options: Any,
) -> AgentSpec:
    """An agent with a case's settings.

    `answers` is who is asked at a full window, and `approves` who is asked before a tool runs that needs it, if the
    case asks anybody.
    """
    known = dict(config)
    offered = known.pop("tools", None)
    if "system" in known:
        options["system"] = known.pop("system")
    for theirs in SETTINGS.keys() & known.keys():
        options[SETTINGS[theirs]] = known.pop(theirs)
    seconds = known.pop("tool_timeout_s", None)
    if isinstance(seconds, (int, float)):
        options["tool_timeout_seconds"] = seconds * scale
    if "auto_continue_max" in known:
        most = known.pop("auto_continue_max")
        options |= {"automatic_continuation": most > 0, "max_hops": max(most, 1)}
        options["max_reasks"] = most  # of turns whose calls were cut
    if any(tool.needs_approval for tool in tools):
        options["approval"] = approves
        options["approval_timeout_seconds"] = known.get("approval_timeout_s", 600) * scale
    known.pop("approval_timeout_s", None)
    if "price_in_per_mtok" in known:
        price = Price(input=known.pop("price_in_per_mtok"), output=known.pop("price_out_per_mtok"))
        options["prices"] = Prices({model.name: price})
    for theirs in HOOKS & known.keys():
        del known[theirs]
    match known.pop("on_limit", "stop"):
        case "ask":
            options["continuation"] = answers
            options["continuation_timeout_seconds"] = known.pop("limit_decision_timeout_s", 600) * scale
        case "finalize":
            options["tool_iteration_limit_finalization"] = ""
        case other:
            assert other == "stop", other
    known = {name: value for name, value in known.items() if name not in OF_THE_MODEL}
    assert known == {}, f"no setting is known for {known}"
    return agent(model, *[tool for tool in tools if offered is None or tool.name in offered], name=name, **options)
