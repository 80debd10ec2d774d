"""What was called off goes on where it ended, if the origin can do that; and no half is ever shown as whole."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from afresh.serve.proxy.dates import written
from afresh.serve.proxy.request import Refusal, Request
from afresh.serve.proxy.unfinished import Beginning, Unfinished
from serving import Heard, Serving, Told, serving

WHOLE = bytes(range(256)) * 40
CAME = 4000
LEFT = len(WHOLE) - CAME
RANGE = f"bytes {CAME}-{len(WHOLE) - 1}/{len(WHOLE)}"
FIELDS = {"Content-Type": "image/png", "Cache-Control": "max-age=3600", "Accept-Ranges": "bytes", "ETag": '"one"'}


def half(**other: str) -> Told:
    """A first answer that stops midway."""
    named = {name.replace("_", "-"): value for name, value in other.items()}
    fields = {name: value for name, value in (FIELDS | named).items() if value}
    return Told(200, {"Content-Length": str(len(WHOLE))} | fields, WHOLE[:CAME])


def rest(body: bytes = WHOLE[CAME:], **other: str) -> Told:
    """What an honest origin brings when it is asked for the rest."""
    named = {name.replace("_", "-"): value for name, value in other.items()}
    return Told(206, FIELDS | {"Content-Range": RANGE} | named, body)


class Play:
    """The first answer stops midway; the one to a question for a part is told; all others are whole."""

    def __init__(self, first: Told, second: Callable[[], Told]) -> None:
        self.first, self.second = first, second
        self.asked: list[str] = []

    def __call__(self, heard: Heard) -> Told:
        self.asked.append(heard.headers.get("range", ""))
        if len(self.asked) == 1:
            return self.first
        if "range" in heard.headers:
            return self.second()
        return Told(200, FIELDS, WHOLE)


async def called_off(proxy: Serving, came: int = CAME) -> None:
    """Fetch ahead until all has come that comes, and call it off."""
    service = proxy.parts.service
    found = service.routes.find(Request("GET", b"/p.png", "1.1", [(b"Host", b"a.example")]))
    assert not isinstance(found, Refusal)
    filling = service.ahead(found[0], f"{proxy.origin.url}/p.png")
    assert filling is not None
    assert filling.task is not None
    async with asyncio.timeout(10):
        while filling.size < came:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    filling.task.cancel()
    await asyncio.wait({filling.task})


async def _goes_on() -> None:
    play = Play(half(), rest)
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        got = await proxy.ask("/p.png")
        assert (got.status, got.body) == (200, WHOLE)
        assert got["content-length"] == str(len(WHOLE))
        assert not got["content-range"]
        assert play.asked == ["", f"bytes={CAME}-"]
        heard = proxy.origin.heard[1].headers
        assert heard["if-range"] == '"one"'
        assert "if-none-match" not in heard
        again = await proxy.ask("/p.png")
        assert again.body == WHOLE
        assert "afresh; hit" in again["cache-status"]
        unfinished = proxy.parts.service.asking.unfinished
        assert (unfinished.used, unfinished.used_bytes, len(unfinished), unfinished.bytes) == (1, CAME, 0, 0)


def test_a_reader_gets_what_had_come_and_only_the_rest_is_fetched() -> None:
    asyncio.run(_goes_on())


async def _streams() -> None:
    more = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield WHOLE[CAME : CAME + 100]
        await more.wait()
        yield WHOLE[CAME + 100 :]

    def told() -> Told:
        answer = rest()
        answer.pieces = slowly
        return answer

    async with serving(Play(half(), told), strict=False) as proxy:
        await called_off(proxy)
        reader = await proxy.reader()
        await reader.send(b"GET /p.png HTTP/1.1\r\nHost: a.example\r\n\r\n")
        async with asyncio.timeout(10):
            await reader.reader.readuntil(b"\r\n\r\n")
            assert await reader.reader.readexactly(CAME + 100) == WHOLE[: CAME + 100]
        more.set()
        assert await reader.reader.readexactly(LEFT - 100) == WHOLE[CAME + 100 :]
        reader.close()


def test_the_beginning_goes_out_while_the_rest_is_on_its_way() -> None:
    asyncio.run(_streams())


async def _twice() -> None:
    async def some() -> AsyncIterator[bytes]:
        yield WHOLE[CAME : CAME + 500]
        await asyncio.sleep(60)

    def told() -> Told:
        if len(play.asked) == 2:
            return Told(206, FIELDS | {"Content-Range": RANGE}, pieces=some)
        at = CAME + 500
        return rest(WHOLE[at:], Content_Range=f"bytes {at}-{len(WHOLE) - 1}/{len(WHOLE)}")

    play = Play(half(), told)
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        unfinished = proxy.parts.service.asking.unfinished
        await called_off(proxy, CAME + 500)
        assert len(unfinished) == 1
        assert (await proxy.ask("/p.png")).body == WHOLE
        assert play.asked == ["", f"bytes={CAME}-", f"bytes={CAME + 500}-"]


def test_what_is_called_off_again_goes_on_from_there() -> None:
    asyncio.run(_twice())


LIES = {
    "other start": lambda: rest(Content_Range=f"bytes {CAME - 1}-{len(WHOLE) - 1}/{len(WHOLE)}"),
    "other end": lambda: rest(Content_Range=f"bytes {CAME}-{len(WHOLE)}/{len(WHOLE) + 1}"),
    "unknown length": lambda: rest(Content_Range=f"bytes {CAME}-{len(WHOLE) - 1}/*"),
    "no Content-Range": lambda: Told(206, FIELDS, WHOLE[CAME:]),
    "other length": lambda: rest(WHOLE[CAME:-1]),
    "other tag": lambda: rest(ETag='"two"'),
    "no tag": lambda: Told(206, {"Content-Range": RANGE}, WHOLE[CAME:]),
    "other date": lambda: rest(Last_Modified="Sun, 06 Nov 1994 08:49:37 GMT"),
    "packed": lambda: rest(Content_Encoding="gzip"),
    "not for all": lambda: rest(Cache_Control="private"),
    "several": lambda: Told(206, FIELDS | {"Content-Type": "multipart/byteranges; boundary=x"}, b"--x--"),
    "not modified": lambda: Told(304, FIELDS),
    "no such part": lambda: Told(416, {"Content-Range": f"bytes */{len(WHOLE)}"}, b""),
}


async def _refused(second: Callable[[], Told]) -> None:
    play = Play(half(), second)
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        got = await proxy.ask("/p.png")
        assert (got.status, got.body) == (200, WHOLE)
        assert play.asked == ["", f"bytes={CAME}-", ""]
        assert len(proxy.parts.service.asking.unfinished) == 0


@pytest.mark.parametrize("lie", LIES)
def test_what_does_not_belong_to_it_is_refused_and_all_is_fetched_anew(lie: str) -> None:
    asyncio.run(_refused(LIES[lie]))


async def _another() -> None:
    new = b"another picture"
    play = Play(half(), lambda: Told(200, FIELDS | {"ETag": '"two"'}, new))
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        got = await proxy.ask("/p.png")
        assert (got.status, got.body, got["etag"]) == (200, new, '"two"')
        assert (await proxy.ask("/p.png")).body == new
        assert play.asked == ["", f"bytes={CAME}-"]


def test_a_whole_answer_replaces_the_beginning() -> None:
    asyncio.run(_another())


async def _never_ends(endless: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield WHOLE[CAME:-10]
        for _ in range(10_000 if endless else 0):
            yield b"x" * 1000

    def told() -> Told:
        answer = rest()
        answer.pieces = pieces
        return answer

    play = Play(half(), told)
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        got = await proxy.raw(b"GET /p.png HTTP/1.1\r\nHost: a.example\r\n\r\n")
        body = got.partition(b"\r\n\r\n")[2]
        assert len(body) < len(WHOLE)  # of the length that was said: the reader sees that it broke off
        assert WHOLE.startswith(body)
        assert len(proxy.parts.service.asking.unfinished) == 0
        again = await proxy.ask("/p.png")
        assert (again.body, play.asked[-1]) == (WHOLE, "")


@pytest.mark.parametrize("endless", [False, True])
def test_a_rest_that_is_too_short_or_has_no_end_is_never_shown_as_whole(endless: bool) -> None:
    asyncio.run(_never_ends(endless))


async def _unasked() -> None:
    async with serving(lambda heard: rest(), strict=False) as proxy:
        got = await proxy.ask("/p.png")
        assert got.status == 502
        assert len(proxy.parts.service.cache) == 0
        assert (await proxy.ask("/p.png", {"Range": f"bytes={CAME}-"})).status == 206


def test_a_part_that_nobody_asked_for_is_refused() -> None:
    asyncio.run(_unasked())


async def _begins_again(first: Told, kept: bool) -> None:
    play = Play(first, rest)
    async with serving(play, strict=False) as proxy:
        await called_off(proxy)
        assert (len(proxy.parts.service.asking.unfinished) == 1) is kept


NOW = int(time.time())


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ({"Accept_Ranges": "none"}, False),
        ({"Accept_Ranges": ""}, False),
        ({"ETag": 'W/"one"'}, False),
        ({"ETag": ""}, False),
        ({"ETag": "", "Last_Modified": written(NOW - 3600), "Date": written(NOW)}, True),
        ({"ETag": "", "Last_Modified": written(NOW - 5), "Date": written(NOW)}, False),
        ({"Content_Encoding": "gzip"}, False),
    ],
)
def test_without_ranges_or_a_strong_validator_nothing_is_kept(other: dict[str, str], kept: bool) -> None:
    asyncio.run(_begins_again(half(**other), kept))


def beginning(url: str, size: int, at: float = 0.0) -> Beginning:
    return Beginning(url, [], b"x" * size, size + 1, ("etag", '"one"'), (), (), at)


def test_beginnings_are_bounded_in_number_bytes_and_time() -> None:
    kept = Unfinished(most=3, most_bytes=100_000)
    for number in range(5):
        assert kept.keep(beginning(str(number), 1000))
    assert [str(number) in kept for number in range(5)] == [False, False, True, True, True]
    assert kept.keep(beginning("large", 90_000))
    assert "large" in kept
    assert kept.bytes <= 100_000
    assert not kept.keep(beginning("too large", 100_000))
    assert kept.take("large", {}, 601.0) is None
    assert "large" not in kept
    for name in ("2", "3", "4"):
        kept.drop(name)
    assert (len(kept), kept.bytes) == (0, 0)
