"""Names that do not resolve as they should: row F15 of the hostile world."""

import asyncio
import socket
import threading
import time
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from afresh.detect import compare
from afresh.fetch import Guard, Http, Limits
from afresh.fetch.resolve import MOST_ADDRESSES, MOST_NAMES, SECONDS_KEPT, Lookup, SystemResolver
from afresh.fetch.resolve import Names as Remembered
from afresh.types import Fetched, Outcome, Validators

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


def found(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


class Names(AbstractResolver):
    """Every name is at 127.0.0.1 at once, but for these."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host == "silent.example":
            await asyncio.sleep(60)
        if host == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if host == "loop.example":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure: CNAME loop")
        if host == "empty.example":
            return []
        if host == "crowd.example":
            crowd = [f"127.9.{number // 250}.{1 + number % 250}" for number in range(1000)]
            return [found(host, each, port) for each in [*crowd, "::1"]]
        return [found(host, "127.0.0.1", port)]

    async def close(self) -> None:
        pass


def test_f15_a_name_that_never_answers_ends_in_time_and_others_go_on() -> None:
    async def go() -> tuple[Fetched, list[Fetched]]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(PAGE)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        http = Http(user_agent="test/1", limits=Limits(lookup=1.5), allow_private=True, resolver=Names())
        slow = asyncio.create_task(http.fetch(f"http://silent.example:{port}/", Validators()))
        others = [await http.fetch(f"http://site{number}.example:{port}/", Validators()) for number in range(20)]
        assert not slow.done()  # nobody waited for it
        got = await slow
        await http.close()
        server.close()
        return got, others

    got, others = asyncio.run(go())
    assert got.reason == "dns_timeout"
    assert 1.4 < got.took + got.waited < 8  # what the machine held us up is not counted as the host's
    assert compare(Validators(), got).outcome is Outcome.FAILED  # so that the host, and it alone, is left to rest
    assert [each.body for each in others] == [b"hello"] * 20


@pytest.mark.parametrize("name", ["unknown.example", "loop.example", "empty.example"])
def test_f15_a_name_without_an_address_is_named(stage: Any, name: str) -> None:
    got = stage.fetch(PAGE, urls=(f"http://{name}:{{port}}/",), resolver=Names())
    assert (got.reason, got.status) == ("dns", 0)


def test_f15_a_thousand_addresses_are_all_checked_and_few_are_tried(stage: Any) -> None:
    async def few(guard: Guard) -> list[str]:
        return [each["host"] for each in await Lookup(Names(), guard, seconds=1).resolve("crowd.example", 80)]

    kept = asyncio.run(few(Guard(allow_private=True)))
    assert len(kept) == MOST_ADDRESSES + 1
    assert kept[-1] == "::1"  # neither family crowds the other out

    got = stage.fetch(PAGE, urls=("http://crowd.example:{port}/",), resolver=Names())
    assert got.reason == "no_connection"  # nobody listens there
    assert got.took < 5


def test_f15_a_time_to_live_of_zero_does_not_mean_a_lookup_per_fetch(stage: Any) -> None:
    names = Names()
    got = stage.fetch_all(PAGE, urls=("http://site.example:{port}/",) * 5, resolver=names)
    assert [each.body for each in got] == [b"hello"] * 5
    assert names.asked == ["site.example"]


class Slow(Names):
    """Takes its time."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        await asyncio.sleep(0.05)
        if host == "unknown.example":
            raise OSError("unknown")
        return [found(host, "127.0.0.1", port)]


def test_f15_who_asks_for_a_name_that_is_being_looked_up_waits_for_that() -> None:
    slow, now = Slow(), 0.0
    cache = Remembered(Lookup(slow, Guard(allow_private=True), seconds=1), clock=lambda: now)

    async def go() -> None:
        nonlocal now
        first, *others = [asyncio.create_task(cache.find("site.example", 80)) for _ in range(5)]
        await asyncio.sleep(0.01)
        first.cancel()  # who gives up does not take it from the others
        assert [[each["host"] for each in await other] for other in others] == [["127.0.0.1"]] * 4
        await cache.find("site.example", 80)
        assert slow.asked == ["site.example"]
        now = SECONDS_KEPT + 1
        await cache.find("site.example", 80)
        assert slow.asked == ["site.example"] * 2
        for _ in range(2):  # failures are not remembered
            with pytest.raises(OSError, match="unknown"):
                await cache.find("unknown.example", 80)
        assert slow.asked[2:] == ["unknown.example"] * 2

    asyncio.run(go())


def test_f15_no_more_than_so_many_names_are_remembered() -> None:
    names = Names()
    cache = Remembered(Lookup(names, Guard(allow_private=True), seconds=1))

    async def go() -> None:
        for number in range(MOST_NAMES + 10):
            await cache.find(f"h{number}.example", 80)
        assert len(cache._known) == MOST_NAMES
        await cache.find(f"h{MOST_NAMES}.example", 80)  # a late one is still there
        assert len(names.asked) == MOST_NAMES + 10

    asyncio.run(go())


def test_f15_lookups_that_hang_take_a_bounded_number_of_threads_and_none_of_the_loops() -> None:
    release = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        release.wait(10)
        return []

    async def go() -> tuple[int, float]:
        before = threading.active_count()
        lookup = Lookup(SystemResolver(hang, threads=8), Guard(allow_private=True), seconds=0.2)
        tasks = [asyncio.create_task(lookup.resolve(f"hang{number}.example", 80)) for number in range(50)]
        await asyncio.sleep(0.1)
        threads = threading.active_count() - before
        began = time.monotonic()
        await asyncio.to_thread(lambda: None)  # the threads of the loop, which the store writes in, are free
        free = time.monotonic() - began
        failures = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(each).__name__ for each in failures} == {"LookupTimeout"}
        release.set()
        return threads, free

    threads, free = asyncio.run(go())
    assert threads == 8
    assert free < 0.1


def test_the_system_is_asked_for_names() -> None:
    async def go() -> list[ResolveResult]:
        return await SystemResolver().resolve("localhost", 80, socket.AF_INET)

    assert "127.0.0.1" in {each["host"] for each in asyncio.run(go())}


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "x" * 300, "bad..name.example", "-.invalid"])
def test_names_that_cannot_be_names_are_values(name: str) -> None:
    async def go() -> Fetched:
        http = Http(user_agent="test/1", limits=Limits(seconds=5, lookup=3))
        try:
            return await http.fetch(f"http://{name}/", Validators())
        finally:
            await http.close()

    assert asyncio.run(go()).reason in ("dns", "dns_timeout", "bad_url")
