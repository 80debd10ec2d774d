"""What is not kept reaches its reader whole, however fast the origin is."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from afresh.serve.proxy import filling as fillings
from afresh.serve.proxy.filling import WINDOW, Filling
from serving import Heard, Told, serving

LARGE = bytes(range(256)) * 8192  # 2 MiB


async def _before_its_reader() -> None:
    filling = Filling("http://a.example/", joinable=False)

    async def read() -> int:
        await filling.head()
        reader = filling.join()
        size = 0
        async for piece in filling.pieces(reader):
            size += len(piece)
        filling.leave(reader)
        return size

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    filling.tell()
    for _ in range(8):  # all of them are there at once, as they are on a connection that is used again
        await filling.feed(bytes(WINDOW))
    filling.finish()
    assert await reading == 8 * WINDOW


def test_a_body_that_comes_before_its_reader_was_told_of_it_waits_for_the_reader() -> None:
    asyncio.run(_before_its_reader())


async def _joined() -> None:
    def large(heard: Heard) -> Told:
        return Told(headers={"Cache-Control": "max-age=60"}, body=LARGE, chunked=True)

    async with serving(large, strict=False, settings="[proxy]\nmax_object = 1000\n") as proxy:
        for n in range(6):
            got = await asyncio.gather(*(proxy.ask(f"/{n}") for _ in range(6)))
            assert [each.body == LARGE for each in got] == [True] * 6


def test_readers_who_join_what_turns_out_too_large_all_get_it_whole() -> None:
    asyncio.run(_joined())


async def _stalled() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1 << 16)

    def play(heard: Heard) -> Told:
        return Told(pieces=endless if heard.target == "/endless" else None)

    async with serving(play, strict=False, settings="[proxy]\nconnections = 2\n") as proxy:
        readers = [await proxy.reader() for _ in range(2)]
        for reader in readers:
            await reader.send(b"GET /endless HTTP/1.1\r\nHost: a.example\r\nCookie: a=b\r\n\r\n")
        await asyncio.sleep(1.0)
        assert len(proxy.origin.heard) == 2
        assert not any(reader.reader.at_eof() for reader in readers)  # nobody else waits: they may take their time
        began = time.monotonic()
        assert (await proxy.ask("/page")).body == b"hello"
        assert time.monotonic() - began < 3.0
        for reader in readers:
            reader.close()


def test_readers_who_do_not_read_give_up_what_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fillings, "STALLED", 0.3)
    asyncio.run(_stalled())
