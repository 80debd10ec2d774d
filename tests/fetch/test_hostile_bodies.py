"""Bodies that lie, drip, break off or explode: rows F1 to F4 of the hostile world, and F11."""

import asyncio
import gzip
import os
import socket
import struct
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.detect import compare
from afresh.fetch import Http
from afresh.fetch.inflate import LARGEST_WINDOW, MOST_MEMBERS, STEP, Body, Spoiled
from afresh.types import Fetched, Outcome, Validators
from peak_memory import LIMIT, linux_only, measured

LARGE = 11_500_000
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
KNOWN = Validators(etag='"1"', fingerprint=77)
ROOT = Path(__file__).parents[2]
SUITE = Path(os.environ.get("AFRESH_SUITES", ROOT.parent / "shared" / "suites")) / "compression-scrapy"


def raw_deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


CODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": zstandard.ZstdCompressor().compress,
}
PAGE = b"<html><body><p>" + b"It is a page. " * 500 + b"</p></body></html>"


def coded(data: bytes, *codings: str) -> bytes:
    for coding in codings:
        data = CODERS[coding](data)
    return data


def answer(body: bytes, *codings: str) -> bytes:
    head = f"Content-Encoding: {', '.join(codings)}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return OK + head.encode() + body


def test_f1_endless_body_is_cut(stage: Any) -> None:
    async def zeros(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"\r\n")
        while True:
            writer.write(b"\0" * 65536)
            await writer.drain()

    got = stage.fetch(zeros, limits={"body": 1_000_000})
    assert (got.reason, got.body, got.status) == ("too_large", b"", 200)
    assert 1_000_000 < got.received < 1_200_000
    verdict = compare(KNOWN, got)
    assert verdict.outcome is Outcome.FAILED
    assert not verdict.outcome.refreshed


def test_f1_a_large_announcement_is_not_even_read(stage: Any) -> None:
    got = stage.fetch(OK + b"Content-Length: 99999999999\r\n\r\n", limits={"body": 1000})
    assert (got.reason, got.received) == ("too_large", 0)


