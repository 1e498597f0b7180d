"""`agent.continue_answer()` goes on with a stored answer that was cut (loop.md D5, R3)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors import Budget, Limits, LimitsWarning, Run, StepOverrides
from actors.models.scripted import call
from protocol.errors import AgentBusy, ModelError, SpecError
from protocol.events import HopStarted, RunStarted
from protocol.model import Resume
from protocol.turns import AssistantMessage, Hop, Message, TextPart, UserMessage
from tests.support.play import Played, Stage, perform
from tests.support.scripts import Bench, Trickle

from ._cut import USED, agent, cut, done, hops, last, profile, shown

HALF = AssistantMessage((TextPart("It was the best of times"),), partial=True)
STORED: tuple[Message, ...] = (UserMessage("Tell me."), HALF)
KNOWN = profile("user_turn")


def go_on(spec: Any, *, messages: tuple[Message, ...] = STORED, act: Any = None, **options: Any) -> Played:
    """One run that continues what is stored."""

    async def scene(stage: Stage) -> Played:
        host = await stage.spawn(spec, messages=messages)
        return await stage.play(host, None, act=act, **options)

    return perform(scene)


def test_the_answer_becomes_whole() -> None:
    """One message at the end, with all its text; the result is the whole answer, what is shown is what is new."""
    played = go_on(agent([done("the best of times, it was the worst.")], known=KNOWN))
    whole = "It was the best of times, it was the worst."

    assert (UserMessage("Tell me."), AssistantMessage((TextPart(whole),))) == played.messages
    assert (whole, True, "stop") == (played.result.text, played.result.answered, played.result.finish_reason)
    assert ", it was the worst." == shown(played.events)
    assert "" == played.only(RunStarted).prompt


@pytest.mark.parametrize("strategy", ["exact_prefix", "user_turn"])
def test_the_model_goes_on_as_its_profile_says(strategy: Any) -> None:
    """The first request holds the answer behind the conversation, whatever is said about going on by itself."""
    played = go_on(agent([done(", he said.")], known=profile(strategy), automatic_continuation=False))
    (asked,) = played.asked

    assert ((UserMessage("Tell me."),), Resume(HALF.parts, strategy)) == (asked.messages, asked.resume)
    assert [("started", 0, strategy), ("finished", 0, "stop")] == hops(played)
    assert (Hop(None, "stop", USED, strategy),) == played.result.steps[0].hops
    assert (USED, 1, 1) == (played.result.usage, played.result.counters.llm_calls, played.result.counters.steps)


def test_it_may_be_cut_again() -> None:
    """Then it goes on by itself where that is on; else it is stored as partial again, longer, and may be continued."""
    by_itself = go_on(agent([cut(", it"), done(" was the worst.")], known=KNOWN))
    stays = go_on(agent([cut(", it"), done("never")], known=KNOWN, automatic_continuation=None))

    assert "It was the best of times, it was the worst." == by_itself.result.text
    assert [0, 1] == [event.hop for event in by_itself.all(HopStarted)]
    assert ("It was the best of times, it", True, "length") == (
        stays.result.text,
        last(stays.messages).partial,
        stays.result.finish_reason,
    )


def test_it_may_go_on_to_tools() -> None:
    """It is a run like any other; the answer and the calls are one turn."""
    bench = Bench()
    script = [done("? Let me look.", call("t", {}, id="c1")), done("Yes.")]
    played = go_on(agent(script, bench.tool(), known=KNOWN))

    assert ({"t": 1}, "Yes.") == (bench.runs, played.result.text)
    assert ["It was the best of times? Let me look.", "Yes."] == [step.text for step in played.result.steps]
    assert 4 == len(played.messages)


def test_the_next_run_follows_it() -> None:
    """The conversation goes on behind the whole answer."""

    async def scene(stage: Stage) -> Played:
        host = await stage.spawn(agent([cut("half"), done(" whole"), done("Sure.")], automatic_continuation=None))
        await stage.play(host)
        await stage.play(host, None)
        return await stage.play(host, "Really?")

    played = perform(scene)

    assert (UserMessage("go"), AssistantMessage((TextPart("half whole"),)), UserMessage("Really?")) == played.asked[
        0
    ].messages
    assert "Sure." == played.result.text


def test_what_was_seen_before_stays_as_it_was() -> None:
    """A history only grows: whoever looks at the one from before goes on to see it (R3)."""
    seen: list[Any] = []

    async def scene(stage: Stage) -> None:
        host = await stage.spawn(agent([done(", he said.")], known=KNOWN), messages=STORED)
        before = host.messages
        await stage.play(host, None)
        seen.extend([tuple(before), tuple(host.messages)])

    perform(scene)

    assert [STORED, (STORED[0], AssistantMessage((TextPart("It was the best of times, he said."),)))] == seen


# ---------------------------------------------------------------- nothing is lost


@pytest.mark.parametrize("reply", [ModelError("no"), cut(""), done("", finish="malformed"), done("", end="lost")])
def test_if_nothing_comes_it_is_stored_again(reply: Any) -> None:
    """As it was, partial, at the end."""
    played = go_on(agent([reply], known=KNOWN, automatic_continuation=None, max_reasks=0))

    assert STORED == played.messages
    assert HALF.parts[0].text == played.result.text  # type: ignore[union-attr]
    assert not played.result.answered


async def cancel_later(run: Run) -> None:
    await trio.sleep(1.5)
    run.cancel()


def test_a_cut_keeps_what_had_come() -> None:
    """The text from before, and the new one behind it."""
    played = go_on(agent(Trickle([[", it", 5.0]], profile=KNOWN), known=KNOWN), act=cancel_later)
    nothing = go_on(agent(Trickle([[5.0]], profile=KNOWN), known=KNOWN), act=cancel_later)

    assert AssistantMessage((TextPart("It was the best of times, it"),), partial=True) == last(played.messages)
    assert (", it", STORED) == (shown(played.events), nothing.messages)


def test_a_refused_call_keeps_it() -> None:
    """A run that may make no call at all leaves the conversation as it was."""
    budget = Budget(max_llm_calls=1)

    async def scene(stage: Stage) -> tuple[Played, Played]:
        host = await stage.spawn(agent([cut("half"), done("never")], automatic_continuation=None, budget=budget))
        return await stage.play(host), await stage.play(host, None)

    first, second = perform(scene)

    assert first.messages == second.messages
    assert ("half", "max_llm_calls", ()) == (second.result.text, second.result.finish_reason, second.asked)


def test_a_message_with_more_than_text_is_kept_whole() -> None:
    """What was loaded is what is stored again."""
    loaded = AssistantMessage((TextPart("a"), TextPart("b")), partial=True)
    played = go_on(agent([ModelError("no")], known=KNOWN), messages=(UserMessage("x"), loaded))

    assert (UserMessage("x"), loaded) == played.messages


# ---------------------------------------------------------------- limits and settings


def test_it_may_be_the_final_call() -> None:
    """With tools off and the instruction before the answer; whole, it is the run's."""
    spec = agent([done(", he said.")], Bench().tool(), known=KNOWN, llm_call_limit_finalization="Finish now.")
    with pytest.warns(LimitsWarning, match="the only call is the final one"):
        played = go_on(spec, limits=Limits(max_llm_calls=1))
    (asked,) = played.asked

    assert ("It was the best of times, he said.", "model", True) == (
        played.result.text,
        played.result.finalized,
        played.result.answered,
    )
    assert (False, "Finish now.") == (asked.tools_on, asked.tail)


