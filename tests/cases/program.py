"""Reads a case's words into a model, tools and a gate of the real runtime."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import trio

from actors import AgentSpec, ContinuationRequest, ContinuationResponse, remote
from actors.models.scripted import call, reply
from actors.tools import Tool, tool
from protocol.errors import ModelError
from protocol.model import CallDelta, ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import TextPart, ToolMessage, Turn
from tests.support.scripts import Bench
from tests.support.specs import agent

Case: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[ModelRequest], dict[str, Any]]
"""What a scripted turn is, in the words of the cases."""

CASES: dict[str, Case] = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}

CALL_SECONDS = 1.0
"""Virtual time that each model call takes, so that something may happen while it is in flight."""


class CaseModel:
    """A model that follows the turns or the rule of a case."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    @property
    def name(self) -> str:
        return "case"

    @property
    def profile(self) -> Profile:
        return Profile(keeps_tools_when_off=True, reports_sending=True)

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        emit(RequestSent())
        await trio.sleep(CALL_SECONDS)
        said = self._rule(request)
        text = said.get("text", "")
        if text:
            emit(TextDelta(text))
        for index, (_, name, arguments) in enumerate(said.get("calls_partial", ())):
            emit(CallDelta(index, arguments, name))
        if "then" in said:
            raise ModelError(said["then"], partial=Turn((TextPart(text),), end="lost"))
        return reply(text, *[call(name, arguments, id=id) for id, name, arguments in said.get("calls", ())])


def rule_of(told: str | list[dict[str, Any]]) -> Rule:
    """A list of turns, or one of the rules in which cases are told."""
    if not isinstance(told, str):
        turns = iter(told)
        return lambda _request: next(turns)
    numbers = itertools.count(1)

    def one_call(name: str) -> dict[str, Any]:
        return {"calls": [[f"fresh{next(numbers)}", name, {}]]}

    if found := re.fullmatch(
        r"while tools are offered: one call to (\w+) with a fresh id; when tools are off: text '(.*?)'"
        r"(?:; if asked once more after that: '(.*)')?",
        told,
    ):
        name, *texts = found.groups()
        answers = iter([text for text in texts if text])
        return lambda request: one_call(name) if request.tools_on else {"text": next(answers)}
    if found := re.fullmatch(
        r"call (\w+) with a fresh id until the request holds (\d+) results of \1, then text '(.*)'", told
    ):
        name, count, text = found.groups()
        return lambda request: one_call(name) if _results(request, name) < int(count) else {"text": text}
    if found := re.fullmatch(r"every turn: one call to (\w+) with a fresh id", told):
        name = found[1]
        return lambda _request: one_call(name)
    raise AssertionError(f"no rule is known for: {told}")


def _results(request: ModelRequest, name: str) -> int:
    return sum(
        result.name == name
        for message in request.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    )


def tools_of(told: dict[str, str], bench: Bench, run_child: Callable[[str], Any]) -> list[Tool]:
    """The tools of a case: `return VALUE`, `sleep SECONDS; return VALUE`, `run agent NAME`."""
    tools: list[Tool] = []
    for name, does in told.items():
        if found := re.fullmatch(r"(?:sleep (\d+); )?return (.*)", does):
            tools.append(bench.tool(name, ast.literal_eval(found[2]), seconds=float(found[1] or 0)))
        elif found := re.fullmatch(r"run agent (\w+)", does):
            child = found[1]

            async def ask(q: str = "go", child: str = child) -> Any:
                del q
                return await run_child(child)

            tools.append(tool(ask, name=name, parameters={"type": "object", "properties": {"q": {"type": "string"}}}))
        else:
            raise AssertionError(f"no tool is known that does: {does}")
    return tools


def spec_of(name: str, config: dict[str, Any], rule: Rule, tools: list[Tool], gate: Any = None) -> AgentSpec:
    """An agent with a case's settings, in the runtime's own words."""
    known = dict(config)
    options: dict[str, Any] = {
        own: known.pop(theirs)
        for theirs, own in (
            ("max_tool_iterations", "max_tool_iterations"),
            ("max_llm_calls", "max_llm_calls"),
            ("tool_concurrency", "max_parallel_tools"),
        )
        if theirs in known
    }
    match known.pop("on_limit", "stop"):
        case "ask":
            seconds = known.pop("limit_decision_timeout_s", 600)
            options["continuation"] = gate or remote()
            options["continuation_timeout_seconds"] = float(seconds)
        case "finalize":
            options["tool_iteration_limit_finalization"] = ""
        case other:
            assert other == "stop", other
    assert known in ({}, {"retries": 0}), f"no setting is known for {known}"
    return agent(CaseModel(rule), *tools, name=name, **options)


def gate_function(actions: list[Any]) -> Callable[[ContinuationRequest], Any]:
    """The actions of a case as a provider function; nobody there is one that never answers."""
    prompts = itertools.count(1)

    async def provider(_request: ContinuationRequest) -> ContinuationResponse:
        response = response_of(actions, next(prompts))
        if response is None:
            await trio.sleep_forever()
        return response

    return provider


def response_of(actions: list[Any], number: int) -> ContinuationResponse | None:
    """What the actions say to prompt `number`; `None`: nobody answers."""
    for action in actions:
        if isinstance(action, dict) and action["when"] in {"limit_prompt:*", f"limit_prompt:{number}"}:
            return ContinuationResponse(action["do"], message=action.get("message"))
    return None
