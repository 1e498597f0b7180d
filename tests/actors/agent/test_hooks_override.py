"""`run.override_next`: the same overrides from outside the run (M1, H2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from actors import Run, StepOverrides
from protocol.errors import SpecError
from protocol.turns import UserMessage
from tests.actors.agent._step_hooks import SUMMARY, At, spec_with, three_calls
from tests.support.play import Stage, perform
from tests.support.scripts import Bench
from tests.support.specs import agent


@pytest.mark.parametrize(
    ("overrides", "read", "expected"),
    [
        (StepOverrides(system="Be brief."), lambda r: r.system, ["Be exact.", "Be brief.", "Be brief."]),
        (
            StepOverrides(messages=[SUMMARY]),
            lambda r: r.messages[0],
            [UserMessage("go"), SUMMARY, SUMMARY],
        ),
        (StepOverrides(tool_choice="required"), lambda r: r.tool_choice, ["auto", "required", "auto"]),
        (StepOverrides(active_tools=[]), lambda r: len(r.tools), [1, 0, 1]),
        (StepOverrides(max_tokens=None), lambda r: r.max_tokens, [100, None, 100]),
        (StepOverrides(provider_options={"seed": 2}), lambda r: r.provider_options["seed"], [1, 2, 1]),
        (StepOverrides(), lambda r: (r.system, r.max_tokens), [("Be exact.", 100)] * 3),
    ],
    ids=["system", "messages", "tool_choice", "active_tools", "max_tokens", "provider_options", "nothing"],
)
def test_override_next_is_the_same_from_outside(
    overrides: StepOverrides, read: Callable[[Any], object], expected: list[object]
) -> None:
    """M1, H2: what the caller overrides holds from the next step on, exactly as long as if the hook had said it."""
    model = three_calls()

    async def scene(stage: Stage) -> None:
        async with stage.run(await stage.spawn(spec_with(None, model))) as run:
            async for step in run.steps():
                if step.number == 0:
                    run.override_next(overrides)

    perform(scene)

    assert expected == [read(request) for request in model.requests]


def test_what_override_next_says_wins_over_the_hook() -> None:
    """M1: over what `prepare_step` makes of the step, field by field; a second call replaces the first."""
    model = three_calls()
    hook = At(1, StepOverrides(system="hook", temperature=0.1))

    async def scene(stage: Stage) -> None:
        async with stage.run(await stage.spawn(spec_with(hook, model))) as run:
            async for step in run.steps():
                if step.number == 0:
                    run.override_next(StepOverrides(max_tokens=1))
                    run.override_next(StepOverrides(system="caller"))

    perform(scene)

    assert [("Be exact.", 0.5, 100), ("caller", 0.1, 100), ("caller", 0.5, 100)] == [
        (request.system, request.temperature, request.max_tokens) for request in model.requests
    ]


def test_override_next_reaches_a_run_with_prepare_call() -> None:
    """M1: the caller's word comes after the hook's."""
    model = three_calls()

    async def act(run: Run) -> None:
        run.override_next(StepOverrides(system="caller"))

    spec = agent(model, Bench().tool(), prepare_call=lambda config: config.replace(system="hook"))

    async def scene(stage: Stage) -> None:
        async with stage.run(await stage.spawn(spec)) as run:
            await act(run)
            await run.result()

    perform(scene)

    assert ["caller", "hook", "hook"] == [request.system for request in model.requests]


def test_override_next_takes_overrides_alone() -> None:
    """M1: anything else is refused where it is said."""

    async def scene(stage: Stage) -> None:
        async with stage.run(await stage.spawn(agent(["yes"]))) as run:
            wrong: Any = {"system": "x"}
            with pytest.raises(SpecError, match="StepOverrides"):
                run.override_next(wrong)
            await run.result()

    perform(scene)
