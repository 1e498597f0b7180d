"""`continue_when`: a run that is kept going after an answer (H5)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import Run, StopState, is_step_count
from actors.models.scripted import call, reply
from protocol.turns import AssistantMessage, Message, TextPart, UserMessage
from tests.support.play import play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent

CALL = reply("", call("t", {}, id="a"))


def says(text: str) -> AssistantMessage:
    return AssistantMessage((TextPart(text),))


@attrs.define
class Again:
    """A `continue_when` that wants more for the first `times` answers."""

    times: int
    seen: list[StopState] = attrs.field(factory=list)

    def __call__(self, state: StopState) -> str | None:
        self.seen.append(state)
        return f"Go on ({len(self.seen)})." if len(self.seen) <= self.times else None


def test_a_text_of_continue_when_keeps_the_run_going() -> None:
    """H5: it is stored as a user message, and the next step answers it; the last answer is the run's."""
    played = play(agent(["one", "two"], continue_when=Again(1)))
    stored: list[Message] = [UserMessage("go"), says("one"), UserMessage("Go on (1)."), says("two")]

    assert stored == list(played.messages)
    assert ("two", True, "model", 2) == (
        played.result.text,
        played.result.answered,
        played.result.stopped_by,
        len(played.result.steps),
    )
    assert ["go", "Go on (1)."] == played.asked[1].texts


def test_continue_when_sees_the_answer() -> None:
    """H5: it looks at the state with the step that answered in it."""
    again = Again(0)
    play(agent([CALL, "one"], Bench().tool(seconds=2), continue_when=again), context="Ann")
    (state,) = again.seen

    assert (1, 2, "one", "Ann", 2.0) == (
        state.step_number,
        len(state.steps),
        state.steps[-1].text,
        state.context,
        state.elapsed_seconds,
    )
    assert says("one") == state.messages[-1]


@pytest.mark.parametrize(("options", "times"), [({}, 3), ({"max_continues": 1}, 1), ({"max_continues": 0}, 0)])
def test_continue_when_is_bounded(options: dict[str, Any], times: int) -> None:
    """H5, R5: `max_continues` (3) times in a run; then its answer ends the run and nobody is asked."""
    again = Again(99)
    played = play(agent(lambda _: "more", continue_when=again, **options))

    assert (times, times + 1, True) == (len(again.seen), len(played.asked), played.result.answered)


@pytest.mark.parametrize("verdict", [None, "", "  \n", False])
def test_nothing_to_say_ends_the_run(verdict: Any) -> None:
    """H5: only a text that can be seen keeps a run going."""
    played = play(agent(["one", "never"], continue_when=lambda _: verdict))

    assert ("one", 1) == (played.result.text, len(played.asked))


def test_an_async_continue_when_is_awaited() -> None:
    """H5: plain or async, it is the same."""

    async def again(state: StopState) -> str | None:
        await trio.sleep(2)
        return "Go on." if len(state.steps) == 1 else None

    played = play(agent(["one", "two"], continue_when=again))

    assert ("two", 4.0) == (played.result.text, played.seconds)


NO_NATURAL_END: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "cut": ([reply("half", finish="length")], {}),
    "blocked": ([reply("half", finish="content_filter")], {}),
    "empty": ([""], {"max_reasks": 0}),
    "condition": ([CALL], {"stop_when": [is_step_count(1)]}),
    "limit": ([CALL], {"max_llm_calls": 1}),
    "final call": (["so far"], {"max_llm_calls": 1, "llm_call_limit_finalization": ""}),
}


@pytest.mark.parametrize("name", NO_NATURAL_END)
def test_continue_when_is_asked_on_a_natural_end_alone(name: str) -> None:
    """H5, F5: not where the run ends for another reason, and nothing goes on after a final call."""
    script, options = NO_NATURAL_END[name]
    again = Again(9)
    played = play(agent([*script, "never"], Bench().tool(), continue_when=again, **options))

    assert ([], 1) == (again.seen, len(played.asked))


def test_a_waiting_message_goes_first() -> None:
    """Step 7: messages that wait keep the run going before `continue_when` is asked, and use up none of its times."""
    again = Again(1)

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.steer("And in French?")

    spec = agent(Trickle([["o", 1.0, "ne"], ["two"], ["three"]]), continue_when=again, max_continues=1)
    played = play(spec, act=act)
    said = [message.text for message in played.messages if isinstance(message, UserMessage)]

    assert (["go", "And in French?", "Go on (1)."], "three") == (said, played.result.text)
    assert [2] == [len(state.steps) for state in again.seen]


def test_a_stop_during_the_answer_leaves_it_the_last_one() -> None:
    """M2: the caller's stop wins over `continue_when`."""
    again = Again(9)

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.stop()

    played = play(agent(Trickle([["o", 1.0, "ne"], ["never"]]), continue_when=again), act=act)

    assert ("one", True, []) == (played.result.text, played.result.answered, again.seen)
