"""What the server says: a decode as hops, and each hop as the pieces that the model makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from tests.actors.models._wire import Pause


@attrs.frozen
class Text:
    """Visible text; texts that follow each other are deltas of one step."""

    text: str


@attrs.frozen
class Thought:
    """A thought: its signature, and what of it is shown."""

    signature: str = "sig"
    summary: str = ""


@attrs.frozen
class Call:
    """A function call. `pieces`: its arguments as the stream brings them; `arguments`: as a whole interaction does."""

    id: str
    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    signature: str | None = None
    pieces: tuple[str, ...] | None = None
    index: int | None = None
    """The index that its deltas carry, where it is a wrong one."""


@attrs.frozen
class Step:
    """A step, whole; of any type."""

    step: Mapping[str, Any]


@attrs.frozen
class Checkpoint:
    """A token in the middle of a hop: it resumes the decode behind this place. It stands in streams alone."""

    token: str
    status: str = "in_progress"


@attrs.frozen
class Raw:
    """An event, bytes or silence that stand in the stream as they are."""

    data: str | bytes | Pause | Mapping[str, Any]


Piece: TypeAlias = Text | Thought | Call | Step | Checkpoint | Raw
Form: TypeAlias = Literal["as asked", "json", "events"]


@attrs.frozen(kw_only=True)
class Hop:
    """What one request brings, if it begins at the hop's beginning. Made by `hop()`."""

    pieces: tuple[Piece, ...]
    status: str
    token: str | None
    leads_to: int | None
    usage: Mapping[str, Any] | None
    over: Mapping[str, Any]
    terminal: bool
    done: bool
    form: Form


COUNTED: Mapping[str, Any] = {}
"""The usage is what was said: 10 tokens of input, one of output for each piece of text or call, 4 for a thought."""


def hop(
    *pieces: Piece | str,
    token: str | None = None,
    status: str | None = None,
    leads_to: int | None = None,
    usage: Mapping[str, Any] | None = COUNTED,
    over: Mapping[str, Any] | None = None,
    terminal: bool = True,
    done: bool = True,
    form: Form = "as asked",
) -> Hop:
    """One hop.

    Args:
        pieces: A string is a `Text`.
        token: What resumes the decode behind this hop: it makes the status `requires_continuation`.
        status: By default what follows from the token and the calls.
        leads_to: The number of the hop that the token resumes; by default the next.
        usage: Laid over the counted usage, `None` for none at all.
        over: Laid over the final interaction; `None` removes a field.
        terminal: Whether the stream brings `interaction.completed`.
        done: Whether the stream brings `[DONE]`.
        form: How the reply is written, where that is not what was asked for.
    """
    made = tuple([Text(piece) if isinstance(piece, str) else piece for piece in pieces])
    if status is None:
        calls = any(isinstance(piece, Call) for piece in made)
        status = "requires_continuation" if token is not None else "requires_action" if calls else "completed"
    return Hop(
        pieces=made,
        status=status,
        token=token,
        leads_to=leads_to,
        usage=usage,
        over=over or {},
        terminal=terminal,
        done=done,
        form=form,
    )


def usage_of(script: Hop, pieces: tuple[Piece, ...]) -> dict[str, Any] | None:
    """The usage of a reply that holds these pieces of the hop."""
    if script.usage is None:
        return None
    output = sum(isinstance(piece, (Text, Call)) for piece in pieces)
    thought = 4 * sum(isinstance(piece, Thought) for piece in pieces)
    counted = {
        "total_input_tokens": 10,
        "total_output_tokens": output,
        "total_thought_tokens": thought,
        "total_cached_tokens": 0,
        "total_tool_use_tokens": 0,
        "total_tokens": 10 + output + thought,
        "input_tokens_by_modality": [{"modality": "text", "tokens": 10}],
    }
    return {**counted, **script.usage}
