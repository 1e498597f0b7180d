"""When the final call is made, what it is told, and what it must not have (F1-F4)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import trio

from actors import FinalizationContext
from actors.models.scripted import Scripted, call, reply
from protocol.events import Finalizing, LimitReached, StepStarted, Warned
from protocol.limits import LimitState
from protocol.model import Profile
from protocol.turns import AssistantMessage, Message, TextPart, ToolMessage, UserMessage
from tests.support.play import Played, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent

Option: TypeAlias = str | Callable[[FinalizationContext], str | None | Awaitable[str | None]]
BUILT_IN = "You have reached the limit of 1 rounds of tool calls for this task"


def run_with(option: Any, *, text: str = "", **options: Any) -> Played:
    """A window of one round, then the final call."""
    options = {"max_tool_iterations": 1, "tool_iteration_limit_finalization": option, **options}
    return play(agent(calls_while_on(text=text), Bench().tool(), **options))


def test_the_final_call_comes_before_the_model_asks_again() -> None:
    """F3: proactive: when the round is stored, the next call is the final one; nothing is left dangling."""
    played = run_with("Sum it up.")

    assert [False, True] == [event.final for event in played.all(StepStarted)]
    assert ["c1"] == [result.call for m in played.messages if isinstance(m, ToolMessage) for result in m.results]
    assert ["step_finished", "limit_reached", "finalizing", "step_started"] == played.types[
        played.types.index("step_finished") :
    ][:4]
    assert LimitState("tool_iterations", 1, 1) == played.only(LimitReached).limit == played.only(Finalizing).limit


def test_the_instruction_is_last_transient_and_of_the_user() -> None:
    """F3: the instruction is the last message of the request, role user, and never in the history."""
    played = run_with("Sum it up.")
    final = played.asked[-1]

    assert UserMessage("Sum it up.") == final.conversation[-1]
    assert "Sum it up." not in [m.text for m in played.messages if isinstance(m, UserMessage)]
    assert (*final.messages, AssistantMessage((TextPart("final"),))) == played.messages


def test_an_empty_text_is_the_built_in_instruction() -> None:
    """F2: `""` is on with the built-in text, which names the limit and its number."""
    tail = run_with("").asked[-1].tail

    assert tail is not None
    assert tail.startswith(BUILT_IN)


def test_the_built_in_instruction_of_the_other_limit() -> None:
    """F2, B6: the built-in text is about the limit whose call it is."""
    played = run_with(None, max_tool_iterations=None, max_llm_calls=3, llm_call_limit_finalization="")
    tail = played.asked[-1].tail

    assert tail is not None
    assert tail.startswith("You have reached the limit of 3 model calls")


def test_none_is_off() -> None:
    """F2: `None` is off: the run ends at the limit without another call."""
    played = run_with(None)

    assert [None, None] == [asked.tail for asked in played.asked]
    assert (None, False, "max_iterations") == (
        played.result.finalized,
        played.result.answered,
        played.result.finish_reason,
    )


def plain(context: FinalizationContext) -> str:
    assert context.limit is not None
    return f"{context.limit.name} {context.limit.used}/{context.limit.max}: {context.prompt} for {context.context}"


async def slowly(context: FinalizationContext) -> str:
    await trio.sleep(3)
    return plain(context)


@pytest.mark.parametrize(("option", "seconds"), [(plain, 0.0), (slowly, 3.0)])
def test_a_function_is_given_the_context(option: Option, seconds: float) -> None:
    """F2: a function, sync or async, gets limit, run, path, prompt and the caller's context, and returns the text."""
    seen: list[FinalizationContext] = []

    def keep(context: FinalizationContext) -> Any:
        seen.append(context)
        return option(context)  # type: ignore[operator]

    spec = agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=keep)
    played = play(spec, "count", context="Ann")

    assert "tool_iterations 1/1: count for Ann" == played.asked[-1].tail
    assert [FinalizationContext(LimitState("tool_iterations", 1, 1), played.run, (), "count", "Ann")] == seen
    assert seconds == played.seconds


@pytest.mark.parametrize("text", ["", None])
def test_a_function_without_a_text_of_its_own(text: str | None) -> None:
    """F2: a function that returns nothing gets the built-in text."""
    tail = run_with(lambda _context: text).asked[-1].tail

    assert tail is not None
    assert tail.startswith(BUILT_IN)


def raises(_context: FinalizationContext) -> str:
    raise RuntimeError("s3cret")


async def raises_later(_context: FinalizationContext) -> str:
    await trio.sleep(1)
    raise RuntimeError("s3cret")


