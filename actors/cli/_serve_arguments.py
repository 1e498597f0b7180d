"""The arguments of `onward serve`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from ._listening_options import Listening, add_listening, checked_listening
from ._logging_options import Logging, add_logging, checked_logging
from ._settings import AgentSettings, add_settings, checked_settings
from ._style import harmless
from ._usage import Parser, UsageError

if TYPE_CHECKING:
    from ..hostfile import HostFile

__all__ = ("ServeArguments", "add_serve", "checked_serve")

_NOTES = """\
A host file lists agents in TOML, and what they share: models, tools, budgets, templates, who gets in. All but the name
has a default, and folders are seen from the file; `onward check FILE` says what is wrong with one. Options here win:

  [[agents]]
  name = "auditor"
  model = "rules"                # or KIND:NAME, or the name of one of [models]
  tools = ["files:."]
  system = "You audit folders."
  gate = "ask"                   # at the limit: ask, approve, decline, finalize, stop
  limits = { max_tool_iterations = 3 }

Without --token-file a token is made, and kept for this user alone while it serves: `onward attach` finds it. Listening
elsewhere than on this machine takes --token-file. At a limit the question goes to clients (--on-limit ask); without an
answer in time it is declined.

Log lines go to stderr. SIGUSR1 writes there which tasks there are and where each waits; /metrics has numbers.

With --journal everything is in FILE before it is shown as done. The same command again, with the same file, goes on where
it ended, however that was: agents are known by their names, clients go on behind the last event that they saw.

Ctrl-C or SIGTERM: the port closes at once; runs stand still at their next step (without a journal they end there), for
which they have 4 seconds; clients get what there is and are told to come back. Once more: at once.

Exit status:
  0  ended by a signal    1  the journal could not be written any more
  2  wrong use, or the address cannot be listened on, or the journal not opened

examples:
  onward serve --tools files:. --max-tool-iterations 3
  onward serve agents.toml --journal onward.db
  onward serve agents.toml --bind 0.0.0.0:8765 --token-file tokens --tls-cert cert.pem --host agents.example.org
"""


@attrs.frozen(kw_only=True)
class ServeArguments:
    """What `onward serve` was asked to do, checked."""

    agents: tuple[AgentSettings, ...]
    """Of the options; none with a file."""
    listening: Listening
    host: HostFile | None = None
    logging: Logging = attrs.field(factory=Logging)
    journal: Path | None = None
    """Where everything is kept, of `--journal` or of the file; `None`: nothing is."""


def add_serve(add_parser: Callable[..., Parser]) -> None:
    """Add the command to those that a parser has."""
    serve = add_parser(
        "serve",
        help="host agents, and let clients follow and steer them",
        description="Host agents, and let clients follow and steer them.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    serve.add_argument("file", nargs="?", metavar="FILE", help="a host file (default: one agent, of the options below)")
    add_settings(serve)
    add_listening(serve)
    add_logging(serve)
    serve.add_argument("--journal", metavar="FILE", help="keep everything in this file, and go on from it")


def checked_serve(found: argparse.Namespace) -> ServeArguments:
    """What was asked for. Raises `UsageError`."""
    logging = checked_logging(found)
    settings = AgentSettings(**checked_settings(found))
    journal = None if found.journal is None else Path(found.journal)
    if found.journal is not None and not found.journal.strip():
        raise UsageError("--journal needs the path of a file, such as onward.db")
    if found.file is None:
        return ServeArguments(agents=(settings,), listening=checked_listening(found), logging=logging, journal=journal)
    if settings != AgentSettings():
        raise UsageError(
            f"{found.file} says what the agents are: options such as --model and --tools go without a file"
        )
    host = _read(found.file)
    return ServeArguments(
        agents=(),
        listening=checked_listening(found, host),
        host=host,
        logging=logging,
        journal=journal or host.runtime.get("journal"),
    )


def _read(file: str) -> HostFile:
    from ..hostfile import HostFileError, read_host_file

    try:
        return read_host_file(file)
    except HostFileError as error:
        raise UsageError(harmless(str(error))) from None
