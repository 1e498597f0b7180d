"""`usage` says what the run has used where its books change in the middle of a step, and nowhere else."""

from __future__ import annotations

from typing import Any

import trio

from actors import AgentSpec, ask_model, tool
from actors.models.scripted import Scripted, call
from protocol.errors import ContextOverflow
from protocol.events import StepFinished, UsageReport
from protocol.turns import UserMessage
from protocol.usage import Usage
from tests.support.costs import Prices
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench

from ._cut import USED, agent, cut, done

SMALL = Usage(3, 0, 0, 1, 0, complete=True)


def consulting(**options: Any) -> Any:
    async def consult() -> str:
        """Ask somebody."""
        turn = await ask_model("What do you think?", **options)
        return turn.text

    return tool(consult)


def with_helper(spec: AgentSpec, helper: Scripted) -> Played:
    async def scene(stage: Stage) -> Played:
        await stage.spawn(AgentSpec(model=helper))
        return await stage.play(await stage.spawn(spec))

    return perform(scene)


def test_a_plain_run_has_none() -> None:
    """Each `step_finished` says what its step used."""
    played = play(agent([done("", call("t", {})), done("Done.")], Bench().tool()))

    assert [] == played.all(UsageReport)
    assert [USED, USED] == [event.usage for event in played.all(StepFinished)]


def test_a_helper_call_is_told() -> None:
    """In the step in which it was made, with all that the run has used by then, the step's own call included."""
    helper = Scripted([done("Hm.", usage=SMALL)], name="helper")
    prices = Prices(token=1.0, models=("strict", "helper"))
    spec = agent([done("", call("consult", {})), done("Done.")], consulting(model=helper), prices=prices)
    played = with_helper(spec, helper)
    told = played.only(UsageReport)

    assert (USED + SMALL, 44.0, 30) == (told.usage, told.cost, told.context_tokens)
    assert ["tool_started", "usage", "tool_finished"] == played.types[4:7]


def test_a_helper_call_that_was_cut_is_told_too() -> None:
    """It was sent, and its usage is unknown: the sum is not complete any more."""

    async def sleep(_request: Any) -> str:
        await trio.sleep(60)
        return "never"

    async def consult() -> str:
        """Ask somebody who is slow."""
        with trio.move_on_after(1):
            await ask_model("What do you think?", model=helper)
        return "no answer"

    helper = Scripted(sleep, name="helper")
    played = with_helper(agent([done("", call("consult", {})), done("Done.")], tool(consult)), helper)

    assert (40, False) == (played.only(UsageReport).usage.total_tokens, played.only(UsageReport).usage.complete)


def test_a_refused_call_that_is_made_again_is_told() -> None:
    """It was counted, and the step's usage is that of the call after it."""
    script = [ContextOverflow("too long", status=400), done("Fine.")]
    played = play(agent(script, on_context_overflow=lambda _messages: [UserMessage("short")]))

    assert ["step_started", "usage", "content_delta", "step_finished"] == played.types[1:5]
    assert not played.only(UsageReport).usage.complete


def test_the_last_piece_of_a_turn_needs_none() -> None:
    """Its step says it."""
    played = play(agent([cut("a"), cut("b"), done("c")]))

    assert [USED, USED + USED] == [event.usage for event in played.all(UsageReport)]
    assert USED + USED + USED == played.only(StepFinished).usage
