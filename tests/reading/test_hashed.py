"""Marks of words against a plain form that makes the words themselves."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.reading.hashed import (
    CAPITALS,
    COUNTED,
    DIGITS,
    MAX_WORD_BYTES,
    PRICES,
    QUESTIONS,
    WORDS,
    YEARS,
    mark_words,
)


def marked(text: bytes, spans: list[tuple[int, int, int, int]] | None = None, room: int = 10_000):  # type: ignore[no-untyped-def]
    spans = [(0, len(text), 1, 0)] if spans is None else spans
    marks, groups, counted = np.zeros(room, np.uint64), np.zeros(room, np.int64), np.zeros(COUNTED, np.int64)
    rows = np.array(spans, np.int64).reshape(-1, 4)
    count = mark_words(np.frombuffer(text, np.uint8), rows, marks, groups, counted)
    return marks[:count].tolist(), groups[:count].tolist(), counted.tolist()


def words(text: bytes) -> list[bytes]:
    """The words, in plain form: a new one at a capital behind a small letter; a run of digits is one 0."""
    found = []
    for run in re.findall(rb"[A-Za-z0-9\x80-\xff]+", text):
        parts = re.sub(rb"([a-z\x80-\xff])(?=[A-Z])", rb"\1 ", run).split(b" ")
        found += [re.sub(rb"[0-9]+", b"0", part).lower() for part in parts]
    return found


@given(st.text(st.sampled_from("abzAZ019 -_/?.ä"), max_size=60))
def test_words_that_are_the_same_have_the_same_mark(text: str) -> None:
    body = text.encode()
    own, plain = marked(body)[0], words(body)
    assert len(own) == len(plain)
    known: dict[bytes, int] = {}
    for mark, word in zip(own, plain, strict=True):
        shortened = word if len(word) <= MAX_WORD_BYTES else word[:0]
        if shortened:
            assert known.setdefault(shortened, mark) == mark
    assert len(set(known.values())) == len(known)


def test_a_word_in_another_place_has_another_mark() -> None:
    text = b"tide tide"
    one, other = marked(text, [(0, 4, 1, 3), (5, 9, 2, 4)])[:2]
    assert one[0] != one[1]
    assert other == [3, 4]


@pytest.mark.parametrize(
    ("text", "which", "count"),
    [
        (b"It is 12 of 345.", DIGITS, 5),
        (b"New York", CAPITALS, 2),
        (b"Why? Or not?", QUESTIONS, 2),
        (b"$12, $ 13 and 14$ or 15 dollars", PRICES, 3),
        ("£5 and €7.50 and 9€".encode(), PRICES, 3),
        (b"$$$ and no number", PRICES, 0),
        (b"1899 1900 2024 2099 2100 20245 a2024", YEARS, 3),
        (b"addToCart item-17", WORDS, 5),
    ],
)
def test_what_is_counted_beside_the_words(text: bytes, which: int, count: int) -> None:
    assert marked(text)[2][which] == count


@given(st.binary(max_size=200), st.integers(-3, 250), st.integers(-3, 250))
def test_no_bytes_and_no_span_are_too_odd(text: bytes, start: int, end: int) -> None:
    start = max(start, 0)
    assert len(marked(text, [(start, end, 1, 0)])[0]) <= max(len(text) - start, 0)


def test_more_words_than_there_is_room_for_are_left_out() -> None:
    assert len(marked(b"a b c d", room=3)[0]) == 3
