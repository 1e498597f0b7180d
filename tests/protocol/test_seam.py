"""Where a text that was cut meets what the model says next."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.seam import Seam, dropped_of

OPEN = "Here it is:\n\n```python\ndef area(width, height):\n    return wid"
"""Cut inside a fenced block, in the middle of a line."""
ROWS = "| name | passed |\n" * 3
CASES = {
    "nothing is repeated": ("The answer is forty", "-two.", 0),
    "the last words are": ("It was the best of times, it was", "of times, it was the worst", 16),
    "all of a short text is": ("Once upon a time", "Once upon a time there was", 16),
    "and nothing else is said": ("It was the best of times", "the best of times", 17),
    "the longest one counts": ("abcdefghijkl, abcdefghijkl", "abcdefghijkl, abcdefghijkl", 26),
    "a short repetition may be meant": ("They said that that", " that was all", 0),
    "few letters may be too": ("-=-=-=-=-=-=-=-=-=-=", "-=-=-=-=-=-=-=-=-=-=", 0),
    "rows that are alike go on": (ROWS, ROWS, 0),
    "a line that stands there twice goes on": ("    return None\n    return None\n", "    return None\n    x", 0),
    "the middle of the text is no end": ("one two three four five six seven", "two three four five", 0),
    "an end that is not whole is none": ("it was the best of times", "the best of time and", 0),
    "the fence is opened again": (OPEN, "```python\nth * height", 10),
    "and its line is begun again": (OPEN, "```python\n    return width * height", 10 + 14),
    "after white space": (OPEN, "\n\n~~~py\nth * height", 8),
    "without a word, it may be the end": (OPEN, "```\n\nThat is all.", 0),
    "unless the code is repeated": (OPEN, "```\n(width, height):\n    return width", 4 + 31),
    "code is repeated without a fence": (OPEN, "(width, height):\n    return width", 31),
    "no fence is open": ("Some text", "```python\nx = 1", 0),
    "the open one is closed": (OPEN + "th\n```\n", "```python\nx = 1", 0),
    "a shorter one inside closes nothing": ("````md\n```py\n```\nso", "````md\n more", 7),
    "inside of a line it is none": (OPEN, "th  # ```python\n", 0),
    "nothing": (OPEN, "", 0),
}


@pytest.mark.parametrize(("before", "reply", "dropped"), CASES.values(), ids=CASES)
def test_what_is_dropped(before: str, reply: str, dropped: int) -> None:
    """A repetition is dropped where it is no accident, a fence that is opened again where one was open; nothing else is."""
    assert dropped == dropped_of(before, reply)


words = st.text(st.sampled_from("ab `~\n|-1é"), max_size=30)
codes = st.sampled_from([
    OPEN,
    ROWS,
    "```python\n",
    "```\n",
    "~~~",
    "def area(width, height):",
    "    return width",
    "😀",
])
texts = st.lists(words | codes, max_size=4).map("".join)


@st.composite
def seams(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and a reply in pieces that often repeats its end."""
    before = draw(texts)
    again = before[-draw(st.integers(0, len(before))) :] if draw(st.booleans()) else ""
    reply = draw(st.sampled_from(["", "```python\n", "```\n", "\n"])) + again + draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    return before, [reply[a:b] for a, b in zip([0, *cuts], [*cuts, len(reply)], strict=True)]


@given(seams())
@example((OPEN, ["`", "``py", "thon\n", "    ret", "urn width"]))
def test_what_is_shown_is_what_is_kept(seam: tuple[str, list[str]]) -> None:
    """However a reply arrives, the pieces that are shown are, joined, the reply without what it repeats."""
    before, pieces = seam
    reply = "".join(pieces)
    shown = Seam(before)
    told = [*(shown.feed(piece) for piece in pieces), shown.end()]

    assert reply[dropped_of(before, reply) :] == "".join(told)
    assert dropped_of(before, reply) == shown.dropped


@given(seams())
def test_it_never_changes_its_mind(seam: tuple[str, list[str]]) -> None:
    """What is said of the beginning of a reply is said of the whole; and what is dropped is never more than there is."""
    before, pieces = seam
    reply = "".join(pieces)
    whole = dropped_of(before, reply)
    told = {dropped_of(before, reply[:size], whole=False) for size in range(len(reply) + 1)} - {None}

    assert told <= {whole}
    assert whole is not None
    assert 0 <= whole <= len(reply)


@given(seams(), st.data())
def test_what_is_undone_comes_again(seam: tuple[str, list[str]], data: st.DataObject) -> None:
    """A reply that is taken back to one of its characters and goes on otherwise is shown as if it had come like that."""
    before, pieces = seam
    first, second = "".join(pieces), data.draw(texts)
    stands = data.draw(st.integers(0, len(first)))
    reply = first[:stands] + second
    shown = Seam(before)
    text = "".join(shown.feed(piece) for piece in pieces)
    text = text[: shown.undo(stands)]
    text += shown.feed(second) + shown.end()

    assert reply[dropped_of(before, reply) :] == text


def test_a_reply_that_repeats_nothing_is_shown_at_once() -> None:
    """Its first letters say so: the reader does not wait."""
    seam = Seam("The quick brown fox jumps over the lazy dog")

    assert (", and", " then") == (seam.feed(", and"), seam.feed(" then"))
    assert "" == seam.end()
