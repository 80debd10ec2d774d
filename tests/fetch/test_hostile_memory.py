"""Memory in the face of what has no end: rows F1, F7, F8 and F12 of the hostile world, measured from outside."""

import asyncio
from itertools import count
from urllib.parse import quote

from peak_memory import LIMIT, Measured, Talk, linux_only, measured

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
MEGA = 1_000_000


def endless(head: bytes, piece: bytes) -> Talk:
    """Says something once and something else for ever."""

    async def talk(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()

    return talk


def alone(talk: Talk | bytes, *, times: int = 1) -> Measured:
    return measured({"it": talk}, times=times)["it"]


@linux_only
def test_f1_a_body_without_end_takes_less_than_twice_its_limit() -> None:
    zeros = alone(endless(OK + b"\r\n", b"\0" * 65536))
    assert (zeros.reason, zeros.size) == ("too_large", 0)
    assert LIMIT / 2 < zeros.rise < 2 * LIMIT


@linux_only
def test_f1_a_body_of_small_chunks_without_end_takes_less_than_twice_its_limit() -> None:
    """Pieces of a few bytes each cost many times their size if they are kept as they come."""
    chunks = alone(endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"20\r\n" + b"x" * 32 + b"\r\n"))
    assert (chunks.reason, chunks.size) == ("too_large", 0)
    assert chunks.rise < LIMIT / 2  # each of them counts for more than its bytes


@linux_only
def test_f7_heads_without_end_take_little_memory() -> None:
    heads = {
        "lines": endless(OK, b"X-Line: y\r\n" * 100),
        "names": endless(OK, b"".join(b"X-%d: y\r\n" % number for number in range(1_000))),
        "folded": endless(OK + b"X-Line: a\r\n", b" b\r\n" * 100),
        "value": endless(OK + b"X-Line: ", b"y" * 65536),
        "name": endless(OK, b"y" * 65536),
        "status": endless(b"HTTP/1.1 200 ", b"y" * 65536),
        "interim": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
        "nothing": endless(b"", b"\r\n" * 1000),
    }
    for name, found in measured(heads).items():
        assert found.reason == "bad_protocol", name
        assert found.rise < 4 * MEGA, name


@linux_only
def test_f8_redirects_without_end_take_little_memory() -> None:
    """Each with a target as long as a line may be, and a body that does not end."""
    number = count()

    async def further(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /it/%d/%s\r\n\r\n" % (next(number), b"x" * 14_000))
        while True:
            writer.write(b"y" * 65536)
            await writer.drain()

    found = alone(further)
    assert (found.reason, found.size, found.hops) == ("too_many_redirects", 0, 6)
    assert found.rise < 4 * MEGA
    assert next(number) == 6, "the last one is told, not taken"


@linux_only
def test_f12_cookies_pile_up_nowhere() -> None:
    """Two hundred new cookies with every answer, two hundred times: a jar would hold 40,000, and 160 MB."""
    number = count()

    async def cookies(path: str, writer: asyncio.StreamWriter) -> None:
        names = [next(number) for _ in range(200)]
        lines = b"".join(b"Set-Cookie: c%d=%s; Path=/%s\r\n" % (n, b"v" * 4000, quote(path).encode()) for n in names)
        writer.write(OK + lines + b"Content-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()

    found = alone(cookies, times=200)
    assert (found.reason, found.size) == ("", 2)
    assert found.rise < 8 * MEGA
