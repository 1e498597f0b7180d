"""Whole connections over streams in memory: a gateway with its front, and clients that speak to it by the library."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

import attrs
import trio
import trio.testing
import trio_websocket

from actors import AgentSpec, Runtime, RuntimeLimits, open_runtime
from actors.agent import Agent
from actors.gateway import ALL_ROLES, Access, DoorLimits, Gateway, Pace, Principal, open_gateway
from protocol.wire import SUBPROTOCOL, Role, WireLimits

MANY = DoorLimits(
    connections=10_000,
    connections_per_address=10_000,
    connections_per_principal=10_000,
    handshakes_per_second=10_000,
    handshakes_burst=10_000,
)


class RefusedError(Exception):
    """A command was answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error))
        self.number = error["code"]
        self.text = error["message"]
        self.data: dict[str, Any] = error.get("data", {})

    @property
    def word(self) -> str:
        return str(self.data.get("code", self.number))


@attrs.define(eq=False)
class Client:
    """One connection. It reads when it is asked to, and not otherwise."""

    socket: trio_websocket.WebSocketConnection
    stream: trio.abc.Stream
    frames: list[str] = attrs.field(factory=list)
    notes: list[dict[str, Any]] = attrs.field(factory=list)
    replies: dict[Any, dict[str, Any]] = attrs.field(factory=dict)
    order: list[dict[str, Any]] = attrs.field(factory=list)
    """Every message as it came."""
    _ids: int = 0

    async def send(self, method: str, params: Any = None, *, id: Any = None) -> Any:
        """Send a command and return its id."""
        if id is None:
            self._ids += 1
            id = self._ids
        frame = {"jsonrpc": "2.0", "id": id, "method": method}
        await self.socket.send_message(json.dumps(frame if params is None else {**frame, "params": params}))
        return id

    async def ask(self, method: str, /, **params: Any) -> Any:
        """Send a command and read until it is answered. Raises `RefusedError`. `from_` stands for `from`."""
        if "from_" in params:
            params["from"] = params.pop("from_")
        return await self.reply(await self.send(method, params))

    async def reply(self, id: Any) -> Any:
        """Read until a command is answered."""
        while id not in self.replies:
            await self.read()
        message = self.replies.pop(id)
        if "error" in message:
            raise RefusedError(message["error"])
        return message["result"]

    async def refusal(self, method: str, /, **params: Any) -> RefusedError:
        """The error that a command is answered with."""
        try:
            result = await self.ask(method, **params)
        except RefusedError as error:
            return error
        raise AssertionError(f"{method} was not refused: {result}")

    async def read(self) -> None:
        """Read one frame."""
        frame = await self.socket.get_message()
        assert isinstance(frame, str)
        self.frames.append(frame)
        value = json.loads(frame)
        for message in value if isinstance(value, list) else [value]:
            self.order.append(message)
            if "method" in message:
                self.notes.append(message)
            else:
                self.replies[message["id"]] = message

    async def read_for(self, seconds: float) -> None:
        """Read what comes within that time."""
        with trio.move_on_after(seconds):
            while True:
                await self.read()

    async def read_until(self, done: Callable[[], bool]) -> None:
        """Read until something holds."""
        while not done():
            await self.read()

    async def closed(self) -> tuple[int, str | None]:
        """Read to the end: the close code and its reason."""
        with contextlib.suppress(trio_websocket.ConnectionClosed):
            while True:
                await self.read()
        reason = self.socket.closed
        assert reason is not None
        return reason.code, reason.reason

    def events(self, agent: str) -> list[tuple[int, dict[str, Any]]]:
        """All events of an agent that came, each with the number of the first that it stands for."""
        found: list[tuple[int, dict[str, Any]]] = []
        for note in self.notes:
            if note["method"] == "events" and note["params"]["agent"] == agent:
                number = note["params"]["seq"]
                for event in note["params"]["events"]:
                    found.append((number, event))
                    number += event.get("n", 1)
        return found

    def types(self, agent: str) -> list[str]:
        return [event["type"] for _, event in self.events(agent)]

    def heartbeats(self) -> list[dict[str, int]]:
        return [note["params"]["heads"] for note in self.notes if note["method"] == "heartbeat"]

    def saw(self, agent: str, kind: str) -> Callable[[], bool]:
        """Whether an event of that type has come."""
        return lambda: kind in self.types(agent)

    def requests(self, agent: str) -> list[dict[str, Any]]:
        return [event for _, event in self.events(agent) if event["type"].endswith("_required")]

    async def drop(self) -> None:
        """Go without a word."""
        await trio.aclose_forcefully(self.stream)


@attrs.define(eq=False)
class Hall:
    """A runtime, its gateway, and whoever comes."""

    runtime: Runtime
    gateway: Gateway
    access: Access
    nursery: trio.Nursery
    _tokens: dict[Principal, str] = attrs.field(factory=dict)

    def token_of(self, principal: Principal) -> str:
        if principal not in self._tokens:
            self._tokens[principal] = f"token-of-{len(self._tokens):04}-{principal.name}"
            self.access.add(self._tokens[principal], principal)
        return self._tokens[principal]

    async def connect(
        self,
        principal: Principal | str = "ada",
        *roles: Role,
        hello: bool = True,
        streams: Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]] = trio.testing.memory_stream_pair,
        queue: int = 1,
        max_message_size: int = 2**21,
    ) -> Client:
        """A new connection of somebody with these roles, all where none are named."""
        if isinstance(principal, str):
            principal = Principal(principal, frozenset(roles) or ALL_ROLES)
        mine, theirs = streams()
        assert self.gateway.front is not None
        self.nursery.start_soon(self.gateway.front.serve, theirs, "127.0.0.1")
        socket = await trio_websocket.wrap_client_stream(
            self.nursery,
            cast("trio.SocketStream", mine),
            "localhost",
            "/ws",
            subprotocols=[SUBPROTOCOL],
            extra_headers=[(b"Authorization", f"Bearer {self.token_of(principal)}".encode())],
            message_queue_size=queue,
            max_message_size=max_message_size,
        )
        client = Client(socket, mine)
        if hello:
            await client.ask("hello")
        return client

    async def spawn(self, spec: AgentSpec) -> Agent:
        return await self.runtime.spawn(spec)


@contextlib.asynccontextmanager
async def open_hall(
    *,
    pace: Pace | None = None,
    limits: WireLimits | None = None,
    templates: Any = None,
    of_host: RuntimeLimits | None = None,
    **runtime: Any,
) -> AsyncGenerator[Hall, None]:
    """A runtime and a gateway in front of it. Whoever is still there at the end is dropped; a deadlock is a failure."""
    access = Access()
    with trio.fail_after(36_000):
        async with (
            open_runtime(limits=of_host, **runtime) as host,
            open_gateway(
                host, port=0, tokens=access, pace=pace, limits=limits, templates=templates, door_limits=MANY
            ) as gateway,
            trio.open_nursery() as nursery,
        ):
            yield Hall(host, gateway, access, nursery)
            nursery.cancel_scope.cancel("the test is over")


def numbers_are_whole(events: list[tuple[int, dict[str, Any]]], after: int) -> bool:
    """Whether numbers begin behind `after` and have neither gap nor double."""
    expected = after + 1
    for number, event in events:
        if number != expected:
            return False
        expected += event.get("n", 1)
    return True


def last_number(events: list[tuple[int, dict[str, Any]]], after: int = 0) -> int:
    """The number that a client has applied."""
    return events[-1][0] + events[-1][1].get("n", 1) - 1 if events else after
