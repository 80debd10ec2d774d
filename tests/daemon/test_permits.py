"""What robots.txt permits: kept within bounds, read once, and asked about exactly what is sent."""

import asyncio
import json

import pytest

from afresh.fetch import Scripted
from afresh.fetch.http import Http
from afresh.frontier import Robots
from afresh.sources.web import permits as module
from afresh.sources.web.permits import NAME, Permits
from afresh.store import Memory
from afresh.types import Fetched, Validators

RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: /map.xml\n"
HOUR = 3600.0


def site(body: bytes = RULES, status: int = 200) -> Scripted:
    return Scripted(lambda url, known: Fetched(url, 0.0, 0.0, status=status, body=body))


def ask(permits: Permits, url: str, fetcher: Scripted, now: float = 0.0) -> None:
    asyncio.run(permits.ask(url, fetcher, lambda: now))


def kept(store: Memory) -> Permits:
    return Permits("afresh", recall=store.get, names=store.names)


def test_what_was_read_once_is_not_read_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Memory()
    first = kept(store)
    ask(first, "http://a.example/x", site(), now=100.0)
    store.put(first.take())
    monkeypatch.setattr(module, "Robots", _Unreadable)
    second = kept(store)
    asyncio.run(second.begin(200.0))
    asyncio.run(second.load("http://a.example/x"))
    assert not second.must_ask("http://a.example/x", 200.0)
    assert second.allowed("http://a.example/x", 200.0)
    assert not second.allowed("http://a.example/private/x", 200.0)
    assert second.crawl_delay("http://a.example/", 200.0) == 2.0
    assert second.sitemaps("http://a.example/") == ("/map.xml",)


class _Unreadable:
    """Robots, without the part that reads a file."""

    def __init__(self, *args: object) -> None:
        raise AssertionError("read again")

    from_json = Robots.from_json


def test_rules_for_another_name_do_not_count() -> None:
    store = Memory()
    first = kept(store)
    ask(first, "http://a.example/x", site())
    store.put(first.take())
    assert Permits("other", recall=store.get).must_ask("http://a.example/x", 1.0)


def test_what_is_too_old_is_forgotten_in_the_store() -> None:
    store = Memory()
    first = kept(store)
    for nth in range(3):
        ask(first, f"http://h{nth}.example/", site(), now=nth * 20 * HOUR)
    store.put(first.take())
    store.put({NAME + "http://old.example": json.dumps({"confirmed": 0.0, "status": 200, "text": "", "reason": ""})})
    second = kept(store)
    asyncio.run(second.begin(45 * HOUR))
    store.put(second.take())
    assert [name for name, _ in store.names(NAME)] == [NAME + "http://h2.example"]


def test_robots_files_take_no_more_memory_than_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMORY", 2_000_000)
    permits = Permits("afresh")
    large = b"User-agent: *\n" + b"".join(b"Disallow: /some/path/%d/\n" % n for n in range(30_000))
    for nth in range(20):
        ask(permits, f"http://h{nth}.example/", site(large))
        assert permits._memory <= 2_000_000
    assert 1 < len(permits._states) < 10
    assert permits._memory == sum(map(module._size, permits._states.values()))


def test_robots_files_take_no_more_of_the_store_than_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STORED", 2_000_000)
    store = Memory()
    permits = kept(store)
    large = b"User-agent: *\n" + b"".join(b"Disallow: /some/path/%d/\n" % n for n in range(30_000))
    for nth in range(10):
        ask(permits, f"http://h{nth}.example/", site(large))
        store.put(permits.take())
        assert sum(size for _, size in store.names(NAME)) <= 2_000_000
    assert NAME + "http://h9.example" in dict(store.names(NAME))
    assert NAME + "http://h0.example" not in dict(store.names(NAME))


def test_what_is_not_written_yet_is_not_taken_for_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that leave memory before they are durable must not be asked for again, nor be replaced by older ones."""
    monkeypatch.setattr(module, "MAX_MEMORY", 0)
    permits = Permits("afresh")
    ask(permits, "http://a.example/", site())
    ask(permits, "http://b.example/", site())
    assert not permits.allowed("http://a.example/private/", 1.0)
    permits.take()
    ask(permits, "http://c.example/", site())
    assert not permits.must_ask("http://a.example/", 1.0)
    assert not permits.allowed("http://a.example/private/", 1.0)


def test_a_large_file_does_not_stop_the_loop() -> None:
    large = b"User-agent: *\n" + b"allow:/\n" * 60_000

    async def go() -> float:
        """The longest that the loop was held up, of the whole."""
        loop, longest = asyncio.get_running_loop(), 0.0
        began = loop.time()
        asking = asyncio.create_task(Permits("afresh").ask("http://a.example/", site(large), lambda: 0.0))
        before = loop.time()
        while not asking.done():
            await asyncio.sleep(0)
            longest, before = max(longest, loop.time() - before), loop.time()
        return longest / (loop.time() - began)

    assert min(asyncio.run(go()) for _ in range(3)) < 0.6  # on the loop it would be nearly all of it


def test_a_url_that_would_be_sent_otherwise_is_not_sent() -> None:
    """Whoever permitted it permitted these bytes, and no others."""
    http = Http(user_agent="test/1", allow_private=True)
    for url in (
        "http://127.0.0.1:1/a/%2e%2e/private",
        "http://127.0.0.1:1/a b",
        "HTTP://127.0.0.1:1/",
        "http://127.1:1/",
    ):
        assert asyncio.run(http.fetch_while(url, Validators(), lambda _: True)).reason == "bad_url"
