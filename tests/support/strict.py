"""A model that refuses what the strictest real servers refuse, whatever their wire format (the judge's rules S1-S8).

Every request is checked before the script sees it. What is wrong is kept in `faults` and answered as a server would:
`ModelRefused` with status 400.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

import attrs
import msgspec

from actors.models.scripted import Scripted, ScriptedTurn, ScriptFunction
from protocol.errors import ModelRefused
from protocol.model import Model, ModelEmit, ModelRequest, Profile, RequestSent, Resume, ToolChoice
from protocol.turns import AssistantMessage, Message, OpaquePart, TextPart, ToolCall, ToolMessage, Turn, UserMessage

MAX_CALLS_PER_TURN = 128


@attrs.frozen
class Asked:
    """A request as it was when it was made: a copy, so that a later change of the history shows."""

    messages: tuple[Message, ...]
    tail: str | None
    system: str | None
    tools: tuple[str, ...]
    tool_choice: ToolChoice
    temperature: float | None
    max_tokens: int | None
    resume: Resume | None = None

    @classmethod
    def of(cls, request: ModelRequest) -> Asked:
        return cls(
            tuple(request.messages),
            request.tail,
            request.system,
            tuple(definition.name for definition in request.tools),
            request.tool_choice,
            request.temperature,
            request.max_tokens,
            request.resume,
        )

    @property
    def tools_on(self) -> bool:
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def conversation(self) -> tuple[Message, ...]:
        return self.messages if self.tail is None else (*self.messages, UserMessage(self.tail))

    @property
    def texts(self) -> list[str]:
        """What the user role says, in order."""
        return [message.text for message in self.conversation if isinstance(message, UserMessage)]


class StrictModel:
    """The interface of `Model` over a script, or over another model, with the judge in front."""

    def __init__(
        self,
        script: Model | Iterable[ScriptedTurn] | ScriptFunction,
        *,
        name: str = "strict",
        profile: Profile | None = None,
    ) -> None:
        # A function and a list have no `turn`; a model has.
        self._model: Model = (
            cast("Model", script)
            if hasattr(script, "turn")
            else Scripted(cast("Iterable[ScriptedTurn] | ScriptFunction", script), name=name, profile=profile)
        )
        self.asked: list[Asked] = []
        self.faults: list[str] = []

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def turn(self, request: ModelRequest, emit: ModelEmit) -> Turn:
        emit(RequestSent())
        self.asked.append(Asked.of(request))
        faults = request_faults(request, self.profile)
        if faults:
            self.faults += [f"request {len(self.asked)}: {fault}" for fault in faults]
            raise ModelRefused("; ".join(faults), status=400)
        return await self._model.turn(request, emit)


def request_faults(request: ModelRequest, profile: Profile) -> list[str]:
    """Everything that a strict server would refuse the request for."""
    conversation = request.conversation()
    faults = [*_order_faults(conversation), *_content_faults(conversation)]
    if not conversation:
        faults.append("there is no message")
    elif isinstance(conversation[-1], AssistantMessage) and request.resume is None:
        faults.append("the last message is an assistant one")
    names = [definition.name for definition in request.tools]
    if len(set(names)) != len(names):
        faults.append(f"tools offered more than once: {names}")
    if request.tool_choice == "required" and not names:
        faults.append("a tool is required, but none is offered")
    if profile.flatten_without_tools and not names and any(_has_tool_blocks(message) for message in conversation):
        faults.append("tool blocks without tool definitions")
    return [*faults, *_encoding_faults(request, conversation)]


def _order_faults(conversation: list[Message]) -> list[str]:
    """S1, S2, S3: each call has one result directly after its turn, no result is alone, ids are unique."""
    faults: list[str] = []
    seen: set[str] = set()
    pending: list[str] = []
    for place, message in enumerate(conversation):
        if isinstance(message, ToolMessage):
            answered = [result.call for result in message.results]
            if answered != pending:
                faults.append(f"message {place} answers {answered}, directly before it stand the calls {pending}")
            pending = []
            continue
        if pending:
            faults.append(f"message {place} comes before the results of {pending}")
        pending = []
        if isinstance(message, AssistantMessage):
            pending = [part.id for part in message.parts if isinstance(part, ToolCall)]
            for call in pending:
                if not call or call in seen:
                    faults.append(f"message {place} has an empty or repeated call id {call!r}")
                seen.add(call)
    if pending:
        faults.append(f"the calls {pending} have no results")
    return faults


def _content_faults(conversation: list[Message]) -> list[str]:
    """S6: no empty message, no empty block of text, not too many calls, arguments that are a JSON object's text."""
    faults: list[str] = []
    for place, message in enumerate(conversation):
        if isinstance(message, UserMessage):
            if not message.text.strip():
                faults.append(f"message {place} is empty")
        elif isinstance(message, AssistantMessage):
            calls = [part for part in message.parts if isinstance(part, ToolCall)]
            texts = [part.text for part in message.parts if isinstance(part, TextPart)]
            items = any(isinstance(part, OpaquePart) for part in message.parts)  # of a turn that the server paused
            if not calls and not items and not any(text.strip() for text in texts):
                faults.append(f"message {place} has neither text nor calls")
            if "" in texts:
                faults.append(f"message {place} has an empty block of text")
            if len(calls) > MAX_CALLS_PER_TURN:
                faults.append(f"message {place} has {len(calls)} calls")
            faults += [
                f"message {place}: the arguments of {call.id!r} are no JSON object: {call.arguments!r}"
                for call in calls
                if not _is_object(call.arguments)
            ]
    return faults


def _encoding_faults(request: ModelRequest, conversation: list[Message]) -> list[str]:
    """S8: all that would be sent is strict JSON in UTF-8."""
    body = {
        "system": request.system,
        "messages": msgspec.to_builtins(conversation),
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError) as error:
        return [f"no strict JSON in UTF-8: {error}"]
    return []


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except ValueError:
        return False


def _refuse(name: str) -> None:
    raise ValueError(name)


def _has_tool_blocks(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return any(isinstance(part, ToolCall) for part in message.parts)
    return isinstance(message, ToolMessage)
