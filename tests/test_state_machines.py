"""The pictures of the state machines are those of the tables, and a reader can read them."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs._draw import CHAR, SIZE, Edge, distances, svg_of
from docs.state_machines import MACHINES, Machine, main
from protocol.events import ApprovalOutcome, ContinuationOutcome
from protocol.grammar import CallState, RunPhase
from protocol.ledger import ReservationState

ROOT = Path(__file__).resolve().parent.parent
BY_TITLE = {machine.title: machine for machine in MACHINES}
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=BY_TITLE)


@pytest.mark.slow
@pytest.mark.peer
def test_what_is_checked_in_is_what_the_tables_say(tmp_path: Path) -> None:
    """Whoever changes a table draws it anew: `python docs/state_machines.py`, started from anywhere, in any place."""
    command = [sys.executable, str(ROOT / "docs" / "state_machines.py"), "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ("", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_a_page_that_has_drifted_is_found_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that is not as the tables say, a picture that is missing, and one too many: named, and then put right."""
    page, picture, other = (
        tmp_path / name for name in ("state-machines.md", "pictures/state-run.svg", "pictures/state-gone.svg")
    )
    main([], tmp_path)
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("`new`", "`old`"), encoding="utf-8")
    picture.unlink()
    other.touch()
    capsys.readouterr()
    status = main(["--check"], tmp_path)
    named = [line.removeprefix(tmp_path.name + "/") for line in capsys.readouterr().out.splitlines()]

    assert 1 == status
    assert ["pictures/state-gone.svg", "pictures/state-run.svg", "state-machines.md"] == named
    assert (0, 0) == (main([], tmp_path), main(["--check"], tmp_path))
    assert text == page.read_text(encoding="utf-8")
    assert (True, False) == (picture.exists(), other.exists())


def test_an_unknown_argument_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written, and the use is told."""
    status = main(["--chekc"], tmp_path)

    assert 2 == status
    assert "--check" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


@each_machine
def test_every_state_is_reached_and_reaches_an_end(machine: Machine) -> None:
    """No state is only on paper, and none is a trap."""
    backwards = [Edge(edge.target, "", edge.source) for edge in machine.edges]
    to_an_end = distances([*[Edge("(end)", "", end) for end in machine.ends], *backwards])

    assert set(machine.states) == set(distances(machine.edges))
    assert {*machine.states, "(end)"} == set(to_an_end)


@each_machine
def test_the_next_state_is_never_in_doubt(machine: Machine) -> None:
    """One cause leads from one state to one state."""
    ways = [(edge.source, edge.label or edge.target) for edge in machine.edges]

    assert sorted(set(ways)) == sorted(ways)


@pytest.mark.parametrize(
    ("title", "start", "states", "ends"),
    [
        ("Run", "new", get_args(RunPhase), {"over"}),
        ("Call", "none", ("none", *get_args(CallState)), {"finished"}),
        ("Gate request", "pending", ("pending", *get_args(ContinuationOutcome)), set(get_args(ContinuationOutcome))),
        ("Approval request", "pending", ("pending", *get_args(ApprovalOutcome)), set(get_args(ApprovalOutcome))),
        ("Reservation", "open", get_args(ReservationState), {"settled", "released"}),
    ],
)
def test_the_tables_hold_all_states(title: str, start: str, states: tuple[str, ...], ends: set[str]) -> None:
    """What the types name is what the tables lead to; nothing leads out of an end."""
    machine = BY_TITLE[title]

    assert start == machine.states[0]
    assert set(states) == set(machine.states)
    assert ends == machine.ends


@each_machine
def test_the_picture_shows_every_state_and_cause(machine: Machine) -> None:
    """Nothing is left out of it, and nothing is drawn twice."""
    names, labels = texts_of(svg_of(machine.title, machine.edges))

    assert sorted(machine.states) == sorted(name.text for name in names)
    assert sorted(edge.label for edge in machine.edges if edge.label) == sorted(label.text for label in labels)


def test_a_state_that_the_start_does_not_lead_to_is_no_picture() -> None:
    """It is named: it has no place among the columns."""
    with pytest.raises(ValueError, match="Odd: lost cannot be reached from a"):
        svg_of("Odd", [Edge("a", "go", "b"), Edge("lost", "go", "b")])


class Area(NamedTuple):
    """Something in a picture, and where it is."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@st.composite
