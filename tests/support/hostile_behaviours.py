"""A web server on loopback with a different evil for every host name, beside ordinary hosts.

`python hostile_behaviours.py` serves on a free port, which it prints, until standard input ends. A host is named after
its behaviour (`slow-body.evil3.example`); all others behave. It runs in a process of its own, so that what it costs to
be evil is not counted as the crawler's.
"""

import asyncio
import gzip
import random
import sys
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache

import brotli
import zstandard

MEGA = 1_000_000
OK = b"HTTP/1.1 200 OK\r\n"
PAGES = 20  # of an ordinary host
PERIOD = 3.0  # seconds between two changes of an ordinary page

Writer = asyncio.StreamWriter
Evil = Callable[[Writer, str, str], Awaitable[None]]  # where to write, host, path
EVILS: dict[str, Evil] = {}
MAKING: list[Callable[[], bytes]] = []
CLOCK = iter(range(1 << 60))


def evil(act: Evil) -> Evil:
    """Note a behaviour under the function's name."""
    EVILS[act.__name__] = act
    return act


def html(body: bytes, *headers: bytes, kind: bytes = b"text/html") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return OK + b"Content-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b" % (kind, len(body), lines, body)


def coded(coding: bytes, body: bytes) -> bytes:
    return html(body, b"Content-Encoding: " + coding)


def fixed(name: str, make: Callable[[], bytes], at: str = "") -> None:
    """A behaviour that always says the same; `at` a path, or at every one but robots.txt."""
    said = cache(make)
    MAKING.append(said)
    robots = html(ROBOTS, kind=b"text/plain") if at == "/map.xml" else NONE

    async def act(writer: Writer, host: str, path: str) -> None:
        if path == at or (not at and path != "/robots.txt"):
            writer.write(said())
        else:
            writer.write(robots if path == "/robots.txt" else html(b'<p>front <a href="/x">x</a>'))

    act.__name__ = name
    evil(act)


NONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
ZEROS = b"\0" * (50 * MEGA)
ROBOTS = b"User-agent: *\nAllow: /\nSitemap: /map.xml\n"


