"""The server: requests in, the scripted decode out, and faults where they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import attrs
import trio

from tests.actors.models._wire import Reply, Request, Server, answer, stream

from ._rules import Place, RefusedError, Tokens
from ._script import Call, Checkpoint, Hop
from ._writing import Frame, events, to_json, whole


@attrs.frozen(kw_only=True)
class Cut:
    """The reply ends after so many bytes of its body. `end` as `stream()` takes it: cut | close | reset | hang."""

    at_byte: int
    end: Literal["cut", "close", "reset", "hang"] = "cut"


@attrs.frozen
class Stall:
    """Silence before the reply begins."""

    seconds: float


Fault: TypeAlias = Cut | Stall | Reply


def refuse(status: int, message: str = "", *, code: str = "", retry_after: str = "") -> Reply:
    """An error status, in the format's own words."""
    headers = [f"retry-after: {retry_after}"] if retry_after else []
    return answer(status, {"error": {"code": code or "unavailable", "message": message or "come again"}}, headers)


@attrs.define(eq=False)
class InteractionsServer(Server):
    """Plays decodes. Make it with `interactions_server()`."""

    decodes: Sequence[Sequence[Hop]] = ()
    faults: dict[int, Fault] = attrs.field(factory=dict)
    """What happens to the request with this number, the first being 0."""
    older_names: bool = False
    """Streams use the names of the first preview."""
    tokens: Tokens = attrs.field(factory=Tokens)
    begun: int = 0
    """Decodes that were begun; the last one is played again when there is none left."""

    @property
    def bodies(self) -> list[Any]:
        """What was posted, request by request."""
        return [request.json for request in self.requests]

    def issue(self, token: str, owner: str, body: dict[str, Any], *, hop: int) -> None:
        """A token from before: the interaction `owner`, which is stored, was asked `body`, and goes on at `hop`."""
        self.tokens.stored.add(owner)
        self.tokens.issue(token, owner, Place(0, hop, 0, body))

    def begin_again(self, faults: dict[int, Fault]) -> None:
        """Forget what has been, as if just made with these faults."""
        self.requests.clear()
        self.tokens = Tokens(self.tokens.single_use)
        self.begun = 0
        self.faults = faults

    async def listen(self, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve on a socket until cancelled; reports the address, without `/v1/interactions`."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, self.serve, listeners)
            task_status.started(f"http://127.0.0.1:{port}")

    def reply_to(self, request: Request) -> Reply:
        """The scripted reply, or the fault that this request is to meet."""
        number = len(self.requests) - 1
        fault = self.faults.get(number)
        if fault is not None and not isinstance(fault, (Cut, Stall)):
            return fault
        method, path, _ = request.line.split(" ")
        if method != "POST" or not path.partition("?")[0].endswith("/interactions"):
            return refuse(404, f"there is no {method} {path}", code="not_found")
        try:
            reply = self._play(request.json, f"i{number + 1}", fault if isinstance(fault, Cut) else None)
        except RefusedError as error:
            return refuse(error.status, str(error), code="invalid_argument")
        return _after(fault.seconds, reply) if isinstance(fault, Stall) else reply

    def _play(self, body: dict[str, Any], interaction_id: str, cut: Cut | None) -> Reply:
        place = self.tokens.resume(body)
        if place is None:
            place = Place(min(self.begun, len(self.decodes) - 1), 0, 0, body)
            self.begun += 1
        script = self.decodes[place.decode][place.hop]
        if body.get("store") is not False:
            self.tokens.stored.add(interaction_id)
        as_events = body.get("stream") is True if script.form == "as asked" else script.form == "events"
        self._issue(script, place, interaction_id, as_events=as_events)
        pieces = script.pieces[place.piece :]
        if not as_events:
            text = to_json(whole(script, pieces, interaction_id, body))
            return answer(200, text) if cut is None else _cut([text], cut, "application/json")
        frames = events(script, pieces, interaction_id, body, older=self.older_names)
        return stream(*frames) if cut is None else _cut(frames, cut, "text/event-stream")

    def _issue(self, script: Hop, place: Place, owner: str, *, as_events: bool) -> None:
        for number, piece in enumerate(script.pieces):
            if number >= place.piece and isinstance(piece, Checkpoint) and as_events:
                self.tokens.issue(piece.token, owner, attrs.evolve(place, piece=number + 1))
            if isinstance(piece, Call) and piece.signature is not None:
                self.tokens.signatures[piece.id] = piece.signature
        if script.token is not None:
            next_hop = place.hop + 1 if script.leads_to is None else script.leads_to
            if next_hop < len(self.decodes[place.decode]):
                self.tokens.issue(script.token, owner, attrs.evolve(place, hop=next_hop, piece=0))


def interactions_server(*decodes: Sequence[Hop], single_use: bool = False, **settings: Any) -> InteractionsServer:
    """A server that plays these decodes, one for each request without a token."""
    return InteractionsServer(decodes=decodes, tokens=Tokens(single_use=single_use), **settings)


def stream_bytes(server: InteractionsServer, interaction_id: str = "i1", *, decode: int = 0, hop: int = 0) -> bytes:
    """The body of the stream that a hop is, from its beginning."""
    script = server.decodes[decode][hop]
    request = {"model": "gemini-x"}
    return _bytes(events(script, script.pieces, interaction_id, request, older=server.older_names))


def _bytes(frames: Sequence[Frame]) -> bytes:
    return b"".join([
        frame if isinstance(frame, bytes) else frame.encode() for frame in frames if isinstance(frame, (str, bytes))
    ])


def _cut(frames: Sequence[Frame], cut: Cut, content_type: str) -> Reply:
    body = _bytes(frames)[: cut.at_byte]
    return stream(*([body] if body else []), end=cut.end, content_type=content_type)


def _after(seconds: float, reply: Reply) -> Reply:
    async def write(server: Server, connection: trio.abc.Stream) -> bool:
        await trio.sleep(seconds)
        return await reply(server, connection)

    return write
