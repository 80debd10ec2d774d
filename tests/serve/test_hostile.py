"""Poisoning, deception, ranges, origins that fail, herds, slow readers: rows P3 to P10 on real sockets."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from serving import Got, Heard, Told, serving

FRESH = {"Cache-Control": "max-age=60"}
BOTH = pytest.mark.parametrize("strict", [True, False], ids=["strict", "own policy"])


def hit(got: Got) -> bool:
    return "hit" in got["cache-status"]


async def _poisoned(strict: bool) -> None:
    unkeyed = {
        "X-Forwarded-Host": "evil",
        "X-Original-URL": "/evil",
        "X-Rewrite-URL": "/evil",
        "X-Forwarded-Scheme": "http",
        "Forwarded": "host=evil",
        "X-Host": "evil",
        "X-HTTP-Method-Override": "POST",
        "X-Forwarded-Prefix": "/evil",
        "X_Forwarded_Host": "evil",
        "x-forwarded_host": "evil",
        "X.Original.URL": "/evil",
        "Client_IP": "evil",
        "Client-IP": "evil",
        "Proxy": "http://evil/",
    }
    async with serving(lambda heard: Told(headers=FRESH, body=heard.raw), strict=strict) as proxy:
        first = await proxy.ask("/page", {**unkeyed, "Host": "evil.example:99"})
        assert b"evil" not in first.body
        again = await proxy.ask("/page", {"Host": "good.example"})
        assert hit(again)
        assert again.body == first.body


@BOTH
def test_what_is_not_in_the_key_is_not_sent(strict: bool) -> None:
    asyncio.run(_poisoned(strict))


async def _keys(strict: bool) -> None:
    # What an origin may take for different pages has different copies.
    paths = [
        "/a",
        "/a/",
        "//a",
        "/%61",
        "/a?",
        "/a?x=1",
        "/a?x=1&",
        "/a?x=1;y=2",
        "/a;x",
        "/A",
        "/./a",
        "/a%2f",
        "/a%2F",
    ]
    paths += ["/a?x=1&x=2", "/a?x=2&x=1", "/a?utm_content=1", "/a%00", "/a\\b"]
    async with serving(lambda heard: Told(headers=FRESH, body=heard.target.encode()), strict=strict) as proxy:
        for _ in range(2):
            assert [(await proxy.ask(path)).body.decode() for path in paths] == paths
        assert len(proxy.origin.heard) == len(paths)


async def _folder() -> None:
    settings = (
        '[[serve]]\nprefix = "/docs"\norigin = "{origin}/manual"\n'
        '[[serve]]\nhost = "b.example"\norigin = "{origin}/manual"\nstrict = true\n'
    )
    ways_out = ["/..", "/../p0", "/a/%2e%2e/%2E%2e/p0", "/..%2fp0", "/..;/p0", "/..%5cp0", "/%252e%252e/p0", "/../?x"]
    async with serving(lambda heard: Told(headers=FRESH), origin=False, settings=settings) as proxy:
        for path in ways_out:
            assert (await proxy.ask("/docs" + path)).status == 400, path
            assert (await proxy.ask(path, {"Host": "b.example"})).status == 400, path
        assert proxy.origin.heard == []
        for path in ("/a..b", "/..c/%41", "/a?next=/../b"):
            assert (await proxy.ask("/docs" + path)).status == 200
            assert proxy.origin.heard[-1].target == "/manual" + path


def test_nothing_leads_out_of_the_folder_that_is_mapped() -> None:
    asyncio.run(_folder())


@BOTH
def test_each_spelling_of_an_address_is_its_own(strict: bool) -> None:
    asyncio.run(_keys(strict))


async def _fat(strict: bool) -> None:
    async with serving(lambda heard: Told(headers=FRESH, body=heard.body or b"plain"), strict=strict) as proxy:
        fat = await proxy.ask("/", body=b"evil")
        assert (fat.body, hit(fat)) == (b"evil", False)
        assert (await proxy.ask("/")).body == b"plain"
        assert (await proxy.ask("/", body=b"evil")).body == b"evil"
        assert hit(await proxy.ask("/"))


@BOTH
def test_a_get_with_a_body_neither_fills_nor_reads_the_cache(strict: bool) -> None:
    asyncio.run(_fat(strict))


async def _deceived(strict: bool) -> None:
    secret: dict[str, dict[str, str]] = {
        "/account/x.css": {"Cache-Control": "private, max-age=60"},
        "/no-store.js": {"Cache-Control": "no-store, max-age=60"},
        "/star.png": {"Cache-Control": "max-age=60", "Vary": "*"},
        "/quoted": {"Cache-Control": 'max-age=60, PRIVATE, x="y"'},
    }
    if not strict:
        secret["/cookie"] = {"Cache-Control": "public, max-age=60", "Set-Cookie": "id=1"}
    async with serving(
        lambda heard: Told(headers=secret.get(heard.target, FRESH), body=b"secret"), strict=strict
    ) as proxy:
        for path in secret:
            for _ in range(2):
                got = await proxy.ask(path)
                assert (got.status, hit(got)) == (200, False), path
        assert len(proxy.origin.heard) == 2 * len(secret)
        # Nor is what was made for a reader who said who it is.
        await proxy.ask("/mine", {"Authorization": "Basic abc"})
        assert not hit(await proxy.ask("/mine"))
        if not strict:
            for headers in ({"Cookie": "id=1"}, {"Authorization": "Basic abc"}):
                got = await proxy.ask("/mine", headers)
                assert not hit(got)
                assert set(headers) <= {name.title() for name in proxy.origin.heard[-1].headers}


@BOTH
def test_what_is_one_readers_own_is_not_shared(strict: bool) -> None:
    asyncio.run(_deceived(strict))


async def _cookies() -> None:
    headers = {"Cache-Control": "max-age=60", "Set-Cookie": "id=1"}
    async with serving(lambda heard: Told(headers=headers)) as proxy:
        assert (await proxy.ask())["set-cookie"] == "id=1"
        again = await proxy.ask()
        assert (hit(again), again["set-cookie"]) == (True, "")


def test_cookies_are_stripped_from_what_is_kept() -> None:
    asyncio.run(_cookies())


async def _ranges(strict: bool) -> None:
    body = bytes(range(100))
    headers = {**FRESH, "ETag": '"a"', "Last-Modified": "Mon, 09 Nov 2026 00:00:00 GMT"}
    async with serving(lambda heard: Told(headers=headers, body=body), strict=strict) as proxy:
        await proxy.ask()
        for asked, expected in {
            "bytes=0-0": body[:1],
            "bytes=10-19": body[10:20],
            "bytes=90-": body[90:],
            "bytes=-5": body[-5:],
            "bytes=-1000": body,
            "bytes=0-99999999999999999": body,
        }.items():
            got = await proxy.ask("/", {"Range": asked})
            assert (got.status, got.body, hit(got)) == (206, expected, True), asked
            start = body.index(expected)
            assert got["content-range"] == f"bytes {start}-{start + len(expected) - 1}/100"
        for asked in ("bytes=100-", "bytes=-0", "bytes=999-1000"):
            got = await proxy.ask("/", {"Range": asked})
            assert (got.status, got["content-range"]) == (416, "bytes */100"), asked
        whole = ["bytes=5-2", "bytes=a-b", "items=0-1", "bytes=0-1,5-6", "bytes=" + "0-," * 1000 + "0-", "bytes=--1"]
        for asked in whole:
            got = await proxy.ask("/", {"Range": asked})
            assert (got.status, got.body) == (200, body), asked
        for condition, status in (('"a"', 206), ('"b"', 200), ('W/"a"', 200), (headers["Last-Modified"], 206)):
            assert (await proxy.ask("/", {"Range": "bytes=0-1", "If-Range": condition})).status == status
        tags = {'"x", W/"a"': 304, "*": 304, '"x", "y"': 200, '"a': 304, "": 200, '"x",' * 3000 + '"a"': 200}
        for tag, status in tags.items():
            got = await proxy.ask("/", {"If-None-Match": tag})
            assert (got.status, got.body) == (status, b"" if status == 304 else body), tag[:20]
        assert (
            await proxy.ask("/", {"If-None-Match": '"x"', "If-Modified-Since": headers["Last-Modified"]})
        ).status == 200
        head = await proxy.ask("/", method="HEAD")
        assert (head.status, head["content-length"], hit(head)) == (200, "100", True)
        assert len(proxy.origin.heard) == 1


@BOTH
def test_parts_and_conditions_are_answered_from_the_copy(strict: bool) -> None:
    asyncio.run(_ranges(strict))


async def _partial(strict: bool) -> None:
    told = {"/good": {"Content-Range": "bytes 0-4/10", **FRESH}, "/bad": FRESH}

    def play(heard: Heard) -> Told:
        part = "range" in heard.headers
        return Told(206 if part else 200, told[heard.target] if part else FRESH, b"01234" if part else b"0123456789")

    async with serving(play, strict=strict) as proxy:
        for path in told:
            got = await proxy.ask(path, {"Range": "bytes=0-4"})
            assert (got.status, got.body) == (206, b"01234")
            got = await proxy.ask(path)
            assert (got.status, got.body, hit(got)) == (200, b"0123456789", False)
        # HEAD fills nothing either.
        told["/head"] = FRESH
        await proxy.ask("/head", method="HEAD")
        assert not hit(await proxy.ask("/head"))


@BOTH
def test_a_part_is_never_taken_for_the_whole(strict: bool) -> None:
    asyncio.run(_partial(strict))


async def _down(strict: bool) -> None:
    up = True
    headers = {"Cache-Control": "max-age=1", "ETag": '"a"', "Age": "5", "Date": "Thu, 19 Nov 2026 00:00:00 GMT"}

    def play(heard: Heard) -> Told:
        return Told(headers={} if heard.target == "/new" else headers) if up else Told(cut=True)

    settings = '[proxy]\nmax_stale = "100000d"\n'
    async with serving(play, strict=strict, settings=settings) as proxy:
        await proxy.ask()
        up = False
        got = await proxy.ask()
        assert (got.status, got.body) == (200, b"hello")
        if strict:
            assert "detail=stale" in got["cache-status"]
            assert "Stale" in got["warning"]
        assert int(got["age"]) >= 5
        assert (await proxy.ask("/new")).status == 504
        await proxy.origin.stop()
        assert (await proxy.ask("/new")).status == 504
    async with serving(play, strict=strict, settings='[proxy]\nmax_stale = "1s"\n') as proxy:
        up = True
        await proxy.ask()
        up = False
        for entry in proxy.parts.service.cache:
            entry.good_until = 0.0
            entry.born -= 1000.0
        got = await proxy.ask()
        assert (got.status, "hello" in got.body.decode()) == (504, False)


@BOTH
def test_while_an_origin_is_down_its_copies_stand_in_for_a_time(strict: bool) -> None:
    asyncio.run(_down(strict))


async def _outward(strict: bool) -> None:
    def play(heard: Heard) -> Told:
        said = {"Location": heard.target.partition("?")[2].replace("ORIGIN", proxy.origin.url)}
        return Told(status=301, headers=FRESH | said)

    mapped = f'origin = "{{origin}}/manual"\nstrict = {str(strict).lower()}\n'
    settings = f'[[serve]]\nprefix = "/docs"\n{mapped}[[serve]]\nhost = "b.example"\norigin = "{{origin}}"\n'
    settings += '[[serve]]\nhost = "b.example"\nprefix = "/docs"\norigin = "{origin}/book"\n'
    async with serving(play, origin=False, settings=settings) as proxy:
        for said, outside in {"ORIGIN/manual/b": "/docs/b", "/manual/b": "/docs/b", "/other": "/other"}.items():
            for headers in ({}, {}, {"Cookie": "a=b"}):
                assert (await proxy.ask("/docs/a?" + said, headers))["location"] == outside
        for said, outside in {"ORIGIN/c": "/c", "ORIGIN": "/", "http://c.example/": "http://c.example/"}.items():
            assert (await proxy.ask("/a?" + said, {"Host": "b.example"}))["location"] == outside
        assert (await proxy.ask("/docs/a?ORIGIN/book/d", {"Host": "b.example:80"}))["location"] == "/docs/d"
        assert proxy.origin.heard[-1].target.startswith("/book/a?")


@BOTH
def test_redirects_lead_to_where_the_reader_came_in(strict: bool) -> None:
    asyncio.run(_outward(strict))


async def _reasons() -> None:
    def play(heard: Heard) -> Told:
        if "if-none-match" in heard.headers:
            return Told(status=304, headers=FRESH | {"ETag": '"1"'})
        if heard.target == "/plain":
            return Told()
        if heard.target in ("/reset", "/cut"):
            return Told(headers=FRESH | {"Content-Length": "9", "Connection": "close"}, cut=heard.target == "/reset")
        return Told(headers=FRESH | {"ETag": '"1"', "Vary": "Accept-Language"})

    async with serving(play) as proxy:
        assert (await proxy.ask("/plain"))["cache-status"] == "afresh; fwd=uri-miss"  # of no use later
        assert (await proxy.ask("/"))["cache-status"] == "afresh; fwd=uri-miss; stored"
        assert (await proxy.ask("/", {"Accept-Language": "de"}))["cache-status"] == "afresh; fwd=vary-miss; stored"
        again = await proxy.ask("/", {"Cache-Control": "no-cache"})
        assert again["cache-status"].startswith("afresh; fwd=request; fwd-status=304")
        assert again["date"].endswith("GMT")  # the origin gave none
        got = await proxy.ask("/reset")
        assert (got.status, got["cache-status"]) == (504, "afresh; fwd=uri-miss; detail=reset")
        assert (await proxy.ask("/reset", method="POST"))["cache-status"] == "afresh; fwd=method; detail=reset"
        assert b"stored" not in await proxy.raw(b"GET /cut HTTP/1.1\r\nHost: a.example\r\n\r\n")
        got = await proxy.ask("/absent", {"Cache-Control": "only-if-cached"})
        assert (got.status, got["cache-status"]) == (504, "afresh; detail=no_copy")
        for sent, named in (
            (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"Host is not one host: a b."),
            (b"GET / HTTP/1.1\r\n\r\n", b"There is no Host."),
            (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", b"."),
            (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n", b"Transfer_Encoding could be taken"),
            (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n", b"Content-Length"),
            (b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", b"header"),
        ):
            said = await proxy.raw(sent)
            assert said.startswith(b"HTTP/1.1 400 "), sent
            assert named in said.partition(b"\r\n\r\n")[2], (sent, said)


def test_cache_status_says_why_the_origin_was_asked() -> None:
    asyncio.run(_reasons())


async def _ends(file: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1 << 16)

    def play(heard: Heard) -> Told:
        if "if-none-match" in heard.headers:
            return Told(status=304, headers={"ETag": '"1"'})
        if heard.target == "/endless":
            return Told(pieces=endless)
        if heard.target == "/cut":
            return Told(headers={"Content-Length": "9", "Connection": "close"}, body=b"half")
        return Told(headers={"ETag": '"1"', "Cache-Control": "max-age=0"})

    async with serving(play, settings=f'[proxy]\naccess_log = "{file}"\n') as proxy:
        for _ in range(2):
            await proxy.ask("/page")
        reader = await proxy.reader()
        await reader.send(b"GET /endless HTTP/1.1\r\nHost: a.example\r\n\r\n")
        await reader.reader.readexactly(1 << 18)
        reader.close()
        with pytest.raises(asyncio.IncompleteReadError):
            await proxy.ask("/cut")
        await asyncio.sleep(0.1)
        counts = proxy.parts.service.counts
        assert (counts.hits, counts.checked, counts.misses) == (0, 1, 3)


def test_the_access_log_tells_what_was_checked_what_broke_and_who_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(_ends(tmp_path / "log"))
    lines = {line.split()[6]: line.split() for line in (tmp_path / "log").read_text().splitlines()[1:]}
    assert (lines["/page"][-1], lines["/endless"][-1], lines["/cut"][-1]) == ("checked", "left", "broken")
    assert int(lines["/endless"][9]) >= 1 << 18
    assert caplog.records == []  # a reader who leaves is no fault of ours


async def _herd(strict: bool) -> None:
    async with serving(lambda heard: Told(headers=FRESH, body=b"x" * 10_000, wait=0.5), strict=strict) as proxy:
        readers = [await proxy.reader() for _ in range(1000)]
        answers = await asyncio.gather(*(reader.ask("/cold") for reader in readers))
        assert {(got.status, len(got.body)) for got in answers} == {(200, 10_000)}
        assert len(proxy.origin.heard) == 1
        for reader in readers:
            reader.close()


@BOTH
def test_a_thousand_readers_of_a_cold_page_are_one_fetch(strict: bool) -> None:
    asyncio.run(_herd(strict))


async def _herd_of_secrets() -> None:
    async with serving(lambda heard: Told(headers={"Cache-Control": "private"}, wait=0.3)) as proxy:
        began = time.monotonic()
        answers = await asyncio.gather(*(proxy.ask("/mine") for _ in range(30)))
        assert {got.status for got in answers} == {200}
        assert len(proxy.origin.heard) == 30
        assert time.monotonic() - began < 3  # they wait for one answer to know, not for each other


def test_readers_of_what_cannot_be_shared_do_not_queue() -> None:
    asyncio.run(_herd_of_secrets())


async def _logged(file: Path, form: str) -> None:
    settings = f'[proxy]\naccess_log = "{file}"\naccess_log_format = "{form}"\ntrusted = "127.0.0.0/8"\n'
    async with serving(lambda heard: Told(status=404, headers=FRESH), settings=settings) as proxy:
        await proxy.ask('/"\\<script>', {"X-Forwarded-For": "evil\x1b[31m, 9.9.9.9, 127.0.0.3"})
        await proxy.ask("/" + "a" * 5000, {"X-Forwarded-For": "\u202e".encode().decode("latin-1")})
        await proxy.raw(b"\x1b]0;title\x07\r\n\r\n")


@pytest.mark.parametrize("form", ["common", "json"])
def test_the_access_log_holds_nothing_that_a_terminal_would_obey(tmp_path: Path, form: str) -> None:
    file = tmp_path / "access.log"
    asyncio.run(_logged(file, form))
    lines = file.read_text().splitlines()
    assert len(lines) >= 2
    assert all(line.isascii() and line.isprintable() and len(line) < 3000 for line in lines)
    readers = [json.loads(line)["client"] if form == "json" else line.split()[0] for line in lines]
    assert readers == ["127.0.0.1"] * len(lines)  # the first field was a malformed list: refused by the head's check


async def _slow() -> None:
    big = b"x" * (8 << 20)
    async with serving(
        lambda heard: Told(headers=FRESH, body=big if heard.target == "/big" else b"small"),
        settings='[proxy]\nidle = "1s"\n',
    ) as proxy:
        assert (await proxy.ask("/big")).body == big
        slow = []
        for _ in range(20):
            made = socket.create_connection((proxy.host, proxy.port))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
            slow.append(made)
        await asyncio.sleep(0.3)
        began = time.monotonic()
        for _ in range(50):
            assert (await proxy.ask("/small")).body == b"small"
        assert time.monotonic() - began < 2
        # Nothing is copied for those who do not read: what waits is a piece for each.
        waiting = [each.transport.get_write_buffer_size() for each in proxy.parts.server.readers()]
        assert sum(waiting) < 20 * (1 << 18)
        for made in slow:
            made.close()


def test_slow_readers_cost_their_buffer_only() -> None:
    asyncio.run(_slow())


async def _idle() -> None:
    async with serving(lambda heard: Told(headers=FRESH), settings='[proxy]\nidle = "1s"\n') as proxy:
        reader = await proxy.reader()
        await reader.ask()
        began = time.monotonic()
        assert await reader.rest(10) == b""
        assert 0.5 < time.monotonic() - began < 5
        reader.close()
        proxy.parts.server._head = 0.5
        half = await proxy.raw(b"GET / HTTP/1.1\r\nHost", seconds=10)
        assert half.startswith(b"HTTP/1.1 408 ")


def test_idle_connections_and_half_heads_are_closed() -> None:
    asyncio.run(_idle())


async def _large() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * (1 << 16)

    async with serving(
        lambda heard: Told(headers=FRESH, pieces=pieces), settings='[proxy]\nmax_object = "1MiB"\n'
    ) as proxy:
        for _ in range(2):
            got = await proxy.ask("/large")
            assert (len(got.body), hit(got)) == (1 << 22, False)
        assert len(proxy.parts.service.cache) == 0


def test_what_is_too_large_is_handed_on_and_not_kept() -> None:
    asyncio.run(_large())
