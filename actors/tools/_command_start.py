"""Starting a program: what is checked before, and what went wrong, in words that a model can act on."""

from __future__ import annotations

import math
import os
import subprocess  # noqa: S404  # for its constants; no shell is ever started
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
import trio

from protocol.errors import SpecError, ToolError

__all__ = ("Command", "start")


def _check_argv(_command: Command, _field: attrs.Attribute[Any], argv: Any) -> None:
    if isinstance(argv, str | bytes):
        raise SpecError(
            f"run_command: argv must be a list, the program and its arguments, such as ['git', 'log', '-3']; it is the "
            f"text {argv[:200]!r}, which only a shell could read, and none is used"
        )
    if not isinstance(argv, Sequence) or not argv:
        raise SpecError(f"run_command: argv must be a list, such as ['git', 'log', '-3']; it is {argv!r}")
    for index, each in enumerate(cast("Sequence[object]", argv)):
        if not _is_text(each):
            raise SpecError(f"run_command: argv[{index}] must be a text; it is {each!r}")


def _check_cwd(_command: Command, _field: attrs.Attribute[Any], cwd: Any) -> None:
    if cwd is not None and not _is_text(cwd):
        raise SpecError(f"run_command: cwd must be a path or None; it is {cwd!r}")


def _check_env(_command: Command, _field: attrs.Attribute[Any], env: Any) -> None:
    # Values may be secrets: none is shown.
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise SpecError(f"run_command: env must be a mapping of names to texts, or None; its type is {type(env)}")
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise SpecError(f"run_command: env must map texts to texts; the value of {name!r} is a {type(value)}")


def _check_stdin(_command: Command, _field: attrs.Attribute[Any], stdin: Any) -> None:
    if stdin is not None and not isinstance(stdin, bytes):
        raise SpecError(f"run_command: stdin must be bytes or None, such as text.encode(); its type is {type(stdin)}")


def _check_bytes(_command: Command, _field: attrs.Attribute[Any], count: Any) -> None:
    if type(count) is not int or count < 1:
        raise SpecError(f"run_command: max_output_bytes must be an integer >= 1; it is {count!r}")


def _check_seconds(_command: Command, _field: attrs.Attribute[Any], seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise SpecError(f"run_command: kill_grace_seconds must be a number of seconds >= 0; it is {seconds!r}")


def _is_text(value: object) -> bool:
    return isinstance(os.fspath(value) if isinstance(value, os.PathLike) else value, str)  # pyright: ignore[reportUnknownArgumentType]


@attrs.frozen
class Command:
    """What is to be run. Raises `SpecError` for a setting of the wrong kind."""

    argv: Sequence[str | os.PathLike[str]] = attrs.field(validator=_check_argv)
    cwd: str | os.PathLike[str] | None = attrs.field(kw_only=True, validator=_check_cwd)
    env: Mapping[str, str] | None = attrs.field(kw_only=True, validator=_check_env, repr=False)
    stdin: bytes | None = attrs.field(kw_only=True, validator=_check_stdin, repr=False)
    max_output_bytes: int = attrs.field(kw_only=True, validator=_check_bytes)
    kill_grace_seconds: float = attrs.field(kw_only=True, validator=_check_seconds)


async def start(command: Command, *, stdin: int) -> trio.Process:
    """Start it as the leader of a session of its own, with pipes. Raises `ToolError` that says why it cannot."""
    argv = [os.fspath(each) for each in command.argv]
    program = f"{argv[0][:200]!r}"
    for index, each in enumerate(argv):
        _check_text(each, f"argument {index} of {program}" if index else f"the program's name {program}")
    if command.cwd is not None:
        _check_text(os.fspath(command.cwd), "the directory's name")
    for name, value in (command.env or {}).items():
        if not name or "=" in name:
            raise ToolError(f"{program} was not started: {name!r} cannot be the name of an environment variable")
        _check_text(name, "the name of an environment variable")
        _check_text(value, f"the environment variable {name}")
    try:
        return await trio.lowlevel.open_process(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{program} was not started: {_reason(error, program, command.cwd)}") from error


def _check_text(text: str, what: str) -> None:
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ToolError(f"nothing was started: {what} holds half of a surrogate pair; give whole characters") from error
    if b"\0" in raw:
        raise ToolError(f"nothing was started: {what} holds a NUL byte, which no program can be given")


def _reason(error: OSError, program: str, cwd: str | os.PathLike[str] | None) -> str:
    if cwd is not None and error.filename == cwd:
        return f"its directory {os.fspath(cwd)[:200]!r} cannot be entered ({error.strerror})"
    match error:
        case FileNotFoundError():
            return f"there is no program {program}, or not the interpreter that its first line names"
        case PermissionError():
            return f"{program} may not be executed ({error.strerror}); is it a program?"
        case _:
            return error.strerror or type(error).__name__
