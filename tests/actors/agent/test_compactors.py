"""`trim` and `summarise`: conversations longer than the context window go on, with or without a summary of what went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from actors import AgentSpec, Budget, Run, summarise, trim
from actors.models.scripted import Scripted, call, reply
from protocol.errors import ContextOverflow, ModelUnreachable
from protocol.events import ContentDelta, ContextCompacted, UsageReport, Warned
from protocol.model import ModelRequest, Profile
from protocol.turns import AssistantMessage, Message, TextPart, ToolMessage, UserMessage
from protocol.usage import Usage
from tests.support.play import Stage, perform, play
from tests.support.scripts import Bench, Trickle
from tests.support.specs import agent
from tests.support.strict import StrictModel

OVERFLOW = ContextOverflow("too long", status=400)
HEAD = "[Summary of the earlier conversation, which was removed to save room]\n"


def talk(*letters: str, length: int = 400) -> list[Message]:
    """An exchange of words for each letter: 200 tokens, by estimate."""
    return [
        message
        for letter in letters
        for message in (UserMessage(letter * length), AssistantMessage((TextPart(letter.upper() * length),)))
    ]


def firsts(messages: Sequence[Message]) -> list[str]:
    """What each message begins with."""
    return [(m.text if isinstance(m, UserMessage) else str(m.parts[0].text))[:2] for m in messages]  # type: ignore[union-attr]


# ------------------------------------------------------------ trim


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, ["cc", "CC", "go"]),
        ({"max_tokens": 100_000}, ["cc", "CC", "go"]),
        ({"max_tokens": 300}, ["cc", "CC", "go"]),
        ({"max_tokens": 450}, ["bb", "BB", "cc", "CC", "go"]),
        ({"max_tokens": 1}, ["go"]),
        ({"max_tokens": 1, "keep_last": 2}, ["cc", "CC", "go"]),
        ({"max_tokens": 1, "keep_last": 4}, ["bb", "BB", "cc", "CC", "go"]),
    ],
)
def test_trim_lets_the_oldest_go(options: dict[str, int], left: list[str]) -> None:
    """Whole exchanges, until the rest fits; without a number, until it takes half of the room."""
    spec = agent(["done"], compact=trim(**options), compact_at_tokens=460)
    played = play(spec, messages=talk("a", "b", "c"))
    told = played.only(ContextCompacted)

    assert left == firsts(played.asked[0].messages)
    assert ("trim", 7, len(left), 0) == (told.by, told.messages_before, told.messages_after, told.summary_chars)
    assert 1 == played.result.counters.llm_calls


def test_trim_has_nothing_to_let_go() -> None:
    """A conversation that holds only what must stay is sent as it is, without a word."""
    played = play(agent(["done"], compact=trim(), compact_at_tokens=10), prompt="x" * 400)

    assert ("done", []) == (played.result.text, [*played.all(ContextCompacted), *played.all(Warned)])


def rounds(most: int, takes: int, *, length: int = 0) -> Any:
    """A model that makes so many rounds, behind a server that takes so many bytes; it hears how far it is from nobody."""
    made = iter([reply("r" * length, call("t", {}, id=f"c{number}")) for number in range(most)])

    def turn(request: ModelRequest) -> Any:
        size = sum(len(str(message)) for message in request.conversation())
        return OVERFLOW if size > takes else next(made, "done")

    return turn


def test_a_long_run_with_a_small_window() -> None:
    """Trimmed after each refusal, a run of many rounds comes to its end; what it was asked for stays with it all the way."""
    played = play(
        agent(rounds(40, 4000), Bench().tool(value="x" * 300), compact=trim(), max_steps=100), prompt="The task."
    )

    assert ("done", 41) == (played.result.text, played.result.counters.steps)
    assert all("The task." == asked.texts[0] for asked in played.asked)
    assert 2 < len(played.all(ContextCompacted)) < 12
    assert played.result.counters.llm_calls == 41 + len(played.all(ContextCompacted))


def test_results_are_cleared_first() -> None:
    """Where that is enough, nothing goes: calls stay with a word in place of their old results."""
    played = play(
        agent(
            rounds(6, 10**6),
            Bench().tool(value="x" * 2000),
            compact=trim(clear_results_over_chars=500, max_tokens=1500),
            compact_at_tokens=1800,
        )
    )
    results = [m.results[0].text for m in played.messages if isinstance(m, ToolMessage)]

    assert 6 == len(results)
    assert results[0].startswith("[A result of 2000 characters was removed")
    assert "x" * 2000 == results[-1]
    assert all(told.messages_before == told.messages_after for told in played.all(ContextCompacted))


def test_a_single_result_that_is_too_long() -> None:
    """After a refusal, what is left of results is cut in the middle: nothing else could go."""
    played = play(agent(rounds(1, 3000), Bench().tool(value="x" * 9000), compact=trim()))

    assert "done" == played.result.text
    (result,) = [m.results[0].text for m in played.messages if isinstance(m, ToolMessage)]
    assert "cut: 9000 characters in full" in result
    assert len(result) < 3000


def test_a_refusal_is_stronger_than_the_numbers() -> None:
    """What was to be kept, and what was aimed at, hold no more where the server did not take it."""
    spec = agent(rounds(0, 700), compact=trim(keep_last=50, max_tokens=50_000))
    played = play(spec, messages=talk("a", "b", "c"))

    assert ("done", ["go"]) == (played.result.text, firsts(played.asked[-1].messages))


# ------------------------------------------------------------ summarise


def summing(summary: Any = "In short.", answer: Any = "done") -> Any:
    """A model that is asked for summaries, and for answers."""

    def turn(request: ModelRequest) -> Any:
        is_summary = (request.system or "").startswith(("You condense", "Sum"))
        return summary if is_summary else answer

    return turn


def test_a_summary_takes_the_place_of_what_goes() -> None:
    """It is the first message, the rest stays as it is; the call counts and shows in the usage, and not in the text."""
    used = Usage(50, 0, 0, 5, 0, True)
    spec = agent(
        summing(reply(" In short. ", usage=used)), compact=summarise(summary_max_tokens=50), compact_at_tokens=520
    )
    played = play(spec, messages=talk("a", "b", "c"))
    told, (helper, asked) = played.only(ContextCompacted), played.asked

    assert [HEAD + "In short.", "cc", "CC", "go"] == [asked.texts[0], *firsts(asked.messages[1:])]
    assert ("summarise", 7, 4, len(HEAD + "In short.")) == (
        told.by,
        told.messages_before,
        told.messages_after,
        told.summary_chars,
    )
    assert (2, 1) == (played.result.counters.llm_calls, played.result.counters.steps)
    assert (1, 55) == (len(played.all(UsageReport)), played.all(UsageReport)[0].usage.total_tokens)
    assert ["done"] == [event.text for event in played.all(ContentDelta)]
    assert (50, (), 1) == (helper.max_tokens, helper.tools, len(helper.messages))
    assert helper.texts[0].startswith("USER: aaa")
    assert helper.texts[0].endswith("BBB")


def test_the_summary_has_room() -> None:
    """What stays leaves room for it: an exchange that would fit beside nothing goes into the summary."""
    kept = {
        name: len(play(agent(summing(), compact=hook, compact_at_tokens=440), messages=talk("a", "b", "c")).messages)
        for name, hook in (("trim", trim()), ("summarise", summarise(summary_max_tokens=50)))
    }

    assert {"trim": 4, "summarise": 3} == kept


def test_what_the_summary_is_made_of_and_by_whom() -> None:
    """Another model, other instructions; results are seen in full where they will be cleared."""
    other = StrictModel(["Short."], name="other")
    played = play(
        AgentSpec(
            model=Scripted(rounds(6, 10**6)),
            tools=[Bench().tool(value="x" * 1500)],
            compact=summarise(
                other, instructions="Sum it up.", max_tokens=400, summary_max_tokens=20, clear_results_over_chars=200
            ),
            compact_at_tokens=1800,
        )
    )
    (asked,) = other.asked

    assert ("Sum it up.", 20) == (asked.system, asked.max_tokens)
    assert "RESULT of t (ok): " + "x" * 1500 in asked.texts[0]
    assert "CALL t {}" in asked.texts[0]
    assert UserMessage(HEAD + "Short.") in played.messages
    assert UserMessage("go") in played.messages


def test_there_is_one_summary_at_most() -> None:
    """The next one is made of the last one and what came since."""
    made = iter(["first", "second", "third", "fourth", "fifth", "sixth"])
    seen: list[str] = []

    def turn(request: ModelRequest) -> Any:
        if request.system is None:
            return "A" * 300
        seen.append(str(request.messages[0]))
        return next(made)

    async def scene(stage: Stage) -> Any:
        spec = agent(turn, compact=summarise(summary_max_tokens=20), compact_at_tokens=400)
        at_work = await stage.spawn(spec)
        return [await stage.play(at_work, f"{number}" * 300) for number in range(9)][-1]

    played = perform(scene)
    summaries = [m.text for m in played.messages if isinstance(m, UserMessage) and m.text.startswith(HEAD)]

    assert len(seen) > 1
    assert [HEAD + ["first", "second", "third", "fourth", "fifth"][len(seen) - 1]] == summaries
    assert HEAD.strip() in seen[1]
    assert "first" in seen[1]


BIG = "b" * 5000
WITHOUT: dict[str, tuple[dict[str, Any], Any, str | None]] = {
    "no call left": ({"max_llm_calls": 1}, "In short.", "the limit llm_calls (1) has no room for a helper call"),
    "no tokens left": ({"budget": Budget(max_total_tokens=420)}, "In short.", "the limit total_tokens (420)"),
    "the last call is held": (
        {"max_llm_calls": 2, "llm_call_limit_finalization": ""},
        "In short.",
        "the limit llm_calls (2)",
    ),
    "it fails": ({}, ModelUnreachable("no route"), "no route"),
    "it breaks": ({}, ValueError("secret"), "the model raised ValueError"),
    "it says nothing": ({}, " ", "the model said nothing"),
    "it says too much": ({}, BIG, "the summary was no shorter"),
    "it is too long itself": ({}, OVERFLOW, "too long"),
    "the final call": ({"max_llm_calls": 1, "llm_call_limit_finalization": ""}, "In short.", None),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_where_there_is_no_summary_it_trims(name: str) -> None:
    """The conversation gets shorter all the same, and a warning says why there is no summary; a final call is no news."""
    options, summary, why = WITHOUT[name]
    spec = agent(summing(summary), compact=summarise(summary_max_tokens=20), compact_at_tokens=390, **options)
    played = play(spec, messages=talk("a", "b"))
    told = played.only(ContextCompacted)

    assert ["go"] == played.asked[-1].texts[:1]
    assert ("done", 0, 1) == (played.result.text, told.summary_chars, told.messages_after)
    warned = played.all(Warned)
    assert ([] if why is None else ["not_summarised"]) == [event.code for event in warned]
    assert why is None or warned[0].text.startswith(f"older messages go without a summary: {why}")
    assert "secret" not in str(warned)


def test_a_model_that_takes_too_long() -> None:
    """It is left in time for the hook to do without."""
    model = Trickle([["In ", 100.0, "short."]])
    spec = AgentSpec(
        model=Scripted(["done"]), compact=summarise(model), compact_at_tokens=390, callback_timeout_seconds=10
    )
    played = play(spec, messages=talk("a", "b"))

    assert ("done", 8.0) == (played.result.text, played.seconds)
    assert played.only(Warned).text.endswith("the model took too long")
    assert 1 == played.only(ContextCompacted).messages_after


def test_cancelled_while_it_is_made() -> None:
    """The call is settled, and the conversation is as it was."""

    async def act(run: Run) -> None:
        await trio.sleep(1)
        run.cancel("enough")

    budget = Budget(max_llm_calls=9)
    model = Trickle([["In ", 100.0]])
    played = play(
        AgentSpec(model=Trickle([]), compact=summarise(model), compact_at_tokens=390, budget=budget),
        messages=talk("a", "b"),
        act=act,
    )

    assert (5, [], 0) == (len(played.messages), played.all(ContextCompacted), budget.statistics().open_reservations)


def test_after_a_refusal() -> None:
    """What was refused is not sent to the summary's model as it is: it gets at most half, cut in the middle."""
    lengths: list[int] = []

    def turn(request: ModelRequest) -> Any:
        size = sum(len(str(message)) for message in request.messages)
        if request.system is not None:
            lengths.append(size)
            return "In short."
        return OVERFLOW if size > 9000 else "done"

    played = play(agent(turn, compact=summarise(summary_max_tokens=100)), messages=talk("a", "b", length=10_000))

    assert "done" == played.result.text
    assert [HEAD + "In short.", "go"] == played.asked[-1].texts
    assert lengths[0] < 20_000 < 40_000
    assert (3, True) == (played.result.counters.llm_calls, played.only(ContextCompacted).refused)


