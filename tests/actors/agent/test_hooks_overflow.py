"""`on_context_overflow`: a request refused for its length is sent once more, shorter, as a call of its own (H8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import trio

from actors import CallConfig
from actors.models.scripted import Scripted, call, reply
from protocol.errors import ContextOverflow, HookError, RunFailedError
from protocol.events import Finalizing, RunFailed, StepStarted
from protocol.model import Profile
from protocol.prune import prune_messages
from protocol.turns import Message, UserMessage
from protocol.usage import Usage
from tests.support.play import play
from tests.support.scripts import Bench
from tests.support.specs import agent

OVERFLOW = ContextOverflow("too long", status=400)
CALL = reply("", call("t", {}, id="a"))


@attrs.define
class Shorter:
    """A hook that keeps what it was asked about, and gives back the last messages."""

    keep_last: int = 1
    asked: list[tuple[Message, ...]] = attrs.field(factory=list)

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        self.asked.append(tuple(messages))
        return prune_messages(messages, keep_last=self.keep_last)


def test_what_it_returns_is_sent_in_the_same_step() -> None:
    """H8: the step goes on with the shorter conversation; the store keeps the long one."""
    shorter = Shorter()
    earlier = [UserMessage("Hello?"), UserMessage("Anybody?")]
    spec = agent([OVERFLOW, "done"], on_context_overflow=shorter)
    played = play(spec, messages=earlier)

    assert [(*earlier, UserMessage("go"))] == shorter.asked
    assert [("Hello?", "Anybody?", "go"), ("go",)] == [tuple(asked.texts) for asked in played.asked]
    assert ("done", 1, 1) == (played.result.text, len(played.all(StepStarted)), len(played.result.steps))
    assert 4 == len(played.messages)


def test_it_is_a_call_of_its_own() -> None:
    """H8, B1: the refused request and the shorter one are two calls of the budget."""
    played = play(agent([OVERFLOW, "done"], on_context_overflow=Shorter(), max_llm_calls=2))
    refused = play(agent([OVERFLOW, "never"], on_context_overflow=Shorter(), max_llm_calls=1))

    assert (2, 1) == (played.result.counters.llm_calls, played.result.counters.steps)
    assert isinstance(refused.error, RunFailedError)
    assert (1, 1) == (len(refused.asked), refused.result.counters.llm_calls)
    assert isinstance(refused.error.__cause__, ContextOverflow)


def test_nothing_of_it_lasts() -> None:
    """H8: the next step is sent in full again, and asks again where it is too long."""
    shorter = Shorter()
    played = play(agent([OVERFLOW, CALL, OVERFLOW, "done"], Bench().tool(), on_context_overflow=shorter))

    assert [1, 3] == [len(messages) for messages in shorter.asked]
    assert [1, 1, 3, 3] == [len(asked.messages) for asked in played.asked]
    assert "done" == played.result.text


def test_once_per_step() -> None:
    """H8: a second refusal in the same step fails the run with the refusal as its cause."""
    shorter = Shorter()
    played = play(agent([OVERFLOW, ContextOverflow("still", status=400), "never"], on_context_overflow=shorter))

    assert (RunFailedError, "still") == (type(played.error), str(played.error.__cause__) if played.error else "")
    assert (1, 2) == (len(shorter.asked), len(played.asked))
    assert "context_overflow" == played.only(RunFailed).error.code


def test_none_lets_the_run_fail() -> None:
    """H8: a hook with nothing shorter to give leaves the refusal as it is, as no hook does."""
    hooked = play(agent([OVERFLOW, "never"], on_context_overflow=lambda _: None))
    bare = play(agent([OVERFLOW, "never"]))

    for played in (hooked, bare):
        assert (RunFailedError, OVERFLOW, 1) == (
            type(played.error),
            played.error.__cause__ if played.error else None,
            len(played.asked),
        )


def test_an_async_hook_may_take_its_time() -> None:
    """H8: it may ask somebody for a summary."""

    async def summarise(messages: Sequence[Message]) -> list[Message]:
        await trio.sleep(3)
        return [UserMessage("In short."), messages[-1]]

    played = play(agent([OVERFLOW, "done"], on_context_overflow=summarise))

    assert (["In short.", "go"], 3.0) == (played.asked[1].texts, played.seconds)


def test_all_else_of_the_request_stays() -> None:
    """H8: system, tools, settings, and the transient last message are those of the refused request."""

    def prepare(config: CallConfig) -> CallConfig:
        return config.replace(system="Be brief.", temperature=0.1, max_tokens=5)

    spec = agent(
        ["", OVERFLOW, "done"],
        Bench().tool(),
        prepare_call=prepare,
        on_context_overflow=Shorter(),
        tool_choice="required",
    )
    played = play(spec)
    before, after = played.asked[1:]

    assert before == after
    assert (("t",), "required", "Be brief.") == (after.tools, after.tool_choice, after.system)
    assert after.tail is not None


def test_the_final_call_may_be_shortened_too() -> None:
    """H8, F3: the instruction stays, and tools stay off."""
    spec = agent(
        [CALL, OVERFLOW, "done"],
        Bench().tool(),
        on_context_overflow=Shorter(keep_last=0),
        max_tool_iterations=1,
        tool_iteration_limit_finalization="Sum it up.",
    )
    failed = play(spec)
    spec = agent(
        [CALL, OVERFLOW, "done"],
        Bench().tool(),
        on_context_overflow=Shorter(),
        max_tool_iterations=1,
        tool_iteration_limit_finalization="Sum it up.",
    )
    played = play(spec)

    assert isinstance(failed.error, HookError)
    assert (["go", "Sum it up."], False) == (played.asked[-1].texts, played.asked[-1].tools_on)
    assert ("done", "model") == (played.result.text, played.result.finalized)


def test_the_last_allowed_call_is_the_final_one_also_here() -> None:
    """F3, B2: where sending it once more takes the last call, that call has its tools off and the instruction."""
    bench = Bench()

    def follow(request: Any) -> Any:
        turns.append(request)
        if len(turns) == 1:
            return OVERFLOW
        return CALL if request.tools_on else "So far: nothing."

    turns: list[Any] = []
    spec = agent(
        follow,
        bench.tool(),
        on_context_overflow=Shorter(),
        max_llm_calls=2,
        llm_call_limit_finalization="This is the last call.",
    )
    played = play(spec)

    assert ({}, 2) == (bench.runs, len(played.asked))
    assert ["go", "This is the last call."] == played.asked[-1].texts
    assert ("So far: nothing.", "llm_calls", "model", True) == (
        played.result.text,
        played.result.stopped_by,
        played.result.finalized,
        played.result.answered,
    )
    assert "llm_calls" == played.only(Finalizing).limit.name


def test_the_refused_call_is_charged() -> None:
    """B1, B3: with what it reported, and counted as unknown where it reported nothing."""
    done = reply("done", usage=Usage(10, 0, 0, 5, 0, True))
    played = play(agent([OVERFLOW, done], on_context_overflow=Shorter()))

    assert (15, False) == (played.result.usage.total_tokens, played.result.usage.complete)


def test_a_flattened_request_is_given_as_a_view() -> None:
    """H4, F4: also where the conversation was written as text, the hook cannot change it in place."""
    given: list[Any] = []

    def look(messages: Sequence[Message]) -> Sequence[Message]:
        given.append(messages)
        return messages

    model = Scripted([OVERFLOW, "done"], profile=Profile(flatten_without_tools=True, reports_sending=True))
    played = play(agent(model, on_context_overflow=look))

    assert not isinstance(given[0], list)
    assert "done" == played.result.text
