"""The fetcher against a real server on loopback that behaves; what does not is in the other files of this folder."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from afresh.fetch import Http, Limits
from afresh.fetch.headers import robots_tag
from afresh.types import Fetched, Validators

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
DAY = "Sun, 06 Nov 1994 08:49:37 GMT"
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def fetch(
    answer: Answer, *, known: Validators | None = None, path: str = "/", private: bool = True, **limits: float
) -> Fetched:
    async def go() -> Fetched:
        async with serving(answer) as base:
            http = Http(user_agent="test/1", limits=Limits(**limits), allow_private=private)  # type: ignore[arg-type]
            try:
                return await http.fetch(base + path, known or Validators())
            finally:
                await http.close()

    return asyncio.run(go())


def test_a_page_comes_back_with_its_validators() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.headers["User-Agent"] == "test/1"
        assert "If-None-Match" not in request.headers
        return web.Response(text="hello", content_type="text/html", headers={"ETag": '"7"', "Last-Modified": DAY})

    got = fetch(answer)
    assert (got.status, got.body, got.reason) == (200, b"hello", "")
    assert got.content_type.startswith("text/html")
    assert got.validators == Validators(etag='"7"', last_modified=DAY)
    assert got.took > 0


def test_what_is_known_is_asked_about() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.headers["If-None-Match"] == '"7"'
        return web.Response(status=304)

    got = fetch(answer, known=Validators(etag='"7"', fingerprint=1))
    assert (got.status, got.body) == (304, b"")


def test_validators_without_a_copy_are_not_used() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert "If-None-Match" not in request.headers
        return web.Response(text="whole")

    assert fetch(answer, known=Validators(etag='"7"')).body == b"whole"


def test_nobody_there_is_named() -> None:
    async def go() -> Fetched:
        http = Http(user_agent="test/1", allow_private=True)
        try:
            return await http.fetch("http://127.0.0.1:1025/", Validators())
        finally:
            await http.close()

    assert asyncio.run(go()).reason == "no_connection"


def test_every_name_below_localhost_is_loopback() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers["Host"])

    async def go() -> Fetched:
        async with serving(answer) as base:
            http = Http(user_agent="test/1", allow_private=True)
            try:
                return await http.fetch(base.replace("127.0.0.1", "news-01.localhost"), Validators())
            finally:
                await http.close()

    assert asyncio.run(go()).body.startswith(b"news-01.localhost:")


def test_redirects_are_followed_and_counted() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        step = int(request.path.strip("/") or 0)
        if step < 3:
            return web.Response(status=302, headers={"Location": f"/{step + 1}"})
        return web.Response(text="there")

    got = fetch(answer)
    assert got.body == b"there"
    assert got.location.endswith("/3")
    assert fetch(answer, redirects=2).reason == "too_many_redirects"


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["noindex, nofollow"], "nofollow,noindex"),
        (["noindex nofollow"], "nofollow,noindex"),
        (["otherbot: noindex nofollow"], ""),
        (["NONE"], "nofollow,noindex"),
        (["noarchive", "nofollow"], "nofollow"),
        (["afresh: nofollow"], "nofollow"),
        (["otherbot: nofollow"], ""),
        (["otherbot: noarchive, nofollow"], ""),
        (["otherbot: noarchive, Afresh: nofollow"], "nofollow"),
        (["otherbot: none", "nofollow"], "nofollow"),
        (["*: nofollow"], "nofollow"),
        (["unavailable_after: Fri, 25 Jun 2010 15:00:00 PST, nofollow"], "nofollow"),
        (["max-snippet:20, nofollow"], "nofollow"),
        (["nofollowing"], ""),
        (["," * 9000, "nofollowing"], "nofollow,noindex"),  # too much to read word by word
        ([], ""),
    ],
)
def test_x_robots_tag_reaches_who_reads_links(stage: Any, values: list[str], asked: str) -> None:
    lines = "".join(f"X-Robots-Tag: {value}\r\n" for value in values).encode()
    got = stage.fetch(b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 5\r\n\r\nhello")
    assert got.robots == (asked if "fresh" not in str(values) else "")  # the test's own name is another one
    assert robots_tag(values, "afresh/1.0 (+https://example.org)") == asked


def test_time_for_which_we_hold_up_our_own_event_loop_is_not_counted_as_the_hosts(stage: Any) -> None:
    """Ordinary hosts rested ten times as long as another host's page had held us up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        time.sleep(0.4)  # noqa: ASYNC251 - holds up the event loop, in which the fetcher waits, too
        await asyncio.sleep(0.2)
        writer.write(PAGE)
        await writer.drain()
        asyncio.get_running_loop().call_soon(time.sleep, 0.5)

    fetched = stage.fetch(talk)
    assert 0.15 <= fetched.took <= 0.4
    assert 0.7 <= fetched.waited <= 1.5


def test_a_slow_host_is_not_taken_for_a_stall_of_our_own(stage: Any) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.write(PAGE)

    fetched = stage.fetch(talk)
    assert fetched.took >= 0.35
    assert fetched.took + fetched.waited >= 0.5


def test_time_in_our_own_queue_for_a_connection_is_not_counted_as_the_hosts() -> None:
    async def go() -> list[Fetched]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.3)
            writer.write(PAGE)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        http = Http(user_agent="test/1", limits=Limits(connections=1), allow_private=True)
        try:
            return await asyncio.gather(*(http.fetch(f"{url}{nth}", Validators()) for nth in range(4)))
        finally:
            await http.close()
            server.close()

    for nth, fetched in enumerate(asyncio.run(go())):
        assert 0.2 <= fetched.took <= 0.6
        assert fetched.waited >= 0.3 * nth - 0.2


def test_no_byte_of_a_body_that_is_still_arriving_is_left_out_of_account(stage: Any) -> None:
    counted: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(5):
            writer.write(b"x" * 200_000)
            await writer.drain()
            await asyncio.sleep(0.05)
            counted.append(stage.http.arriving)

    assert len(stage.fetch(talk).body) == 1_000_000
    assert counted[0] > 100_000
    assert counted[3] > 700_000
    assert stage.http.arriving == 0
