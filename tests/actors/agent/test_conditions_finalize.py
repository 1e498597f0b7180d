"""`finalize_on_stop`: a condition that is met leads to an answer (S6)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio

from actors import FinalizationContext, Run, is_step_count, max_steps
from actors.models.scripted import call, reply
from protocol.errors import ModelError, RunFailedError
from protocol.events import Finalizing, LimitReached, StepStarted, Warned
from protocol.finalization import built_in_instruction
from protocol.model import Profile
from protocol.turns import AssistantMessage, TextPart, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_while_on
from tests.support.specs import agent
from tests.support.strict import StrictModel

BUILT_IN = built_in_instruction(None)


def stopped(option: Any, script: Any = None, **options: Any) -> Played:
    settings = {"stop_when": [is_step_count(2)], **options}
    return play(agent(script or calls_while_on(), Bench().tool(), finalize_on_stop=option, **settings))


async def later(_context: FinalizationContext) -> str:
    await trio.sleep(3)
    return "Sum up, later."


VALUES: dict[str, tuple[Any, str]] = {
    "built in": ("", BUILT_IN),
    "a text": ("Sum it up.", "Sum it up."),
    "a function": (lambda context: f"Answer {context.prompt!r}.", "Answer 'go'."),
    "an async function": (later, "Sum up, later."),
    "a function with nothing": (lambda _: None, BUILT_IN),
    "a function with an empty text": (lambda _: "", BUILT_IN),
    "a lone surrogate": (lambda _: "\ud800", "\ufffd"),
}


@pytest.mark.parametrize("name", VALUES)
def test_one_more_call_with_tools_off_answers(name: str) -> None:
    """S6: the instruction is its last message, transient; the answer is the run's, the reason stays the condition's."""
    option, instruction = VALUES[name]
    played = stopped(option)
    final = played.asked[-1]

    assert (3, instruction, False) == (len(played.asked), final.tail, final.tools_on)
    assert ("final", True, "stop_condition", "maximum number of steps (2) reached", "stop", "model", None) == (
        played.result.text,
        played.result.answered,
        played.result.stopped_by,
        played.result.stop_reason,
        played.result.finish_reason,
        played.result.finalized,
        played.result.limit,
    )
    assert [False, False, True] == [step.final for step in played.result.steps]
    assert [False, False, True] == [event.final for event in played.all(StepStarted)]
    assert ["go"] == [message.text for message in played.messages if isinstance(message, UserMessage)]
    assert AssistantMessage((TextPart("final"),)) == played.messages[-1]
    assert ([], []) == (played.all(LimitReached), played.all(Finalizing))


def test_none_is_off() -> None:
    """S6: by default a condition ends the run where it stands."""
    played = stopped(None)

    assert (2, False, None, "tool_calls") == (
        len(played.asked),
        played.result.answered,
        played.result.finalized,
        played.result.finish_reason,
    )


def test_a_function_is_told_that_it_was_a_condition() -> None:
    """S6, F2: the context has no limit; run, path, prompt and the caller's context are there."""
    seen: list[FinalizationContext] = []

    def option(context: FinalizationContext) -> str:
        seen.append(context)
        return "Sum it up."

    spec = agent(calls_while_on(), Bench().tool(), stop_when=[is_step_count(1)], finalize_on_stop=option)
    played = play(spec, "What?", context="Ann")

    assert [FinalizationContext(None, played.run, (), "What?", "Ann")] == seen


def broken(_context: FinalizationContext) -> str:
    raise RuntimeError("k3y")


def wrong(_context: FinalizationContext) -> Any:
    return 3


async def hangs(_context: FinalizationContext) -> str:
    await trio.sleep_forever()


@pytest.mark.parametrize("option", [broken, wrong, hangs])
def test_a_function_that_fails_is_as_if_it_were_off(option: Any, caplog: pytest.LogCaptureFixture) -> None:
    """S6, F2: the stop stands, the call that was reserved is given back, and a warning says so."""
    with caplog.at_level(logging.ERROR):
        played = stopped(option, callback_timeout_seconds=7.0)

    assert (2, 2, "stop_condition", "tool_calls", None) == (
        len(played.asked),
        played.result.counters.llm_calls,
        played.result.stopped_by,
        played.result.finish_reason,
        played.result.finalized,
    )
    assert "maximum number of steps (2) reached" == played.result.stop_reason
    assert "finalization_failed" == played.only(Warned).code
    assert "k3y" not in repr(played.events)


@pytest.mark.parametrize("finalization", [None, ""])
def test_without_a_call_left_the_stop_stands(finalization: Any) -> None:
    """S6: no call is made that the ledger does not grant; the reason is the condition's, no limit is told."""
    options = {"max_llm_calls": 2, "stop_when": [is_step_count(2)], "llm_call_limit_finalization": finalization}
    played = stopped("", [reply("", call("t", {}, id="a")), reply("", call("t", {}, id="b"))], **options)

    if finalization is None:
        assert ("stop_condition", None, None, 2) == (
            played.result.stopped_by,
            played.result.finalized,
            played.result.limit,
            len(played.asked),
        )
        assert [] == played.all(LimitReached)
    else:  # the second call is the last allowed one, so that no condition comes to be asked
        assert ("llm_calls", 2) == (played.result.stopped_by, len(played.asked))


