"""A model server on 127.0.0.1 that answers as a test says, in threads of its own."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import attrs

Body: TypeAlias = dict[str, Any]


@attrs.define(eq=False)
class Server:
    """What the server has been asked, and a way to let go of those that wait."""

    url: str = ""
    requests: list[Body] = attrs.field(factory=list)
    asked: threading.Event = attrs.field(factory=threading.Event)
    """A request has come."""
    release: threading.Event = attrs.field(factory=threading.Event)
    """Set: replies that wait may go on."""


Answer: TypeAlias = Callable[[BaseHTTPRequestHandler, Server, Body], None]


def status(code: int, text: str, content_type: str = "application/json") -> Answer:
    """Answer everything with this."""

    def answer(handler: BaseHTTPRequestHandler, _server: Server, _body: Body) -> None:
        data = text.encode()
        handler.send_response(code)
        handler.send_header("content-type", content_type)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def streaming(*chunks: Body, hang: bool = False, finish: str = "stop") -> Answer:
    """Stream deltas; with `hang`, wait for the test before the end."""

    def answer(handler: BaseHTTPRequestHandler, server: Server, _body: Body) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        for chunk in chunks:
            _send(handler, {"delta": chunk, "index": 0, "finish_reason": None})
        if hang:
            server.release.wait(60)
        _send(handler, {"delta": {}, "index": 0, "finish_reason": finish})
        handler.wfile.write(b"data: [DONE]\n\n")

    return answer


def _send(handler: BaseHTTPRequestHandler, choice: Body) -> None:
    message = {"id": "r1", "object": "chat.completion.chunk", "choices": [choice]}
    handler.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
    handler.wfile.flush()


def call_delta(name: str, arguments: Body, *, id: str = "c1") -> Body:  # noqa: A002
    """A whole tool call in one delta."""
    return {"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": json.dumps(arguments)}}]}


@contextlib.contextmanager
def serving(*answers: Answer) -> Generator[Server]:
    """Serve: one answer per request, the last one for all that follow."""
    state = Server()
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.requests.append(body)
            state.asked.set()
            answer = left.pop(0) if len(left) > 1 else left[0]
            with contextlib.suppress(OSError):
                answer(self, state, body)

        def do_GET(self) -> None:
            state.asked.set()
            with contextlib.suppress(OSError):
                left[0](self, state, {})

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            state.release.set()
            server.shutdown()
            thread.join()
