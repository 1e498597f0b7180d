"""A model server in a process of its own: it sends the same stream to whoever asks, event by event.

Each event is a write of its own, so that the client reads it on its own, as it would that of a model; `pause_seconds`
lies between two of them. Nothing of the server's work is in the client's CPU time.

With `turns` it ends a run: after so many results of the tool, which must be right, it says the same and calls no more.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import trio

from .work import ANSWER, DELTAS

__all__ = ("reply", "serving")

ROOT = Path(__file__).resolve().parent.parent.parent
_WRONG = b"HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 0\r\n\r\n"


def _events(call: str | None) -> list[bytes]:
    """50 deltas of text, a tool call in five pieces if it has an id, the end, and the usage."""

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n"

    def piece(arguments: str, **more: Any) -> bytes:
        name = {"name": "add"} if more else {}
        return event({"tool_calls": [{"index": 0, **more, "function": {**name, "arguments": arguments}}]})

    pieces = [piece(part) for part in ('{"a"', ": 1, ", '"b": ', "2}")]
    return [
        event({"role": "assistant", "content": ""}),
        *[event({"content": "word "}) for _ in range(DELTAS)],
        *([piece("", id=call, type="function"), *pieces] if call else []),
        event(
            {},
            "tool_calls" if call else "stop",
            usage={"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160},
        ),
        b"data: [DONE]\n\n",
    ]


@cache
def _chunks(call: str | None) -> list[bytes]:
    return [b"%x\r\n%s\r\n" % (len(event), event) for event in _events(call)]


def reply(body: bytes, turns: int) -> list[bytes]:
    """The chunks that answer a request; none if it holds a wrong result."""
    results = [message["content"] for message in json.loads(body)["messages"] if message["role"] == "tool"]
    if results and ANSWER not in str(results[-1]):  # some send a list of parts
        return []
    return _chunks(f"call_{len(results)}" if len(results) < turns else None)


async def _serve(connection: trio.SocketStream, pause_seconds: float, turns: int) -> None:
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
        chunks = reply(data[:length], turns) if turns else _chunks("call_0")
        data = data[length:]
        await connection.send_all(head if chunks else _WRONG)
        if not chunks:
            continue
        for chunk in chunks:
            await connection.send_all(chunk)
            if pause_seconds:
                await trio.sleep(pause_seconds)
        await connection.send_all(b"0\r\n\r\n")


async def _main(pause_seconds: float, turns: int) -> None:
    async def serve(connection: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await _serve(connection, pause_seconds, turns)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        print(listener.socket.getsockname()[1], flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)  # until the parent is done with it
        nursery.cancel_scope.cancel()


@contextmanager
def serving(*, pause_seconds: float, turns: int = 0) -> Generator[str]:
    """The address of a server that runs meanwhile; without `turns` it calls the tool for ever."""
    command = [sys.executable, "-m", "benchmarks.harness.http_server", str(pause_seconds), str(turns)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.communicate()


if __name__ == "__main__":
    trio.run(_main, float(sys.argv[1]), int(sys.argv[2]))
