"""Many clients of a WebSocket server in one process of their own, by raw sockets: they read as fast as the machine can.

`python -m benchmarks.harness.crowd '{"port": ..., "clients": ..., "events": ...}'`: connect, say what is to be said, print
a line, and read until each has so many events; then print what was seen as JSON. Events that hold the time at which they
were made (`"text":"t=..."`, the machine's monotonic clock) tell how long they took.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import statistics
import struct
import sys
import time
from typing import Any

import attrs

HEAD = (
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\nSec-WebSocket-Protocol: onward.v1\r\nAuthorization: Bearer {token}\r\n\r\n"
)
MARK = re.compile(rb'"t=(\d+\.\d+)"|"type":"content_delta"')
OVERLAP = 48
CHUNK = 262_144


@attrs.define(eq=False)
class One:
    """One client."""

    socket: socket.socket
    seen: int = 0
    tail: bytes = b""
    reads: bool = True


def frame(command: dict[str, Any]) -> bytes:
    """A command as a masked frame."""
    data = json.dumps(command).encode()
    length = (
        struct.pack("!BB", 0x81, 0x80 | len(data)) if len(data) < 126 else struct.pack("!BBH", 0x81, 0xFE, len(data))
    )
    return length + bytes(4) + data


def connect(port: int, token: str, commands: list[dict[str, Any]]) -> One:
    """Open a connection, send the commands, and wait until the last one is answered."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(HEAD.format(token=token).encode())
    said = b""
    while b"\r\n\r\n" not in said:
        said += sock.recv(4096)
    assert said.startswith(b"HTTP/1.1 101"), said
    one = One(sock)
    for number, command in enumerate(commands, 1):
        sock.sendall(frame({"jsonrpc": "2.0", "id": number, **command}))
        answer = f'"id":{number},"result"'.encode()
        while answer not in said:
            data = sock.recv(65_536)
            assert data, said[-500:]
            said += data
    return one


def read_all(ones: list[One], events: int, latencies: list[float]) -> None:
    """Read until each that reads has all its events."""
    selector = selectors.DefaultSelector()
    for each in ones:
        each.socket.setblocking(False)
        if each.reads:
            selector.register(each.socket, selectors.EVENT_READ, each)
    left = sum(each.reads for each in ones)
    while left:
        for key, _ in selector.select():
            one: One = key.data
            data = one.socket.recv(CHUNK)
            now = time.monotonic()
            assert data, "a client was sent away"
            text = one.tail + data
            end = 0
            for found in MARK.finditer(text):
                end = found.end()
                if found.group(1) is None:
                    one.seen += 1
                else:
                    latencies.append(now - float(found.group(1)))
            one.tail = text[max(end, len(text) - OVERLAP) :]
            if one.seen >= events and one.reads:
                one.reads = False
                left -= 1
                selector.unregister(one.socket)


def main() -> None:
    given = json.loads(sys.argv[1])
    clients, events = given["clients"], given["events"]
    ones = [connect(given["port"], given["token"], given["commands"]) for _ in range(clients)]
    for one in ones[: given.get("stalled", 0)]:
        one.reads = False
    print("ready", flush=True)
    sys.stdin.readline()
    for command in given.get("later", []):
        for one in ones:
            one.socket.sendall(frame({"jsonrpc": "2.0", "id": 99, **command}))
    latencies: list[float] = []
    began = time.monotonic()
    read_all(ones, events, latencies)
    told: dict[str, float] = {"seconds": time.monotonic() - began, "events": sum(one.seen for one in ones)}
    if latencies:
        cuts = statistics.quantiles(latencies, n=1000)
        told |= {"p50_ms": cuts[499] * 1e3, "p99_ms": cuts[989] * 1e3, "p99.9_ms": cuts[998] * 1e3}
    print(json.dumps(told), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
