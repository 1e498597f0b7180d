"""The command as a process of its own: on pipes, and on a terminal of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "actors.cli"]
PATIENCE_SECONDS = 30.0
"""How long a test waits for a process before it fails: no measure of anything."""


def environment(**more: str) -> dict[str, str]:
    """What the command is started with: no key, no colours, this checkout's packages."""
    kept = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY") and key != "NO_COLOR"}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **more}


def onward(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, without a terminal."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@attrs.define(eq=False)
class Terminal:
    """The command on a terminal of its own."""

    process: subprocess.Popen[bytes]
    descriptor: int
    seen: str = ""
    """All that it has shown."""
    _mark: int = 0

    def wait_for(self, text: str) -> None:
        """Wait until `text` is shown, behind what was waited for before."""
        self.wait_for_any(text)

    def wait_for_any(self, *texts: str) -> None:
        """Wait until one of these is shown, behind what was waited for before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            ends = [self.seen.find(text, self._mark) + len(text) for text in texts if text in self.seen[self._mark :]]
            if ends:
                self._mark = min(ends)
                return
            assert self._read(deadline), f"none of {texts} came; on the terminal stands:\n{self.seen}"

    def type(self, line: str) -> None:
        """Type a line and Enter."""
        os.write(self.descriptor, line.encode() + b"\r")

    def press(self, key: bytes) -> None:
        """Press a key such as Ctrl-C."""
        os.write(self.descriptor, key)

    def end(self) -> int:
        """Wait for the end; the exit status."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self, deadline: float) -> bool:
        """Read what is shown next; False at the end, or when it takes too long."""
        if not select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:  # how Linux says that nobody holds the other side any more
            return False
        self.seen += piece.decode().replace("\r\n", "\n")
        return bool(piece)


@contextlib.contextmanager
def terminal(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> Generator[Terminal]:
    """Start the command on a terminal that is its session's own, so that Ctrl-C reaches it as a signal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _ADOPT_TERMINAL, *COMMAND, *arguments],
        cwd=cwd,
        env=environment(**{"NO_COLOR": "1", **(env or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


_ADOPT_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
