"""From the process to the command and back. What is heavy is imported when a run starts, so that `--help` is quick."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from ._arguments import Arguments, ModelsArguments, RunArguments, parse
from ._attach_arguments import AttachArguments
from ._check_arguments import CheckArguments
from ._journal_arguments import JournalArguments
from ._serve_arguments import ServeArguments
from ._status import INTERRUPTED, WRONG_USE
from ._usage import UsageError

__all__ = ("main",)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (the process's own arguments by default); the exit status."""
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv)
        from ._output import fill_closed_descriptors

        fill_closed_descriptors()
        return _command(arguments)
    except UsageError as fault:
        with contextlib.suppress(OSError):
            os.write(2, f"onward: {fault}\n".encode(errors="replace"))
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED


def _command(arguments: Arguments) -> int:
    match arguments:
        case RunArguments():
            from ._run import run_command

            return run_command(arguments)
        case ServeArguments():
            from ._serve import serve_command

            return serve_command(arguments)
        case CheckArguments():
            from ._check import check_command

            return check_command(arguments)
        case AttachArguments():
            from ._attach import attach_command

            return attach_command(arguments)
        case JournalArguments():
            from ._journal import journal_command

            return journal_command(arguments)
        case ModelsArguments():
            from ._models import models_command

            return models_command(arguments)
