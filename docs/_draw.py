"""Draws a state machine as SVG: boxes in columns by their distance from the start, an arrow with a label per edge.

Boxes and labels lie on nothing, and no arrow on a label, by construction; arrows may cross. Every end of an arrow has
a row of its own at the side of its box, its *port*. Between two columns stand, from left to right: the labels of arrows
that leave the left column, each above its own row; a gutter, in which the arrows curve from row to row; the labels of
arrows that leave the right column backwards. An arrow that passes a column goes straight through a row of its own
there, as if it were a flat box.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import attrs

FONT = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
SIZE = 13
CHAR = 7.9
"""The width of a character of the widest of these fonts."""
LINE = 16
ROW = 18
"""The height of a port without a label."""
GUTTER = 44
PER_CURVE = 9
"""What each further curve adds to a gutter."""
GAP = 22
MARGIN = 20
STUB = 10
"""Between a box and the label of an arrow that leaves it."""
RADIUS = 9
HEAD = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9.5" refY="5" markerWidth="9" markerHeight="9"'
    ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1 L10 5 L0 9 z" fill="#44546a"/></marker></defs>'
)


class Edge(NamedTuple):
    """An arrow; without a label where the state it leads to says it all."""

    source: str
    label: str
    target: str


@attrs.define(eq=False)
class _Port:
    """Where an arrow meets a box, or leaves it with its labels."""

    away: _Box
    """The box at the other end of this piece of the arrow."""
    labels: list[str] = attrs.field(factory=list[str])
    y: float = 0.0

    @property
    def above(self) -> float:  # the room it needs over its line
        return LINE * len(self.labels) + 4 if self.labels else ROW / 2


@attrs.define(eq=False)
class _Box:
    """A state, or the flat box of an arrow that passes a column (no name)."""

    column: int
    name: str = ""
    end: bool = False
    left: list[_Port] = attrs.field(factory=list[_Port])
    right: list[_Port] = attrs.field(factory=list[_Port])
    top: float = 0.0
    height: float = 0.0

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@attrs.define(eq=False)
class _Piece:
    """An arrow's way through one gutter."""

    start: _Port
    end: _Port
    gutter: int
    """The number of the column to the left of it."""
    from_left: bool
    to_left: bool
    """Whether it ends at the column on the left, with its head pointing there."""
    head: bool


def distances(edges: Iterable[Edge]) -> dict[str, int]:
    """How many arrows each state is from the start, the source of the first edge; unreachable ones are missing."""
    edges = list(edges)
    found: dict[str, int] = {}
    front = {edges[0].source: 0}
    while front:
        found |= front
        front = {
            edge.target: found[edge.source] + 1 for edge in edges if edge.source in front and edge.target not in found
        }
    return found


def svg_of(title: str, edges: Iterable[Edge]) -> str:
    """The picture, as the text of an SVG file. Raises `ValueError` for a state that the start does not lead to."""
    return _Picture(title, list(edges)).text()


