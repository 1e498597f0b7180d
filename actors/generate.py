"""One call for one question: a run of an agent that is made for it and gone after it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from protocol.model import Model
from protocol.result import RunResult
from protocol.stop import StopCondition, is_step_count

from .agent import AgentSpec, Run
from .runtime import open_runtime

__all__ = ("generate", "stream")


@contextlib.asynccontextmanager
async def stream(
    model: Model,
    prompt: str,
    *,
    tools: Sequence[Any] = (),
    stop_when: Sequence[StopCondition] | None = None,
    context: Any = None,
    **settings: Any,
) -> AsyncGenerator[Run, None]:
    """Start a run of an agent of its own, in a runtime of its own: iterate it for its events, await its `result()`.

    Unless `stop_when` or `max_steps` says otherwise it is one model call, whose tool calls are still executed (S5).
    `settings` are those of `AgentSpec`. Raises `SpecError` for a setting that cannot be right.
    """
    if stop_when is None and settings.get("max_steps") is None:
        stop_when = (is_step_count(1),)
    spec = AgentSpec(model=model, tools=tools, stop_when=stop_when, **settings)
    async with open_runtime() as runtime:
        agent = await runtime.spawn(spec)
        async with agent.run(prompt, context=context) as run:
            yield run


async def generate(
    model: Model,
    prompt: str,
    *,
    tools: Sequence[Any] = (),
    stop_when: Sequence[StopCondition] | None = None,
    context: Any = None,
    **settings: Any,
) -> RunResult:
    """The result of `stream()`: the same run, waited for. Raises `RunError` as `Run.result()` does.

    A run that pauses for results of the caller's own tools ends there, with `stopped_by="pending_tools"`.
    """
    async with stream(model, prompt, tools=tools, stop_when=stop_when, context=context, **settings) as run:
        return await run.result()
