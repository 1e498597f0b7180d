"""The arguments of `onward check`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import attrs

from ._usage import Parser, UsageError

__all__ = ("CheckArguments", "add_check", "checked_check")

_NOTES = """\
All that is wrong is told, each with its line and its key, and what would be right. What is odd but works is told too.

It reads the files that the host file names (tokens, keys, certificates, prompts) and environment variables, looks for
folders, and imports the modules that it names, which runs what stands in them (--no-import leaves that out). It starts
nothing, connects to nothing, listens on nothing and writes nothing. Keys are never shown.

Exit status:
  0  it can be served    2  it cannot, or wrong use

examples:
  onward check agents.toml
  onward check agents.toml --json | jq .faults
  onward check --schema > host-file.schema.json
"""


@attrs.frozen(kw_only=True)
class CheckArguments:
    """What `onward check` was asked to do."""

    file: str
    """Empty where the schema is wanted."""
    imports: bool
    json: bool


def add_check(add_parser: Callable[..., Parser]) -> None:
    """Add the command to those that a parser has."""
    check = add_parser(
        "check",
        help="check a host file, and show what it would serve",
        description="Check a host file, and show what `onward serve` would serve. Nothing is started.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    check.add_argument("file", nargs="?", default="", metavar="FILE", help="the host file")
    check.add_argument("--no-import", action="store_true", help="do not import the modules that it names")
    check.add_argument("--json", action="store_true", help="write it as one JSON object to stdout, faults too")
    check.add_argument("--schema", action="store_true", help="write the JSON Schema of host files, for editors")


def checked_check(found: argparse.Namespace) -> CheckArguments:
    """What was asked for. Raises `UsageError`."""
    if bool(found.file) == found.schema:
        raise UsageError("give a host file, or --schema: onward check agents.toml")
    return CheckArguments(file=found.file, imports=not found.no_import, json=found.json)
