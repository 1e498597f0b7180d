"""What models and tools get wrong: a result that the model can act on, and a history that stays valid (T3-T5, R2, R3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors import ContinuationResponse
from actors.models.scripted import call, reply
from actors.tools import tool
from protocol.errors import RunFailedError
from protocol.events import StepFinished, ToolFinished, ToolRequested
from protocol.model import ModelEmit, ModelRequest
from protocol.turns import AssistantMessage, ToolCall, ToolMessage, ToolResult, Turn
from tests.support.play import Played, Stage, perform, play
from tests.support.scripts import Bench, Trickle, calls_while_on
from tests.support.specs import Answers, agent


def result_of(*tools: Any, asked: ToolCall | None = None, **options: Any) -> tuple[Played, ToolResult]:
    """One call, then an answer: what the call came to."""
    played = play(agent([reply("", asked or call("t", {}, id="a")), "done"], *tools, **options))
    (result,) = played.result.steps[0].results

    assert "done" == played.result.text
    return played, result


def test_an_unknown_tool() -> None:
    """T3, I13: a name that was not offered is an error result with the names that are; nothing is run."""
    bench = Bench()
    _, result = result_of(bench.tool("look"), bench.tool("find"), asked=call("rm", {}, id="a"))

    assert ("error", False, {}) == (result.status, result.entered, bench.runs)
    assert "There is no tool named 'rm'. The tools are: look, find." == result.text


def test_an_unknown_tool_where_there_is_none() -> None:
    """T3: an agent without tools says so."""
    _, result = result_of(asked=call("rm", {}, id="a"))

    assert "There is no tool named 'rm'. The tools are: none." == result.text


@pytest.mark.parametrize("raw", ["[1, 2]", '"text"', "5", '{"n": ', "{'n': 1}", '{"n": NaN}', "n=1"])
def test_arguments_that_are_no_json_object(raw: str) -> None:
    """T3: they are stored as `{}`, the error result quotes them, and nothing is run."""
    bench = Bench()
    played, result = result_of(bench.tool(), asked=call("t", raw, id="a"))
    stored = played.messages[1]

    assert ("error", False, {}) == (result.status, result.entered, bench.runs)
    assert raw in result.text
    assert isinstance(stored, AssistantMessage)
    assert ["{}"] == [part.arguments for part in stored.parts if isinstance(part, ToolCall)]
    assert {} == played.only(ToolRequested).arguments


@pytest.mark.parametrize("raw", ["", "  ", "null", "{}"])
def test_empty_arguments_are_an_empty_object(raw: str) -> None:
    """T3: empty, blank and `null` arguments are `{}`: a tool without parameters runs."""
    _, result = result_of(Bench().tool(), asked=call("t", raw, id="a"))

    assert ("ok", "1") == (result.status, result.text)


def test_arguments_that_do_not_fit_the_schema() -> None:
    """T3: the body is not entered; the error names the tool's parameter, so that the model can mend the call."""
    entered: list[int] = []

    async def add(number: int) -> int:
        entered.append(number)
        return number

    _, missing = result_of(tool(add), asked=call("add", {}, id="a"))
    _, wrong = result_of(tool(add), asked=call("add", {"number": "many"}, id="a"))

    assert ([], "error", "error") == (entered, missing.status, wrong.status)
    assert ("number" in missing.text, "number" in wrong.text) == (True, True)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (ExceptionGroup("several", [ValueError("one"), OSError("two")]), "2 errors:\nValueError: one\nOSError: two"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
    ],
    ids=["ValueError", "KeyError", "SystemExit", "group", "surrogate"],
)
def test_a_tool_that_raises(error: BaseException, text: str) -> None:
    """T4: what a tool raises, an exit too, is its error result; groups are named by their leaves."""
    _, result = result_of(Bench().tool(value=error))

    assert ("error", text, True) == (result.status, result.text, result.entered)


def test_a_failing_tool_does_not_disturb_its_siblings() -> None:
    """T2: the calls of a turn run side by side; one fails, the others are `ok`; results stand in call order."""
    bench = Bench()
    turn = reply("", call("good", {}, id="a"), call("bad", {}, id="b"), call("good", {}, id="c"))
    tools = (bench.tool("good", "G", seconds=2), bench.tool("bad", ValueError("boom"), seconds=1))
    played = play(agent([turn, "done"], *tools))

    ends = [(event.call, event.status) for event in played.all(ToolFinished)]
    assert (("b", "error"), [("a", "ok"), ("c", "ok")]) == (ends[0], sorted(ends[1:]))
    assert ["a", "b", "c"] == [result.call for result in played.result.steps[0].results]
    assert 2.0 == played.seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"plain", "plain"),
        (b"\xff\xfe\x00", "base64:"),
        ("a\ud800b", "a\ufffdb"),
        ({"k\udfff": ["\ud800"]}, '{"k\ufffd":["\ufffd"]}'),
        (None, "(no output)"),
        ("", "(no output)"),
        (0, "0"),
        ({}, "{}"),
        (float("nan"), "NaN"),
        (object, "must return text or JSON values"),
    ],
    ids=repr,
)
def test_what_a_tool_returns_is_text_that_can_be_sent(value: object, text: str) -> None:
    """T5: bytes, surrogates, nothing, NaN and foreign objects: one result, in UTF-8, and the run goes on."""
    played, result = result_of(Bench().tool(value=value))

    assert text in result.text
    assert result.text.encode()
    assert isinstance(played.messages[2], ToolMessage)


