"""The message layer on real sockets: framing, pipelines, HEAD, streams, limits, the end."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable

from serving import Heard, Told, serving

FRESH = {"Cache-Control": "max-age=60"}


def by_path(heard: Heard) -> Told:
    return Told(headers=FRESH, body=heard.target.encode())


async def _pipelined() -> None:
    async with serving(by_path) as proxy:
        await proxy.ask("/1")
        reader = await proxy.reader()
        # 1 is there, 2 and 3 must be fetched, 4 is HEAD, 5 is there by then.
        lines = [("GET", 1), ("GET", 2), ("GET", 1), ("GET", 3), ("HEAD", 4), ("GET", 1)]
        await reader.send(b"".join(b"%s /%d HTTP/1.1\r\nHost: a\r\n\r\n" % (m.encode(), n) for m, n in lines))
        bodies = [(await reader.answer(method=method)).body for method, _ in lines]
        assert bodies == [b"/1", b"/2", b"/1", b"/3", b"", b"/1"]
        assert [heard.method for heard in proxy.origin.heard] == ["GET", "GET", "GET", "HEAD"]
        reader.close()


def test_answers_come_in_the_order_of_their_requests() -> None:
    asyncio.run(_pipelined())


async def _streamed() -> None:
    go_on = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async with serving(lambda heard: Told(headers=FRESH, pieces=pieces)) as proxy:
        readers = [await proxy.reader() for _ in range(3)]
        for reader in readers:
            await reader.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for reader in readers:  # before the origin has sent the rest
            head = await asyncio.wait_for(reader.reader.readuntil(b"\r\n\r\n"), 5)
            assert b"Transfer-Encoding: chunked" in head
            assert await asyncio.wait_for(reader.reader.readexactly(10), 5) == b"5\r\nfirst\r\n"
        go_on.set()
        for reader in readers:
            assert await reader.reader.readexactly(16) == b"6\r\nsecond\r\n0\r\n\r\n"[:16]
            reader.close()
        assert len(proxy.origin.heard) == 1
        again = await proxy.ask()
        assert (again.body, again["content-length"]) == (b"firstsecond", "11")
        assert "hit" in again["cache-status"]


def test_a_body_is_sent_on_while_it_arrives_to_all_who_wait() -> None:
    asyncio.run(_streamed())


async def _cut_off() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    async with serving(lambda heard: Told(headers=FRESH, pieces=pieces)) as proxy:
        got = await proxy.raw(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert got.endswith(b"4\r\nhalf\r\n")
        assert not got.endswith(b"0\r\n\r\n")  # it does not look whole
        assert len(proxy.parts.service.cache) == 0


def test_half_an_answer_never_looks_whole_and_is_not_kept() -> None:
    asyncio.run(_cut_off())


async def _bodies() -> None:
    async with serving(lambda heard: Told(body=heard.body)) as proxy:
        sent = bytes(range(256)) * 8000
        got = await proxy.ask("/", method="POST", body=sent)
        assert got.body == sent
        reader = await proxy.reader()
        await reader.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        await asyncio.sleep(0.05)
        await reader.send(b"3\r\nabc\r\n4;x=1\r\ndefg\r\n0\r\nTrailer: no\r\n\r\n")
        chunked = await reader.answer()
        assert (chunked.body, chunked.interim) == (b"abcdefg", [100])
        assert "trailer" not in proxy.origin.heard[-1].headers
        reader.close()


def test_bodies_of_requests_go_on_whole() -> None:
    asyncio.run(_bodies())


async def _drained() -> None:
    async with serving(lambda heard: Told(wait=0.5, body=b"x" * 1000)) as proxy:
        idle, busy = await proxy.reader(), await proxy.reader()
        await busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(proxy.parts.server.stop(5))
        assert await idle.rest() == b""
        got = await busy.answer()
        assert (got.status, len(got.body), got["connection"]) == (200, 1000, "")
        assert await busy.rest() == b""
        await asyncio.wait_for(stopping, 2)
        idle.close()
        busy.close()


def test_a_stop_lets_answers_finish_and_closes_what_is_idle() -> None:
    asyncio.run(_drained())


async def _limits() -> None:
    async with serving(by_path) as proxy:
        long = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"a" * 9000)
        many = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(200)) + b"\r\n"
        large = b"GET / HTTP/1.1\r\nHost: a\r\nA: %b\r\n\r\n" % (b"a" * 40_000)
        for sent, status in ((long, b"414"), (many, b"431"), (large, b"431")):
            got = await proxy.raw(sent)
            assert re.match(rb"HTTP/1.1 %b " % status, got), got[:80]
        assert not proxy.origin.heard


def test_heads_are_limited() -> None:
    asyncio.run(_limits())


async def _old() -> None:
    async with serving(by_path) as proxy:
        got = await proxy.raw(b"GET /x HTTP/1.0\r\n\r\n")
        assert got.endswith(b"\r\n\r\n/x")
        assert b"Connection: close" in got
        got = await proxy.raw(b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2, seconds=0.3)
        assert got.count(b"Connection: keep-alive") == 2
        assert got.count(b"\r\n\r\n/x") == 2


def test_old_readers_are_answered() -> None:
    asyncio.run(_old())


async def _ahead() -> None:
    async with serving(lambda heard: Told(headers=FRESH, wait=0.3), strict=False) as proxy:
        service, url = proxy.parts.service, f"{proxy.origin.url}/next"
        site = service.routes.default
        assert site is not None
        fetching = service.ahead(site, url)
        assert fetching is not None
        assert (fetching.wanted, service.asking.for_readers, service.ahead(site, url)) == (False, 0, None)
        await asyncio.sleep(0.1)
        got = await proxy.ask("/next")
        assert (got.status, got.body, fetching.wanted, len(proxy.origin.heard)) == (200, b"hello", True, 1)
        assert "collapsed" in got["cache-status"]
        assert "hit" in (await proxy.ask("/next"))["cache-status"]
        assert service.ahead(site, url) is None
        # One that nobody has joined may be called off: nothing is left of it.
        other = service.ahead(site, f"{proxy.origin.url}/other")
        assert other is not None
        assert other.task is not None
        await asyncio.sleep(0.1)
        other.task.cancel()
        await asyncio.sleep(0.05)
        assert not service.asking.under_way
        assert not service.asking.running
        assert (await proxy.ask("/other")).status == 200


def test_what_is_fetched_ahead_is_joined_by_readers_and_can_be_called_off() -> None:
    asyncio.run(_ahead())


async def _within(coming: Awaitable[bytes], seconds: float) -> bytes:
    try:
        return await asyncio.wait_for(coming, seconds)
    except TimeoutError:
        return b""


async def _in_pieces() -> None:
    """The same requests, cut anywhere, whole ones known from before among them: every answer is to its own request."""
    async with serving(lambda heard: Told(headers=FRESH, body=heard.target.encode())) as proxy:
        asked = [f"GET /{name} HTTP/1.1\r\nHost: a.example\r\n\r\n".encode() for name in ("one", "two", "three")]
        for each in asked * 3:
            await proxy.raw(each, seconds=0.02)
        assert len(proxy.parts.service.recent) == len(asked)
        known, split = asked[0], asked[0] + asked[1]
        for cut in range(1, len(split)):
            reader = await proxy.reader()
            for piece in (split[:cut], split[cut:], known):
                await reader.send(piece)
                await asyncio.sleep(0.002)
            assert [(await reader.answer()).body for _ in range(3)] == [b"/one", b"/two", b"/one"], cut
            reader.close()
        # Behind half a request the known bytes are no request: they belong to it.
        for half in (b"GET /b HT", b"GET /", asked[1] + b"GET /x", b"GET /b HTTP/1.1\r\nHost: a.example\r\nX: "):
            reader = await proxy.reader()
            await reader.send(half)
            await asyncio.sleep(0.005)
            await reader.send(known)
            got = b""
            while piece := await _within(reader.reader.read(65536), 0.2):
                got += piece
            assert b"/one" not in got, (half, got)
            reader.close()
        # A body that reads like a known request is a body.
        reader = await proxy.reader()
        await reader.send(b"POST /p HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n\r\n" % len(known))
        await asyncio.sleep(0.01)
        await reader.send(known)
        assert (await reader.answer()).body == b"/p"
        assert proxy.origin.heard[-1].body == known
        reader.close()


def test_requests_that_are_known_by_their_bytes_are_told_from_bytes_that_look_so() -> None:
    asyncio.run(_in_pieces())


async def _flood() -> None:
    body = b"x" * 50_000
    async with serving(lambda heard: Told(headers=FRESH, body=body)) as proxy:
        await proxy.ask("/big")
        reader = await proxy.reader()
        asked = b"GET /big HTTP/1.1\r\nHost: a.example\r\n\r\n"
        reader.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(400):
            reader.writer.write(asked)
            await asyncio.sleep(0.0005)
        await asyncio.sleep(0.2)
        (connection,) = proxy.parts.server.readers()
        assert connection.transport.get_write_buffer_size() < 1 << 18
        reader.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(400):
            assert (await reader.answer()).body == body
        reader.close()


def test_who_asks_on_and_does_not_read_costs_a_buffer() -> None:
    asyncio.run(_flood())
