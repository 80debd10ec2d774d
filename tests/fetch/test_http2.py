"""HTTP/2: spoken where it is offered, and the same hostile world on it."""

import asyncio
import gzip
import shutil
import socket
import struct
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hpack
import pytest
from hyperframe.frame import ContinuationFrame, DataFrame, ExtensionFrame, HeadersFrame, PingFrame, SettingsFrame
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afresh.fetch import Http, Limits, frames, packed
from afresh.fetch.answer import Answer as Given
from afresh.fetch.answer import Question
from afresh.fetch.http2 import STREAM_WINDOW, WINDOW, Http2
from afresh.fetch.inflate import Spoiled
from afresh.types import Fetched, Validators
from certificates import serving, trusting
from http2_server import Http2Server, Talk

OK = [(":status", "200"), ("content-type", "text/html"), ("etag", '"7"')]
PAGE = b"<html><body><p>A page.</p></body></html>"
Answer = Callable[[Talk, int, int], Awaitable[None]]


async def page(talk: Talk, stream: int, number: int) -> None:
    talk.head(stream, OK)
    await talk.body(stream, PAGE)


class Play:
    """A server and a fetcher that trusts it."""

    def __init__(self, certificates: Path) -> None:
        self.certificates = certificates

    def fetch(self, answer: Answer | Http2Server, **options: Any) -> Fetched:
        return self.fetch_all(answer, **options)[0]

    def fetch_all(
        self,
        answer: Answer | Http2Server,
        *,
        paths: tuple[str, ...] = ("/",),
        at_once: bool = False,
        known: Validators | None = None,
        **limits: Any,
    ) -> list[Fetched]:
        """Fetch one path after another, or the first one and then all others at once."""
        self.server = answer if isinstance(answer, Http2Server) else Http2Server(answer)

        async def go() -> list[Fetched]:
            faults: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
            port = await self.server.start(serving(self.certificates, "good", "h2", "http/1.1"))
            http = Http(
                user_agent="test/1",
                allow_private=True,
                tls=trusting(self.certificates),
                limits=Limits(**{"seconds": 5.0, **limits}),
            )
            asking = [http.fetch(f"https://site.localhost:{port}{path}", known or Validators()) for path in paths]
            try:
                got = [await asking[0]]
                if at_once:
                    return [*got, *await asyncio.gather(*asking[1:])]
                return got + [await each for each in asking[1:]]
            finally:
                await http.close()
                self.server.stop()
                await asyncio.sleep(0)
                assert not faults

        got = asyncio.run(go())
        assert self.server.complaints == []
        return got


@pytest.fixture
def play(certificates: Path) -> Play:
    return Play(certificates)


def test_http2_is_spoken_where_it_is_offered(play: Play) -> None:
    got = play.fetch(page, paths=("/a%20b?c=|",))
    assert (got.status, got.body, got.reason) == (200, PAGE, "")
    assert (got.content_type, got.validators.etag, got.received) == ("text/html", '"7"', len(PAGE))
    assert [talk.protocol for talk in play.server.talks] == ["h2"]
    (asked,) = play.server.requests
    assert [name for name, _ in asked] == [
        *(":method", ":scheme", ":authority", ":path"),
        *("user-agent", "accept", "accept-encoding"),
    ]
    sent = dict(asked)
    assert (sent[":method"], sent[":scheme"], sent[":path"]) == ("GET", "https", "/a%20b?c=|")
    assert sent[":authority"].startswith("site.localhost:")
    assert sent["user-agent"] == "test/1"


def test_what_is_known_is_asked_about(play: Play) -> None:
    async def unchanged(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, [(":status", "304"), ("etag", '"7"'), ("content-length", "4000")], end=True)

    got = play.fetch(unchanged, known=Validators(etag='"7"', fingerprint=1))
    assert (got.status, got.body, got.reason) == (304, b"", "")
    assert ("if-none-match", '"7"') in play.server.requests[0]


def test_a_connection_is_used_again_and_for_many_at_once(play: Play) -> None:
    async def slow(talk: Talk, stream: int, number: int) -> None:
        await asyncio.sleep(0.05)
        await page(talk, stream, number)

    got = play.fetch_all(slow, paths=("/",) * 9, at_once=True)
    assert [each.body for each in got] == [PAGE] * 9
    assert [talk.most_open for talk in play.server.talks] == [8]


