"""The arguments of `onward attach`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import attrs

from ._listening_options import DEFAULT_PORT
from ._usage import Parser, UsageError, guess

__all__ = ("AttachArguments", "add_attach", "checked_attach")

_DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
_NOTES = """\
On a terminal, a question is asked when it comes, and is answered as `onward run` says. In between:
  PROMPT          start a run
  /steer TEXT     give the run a message: the model reads it at the next step
  /cancel [now]   end the run after the step in hand, or now
  /to NAME        which agent is meant, where there are several
  /agents /waits  who is there; what waits for somebody, and how long
  /quit           leave; what runs goes on (Ctrl-D and Ctrl-C do too)

Without a terminal, and with --json, agents are followed and nothing is asked.

The token: --token-file or --token-env; without them, that of an `onward serve` of this user on this machine. It never
stands on the command line.

Exit status:
  0  left, or all that was followed has ended; with --prompt: answered
  1  not let in, no connection, or none any more; with --prompt: failed
  2  wrong use, or there is no such agent
  3  with --prompt: stopped by a limit or a condition, without an answer
  130  interrupted (Ctrl-C)
A connection that breaks is made again; nothing is asked or shown twice.

examples:
  onward attach
  onward attach https://agents.example.org --token-env ONWARD_TOKEN --agent auditor
  onward attach --prompt "Audit this folder" --json
"""


@attrs.frozen(kw_only=True)
class AttachArguments:
    """What `onward attach` was asked to do, checked."""

    url: str
    agent: str | None = None
    """Its name or id; `None`: all."""
    prompt: str | None = None
    since: Literal["head", "start"] = "head"
    json: bool = False
    token: str | None = attrs.field(default=None, repr=False)
    """Of `--token-env`."""
    token_file: Path | None = None
    tls_ca: Path | None = None


def add_attach(add_parser: Callable[..., Parser]) -> None:
    """Add the command to those that a parser has."""
    attach = add_parser(
        "attach",
        help="follow agents that are served elsewhere, and answer what they ask",
        description="Follow agents that are served elsewhere, and answer what they ask.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    attach.add_argument("url", nargs="?", default=_DEFAULT_URL, metavar="URL", help=f"default: {_DEFAULT_URL}")
    attach.add_argument("--agent", metavar="NAME", help="follow this one (default: all)")
    attach.add_argument("--prompt", metavar="TEXT", help="start a run, and leave with it")
    attach.add_argument(
        "--from", dest="since", default="head", metavar="head|start", help="from now on, or from the first event held"
    )
    attach.add_argument(
        "--json", action="store_true", help="write one event per line as JSON, and nothing else, to stdout"
    )
    attach.add_argument("--token-file", metavar="FILE", help="file whose first word is the token")
    attach.add_argument("--token-env", metavar="VARIABLE", help="environment variable that holds the token")
    attach.add_argument("--tls-ca", metavar="FILE", help="certificates to trust, for a server with its own")


def checked_attach(found: argparse.Namespace) -> AttachArguments:
    """What was asked for. Raises `UsageError`."""
    if found.since not in {"head", "start"}:
        raise UsageError(f"--from {found.since!r} is unknown{guess(found.since, ['head', 'start'])}: head or start")
    if found.prompt is not None and not found.prompt.strip():
        raise UsageError("--prompt is empty; say what the agent shall do")
    if found.token_file is not None and found.token_env is not None:
        raise UsageError("--token-file and --token-env: give one of them")
    return AttachArguments(
        url=_url(found.url),
        agent=found.agent,
        prompt=found.prompt,
        since=found.since,
        json=found.json,
        token=None if found.token_env is None else _from_environment(found.token_env),
        token_file=None if found.token_file is None else Path(found.token_file),
        tls_ca=None if found.tls_ca is None else Path(found.tls_ca),
    )


def _from_environment(variable: str) -> str:
    token = os.environ.get(variable, "").strip()
    if not token:
        raise UsageError(f"--token-env {variable}: the environment variable {variable} is not set, or empty")
    return token


def _url(text: str) -> str:
    """The address; what a browser is given to log in is told from it. What is wrong is told without what may be secret."""
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"URL: {error}; one is {_DEFAULT_URL}") from None
    if parts.fragment or parts.query or "@" in parts.netloc:
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        raise UsageError(
            f"the address holds a ticket or another secret, which is for browsers; here it is {bare}, with --token-file or"
            " --token-env where `onward serve` runs elsewhere"
        )
    if parts.scheme not in {"http", "https", "ws", "wss"} or not parts.hostname:
        raise UsageError(f"URL {text!r} is no address; one is {_DEFAULT_URL}")
    return text
