"""Bodies that end too early: they are never a page, wherever they were cut."""

import gzip
import zlib
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from afresh.detect import compare
from afresh.fetch.inflate import Body, Spoiled
from afresh.types import Outcome, Validators

PAGE = b"<html><p>hello " * 50
OK = b"HTTP/1.1 200 OK\r\n"


def zstd(page: bytes, **options: Any) -> bytes:
    stream = zstandard.ZstdCompressor(**options).compressobj()
    return stream.compress(page) + stream.flush()


def bare(page: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(page) + stream.flush()


PACKED = {
    "gzip": ("gzip", gzip.compress(PAGE)),
    "deflate": ("deflate", zlib.compress(PAGE)),
    "bare deflate": ("deflate", bare(PAGE)),
    "br": ("br", brotli.compress(PAGE)),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress(PAGE)),
    "zstd with a checksum": ("zstd", zstd(PAGE, write_checksum=True, write_content_size=False)),
    "zstd after a frame to be skipped": ("zstd", bytes.fromhex("502a4d18050000003132333435") + zstd(PAGE)),
    "gzip in zstd": ("gzip, zstd", zstandard.ZstdCompressor().compress(gzip.compress(PAGE))),
    "zstd in br": ("zstd, br", brotli.compress(zstandard.ZstdCompressor().compress(PAGE))),
}


@pytest.mark.parametrize("name", PACKED)
def test_no_cut_is_taken_for_the_end_of_a_coding(name: str) -> None:
    codings, packed = PACKED[name]
    for cut in range(len(packed)):
        for step in (1, 3, 1000):
            body = Body(codings.split(", "), 10**6)
            with pytest.raises(Spoiled, match="truncated"):
                _fill(body, packed[:cut], step)
    for step in (1, 3, 1000):
        assert _fill(Body(codings.split(", "), 10**6), packed, step) == PAGE


def _fill(body: Body, data: bytes, step: int) -> bytes:
    for start in range(0, len(data), step):
        body.feed(data[start : start + step])
    return body.finish()


@given(st.binary(max_size=3000), st.integers(1, 200), st.booleans(), st.booleans(), st.data())
def test_zstd_frames_end_where_the_library_ends_them(
    content: bytes, step: int, checksum: bool, sized: bool, draw: st.DataObject
) -> None:
    frame = zstd(content * draw.draw(st.sampled_from([1, 200])), write_checksum=checksum, write_content_size=sized)
    assert _fill(Body(["zstd"], 10**7), frame * 2, step) != b"" or not content
    cut = draw.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(Spoiled, match="truncated"):
        _fill(Body(["zstd"], 10**7), frame + frame[:cut] if cut else b"", step)


@pytest.mark.parametrize("coding", ["", *sorted({coding for coding, _ in PACKED.values()})])
@pytest.mark.parametrize("framing", ["", "Content-Length: 700\r\n", "Transfer-Encoding: chunked\r\n"])
def test_an_end_right_after_the_head_is_no_empty_page(stage: Any, coding: str, framing: str) -> None:
    head = OK + framing.encode() + (f"Content-Encoding: {coding}\r\n".encode() if coding else b"")
    got = stage.fetch(head + b"Connection: close\r\n\r\n")
    assert (got.reason, got.body) == ("truncated", b"")
    assert compare(Validators(fingerprint=1), got).outcome is Outcome.FAILED


@pytest.mark.parametrize("coding", [b"", b"Content-Encoding: gzip\r\n", b"Content-Encoding: zstd\r\n"])
@pytest.mark.parametrize("framing", [b"Content-Length: 0\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
def test_a_page_that_says_that_it_is_empty_is_empty(stage: Any, coding: bytes, framing: bytes) -> None:
    got = stage.fetch(OK + coding + framing)
    assert (got.reason, got.body, got.status) == ("", b"", 200)


@pytest.mark.parametrize("name", PACKED)
def test_a_coded_page_that_ends_with_its_connection_is_cut_wherever_that_is(stage: Any, name: str) -> None:
    codings, packed = PACKED[name]
    head = OK + f"Content-Encoding: {codings}\r\nConnection: close\r\n\r\n".encode()
    for cut in (1, 4, 5, 6, 10, len(packed) // 2, len(packed) - 1):
        assert stage.fetch(head + packed[:cut]).reason == "truncated"
    assert stage.fetch(head + packed).body == PAGE