def test_the_last_allowed_call_may_be_the_one_that_answers() -> None:
    """S6, F1: a condition that is met first makes the last call its own, with its instruction."""
    played = stopped(
        "Stop here.", max_llm_calls=2, stop_when=[is_step_count(1)], llm_call_limit_finalization="The last call."
    )

    assert (["go", "Stop here."], "stop_condition", "model", None) == (
        played.asked[-1].texts,
        played.result.stopped_by,
        played.result.finalized,
        played.result.limit,
    )


def test_it_wins_over_a_finalization_that_is_due() -> None:
    """S2, S6: the condition's instruction is used, and the full window is not told."""
    played = stopped(
        "Stop here.",
        stop_when=[is_step_count(1)],
        max_tool_iterations=1,
        tool_iteration_limit_finalization="The window is full.",
    )

    assert (["go", "Stop here."], "stop_condition", None) == (
        played.asked[-1].texts,
        played.result.stopped_by,
        played.result.limit,
    )


def test_no_text_falls_back_to_the_last_results() -> None:
    """S6, F5: as after a limit; the finish reason is that of the step after which it stopped."""
    played = stopped("", calls_while_on(""))

    assert ("fallback", False, "stop_condition", "tool_calls") == (
        played.result.finalized,
        played.result.answered,
        played.result.stopped_by,
        played.result.finish_reason,
    )
    assert played.result.text.startswith("The run was stopped before an answer was found.")
    assert "- t: 1" in played.result.text


def test_calls_in_its_reply_are_neither_run_nor_stored() -> None:
    """S6, F5: text beside calls is the answer."""
    bench = Bench()
    script = [reply("", call("t", {}, id="a")), reply("So far.", call("t", {}, id="b"))]
    spec = agent(script, bench.tool(), stop_when=[is_step_count(1)], finalize_on_stop="")
    played = play(spec)

    assert ({"t": 1}, "So far.", "stop") == (bench.runs, played.result.text, played.result.finish_reason)


def test_a_cut_reply_is_no_answer() -> None:
    """S6, F8: its text is kept, the finish reason is its own."""
    script = [reply("", call("t", {}, id="a")), reply("Half", finish="length")]
    played = stopped("", script, stop_when=[is_step_count(1)])

    assert ("Half", False, "length", "model", "stop_condition") == (
        played.result.text,
        played.result.answered,
        played.result.finish_reason,
        played.result.finalized,
        played.result.stopped_by,
    )


def test_a_call_that_fails_fails_the_run() -> None:
    """S6, F8: as any failed call."""
    played = stopped("", [reply("", call("t", {}, id="a")), ModelError("down")], stop_when=[is_step_count(1)])

    assert (RunFailedError, "failure") == (type(played.error), played.result.stopped_by)


def test_tools_are_taken_away_where_none_is_not_proven() -> None:
    """S6, F4: as in every final call."""
    model = StrictModel(calls_while_on(), profile=Profile(reports_sending=True))
    played = play(agent(model, Bench().tool(), stop_when=[is_step_count(1)], finalize_on_stop=""))

    assert ((), "final") == (model.asked[-1].tools, played.result.text)


def test_nothing_goes_on_after_it() -> None:
    """S6, F5: no condition is asked again, nor `continue_when`."""
    asked: list[int] = []

    def condition(state: Any) -> bool:
        asked.append(state.step_number)
        return True

    played = stopped("", stop_when=[condition], continue_when=lambda _: "More.")

    assert ([0], 2, "final") == (asked, len(played.asked), played.result.text)


def test_the_default_bound_is_finalized_too(caplog: pytest.LogCaptureFixture) -> None:
    """S5, S6: the twenty steps are a condition like any other; that they cut the run is logged."""
    played = play(agent(calls_while_on(), Bench().tool(), finalize_on_stop=""))

    assert (21, "final", "stop_condition", "maximum number of steps (20) reached") == (
        len(played.asked),
        played.result.text,
        played.result.stopped_by,
        played.result.stop_reason,
    )
    assert 1 == len([record for record in caplog.records if record.levelno == logging.WARNING])


def test_a_retry_of_it_needs_a_call_that_the_ledger_grants() -> None:
    """S6, F5: `finalization_retry` holds here as well."""
    script = [reply("", call("t", {}, id="a")), "", "at last"]
    granted = stopped("", list(script), stop_when=[max_steps(1)], finalization_retry=True)
    refused = stopped("", list(script), stop_when=[max_steps(1)], finalization_retry=True, max_llm_calls=2)

    assert ("at last", "model", 3) == (granted.result.text, granted.result.finalized, len(granted.asked))
    assert ("fallback", "stop_condition", 2) == (
        refused.result.finalized,
        refused.result.stopped_by,
        len(refused.asked),
    )


def test_a_message_that_waits_goes_before_the_instruction() -> None:
    """S6, step 3: steering is read by the final call; the instruction stays the last message."""

    async def act(run: Run) -> None:
        await trio.sleep(0.5)
        run.steer("In French.")

    spec = agent(calls_while_on(), Bench().tool(seconds=1), stop_when=[is_step_count(1)], finalize_on_stop="Sum it up.")
    played = play(spec, act=act)

    assert ["go", "In French.", "Sum it up."] == played.asked[-1].texts


@pytest.mark.parametrize("value", [True, 0, 3, ["x"]])
def test_other_values_are_refused(value: Any) -> None:
    """S6, F2: `None`, a text or a function."""
    with pytest.raises(ValueError, match="finalize_on_stop"):
        stopped(value)