def stream(name: str, head: bytes, piece: bytes, pause: float = 0.0, most: float = 200 * MEGA) -> None:
    """A behaviour that goes on and on."""

    async def act(writer: Writer, host: str, path: str) -> None:
        if path == "/robots.txt":
            writer.write(NONE)
            return
        writer.write(head)
        sent = 0
        while sent < most:
            writer.write(piece)
            sent += len(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    act.__name__ = name
    evil(act)


HTML = OK + b"Content-Type: text/html\r\n"
CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n\r\n"
stream("endless", HTML + b"\r\n", b"x" * 60_000)
stream("endless_chunks", CHUNKED, b"20\r\n" + b"x" * 32 + b"\r\n")
stream("endless_extensions", CHUNKED, b"1;" + b"e" * 10_000 + b"\r\nx\r\n")
stream("endless_trailers", CHUNKED + b"0\r\n", b"X-Trailer: y\r\n" * 500)
stream("endless_hints", b"", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n")
stream("endless_head", OK, b"X-Header: " + b"y" * 4000 + b"\r\n")
stream("slow_body", HTML + b"Content-Length: 1000\r\n\r\n", b"x", pause=1.0)
stream("slow_head", b"HTTP/1.1 200 OK\r\nX", b"x", pause=1.0)
stream("silent", b"", b"", pause=1.0)

fixed("long_line", lambda: OK + b"X: " + b"y" * MEGA + b"\r\n\r\n")
fixed("many_headers", lambda: OK + b"X: y\r\n" * 10_000 + b"\r\n")
fixed("gzip_bomb", lambda: coded(b"gzip", gzip.compress(ZEROS)))
fixed("brotli_bomb", lambda: coded(b"br", brotli.compress(ZEROS, quality=5)))
fixed("zstd_bomb", lambda: coded(b"zstd", zstandard.ZstdCompressor().compress(ZEROS)))
fixed("stacked_bomb", lambda: coded(b"gzip, deflate, gzip", gzip.compress(zlib.compress(gzip.compress(ZEROS)))))
fixed("brotli_nothing", lambda: coded(b"br", b"\x0c" + b"\x06" * (900_000) + b"\x03"))
fixed("cut_gzip", lambda: HTML + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n")
fixed("cut_length", lambda: HTML + b"Content-Length: 5000\r\n\r\nonly this")
fixed("two_lengths", lambda: HTML + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")
fixed("two_codings", lambda: HTML + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n5\r\nhello\r\n0\r\n\r\n")
fixed("rtsp", lambda: b"RTSP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
fixed("http2", lambda: b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
fixed("garbage", lambda: random.Random(1).randbytes(5000))
fixed("too_much", lambda: html(b"<p>hello") + b"and more" * 1000)
fixed("not_modified", lambda: b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n')
fixed("loop", lambda: b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
fixed("private", lambda: b"HTTP/1.1 302 Found\r\nLocation: http://[::1]/\r\nContent-Length: 0\r\n\r\n")
fixed("busy", lambda: b"HTTP/1.1 503 Busy\r\nRetry-After: 999999999\r\nContent-Length: 0\r\n\r\n")
fixed("broken", lambda: b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")
fixed("robots_500", lambda: b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n", at="/robots.txt")
fixed("robots_rules", lambda: html(b"User-agent: *\n" + b"allow:/\n" * 64_000, kind=b"text/plain"), at="/robots.txt")
fixed(
    "robots_stars",
    lambda: html(
        b"User-agent: *\n" + b"".join(b"Disallow: /*a*a*%d*b\n" % n for n in range(25_000)), kind=b"text/plain"
    ),
    at="/robots.txt",
)
fixed("robots_endless", lambda: html(b"#" * (20 * MEGA), kind=b"text/plain"), at="/robots.txt")


READING: set[str] = set()  # those whose pages are hard to read, rather than to fetch


def hard(name: str, make: Callable[[], bytes], kind: bytes = b"text/html") -> None:
    """A page that is hard to read, and differs at every fetch, so that it must be compared with the copy, too."""
    body = cache(make)
    MAKING.append(body)
    READING.add(name)

    async def act(writer: Writer, host: str, path: str) -> None:
        text = b"<p>version %d</p>" % next(CLOCK)
        writer.write(NONE if path == "/robots.txt" else html(text + body() + text, kind=kind))

    act.__name__ = name
    evil(act)


hard("flat_paragraphs", lambda: b"".join(b"<p>line %d of many</p>\n" % n for n in range(30_000)))
hard("hidden_nesting", lambda: b"<div><!--</div>-->" * 15_000)
hard("hidden_in_attributes", lambda: b'<div title="</div>">' * 13_000)
hard("hidden_in_scripts", lambda: b"<div><script></div></script>" * 9_000)
hard("deep_nesting", lambda: b"<div>" * 100_000 + b"deep")
hard("unclosed_formatting", lambda: b"<b><i><font><u>" * 1_000 + b"<p>x" * 2_000)
hard("long_attributes", lambda: b'<a href="' + b"x" * (MEGA // 2) + b'">x</a>' + b"<a " + b"y=1 " * 60_000 + b">")
hard("punycode", lambda: b"a" * 500_000, kind=b"text/html; charset=punycode")
hard("zip_codec", lambda: b"eJw=" * 10_000, kind=b"text/html; charset=zip")
hard("utf_7", lambda: b"+ADw-p+AD4-" * 40_000, kind=b"text/html; charset=utf-7")
hard("entities", lambda: b"&amp;&#x41;&notanentity;" * 20_000)
hard("many_links", lambda: b"".join(b'<a href="/x?p=%d">x</a>' % n for n in range(30_000)))
hard("long_links", lambda: b"".join(b'<a href="/%d/' % n + b"a" * 1_900 + b'">x</a>' for n in range(450)))
hard("open_comment", lambda: b"<p>x<!-- " * 60_000)

fixed(
    "entity_bomb",
    lambda: html(
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
        + b'<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">' * 10
        + b"]><urlset>&b;</urlset>",
        kind=b"text/xml",
    ),
    at="/map.xml",
)
fixed("gz_sitemap", lambda: html(gzip.compress(b"<urlset>" + b"<url><loc>/a</loc></url>" * 2_000_000)), at="/map.xml")

CLOSING = {"cut_gzip", "cut_length"}


@evil
async def reset(writer: Writer, host: str, path: str) -> None:
    writer.write(NONE if path == "/robots.txt" else HTML + b"Content-Length: 9999\r\n\r\nhalf")
    await writer.drain()
    if path != "/robots.txt":
        writer.transport.abort()


@evil
async def chain(writer: Writer, host: str, path: str) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n" % next(CLOCK))


@evil
async def trap(writer: Writer, host: str, path: str) -> None:
    """New links on every page, for ever, and another text at every fetch."""
    links = b"".join(b'<a href="/%x/%d">x</a>' % (next(CLOCK), next(CLOCK)) for _ in range(200))
    writer.write(NONE if path == "/robots.txt" else html(b"<p>%d" % next(CLOCK) + links))


@evil
async def calendar(writer: Writer, host: str, path: str) -> None:
    links = b"".join(b'<a href="/%d/%02d/">x</a>' % (2000 + next(CLOCK) % 7000, n) for n in range(1, 13))
    writer.write(NONE if path == "/robots.txt" else html(links))


@evil
async def names(writer: Writer, host: str, path: str) -> None:
    """Fifty new host names of one domain on every page."""
    site, _, port = host.partition(":")
    site = ".".join(site.split(".")[-2:])
    links = "".join(f'<a href="http://n{next(CLOCK)}.names.{site}:{port}/">x</a>' for _ in range(50))
    writer.write(NONE if path == "/robots.txt" else html(links.encode()))


@evil
async def domains(writer: Writer, host: str, path: str) -> None:
    """Fifty new host names on every page, each a domain of its own."""
    port = host.partition(":")[2]
    links = "".join(f'<a href="http://domains.d{next(CLOCK)}.example:{port}/">x</a>' for _ in range(50))
    writer.write(NONE if path == "/robots.txt" else html(links.encode()))


async def ordinary(writer: Writer, host: str, path: str) -> None:
    """A site of some pages that link to each other, and of which each changes now and then."""
    if path == "/robots.txt":
        writer.write(html(b"User-agent: *\nDisallow: /private\n", kind=b"text/plain"))
        return
    version = int(time.monotonic() / PERIOD + hash(path) % 7)
    links = b"".join(b'<li><a href="/page%d">page</a>' % n for n in range(PAGES))
    writer.write(html(b"<html><title>x</title><p>version %d of a page" % version + b" with words" * 100 + links))


async def talk(reader: asyncio.StreamReader, writer: Writer) -> None:
    if not writer.get_extra_info("peername")[0].startswith("127."):  # it listens on all addresses to have all of these
        writer.close()
        return
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError, asyncio.LimitOverrunError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
            labels = host.partition(":")[0].replace("-", "_").split(".")
            kind = next((label for label in labels if label in EVILS), "")
            await EVILS.get(kind, ordinary)(writer, host, path)
            await writer.drain()
            if kind in CLOSING and path != "/robots.txt":
                break
    writer.close()


async def serve() -> None:
    for make in MAKING:
        make()  # before anybody waits for it
    server = await asyncio.start_server(talk, "0.0.0.0", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