class _Picture:
    def __init__(self, title: str, edges: list[Edge]) -> None:
        self.title = title
        columns = distances(edges)
        lost = {edge.source for edge in edges} - set(columns)
        if lost:
            raise ValueError(f"{title}: {', '.join(sorted(lost))} cannot be reached from {edges[0].source}")
        sources = {edge.source for edge in edges}
        self.boxes = {name: _Box(column, name, end=name not in sources) for name, column in columns.items()}
        self.columns: list[list[_Box]] = [[] for _ in range(max(columns.values()) + 1)]
        for box in self.boxes.values():
            self.columns[box.column].append(box)
        self.pieces: list[_Piece] = []
        arrows: dict[tuple[str, str], list[str]] = {}
        for edge in edges:
            arrows.setdefault((edge.source, edge.target), []).extend([edge.label] if edge.label else [])
        for (source, target), labels in arrows.items():
            self._lead(self.boxes[source], self.boxes[target], labels)
        self._place_rows()
        self._place_columns()

    def _lead(self, source: _Box, target: _Box, labels: list[str]) -> None:
        """Lead an arrow through the columns between its ends; in its own column or to itself, around the right."""
        back = target.column < source.column
        here = source
        step = -1 if back else 1
        for column in range(source.column + step, target.column, step):
            passed = _Box(column, height=ROW)
            self.columns[column].append(passed)
            self._join(here, passed, labels if here is source else [], head=False)
            here = passed
        self._join(here, target, labels if here is source else [], head=True)

    def _join(self, start: _Box, end: _Box, labels: list[str], *, head: bool) -> None:
        back = end.column < start.column
        to_left = end.column <= start.column
        leaving, arriving = _Port(end, labels), _Port(start)
        (start.left if back else start.right).append(leaving)
        (end.right if to_left else end.left).append(arriving)
        gutter = end.column if back else start.column
        self.pieces.append(_Piece(leaving, arriving, gutter, not back, to_left, head))

    def _place_rows(self) -> None:
        """Stack the boxes of each column, each as high as its ports need, the columns centred on one line."""
        boxes = [box for column in self.columns for box in column]
        for box in boxes:
            if box.name:
                box.height = max(38.0, *(_stacked(side) + 12 for side in (box.left, box.right)))
        for _ in range(2):  # boxes are ordered by where their arrows come from, which must be placed first
            for column in self.columns:
                _stack(column)
        for box in boxes:
            _set_ports(box)
        for piece in self.pieces:
            _straighten(piece)

    def _place_columns(self) -> None:
        """Give each column its width, and each gutter the labels on both its sides and room for its curves."""
        self.lefts: list[float] = []
        self.widths: list[float] = []
        self.gutters: list[tuple[float, float]] = []
        x = 0.0
        for number, column in enumerate(self.columns):
            x += _label_room(column, right=False) if number else 0.0
            width = max(len(box.name) for box in column) * CHAR + 28
            self.lefts.append(x)
            self.widths.append(width)
            x += width
            curves = sum(piece.gutter == number for piece in self.pieces)
            begin = x + _label_room(column, right=True)
            if curves:
                x = begin + GUTTER + PER_CURVE * (curves - 1)
            self.gutters.append((begin, x))
        self.right = x

    def text(self) -> str:
        boxes = [box for column in self.columns for box in column]
        top = min(box.top for box in boxes)
        bottom = max(box.top + box.height for box in boxes)
        width, height = self.right + 2 * MARGIN + 24, bottom - top + 2 * MARGIN
        inner = [
            self._start(self.columns[0][0]),
            *[self._line(piece) for piece in self.pieces],
            *[self._passing(box) for box in boxes if not box.name],
            *[self._box(box) for box in boxes if box.name],
            *[text for piece in self.pieces for text in self._labels(piece)],
        ]
        size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} font-family="{FONT}" font-size="{SIZE}">',
            f"<title>{escape(self.title)}</title>",
            HEAD,
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            f'<g transform="translate({MARGIN + 24:g} {MARGIN - top:g})">',
            *inner,
            "</g>",
            "</svg>",
            "",
        ])

    def _start(self, box: _Box) -> str:
        return f'<circle cx="-19" cy="{box.middle:g}" r="5" fill="#44546a"/>\n' + _path(
            f"M-14 {box.middle:g} H0", head=True
        )

    def _line(self, piece: _Piece) -> str:
        left, right = self.gutters[piece.gutter]
        edge = self.lefts[piece.gutter] + self.widths[piece.gutter]
        other = self.lefts[piece.gutter + 1] if piece.gutter + 1 < len(self.lefts) else right
        begin, turn = (edge, left) if piece.from_left else (other, right)
        back, stop = (left, edge) if piece.to_left else (right, other)
        y1, y2 = piece.start.y, piece.end.y
        if piece.from_left and piece.to_left:  # around: the further apart, the wider
            bulge = left + min(right - left, 24 + abs(y2 - y1) / 3)
            curve = f"C{bulge:g} {y1:g} {bulge:g} {y2:g} {left:g} {y2:g}"
        else:
            half = (turn + back) / 2
            curve = f"C{half:g} {y1:g} {half:g} {y2:g} {back:g} {y2:g}"
        return _path(f"M{begin:g} {y1:g} H{turn:g} {curve} H{stop:g}", head=piece.head)

    def _passing(self, box: _Box) -> str:
        left = self.lefts[box.column]
        return _path(f"M{left:g} {box.middle:g} H{left + self.widths[box.column]:g}", head=False)

    def _box(self, box: _Box) -> str:
        x, width = self.lefts[box.column], self.widths[box.column]
        fill, line, thick = ("#eceff3", "#44546a", 2.5) if box.end else ("#e6f0fb", "#2f6db5", 1.5)
        return (
            f'<rect x="{x:g}" y="{box.top:g}" width="{width:g}" height="{box.height:g}" rx="{RADIUS}" fill="{fill}"'
            f' stroke="{line}" stroke-width="{thick}"/>\n'
            f'<text x="{x + width / 2:g}" y="{box.middle + SIZE * 0.35:g}" text-anchor="middle" font-weight="bold"'
            f' fill="#1c2733">{escape(box.name)}</text>'
        )

    def _labels(self, piece: _Piece) -> list[str]:
        column = piece.gutter if piece.from_left else piece.gutter + 1
        x = self.lefts[column] + self.widths[column] + STUB if piece.from_left else self.lefts[column] - STUB
        anchor = "start" if piece.from_left else "end"
        first = piece.start.y - LINE * (len(piece.start.labels) - 1) - 5
        look = f'text-anchor="{anchor}" fill="#44546a"'
        return [
            f'<text x="{x:g}" y="{first + LINE * number:g}" {look}>{escape(label)}</text>'
            for number, label in enumerate(piece.start.labels)
        ]


def _stack(column: list[_Box]) -> None:
    column.sort(key=_pull)
    y = -(sum(box.height for box in column) + GAP * (len(column) - 1)) / 2
    for box in column:
        box.top = y
        y += box.height + GAP


def _straighten(piece: _Piece) -> None:
    """Lead an arrow straight to the side of a box that no other arrow meets, if it comes at its height."""
    y, box = piece.start.y, piece.start.away
    side = box.right if piece.to_left else box.left
    if len(side) == 1 and box.top + RADIUS <= y <= box.top + box.height - RADIUS:
        piece.end.y = y


def _stacked(ports: list[_Port]) -> float:
    return sum(port.above + ROW / 2 for port in ports)


def _pull(box: _Box) -> float:
    """Where the boxes before it stand, on average."""
    before = [port.away.middle for port in box.left]
    return sum(before) / len(before) if before else 0.0


def _set_ports(box: _Box) -> None:
    """Give the ports of each side their rows, in the order of what they lead to."""
    for side in (box.left, box.right):
        side.sort(key=lambda port: port.away.middle)
        y = box.middle - _stacked(side) / 2
        for port in side:
            port.y = y + port.above
            y = port.y + ROW / 2


def _label_room(column: list[_Box], *, right: bool) -> float:
    """What the widest label at one side of a column needs, the stub of its line included."""
    labels = [label for box in column for port in (box.right if right else box.left) for label in port.labels]
    return max([len(label) * CHAR + STUB for label in labels], default=0.0) + STUB


def _path(way: str, *, head: bool) -> str:
    marker = ' marker-end="url(#head)"' if head else ""
    return f'<path d="{way}" fill="none" stroke="#44546a" stroke-width="1.5"{marker}/>'
