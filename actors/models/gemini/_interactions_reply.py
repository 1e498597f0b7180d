"""Interactions: the requests of one decode as one turn. No I/O.

A status decides how the turn ended. A decode that failed or was cancelled is no turn, whatever it said before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from protocol.decode import HopRecord
from protocol.errors import ModelError, ModelReplyError, ModelServerError
from protocol.turns import Finish, Hop, Turn, Unfinished
from protocol.usage import UNKNOWN_USAGE, Tally, Usage

from ..wire import Endpoint, fault_in, items, mapping, number
from ._interactions_parts import read_hops

__all__ = ("partial_turn", "turn_of", "usage_of")

_FINISHES: dict[str, Finish] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "length",
}
_FAILED = {"failed", "cancelled"}
_GOING_ON = {"", "in_progress", "queued", "idle"}


def turn_of(records: Sequence[HopRecord], endpoint: Endpoint, unfinished: Unfinished | None = None) -> Turn:
    """The turn of a decode that has come to its end. Raises `ModelError` if that is no answer, with it in `partial`."""
    status = records[-1].status if records and records[-1].ended else ""
    error = _error(records, status, endpoint)
    if error is not None:
        error.partial = partial_turn(records)
        raise error
    turn, cut = _read(records)
    finish = "length" if cut else _FINISHES.get(status, "other")
    if any(not call.name for call in turn.calls):
        raise ModelReplyError(
            f"{endpoint.address}: the reply holds a function call without a name", partial=partial_turn(records)
        )
    return attrs.evolve(turn, finish=finish, raw_finish=status, unfinished=unfinished)


def partial_turn(records: Sequence[HopRecord]) -> Turn:
    """What has come of a decode that broke off."""
    return attrs.evolve(_read(records)[0], end="lost")


def usage_of(reported: dict[str, Any]) -> Usage:
    """Disjoint classes: cached tokens are reported within the input, those of thoughts beside the output.

    What the provider's own tools brought is input.
    """
    given, cached = number(reported.get("total_input_tokens")), number(reported.get("total_cached_tokens"))
    output, thought = number(reported.get("total_output_tokens")), number(reported.get("total_thought_tokens"))
    brought = number(reported.get("total_tool_use_tokens")) or 0
    return Usage(
        None if given is None else max(0, given - (cached or 0)) + brought,
        cached,
        None,
        None if output is None else output + (thought or 0),
        thought,
        complete=given is not None and output is not None,
    )


def _read(records: Sequence[HopRecord]) -> tuple[Turn, bool]:
    reading = read_hops([dict(record.interaction) for record in records])
    hops = [Hop(record.id, record.status, usage_of(record.usage)) for record in records]
    tally = Tally()
    for hop in hops:
        tally.add(hop.usage)
    several = len(hops) > 1
    turn = Turn(
        reading.parts,
        usage=tally.total() if hops else UNKNOWN_USAGE,
        response=next((hop.interaction for hop in reversed(hops) if hop.interaction), None),
        hops=tuple(hops) if several else (),
        context_tokens=hops[-1].usage.input_tokens if several and hops[-1].usage.complete else None,
    )
    return turn, reading.cut


def _error(records: Sequence[HopRecord], status: str, endpoint: Endpoint) -> ModelError | None:
    if status in _FAILED:
        why = _reason_in(mapping(records[-1].interaction))
        told = f": {endpoint.quote(why)}" if why else ""
        text = f"{endpoint.address} ended its reply with the status {status!r}{told}"
        return ModelServerError(text, status=500, retryable=status == "failed")
    if status in _GOING_ON:
        told = f"the status {status!r}" if status else "no status"
        return ModelReplyError(f"{endpoint.address} ended its reply with {told}", retryable=True)
    return None


def _reason_in(interaction: dict[str, Any]) -> str:
    """What went wrong, in the provider's words: told of the interaction, or of its last step."""
    steps = items(interaction.get("steps"))
    told = [
        interaction.get("error"),
        *items(interaction.get("errors")),
        *[mapping(step).get("error") for step in steps],
    ]
    return next((fault.message for error in told if (fault := fault_in({"error": error})) is not None), "")