@pytest.mark.parametrize(
    "codings",
    [("gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "gzip", "deflate"), ("br", "zstd"), ("zstd", "br", "gzip")],
    ids="+".join,
)
def test_f2_codings_are_undone_alone_and_stacked(stage: Any, codings: tuple[str, ...]) -> None:
    body = coded(PAGE, *codings)
    got = stage.fetch(answer(body, *codings))
    assert (got.body, got.reason, got.received) == (PAGE, "", len(body))


def test_f2_deflate_without_its_wrapping_is_understood(stage: Any) -> None:
    assert stage.fetch(answer(raw_deflate(PAGE), "deflate")).body == PAGE


@pytest.mark.parametrize("piece", ["skippable frames", "empty frames", "empty blocks"])
def test_f2_zstd_frames_and_blocks_without_end_are_refused_in_no_time(piece: str) -> None:
    """They inflate to nothing: limits on the output alone would never notice, and each costs time."""
    empty_block = bytes.fromhex("000000")
    bodies = {
        "skippable frames": bytes.fromhex("502a4d1800000000") * 2_000_000,
        "empty frames": zstandard.compress(b"") * 900_000,
        "empty blocks": bytes.fromhex("28b52ffd0058") + empty_block * 5_000_000,
    }
    began = time.process_time()
    for codings, body in ((["zstd"], bodies[piece]), (["zstd", "gzip"], gzip.compress(bodies[piece], compresslevel=1))):
        with pytest.raises(Spoiled, match="bad_coding"):
            Body(codings, limit=LIMIT).feed(body)
    assert time.process_time() - began < 3.0


def test_f2_zstd_frames_and_gzip_members_may_follow_each_other() -> None:
    for coding in ("gzip", "zstd"):
        body = Body([coding], limit=LIMIT)
        whole = coded(b"one", coding) + coded(b"two", coding)
        for at in range(len(whole)):  # byte by byte: every boundary is met
            body.feed(whole[at : at + 1])
        assert body.finish() == b"onetwo"


@pytest.mark.parametrize(
    "codings", [("gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "gzip", "deflate"), ("br", "gzip")], ids="+".join
)
def test_f2_bombs_stop_at_the_limit(stage: Any, codings: tuple[str, ...]) -> None:
    bomb = coded(b"\0" * LARGE, *codings)
    got = stage.fetch(answer(bomb, *codings), limits={"body": LIMIT})
    assert (got.reason, got.body) == ("too_large", b"")
    assert got.received <= len(bomb) < 40_000


@linux_only
def bits(*values: int) -> bytes:
    """Bits, the first one lowest, filled up to whole bytes."""
    padded = [*values, *[0] * (-len(values) % 8)]
    return bytes(sum(bit << place for place, bit in enumerate(padded[at : at + 8])) for at in range(0, len(padded), 8))


# Blocks that hold nothing: of brotli metadata, and of deflate with Huffman tables of their own.
BROTLI_NOTHING = bits(0, 1, 1, 0, 0, 0)
_LENGTHS = {18: (1, 0, 0), 1: (0, 1, 0), 0: (0, 1, 0)}
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
DEFLATE_NOTHING = bits(
    *(
        [0, 0, 1, *[0] * 10, 0, 1, 1, 1]
        + [bit for symbol in _ORDER for bit in _LENGTHS.get(symbol, (0, 0, 0))]
        + [0, *((127 >> place) & 1 for place in range(7)), 0, *((107 >> place) & 1 for place in range(7))]
        + [1, 1, 1, 1, 0]
    )
    * 8
)
SLOW = {
    "br": bits(0, 0, 1, 1, 0, 0, 0) + BROTLI_NOTHING * 12_000_000 + b"\x03",
    "deflate": DEFLATE_NOTHING * (12_000_000 // len(DEFLATE_NOTHING)) + b"\x01\x00\x00\xff\xff",
    "zstd": bytes.fromhex("28b52ffd0058") + bytes(3) * 99_000 + b"\x01\x00\x00",
    "gzip": gzip.compress(b"") * 999,
    "bomb": brotli.compress(bytes(14_000_000)),
}


@pytest.mark.parametrize("kind", SLOW)
def test_f2_no_coding_holds_up_the_event_loop(kind: str) -> None:
    """Twelve megabytes of empty blocks took seconds, all on the event loop."""
    coding = "br" if kind == "bomb" else kind
    whole = answer(SLOW[kind], coding)

    async def go() -> tuple[Fetched, float]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                await reader.readuntil(b"\r\n\r\n")
                for start in range(0, len(whole), 1 << 16):
                    writer.write(whole[start : start + (1 << 16)])
                    await writer.drain()
                writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        http = Http(user_agent="test/1", allow_private=True)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        began = time.thread_time()
        fetched = await http.fetch(url, Validators())
        took = time.thread_time() - began
        await http.close()
        server.close()
        return fetched, took

    fetched, seconds = asyncio.run(go())
    assert not fetched.reason
    assert seconds < 0.04 + 3e-8 * len(whole)  # of which the server, in the same thread, takes a part


def test_f2_peak_memory_stays_below_twice_the_limit_and_a_window() -> None:
    stacks = [("gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "gzip", "deflate"), ("br", "zstd", "gzip")]
    bombs = {"+".join(codings): answer(coded(b"\0" * 20_000_000, *codings), *codings) for codings in stacks}
    found = measured(bombs)
    for name in bombs:
        assert (found[name].reason, found[name].size) == ("too_large", 0)
        # The lower bound shows that the measure measures; a decoder has a window.
        assert LIMIT / 2 < found[name].rise < 2 * LIMIT + LARGEST_WINDOW


def test_f2_a_stage_that_makes_nothing_cannot_be_fed_for_ever(stage: Any) -> None:
    """Empty gzip members inflate to nothing: limits on the output alone would never notice."""
    empty = gzip.compress(b"")
    with pytest.raises(Spoiled, match="bad_coding"):
        Body(["gzip"], limit=LIMIT).feed(empty * (MOST_MEMBERS + 1))
    inner = gzip.compress(empty * 2_000_000, compresslevel=9)  # 40 MB of empty members in a few kB
    assert stage.fetch(answer(inner, "gzip", "gzip")).reason in ("bad_coding", "too_large")


@pytest.mark.parametrize("outer", [("gzip",), ("gzip", "gzip"), ("br",), ("zstd",)], ids="+".join)
@pytest.mark.parametrize("coding", ["deflate", "zstd"])
def test_f2_a_few_bytes_do_not_become_megabytes_of_empty_blocks(coding: str, outer: tuple[str, ...]) -> None:
    """285 bytes kept the thread that inflates for two seconds, and every other answer waited for that."""
    if coding == "zstd":
        empty = bytes.fromhex("28b52ffd0058") + bytes.fromhex("000000") * 90_000
    else:
        empty = bytes.fromhex("000000ffff") * 3_000_000  # stored blocks without content
    body = empty
    for each in outer:
        body = coded(body, each)
    assert len(body) < 25_000
    with pytest.raises(Spoiled, match="bad_coding"):
        Body([coding, *outer], limit=10**8).feed(body)


def test_a_list_of_codings_without_end_is_not_read_through(stage: Any) -> None:
    lines = b"Content-Encoding: " + b"," * 16_000 + b"\r\n"
    got = stage.fetch(b"HTTP/1.1 200 OK\r\n" + 60 * lines + b"Content-Length: 5\r\n\r\nhello")
    assert (got.reason, got.body) == ("unknown_coding", b"")


def test_f2_what_arrives_is_limited_even_if_nothing_comes_of_it(stage: Any) -> None:
    """A zstd frame may hold bytes that every decoder skips: any number of them make a body of no size."""
    skipped = struct.pack("<II", 0x184D2A50, 1000) + b"\0" * 1000
    got = stage.fetch(OK + b"Content-Encoding: zstd\r\n\r\n" + skipped * 200, limits={"body": 100_000})
    assert got.reason == "too_large"
    assert stage.fetch(OK + b"Content-Encoding: zstd\r\n\r\n" + skipped * 20 + coded(PAGE, "zstd")).body == PAGE


@settings(deadline=None, max_examples=200)
@given(
    stack=st.lists(st.sampled_from(["gzip", "deflate", "raw", "br", "zstd"]), min_size=1, max_size=4),
    unit=st.binary(min_size=1, max_size=300),
    size=st.integers(0, 5 * STEP) | st.sampled_from([STEP - 1, STEP, STEP + 1, 2 * STEP, 4 * STEP]),
    cut=st.integers(1, 5000),
)
def test_f2_any_body_in_any_codings_and_any_pieces_comes_out_as_it_went_in(
    stack: list[str], unit: bytes, size: int, cut: int
) -> None:
    page = (unit * (size // len(unit) + 1))[:size]
    data = page
    for coding in stack:
        data = raw_deflate(data) if coding == "raw" else CODERS[coding](data)
    codings = ["deflate" if coding == "raw" else coding for coding in stack]

    def through(limit: int) -> bytes:
        body = Body(codings, limit=limit)
        for start in range(0, len(data), cut):
            body.feed(data[start : start + cut])
        return body.finish()

    largest = max(size, len(data), 100) * 2  # stages between may be larger than both ends
    assert through(largest) == page
    if size:
        with pytest.raises(Spoiled, match="too_large"):
            through(size - 1)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_f4_a_coding_that_breaks_off_is_truncated(stage: Any, coding: str) -> None:
    whole = coded(PAGE, coding)
    for kept in (1, len(whole) // 2, len(whole) - 1):
        got = stage.fetch(answer(whole[:kept], coding))
        assert (got.reason, got.body) == ("truncated", b"")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_f2_what_is_not_in_its_coding_is_an_error(stage: Any, coding: str) -> None:
    assert stage.fetch(answer(PAGE, coding)).reason == "bad_coding"


def test_f2_a_broken_checksum_is_an_error(stage: Any) -> None:
    broken = bytearray(gzip.compress(PAGE))
    broken[-6] ^= 1
    assert stage.fetch(answer(bytes(broken), "gzip")).reason == "bad_coding"


def test_f2_padding_after_gzip_is_not_content(stage: Any) -> None:
    assert stage.fetch(answer(gzip.compress(PAGE) + b"\0" * 100, "gzip")).body == PAGE


def test_f2_unknown_and_endless_codings_are_errors(stage: Any) -> None:
    assert stage.fetch(answer(PAGE, "sdch")).reason == "unknown_coding"
    assert stage.fetch(answer(PAGE, *["gzip"] * 5)).reason == "bad_coding"
    assert stage.fetch(answer(PAGE, "identity")).body == PAGE


def test_f2_a_large_zstd_window_is_refused(stage: Any) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = stream.compress(PAGE) + stream.flush()
    assert stage.fetch(answer(body, "zstd")).reason == "bad_coding"


def test_f2_an_empty_body_has_no_coding_to_break(stage: Any) -> None:
    for coding in CODERS:
        got = stage.fetch(answer(b"", coding))
        assert (got.reason, got.body) == ("", b"")


def test_f2_public_bombs_and_samples() -> None:
    if not SUITE.exists():
        pytest.skip("the public compression samples are not here")

    def undone(name: str, *codings: str) -> bytes:
        body = Body(codings, limit=LIMIT)
        body.feed((SUITE / name).read_bytes())
        return body.finish()

    for coding in ("br", "deflate", "gzip", "zstd"):
        with pytest.raises(Spoiled, match="too_large"):
            undone(f"bomb-{coding}.bin", coding)
    pages = [
        ("html-gzip.bin", "gzip"),
        ("html-br.bin", "br"),
        ("html-rawdeflate.bin", "deflate"),
        ("html-zlibdeflate.bin", "deflate"),
        ("html-zstd-static-content-size.bin", "zstd"),
        ("html-zstd-static-no-content-size.bin", "zstd"),
        ("html-zstd-streaming-no-content-size.bin", "zstd"),
        ("html-gzip-deflate.bin", "gzip", "deflate"),
        ("html-gzip-deflate-gzip.bin", "gzip", "deflate", "gzip"),
    ]
    for page in pages:
        assert undone(*page).strip().endswith(b"</html>")
    assert undone("feed-sample1.xml.gz", "gzip") == (SUITE / "feed-sample1.xml").read_bytes()
    for name in ("truncated-crc-error.gz", "truncated-crc-error-short.gz", "unexpected-eof.gz"):
        with pytest.raises(Spoiled, match=r"truncated|bad_coding"):
            undone(name, "gzip")


@pytest.mark.parametrize("slow", ["headers", "body"])
def test_f3_a_drip_meets_the_deadline(stage: Any, slow: str) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if slow == "body":
            writer.write(OK + b"\r\n")
        for byte in OK + b"X-Padding: " + b"x" * 5000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    got = stage.fetch(drip, limits={"seconds": 0.4})
    assert got.reason == "timeout"
    assert got.took < 2
    assert (got.received > 0, got.status) == ((True, 200) if slow == "body" else (False, 0))


def test_f4_silence_is_a_timeout(stage: Any) -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(10)

    assert stage.fetch(silence, limits={"seconds": 0.3}).reason == "timeout"


def reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        OK + b"Content-Length: 1000\r\n\r\nsome",
        OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
        OK + b"\r\nsome",
    ],
    ids=["nothing", "in the head", "in a body of known length", "between chunks", "in a body of unknown length"],
)
def test_f4_a_reset_is_named(stage: Any, start: bytes) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.sleep(0.05)
        reset(writer)

    got = stage.fetch(broken)
    assert (got.reason, got.body) == ("reset", b"")


@pytest.mark.parametrize(
    "said",
    [
        b"Content-Length: 1000\r\n\r\n" + PAGE[:999],
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nff\r\nsome",
    ],
    ids=["too few bytes", "no last chunk", "in a chunk"],
)
def test_f4_a_truncated_body_is_never_a_page(stage: Any, said: bytes) -> None:
    got = stage.fetch(OK + said)
    assert (got.reason, got.body, got.status) == ("truncated", b"", 200)
    assert got.received > 0
    for known in (Validators(), KNOWN):
        verdict = compare(known, got)
        assert verdict.outcome is Outcome.FAILED
        assert verdict.validators.fingerprint == 0


LIES = {
    "utf-16 under utf-8": ("utf-8", b"\xff\xfe" + "<p>Grüße</p>".encode("utf-16-le")),
    "utf-7": ("utf-7", b"<p>+AOQ-</p>"),
    "two marks": ("utf-8", b"\xef\xbb\xbf\xef\xbb\xbf<p>x</p>"),
    "utf-32": ("utf-32", "<p>x</p>".encode("utf-32")),
    "broken": ("utf-8", b"<p>\xc3\x28\xff\xfe\xed\xa0\x80</p>"),
    "cut": ("shift_jis", b"<p>\x82</p>\x82"),
    "unknown": ("x-user-defined", bytes(range(256))),
    "nonsense": ("\xff; charset=none", b"<p>x</p>"),
    "nothing but NUL": ("utf-8", b"\0" * 100),
}


@pytest.mark.parametrize("lie", LIES)
def test_f11_charset_lies_raise_nothing_and_give_one_fingerprint(stage: Any, lie: str) -> None:
    charset, body = LIES[lie]
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\n\r\n"
    first, second = stage.fetch_all(head.encode("latin-1") + body, urls=("http://127.0.0.1:{port}/",) * 2)
    assert first.body == second.body == body
    new = compare(Validators(), first)
    assert (new.outcome, compare(Validators(fingerprint=new.validators.fingerprint), second).outcome) == (
        Outcome.NEW,
        Outcome.UNCHANGED,
    )
