"""Plays a scenario with the library `websockets` on asyncio, and nothing of the product; the scenario comes on stdin."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection, connect

SCENARIO: dict[str, Any] = json.load(sys.stdin)
ENDS = {"run_finished", "run_failed", "run_cancelled"}


class Player:
    """Attaches behind the last number on every connection, and gives commands without a reply again."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {"numbers": [], "types": [], "answers": []}
        self.open: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.socket: ClientConnection | None = None
        self.epoch: str | None = None
        self.last = 0
        self.ids = itertools.count(1)

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        id = next(self.ids)
        text = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        self.open[id] = text, asyncio.get_running_loop().create_future()
        if self.socket is not None:
            with contextlib.suppress(websockets.ConnectionClosed):  # it is given again
                await self.socket.send(text)
        return await self.open[id][1]

    async def stay_connected(self) -> None:
        headers = {"Authorization": f"Bearer {SCENARIO['token']}"}
        while True:
            try:
                subprotocols = [websockets.Subprotocol("onward.v1")]
                async with connect(
                    SCENARIO["url"], subprotocols=subprotocols, additional_headers=headers, proxy=None
                ) as socket:
                    await self.read(socket)
            except (OSError, websockets.WebSocketException):
                pass
            self.socket = None
            await asyncio.sleep(0.03)

    async def read(self, socket: ClientConnection) -> None:
        since = "start" if self.epoch is None else {"epoch": self.epoch, "seq": self.last}
        attach = {"agent": SCENARIO["agent"], "from": since}
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "hello", "params": {}}))
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": "attach", "method": "agent.attach", "params": attach}))
        async for frame in socket:
            value = json.loads(frame)
            for message in value if isinstance(value, list) else [value]:
                if message.get("id") == "attach":
                    assert message["result"].get("snapshot") is None, "events were lost"
                    self.epoch = message["result"]["epoch"]
                    self.socket = socket
                    for text, _ in list(self.open.values()):
                        await socket.send(text)
                elif message.get("method") == "events" and self.socket is socket:
                    self.apply(message["params"])
                elif message.get("id") in self.open:
                    self.open.pop(message["id"])[1].set_result(message)

    def apply(self, params: dict[str, Any]) -> None:
        number = params["seq"]
        for event in params["events"]:
            assert number <= self.last + 1, f"{number} behind {self.last}"
            if number == self.last + 1:
                self.last = number
                self.seen["numbers"].append(number)
                self.seen["types"].append(event["type"])
                self.events.put_nowait(event)
            number += event.get("n", 1)

    async def play(self) -> None:
        turns: dict[str, int] = {}
        await self.ask("run.start", {"agent": SCENARIO["agent"], "prompt": "look around", "idem": "start"})
        while True:
            event = await self.events.get()
            turn = turns.get(event["type"], 0)
            turns[event["type"]] = turn + 1
            due = SCENARIO["on"].get(event["type"], [])
            if turn < len(due):
                self.seen["answers"].append([await self.give(event, **command) for command in due[turn]])
            if event["type"] in ENDS:
                return

    async def give(self, event: dict[str, Any], method: str, params: dict[str, Any]) -> str:
        about = {"run": event["run"]} if method.startswith("run.") else {"request": event["request"]}
        digest = {"digest": event["digest"]} if "digest" in event else {}
        reply = await self.ask(method, {**about, **digest, "idem": f"key-{next(self.ids)}", **params})
        if "error" in reply:
            return str(reply["error"].get("data", {}).get("code", reply["error"]["code"]))
        result = reply["result"]
        return result["status"] + ", replayed" * bool(result.get("replayed")) if "status" in result else "done"


async def main() -> None:
    player = Player()
    connecting = asyncio.create_task(player.stay_connected())
    await player.play()
    connecting.cancel()
    print(json.dumps(player.seen))


asyncio.run(main())
