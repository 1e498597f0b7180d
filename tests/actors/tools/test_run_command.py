"""Programs that tools start: what comes back, and that nothing of them is left. Real processes, in real time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import CommandResult, run_command
from actors.tools._process_group import signal_group, still_runs
from protocol.errors import SpecError, ToolError

pytestmark = pytest.mark.peer

LONG = 30.0  # seconds in which all this is over, also on a machine that is busy
READY = """
import os, signal, subprocess, sys
def ready(*numbers):
    with open("ready", "w") as fifo:
        print(os.getpid(), *numbers, file=fifo)
"""
"""What the children begin with: `ready()` tells the test their numbers, and that they are there."""


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", READY + program, *arguments]


def runs(number: int) -> bool:
    """Whether a process is there and has not ended."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in {"", "Z", "X"}


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208  # the one that lists them counts each time


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the pipe through which children say that they are ready."""
    os.mkfifo(tmp_path / "ready")
    return tmp_path


@asynccontextmanager
async def cancelled(argv: list[str], place: Path, **options: Any) -> AsyncGenerator[list[int]]:
    """Run a command, and cancel it when it is ready; its processes are given when it is over."""
    with trio.fail_after(LONG):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: run_command(argv, cwd=place, **options))
            said = await trio.to_thread.run_sync((place / "ready").read_text, abandon_on_cancel=True)
            nursery.cancel_scope.cancel("the test says so")
    numbers = [int(number) for number in said.split()]
    try:
        yield numbers
    finally:
        for number in filter(runs, numbers):
            os.kill(number, signal.SIGKILL)


async def test_what_a_program_wrote_comes_back() -> None:
    """Input goes in, both outputs and the exit code come out; what is no UTF-8 is replaced."""
    program = (
        "text = sys.stdin.read(); print(text.upper(), end=''); sys.stdout.flush();"
        "sys.stderr.buffer.write(b'caf\\xc3\\xa9 \\xff'); sys.exit(3)"
    )

    assert CommandResult(3, "HELLO\n", "café \ufffd", False) == await run_command(python(program), stdin=b"hello\n")


async def test_without_input_it_is_at_its_end() -> None:
    """A program that reads is not left waiting for a keyboard."""
    assert CommandResult(0, "''", "", False) == await run_command(python("print(repr(sys.stdin.read()), end='')"))


async def test_a_program_need_not_read() -> None:
    """Input that nobody takes is no error."""
    assert 0 == (await run_command(["true"], stdin=b"x" * 1_000_000)).exit_code


async def test_a_signal_that_ended_it_is_told() -> None:
    """The exit code is the negative number of the signal."""
    assert -9 == (await run_command(["sh", "-c", "kill -9 $$"])).exit_code


async def test_arguments_are_no_shell_s() -> None:
    """Each argument reaches the program as it is."""
    texts = ["$HOME", "*; exit 1", "a b", "", "é"]

    assert repr(texts) == (await run_command(python("print(sys.argv[1:], end='')", *texts))).stdout


async def test_directory_and_environment_are_given(tmp_path: Path) -> None:
    """The program sees them, and of the environment nothing else; a path need not be a text."""
    (tmp_path / "sub").mkdir()
    done = await run_command([Path("/bin/sh"), "-c", 'pwd; echo "$A$HOME"'], cwd=tmp_path / "sub", env={"A": "b"})

    assert f"{(tmp_path / 'sub').resolve()}\nb\n" == done.stdout


@pytest.mark.slow
async def test_a_flood_is_cut_in_the_middle() -> None:
    """Of 50 MB, as much as was asked for is kept, from both ends; the program is not stopped for it."""
    program = (
        "for _ in range(500): sys.stdout.write('x' * 100_000)\nprint('END'); sys.stderr.write('short'); sys.exit(4)"
    )
    done = await run_command(python(program), max_output_bytes=20)
    cut = "\n[... cut: 50000004 bytes in full, 20 shown ...]\n"

    assert CommandResult(4, f"xxxxxxxxxx{cut}xxxxxxEND\n", "short", True) == done


async def test_many_run_at_once() -> None:
    """Commands do not wait for each other, and do not take each other's output."""
    found: dict[int, str] = {}

    async def run(number: int) -> None:
        found[number] = (await run_command(["echo", str(number)])).stdout

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(run, number)

    assert {number: f"{number}\n" for number in range(20)} == found


async def test_no_descriptor_is_left_open() -> None:
    """Whether a program ran, was cancelled or never started, its pipes are closed."""
    await run_command(["true"], stdin=b"")  # what is opened once, is
    before = descriptors()
    for _ in range(5):
        await run_command(["true"], stdin=b"")
        with pytest.raises(ToolError):
            await run_command(["there-is-no-such-program"], stdin=b"")
        with trio.move_on_after(0.001):
            await run_command(python("signal.pause()"), stdin=b"x" * 1_000_000)

    assert before == descriptors()


