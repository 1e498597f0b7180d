"""Programs that a tool starts: each call owns a process group, and nothing of the group is left when it is over.

The program ends first, then whoever holds its output open, then what is left of the group is ended. Its output is read
all the while, also while a cancelled one has its time to clean up: with a full pipe it could not. So those who read are
shielded from the cancel, and stopped when the group is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess  # noqa: S404  # for its constants; no shell is ever started
from collections.abc import Mapping, Sequence

import attrs
import trio

from ._command_start import Command, start
from ._excerpt import Excerpt
from ._process_group import reap_orphans, signal_group, still_runs

__all__ = ("CommandResult", "run_command")

_DRAIN_SECONDS = 1.0  # how long what a program left behind may hold its output open
_REAP_SECONDS = 2.0  # a process that was killed is gone at once, unless the kernel is stuck in a call of it
_POLL_SECONDS = 0.01


@attrs.frozen
class CommandResult:
    """How a program ended, and what it wrote."""

    exit_code: int
    """0 is success, by custom; -15 says that signal 15 ended it."""
    stdout: str
    """Its output, as UTF-8; what is no UTF-8 is replaced by U+FFFD."""
    stderr: str
    truncated: bool
    """Whether one of the two was longer than `max_output_bytes`: a marker in its middle says by how much."""


async def run_command(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    max_output_bytes: int = 1_000_000,
    kill_grace_seconds: float = 2.0,
) -> CommandResult:
    """Run a program to its end, and give back what it wrote. For async tools.

    `argv` is the program, looked up on the `PATH`, and its arguments, each as it is: no shell reads them. `env` is its
    whole environment; `None` is this process's own. It reads `stdin`, or finds its input at the end. Of each of its
    outputs at most `max_output_bytes` are kept, half of them from the start and half from the end. An exit code other
    than 0 is a result, not an error.

    The program has a session and a process group of its own. If the call is cancelled, by a tool's timeout or the end
    of the run, the group is sent SIGTERM, after `kill_grace_seconds` SIGKILL, and the program is reaped; only then does
    the cancel go on. What the program leaves running is ended in the same way, a second after it at the latest. Only
    what opens a session of its own, as daemons do, gets away.

        @tool
        async def last_commits(count: int) -> str:
            done = await run_command(["git", "log", "--oneline", f"-{count}"], cwd=checkout)
            return done.stdout or done.stderr

    Raises `ToolError`, whose text says what was wrong, if the program cannot be started: it or `cwd` is not there, may
    not be used, or a text holds a NUL. Raises `SpecError` for an argument of the wrong kind, such as a command line.
    """
    command = Command(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        max_output_bytes=max_output_bytes,
        kill_grace_seconds=kill_grace_seconds,
    )
    process = await start(command, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    stdout = _Output(process.stdout, Excerpt(max_output_bytes))
    stderr = _Output(process.stderr, Excerpt(max_output_bytes))
    try:
        await _Group(process, (stdout, stderr), kill_grace_seconds).run(stdin)
    finally:
        with trio.move_on_after(_REAP_SECONDS, shield=True):
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    await stream.aclose()
    assert process.returncode is not None
    return CommandResult(
        process.returncode,
        stdout.kept.text(),
        stderr.kept.text(),
        stdout.kept.truncated or stderr.kept.truncated,
    )


@attrs.define(eq=False)
class _Output:
    """One output of a program, read until it is closed or `scope` is cancelled."""

    stream: trio.abc.ReceiveStream
    kept: Excerpt
    closed: trio.Event = attrs.field(factory=trio.Event)
    scope: trio.CancelScope = attrs.field(factory=lambda: trio.CancelScope(shield=True))

    async def read(self) -> None:
        """Keep what comes."""
        with self.scope:
            async for data in self.stream:
                self.kept.add(data)
            self.closed.set()


async def _feed(stream: trio.abc.SendStream, data: bytes) -> None:
    with contextlib.suppress(trio.BrokenResourceError):  # it reads no more, which is its right
        await stream.send_all(data)
    await stream.aclose()


@attrs.define(eq=False)
class _Group:
    """A program that has been started, and all that it starts."""

    process: trio.Process
    outputs: tuple[_Output, ...]
    grace_seconds: float

    async def run(self, stdin: bytes | None) -> None:
        """Wait for the end, and see to it that it is one."""
        async with trio.open_nursery() as pumps:
            try:
                if stdin is not None:
                    assert self.process.stdin is not None
                    pumps.start_soon(_feed, self.process.stdin, stdin)
                for output in self.outputs:
                    pumps.start_soon(output.read)
                await self._wait()
            finally:
                for output in self.outputs:
                    output.scope.cancel("the program has ended")
                pumps.cancel_scope.cancel("the program has ended")

    async def _wait(self) -> None:
        try:
            await self.process.wait()
            await self._drain()
        finally:
            with trio.move_on_after(self.grace_seconds + _REAP_SECONDS, shield=True):
                await self._end()
        await self._drain()  # who was ended may have said something at the last

    async def _drain(self) -> None:
        """Read to the end of the output, unless somebody keeps it open."""
        with trio.move_on_after(_DRAIN_SECONDS):
            for output in self.outputs:
                await output.closed.wait()

    async def _end(self) -> None:
        """End what is left of the group, and reap it."""
        if self._is_gone():
            return
        signal_group(self.process.pid, signal.SIGTERM)
        with trio.move_on_after(self.grace_seconds):
            await self._gone()
            return
        signal_group(self.process.pid, signal.SIGKILL)
        await self._gone()

    async def _gone(self) -> None:
        await self.process.wait()
        while not self._is_gone():  # noqa: ASYNC110  # the end of a group is no event that could be waited for
            await trio.sleep(_POLL_SECONDS)

    def _is_gone(self) -> bool:
        """Whether the program and all of its group have ended. Reaps them."""
        if self.process.poll() is None:
            return False
        reap_orphans(self.process.pid)
        if still_runs(self.process.pid):
            return False
        reap_orphans(self.process.pid)  # who has ended since
        return True
