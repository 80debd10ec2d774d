"""Heads of answers that lie or are broken: rows F5 to F7, F9, F10, F12 and F14 of the hostile world."""

import asyncio
import logging
import tracemalloc
from typing import Any

import pytest

from afresh.detect import compare
from afresh.fetch import headers
from afresh.frontier import Politeness
from afresh.types import Fetched, Outcome, Validators

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
BODY = b"x" * 42
DAY = "Sun, 06 Nov 1994 08:49:37 GMT"
TWICE = ("http://127.0.0.1:{port}/a", "http://127.0.0.1:{port}/b")


@pytest.mark.parametrize(
    ("lengths", "size"),
    [
        (["42"], 42),
        (["042"], 42),
        ([" 42\t"], 42),
        # Conflicts.
        (["42,30"], None),
        (["30,42"], None),
        (["42", "30"], None),
        (["30", "42"], None),
        (["042", "42"], None),
        (["42,"], None),
        ([",42"], None),
        (["42", ""], None),
        (["", "42"], None),
        (["ah", "oh"], None),
        # What int() would take.
        (["+42"], None),
        (["-1"], None),
        (["4_2"], None),
        (["0x2a"], None),
        (["42.0"], None),
        (["42s"], None),
        (["\uff14\uff12"], None),
        (["18446744073709551658"], None),  # 2^64 + 42
        # The same value twice: browsers let that pass, we need not.
        (["42", "42"], None),
        (["42,42"], None),
    ],
    ids=repr,
)
def test_f5_content_length_in_one_spelling_or_not_at_all(stage: Any, lengths: list[str], size: int | None) -> None:
    head = "".join(f"Content-Length: {each}\r\n" for each in lengths).encode()
    got = stage.fetch(OK + head + b"\r\n" + BODY)
    if size is None:
        assert (got.reason, got.body) == ("bad_protocol", b"")
    else:
        assert (got.reason, len(got.body)) == ("", size)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\nContent-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5_\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_f5_a_body_with_two_lengths_or_a_wrong_one_is_no_body(stage: Any, framing: bytes) -> None:
    got = stage.fetch(OK + framing)
    assert got.reason in ("bad_protocol", "truncated")
    assert got.body == b""


