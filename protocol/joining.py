"""A decode in several requests (loop.md section 8): how a turn that was cut goes on, and what its pieces come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs
import msgspec

from .model import ModelRequest, Profile, Resume, Strategy
from .outcome import outcome_of
from .seam import dropped_of
from .turns import Hop, OpaquePart, Part, ReasoningPart, TextPart, Turn, raw_text_of
from .usage import UNKNOWN_USAGE, Usage

__all__ = ("cap_of", "continuing", "input_of", "join", "kept_of", "lose", "status_of", "strategy_of", "with_first_hop")

WINDOW_IS_FULL = "model_context_window_exceeded"
STRUCTURED = {
    *("format", "grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "json_schema"),
    *("output_format", "response_format", "response_json_schema", "response_mime_type", "response_schema"),
    *("structured_outputs",),
}
"""Fields of the providers' requests that say what form a text shall have."""
_PLAIN: tuple[Any, ...] = (None, "text", "text/plain")


def cap_of(request: ModelRequest, profile: Profile) -> int | None:
    """The cap on output tokens that holds for a request, if one is known."""
    return request.max_tokens if request.max_tokens is not None else profile.default_max_tokens


def strategy_of(turn: Turn, request: ModelRequest, profile: Profile, *, final: bool) -> Strategy | None:
    """How a turn goes on that was cut, or `None` if it does not.

    `request` is the one that brought its last piece; `final`: tools are off because of a limit. A turn is made anew once:
    the request that does it names its cap.
    """
    wanted = request.automatic_continuation
    if wanted is False or turn.unfinished is not None or _window_is_full(turn, profile):
        return None
    if not outcome_of(turn, cap_of(request, profile)).cut:
        return None
    if turn.finish == "paused":
        return "resend" if not turn.calls and _can_be_sent(turn) else None
    anew: Strategy | None = None if _bigger_cap(turn, request, profile) is None else "restart_bigger"
    if turn.calls:
        return None if final else anew
    if wanted is None or not turn.text or (final and request.max_tokens is not None):
        return None
    if _is_structured(request.provider_options):
        return anew  # whatever goes on with half of a structure, it is a second one
    return None if profile.continues_text == "none" else profile.continues_text


def continuing(request: ModelRequest, profile: Profile, turn: Turn, strategy: Strategy) -> ModelRequest:
    """The request that goes on with a turn."""
    match strategy:
        case "restart_bigger":
            return msgspec.structs.replace(request, max_tokens=_bigger_cap(turn, request, profile))
        case "exact_prefix" | "resend" | "user_turn":
            return msgspec.structs.replace(request, resume=Resume(turn.parts, strategy))
        case "token":
            raise ValueError("a token is presented by the model itself, within its call")


def kept_of(turn: Turn, request: ModelRequest, strategy: Strategy) -> Turn:
    """What of a turn stands when it goes on; `request` brought its last piece."""
    if strategy != "restart_bigger":
        return turn
    return attrs.evolve(turn, parts=request.resume.parts if request.resume is not None else (), dropped_calls=0)


def with_first_hop(turn: Turn, strategy: Strategy) -> Turn:
    """The turn of a first request, now that it is known to be the first of several."""
    if turn.hops:
        return turn
    return attrs.evolve(turn, hops=(Hop(turn.response, status_of(turn), turn.usage, strategy),))


def join(kept: Turn, piece: Turn, request: ModelRequest, strategy: Strategy) -> Turn:
    """A turn, and the piece that `request` brought: texts joined with nothing between.

    Where the request asked in words, what the piece repeats is dropped. A piece that brought nothing that can be read
    leaves the turn cut, as it was.
    """
    hops = piece.hops or (Hop(piece.response, status_of(piece), piece.usage),)
    first = msgspec.structs.replace(hops[0], strategy=strategy)
    ended = attrs.evolve(
        piece,
        parts=_joined(kept.parts, piece, request.resume),
        usage=kept.usage + piece.usage,
        dropped_calls=kept.dropped_calls + piece.dropped_calls,
        hops=(*kept.hops, first, *hops[1:]),
        context_tokens=input_of(piece),
    )
    if piece.end == "complete" and _says_nothing(piece):
        return attrs.evolve(ended, finish=kept.finish, raw_finish=kept.raw_finish)
    return ended


