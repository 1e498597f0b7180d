"""Starts and ends the real llama.cpp server for a test."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs

_START_SECONDS = 60
_END_SECONDS = 10


@attrs.frozen
class LlamaServer:
    """A server that is up."""

    url: str
    """Scheme, host and port."""

    @property
    def base_url(self) -> str:
        """What a Chat Completions client is given."""
        return f"{self.url}/v1"


@contextmanager
def serve(model: Path, *, context_tokens: int = 8192, slots: int = 2, api_key: str = "") -> Generator[LlamaServer]:
    """Serve a model file; each slot has its share of the context. The server has ended when the block has."""
    script = Path(__file__).with_name("_llama_server.py")
    command = [
        sys.executable,
        str(script),
        str(model),
        str(context_tokens),
        str(slots),
        *([api_key] if api_key else []),
    ]
    log = model.with_suffix(".log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
            url = process.stdout.readline().decode().strip() if ready else ""
            if not url.startswith("http"):
                raise RuntimeError(
                    f"the llama.cpp server did not start: {url}\n{log.read_text(errors='replace')[-4000:]}"
                )
            yield LlamaServer(url)
        finally:
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
