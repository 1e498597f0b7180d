"""Making room in a run's conversation: when `compact` is asked, what it may give back, and what becomes of that.

It is asked between exchanges alone: in a step's beginning, where the next request is estimated to be longer than it should
be, and where the server refused the request for its length. What it gives back takes the place of the stored conversation
in one step without an await, together with the event that tells of it: whatever is on disk is one of the two. A hook that
fails changes nothing, and a `warning` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from protocol.codec import decode, encode
from protocol.errors import ContextOverflow, OnwardError
from protocol.estimate import Estimator, message_size, tokens_of
from protocol.events import ContextCompacted
from protocol.finalization import flatten_tools
from protocol.joining import input_of
from protocol.model import Model, ModelRequest
from protocol.run import Failed
from protocol.shorten import kept_faults
from protocol.text import clean
from protocol.turns import AssistantMessage, Message, ToolMessage, Turn, UserMessage
from protocol.views import View

from ..logs import get_logger
from ._callbacks import EndRun, call_user, failed
from ._core import RunCore
from ._given import given_messages
from ._hooks import Compact, CompactState
from ._spec import AgentSpec

__all__ = ("make_room", "make_room_again", "measure")

logger = get_logger(__name__)

GROWTH = 8
"""A compaction that did not get below the threshold is tried again when the context has grown by this part of it."""


async def make_room(core: RunCore) -> None:
    """Before a model call: compact the conversation if the request would be longer than the threshold."""
    hook, threshold = core.acting.compact, _threshold_of(core.acting)
    if hook is None or threshold is None or not _is_sent(core):
        return
    gauge, tokens = core.gauge, _context_tokens(core)
    if tokens <= threshold:
        gauge.idle_below = 0
    elif tokens > gauge.idle_below:
        helped = await _compacted(core, hook, threshold)
        left = _context_tokens(core)
        is_idle = helped is not None and left > threshold
        gauge.idle_below = left + max(threshold // GROWTH, 1) if is_idle else 0


async def make_room_again(
    core: RunCore, request: ModelRequest, refusal: ContextOverflow, *, attempt: int
) -> ModelRequest | None:
    """After a refusal: the request with the conversation compacted; `None` if it got no shorter, or is none of ours."""
    hook, before = core.acting.compact, core.history.view()
    if hook is None or not _is_sent(core):
        return None
    flat = not isinstance(request.messages, View)
    if flat and tuple(request.messages) != tuple(flatten_tools(before)):
        return None  # a hook has put something else in the place of the conversation
    if not await _compacted(core, hook, _threshold_of(core.acting), refusal=refusal, attempt=attempt):
        return None
    messages: Sequence[Message] = core.history.view()
    return msgspec.structs.replace(request, messages=tuple(flatten_tools(messages)) if flat else messages)


def measure(core: RunCore, request: ModelRequest, model: Model, turn: Turn) -> None:
    """Learn from what the server counted what estimates are worth."""
    counted = input_of(turn)
    if core.acting.compact is None or counted is None or model.profile.count_tokens is not None:
        return
    if request.resume is None and not turn.hops:
        core.gauge.learn(core.estimator.request(request, core.history.view()), counted)


def _threshold_of(spec: AgentSpec) -> int | None:
    """The size above which a request is too long: as set, or what leaves room for the reply in a window that is known."""
    window = spec.model.profile.context_window
    if spec.compact_at_tokens is not None or window is None:
        return spec.compact_at_tokens
    reply = spec.max_tokens or spec.model.profile.default_max_tokens or 0
    return max(min(window * 4 // 5, window - reply), window // 2)


def _is_sent(core: RunCore) -> bool:
    """Whether the stored conversation is what is sent: a `prepare_step` may have put something else in its place."""
    return core.state.kept.messages is None and len(core.history) > 0


def _context_tokens(core: RunCore) -> int:
    """Input tokens of the next request, by estimate."""
    return _tokens_of(core, core.history.view(), whole=True)


def _tokens_of(core: RunCore, messages: Sequence[Message], *, whole: bool = False) -> int:
    """Tokens of messages; as a `whole`, of the request that they would make."""
    state, spec = core.state, core.acting
    count = spec.model.profile.count_tokens
    if not whole and count is None:
        return core.gauge.adjusted(tokens_of(sum(map(message_size, messages))))
    request = ModelRequest(messages=messages)
    if whole:
        system = state.kept.system
        request = ModelRequest(
            messages=messages,
            system=spec.system if isinstance(system, msgspec.UnsetType) else system,
            tail=state.final.instruction if state.final is not None else state.reask,
            tools=core.definitions,
        )
    if count is None:
        return core.gauge.adjusted(core.estimator.request(request, core.history.view()))
    try:
        return count(request) if messages else 0
    except Exception as error:
        raise EndRun(failed("model_error", "the model", error)) from error


async def _compacted(
    core: RunCore, hook: Compact, threshold: int | None, *, refusal: ContextOverflow | None = None, attempt: int = 0
) -> bool | None:
    """Ask the hook and store what it gives: whether it helped; `None` if it had nothing to change."""
    before, tokens_before = core.history.view(), _context_tokens(core)
    view = _state_of(core, tokens_before, threshold, refusal, attempt)
    try:
        given: Any = await call_user(hook, view, seconds=core.acting.callback_timeout_seconds)
        messages = None if given is None else _checked(core, given, before)
    except Exception as error:
        logger.exception("compact failed", agent_name=core.acting.name)
        messages = str(error) if isinstance(error, OnwardError) else f"it raised {type(error).__name__}"
    if messages is None:
        return None
    if isinstance(messages, str):
        core.warn("not_compacted", f"compact: {messages}; the conversation stays as it was")
        return False
    tokens_after = _tokens_of(core, messages, whole=True)
    known = {id(message) for message in before}
    core.history.replace(messages)
    core.estimator = Estimator()
    core.log.emit(
        ContextCompacted(
            run=core.run,
            agent_path=core.path,
            by=_name_of(hook),
            messages_before=len(before),
            messages_after=len(messages),
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            summary_chars=sum(len(m.text) for m in messages if isinstance(m, UserMessage) and id(m) not in known),
            refused=refusal is not None,
        )
    )
    return True


def _state_of(
    core: RunCore, tokens: int, threshold: int | None, refusal: ContextOverflow | None, attempt: int
) -> CompactState:
    messages = core.history.view()
    count = partial(_tokens_of, core)
    own = count(messages)
    targets = [own // 2] if refusal is not None or threshold is None else []
    if threshold is not None:
        targets.append(max(threshold - (tokens - own), 0) // 2)
    return CompactState(
        messages=messages,
        prompt=core.state.prompt,
        estimated_tokens=tokens,
        target_tokens=min(targets),
        threshold_tokens=threshold,
        context_window=core.acting.model.profile.context_window,
        refusal=None if refusal is None else str(refusal),
        attempt=attempt,
        is_final=core.state.final is not None,
        model=core.acting.model,
        context=core.context,
        count_tokens=count,
    )


def _checked(core: RunCore, given: Any, before: Sequence[Message]) -> tuple[Message, ...] | str:
    """What the hook gave as it may be stored, the messages that were there as themselves; or what is wrong with it."""
    try:
        messages = given_messages(given, "compact")
    except EndRun as over:
        return over.end.message.removeprefix("compact: ") if isinstance(over.end, Failed) else "it gave nothing of use"
    try:
        read = decode(encode(messages), list[UserMessage | AssistantMessage | ToolMessage])
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        return f"a message is not what it should be: {error}"
    messages = tuple([own if own == clean_one else clean_one for own, clean_one in zip(messages, read, strict=True)])
    if sum(map(message_size, messages)) >= sum(map(message_size, before)):
        return "what it gave back is not shorter"
    return kept_faults(before, messages, prompt=core.state.prompt) or messages


def _name_of(hook: Compact) -> str:
    return clean(str(getattr(hook, "__name__", type(hook).__name__)))
