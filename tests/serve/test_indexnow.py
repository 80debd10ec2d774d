"""IndexNow as a receiver: who proves to be the host is heard, and row G4 of the hostile cases."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from afresh.daemon import Daemon
from afresh.frontier import Politeness
from afresh.serve.receive import indexnow
from afresh.serve.receive.waiting import MAX_OF_HOST, Waiting, kept
from afresh.signals.indexnow import Submission, from_body
from afresh.store import Memory
from hub import free_port
from live_site import NO_GAPS, Crawl, LiveSite, html, to
from receiving import Answered, raw

KEY = "0123456789abcdef"
PAGES = ("/", "/x", "/shop/y")
Files = dict[str, Callable[[], bytes]]


def plays(
    folder: Path,
    files: Files,
    act: Callable[[LiveSite, int, Daemon], Awaitable[object]],
    store: Memory | None = None,
    at: int = 0,
    politeness: Politeness = NO_GAPS,
    busy: bool = False,
) -> Memory:
    """A crawl of a host with these files besides its pages."""
    kept = store or Memory()

    async def go() -> None:
        site = LiveSite(lambda host, path: files[path]() if path in files else html("<p>hello"), port=at)
        await site.start()
        port = free_port()
        crawl = Crawl(site, kept, receive=(port, folder / "tokens"), budget=20, politeness=politeness)
        tasks: list[asyncio.Task[object]] = []

        async def acting(daemon: Daemon) -> object:
            engine, urls = daemon.engine, [site.url("a.test", path) for path in PAGES]
            while not all(url in engine and engine.current(url) is not None for url in urls):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            if not busy:  # signals stay as they were heard
                daemon.control.pauses = type(daemon.control.pauses)(everything=True)
            await asyncio.sleep(0.3)
            return await act(site, port, daemon)

        crawl.began = lambda daemon: tasks.append(asyncio.create_task(acting(daemon)))  # type: ignore[arg-type]
        try:
            pages = [site.url("a.test", path) for path in PAGES]
            await crawl.until(lambda: bool(tasks) and tasks[0].done(), *pages, seconds=30.0)
            if not tasks[0].done():
                tasks[0].cancel()
            await tasks[0]
        finally:
            site.stop()

    asyncio.run(go())
    return kept


async def get(port: int, head: str = "", **query: str) -> Answered:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return await raw(port, f"GET /indexnow?{text} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())


async def post(port: int, said: object) -> Answered:
    body = (said if isinstance(said, str) else json.dumps(said)).encode()
    return await raw(port, f"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def test_who_proves_to_be_the_host_is_heard_once_a_page(tmp_path: Path) -> None:
    async def act(site: LiveSite, port: int, daemon: Daemon) -> None:
        page, other = site.url("a.test"), site.url("a.test", "/x")
        before = daemon.engine.signals(page)
        assert (await get(port, url=page, key=KEY)).json == {"signals": 1}
        await until(lambda: daemon.engine.signals(page) == before + 1)
        said = {
            "host": f"a.test:{site.port}",
            "key": KEY,
            "urlList": [page] * 5_000 + [site.url("a.test", "/not-kept")],
        }
        assert (await post(port, said)).json == {"signals": 0}, "it was signalled, and one counts until it is crawled"
        assert (await post(port, {**said, "urlList": [other] * 9})).json == {"signals": 1}
        assert site.asked("a.test").count(f"/{KEY}.txt") == 1, "the proof is remembered"

    plays(tmp_path, {f"/{KEY}.txt": lambda: html(f"\ufeff{KEY}\n", kind="text/plain")}, act)


async def until(reached: Callable[[], object]) -> None:
    for _ in range(500):
        if reached():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to that")


def test_g4_the_protocol_is_kept_to_the_letter(tmp_path: Path) -> None:
    files: Files = {
        f"/{KEY}.txt": lambda: html(f"<!doctype html>{KEY}"),
        "/moved/key.txt": lambda: to("/else.txt"),
        "/else.txt": lambda: html(KEY, kind="text/plain"),
        "/shop/key.txt": lambda: html(KEY, kind="text/plain"),
    }

    async def act(site: LiveSite, port: int, daemon: Daemon) -> None:
        page, host = site.url("a.test", "/shop/y"), f"a.test:{site.port}"
        deeper = site.url("a.test", "/shop/key.txt")
        for status, query in [
            (400, {"url": page, "key": "1234567"}),
            (400, {"url": page, "key": "1" * 129}),
            (400, {"url": page, "key": "0123456_789"}),
            (400, {"url": page}),
            (400, {"key": KEY}),
            (400, {"url": "ftp://a.test/", "key": KEY}),
            (422, {"url": page, "key": KEY, "keyLocation": site.url("b.test", "/k.txt")}),
            (422, {"url": site.url("a.test", "/x"), "key": KEY, "keyLocation": deeper}),
            (422, {"url": site.url("other.test"), "key": KEY}),
            (403, {"url": page, "key": KEY}),  # HTML
            (
                403,
                {
                    "url": site.url("a.test", "/moved/a"),
                    "key": KEY,
                    "keyLocation": site.url("a.test", "/moved/key.txt"),
                },
            ),
            (200, {"url": page, "key": KEY, "keyLocation": deeper}),
        ]:
            answered = await get(port, **query)
            assert answered.status == status, (query, answered.body)
        for status, said in [
            (400, "{"),
            (400, "[]"),
            (400, {"host": host, "key": KEY, "urlList": []}),
            (400, {"host": host, "key": KEY, "urlList": [page, 7]}),
            (400, {"host": host, "key": KEY, "urlList": [f"http://{host}/{n}" for n in range(10_001)]}),
            (422, {"host": host, "key": KEY, "urlList": [page, site.url("b.test")]}),
            (422, {"host": "b.test", "key": KEY, "urlList": [page]}),
        ]:
            answered = await post(port, said)
            assert answered.status == status, (str(said)[:100], answered.body)
        assert "/else.txt" not in site.asked("a.test")
        many = [f"http://{host}/shop/{n}" for n in range(10_000)]
        assert (await post(port, {"host": host, "key": KEY, "keyLocation": deeper, "urlList": many})).status == 429
        assert {each.host for each in site.log} == {"a.test"}, "nobody else was asked"

    plays(tmp_path, files, act)


def test_a_proof_that_is_not_there_yet_is_looked_for_again_also_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexnow, "RETRY_SECONDS", 0.2)
    answers = [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"]
    ports: list[int] = []

    async def submit(site: LiveSite, port: int, daemon: Daemon) -> None:
        ports.append(site.port)
        assert (await get(port, url=site.url("a.test"), key=KEY)).status == 202

    store = plays(tmp_path, {f"/{KEY}.txt": lambda: answers[0]}, submit)
    names = store.names(indexnow.WAITING)
    assert [name.rpartition(" ")[0] for name, _ in names] == [f"{indexnow.WAITING}a.test:{ports[0]}"]
    assert from_body(json.dumps({"host": "e.org", "key": KEY, "urlList": ["https://e.org/a#b"]}).encode()).urls == (
        "https://e.org/a",
    )

    async def proved(site: LiveSite, port: int, daemon: Daemon) -> None:
        await until(lambda: not store.names(indexnow.WAITING))
        assert site.asked("a.test").count(f"/{KEY}.txt") == 1

    answers[0] = html(KEY, kind="text/plain")
    plays(tmp_path, {f"/{KEY}.txt": lambda: answers[0]}, proved, store, ports[0])


def test_a_proof_that_comes_later_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexnow, "RETRY_SECONDS", 0.2)
    answers = [b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"]

    async def act(site: LiveSite, port: int, daemon: Daemon) -> None:
        page = site.url("a.test")
        before = daemon.engine.signals(page)
        assert (await get(port, url=page, key=KEY)).status == 202
        assert daemon.questions["receiver"]({})["key_files_awaited"] == [f"a.test:{site.port}"]  # type: ignore[index]
        answers[0] = html(KEY, kind="text/plain")
        await until(lambda: daemon.engine.signals(page) == before + 1)

    plays(tmp_path, {f"/{KEY}.txt": lambda: answers[0]}, act)


def test_who_proves_nothing_uses_nothing_up(tmp_path: Path) -> None:
    async def act(site: LiveSite, port: int, daemon: Daemon) -> None:
        page, host = site.url("a.test"), f"a.test:{site.port}"
        many = [f"http://{host}/{n}" for n in range(10_000)]
        assert (await post(port, {"host": host, "key": "not-the-key", "urlList": many})).status == 403
        assert (await get(port, url=page, key=KEY)).status == 200, "what was not proved is not charged to the host"
        asked = [(await get(port, url=page, key=f"another-key-{n}")).status for n in range(12)]
        assert asked == [403] * 8 + [429] * 4, "ten keys a minute from one network address, two of them above"
        assert (await get(port, url=page, key=KEY)).status == 200, "a key that is known needs no look"
        elsewhere = "X-Forwarded-For: 192.0.2.7\r\n"
        assert (await get(port, elsewhere, url=page, key="another-key-99")).status == 403
        told = daemon.questions["receiver"]({})
        assert told == {
            "address": f"127.0.0.1:{port}",
            "accepted": 2,
            "refused": 14,
            "key_files_awaited": [],
        }

    plays(tmp_path, {f"/{KEY}.txt": lambda: html(KEY, kind="text/plain")}, act)


def test_a_key_file_has_a_turn_soon_also_where_pages_take_every_turn(tmp_path: Path) -> None:
    async def act(site: LiveSite, port: int, daemon: Daemon) -> None:
        assert (await get(port, url=site.url("a.test"), key=KEY)).status == 200
        log = site.asked("a.test")
        assert len(log) > len(PAGES) + 1, "its pages did take turns"

    files: Files = {f"/{KEY}.txt": lambda: html(KEY, kind="text/plain")}
    gaps = Politeness(factor=0, shortest_gap=0.4, longest_gap=0.4)
    plays(tmp_path, files, act, politeness=gaps, busy=True)


def test_what_waits_is_kept_apart_by_key_and_no_bogus_one_displaces_it() -> None:
    waiting, urls = Waiting(), ("https://e.org/a",)

    def put(key: str, sent_by: str, now: float, urls: tuple[str, ...] = urls) -> bool:
        room = waiting.room_for(Submission("e.org", key, f"https://e.org/{key}.txt", urls), sent_by, now)
        if room is not None:
            if room[1] is not None:
                waiting.drop(room[1])
            waiting.put(room[0])
        return room is not None

    assert put(KEY, "192.0.2.1", 0.0)
    for nth in range(100):
        assert put(f"bogus-{nth}", "198.51.100.9", nth + 1.0)
    keys = {key for _, key, _ in waiting.proofs()}
    assert len(keys) == MAX_OF_HOST
    assert KEY in keys
    assert put(KEY, "192.0.2.1", 200.0, ("https://e.org/b",)), "with the same key both wait"
    mine = waiting.get(("e.org", KEY, f"https://e.org/{KEY}.txt"))
    assert mine is not None
    assert (mine.submission.urls, mine.since) == (("https://e.org/a", "https://e.org/b"), 0.0)
    for nth in range(100):  # and from many networks: those that are there stay
        put(f"other-{nth}", f"203.0.113.{nth}", 300.0 + nth)
    assert KEY in {key for _, key, _ in waiting.proofs()}
    assert not put("large-one", "192.0.2.9", 400.0, tuple(f"https://e.org/{'a' * 2000}{n}" for n in range(600)))
    texts = {waits.name: waits.text for proof in waiting.proofs() if (waits := waiting.get(proof))}
    texts["indexnow waiting old.org"] = json.dumps([KEY, "https://old.org/k.txt", urls, 7.0])  # of an earlier version
    assert {
        (waits.submission.host, waits.since) for _, waits in kept([*texts, "indexnow waiting x"], texts.get, 1e9)
    } >= {
        ("e.org", 0.0),
        ("old.org", 7.0),
    }
