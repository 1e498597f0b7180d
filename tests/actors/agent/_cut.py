"""Agents whose model is cut, and what is told of how it goes on."""

from __future__ import annotations

from typing import Any

import attrs

from actors import AgentSpec
from actors.models.scripted import reply
from protocol.events import ContentDelta, HopFinished, HopStarted, Rollback, RunEvent
from protocol.model import Profile, TextContinuation
from protocol.turns import AssistantMessage, Message, Turn
from protocol.usage import Usage
from tests.support.play import Played
from tests.support.strict import Asked, StrictModel

USED = Usage(30, 0, 0, 10, 0, complete=True)


def cut(text: str = "", *calls: Any, usage: Usage = USED, **options: Any) -> Turn:
    """A turn that the token limit cut."""
    return attrs.evolve(reply(text, *calls, finish=options.pop("finish", "length"), usage=usage), **options)


def done(text: str = "", *calls: Any, usage: Usage = USED, **options: Any) -> Turn:
    """A turn that is whole."""
    return attrs.evolve(reply(text, *calls, usage=usage), **options)


def profile(continues_text: TextContinuation = "exact_prefix", **options: Any) -> Profile:
    return Profile(keeps_tools_when_off=True, reports_sending=True, continues_text=continues_text, **options)


def agent(script: Any, *tools: Any, known: Profile | None = None, **options: Any) -> AgentSpec:
    """An agent with a strict model over the script; what is cut goes on unless it says otherwise."""
    options.setdefault("automatic_continuation", True)
    return AgentSpec(model=StrictModel(script, profile=known or profile()), tools=tools, **options)


def hops(played: Played) -> list[tuple[str, int, str]]:
    """Beginnings and ends of requests, in order: which, and how."""
    told: list[tuple[str, int, str]] = []
    for event in played.events:
        if isinstance(event, HopStarted):
            told.append(("started", event.hop, event.strategy))
        elif isinstance(event, HopFinished):
            told.append(("finished", event.hop, event.status))
    return told


def shown(events: tuple[RunEvent, ...]) -> str:
    """The visible text that was streamed, without what was taken back."""
    text = ""
    for event in events:
        if isinstance(event, ContentDelta):
            text += event.text
        elif isinstance(event, Rollback):
            text = text[: event.to]
    return text


def so_far(asked: Asked) -> str | None:
    """The text of the turn that a request goes on with."""
    return None if asked.resume is None else AssistantMessage(asked.resume.parts).parts[-1].text  # type: ignore[union-attr]


def last(messages: tuple[Message, ...]) -> AssistantMessage:
    message = messages[-1]
    assert isinstance(message, AssistantMessage)
    return message
