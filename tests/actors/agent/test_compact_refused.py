"""A request that the server refuses for its length: the conversation is compacted, and the step goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from actors import CallConfig, CompactState, prune_messages
from actors.models.scripted import Scripted, call, reply
from protocol.errors import ContextOverflow, RunFailedError
from protocol.events import ContextCompacted, Finalizing, RunFailed, StepStarted, Warned
from protocol.model import ModelRequest, Profile
from protocol.turns import AssistantMessage, Message, TextPart, UserMessage
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent

from .test_compact import CALL, OLD, Shorter

OVERFLOW = ContextOverflow("too long: 9 tokens of 8", status=400)


def drop_two(state: CompactState) -> Sequence[Message]:
    return state.messages[2:]


def shortest(messages: Sequence[Message]) -> Sequence[Message]:
    return prune_messages(messages, keep_last=1)


def takes(most: int, *, answer: Any = "done") -> Any:
    """A model whose server takes that many messages."""

    def turn(request: ModelRequest) -> Any:
        return OVERFLOW if len(request.messages) > most else answer

    return turn


def test_it_is_sent_again_in_the_same_step() -> None:
    """One step, one more call; the stored conversation is the short one, and the hook knows what the server said."""
    shorter = Shorter()
    played = play(agent(takes(1), compact=shorter), messages=OLD)
    (state,) = shorter.asked

    assert ("too long: 9 tokens of 8", 1) == (state.refusal, state.attempt)
    assert (200, None, 401) == (state.target_tokens, state.threshold_tokens, state.estimated_tokens)
    assert (1, 2, "done") == (len(played.all(StepStarted)), played.result.counters.llm_calls, played.result.text)
    assert played.only(ContextCompacted).refused
    assert (2, UserMessage("go")) == (len(played.messages), played.messages[0])


def test_a_few_times() -> None:
    """It may take several; each is a call of its own, and the hook is told which attempt it is."""
    attempts: list[int] = []

    def counting(state: CompactState) -> Sequence[Message]:
        attempts.append(state.attempt)
        return drop_two(state)

    played = play(agent(takes(1), compact=counting), messages=[*OLD, *OLD[:2]])

    assert ([1, 2, 3], 4, "done") == (attempts, played.result.counters.llm_calls, played.result.text)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_not_more_often_than_allowed(most: int) -> None:
    """`max_compactions` used up, the run fails with the last refusal."""
    played = play(agent(takes(1), compact=drop_two, max_compactions=most), messages=[*OLD, *OLD[:2]])

    assert (most, most + 1) == (len(played.all(ContextCompacted)), len(played.asked))
    assert "context_overflow" == played.only(RunFailed).error.code
    assert 8 - 1 - 2 * most == len(played.messages)


@pytest.mark.parametrize("given", [None, 5, "all"])
def test_nothing_shorter_leaves_the_refusal(given: Any) -> None:
    """A hook that has nothing, or fails, is not asked again, and the call that was counted for it is given back."""

    def hook(state: CompactState) -> Any:
        return state.messages if given == "all" else given

    played = play(agent(takes(1), compact=hook), messages=OLD)

    assert isinstance(played.error, RunFailedError)
    assert played.error.__cause__ is OVERFLOW
    assert (1, 1) == (len(played.asked), played.result.counters.llm_calls)
    assert (given is not None) is bool(played.all(Warned))


def test_then_the_other_hook_is_asked() -> None:
    """`on_context_overflow` may still send something shorter for this once: its messages are not stored."""
    played = play(
        agent(takes(1), compact=drop_two, max_compactions=1, on_context_overflow=shortest),
        messages=OLD,
    )

    assert [5, 3, 1] == [len(asked.messages) for asked in played.asked]
    assert ("done", 4) == (played.result.text, len(played.messages))


def test_without_a_call_left_it_is_not_asked() -> None:
    """The call that sends it again is counted first: no summary is made for a request that cannot leave."""
    shorter = Shorter()
    played = play(agent(takes(1), compact=shorter, max_llm_calls=1), messages=OLD)

    assert ([], 5, OVERFLOW) == (
        shorter.asked,
        len(played.messages),
        played.error.__cause__ if played.error else None,
    )


def test_messages_of_another_hook_are_not_the_conversation() -> None:
    """Where `prepare_call` sends something else, a shorter conversation would not help: it is not asked."""
    shorter = Shorter()

    def prepare(config: CallConfig) -> CallConfig:
        return config.replace(messages=[UserMessage("a"), UserMessage("b")])

    played = play(agent(takes(1), compact=shorter, prepare_call=prepare), messages=OLD)

    assert ([], True) == (shorter.asked, isinstance(played.error, RunFailedError))


def test_hooks_are_not_asked_again() -> None:
    """All else of the request stays as they made it."""
    numbers: list[int] = []

    def prepare(config: CallConfig) -> CallConfig:
        numbers.append(config.step_number)
        return config.replace(system="Be brief.", max_tokens=7)

    played = play(agent(takes(1), Bench().tool(), compact=Shorter(), prepare_call=prepare), messages=OLD)
    before, after = played.asked

    assert [0] == numbers
    assert (before.system, before.max_tokens, before.tools) == (after.system, after.max_tokens, after.tools)


def test_a_final_call_that_is_written_as_text() -> None:
    """Where tool blocks may not be sent, the shorter conversation is written as text like the longer one."""

    def turn(request: ModelRequest) -> Any:
        if request.tools_on:
            return reply("", call("t", {}, id="a"))
        return OVERFLOW if len(request.messages) > 3 else "so far"

    model = Scripted(turn, profile=Profile(flatten_without_tools=True, reports_sending=True))
    spec = agent(
        model, Bench().tool(), compact=Shorter(2), max_tool_iterations=1, tool_iteration_limit_finalization="Sum up."
    )
    played = play(spec, messages=OLD)

    assert ("so far", "model") == (played.result.text, played.result.finalized)
    assert 3 == played.only(ContextCompacted).messages_after
    assert ["go", "[Result of t]\n1", "Sum up."] == played.asked[-1].texts


def test_sent_again_it_may_be_the_last_call() -> None:
    """Then it is the final one, with its instruction, and the hook knows."""
    finals: list[bool] = []

    def hook(state: CompactState) -> Sequence[Message]:
        finals.append(state.is_final)
        return state.messages[-1:]

    spec = agent(
        takes(1, answer="so far"), Bench().tool(), compact=hook, max_llm_calls=2, llm_call_limit_finalization="Last."
    )
    played = play(spec, messages=OLD)

    assert ([True], ["go", "Last."]) == (finals, played.asked[-1].texts)
    assert ("llm_calls", False, "model") == (
        played.only(Finalizing).limit.name,
        played.asked[-1].tools_on,
        played.result.finalized,
    )


def test_in_the_middle_of_a_run() -> None:
    """The results that the model waits for are kept, and the rounds before go."""

    def turn(request: ModelRequest) -> Any:
        if len(request.messages) > 5:
            return OVERFLOW
        return next(turns)

    turns = iter([reply("", call("t", {}, id=f"c{number}")) for number in range(4)] + ["done"])
    played = play(agent(turn, Bench().tool(), compact=Shorter(2)))

    assert ("done", 5) == (played.result.text, played.result.counters.steps)
    assert [1, 3, 5, 7, 3, 5] == [len(asked.messages) for asked in played.asked]
    assert all(UserMessage("go") == asked.messages[0] for asked in played.asked)


def test_no_hook_no_change() -> None:
    """Without `compact` all is as it was."""
    played = play(agent([CALL, OVERFLOW], Bench().tool()))

    assert isinstance(played.error, RunFailedError)
    assert [] == played.all(ContextCompacted)


def test_an_answer_that_is_continued() -> None:
    """The turn that goes on stands behind the shorter conversation, as it did behind the longer one."""

    async def scene(stage: Stage) -> Any:
        cut = AssistantMessage((TextPart("half an "),), partial=True)
        at_work = await stage.spawn(
            agent(takes(1, answer="answer"), compact=Shorter()), messages=[*OLD, UserMessage("go"), cut]
        )
        return await stage.play(at_work, None)

    played = perform(scene)

    assert [5, 1] == [len(asked.messages) for asked in played.asked]
    assert all(asked.resume is not None for asked in played.asked)
    assert (UserMessage("go"), AssistantMessage((TextPart("half an answer"),))) == played.messages