def test_hooks_are_asked_about_the_conversation_before_it() -> None:
    """They may change what is sent; the answer stands behind it."""
    seen: list[Any] = []

    def prepare(state: Any) -> StepOverrides:
        seen.append(tuple(state.messages))
        return StepOverrides(messages=[UserMessage("In short: tell me.")])

    played = go_on(agent([done(", he said.")], known=KNOWN, prepare_step=prepare))

    assert [STORED[:1]] == seen
    assert (UserMessage("In short: tell me."),) == played.asked[0].messages
    assert "It was the best of times, he said." == played.result.text


def test_a_model_of_a_hook_that_cannot_is_told_so() -> None:
    """The run fails, says why, and keeps the answer."""
    other = agent([], known=profile("none")).model
    played = go_on(agent([], known=KNOWN, prepare_step=lambda _state: StepOverrides(model=other)))

    assert "continues_text is 'none'" in str(played.error)
    assert STORED == played.messages


@pytest.mark.parametrize(
    "messages",
    [(), (UserMessage("a"),), (UserMessage("a"), AssistantMessage((TextPart("whole"),))), (*STORED, UserMessage("b"))],
)
def test_there_must_be_one(messages: tuple[Message, ...]) -> None:
    """Without a partial answer at the end there is nothing to continue; the agent is free for the next run."""

    async def scene(stage: Stage) -> Played:
        host = await stage.spawn(agent([done("Fine.")], known=KNOWN), messages=messages)
        with pytest.raises(SpecError, match="does not end with a partial one"):
            await stage.play(host, None)
        return await stage.play(host)

    assert "Fine." == perform(scene).result.text


def test_the_model_must_be_able_to() -> None:
    """One that cannot continue a text is not asked."""
    with pytest.raises(SpecError, match="cannot continue an answer"):
        go_on(agent([], known=profile("none")))


def test_one_run_at_a_time() -> None:
    """It waits for its turn, or is refused, like any other; what it continues is what is there then."""

    async def scene(stage: Stage) -> tuple[Message, ...]:
        host = await stage.spawn(agent([cut("half"), done(" whole")], known=profile(), automatic_continuation=None))
        async with stage.run(host) as run:
            with pytest.raises(AgentBusy):
                await stage.play(host, None)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: stage.play(host, None, if_busy="queue"))
                await run.result()
        return tuple(host.messages)

    assert AssistantMessage((TextPart("half whole"),)) == perform(scene)[-1]