async def hangs(_context: FinalizationContext) -> str:
    await trio.sleep_forever()


def wrong_type(_context: FinalizationContext) -> Any:
    return 5


@pytest.mark.parametrize(("option", "seconds"), [(raises, 0.0), (raises_later, 1.0), (hangs, 60.0), (wrong_type, 0.0)])
def test_a_function_that_fails_is_as_if_the_finalization_were_off(
    option: Any, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """F2: an error (raised, too slow, no text) switches it off: the model is called with tools on, then the limit ends."""
    played = run_with(option)
    result = played.result

    assert (None, False, "max_iterations", "tool_iterations") == (
        result.finalized,
        result.answered,
        result.finish_reason,
        result.stopped_by,
    )
    assert [True, True] == [asked.tools_on for asked in played.asked]
    assert [] == played.all(Finalizing)
    assert "finalization_failed" == played.only(Warned).code
    assert "s3cret" not in played.only(Warned).text
    assert seconds == played.seconds
    assert 1 == len(played.all(LimitReached))
    assert [(logging.ERROR, "onward.agent.final")] == [(record.levelno, record.name) for record in caplog.records]


def test_a_function_that_fails_leaves_an_answer_alone() -> None:
    """F2: as if off: a model that is done after its last allowed round just answers."""
    played = play(
        agent(calls_until(1), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=raises)
    )

    assert ("done", "stop", None, "model") == (
        played.result.text,
        played.result.finish_reason,
        played.result.limit,
        played.result.stopped_by,
    )


def test_a_function_that_fails_for_one_limit_leaves_the_other() -> None:
    """F1, F2: the two finalizations are independent: with FL's function failing, FT's text serves the shared call."""
    played = run_with("tools' text", max_llm_calls=2, llm_call_limit_finalization=raises)

    assert "tools' text" == played.asked[-1].tail
    assert LimitState("tool_iterations", 1, 1) == played.result.limit
    assert ("final", "model") == (played.result.text, played.result.finalized)


def test_where_two_limits_share_a_call_the_limit_is_the_one_whose_text_was_used() -> None:
    """Section 6, F7: at L = T + 1 both are due; the llm text wins and is the limit."""
    played = run_with("tools' text", max_llm_calls=2, llm_call_limit_finalization="llm text")

    assert "llm text" == played.asked[-1].tail
    assert LimitState("llm_calls", 2, 2) == played.result.limit == played.only(LimitReached).limit


def test_a_function_that_failed_is_not_asked_again() -> None:
    """F2: from there on the run goes on as if off: the function is called once."""
    calls: list[int] = []

    def once(_context: FinalizationContext) -> str:
        calls.append(1)
        raise RuntimeError

    script = [reply("", call("t", {}, id="a")), reply(""), "done"]
    played = play(agent(script, Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=once))

    assert ([1], "done") == (calls, played.result.text)


@pytest.mark.parametrize(
    ("profile", "tools", "flat"),
    [
        (Profile(keeps_tools_when_off=True), ("t",), False),
        (Profile(keeps_tools_when_off=False), (), False),
        (Profile(keeps_tools_when_off=False, flatten_without_tools=True), (), True),
    ],
)
def test_how_tools_are_off(profile: Profile, tools: tuple[str, ...], flat: bool) -> None:
    """F4: kept with choice `none` where that is proven, else removed; flattened where tool blocks need definitions."""
    model = Scripted(calls_while_on(text="hm"), profile=profile)
    spec = agent(model, Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization="Now.")
    played = play(spec)
    final = played.asked[-1]
    stored: list[Message] = list(played.messages[:3])
    written: list[Message] = [
        UserMessage("go"),
        AssistantMessage((TextPart("hm"),)),
        UserMessage("[Result of t]\n1"),
    ]

    assert (tools, "none", False) == (final.tools, final.tool_choice, final.tools_on)
    assert (written if flat else stored) == list(final.messages)
    assert isinstance(played.messages[2], ToolMessage)
    assert "final" == played.result.text


def test_steering_that_waits_goes_before_the_final_call() -> None:
    """Section 3: the final call is decided when it is reserved; waiting messages are appended before it."""

    async def act(run: Any) -> None:
        await trio.sleep(0.5)
        run.steer("in French")

    spec = agent(
        calls_while_on(),
        Bench().tool(seconds=1),
        max_tool_iterations=1,
        tool_iteration_limit_finalization="Sum it up.",
    )
    played = play(spec, act=act)

    assert ["go", "in French", "Sum it up."] == played.asked[-1].texts
    assert ("final", ()) == (played.result.text, played.result.undelivered)