def machines(draw: st.DrawFn) -> list[Edge]:
    """Up to eight states, each of which the first one leads to, with any further edges."""
    count = draw(st.integers(2, 8))
    word = st.sampled_from(["", "go", "a_longer_one", "the_longest_of_all_labels"])
    tree = [(draw(st.integers(0, state - 1)), draw(word), state) for state in range(1, count)]
    states = st.integers(0, count - 1)
    more = draw(st.lists(st.tuples(states, word, states), max_size=12))
    return [Edge(f"state_{source}", label, f"state_{target}") for source, label, target in [*tree, *more]]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(machines() | st.sampled_from([machine.edges for machine in MACHINES]))
def test_nothing_lies_on_a_box_or_a_label(edges: list[Edge]) -> None:
    """Whatever the machine, its picture can be read: boxes and labels are clear of each other and of all arrows."""
    svg = svg_of("Drawn", edges)
    names, labels = texts_of(svg)
    boxes = boxes_of(svg)
    spots = [Area("", x - 0.1, y - 0.1, x + 0.1, y + 0.1) for x, y in spots_of(svg)]

    assert [] == [pair for pair in itertools.combinations([*boxes, *labels], 2) if pair[0].meets(pair[1])]
    assert [] == [spot for spot in spots for area in [*labels, *shrunk(boxes)] if spot.meets(area)]
    assert [] == [name for name, box in zip(names, boxes, strict=True) if not inside(name, box)]
    assert [] == [area for area in [*labels, *boxes, *spots] if not inside(area, frame_of(svg))]


def inside(area: Area, outer: Area) -> bool:
    return outer.left < area.left and area.right < outer.right and outer.top < area.top and area.bottom < outer.bottom


def shrunk(boxes: list[Area]) -> list[Area]:
    """Without their rims, where arrows end."""
    return [Area(box.text, box.left + 1, box.top + 1, box.right - 1, box.bottom - 1) for box in boxes]


def parts_of(svg: str, tag: str) -> list[ET.Element]:
    """The elements of one kind among what is drawn."""
    (drawn,) = ET.fromstring(svg).iterfind("{*}g")
    return list(drawn.iterfind("{*}" + tag))


def frame_of(svg: str) -> Area:
    """The picture's frame, in the coordinates of what is drawn."""
    root = ET.fromstring(svg)
    (drawn,) = root.iterfind("{*}g")
    right, down = numbers(drawn.attrib["transform"])
    return Area("", -right, -down, float(root.attrib["width"]) - right, float(root.attrib["height"]) - down)


def boxes_of(svg: str) -> list[Area]:
    found = []
    for rect in parts_of(svg, "rect"):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append(Area("box", x, y, x + width, y + height))
    return found


def texts_of(svg: str) -> tuple[list[Area], list[Area]]:
    """The names in the boxes, and the labels."""
    names: list[Area] = []
    labels: list[Area] = []
    for text in parts_of(svg, "text"):
        words, x, y = text.text or "", float(text.attrib["x"]), float(text.attrib["y"])
        width = len(words) * CHAR
        left = {"start": x, "middle": x - width / 2, "end": x - width}[text.attrib["text-anchor"]]
        area = Area(words, left, y - 0.8 * SIZE, left + width, y + 0.2 * SIZE)
        (names if text.attrib["text-anchor"] == "middle" else labels).append(area)
    return names, labels


def spots_of(svg: str) -> list[tuple[float, float]]:
    """Points along all arrows, a few units apart."""
    spots: list[tuple[float, float]] = []
    for path in parts_of(svg, "path"):
        x = y = 0.0
        for command, text in re.findall(r"([MHC])([^MHC]*)", path.attrib["d"]):
            values = numbers(text)
            match command:
                case "M":
                    x, y = values
                case "H":
                    spots += [(x + (values[0] - x) * step / 20, y) for step in range(21)]
                    x = values[0]
                case "C":
                    x1, y1, x2, y2, to_x, to_y = values
                    for step in range(21):
                        t, u = step / 20, 1 - step / 20
                        spots.append((
                            u**3 * x + 3 * u * u * t * x1 + 3 * u * t * t * x2 + t**3 * to_x,
                            u**3 * y + 3 * u * u * t * y1 + 3 * u * t * t * y2 + t**3 * to_y,
                        ))
                    x, y = to_x, to_y
    return spots


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]
