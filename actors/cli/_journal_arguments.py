"""The arguments of `onward journal`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from ._usage import Parser

__all__ = ("JournalAction", "JournalArguments", "add_journal", "checked_journal")

JournalAction: TypeAlias = Literal["ls", "show", "replay", "export"]


@attrs.frozen(kw_only=True)
class JournalArguments:
    """What `onward journal` was asked to do."""

    action: JournalAction
    path: Path
    agent: str
    """Its id or name; empty for all."""
    json: bool


def add_journal(add_parser: Callable[..., Parser]) -> None:
    """Add the command to those that a parser has."""
    journal = add_parser("journal", help="look into the file that a runtime keeps its agents in")
    actions = journal.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, told in (
        ("ls", "list the agents: what they do, and what there is of them"),
        ("show", "show an agent: its runs, open questions and conversation"),
        ("replay", "show an agent's events again, as they were shown when they came"),
        ("export", "write all of it as JSON: the agent, then its events, an object a line"),
    ):
        action = actions.add_parser(name, help=told, description=told.capitalize() + ".", allow_abbrev=False)
        action.add_argument("file", metavar="FILE", help="the journal, such as onward.db")
        if name != "ls":
            optional = name == "export"
            action.add_argument(
                "agent",
                metavar="AGENT",
                nargs="?" if optional else None,
                help="its id, or its name" + (" (default: all)" if optional else ""),
            )
        action.set_defaults(agent="" if name in {"ls", "export"} else None, json=name == "export")
        if name != "export":
            action.add_argument("--json", action="store_true", help="write JSON, an object a line")


def checked_journal(found: argparse.Namespace) -> JournalArguments:
    """What was asked for."""
    return JournalArguments(action=found.action, path=Path(found.file), agent=found.agent or "", json=found.json)