def test_questions_to_one_host_are_limited(play: Play) -> None:
    async def slow(talk: Talk, stream: int, number: int) -> None:
        await asyncio.sleep(0.02)
        await page(talk, stream, number)

    got = play.fetch_all(slow, paths=("/",) * 13, at_once=True, per_host=3)
    assert [each.body for each in got] == [PAGE] * 13
    assert [talk.most_open for talk in play.server.talks] == [3]


def test_a_server_that_wants_less_at_once_is_obeyed(play: Play) -> None:
    async def slow(talk: Talk, stream: int, number: int) -> None:
        await asyncio.sleep(0.02)
        await page(talk, stream, number)

    got = play.fetch_all(Http2Server(slow, most_streams=2), paths=("/",) * 9, at_once=True)
    assert [each.body for each in got] == [PAGE] * 9
    assert max(talk.most_open for talk in play.server.talks) == 2


def test_a_server_that_remembers_no_headers_is_obeyed(play: Play) -> None:
    got = play.fetch_all(Http2Server(page, table=0), paths=("/",) * 3)
    assert [each.body for each in got] == [PAGE] * 3


@pytest.mark.parametrize("padding", [None, 200])
def test_bodies_larger_than_every_window_come_whole(play: Play, padding: int | None) -> None:
    body = bytes(range(256)) * (WINDOW // 256 // 2)

    async def large(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, [*OK, ("content-length", str(len(body)))])
        await talk.body(stream, body, padding=padding)

    got = play.fetch_all(large, paths=("/",) * 3, seconds=30.0)
    assert len(body) > 4 * STREAM_WINDOW
    assert 3 * len(body) > WINDOW
    assert [each.body == body for each in got] == [True] * 3
    assert len(play.server.talks) == 1


def test_redirects_and_trailers_and_interim_answers(play: Play) -> None:
    async def answer(talk: Talk, stream: int, number: int) -> None:
        if number == 1:
            talk.head(stream, [(":status", "302"), ("location", "/there")], end=True)
            return
        talk.head(stream, [(":status", "103"), ("link", "</style.css>")])
        talk.head(stream, OK)
        await talk.body(stream, PAGE, end=False)
        talk.head(stream, [("x-checksum", "1")], end=True)

    got = play.fetch(answer)
    assert (got.body, got.location.rpartition("/")[2], len(play.server.talks)) == (PAGE, "there", 1)


def test_a_server_that_announces_its_end_is_heard_out(play: Play) -> None:
    """As servers do after some number of questions: the answer under way comes whole, the next goes elsewhere."""

    async def last(talk: Talk, stream: int, number: int) -> None:
        if number % 2 == 0:
            talk.transport.write(frames.frame(frames.GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
            await asyncio.sleep(0.02)
        await page(talk, stream, number)

    got = play.fetch_all(last, paths=("/",) * 6)
    assert [each.body for each in got] == [PAGE] * 6
    assert (len(play.server.talks), len(play.server.requests)) == (3, 6)


@pytest.mark.parametrize("how", ["goaway", "refused"])
def test_a_question_that_was_not_looked_at_is_asked_once_more(play: Play, how: str) -> None:
    async def shy(talk: Talk, stream: int, number: int) -> None:
        if number > 1:
            await page(talk, stream, number)
        elif how == "goaway":
            talk.transport.write(frames.frame(frames.GOAWAY, 0, 0, struct.pack(">II", 0, 0)))
        else:
            talk.h2.reset_stream(stream, frames.REFUSED_STREAM)
            talk.flush()

    assert play.fetch(shy).body == PAGE
    assert len(play.server.requests) == 2

    async def shyer(talk: Talk, stream: int, number: int) -> None:
        await shy(talk, stream, 1)

    assert play.fetch(shyer).reason == "reset"
    assert len(play.server.requests) == 2


def test_a_connection_that_closed_while_idle_says_nothing_about_the_page(play: Play) -> None:
    async def once(talk: Talk, stream: int, number: int) -> None:
        if stream == 1:
            await page(talk, stream, number)
        else:
            talk.transport.close()

    got = play.fetch_all(once, paths=("/a", "/b"))
    assert [each.body for each in got] == [PAGE] * 2
    assert [dict(each)[":path"] for each in play.server.requests] == ["/a", "/b", "/b"]


@pytest.mark.parametrize("status", ["404", "302", "200"])
def test_a_body_that_nobody_reads_does_not_cost_the_connection(play: Play, status: str) -> None:
    async def late(talk: Talk, stream: int, number: int) -> None:
        where = [("location", "/elsewhere")] if status == "302" and number % 2 else []
        talk.head(stream, [(":status", "404" if status == "302" and not where else status), *where])
        await asyncio.sleep(0.03)
        await talk.body(stream, b"x" * 150_000)

    got = play.fetch_all(late, paths=("/",) * 3, body=20_000)
    assert {(each.status, each.reason) for each in got} == ({(200, "too_large")} if status == "200" else {(404, "")})
    assert len(play.server.talks) == 1
    assert len(play.server.resets) == len(play.server.requests)


def test_a_connection_that_fell_silent_is_not_asked_again(play: Play) -> None:
    async def silent(talk: Talk, stream: int, number: int) -> None:
        if len(play.server.talks) > 1:
            await page(talk, stream, number)

    got = play.fetch_all(silent, paths=("/", "/"), seconds=0.4)
    assert [each.reason or each.body for each in got] == ["timeout", PAGE]


def test_f1_an_endless_body_is_cut(play: Play) -> None:
    async def zeros(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, OK)
        while not talk.lost:
            await talk.body(stream, b"\0" * 60_000, end=False)

    got = play.fetch(zeros, body=1_000_000)
    assert (got.reason, got.body, got.status) == ("too_large", b"", 200)
    assert 1_000_000 < got.received < 1_200_000
    announced = [*OK, ("content-length", "99999999999")]

    async def announce(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, announced)

    got = play.fetch(announce, body=1000)
    assert (got.reason, got.received) == ("too_large", 0)


def test_f2_a_bomb_stops_at_the_limit(play: Play) -> None:
    async def bomb(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, [*OK, ("content-encoding", "gzip")])
        await talk.body(stream, gzip.compress(b"\0" * 3_000_000 if number == 1 else PAGE))

    large, small = play.fetch_all(bomb, paths=("/", "/"), body=1_000_000)
    assert (large.reason, small.body) == ("too_large", PAGE)


@pytest.mark.parametrize("slow", ["head", "body"])
def test_f3_a_drip_meets_the_deadline(play: Play, slow: str) -> None:
    async def drip(talk: Talk, stream: int, number: int) -> None:
        if slow == "body":
            talk.head(stream, OK)
        for _ in range(200):
            if slow == "body":
                talk.h2.send_data(stream, b"x")
            else:
                talk.h2.ping(b"12345678")
            talk.flush()
            await asyncio.sleep(0.02)

    got = play.fetch(drip, seconds=0.4)
    assert (got.reason, got.took < 2) == ("timeout", True)
    assert (got.received > 0, got.status) == ((True, 200) if slow == "body" else (False, 0))


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("how", ["stream", "connection", "end"])
def test_f4_a_break_is_named(play: Play, how: str, started: bool) -> None:
    async def broken(talk: Talk, stream: int, number: int) -> None:
        if started:
            talk.head(stream, OK)
            await talk.body(stream, PAGE, end=False)
            await asyncio.sleep(0.05)
        if how == "stream":
            talk.h2.reset_stream(stream, 2)
            talk.flush()
        elif how == "end":
            talk.transport.close()
        else:
            plain = talk.transport.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            talk.transport.abort()

    got = play.fetch(broken)
    assert got.body == b""
    assert got.reason == ("truncated" if started and how == "end" else "reset")


@pytest.mark.parametrize(
    ("length", "reason"),
    [("40", ""), ("41", "truncated"), ("39", "bad_protocol"), ("+40", "bad_protocol"), ("0x28", "bad_protocol")],
)
def test_f5_a_length_must_be_true(play: Play, length: str, reason: str) -> None:
    async def lie(talk: Talk, stream: int, number: int) -> None:
        talk.head(stream, [*OK, ("content-length", length)])
        await talk.body(stream, PAGE)

    assert len(PAGE) == 40
    got = play.fetch(lie)
    assert (got.reason, got.body) == (reason, b"" if reason else PAGE)


@pytest.mark.parametrize(
    "head",
    [
        [("content-type", "text/html")],
        [(":status", "200"), (":status", "200")],
        [("x", "y"), (":status", "200")],
        [(":status", "20")],
        [(":status", "2000")],
        [(":status", "099")],
        [(":status", "101")],
        [(":status", "+20")],
        [*OK, (":path", "/")],
        [*OK, ("Upper", "case")],
        [*OK, ("", "no name")],
        [*OK, ("a b", "c")],
        [*OK, ("connection", "close")],
        [*OK, ("transfer-encoding", "chunked")],
        [*OK, ("x", "a\0b")],
        [*OK, ("x", "a\rb")],
        [*OK, ("x", "a\nb")],
        [*OK, ("content-length", "40"), ("content-length", "40")],
        [*OK, *[("x", "y")] * 300],
        [*OK, ("x", "y" * 17_000)],
    ],
    ids=lambda head: repr(head[-1])[:40],
)
def test_f6_a_head_that_is_none(play: Play, head: Any) -> None:
    async def odd(talk: Talk, stream: int, number: int) -> None:
        if number == 1:
            talk.head(stream, head)
            await talk.body(stream, PAGE)
        else:
            await page(talk, stream, number)

    got, after = play.fetch_all(odd, paths=("/", "/"))
    assert (got.reason, got.body) == ("bad_protocol", b"")
    assert after.body == PAGE  # the next one is not harmed


def test_f7_a_flood_of_interim_answers_ends(play: Play) -> None:
    async def flood(talk: Talk, stream: int, number: int) -> None:
        for _ in range(100):
            talk.head(stream, [(":status", "103"), ("link", "</a>")])

    assert play.fetch(flood).reason == "bad_protocol"


FIRST = SettingsFrame().serialize()


def bomb(size: int) -> bytes:
    """A head of few bytes that is large: one header is remembered, and referred to again and again."""
    return bytes(hpack.Encoder().encode([(":status", "200"), ("x", "y" * 3900)])) + b"\xbe" * size


def whole(frame: Any, *flags: str, data: bytes = b"") -> bytes:
    for flag in flags:
        frame.flags.add(flag)
    frame.data = data
    return bytes(frame.serialize())


STATUS = bytes(hpack.Encoder().encode([(":status", "200")]))
HOSTILE = {
    "no settings first": PingFrame(0, b"12345678").serialize(),
    "a frame too large": FIRST + frames.frame(frames.DATA, 0, 1, b"x" * 16_385),
    "a push": FIRST + frames.frame(frames.PUSH_PROMISE, 4, 1, struct.pack(">I", 2) + STATUS),
    "half a setting": frames.frame(frames.SETTINGS, 0, 0, b"12345"),
    "settings of a stream": frames.frame(frames.SETTINGS, 0, 1),
    "a setting out of range": FIRST + frames.settings({frames.INITIAL_WINDOW: 1 << 31}),
    "a short ping": FIRST + frames.frame(frames.PING, 0, 0, b"1"),
    "a short farewell": FIRST + frames.frame(frames.GOAWAY, 0, 0, b"1"),
    "a short reset": FIRST + frames.frame(frames.RST_STREAM, 0, 1, b"1"),
    "data before the head": FIRST + whole(DataFrame(1), data=b"x"),
    "data nobody asked for": FIRST + whole(DataFrame(7), data=b"x"),
    "a head nobody asked for": FIRST + whole(HeadersFrame(2), "END_HEADERS", data=STATUS),
    "a continuation of nothing": FIRST + whole(ContinuationFrame(1), "END_HEADERS", data=STATUS),
    "an interrupted head": FIRST + whole(HeadersFrame(1), data=STATUS) + PingFrame(0, b"12345678").serialize(),
    "an endless head": FIRST + whole(HeadersFrame(1), data=STATUS) + whole(ContinuationFrame(1), data=b"\0" * 9) * 9000,
    "a head of nothing": FIRST + whole(HeadersFrame(1), data=STATUS) + whole(ContinuationFrame(1)) * 2000,
    "a head that explodes": FIRST + whole(HeadersFrame(1), "END_HEADERS", data=bomb(10_000)),
    "a head that is no code": FIRST + whole(HeadersFrame(1), "END_HEADERS", data=b"\xff" * 20),
    "padding only": FIRST + frames.frame(frames.HEADERS, 0x0C, 1, b"\xff"),
    "pings for ever": FIRST + PingFrame(0, b"12345678").serialize() * 5000,
    "settings for ever": FIRST * 5000,
    "nothing for ever": FIRST + whole(HeadersFrame(1), "END_HEADERS", data=STATUS) + whole(DataFrame(1)) * 5000,
    "more than there is room for": FIRST
    + whole(HeadersFrame(1), "END_HEADERS", data=STATUS)
    + whole(DataFrame(1), data=b"x" * 16_384) * (STREAM_WINDOW // 16_384 + 1),
    "HTTP/1.1": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
}


def greet(play: Play, said: bytes, **limits: Any) -> Fetched:
    """A server that says just this, whatever it is told."""
    return play.fetch(Http2Server(page, greeting=said), **limits)


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_what_breaks_the_rules_is_named(play: Play, said: bytes) -> None:
    got = greet(play, said, body=100_000)
    assert got.body == b""
    # A body without end meets the body's own limit first, if it is read between.
    assert got.reason == "bad_protocol" or (got.reason, said) == ("too_large", HOSTILE["more than there is room for"])


def alone(said: bytes, *, drop: bool) -> tuple[Given, bool, bytes]:
    """A connection that is asked once, by nobody who reads: the answer, whether it is over, what the server hears."""

    async def go() -> tuple[Given, bool, bytes]:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Http2({}, memoryview(bytearray(1 << 16))), sock=ours)
        answer = connection.ask(Question("a", "/", {}))
        if drop:
            connection.drop(answer)
        await loop.sock_sendall(theirs, said)
        await asyncio.sleep(0.05)
        heard, over = await loop.sock_recv(theirs, 1 << 20), answer.over
        connection.close()
        theirs.close()
        await connection.gone
        return answer, over, heard

    return asyncio.run(go())


BODY = FIRST + whole(HeadersFrame(1), "END_HEADERS", data=STATUS)
PIECE = whole(DataFrame(1), data=b"x" * 16_384)


def test_no_more_is_taken_in_than_there_is_room_for() -> None:
    full, over, _ = alone(BODY + PIECE * (STREAM_WINDOW // 16_384), drop=False)
    assert (over, full.received) == (False, STREAM_WINDOW)
    answer, over, heard = alone(BODY + PIECE * (STREAM_WINDOW // 16_384 + 1), drop=False)
    assert over
    assert frames.frame(frames.GOAWAY, 0, 0, struct.pack(">II", 0, 1)) in heard
    with pytest.raises(Spoiled, match="bad_protocol"):
        asyncio.run(answer.more())


def test_what_nobody_waits_for_still_makes_room_for_others() -> None:
    _, _, heard = alone(BODY + PIECE * (WINDOW // 2 // 16_384), drop=True)
    assert frames.frame(frames.WINDOW_UPDATE, 0, 0, frames.number(WINDOW // 2)) in heard


def test_a_head_that_explodes_stops_while_it_does() -> None:
    with pytest.raises(frames.BadFrame, match="large"):
        packed.Unpacker().lines(bomb(30))


def test_unknown_frames_and_settings_are_ignored(play: Play) -> None:
    said = (
        frames.settings({0x77: 5, frames.MOST_STREAMS: 3})
        + frames.frame(0x55, 0xFF, 9, b"?")
        + frames.frame(frames.PRIORITY, 0, 1, b"\0\0\0\0\1")
        + frames.frame(frames.WINDOW_UPDATE, 0, 0, frames.number(5))
        + frames.frame(frames.HEADERS, 0x2C, 1, b"\2" + b"\0\0\0\0\1" + STATUS + b"\0\0")  # padded, with a priority
        + whole(DataFrame(1), "END_STREAM", data=PAGE)
    )
    assert greet(play, said).body == PAGE


FRAMES = st.tuples(st.integers(0, 11), st.integers(0, 255), st.sampled_from([0, 1, 1, 1, 2, 3]), st.binary(max_size=40))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FRAMES, max_size=12), st.binary(max_size=20), st.booleans())
def test_no_frames_whatever_raise_anything(play: Play, said: Any, rest: bytes, begun: bool) -> None:
    start = FIRST + (whole(HeadersFrame(1), "END_HEADERS", data=STATUS) if begun else b"")
    got = greet(play, start + b"".join(frames.frame(*each) for each in said) + rest, seconds=0.05)
    assert got.reason in ("", "timeout", "reset", "bad_protocol", "truncated")


@settings(deadline=None)
@given(st.lists(FRAMES, max_size=8), st.integers(1, 30))
def test_frames_are_read_as_another_implementation_writes_them(said: Any, cut: int) -> None:
    written = []
    for kind, flags, stream, payload in said:
        other = ExtensionFrame(kind, stream, flag_byte=flags)
        other.parse_body(memoryview(payload))
        written.append(other.serialize())
        assert frames.frame(kind, flags, stream, payload) == written[-1]
    data, reader = b"".join(written), frames.Frames()
    assert [each for at in range(0, len(data), cut) for each in reader.feed(data[at : at + cut])] == said


TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=400)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_headers_are_understood_by_another_implementation(host: str, path: str, more: dict[str, str]) -> None:
    decoder = hpack.Decoder()
    block = packed.NO_TABLE + packed.question(host, path) + packed.fields(more.items())
    pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)]
    assert list(decoder.decode(block)) == pseudo + [(name.lower(), value) for name, value in more.items()]


WORDS = st.sampled_from([b"", b"x", b"date", b"server", b":status", b"200", b"\0\xff" * 9, b"long" * 300]) | st.binary(
    max_size=9
)
BLOCKS = st.lists(st.tuples(st.lists(st.tuples(WORDS, WORDS), max_size=8), st.booleans(), st.integers(0, 4096)))


@settings(deadline=None)
@given(BLOCKS)
def test_headers_of_another_implementation_are_understood_one_block_after_another(blocks: Any) -> None:
    encoder, unpacker = hpack.Encoder(), packed.Unpacker()
    for headers, huffman, table in blocks:
        encoder.header_table_size = table
        assert unpacker.lines(encoder.encode(headers, huffman=huffman)) == headers


PIECES = st.sampled_from(
    [b"\x82", b"\xbe", b"\x40\1x\1y", b"\x0f\x2b\x83\xa5\x63\x5f", b"\x20", b"\x3f\xe1\x1f", b"\x5f"]
)


@settings(deadline=None, max_examples=500)
@given(st.lists(st.lists(PIECES | st.binary(max_size=4), max_size=8).map(b"".join), max_size=3))
def test_any_bytes_mean_the_same_headers_to_another_implementation_or_none_to_both(blocks: list[bytes]) -> None:
    decoder, unpacker = hpack.Decoder(packed.LARGEST_HEAD), packed.Unpacker()
    for block in blocks:
        try:
            expected = [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
        except hpack.HPACKError:
            with pytest.raises(frames.BadFrame):
                unpacker.lines(block)
            return
        assert unpacker.lines(block) == expected


NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
CONFIGURATION = """
master_process off; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  log_format spoken "$server_protocol $connection $request_uri $status"; access_log {folder}/log spoken;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5; keepalive_requests 4;
  server {{ listen 127.0.0.1:{port} ssl http2; root {folder}/pages; gzip on; gzip_types text/plain;
    ssl_certificate {certificates}/good.pem; ssl_certificate_key {certificates}/good.key; }}
}}
"""


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_a_common_server_is_understood(certificates: Path, tmp_path: Path) -> None:
    """nginx, which closes after four questions: no page is lost, and each is asked for once."""
    pages = {f"/{number}.txt": f"{number} and ".encode() * 20_000 for number in range(10)}
    (tmp_path / "pages").mkdir()
    for path, body in pages.items():
        (tmp_path / "pages" / path[1:]).write_bytes(body)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    configuration = CONFIGURATION.format(folder=tmp_path, port=port, certificates=certificates)
    (tmp_path / "conf").write_text(configuration)

    async def go() -> list[Fetched]:
        http = Http(user_agent="test/1", allow_private=True, tls=trusting(certificates))
        for _ in range(100):
            if (await http.fetch(f"https://site.localhost:{port}/none", Validators())).status:
                break
            await asyncio.sleep(0.05)
        got = [await http.fetch(f"https://site.localhost:{port}{path}", Validators()) for path in pages]
        await http.close()
        return got

    assert NGINX is not None
    nginx = subprocess.Popen([NGINX, "-c", str(tmp_path / "conf"), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        got = asyncio.run(go())
    finally:
        nginx.terminate()
        nginx.wait()
    assert [each.body for each in got] == list(pages.values())
    assert got[0].received < len(got[0].body) / 10  # it came compressed
    log = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert {protocol for protocol, *_ in log} == {"HTTP/2.0"}
    assert [path for _, _, path, _ in log] == ["/none", *pages]
    assert len({connection for _, connection, *_ in log}) == 3
