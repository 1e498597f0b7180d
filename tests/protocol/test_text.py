"""Text that may be stored and sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.text import clean, cut_middle, is_visible

from .drawn import any_text, is_clean


@given(any_text)
def test_clean_text_encodes(text: str) -> None:
    """Whatever goes in, what comes out is UTF-8."""
    assert is_clean(clean(text))
    assert clean(text) == clean(clean(text))


@given(st.text())
def test_good_text_stays_as_it_is(text: str) -> None:
    """Text that encodes already is not touched."""
    assert text == clean(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\ud800", "\ufffd"), ("a\udfffb", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), ("\ude00\ud83d", "\ufffd\ufffd")],
)
def test_each_lone_surrogate_becomes_one_character(text: str, expected: str) -> None:
    """One U+FFFD for each that stands alone; a pair in two pieces is the character it means."""
    assert expected == clean(text)


@pytest.mark.parametrize("text", ["", " ", "\n\t \u2003"])
def test_white_space_is_not_visible(text: str) -> None:
    """An answer of white space is none."""
    assert not is_visible(text)


@pytest.mark.parametrize("text", ["0", " . ", "\u200b"])
def test_any_character_is_visible(text: str) -> None:
    """One character that is no white space is an answer."""
    assert is_visible(text)


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_cut_keeps_head_and_tail(text: str, max_chars: int) -> None:
    """At most `max_chars` of the text remain, from both ends, around a marker with the full length."""
    cut = cut_middle(text, max_chars)
    tail = max_chars // 2
    head = max_chars - tail
    marker = f"\n[... cut: {len(text)} characters in full, {max_chars} shown ...]\n"

    if len(text) <= max_chars:
        assert text == cut
    else:
        assert text[:head] + marker + text[len(text) - tail :] == cut
