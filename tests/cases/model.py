"""The model of a case: its turns or its rule, said in the words of the cases."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, get_args

import attrs
import trio

from actors.models.scripted import call, reply
from protocol.errors import ContextOverflow, ModelError
from protocol.model import CallDelta, ModelEmit, ModelRequest, Profile, RequestSent, TextDelta
from protocol.turns import Finish, ReasoningPart, TextPart, ToolMessage, Turn
from protocol.usage import UNKNOWN_USAGE, Usage

from .phrases import Phrases

Said: TypeAlias = dict[str, Any]
"""A turn in the words of the cases."""
Rule: TypeAlias = Callable[[ModelRequest], Said]
RuleMaker: TypeAlias = Callable[[re.Match[str]], Rule]

CAP = 4096
"""Output tokens that the server of a case allows, where its model is told to use them up."""
RULES = Phrases[RuleMaker]("rules of a model")


class CaseModel:
    """A model that follows the turns or the rule of a case; each call takes `seconds`, and so does each delta."""

    def __init__(self, rule: Rule, *, seconds: float) -> None:
        self._rule = rule
        self._seconds = seconds

    @property
    def name(self) -> str:
        return "case"

    @property
    def profile(self) -> Profile:
        return Profile(keeps_tools_when_off=True, reports_sending=True, continues_text="exact_prefix")

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        emit(RequestSent())
        said = self._rule(request)
        text = said.get("text", "")
        for piece in _pieces(text, said.get("deltas", 1)):
            await trio.sleep(self._seconds)
            if piece:
                emit(TextDelta(piece))
        for index, (_, name, arguments) in enumerate(said.get("calls_partial", ())):
            emit(CallDelta(index, arguments, name))
        if "then" in said:
            raise ModelError(said["then"], partial=Turn((TextPart(text),), end="lost"))
        return _turn_of(said)


def _pieces(text: str, count: int) -> list[str]:
    """A text in that many pieces, the words whole."""
    if count == 1:
        return [text]
    words = re.findall(r"\S+\s*", text)
    if len(words) == 1:
        size = len(text) // count
        words = [text[at : at + size] for at in range(0, len(text), size)]
    assert len(words) == count, text
    return words


def _turn_of(said: Said) -> Turn:
    turn = reply(said.get("text", ""), *_calls_of(said.get("calls", ())), usage=_usage_of(said.get("usage")))
    if "reasoning" in said:
        turn = attrs.evolve(turn, parts=(ReasoningPart(said["reasoning"]), *turn.parts))
    if "finish" not in said:
        return turn
    word: Any = said["finish"]
    finish: Finish | None = word if word is None or word in get_args(Finish) else "other"
    return attrs.evolve(turn, finish=finish, raw_finish=word)


def _usage_of(told: Any) -> Usage:
    """Nothing reported, 0 of everything, or tokens in and out."""
    if told is None:
        return UNKNOWN_USAGE
    tokens = told or {"in": 0, "out": 0}
    return Usage(tokens["in"], 0, 0, tokens["out"], 0, complete=True)


def _calls_of(told: Any) -> list[Any]:
    """`[[id, tool, arguments], ...]`, or how many calls to which tools."""
    if not isinstance(told, str):
        return [call(name, arguments, id=id) for id, name, arguments in told]
    if found := re.fullmatch(r"(\d+) calls: ids (\w)0\.\.\2(\d+), tool (\w+), args \{'(\w+)':i\}", told):
        assert int(found[1]) == int(found[3]) + 1, told
        return [call(found[4], {found[5]: i}, id=f"{found[2]}{i}") for i in range(int(found[1]))]
    if found := re.fullmatch(r"(\d+) calls to (\w+)", told):
        parts = [found.groups()]
    else:
        assert re.fullmatch(r"\d+ calls: \d+ to \w+(, \d+ to \w+)*", told), f"no calls are known for: {told}"
        parts = re.findall(r"(\d+) to (\w+)", told)
        assert int(told.split()[0]) == sum(int(count) for count, _ in parts)
    return [call(name, {}, id=f"{name}{number}") for count, name in parts for number in range(int(count))]


def rule_of(told: str | list[Said | str]) -> Rule:
    """A list of turns, of which the last may say what all later ones are, or one rule."""
    if isinstance(told, str):
        maker, found = RULES.find(told)
        return maker(found)
    rules = _rules(told)
    return lambda request: next(rules)(request)


def _rules(told: list[Said | str]) -> Iterator[Rule]:
    for turn in told:
        if isinstance(turn, str):
            yield from itertools.repeat(rule_of(turn))
        else:
            yield functools.partial(_say, turn)


def _say(said: Said, _request: ModelRequest) -> Said:
    return said


def _one_call(name: str) -> Callable[[], Said]:
    numbers = itertools.count(1)
    return lambda: {"calls": [[f"fresh{next(numbers)}", name, {}]]}


@RULES.says(
    r"while tools are offered: one call to (\w+) with a fresh id; when tools are off: text '(.*?)'"
    r"(?:; if asked once more after that: '(.*)')?"
)
def _while_offered(found: re.Match[str]) -> Rule:
    name, *texts = found.groups()
    one_call = _one_call(name)
    answers = iter([text for text in texts if text])
    return lambda request: one_call() if request.tools_on else {"text": next(answers)}


@RULES.says(r"call (\w+)(?: with a fresh id)? until the request holds (\d+) results of \1, then (?:text )?'(.*)'")
def _until_results(found: re.Match[str]) -> Rule:
    name, count, text = found.groups()
    one_call = _one_call(name)
    return lambda request: one_call() if _results(request, name) < int(count) else {"text": text}


@RULES.says(r"every turn: one call to (\w+)(?: with a fresh id)?(?:, for up to (\d+) turns)?")
def _every_turn(found: re.Match[str]) -> Rule:
    one_call = _one_call(found[1])
    if found[2] is None:
        return lambda _request: one_call()
    turns = iter(range(int(found[2])))
    return lambda _request: one_call() if next(turns, None) is not None else {"text": "gave up"}


@RULES.says(r"every request: HTTP (\d+) (\w+)")
def _every_request_refused(found: re.Match[str]) -> Rule:
    kind = {"context_length_exceeded": ContextOverflow}[found[2]]

    def refuse(_request: ModelRequest) -> Said:
        raise kind(f"HTTP {found[1]}: {found[2]}", status=int(found[1]))

    return refuse


@RULES.says(r"every (?:later )?turn: no text, no calls, (?:no finish|finish (\w+))(, usage 0)?")
def _every_turn_empty(found: re.Match[str]) -> Rule:
    said: Said = {"text": "", "finish": found[1]} | ({"usage": 0} if found[2] else {})
    return lambda _request: said


@RULES.says(r"every turn: text '(.*)', finish (\w+)")
def _every_turn_the_same(found: re.Match[str]) -> Rule:
    return functools.partial(_say, {"text": found[1], "finish": found[2]})


@RULES.says(r"every turn: reasoning '(\w+)' x (\d+), no text, finish (\w+), usage out = cap")
def _every_turn_reasons(found: re.Match[str]) -> Rule:
    said = {"reasoning": found[1] * int(found[2]), "finish": found[3], "usage": {"in": 10, "out": CAP}}
    return functools.partial(_say, said)


def _results(request: ModelRequest, name: str) -> int:
    return sum(
        result.name == name
        for message in request.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    )