def lose(turn: Turn, strategy: Strategy) -> Turn:
    """The turn, and a request more that brought nothing."""
    hop = Hop(None, "lost", UNKNOWN_USAGE, strategy)
    return attrs.evolve(turn, usage=turn.usage + UNKNOWN_USAGE, hops=(*turn.hops, hop))


def status_of(turn: Turn) -> str:
    """The vendor's word for how a turn ended."""
    return "lost" if turn.end == "lost" else turn.raw_finish or turn.finish or "unknown"


def _says_nothing(piece: Turn) -> bool:
    kind = outcome_of(piece).kind
    return kind in {"malformed", "failed"} or (kind == "empty" and piece.finish != "stop")


def _joined(parts: tuple[Part, ...], piece: Turn, resume: Resume | None) -> tuple[Part, ...]:
    if resume is None:
        return (*parts, *piece.parts)
    if resume.strategy == "resend":  # the server's own turn, which it wants back as it was
        return (*parts, *piece.parts)
    dropped = 0
    if resume.strategy == "user_turn":
        dropped = dropped_of(raw_text_of(parts), raw_text_of(piece.parts)) or 0
    joined = list(parts)
    for part in piece.parts:
        if isinstance(part, TextPart):
            text = part.text[dropped:]
            dropped = max(0, dropped - len(part.text))
            if text and joined and isinstance(joined[-1], TextPart):
                joined[-1] = TextPart(joined[-1].text + text)
            elif text:
                joined.append(TextPart(text))
        elif isinstance(part, ReasoningPart):
            joined.append(ReasoningPart(part.text))  # signed for another request, and not for this place
        elif not (isinstance(part, OpaquePart) and part.call is None):
            joined.append(part)
    return tuple(joined)


def _can_be_sent(turn: Turn) -> bool:
    """Whether there is anything in a turn that a server takes back: it refuses an empty message."""
    return bool(turn.text) or any(
        isinstance(part, OpaquePart) or (isinstance(part, ReasoningPart) and part.signature is not None)
        for part in turn.parts
    )


def _last_usage(turn: Turn) -> Usage:
    return turn.hops[-1].usage if turn.hops else turn.usage


def input_of(turn: Turn) -> int | None:
    """Input tokens of a turn's last request, if it reported any."""
    if turn.context_tokens is not None:
        return turn.context_tokens
    return turn.usage.input_tokens if turn.usage.uncached_input_tokens is not None else None


def _window_is_full(turn: Turn, profile: Profile) -> bool:
    if turn.raw_finish == WINDOW_IS_FULL:
        return True
    used = _last_usage(turn)
    if profile.context_window is None or used.uncached_input_tokens is None:
        return False
    return used.total_tokens >= profile.context_window


def _bigger_cap(turn: Turn, request: ModelRequest, profile: Profile) -> int | None:
    """The biggest cap of the model, if a smaller one that nobody asked for has cut the turn."""
    cap, biggest, output = profile.default_max_tokens, profile.max_output_tokens, _last_usage(turn).output_tokens
    if request.max_tokens is not None or cap is None or biggest is None or biggest <= cap:
        return None
    return biggest if output is None or output >= cap else None


def _is_structured(options: Mapping[str, Any] | None) -> bool:
    """Whether the provider was asked for JSON, or for another form than plain text."""
    for name, value in (options or {}).items():
        kind: Any = cast("Mapping[str, Any]", value).get("type") if isinstance(value, Mapping) else value
        if name in STRUCTURED and kind not in _PLAIN:
            return True
        if isinstance(value, Mapping) and _is_structured(cast("Mapping[str, Any]", value)):
            return True
    return False