@pytest.mark.parametrize("pause", [None, 0.0, 0.05])
@pytest.mark.parametrize("more", [b"x", BODY, OK + b"Content-Length: 5\r\n\r\nfalse", b"\0" * 70_000], ids=len)
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
def test_f5_what_follows_an_answer_does_not_depend_on_packets(
    stage: Any, framing: bytes, more: bytes, pause: float | None
) -> None:
    """An answer ends where its head says; more ends the connection, and is nobody's answer."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if pause is None:
            writer.write(OK + framing + more)
        else:
            writer.write(OK + framing)
            await writer.drain()
            await asyncio.sleep(pause)
            writer.write(more)
        await writer.drain()
        await reader.read()

    got = stage.fetch_all(talk, urls=("http://127.0.0.1:{port}/",) * (2 if pause is None else 1))
    assert {(each.reason, each.body) for each in got} == {("", b"hello")}
    assert len(stage.requests) == len(got)  # each on a connection of its own


@pytest.mark.parametrize("line", [b"RTSP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/3.0", b"ICE/1.0", b"ICY"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"], ids=["alone", "after hints"])
@pytest.mark.parametrize("packet", [1, 7, 1000])
def test_f6_another_protocol_is_no_page(stage: Any, line: bytes, before: bytes, packet: int) -> None:
    said = before + line + b" 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(said), packet):
            writer.write(said[start : start + packet])
            await writer.drain()
            await asyncio.sleep(0)

    assert stage.fetch(talk).reason == "bad_protocol"


@pytest.mark.parametrize("packet", [1, 7, 1000])
def test_f7_interim_answers_are_passed_over_however_they_are_packed(stage: Any, packet: int) -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.0 102\r\n\r\n"
    said = hints + OK + b"Content-Length: 5\r\n\r\nhello"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(said), packet):
            writer.write(said[start : start + packet])
            await writer.drain()
            await asyncio.sleep(0)

    assert stage.fetch(talk).body == b"hello"
    for odd in (b"HTTP/1.1 101 Upgrade\r\n\r\n", b"HTTP/1.1 103\r\nno header\r\n\r\n", b"HTTP/1.1 1x3\r\n\r\n"):
        assert stage.fetch(odd + said).reason == "bad_protocol"


@pytest.mark.parametrize(
    "piece",
    [b"1;" + b"e" * 10_000 + b"\r\nx\r\n", b"1;a=b\r\nx\r\n", b"1\r\nx\r\n"],
    ids=["extensions", "small extensions", "tiny chunks"],
)
def test_f1_extensions_of_chunks_count_towards_the_limit(stage: Any, piece: bytes) -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        pieces = piece * (100_000 // len(piece) + 1)
        while sent < 100_000_000:
            writer.write(pieces)
            sent += len(pieces)
            await writer.drain()

    assert stage.fetch(talk, limits={"body": 1_000_000}).reason == "too_large"
    assert sent < 20_000_000


@pytest.mark.parametrize("size", [1, 32])
def test_f1_a_body_of_tiny_chunks_may_not_take_the_time_of_millions_of_them(stage: Any, size: int) -> None:
    """Every chunk takes some microseconds of the event loop, however small it is."""
    piece, sent = b"%x\r\n" % size + b"x" * size + b"\r\n", 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while sent < 2_000_000:
            writer.write(piece * 1000)
            sent += 1000
            await writer.drain()

    assert stage.fetch(talk, limits={"body": 16 << 20}).reason == "too_large"
    assert sent < 1_000_000  # with what the system has in its own buffers


def test_f1_a_body_of_chunks_of_some_kilobytes_may_have_its_full_size(stage: Any) -> None:
    said = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    got = stage.fetch(OK + b"Transfer-Encoding: chunked\r\n\r\n" + said * 1024 + b"0\r\n\r\n", limits={"body": 4 << 20})
    assert len(got.body) == 4 << 20


def test_f7_what_follows_the_last_chunk_counts_towards_the_limits(stage: Any) -> None:
    body = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
    assert stage.fetch(body + b"X: y\r\n\r\n").body == b"hello"
    for lines in (b"X: y\r\n" * 3000, b"X: " + b"y" * 100_000 + b"\r\n"):
        assert stage.fetch(body + lines + b"\r\n").reason == "bad_protocol"


PLACES = {
    "first": (b"", b"HTTP/1.1 200 OK\r\nX-Name:value\r\n"),
    "in-http": (b"HT", b"TP/1.1 200 OK\r\nX-Name:value\r\n"),
    "before-slash": (b"HTTP", b"/1.1 200 OK\r\nX-Name:value\r\n"),
    "after-slash": (b"HTTP/", b"1.1 200 OK\r\nX-Name:value\r\n"),
    "before-dot": (b"HTTP/1", b".1 200 OK\r\nX-Name:value\r\n"),
    "after-dot": (b"HTTP/1.", b"1 200 OK\r\nX-Name:value\r\n"),
    "after-version": (b"HTTP/1.1", b" 200 OK\r\nX-Name:value\r\n"),
    "before-number": (b"HTTP/1.1 ", b"200 OK\r\nX-Name:value\r\n"),
    "after-number": (b"HTTP/1.1 200", b" OK\r\nX-Name:value\r\n"),
    "before-reason": (b"HTTP/1.1 200 ", b"OK\r\nX-Name:value\r\n"),
    "after-reason": (b"HTTP/1.1 200 OK", b"\r\nX-Name:value\r\n"),
    "leading": (b"HTTP/1.1 200 OK\r\n", b"X-Name:value\r\n"),
    "in-name": (b"HTTP/1.1 200 OK\r\nX-N", b"ame:value\r\n"),
    "before-colon": (b"HTTP/1.1 200 OK\r\nX-Name", b":value\r\n"),
    "after-colon": (b"HTTP/1.1 200 OK\r\nX-Name:", b"value\r\n"),
    "in-value": (b"HTTP/1.1 200 OK\r\nX-Name:va", b"lue\r\n"),
    "after-value": (b"HTTP/1.1 200 OK\r\nX-Name:value", b"\r\n"),
}
TOLERATED_SPACE = {"before-reason", "after-reason", "after-colon", "in-value", "after-value"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("byte", ["\0", "\r", " ", "\t", ":", "\n"], ids=["NUL", "CR", "SP", "TAB", "colon", "LF"])
def test_f6_a_stray_byte_in_the_head(stage: Any, byte: str, place: str) -> None:
    before, after = PLACES[place]
    got = stage.fetch(before + byte.encode() + after + b"Content-Length: 5\r\n\r\nTest.")
    if byte in " \t":  # a second space after the number belongs to the reason
        legal = place in TOLERATED_SPACE or (byte, place) == (" ", "after-number")
        assert (got.reason == "bad_protocol") is not legal
    elif byte in "\0\r":
        assert (got.reason, got.body) == ("bad_protocol", b"")
    elif byte == ":":  # legal in a reason and in a value, and it ends a name
        legal = place in TOLERATED_SPACE | {"in-name", "before-colon"}
        assert (got.reason == "") is legal
    else:  # a bare LF may end a line; whatever is made of it, it raises nothing
        assert got.reason in ("", "bad_protocol", "truncated")


def test_f6_an_answer_that_is_no_http_is_named(stage: Any) -> None:
    for said in (
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>HTTP/0.9</html>",
        b"\x15\x03\x01\0\x02\x02\x46",
        b"HTTP/9.9 200 OK\r\n\r\n",
    ):
        assert stage.fetch(said).reason == "bad_protocol"


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"X-%d: y\r\n" % number for number in range(10_000)),
        b"X-Large: " + b"y" * 1_000_000 + b"\r\n",
        b"X" * 1_000_000 + b": y\r\n",
        b"X-Folded: a\r\n" + b" b\r\n" * 100_000,
    ],
    ids=["10,000 headers", "1 MB value", "1 MB name", "folded for ever"],
)
def test_f7_a_giant_head_is_an_error_in_little_memory(stage: Any, head: bytes) -> None:
    tracemalloc.start()
    try:
        got = stage.fetch(OK + head + b"\r\nbody")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (got.reason, got.body) == ("bad_protocol", b"")
    assert peak < 8_000_000


def test_f7_an_endless_head_is_cut(stage: Any) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        while True:
            writer.write(b"X: y\r\n" * 10)
            await writer.drain()

    assert stage.fetch(endless).reason == "bad_protocol"


def test_f7_odd_header_names_are_an_error_and_odd_values_are_not(stage: Any) -> None:
    assert stage.fetch(OK + b"X\xff\xfe: y\r\n\r\nbody").reason == "bad_protocol"
    assert stage.fetch(OK + b"X Y: y\r\n\r\nbody").reason == "bad_protocol"
    got = stage.fetch(OK + b'X: \xff\xfe\xe2\x80\xae\r\nETag: "\xff"\r\n\r\nbody')
    assert (got.body, got.validators.etag) == (b"body", "")


@pytest.mark.parametrize(
    "interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"]
)
def test_f7_interim_answers_are_skipped(stage: Any, interim: bytes) -> None:
    got = stage.fetch(interim * 3 + OK + b"Content-Length: 4\r\n\r\nbody")
    assert (got.status, got.body) == (200, b"body")


def test_f7_a_flood_of_interim_answers_ends_in_time_and_in_little_memory(stage: Any) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)
            await writer.drain()

    tracemalloc.start()
    try:
        got = stage.fetch(flood, limits={"seconds": 4.0})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.reason == "bad_protocol"
    assert got.took < 4
    assert peak < 20_000_000


def test_f7_another_protocol_that_nobody_asked_for_is_an_error(stage: Any) -> None:
    said = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    assert stage.fetch(said).reason == "bad_protocol"


@pytest.mark.parametrize(
    "said",
    [
        b"5;x=" + b"y" * 2_000_000,
        b"5\r\nhello\r\n0\r\nX: " + b"y" * 2_000_000,
        b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 400,
    ],
    ids=["an extension of a chunk", "a line after the body", "lines after the body"],
)
def test_f7_what_is_said_beside_chunks_is_bounded_too(stage: Any, said: bytes) -> None:
    got = stage.fetch(OK + b"Transfer-Encoding: chunked\r\n\r\n" + said + b"\r\n\r\n")
    assert (got.reason, got.body) == ("bad_protocol", b"")


def test_f5_a_body_in_chunks_comes_whole(stage: Any) -> None:
    said = b"".join(b"%x\r\n%b\r\n" % (size, b"x" * size) for size in (1, 70_000, 3)) + b"0\r\nX-Sum: 1\r\n\r\n"
    got = stage.fetch(OK + b"Transfer-Encoding: chunked\r\n\r\n" + said)
    assert (got.body == b"x" * 70_004, got.received, got.reason) == (True, 70_004, "")
    assert stage.fetch(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + said).reason == "bad_protocol"


PAGE = b"<html><body><p>A page about something, long enough to have a text.</p></body></html>"
WHOLE = OK + b'ETag: "2"\r\nContent-Length: %d\r\n\r\n' % len(PAGE) + PAGE
MARK = compare(
    Validators(), Fetched("", 0.0, 0.0, status=200, body=PAGE, content_type="text/html")
).validators.fingerprint


def not_modified(etag: str = "") -> bytes:
    return f"HTTP/1.1 304 Not Modified\r\n{f'ETag: {etag}' if etag else 'X: y'}\r\n\r\n".encode()


def test_f9_304_without_a_copy_is_asked_again_without_validators(stage: Any) -> None:
    got = stage.fetch([not_modified(), WHOLE])
    assert (got.status, got.body) == (200, PAGE)
    assert len(stage.requests) == 2
    assert not any("If-None-Match" in request for request in stage.requests)
    assert "Cache-Control: no-cache" in stage.requests[1]


def test_f9_304_for_ever_without_a_copy_is_a_failure_not_an_empty_page(stage: Any) -> None:
    got = stage.fetch(not_modified())
    assert (got.reason, got.body, len(stage.requests)) == ("not_modified_without_copy", b"", 2)
    assert compare(Validators(), got).outcome is Outcome.FAILED


def test_f9_304_with_another_etag_is_asked_again_and_the_body_decides(stage: Any) -> None:
    for mark, outcome in ((MARK, Outcome.UNCHANGED), (MARK + 1, Outcome.CHANGED)):
        stage.requests.clear()
        known = Validators(etag='"1"', last_modified=DAY, fingerprint=mark)
        got = stage.fetch([not_modified('"2"'), WHOLE], known=known)
        assert (got.status, got.body) == (200, PAGE)
        assert 'If-None-Match: "1"' in stage.requests[0]
        assert "If-" not in stage.requests[1]
        assert compare(known, got).outcome is outcome


@pytest.mark.parametrize("answered", ["", '"1"', 'W/"1"', '"1-gzip"'])
def test_f9_weak_and_strong_tags_of_one_version_agree(stage: Any, answered: str) -> None:
    known = Validators(etag='"1"', fingerprint=7)
    got = stage.fetch(not_modified(answered), known=known)
    assert (got.status, got.reason, len(stage.requests)) == (304, "", 1)
    assert compare(known, got).outcome is Outcome.UNCHANGED


def test_f9_the_same_etag_with_another_body_is_a_change(stage: Any) -> None:
    known = Validators(etag='"2"', fingerprint=MARK + 1)
    got = stage.fetch(WHOLE, known=known)
    assert got.validators.etag == '"2"'
    assert compare(known, got).outcome is Outcome.CHANGED


def test_f9_last_modified_serves_where_there_is_no_etag(stage: Any) -> None:
    got = stage.fetch(not_modified(), known=Validators(last_modified=DAY, fingerprint=7))
    assert f"If-Modified-Since: {DAY}" in stage.requests[0]
    assert got.status == 304


def test_f9_validators_that_cannot_be_sent_are_left_out(stage: Any) -> None:
    got = stage.fetch(WHOLE, known=Validators(etag='"1\r\nX: y', last_modified="\udcff", fingerprint=7))
    assert got.body == PAGE
    assert "If-" not in stage.requests[0]
    assert "X: y" not in stage.requests[0]


@pytest.mark.parametrize(
    "said",
    [
        "Sun, 06 Nov 2095 08:49:37 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sun, 31 Feb 2020 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "yesterday",
        "0",
        "-1",
        "Sun, 06 Nov 99999999999 08:49:37 GMT",
        "",
    ],
)
def test_f10_dates_that_cannot_be_true_are_not_asked_with(stage: Any, said: str) -> None:
    got = stage.fetch(OK + f"Last-Modified: {said}\r\nContent-Length: 4\r\n\r\nbody".encode())
    assert (got.body, got.validators) == (b"body", Validators())


def test_f10_what_is_not_believed_is_told_once_per_host(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    odd = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 9223372036854775808\r\nLast-Modified: never\r\n"
    with caplog.at_level(logging.INFO, logger="afresh.fetch"):
        got = stage.fetch_all(OK + odd + b"Content-Length: 4\r\nConnection: close\r\n\r\nbody", urls=TWICE)
    assert [each.body for each in got] == [b"body", b"body"]
    told = [record.getMessage() for record in caplog.records if record.name == "afresh.fetch"]
    assert sorted(line.split()[3] for line in told) == ["Age", "Date", "Last-Modified"]


@pytest.mark.parametrize(
    "cookies",
    [
        b"Set-Cookie: a=b; Domain=com\r\n",
        b"Set-Cookie: a=b; Domain=co.uk\r\n",
        b"Set-Cookie: a=b; Domain=example.org\r\n",
        b"Set-Cookie: a=b; Domain=127.0.0.1; Path=/\r\n",
        b"".join(b"Set-Cookie: c%d=%s; Path=/\r\n" % (n, b"v" * 4000) for n in range(200)),
    ],
    ids=["com", "co.uk", "another host", "its own", "many"],
)
def test_f12_no_cookie_is_ever_kept(stage: Any, cookies: bytes) -> None:
    got = stage.fetch_all(OK + cookies + b"Content-Length: 4\r\nConnection: close\r\n\r\nbody", urls=TWICE)
    assert [each.body for each in got] == [b"body", b"body"]
    assert len(stage.requests) == 2
    assert not any("cookie" in request.lower() for request in stage.requests)


def test_f12_too_many_and_too_large_cookies_are_a_bad_head(stage: Any) -> None:
    for cookies in (
        b"Set-Cookie: a=b\r\n" * 3000,
        b"Set-Cookie: a=" + b"b" * 1_000_000 + b"\r\n",
        b"Set-Cookie: a=\0\r\n",
    ):
        assert stage.fetch(OK + cookies + b"\r\nbody").reason == "bad_protocol"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("-5", None),
        ("1000000000", 1e9),
        ("9" * 400, 1e9),
        ("1e400", None),
        ("\u0663", None),
        ("nan", None),
        ("inf", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Sun, 06 Nov 9999 08:49:37 GMT", 1e9),
        ("soon", None),
        ("", None),
    ],
)
def test_f14_retry_after_is_a_sane_number_or_none(stage: Any, status: int, said: str, seconds: float | None) -> None:
    head = f"HTTP/1.1 {status} Busy\r\nRetry-After: {said}\r\nContent-Length: 0\r\n\r\n"
    got = stage.fetch(head.encode())
    assert (got.status, got.retry_after, got.reason) == (status, seconds, "")
    assert compare(Validators(), got).outcome is Outcome.BUSY
    polite = Politeness()
    rest = polite.gap(got.took, failures=1, retry_after=got.retry_after)
    assert polite.shortest_gap <= rest <= polite.longest_back_off


def test_the_request_says_who_asks_and_nothing_else(stage: Any) -> None:
    stage.fetch(WHOLE)
    lines = stage.requests[0].strip().split("\r\n")
    assert lines[0] == "GET / HTTP/1.1"
    assert sorted(line.split(":")[0] for line in lines[1:]) == ["Accept", "Accept-Encoding", "Host", "User-Agent"]
    assert "User-Agent: test/1" in lines


def test_validators_longer_than_their_limit_are_not_kept() -> None:
    kept = headers.validators({"ETag": '"' + "a" * 5000 + '"'}, now=1e9)
    assert kept == Validators()