async def test_a_cancel_ends_the_program(place: Path) -> None:
    """One that does nothing against it is gone at once, long before the grace is over, and reaped."""
    began = trio.current_time()
    async with cancelled(python("ready(); signal.pause()"), place, kill_grace_seconds=LONG) as numbers:
        assert [] == [number for number in numbers if runs(number)]
        with pytest.raises(ProcessLookupError):
            os.kill(numbers[0], 0)
        assert trio.current_time() - began < LONG / 2


@pytest.mark.slow
async def test_who_ignores_the_cancel_is_killed(place: Path) -> None:
    """After the grace, SIGKILL."""
    program = "signal.signal(signal.SIGTERM, signal.SIG_IGN); ready()\nwhile True: signal.pause()"
    async with cancelled(python(program), place, kill_grace_seconds=0.1) as numbers:
        assert [] == [number for number in numbers if runs(number)]


async def test_a_cancelled_program_may_clean_up(place: Path) -> None:
    """It has its grace, and its output is read meanwhile: a full pipe does not hold it up."""
    program = """
def clean(*_):
    sys.stdout.write("x" * 1_000_000)
    sys.stdout.flush()
    open("cleaned", "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, clean)
ready()
signal.pause()
"""
    async with cancelled(python(program), place, kill_grace_seconds=LONG):
        assert (place / "cleaned").exists()


async def test_what_it_started_may_clean_up_too(place: Path) -> None:
    """The grace is the group's: the program is gone at once, and one that it started, which is silent, has its time."""
    program = """
readable, writable = os.pipe()
number = os.fork()
if not number:
    sys.stdout.close()
    os.close(1), os.close(2)
    def clean(*_):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        signal.pause()
    def done(*_):
        open("cleaned", "w").close()
        os._exit(0)
    signal.signal(signal.SIGTERM, clean)
    signal.signal(signal.SIGALRM, done)
    os.write(writable, b"!")
    while True: signal.pause()
os.read(readable, 1)
ready(number)
signal.pause()
"""
    async with cancelled(python(program), place, kill_grace_seconds=LONG) as numbers:
        assert (place / "cleaned").exists()
        assert [] == [number for number in numbers if runs(number)]


@pytest.mark.slow
async def test_a_cancel_ends_all_that_it_started(place: Path) -> None:
    """A child that holds the output and ignores SIGTERM does not outlive the call."""
    program = """
readable, writable = os.pipe()
number = os.fork()
if not number:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(writable, b"!")
    while True: signal.pause()
os.read(readable, 1)
ready(number)
signal.pause()
"""
    async with cancelled(python(program), place, kill_grace_seconds=0.1) as numbers:
        assert 2 == len(numbers)
        assert [] == [number for number in numbers if runs(number)]


async def test_a_cancel_before_the_start_starts_nothing(tmp_path: Path) -> None:
    """Where the call is cancelled already, there is no effect."""
    with trio.CancelScope() as scope:
        scope.cancel("before")
        await run_command(["touch", "touched"], cwd=tmp_path)

    assert scope.cancelled_caught
    assert not (tmp_path / "touched").exists()


LEAVES = """
number = os.fork()
if number:
    print(number, flush=True)
    os._exit(5)
"""
"""A program that ends before the child it started."""


@pytest.mark.slow
async def test_what_is_left_behind_with_the_output_is_ended() -> None:
    """A child that keeps the output open does not keep the call waiting for long."""
    with trio.fail_after(LONG):
        done = await run_command(python(LEAVES + "signal.pause()"))

    assert (5, False) == (done.exit_code, runs(int(done.stdout)))


async def test_what_is_left_behind_in_silence_is_ended() -> None:
    """A child that gave the output up is no longer there when the call is over."""
    with trio.fail_after(LONG):
        done = await run_command(python(LEAVES + "os.close(1); os.close(2)\nsignal.pause()"))

    assert (5, False) == (done.exit_code, runs(int(done.stdout)))


@pytest.mark.slow
async def test_late_words_are_heard() -> None:
    """What a child writes soon after the program has ended still belongs to its output."""
    late = "signal.signal(signal.SIGALRM, lambda *_: print('late', flush=True))\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\n"
    done = await run_command(python(late + LEAVES.replace("fork()\n", "fork()\n" + late) + "signal.pause()"))

    assert "late" == done.stdout.splitlines()[-1]


@pytest.mark.slow
async def test_who_gets_away_keeps_nobody_waiting() -> None:
    """A child with a session of its own is not ended, and not waited for although it holds input and output open."""
    with trio.fail_after(LONG):
        done = await run_command(python(LEAVES + "os.setsid()\nsignal.pause()"), stdin=b"x" * 1_000_000)
    number = int(done.stdout)
    try:
        assert (5, True) == (done.exit_code, runs(number))
    finally:
        os.kill(number, signal.SIGKILL)