def test_fifty_megabytes_are_bounded() -> None:
    """T5: a result is at most `max_tool_output_chars`, head and tail kept, with the full length in between."""
    size = 50 * 1024 * 1024
    played, result = result_of(Bench().tool(value="x" * size), max_tool_output_chars=1000)

    assert 1000 <= len(result.text) <= 1100
    assert str(size) in result.text
    assert len(json.dumps([message.text for message in played.all(ToolFinished)])) < 1200


def test_call_ids_that_are_empty_or_used_are_made_anew() -> None:
    """R2: ids are the vendor's where they are new, else fresh; call, result and events use the same."""
    turn = reply("", call("t", {}, id=""), call("t", {}, id="a"), call("t", {}, id="a"))
    again = reply("", call("t", {}, id="a"), call("t", {}, id="b"))
    played = play(agent([turn, again, "done"], Bench().tool()))
    ids = [event.call for event in played.all(ToolRequested)]

    assert 5 == len(set(ids)) == len(ids)
    assert ("a", "b") == (ids[1], ids[4])
    assert all(ids)


def test_ids_are_new_over_runs() -> None:
    """R2: a vendor that numbers its calls anew in each run does not repeat an id of the conversation."""

    async def scene(stage: Stage) -> list[str]:
        script = [reply("", call("t", {}, id="call_0")), "one", reply("", call("t", {}, id="call_0")), "two"]
        one = await stage.spawn(agent(script, Bench().tool()))
        played = [await stage.play(one), await stage.play(one)]
        return [event.call for run in played for event in run.all(ToolRequested)]

    first, second = perform(scene)

    assert ("call_0", True) == (first, second not in {"", "call_0"})


def test_more_than_128_calls_of_one_turn_are_cut_off() -> None:
    """T2: calls beyond the bound are not stored, have no events, and are counted in `step_finished`."""
    turn = reply("", *[call("t", {}, id=f"c{n}") for n in range(130)])
    bench = Bench()
    played = play(agent([turn, "done"], bench.tool()))

    assert ({"t": 128}, 128) == (bench.runs, len(played.all(ToolRequested)))
    assert [2, 0] == [event.dropped_calls for event in played.all(StepFinished)]


def test_surrogates_in_what_a_model_says() -> None:
    """R3: names, ids, arguments and texts of a model are stored as UTF-8."""
    turn = reply("say \ud800", call("t\udc80", '{"k": "\ud800"}', id="\ud83d"), call("t", "\udfff", id="b"))
    played = play(agent([turn, "done \udfff"], Bench().tool()))

    assert "done \ufffd" == played.result.text
    assert repr(played.messages).isprintable()


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_surrogates_in_a_decision(decision: Any) -> None:
    """R3: the texts of a decision are stored and sent as UTF-8."""
    first = ContinuationResponse(decision, message="go\ud800", tool_message="no\ud800", discard_tool_calls=True)
    gate = Answers(first, ContinuationResponse("decline"))
    played = play(agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, continuation=gate))

    assert played.asked[2].texts[1].endswith("go\ufffd")
    assert "no\ufffd" == played.result.steps[1].results[0].text


@pytest.mark.parametrize("option", ["say\ud800 it", lambda _context: "say\ud800 it"], ids=["text", "function"])
def test_surrogates_in_an_instruction(option: Any) -> None:
    """R3: a finalization's text is sent as UTF-8."""
    spec = agent(calls_while_on(), Bench().tool(), max_tool_iterations=1, tool_iteration_limit_finalization=option)

    assert "say\ufffd it" == play(spec).asked[-1].tail


def test_a_model_that_returns_no_turn_fails_the_run() -> None:
    """A foreign model that answers the wrong type fails its run with a word about it, and no other."""

    class Wrong(Trickle):
        async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
            return {"text": "hi"}  # type: ignore[return-value]

    played = play(agent(Wrong([])))

    assert isinstance(played.error, RunFailedError)
    assert "model trickle returned dict, not a Turn" == str(played.error)
