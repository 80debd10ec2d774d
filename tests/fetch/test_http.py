"""The fetcher against a real server on loopback that misbehaves in every way a test needs."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from afresh.fetch import Http, Limits
from afresh.frontier import canonical
from afresh.types import Fetched, Validators

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


def test_an_endless_body_is_cut_at_the_limit() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        for _ in range(1000):
            await stream.write(b"\0" * 65536)
        return stream

    got = fetch(answer, body=1_000_000)
    assert (got.reason, got.body) == ("too_large", b"")


def test_a_bomb_is_cut_while_it_inflates() -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    assert fetch(answer, body=1_000_000).reason == "too_large"


def test_a_drip_meets_the_deadline_though_every_read_succeeds() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        for _ in range(100):
            await stream.write(b"x")
            await asyncio.sleep(0.05)
        return stream

    got = fetch(answer, seconds=0.3)
    assert got.reason == "timeout"
    assert got.took < 2


def test_a_truncated_body_is_not_a_page() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Length": "1000"})
        await stream.prepare(request)
        await stream.write(b"only this")
        assert request.transport is not None
        request.transport.close()
        return stream

    got = fetch(answer)
    assert (got.reason, got.body) == ("truncated", b"")


def test_a_reset_is_named() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    assert fetch(answer).reason == "reset"


def test_nobody_there_is_named() -> None:
    async def go() -> Fetched:
        http = Http(user_agent="test/1", allow_private=True)
        try:
            return await http.fetch("http://127.0.0.1:1025/", Validators())
        finally:
            await http.close()

    assert asyncio.run(go()).reason == "no_connection"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "news.localhost", "2130706433", "0x7f.1", "[::1]"])
def test_private_addresses_are_refused_in_any_spelling(host: str) -> None:
    asked = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request)
        return web.Response(text="secret")

    async def go() -> Fetched:
        async with serving(answer) as base:
            http = Http(user_agent="test/1", limits=Limits(seconds=5))
            try:
                return await http.fetch(canonical(base.replace("127.0.0.1", host)), Validators())
            finally:
                await http.close()

    got = asyncio.run(go())
    assert got.reason == "refused_address"
    assert not asked


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


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.com/", "javascript:alert(1)", "data:,x"])
def test_redirects_out_of_the_web_are_not_followed(target: str) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=302, headers={"Location": target})

    assert fetch(answer).reason == "bad_redirect"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("120", 120.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("9" * 30, 1e9),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str, expected: float | None) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=503, headers={"Retry-After": header})

    got = fetch(answer)
    assert got.status == 503
    assert got.retry_after == expected


def test_a_giant_validator_is_not_kept() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="x", headers={"ETag": '"' + "a" * 5000 + '"'})

    assert fetch(answer).validators.etag == ""
