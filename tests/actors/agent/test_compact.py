"""`compact`: a conversation that has grown too long is replaced by a shorter one, between exchanges, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import trio

from actors import (
    AgentSpec,
    CompactState,
    Run,
    StepOverrides,
    append_exchange,
    generate_step,
    handoff,
    prune_messages,
    sub_agent,
    trim,
)
from actors.models.scripted import call, reply
from protocol.errors import LimitReachedError, SpecError
from protocol.events import ContextCompacted, Warned
from protocol.turns import AssistantMessage, Message, TextPart, ToolMessage, ToolResult, UserMessage
from protocol.views import View
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench
from tests.support.specs import agent
from tests.support.strict import StrictModel

from ._team import Team, ask, finished, told

CALL = reply("", call("t", {}, id="a"))
OLD: list[Message] = [
    UserMessage("o" * 400),
    AssistantMessage((TextPart("p" * 400),)),
    UserMessage("q" * 400),
    AssistantMessage((TextPart("r" * 400),)),
]
"""400 tokens, by estimate."""


@attrs.define
class Shorter:
    """A hook that keeps what it was asked about, and gives back the last messages."""

    keep_last: int = 1
    asked: list[CompactState] = attrs.field(factory=list)

    def __call__(self, state: CompactState) -> Sequence[Message]:
        self.asked.append(state)
        return prune_messages(state.messages, keep_last=self.keep_last)


def test_what_it_returns_takes_the_place_of_the_conversation() -> None:
    """It is stored, sent, told of, and what the agent's next run goes on from."""

    async def scene(stage: Stage) -> Any:
        spec = agent(["one", "two"], compact=Shorter(), compact_at_tokens=300)
        at_work = await stage.spawn(spec, messages=OLD)
        return await stage.play(at_work), await stage.play(at_work, "more")

    first, second = perform(scene)
    event = first.only(ContextCompacted)

    assert ("Shorter", 5, 1, 401, 1) == (
        event.by,
        event.messages_before,
        event.messages_after,
        event.tokens_before,
        event.tokens_after,
    )
    assert (0, False) == (event.summary_chars, event.refused)
    assert ["run_started", "step_started", "context_compacted"] == first.types[:3]
    assert [("go",), ("go", "more")] == [tuple(played.asked[0].texts) for played in (first, second)]
    assert (2, 4) == (len(first.messages), len(second.messages))
    assert first.messages == first.result.messages
    assert [] == second.all(ContextCompacted)


def test_what_it_sees() -> None:
    """The conversation, what the request is estimated to take, what to aim at; all of it read-only."""
    shorter = Shorter()
    spec = agent(
        ["done"], Bench().tool(), compact=shorter, compact_at_tokens=300, system="s" * 40, max_tool_iterations=9
    )
    play(spec, messages=OLD, context="mine")
    (state,) = shorter.asked

    assert isinstance(state.messages, View)
    assert (*OLD, UserMessage("go")) == tuple(state.messages)
    assert ("go", 300, None, None, 0) == (
        state.prompt,
        state.threshold_tokens,
        state.context_window,
        state.refusal,
        state.attempt,
    )
    assert (False, "mine", spec.model) == (state.is_final, state.context, state.model)
    assert 401 == state.count_tokens(state.messages)
    fixed = state.estimated_tokens - 401
    assert 10 < fixed < 50
    assert (300 - fixed) // 2 == state.target_tokens


def test_it_may_be_async_and_change_nothing() -> None:
    """`None` is no change, and no fault; it is asked again at the next step."""
    asked: list[int] = []

    async def look(state: CompactState) -> None:
        await trio.sleep(3)
        asked.append(len(state.messages))

    played = play(agent([CALL, "done"], Bench().tool(), compact=look, compact_at_tokens=10), messages=OLD)

    assert ([5, 7], 6.0) == (asked, played.seconds)
    assert [] == [*played.all(ContextCompacted), *played.all(Warned)]


def broken(state: CompactState) -> list[Message]:
    return [UserMessage("go"), ToolMessage((ToolResult("x", "t", "ok", "1"),))]


async def slow(_state: CompactState) -> None:
    await trio.sleep(100)


def raising(error: Exception) -> Callable[[CompactState], None]:
    def fail(_state: CompactState) -> None:
        raise error

    return fail


