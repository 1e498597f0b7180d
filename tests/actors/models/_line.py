"""Interactions over the network in memory: what a server says, request by request."""

from __future__ import annotations

from typing import Any

import attrs
import trio

from actors.models.gemini import InteractionEvent, Interactions, InteractionStream, Rollback
from tests.actors.models._wire import DONE, Network, Pause, Reply, Server, answer, event, stream
from tests.protocol.decode.speech import completed, created, delta, said, start, stop

ASK: dict[str, Any] = {"model": "gemini-x", "input": "Tell me."}


def whole(id: str, *texts: str, token: str | None = None, status: str | None = None, **more: Any) -> Reply:
    """A whole interaction."""
    status = status or ("completed" if token is None else "requires_continuation")
    interaction = {"id": id, "status": status, "steps": said(*texts), **more}
    return answer(200, interaction if token is None else {**interaction, "continuation_token": token})


def sse(*events: dict[str, Any] | str | bytes | Pause, end: str = "done") -> Reply:
    """A stream of these events; `[DONE]` follows if its end is a good one."""
    steps = [event(sent) if isinstance(sent, dict) else sent for sent in events]
    return stream(*steps, *([DONE] if end == "done" else []), end=end)


def after(seconds: float, reply: Reply) -> Reply:
    """A reply that is waited for."""

    async def write(server: Server, connection: trio.abc.Stream) -> bool:
        await trio.sleep(seconds)
        return await reply(server, connection)

    return write


def spoken(
    id: str, *texts: str, token: str | None = None, status: str | None = None, **more: Any
) -> list[dict[str, Any]]:
    """The events of a hop."""
    status = status or ("completed" if token is None else "requires_continuation")
    deltas = [delta(text) for text in texts]
    return [created(id), start(), *deltas, stop(), completed(status, token, id, **more)]


@attrs.define
class Heard:
    """What a consumer of a stream has, rollbacks obeyed."""

    events: list[Any] = attrs.Factory(list[Any])
    rollbacks: int = 0

    def take(self, given: InteractionEvent) -> None:
        if isinstance(given, Rollback):
            self.rollbacks += 1
            del self.events[given.to :]
        else:
            self.events.append(given)

    async def listen(self, stream: InteractionStream) -> None:
        async for given in stream:
            self.take(given)

    @property
    def text(self) -> str:
        deltas = [sent["delta"] for sent in self.events if sent.get("event_type") == "step.delta"]
        return "".join([change.get("text", "") for change in deltas])


@attrs.define(eq=False)
class Line:
    """A client, and the server it speaks to."""

    client: Interactions
    network: Network
    heard: Heard = attrs.Factory(Heard)

    def answers(self, *replies: Reply) -> None:
        self.network.server.replies += replies

    @property
    def bodies(self) -> list[Any]:
        return [request.json for request in self.network.server.requests]

    @property
    def count(self) -> int:
        return len(self.network.server.requests)

    async def hear(self, **body: Any) -> dict[str, Any]:
        """Iterate a stream to its end, and return what it comes to."""
        async with self.client.stream(**{**ASK, **body}) as stream:
            await self.heard.listen(stream)
            return await stream.final()


def line_to(nursery: trio.Nursery, **settings: Any) -> Line:
    network = Network(nursery)
    settings = {"base_url": "http://127.0.0.1:1", "api_key": "very-secret", "retries": 4, **settings}
    return Line(Interactions(transport=network.transport(), **settings), network)


__all__ = ("ASK", "Heard", "Line", "after", "line_to", "spoken", "sse", "whole")
