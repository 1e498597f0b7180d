"""Writes docs/state-machines.md and its pictures from the tables that the code itself goes by.

    python docs/state_machines.py            write what has changed
    python docs/state_machines.py --check    write nothing; status 1 if something would be written

A machine is a title, a text and its edges; one more line in `MACHINES` puts a further table into the page.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script: what it draws is this checkout's, and it may be started from anywhere

from docs._draw import Edge, distances, svg_of  # noqa: E402
from protocol.events import Event  # noqa: E402
from protocol.grammar import CALL_TRANSITIONS, RUN_TRANSITIONS  # noqa: E402
from protocol.ledger import RESERVATION_TRANSITIONS  # noqa: E402
from protocol.requests import APPROVAL_TRANSITIONS, CONTINUATION_TRANSITIONS  # noqa: E402

DOCS = ROOT / "docs"


class Machine(NamedTuple):
    """A state machine; the first edge leaves its first state."""

    title: str
    text: str
    edges: list[Edge]

    @property
    def slug(self) -> str:
        """The title as a file's name says it."""
        return "state-" + self.title.lower().replace(" ", "-")

    @property
    def states(self) -> list[str]:
        """All states, the nearest to the start first."""
        found = distances(self.edges)
        rest = [state for edge in self.edges for state in edge[::2] if state not in found]
        return [*found, *dict.fromkeys(rest)]

    @property
    def ends(self) -> set[str]:
        """The states that nothing leads out of."""
        return set(self.states) - {edge.source for edge in self.edges}


def by_state_and_cause(table: Mapping[Any, str]) -> list[Edge]:
    """The edges of `{(state, event class or action): state}`."""
    return [Edge(source, _word(cause), target) for (source, cause), target in table.items()]


def by_cause(table: Mapping[Any, Mapping[Any, str]]) -> list[Edge]:
    """The edges of `{event class or action: {state: state}}`; `None` is what has no state yet."""
    return [
        Edge(source or "none", _word(cause), target) for cause, ways in table.items() for source, target in ways.items()
    ]


def by_action(table: Mapping[Any, Mapping[str, Any]]) -> list[Edge]:
    """The edges of `{state: {action: state}}`."""
    return [Edge(source, action, target) for source, ways in table.items() for action, target in ways.items()]


def by_state(table: Mapping[str, Collection[str]]) -> list[Edge]:
    """The edges of `{state: the states after it}`, in the order that the states have in the table."""
    order = list(table)
    return [Edge(source, "", target) for source, ways in table.items() for target in sorted(ways, key=order.index)]


def _word(cause: str | type[Event]) -> str:
    return cause if isinstance(cause, str) else str(cause.__struct_config__.tag)


MACHINES = [
    Machine(
        "Run",
        "A run, by its events (`protocol/grammar.py`). An end comes when nothing is open.",
        by_state_and_cause(RUN_TRANSITIONS),
    ),
    Machine("Call", "A tool call, by its events (`protocol/grammar.py`).", by_cause(CALL_TRANSITIONS)),
    Machine(
        "Gate request",
        'The question "go on?" (`protocol/requests.py`): closed once, and for good.',
        by_state(CONTINUATION_TRANSITIONS),
    ),
    Machine(
        "Approval request",
        'The question "may this call run?" (`protocol/requests.py`): closed once, and for good.',
        by_state(APPROVAL_TRANSITIONS),
    ),
    Machine(
        "Reservation",
        "A model call in the ledger (`protocol/ledger.py`): counted when it is made, booked or given back once.",
        by_action(RESERVATION_TRANSITIONS),
    ),
]

HEAD = """\
# State machines

Drawn by `docs/state_machines.py` from the tables in the code: change a table, run it, and commit both. What stands in
no table cannot happen: an event that its machine does not allow is never written, and a late decision changes nothing.
"""


def page() -> str:
    """The text of docs/state-machines.md."""
    return "\n".join([HEAD, *[_section(machine) for machine in MACHINES]])


def _section(machine: Machine) -> str:
    ends = [f"`{state}`" for state in machine.states if state in machine.ends]
    return "\n".join([
        f"## {machine.title}",
        "",
        machine.text,
        "",
        f"![The states of a {machine.title.lower()}](pictures/{machine.slug}.svg)",
        "",
        "| from | to |",
        "|---|---|",
        *[
            f"| `{state}` | {_ways_from(state, machine.edges)} |"
            for state in machine.states
            if state not in machine.ends
        ],
        "",
        f"Nothing leads out of {_listed(ends, 'and')}.",
        "",
        "<details><summary>For mermaid</summary>",
        "",
        "```mermaid",
        *_mermaid(machine),
        "```",
        "",
        "</details>",
        "",
    ])


def _ways_from(state: str, edges: Iterable[Edge]) -> str:
    causes: dict[str, list[str]] = {}
    for edge in edges:
        if edge.source == state:
            causes.setdefault(edge.target, []).extend([f"`{edge.label}`"] if edge.label else [])
    bare = [f"`{target}`" for target, labels in causes.items() if not labels]
    ways = [
        ("itself" if target == state else f"`{target}`") + f" on {_listed(labels, 'or')}"
        for target, labels in causes.items()
        if labels
    ]
    return "; ".join([_listed(bare, "or"), *ways] if bare else ways)


def _listed(words: list[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _mermaid(machine: Machine) -> list[str]:
    ways: dict[tuple[str, str], list[str]] = {}
    for edge in machine.edges:
        ways.setdefault((edge.source, edge.target), []).extend([edge.label] if edge.label else [])
    return [
        "stateDiagram-v2",
        "    direction LR",
        f"    [*] --> {machine.states[0]}",
        *[
            f"    {source} --> {target}" + (f": {', '.join(labels)}" if labels else "")
            for (source, target), labels in ways.items()
        ],
        *[f"    {state} --> [*]" for state in machine.states if state in machine.ends],
    ]


def main(arguments: list[str], docs: Path = DOCS) -> int:
    """Write or check the page and the pictures in the folder `docs`; the exit status."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    wanted = {
        docs / "state-machines.md": page(),
        **{docs / "pictures" / f"{machine.slug}.svg": svg_of(machine.title, machine.edges) for machine in MACHINES},
    }
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    left = [path for path in (docs / "pictures").glob("state-*.svg") if path not in wanted]
    for path in sorted([*stale, *left]):
        print(path.relative_to(docs.parent))
    if arguments:
        if stale or left:
            print("not as the tables say: run python docs/state_machines.py", file=sys.stderr)
        return 1 if stale or left else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
