"""URLs that two parsers may read differently, row S5 of the hostile world: what is really asked, over a real socket."""

import socket
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


class Names(AbstractResolver):
    """Resolves every name to 127.0.0.1, and remembers which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


def asked(stage: Any, url: str) -> tuple[str, list[str], str]:
    """The request line, the names that were looked up, and the Host header without its port."""
    names = Names()
    stage.requests.clear()
    got = stage.fetch(PAGE, urls=(url,), resolver=names)
    assert (got.body, got.reason) == (b"hello", "")
    lines = stage.requests[0].split("\r\n")
    (host,) = [line.partition(" ")[2].partition(":")[0] for line in lines if line.lower().startswith("host:")]
    return lines[0], names.asked, host


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http:\\\\good.example:{port}\\a", "GET /a HTTP/1.1", "good.example"),
        ("http:good.example:{port}/a", "GET /a HTTP/1.1", "good.example"),
        ("http://good.example:{port}\\@evil.example/", "GET /@evil.example/ HTTP/1.1", "good.example"),
        ("http://good.example:{port}/\\@evil.example/", "GET //@evil.example/ HTTP/1.1", "good.example"),
        ("http://good.example:{port}?@evil.example/", "GET /?@evil.example/ HTTP/1.1", "good.example"),
        ("http://good.example:{port}#@evil.example/", "GET / HTTP/1.1", "good.example"),
        ("ht\ttp://go\nod.exa\rmple:{port}/\ta\nb", "GET /ab HTTP/1.1", "good.example"),
        (
            "http://good.example:{port}/a\r\nX-Evil: 1\r\n\r\nGET /b",
            "GET /aX-Evil:%201GET%20/b HTTP/1.1",
            "good.example",
        ),
        ("http://GOOD.example:{port}/a b", "GET /a%20b HTTP/1.1", "good.example"),
        ("http://b\u00fccher.example:{port}/", "GET / HTTP/1.1", "xn--bcher-kva.example"),
        ("http://p\u0430ypal.example:{port}/", "GET / HTTP/1.1", "xn--pypal-4ve.example"),  # one letter is Cyrillic
        ("http://good\u3002example:{port}/", "GET / HTTP/1.1", "good.example"),
        ("http://good%2Eexample:{port}/", "GET / HTTP/1.1", "good.example"),
    ],
)
def test_s5_what_is_looked_up_is_what_is_asked(stage: Any, url: str, line: str, host: str) -> None:
    assert asked(stage, url) == (line, [host], host)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:pass@127.0.0.1:{port}/",
        "http://user@127.0.0.1:{port}/",
        "http://good.example@127.0.0.1:{port}/",
        "http://a@b@127.0.0.1:{port}/",
        "http://good.example:80@127.0.0.1:{port}/",
        "http://@@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}:80/",
        "http://127.0.0.1 :{port}/",
        "http://127.0.0.1%00.example:{port}/",
        "http://127.0.0.1%2F@good.example:{port}/",
        "http://[127.0.0.1]:{port}/",
        "javascript://127.0.0.1:{port}/%0Aalert(1)",
        "file://127.0.0.1:{port}/etc/passwd",
    ],
)
def test_s5_what_hides_its_host_is_asked_of_nobody(stage: Any, url: str) -> None:
    names = Names()
    got = stage.fetch(PAGE, urls=(url,), resolver=names)
    assert (got.reason, got.status) == ("bad_url", 0)
    assert (names.asked, stage.requests) == ([], [])