def test_who_has_ended_does_not_run() -> None:
    """A process that nobody has reaped yet is not waited for: some containers reap late, or never."""
    with subprocess.Popen(["true"], start_new_session=True) as program:
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)

        assert (True, False) == (signal_group(program.pid, 0), still_runs(program.pid))
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as program:
        assert (True, True) == (signal_group(program.pid, 0), still_runs(program.pid))
        assert signal_group(program.pid, signal.SIGKILL)
    assert (False, False) == (signal_group(program.pid, 0), still_runs(program.pid))


@pytest.mark.slow
def test_orphans_are_reaped_where_they_are_given_to_this_process() -> None:
    """As the first process of a container, which no other one reaps for, it leaves no dead process behind."""
    program = """
import ctypes, os, trio
from actors import run_command
assert ctypes.CDLL(None).prctl(36, 1) == 0  # orphans are given to this process
for _ in range(20):
    trio.run(run_command, ["sh", "-c", "sleep 30 >/dev/null 2>&1 &"])
try:
    print("left", os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("none")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=LONG)

    assert ("none\n", "") == (ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("argv", "options", "said"),
    [
        (["no-such-program"], {}, "'no-such-program' was not started: there is no program 'no-such-program'"),
        ([""], {}, "'' was not started: "),
        (["/etc/passwd"], {}, "'/etc/passwd' was not started: '/etc/passwd' may not be executed (Permission denied)"),
        (["true"], {"cwd": "/nowhere"}, "'true' was not started: its directory '/nowhere' cannot be entered (No such"),
        (
            ["true"],
            {"cwd": Path("/etc/passwd")},
            "'true' was not started: its directory '/etc/passwd' cannot be entered",
        ),
        (["tr\0ue"], {}, "nothing was started: the program's name 'tr\\x00ue' holds a NUL byte"),
        (["true", "a", "s3cret\0"], {}, "nothing was started: argument 2 of 'true' holds a NUL byte"),
        (["true", "\ud83d"], {}, "nothing was started: argument 1 of 'true' holds half of a surrogate pair"),
        (["true"], {"cwd": "a\0"}, "nothing was started: the directory's name holds a NUL byte"),
        (["true"], {"env": {"KEY": "s3cret\0"}}, "nothing was started: the environment variable KEY holds a NUL byte"),
        (["true"], {"env": {"A=B": "s3cret"}}, "'true' was not started: 'A=B' cannot be the name of an environment"),
        (["true"], {"env": {"": "s3cret"}}, "'true' was not started: '' cannot be the name of an environment variable"),
        (["true", "x" * 4_000_000], {}, "'true' was not started: Argument list too long"),
    ],
)
async def test_why_it_was_not_started_is_told(argv: list[str], options: dict[str, Any], said: str) -> None:
    """The model reads what was wrong; what may be a secret is not in it."""
    with pytest.raises(ToolError) as caught:
        await run_command(argv, **options)

    assert said == str(caught.value)[: len(said)]
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "options", "said"),
    [
        (
            "git log",
            {},
            "argv must be a list, the program and its arguments, such as ['git', 'log', '-3']; it is the text",
        ),
        (b"git", {}, "argv must be a list, the program"),
        ([], {}, "argv must be a list, such as ['git', 'log', '-3']; it is []"),
        (None, {}, "argv must be a list, such as"),
        (["git", 3], {}, "argv[1] must be a text; it is 3"),
        (["git"], {"cwd": 3}, "cwd must be a path or None; it is 3"),
        (
            ["git"],
            {"env": ["A=s3cret"]},
            "env must be a mapping of names to texts, or None; its type is <class 'list'>",
        ),
        (["git"], {"env": {"A": b"s3cret"}}, "env must map texts to texts; the value of 'A' is a <class 'bytes'>"),
        (["git"], {"stdin": "s3cret"}, "stdin must be bytes or None, such as text.encode(); its type is <class 'str'>"),
        (["git"], {"max_output_bytes": 0}, "max_output_bytes must be an integer >= 1; it is 0"),
        (["git"], {"max_output_bytes": True}, "max_output_bytes must be an integer >= 1; it is True"),
        (["git"], {"kill_grace_seconds": -1}, "kill_grace_seconds must be a number of seconds >= 0; it is -1"),
        (
            ["git"],
            {"kill_grace_seconds": float("nan")},
            "kill_grace_seconds must be a number of seconds >= 0; it is nan",
        ),
    ],
)
async def test_a_wrong_setting_is_refused(argv: Any, options: dict[str, Any], said: str) -> None:
    """A `SpecError` says which, and what would be right; a command line is never given to a shell."""
    with pytest.raises(SpecError) as caught:
        await run_command(argv, **options)

    assert f"run_command: {said}" == str(caught.value)[: len(said) + 13]
    assert "s3cret" not in str(caught.value)
