"""`check_answer`: every answer is checked, and one that is rejected never passes for a result (H6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from actors import CallConfig, Run, StopState, is_step_count
from actors.models.scripted import call, reply
from protocol.errors import AnswerRejected, RunFailedError
from protocol.events import LimitReached, MessageDropped, RunFailed
from protocol.turns import AssistantMessage, Message, TextPart, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, Trickle, calls_while_on
from tests.support.specs import agent


def says(text: str) -> AssistantMessage:
    return AssistantMessage((TextPart(text),))


@attrs.define
class Checker:
    """A `check_answer` that lets one text pass, and keeps all that it was asked about."""

    good: str = "good"
    asked: list[str] = attrs.field(factory=list)

    def __call__(self, text: str) -> str | None:
        self.asked.append(text)
        return None if text == self.good else f"{text!r} is not good."


@attrs.define
class Again:
    """A `continue_when` that wants more for the first `times` answers."""

    times: int
    seen: list[StopState] = attrs.field(factory=list)

    def __call__(self, state: StopState) -> str | None:
        self.seen.append(state)
        return f"Go on ({len(self.seen)})." if len(self.seen) <= self.times else None


def test_a_complaint_is_stored_and_answered() -> None:
    """H6: the answer stays in the conversation, the complaint follows it as a user message, and the model is asked again."""
    checker = Checker()
    played = play(agent(["bad", "good"], check_answer=checker))
    stored: list[Message] = [UserMessage("go"), says("bad"), UserMessage("'bad' is not good."), says("good")]

    assert (stored, ["bad", "good"]) == (list(played.messages), checker.asked)
    assert ("good", True, "model") == (played.result.text, played.result.answered, played.result.stopped_by)


def test_every_answer_is_checked() -> None:
    """H6: one after `continue_when` too; text beside calls and half an answer are none."""
    checker = Checker("one")
    checks: list[str] = []

    def check(text: str) -> None:
        checks.append(text)

    spec = agent(
        [reply("hm", call("t", {}, id="a")), "one", "two"], Bench().tool(), check_answer=check, continue_when=Again(1)
    )
    play(spec)
    play(agent([reply("half", finish="length")], check_answer=checker))

    assert (["one", "two"], []) == (checks, checker.asked)


@pytest.mark.parametrize("verdict", [None, "", " ", False])
def test_no_complaint_lets_an_answer_pass(verdict: Any) -> None:
    """H6: only a text that can be seen is a complaint."""
    assert "fine" == play(agent(["fine", "never"], check_answer=lambda _: verdict)).result.text


def test_an_async_check_is_awaited() -> None:
    """H6: it may ask somebody."""

    async def check(text: str) -> str | None:
        await trio.sleep(2)
        return "No." if text == "bad" else None

    played = play(agent(["bad", "good"], check_answer=check))

    assert ("good", 4.0) == (played.result.text, played.seconds)


@pytest.mark.parametrize(("options", "asked"), [({}, 4), ({"max_continues": 1}, 2), ({"max_continues": 0}, 1)])
def test_complaints_are_bounded(options: dict[str, Any], asked: int) -> None:
    """H6: after `max_continues` (3) complaints the next one ends the run with `AnswerRejected` and the partial result."""
    played = play(agent(lambda _: "bad", check_answer=Checker(), **options))

    assert type(played.error) is AnswerRejected
    assert isinstance(played.error, RunFailedError)
    assert asked == len(played.asked)
    assert ("failure", "answer_rejected", False, None) == (
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.answered,
        played.result.limit,
    )
    assert "\n\n".join(["bad"] * asked) == played.result.text
    assert "'bad' is not good." in str(played.error)
    assert "answer_rejected" == played.only(RunFailed).error.code
    assert says("bad") == played.messages[-1]


def test_complaints_and_continues_share_their_bound() -> None:
    """H5, H6, R5: `max_continues` bounds both edges together."""
    again = Again(99)
    played = play(agent(["bad", "good", "good", "good"], check_answer=Checker(), continue_when=again, max_continues=2))

    assert (3, 1, True) == (len(played.asked), len(again.seen), played.result.answered)


def test_a_complaint_without_a_call_left_rejects_the_answer() -> None:
    """H6, B1: no path makes a call that the ledger does not grant; the limit that left no way is told."""
    played = play(agent(["bad", "never"], check_answer=Checker(), max_llm_calls=1))

    assert type(played.error) is AnswerRejected
    assert ("llm_calls", 1) == (played.result.limit.name if played.result.limit else None, len(played.asked))
    assert 1 == len(played.all(LimitReached))


def test_a_condition_may_end_the_run_in_place_of_asking_again() -> None:
    """S2, H6: a complaint would be followed by another call, so conditions are asked; a rejected answer is none."""
    played = play(agent(["bad", "never"], check_answer=Checker(), stop_when=[is_step_count(1)]))

    assert ("stop_condition", False, "bad", None) == (
        played.result.stopped_by,
        played.result.answered,
        played.result.text,
        played.error,
    )


def a_json_object(text: str) -> str | None:
    try:
        return None if isinstance(json.loads(text), dict) else "It must be a JSON object."
    except ValueError:
        return "It must be a JSON object."


FINAL: dict[str, dict[str, Any]] = {
    "tool iterations": {"max_tool_iterations": 1, "tool_iteration_limit_finalization": ""},
    "llm calls": {"max_llm_calls": 2, "llm_call_limit_finalization": ""},
    "stop": {"stop_when": [is_step_count(1)], "finalize_on_stop": ""},
}


@pytest.mark.parametrize("name", FINAL)
def test_the_final_calls_answer_is_checked_and_rejected_at_once(name: str) -> None:
    """Case LIM-09, H6: what the check rejects never passes for a result; after a final call nothing is asked again."""
    bench = Bench()
    checked: list[str] = []

    def check(text: str) -> str | None:
        checked.append(text)
        return a_json_object(text)

    played = play(agent(calls_while_on("not json"), bench.tool(), check_answer=check, **FINAL[name]))

    assert type(played.error) is AnswerRejected
    assert ({"t": 1}, ["not json"], 2) == (bench.runs, checked, len(played.asked))
    assert (False, None) == (played.result.answered, played.result.finalized)
    assert "It must be a JSON object." in str(played.error)


@pytest.mark.parametrize("name", FINAL)
def test_a_final_answer_that_passes_is_the_answer(name: str) -> None:
    """H6, F6: a checked final answer is a normal one."""
    played = play(agent(calls_while_on("{}"), Bench().tool(), check_answer=a_json_object, **FINAL[name]))

    assert ("{}", True, "model") == (played.result.text, played.result.answered, played.result.finalized)


def test_a_fallback_text_is_no_answer_and_not_checked() -> None:
    """H6, F5: the runtime's own text is none of the model's."""
    checker = Checker()
    played = play(agent(calls_while_on(""), Bench().tool(), check_answer=checker, **FINAL["tool iterations"]))

    assert ([], "fallback", False) == (checker.asked, played.result.finalized, played.result.answered)


def test_a_complaint_that_leads_to_the_final_call_is_answered_by_it() -> None:
    """H6, F3: where only the last call is left to ask again, it is the final call, with its instruction behind the complaint."""
    spec = agent(
        ["bad", "good"], check_answer=Checker(), max_llm_calls=2, llm_call_limit_finalization="This is the last call."
    )
    played = play(spec)

    assert ["go", "'bad' is not good.", "This is the last call."] == played.asked[1].texts
    assert ("good", True, "llm_calls", "model") == (
        played.result.text,
        played.result.answered,
        played.result.stopped_by,
        played.result.finalized,
    )


def test_hooks_see_the_complaint() -> None:
    """H1, H6: the call that answers a complaint is prepared like any other."""
    seen: list[tuple[int, str]] = []

    def prepare(config: CallConfig) -> CallConfig:
        last = config.messages[-1]
        assert isinstance(last, UserMessage)
        seen.append((config.step_number, last.text))
        return config

    play(agent(["bad", "good"], check_answer=Checker(), prepare_call=prepare))

    assert [(0, "go"), (1, "'bad' is not good.")] == seen


def test_a_stop_is_not_held_up_by_a_complaint() -> None:
    """M2, H6: the step in hand is finished; what was rejected is no answer, and nothing is asked again."""

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.stop("enough")

    played = play(agent(Trickle([["b", 1.0, "ad"], ["never"]]), check_answer=Checker()), act=act)

    assert ("caller", "enough", False) == (
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.answered,
    )


def test_messages_that_wait_when_an_answer_is_rejected_are_undelivered() -> None:
    """H6, section 3: the run is over, and what waited is told."""

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.steer("Hello?")

    played = play(agent(Trickle([["b", 1.0, "ad"]]), check_answer=Checker(), max_continues=0), act=act)

    assert type(played.error) is AnswerRejected
    assert (("Hello?",), 1) == (played.result.undelivered, len(played.all(MessageDropped)))


@pytest.mark.parametrize("hook", ["check_answer", "continue_when"])
def test_lone_surrogates_are_replaced(hook: str) -> None:
    """R3: what a hook says is stored as text that encodes."""
    said: Callable[[Any], str | None] = lambda seen: "\ud800?" if seen == "one" or not isinstance(seen, str) else None

    def run() -> Played:
        return play(agent(["one", "two"], max_continues=1, **{hook: said}))

    assert "\ufffd?" in [message.text for message in run().messages if isinstance(message, UserMessage)]
