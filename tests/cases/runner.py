"""Runs a case, and says what came of it in the words of its `check`."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Literal, TypeAlias

import attrs

from actors import AgentSpec, Run, remote
from protocol.errors import RunCancelledError
from protocol.events import ContinuationRequired, RunEvent, StepStarted, ToolFinished, ToolStarted
from tests.support.play import Act, Played, Stage, numbered_events, perform
from tests.support.scripts import Bench
from tests.support.strict import Asked, StrictModel

from .program import CASES, gate_function, response_of, rule_of, spec_of, tools_of

Gate: TypeAlias = Literal["remote", "function"]
RESULTS = {"error": "error", "timed_out": "error", "interrupted": "cancelled", "ok": "ok"}
OUTCOMES = {"stop": "answer", "length": "truncated", "content_filter": "blocked", "empty": "empty"}


@attrs.frozen
class Came:
    """What came of one program of a case."""

    played: tuple[Played, ...]
    """One after the other, of the agent that the case is about."""
    tool_runs: dict[str, int]
    asked: tuple[Asked, ...]
    """All requests of that agent."""
    faults: tuple[str, ...]
    """What a strict server would have refused of them."""
    stream: tuple[RunEvent, ...]
    """All events of its stream, those of agents below it included."""

    @property
    def last(self) -> Played:
        return self.played[-1]

    @property
    def prompts(self) -> list[ContinuationRequired]:
        return [event for played in self.played for event in played.all(ContinuationRequired)]

    @property
    def results(self) -> dict[str, list[ToolFinished]]:
        found: dict[str, list[ToolFinished]] = {}
        for event in self.stream:
            if isinstance(event, ToolFinished):
                found.setdefault(event.call, []).append(event)
        return found

    @property
    def outcome(self) -> str:
        """In the words of the cases."""
        error, result = self.last.error, self.last.result
        if isinstance(error, RunCancelledError):
            return "cancelled"
        if error is not None:
            return "error"
        if result.limit is not None and not result.answered:
            return "limit"
        return OUTCOMES.get(result.finish_reason, "answer" if result.answered else result.finish_reason)


@functools.cache
def run_case(id: str, gate: Gate = "remote", message: str | None = None) -> tuple[Came, ...]:
    """Each program of a case, played and judged. `message` replaces that of the case's decisions."""
    told = CASES[id]["input"]
    programs = told.get("runs", [told])
    return tuple(perform(functools.partial(_play, program, gate, message)) for program in programs)


async def _play(told: dict[str, Any], gate: Gate, message: str | None, stage: Stage) -> Came:
    actions = [
        dict(action, message=message) if message and isinstance(action, dict) else action
        for action in told.get("actions", [])
    ]
    bench = Bench()
    specs: dict[str, AgentSpec] = {}

    async def run_child(name: str) -> str:
        return (await stage.play(await stage.spawn(specs[name]), "from above")).result.text

    tools = tools_of(told["tools"], bench, run_child)
    configs = told.get("agents", {"agent": told.get("config", {})})
    scripts = told.get("script", {"agent": told.get("turns") or told.get("model")})
    for name, config in configs.items():
        answers = gate_function(actions) if gate == "function" else remote()
        specs[name] = spec_of(name, config, rule_of(scripts[name]), tools, answers)
    main = next(iter(specs.values()))
    one = await stage.spawn(main)
    played = [await stage.play(one, prompt, act=_act(actions, gate)) for prompt in _prompts(actions)]
    assert isinstance(main.model, StrictModel)
    stream = [event for _, event in await numbered_events(one) if isinstance(event, RunEvent)]
    return Came(tuple(played), bench.runs, tuple(main.model.asked), tuple(main.model.faults), tuple(stream))


def _prompts(actions: list[Any]) -> list[str]:
    """What the user says: at once, and whenever a run has ended."""
    said = [action for action in actions if isinstance(action, dict) and action["do"] == "user_message"]
    first = [action["text"] for action in said if action["when"] == "immediately"]
    return [*(first or ["go"]), *[action["text"] for action in said if action["when"] == "run_ended"]]


def _act(actions: list[Any], gate: Gate) -> Act:
    """The actions that happen while a run goes on, each at its first moment."""
    todo = [a for a in actions if isinstance(a, dict) and a["do"] != "user_message" and "limit_prompt" not in a["when"]]

    async def act(run: Run) -> None:
        prompts = itertools.count(1)
        steps = itertools.count(1)
        async for event in run:
            match event:
                case ContinuationRequired() if gate == "remote":
                    response = response_of(actions, next(prompts))
                    if response is not None:
                        await run.decide(event.request, response, by="user")
                case ToolStarted(call=call):
                    _do(run, f"tool_started:{call}")
                case StepStarted():
                    _do(run, f"request:{next(steps)} in flight")
                case _:
                    pass

    def _do(run: Run, when: str) -> None:
        for action in [action for action in todo if action["when"] == when]:
            todo.remove(action)
            if action["do"] == "cancel":
                run.cancel()
            elif action["do"] == "steer":
                run.steer(action["text"])
            else:
                raise AssertionError(f"no action is known that does: {action}")

    return act


def result_word(event: ToolFinished) -> str:
    """A call's result in the words of the cases."""
    return RESULTS.get(event.status, "not_run")


def check(came: Came, word: str, expected: Any) -> bool:
    """One word of a case's `check`."""
    text = came.last.result.text
    match word:
        case "llm_calls":
            return bool(len(came.asked) == expected == sum(p.result.counters.llm_calls for p in came.played))
        case "llm_calls_one_of":
            return len(came.asked) in expected
        case "llm_calls_max":
            return bool(len(came.asked) <= expected)
        case "tool_runs":
            return came.tool_runs == {name: runs for name, runs in expected.items() if runs}
        case "result":
            return {id: [result_word(end) for end in came.results[id]] for id in expected} == {
                id: [word] for id, word in expected.items()
            }
        case "final_text":
            return bool(text == expected)
        case "final_contains":
            return all(part in text for part in expected)
        case "outcome":
            return bool(came.outcome == expected)
        case "strict_ok":
            return bool((not came.faults) == expected)
        case _:
            raise AssertionError(f"no check is known for {word}")
