import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.fetch import gunzip
from afresh.fetch.inflate import STEP

DATA = st.builds(lambda unit, times: unit * times, st.binary(min_size=1, max_size=300), st.integers(0, 2_000))


@given(DATA, DATA)
def test_what_was_packed_comes_out_in_several_members_too(one: bytes, other: bytes) -> None:
    assert gunzip(gzip.compress(one) + gzip.compress(other), 10_000_000) == (one + other, "")


@given(DATA, st.data())
def test_a_file_that_breaks_off_gives_what_it_held_up_to_there(content: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(content)
    got, reason = gunzip(packed[: data.draw(st.integers(1, len(packed) - 1))], 10_000_000)
    assert reason == "truncated"
    assert content.startswith(got)


@given(DATA, st.integers(0, 700_000))
def test_no_more_than_the_limit_comes_out_and_no_less_than_a_step_before_it(content: bytes, limit: int) -> None:
    got, reason = gunzip(gzip.compress(content), limit)
    assert content.startswith(got)
    assert len(got) <= limit
    if len(content) > limit:
        assert reason == "too_large"
        assert len(got) > limit - STEP
    else:
        assert (got, reason) == (content, "")


@pytest.mark.parametrize("data", [b"", b"plain", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\xff" * 50])
def test_what_is_no_such_file_is_a_reason(data: bytes) -> None:
    got, reason = gunzip(data, 1_000)
    assert got == b""
    assert reason in ("truncated", "bad_coding")


def test_a_bomb_takes_about_twice_its_limit_and_no_more() -> None:
    bomb = gzip.compress(b"\0" * 100_000_000)
    tracemalloc.start()
    got, reason = gunzip(bomb, 5_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reason == "too_large"
    assert 4_900_000 < len(got) <= 5_000_000
    assert peak < 12_000_000


def test_public_samples(suite: Callable[[str], Path]) -> None:
    folder = suite("compression-scrapy")
    assert gunzip((folder / "feed-sample1.xml.gz").read_bytes(), 10**6) == (
        (folder / "feed-sample1.xml").read_bytes(),
        "",
    )
    got, reason = gunzip((folder / "unexpected-eof.gz").read_bytes(), 10**6)
    assert reason == "truncated"
    assert got.decode("latin-1").startswith((folder / "unexpected-eof-output.txt").read_text(encoding="utf-8").rstrip())
    for name in ("truncated-crc-error.gz", "truncated-crc-error-short.gz"):
        got, reason = gunzip((folder / name).read_bytes(), 10**6)
        assert b"</html" in got[-20:]
        assert reason in ("truncated", "bad_coding")
    got, reason = gunzip((folder / "bomb-gzip.bin").read_bytes(), 10**6)
    assert (len(got) <= 10**6, reason) == (True, "too_large")
