"""What is kept of an output without end."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.tools._excerpt import Excerpt


def kept(*chunks: bytes, max_bytes: int) -> Excerpt:
    made = Excerpt(max_bytes)
    for chunk in chunks:
        made.add(chunk)
    return made


@pytest.mark.parametrize(
    ("chunks", "max_bytes", "text"),
    [
        ([], 10, ""),
        ([b"abc", b"", b"def"], 6, "abcdef"),
        ([b"abcdefg"], 6, "abc\n[... cut: 7 bytes in full, 6 shown ...]\nefg"),
        ([b"ab", b"cd", b"ef", b"gh"], 5, "abc\n[... cut: 8 bytes in full, 5 shown ...]\ngh"),
        ([b"ab"], 1, "a\n[... cut: 2 bytes in full, 1 shown ...]\n"),
        ([b"\xff\x00"], 2, "\ufffd\0"),
        ([b"a\xe2\x82", b"\xac"], 4, "a\u20ac"),
        (["aé".encode(), b"....", "éa".encode()], 4, "a\n[... cut: 10 bytes in full, 4 shown ...]\na"),
        (["€".encode() * 4], 8, "€\n[... cut: 12 bytes in full, 8 shown ...]\n€"),
        ([b"abc", b"\x80" * 9], 6, "abc\n[... cut: 12 bytes in full, 6 shown ...]\n\ufffd\ufffd\ufffd"),
    ],
)
def test_head_and_tail_are_kept(chunks: list[bytes], max_bytes: int, text: str) -> None:
    """Half of the bytes from the start, half from the end, whole characters, and between them how many there were."""
    assert text == kept(*chunks, max_bytes=max_bytes).text()


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_the_way_it_comes_does_not_matter(chunks: list[bytes], max_bytes: int) -> None:
    """Cut into chunks or whole, the text is the same; it is cut only where it must be, and always encodes."""
    whole = b"".join(chunks)
    made = kept(*chunks, max_bytes=max_bytes)
    text = made.text()

    assert text == kept(whole, max_bytes=max_bytes).text()
    assert made.truncated == (len(whole) > max_bytes)
    assert made.truncated or text == whole.decode(errors="replace")
    assert len(text.encode().decode()) <= max_bytes + 80


def test_memory_is_bounded() -> None:
    """However much comes, about twice of what is kept is held at most."""
    made = Excerpt(100_000)
    chunk = b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(1000):
            made.add(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert made.total == 65_536_000
    assert peak < 1_000_000
