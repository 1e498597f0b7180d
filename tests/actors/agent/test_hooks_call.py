"""`prepare_call`: what it sees, what it may change, and for how long (H1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from actors import CallConfig, is_step_count
from actors.models.scripted import call, reply
from actors.tools import Tool
from protocol.errors import SpecError
from protocol.turns import AssistantMessage, TextPart, ToolMessage, UserMessage
from protocol.usage import Usage
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench, calls_until, calls_while_on
from tests.support.specs import agent
from tests.support.strict import Asked

CALL = reply("", call("t", {}, id="c1"), usage=Usage(10, 0, 0, 5, 0, True))
ONE_ROUND = [CALL, "done"]


class Seen:
    """A `prepare_call` that keeps what it is given, and returns what `change` makes of it."""

    def __init__(self, change: Callable[[CallConfig], CallConfig] = lambda config: config) -> None:
        self.configs: list[CallConfig] = []
        self._change = change

    def __call__(self, config: CallConfig) -> CallConfig:
        self.configs.append(config)
        return self._change(config)


def first_only(**changes: Any) -> Callable[[CallConfig], CallConfig]:
    return lambda config: config.replace(**changes) if config.step_number == 0 else config


def names(tools: Sequence[Tool]) -> tuple[str, ...]:
    return tuple(tool.name for tool in tools)


def test_it_sees_eight_fields() -> None:
    """H1: number, system, messages, tools, temperature, length, usage so far, and the caller's data."""
    seen = Seen()
    spec = agent(
        list(ONE_ROUND), Bench().tool(), prepare_call=seen, system="Be exact.", temperature=0.5, max_tokens=100
    )
    played = play(spec, custom_data={"for": "Ann"})
    first, second = seen.configs

    assert {
        "step_number",
        "system",
        "messages",
        "tools",
        "temperature",
        "max_tokens",
        "accumulated_usage",
        "custom_data",
    } == set(CallConfig.__struct_fields__)
    assert (0, "Be exact.", ("t",), 0.5, 100, {"for": "Ann"}) == (
        first.step_number,
        first.system,
        names(first.tools),
        first.temperature,
        first.max_tokens,
        first.custom_data,
    )
    assert [UserMessage("go")] == list(first.messages)
    assert (0, 15) == (first.accumulated_usage.total_tokens, second.accumulated_usage.total_tokens)
    assert (1, 3) == (second.step_number, len(second.messages))
    assert isinstance(second.messages[-1], ToolMessage)
    assert "done" == played.result.text


