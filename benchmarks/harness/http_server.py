"""A model server in a process of its own: it sends the same stream to whoever asks, event by event.

Each event is a write of its own, so that the client reads it on its own, as it would that of a model; `pause_seconds`
lies between two of them. Nothing of the server's work is in the client's CPU time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

__all__ = ("DELTAS", "REPLY_TEXT", "serving")

ROOT = Path(__file__).resolve().parent.parent.parent
DELTAS = 50
REPLY_TEXT = "word " * DELTAS


def _events() -> list[bytes]:
    """50 deltas of text, a tool call in five pieces, the end, and the usage."""

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n"

    def piece(arguments: str, **more: Any) -> bytes:
        name = {"name": "add"} if more else {}
        return event({"tool_calls": [{"index": 0, **more, "function": {**name, "arguments": arguments}}]})

    return [
        event({"role": "assistant", "content": ""}),
        *[event({"content": "word "}) for _ in range(DELTAS)],
        piece("", id="call_1", type="function"),
        *[piece(part) for part in ('{"a"', ": 1, ", '"b": ', "2}")],
        event({}, "tool_calls", usage={"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160}),
        b"data: [DONE]\n\n",
    ]


async def _serve(connection: trio.SocketStream, pause_seconds: float) -> None:
    chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in _events()]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = await connection.receive_some()
            if not more:
                return
            data += more
        request, _, data = data.partition(b"\r\n\r\n")
        [length] = [int(line[15:]) for line in request.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(data) < length:
            data += await connection.receive_some()
        data = data[length:]
        await connection.send_all(head)
        for chunk in chunks:
            await connection.send_all(chunk)
            if pause_seconds:
                await trio.sleep(pause_seconds)
        await connection.send_all(b"0\r\n\r\n")


async def _main(pause_seconds: float) -> None:
    async def serve(connection: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await _serve(connection, pause_seconds)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        print(listener.socket.getsockname()[1], flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)  # until the parent is done with it
        nursery.cancel_scope.cancel()


@contextmanager
def serving(*, pause_seconds: float) -> Generator[str]:
    """The address of a server that runs meanwhile."""
    command = [sys.executable, "-m", "benchmarks.harness.http_server", str(pause_seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.communicate()


if __name__ == "__main__":
    trio.run(_main, float(sys.argv[1]))
