"""Reads the hops of a decode as the model does, without a server."""

from __future__ import annotations

import json
from typing import Any

import attrs

from actors.models.gemini._interactions_deltas import Deltas
from actors.models.gemini._interactions_reply import turn_of
from actors.models.wire import Endpoint
from protocol.decode import Done, LoopState
from protocol.model import CallDelta, ModelEvent, ReasoningDelta, TextDelta, Undone
from protocol.turns import Turn
from tests.actors.models._wire import Heard
from tests.support.interactions import Hop, events, whole

ENDPOINT = Endpoint.of("http://127.0.0.1:8080/v1", "/interactions")


@attrs.frozen
class Read:
    """The turn, and what was reported on the way."""

    turn: Turn
    heard: Heard


def read(*hops: Hop, streamed: bool = True, older: bool = False) -> Read:
    """The turn of a decode whose hops are these."""
    loop, deltas, heard = LoopState({"store": False}), Deltas(), Heard()
    for number, hop in enumerate(hops):
        deltas.begin_hop()
        for event in _events(hop, f"i{number + 1}", loop, streamed=streamed, older=older):
            for told in deltas.feed(event):
                heard(told)
        decision = loop.end_hop()
        assert (number == len(hops) - 1) == isinstance(decision, Done), decision
    return Read(turn_of(loop.records, ENDPOINT), heard)


def _events(hop: Hop, name: str, loop: LoopState, *, streamed: bool, older: bool) -> list[dict[str, Any]]:
    if not streamed:
        return [loop.observe_whole(whole(hop, hop.pieces, name, {}))]
    found = []
    for frame in events(hop, hop.pieces, name, {}, older=older):
        assert isinstance(frame, str)
        data = frame.rpartition("data: ")[2].strip()
        if data != "[DONE]":
            found.append(json.loads(data))
            loop.observe(found[-1])
    return found


def shown(events: list[ModelEvent]) -> Heard:
    """What stands of what was reported."""
    stand = Heard()
    for event in events:
        if isinstance(event, Undone):
            text, reasoning, calls = stand.text[: event.text], stand.reasoning[: event.reasoning], event.calls
            kept = [told for told in stand.events if isinstance(told, CallDelta) and told.index < calls]
            stand = Heard([TextDelta(text), ReasoningDelta(reasoning), *kept])
        else:
            stand(event)
    return stand
