"""Hooks that do what they should not, each after one round in which nothing was wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors import AgentSpec
from actors.models.scripted import call, reply
from protocol.errors import ContextOverflow
from tests.support.scripts import Bench
from tests.support.specs import agent

CALL = reply("Let me look.", call("t", {}, id="a"))
OVERFLOW = ContextOverflow("too long", status=400)
# Each hook, the script that leads to it after one round, and how many calls are asked before.
HOOKS: dict[str, tuple[list[Any], int]] = {
    "prepare_call": ([CALL, "done"], 1),
    "prepare_step": ([CALL, "done"], 1),
    "check_answer": ([CALL, "done"], 2),
    "continue_when": ([CALL, "done"], 2),
    "on_context_overflow": ([CALL, OVERFLOW], 2),
}


def after_one_round(name: str, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook that does nothing in the first step."""

    def hook(seen: Any) -> Any:
        if getattr(seen, "step_number", 1) == 0 and name.startswith("prepare"):
            return seen if name == "prepare_call" else None
        return act(seen)

    return hook


def spec_with(name: str, act: Callable[[Any], Any], **options: Any) -> AgentSpec:
    script, _ = HOOKS[name]
    return agent(list(script), Bench().tool(), **{name: after_one_round(name, act)}, **options)