def exits(_state: CompactState) -> None:
    raise SystemExit(3)


FAULTS: dict[str, tuple[Any, str]] = {
    "raises": (raising(ValueError("secret")), "it raised ValueError"),
    "exits": (exits, "it raised RuntimeError"),
    "says why": (raising(SpecError("no idea")), "no idea"),
    "too slow": (slow, "it raised TooSlowError"),
    "no messages": (lambda _: 5, "messages must be a sequence of messages; it is a int"),
    "a text": (lambda _: ["go"], "messages[0] is no message but a str"),
    "nothing": (lambda _: [], "messages must not be empty"),
    "not shorter": (lambda state: list(state.messages), "what it gave back is not shorter"),
    "parted": (broken, "message 1 holds results, but no call stands directly before it"),
    "another prompt": (lambda _: [UserMessage("hm")], "what the run was asked for is gone"),
    "odd parts": (lambda _: [UserMessage("go"), AssistantMessage((7,))], "a message is not what it should be"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_that_fails_changes_nothing(name: str) -> None:
    """A warning says what was wrong; the conversation stays, and the run goes on."""
    hook, fault = FAULTS[name]
    played = play(agent(["done"], compact=hook, compact_at_tokens=300), messages=OLD)
    warned = played.only(Warned)

    assert "not_compacted" == warned.code
    assert warned.text.startswith(f"compact: {fault}")
    assert warned.text.endswith("the conversation stays as it was")
    assert "secret" not in warned.text
    assert (("done", 6), []) == ((played.result.text, len(played.messages)), played.all(ContextCompacted))


def test_a_limit_that_leaves_it_is_no_end() -> None:
    """Unlike other hooks: a helper call without room for it is a failure of this hook alone."""
    spec = agent([CALL, "done"], Bench().tool(), compact_at_tokens=300, compact=raising(_limit()), max_llm_calls=2)
    played = play(spec, messages=OLD)

    assert (None, "done") == (played.result.limit, played.result.text)
    assert ["not_compacted"] == [event.code for event in played.all(Warned)]


def _limit() -> LimitReachedError:
    refused = play(agent([CALL], Bench().tool(), max_llm_calls=1))
    return LimitReachedError("no room for a helper call", partial=refused.result)


def test_surrogates_are_replaced() -> None:
    """What a hook gives back can be sent and written down."""
    played = play(
        agent(["done"], compact=lambda state: [UserMessage("odd \ud800"), state.messages[-1]], compact_at_tokens=300),
        messages=OLD,
    )

    assert UserMessage("odd \ufffd") == played.messages[0]
    assert 5 == played.only(ContextCompacted).summary_chars


def test_steering_is_seen_and_kept() -> None:
    """What has just been said to the run is in the conversation that is compacted."""
    shorter = Shorter()

    async def act(run: Run) -> None:
        run.steer("and this")

    spec = agent([reply("", call("t", {}, id="a")), "done"], Bench().tool(), compact=shorter, compact_at_tokens=300)
    played = play(spec, messages=[OLD[0], OLD[1]], act=act)
    big = play(
        agent(
            [reply("z" * 1600, call("t", {}, id="a")), "done"], Bench().tool(), compact=shorter, compact_at_tokens=300
        ),
        act=act,
    )

    assert [] == played.all(ContextCompacted)
    assert "and this" in big.asked[-1].texts
    assert "go" in big.asked[-1].texts


@attrs.define
class Look:
    """A hook that changes nothing, and keeps what it was asked about."""

    asked: list[CompactState] = attrs.field(factory=list)

    def __call__(self, state: CompactState) -> None:
        self.asked.append(state)


def test_replaced_messages_are_left_alone() -> None:
    """What a `prepare_step` sends in the conversation's place is not the conversation: nothing is compacted from then on."""
    look = Look()

    def prepare(state: Any) -> StepOverrides | None:
        return StepOverrides(messages=[UserMessage("mine")]) if state.step_number == 1 else None

    turns = [reply("", call("t", {}, id=id)) for id in "abc"]
    spec = agent([*turns, "done"], Bench().tool(), compact=look, compact_at_tokens=10, prepare_step=prepare)
    played = play(spec, messages=OLD)

    assert [5, 7] == [len(state.messages) for state in look.asked]
    assert ("done", ["mine"]) == (played.result.text, played.asked[-1].texts)


def test_there_is_nothing_to_compact() -> None:
    """Where the conversation is an answer that the run has in hand, and nothing else, nobody is asked."""
    look = Look()

    async def scene(stage: Stage) -> Any:
        cut = AssistantMessage((TextPart("half an "),), partial=True)
        spec = agent(["answer"], compact=look, compact_at_tokens=1, system="s" * 400)
        return await stage.play(await stage.spawn(spec, messages=[cut]), None)

    played = perform(scene)

    assert ([], "half an answer") == (look.asked, played.result.text)


def test_cancelled_in_the_middle() -> None:
    """A run that is cancelled while the hook works leaves the conversation as it was."""

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.cancel("enough")

    played = play(agent(["never"], compact=slow, compact_at_tokens=300), messages=OLD, act=act)

    assert (*OLD, UserMessage("go")) == played.messages
    assert [] == [*played.all(ContextCompacted), *played.all(Warned)]


def test_a_loop_of_ones_own_has_it_too() -> None:
    """Whoever drives the run, its model calls begin with it."""

    async def loop(at: Any) -> None:
        await generate_step(at)
        await append_exchange(at)

    async def scene(stage: Stage) -> Any:
        at_work = await stage.spawn(agent(["done"], compact=Shorter(), compact_at_tokens=300), messages=OLD)
        return await stage.play(at_work, loop=loop)

    assert 1 == perform(scene).only(ContextCompacted).messages_after


def test_an_answer_that_is_continued() -> None:
    """The answer in hand is no part of what is compacted, and is put back behind it."""

    async def scene(stage: Stage) -> Any:
        cut = AssistantMessage((TextPart("half an "),), partial=True)
        spec = agent(["answer"], compact=Shorter(), compact_at_tokens=300)
        at_work = await stage.spawn(spec, messages=[*OLD, UserMessage("go"), cut])
        return await stage.play(at_work, None)

    played = perform(scene)

    assert 1 == played.only(ContextCompacted).messages_after
    assert (UserMessage("go"), AssistantMessage((TextPart("half an answer"),))) == played.messages


def test_a_sub_agent_has_its_own() -> None:
    """Its conversation is compacted while its caller's tool runs; the event stands in the root's stream, with its path."""
    team = Team(
        root=[ask("child", "x"), "seen"],
        child=[reply("z" * 800, call("t", {}, id="t1")), reply("z" * 800, call("t", {}, id="t2")), "done"],
    )

    async def scene(stage: Stage) -> Any:
        child = sub_agent(team.spec("child", Bench().tool(), compact=trim(), compact_at_tokens=300))
        return await stage.play(await stage.spawn(team.spec("root", child))), await told(stage)

    played, events = perform(scene)
    (event,) = [event for event in events if isinstance(event, ContextCompacted)]

    assert (("child",), 5, 3) == (event.agent_path, event.messages_before, event.messages_after)
    assert ("seen", ("ok", "done")) == (played.result.text, finished(events, "child-x"))
    assert 4 == len(played.messages)


def test_after_a_hand_over_the_other_agents_hook_is_asked() -> None:
    """Hooks are the acting agent's (N4)."""
    first, second = Shorter(), Shorter()
    model = StrictModel([reply("", call("transfer_to_b", {}, id="h")), "from b"])
    other = AgentSpec(name="b", model=model, compact=second, compact_at_tokens=300)
    spec = AgentSpec(name="a", model=model, tools=[handoff(other)], compact=first, compact_at_tokens=4000)
    played = play(spec, messages=OLD)

    assert "from b" == played.result.text
    assert ([], 1) == (first.asked, len(second.asked))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"compact": 3}, "compact must be a function or None"),
        ({"compact_at_tokens": 100}, "compact_at_tokens says when, and nothing says how"),
        ({"compact": Shorter(), "compact_at_tokens": 0}, "compact_at_tokens must be"),
        ({"compact": Shorter(), "max_compactions": -1}, "max_compactions must be"),
    ],
)
def test_settings_that_cannot_be_right(options: dict[str, Any], fault: str) -> None:
    """Refused when the spec is made."""
    with pytest.raises(ValueError, match=fault):
        AgentSpec(model=StrictModel(["never"]), **options)