def test_the_window_of_its_model_bounds_what_it_reads() -> None:
    """A small model may sum up for a big one: it is not sent more than fits."""
    small = Scripted(["Short."], profile=Profile(context_window=3000, reports_sending=True))
    play(
        AgentSpec(model=Scripted(["done"]), compact=summarise(small, summary_max_tokens=100), compact_at_tokens=3900),
        messages=talk("a", "b", "c", length=4000),
    )
    (request,) = small.requests

    assert len(str(request.messages[0])) < 4 * 3000


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: trim(keep_last=-1), "keep_last must be an integer >= 0"),
        (lambda: trim(max_tokens=0), "max_tokens must be an integer >= 1"),
        (lambda: trim(clear_results_over_chars=0), "clear_results_over_chars must be an integer >= 1"),
        (lambda: summarise(keep_last=True), "keep_last must be an integer >= 0"),
        (lambda: summarise(summary_max_tokens=0), "summary_max_tokens must be an integer >= 1"),
        (lambda: summarise(instructions=" "), "instructions=. must be a text that says something"),
        (lambda: summarise("gpt"), r"summarise\(model\) must be a model or None; it is a str"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_cannot_be_right(make: Any, fault: str) -> None:
    """Refused when the hook is made."""
    with pytest.raises(ValueError, match=fault):
        make()