OTHER = Bench().tool("other")
CHANGES: dict[str, tuple[dict[str, Any], Callable[[Asked], object], object]] = {
    "system": ({"system": "Be brief."}, lambda asked: asked.system, "Be brief."),
    "no system": ({"system": None}, lambda asked: asked.system, None),
    "messages": ({"messages": [UserMessage("Hello.")]}, lambda asked: asked.messages, (UserMessage("Hello."),)),
    "tools": ({"tools": [OTHER]}, lambda asked: asked.tools, ("other",)),
    "temperature": ({"temperature": 0.0}, lambda asked: asked.temperature, 0.0),
    "no temperature": ({"temperature": None}, lambda asked: asked.temperature, None),
    "max_tokens": ({"max_tokens": 7}, lambda asked: asked.max_tokens, 7),
    "no max_tokens": ({"max_tokens": None}, lambda asked: asked.max_tokens, None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_it_returns_is_sent_and_holds_for_that_call_only(name: str) -> None:
    """H1: each change reaches the model; the next call is built from the agent's settings anew."""
    changes, read, expected = CHANGES[name]
    seen = Seen(first_only(**changes))
    script = [reply("", call("other" if name == "tools" else "t", {}, id="a")), "done"]
    settings: dict[str, Any] = {"system": "Be exact.", "temperature": 0.5, "max_tokens": 100}
    plain = play(agent(list(script), Bench().tool(), **settings))
    played = play(agent(list(script), Bench().tool(), prepare_call=seen, **settings))
    again = read(played.asked[1])

    assert expected == read(played.asked[0])
    assert expected != read(plain.asked[0])
    if name != "messages":  # these grow by themselves
        assert read(plain.asked[1]) == again
    assert ("Be exact.", 0.5, 100, ("t",)) == (
        seen.configs[1].system,
        seen.configs[1].temperature,
        seen.configs[1].max_tokens,
        names(seen.configs[1].tools),
    )


def test_messages_are_sent_and_never_stored() -> None:
    """H1: the history, and what the next call sees of it, are as if no message had been changed."""
    seen = Seen(first_only(messages=[UserMessage("something else")]))
    played = play(agent(list(ONE_ROUND), Bench().tool(), prepare_call=seen))

    assert ["something else"] == played.asked[0].texts
    assert ["go"] == played.asked[1].texts
    assert UserMessage("go") == played.messages[0]
    assert 4 == len(played.messages)


def test_custom_data_is_carried_from_call_to_call() -> None:
    """H1: it starts as `agent.run(custom_data=)`, and is then what the call before returned."""
    seen = Seen(lambda config: config.replace(custom_data=[*config.custom_data, config.step_number]))
    play(agent(calls_until(2), Bench().tool(), prepare_call=seen), custom_data=["start"])

    assert [["start"], ["start", 0], ["start", 0, 1]] == [config.custom_data for config in seen.configs]


def test_custom_data_is_the_runs_own() -> None:
    """H1: a run that is given none has none, whatever a run before it had."""
    seen = Seen(lambda config: config.replace(custom_data="kept"))

    async def scene(stage: Stage) -> None:
        ann = await stage.spawn(agent(lambda _: "yes", prepare_call=seen))
        await stage.play(ann, custom_data="first")
        await stage.play(ann)

    perform(scene)

    assert ["first", None] == [config.custom_data for config in seen.configs]


def test_an_async_hook_is_awaited() -> None:
    """H1: plain or async, it is the same."""

    async def prepare(config: CallConfig) -> CallConfig:
        await trio.sleep(2)
        return config.replace(system="Be brief.")

    played = play(agent(["yes"], prepare_call=prepare))

    assert ("Be brief.", 2.0) == (played.asked[0].system, played.seconds)


REASK = "Your last reply was empty"
BEFORE_EVERY_CALL: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "final call": (
        calls_while_on(),
        {"max_tool_iterations": 1, "tool_iteration_limit_finalization": "Sum it up."},
        ["go", "Sum it up."],
    ),
    "stop": (
        calls_while_on(),
        {"stop_when": [is_step_count(1)], "finalize_on_stop": "Stop here."},
        ["go", "Stop here."],
    ),
    "re-ask": (["", "yes"], {}, ["go", REASK]),
    "complaint": (
        ["no", "yes"],
        {"check_answer": lambda text: "Say yes." if text == "no" else None},
        ["go", "Say yes."],
    ),
}


@pytest.mark.parametrize("name", BEFORE_EVERY_CALL)
def test_it_is_asked_before_every_call(name: str) -> None:
    """H1: before the final call and every kind of re-ask too, with the message that they add as the last one."""
    script, options, last = BEFORE_EVERY_CALL[name]
    seen = Seen()
    played = play(agent(script, Bench().tool(), prepare_call=seen, **options))
    texts = [[m.text for m in config.messages if isinstance(m, UserMessage)] for config in seen.configs]
    end = seen.configs[-1].messages[-1]

    assert len(played.asked) == len(seen.configs)
    assert [["go"], last] == [[text[: len(REASK)] for text in said] for said in texts]
    assert isinstance(end, UserMessage)
    assert played.asked[-1].conversation == tuple(seen.configs[-1].messages)


COPIES: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    "the same": list,
    "copies": lambda messages: [UserMessage(m.text) if isinstance(m, UserMessage) else m for m in messages],
    "pruned": lambda messages: list(messages[-1:]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_transient_message_is_sent_and_not_stored(name: str) -> None:
    """H1, F3: a hook that gives it back, as it is or as a copy, does not make it part of the conversation."""
    seen = Seen(lambda config: config.replace(messages=COPIES[name](config.messages)))
    spec = agent(
        calls_while_on(),
        Bench().tool(),
        prepare_call=seen,
        max_tool_iterations=1,
        tool_iteration_limit_finalization="Résumé, please.",
    )
    played = play(spec)

    assert "Résumé, please." == played.asked[-1].tail
    assert "Résumé, please." not in [m.text for m in played.messages if isinstance(m, UserMessage)]
    assert AssistantMessage((TextPart("final"),)) == played.messages[-1]


def test_a_hook_may_say_something_else_in_place_of_the_instruction() -> None:
    """H1, F3: what it returns is what is sent, the last message too; tools stay off."""
    changed = UserMessage("In one word.")
    seen = Seen(lambda c: c.replace(messages=[*c.messages[:-1], changed]) if c.step_number else c)
    spec = agent(
        calls_while_on(),
        Bench().tool(),
        prepare_call=seen,
        max_tool_iterations=1,
        tool_iteration_limit_finalization="Sum it up.",
    )
    played = play(spec)

    assert (["go", "In one word."], False) == (played.asked[-1].texts, played.asked[-1].tools_on)
    assert changed not in played.messages


def test_the_two_hooks_exclude_each_other() -> None:
    """H2: they are two forms of one hook; giving both is an error of the settings."""
    with pytest.raises(SpecError, match=r"prepare_call and prepare_step .* give one") as caught:
        agent(["yes"], prepare_call=lambda config: config, prepare_step=lambda _: None)

    assert isinstance(caught.value, ValueError)


def test_a_run_without_changes_is_the_run_without_the_hook() -> None:
    """H1: a hook that returns what it was given changes nothing of what is sent and stored."""

    def run(**options: Any) -> Played:
        return play(agent(calls_until(3), Bench().tool(), system="s", temperature=1.0, max_tokens=9, **options))

    plain, hooked = run(), run(prepare_call=Seen())

    assert (plain.asked, plain.messages) == (hooked.asked, hooked.messages)
