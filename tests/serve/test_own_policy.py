"""Own policy, line by line: the probability that a copy is fresh decides, and what readers ask for is evidence."""

import asyncio
import json
import time
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest

from afresh.cli.serving import with_effects
from afresh.config import parse
from afresh.serve.proxy import belief, dates
from afresh.serve.proxy.evidence import Evidence
from afresh.store import Memory, PageState, Record, Sqlite, Store
from afresh.store.messages import edit_of, evidence
from afresh.types import Beliefs, Copy, Crawl, Outcome, Page, Request, Signal, Validators
from serving import Got, Heard, Serving, Told, serving


def hit(got: Got) -> bool:
    return "afresh; hit" in got["cache-status"]


def aged(proxy: Serving, seconds: float) -> None:
    """Let time pass for all that is in memory."""
    for entry in proxy.parts.service.cache:
        entry.born -= seconds
        entry.confirmed -= seconds
        entry.good_until -= seconds
        entry.said_until = 0.0


async def _lifetimes() -> None:
    headers = {"Cache-Control": "max-age=100", "ETag": '"a"'}

    def play(heard: Heard) -> Told:
        return Told(304 if heard.headers.get("if-none-match") == '"a"' else 200, headers)

    async with serving(play, strict=False) as proxy:
        got = await proxy.ask()
        assert not hit(got)
        got = await proxy.ask()
        assert hit(got)
        assert float(got["x-fresh-probability"]) > 0.99
        aged(proxy, 50)
        got = await proxy.ask()
        assert hit(got)
        assert 0.5 < float(got["x-fresh-probability"]) < 0.9
        assert 50 <= int(got["age"]) <= 52
        aged(proxy, 200)
        got = await proxy.ask()  # below the threshold: asked about while the reader waits
        assert "fwd-status=304" in got["cache-status"]
        assert (got.status, got.body, len(proxy.origin.heard)) == (200, b"hello", 2)
        assert float((await proxy.ask())["x-fresh-probability"]) > 0.99
        # Each time it still held, so it is trusted for longer.
        before = next(iter(proxy.parts.service.cache)).good_until
        for _ in range(6):
            aged(proxy, 4000)
            await proxy.ask()
        after = next(iter(proxy.parts.service.cache)).good_until
        assert after - time.time() > 2 * (before - time.time())


def test_the_probability_decides_and_lifetimes_are_evidence() -> None:
    asyncio.run(_lifetimes())


def test_how_far_lifetimes_can_be_trusted_is_learned_for_each_host() -> None:
    trust = belief.Trust()
    for _ in range(20):
        trust.saw("lies.example", 3600.0, 60.0, changed=True)
        trust.saw("shy.example", 60.0, 3600.0, changed=False)
    factors = [trust.factor(host) for host in ("lies.example", "new.example", "shy.example")]
    assert factors[0] > 10 > factors[1] > 0.99 > 0.1 > factors[2]
    # At the end of a lifetime that is to be believed, every second copy is fresh.
    told = belief.at_first(trust.host("new.example"), 60.0, None)
    for threshold in (0.9, 0.5, 0.2):
        assert told.freshness(told.good_for(threshold)) == pytest.approx(threshold, abs=3e-3)
    assert told.good_for(0.5) == pytest.approx(60.0, rel=1e-2)
    # Where the runner crawls a page, what that has shown counts until it foretells worse than the rest.
    assert told.good_for(0.5, request_rate=1.0) < 30.0  # what many ask for is asked about sooner
    crawled = told.told(trust.host("new.example"), Beliefs(change_rate=log(2) / 3600))
    assert crawled.good_for(0.5) == pytest.approx(3600.0, rel=1e-2)


def test_what_is_said_of_a_new_page_is_true_on_average_of_the_pages_of_its_host() -> None:
    """Quick pages beside slow ones: a page of which nothing is known may be either."""
    rng = np.random.default_rng(1)
    trust, rates = belief.Trust(), np.where(rng.random(400) < 0.4, log(2) / 20.0, log(2) / 4_000.0)
    for rate, elapsed in zip(rates[:200], 2.0 ** rng.uniform(2, 12, 200), strict=True):
        trust.saw("mixed.example", 600.0, float(elapsed), changed=rng.random() > np.exp(-rate * elapsed))
    for rate in rates[200:]:
        trust.knows("crawled.example", 600.0, Beliefs(change_rate=float(rate), shape=8.0))
    for name in ("mixed.example", "crawled.example"):
        said = belief.at_first(trust.host(name), None, None)
        for elapsed in (20.0, 60.0, 300.0):
            true = 0.4 * 2.0 ** (-elapsed / 20.0) + 0.6 * 2.0 ** (-elapsed / 4_000.0)
            assert said.freshness(elapsed) == pytest.approx(true, abs=0.15), (name, elapsed)
    # A date is believed as far as the host's dates have moved with its pages: it may be of a quick page, too.
    host = trust.host("mixed.example")
    told = belief.at_first(host, None, 25_000.0)
    assert told.freshness(300.0) == pytest.approx(0.8 * 0.99 + 0.2 * said.freshness(300.0), abs=0.03)
    host.right = 200.0
    assert belief.at_first(host, None, 25_000.0).freshness(300.0) > 0.98


def test_the_view_that_foretells_best_decides() -> None:
    """Pages that change at a steady rate, and pages that stay the longer the longer they have stayed."""
    steady, staying = belief.Trust().host("steady.example"), belief.Trust().host("staying.example")
    rng = np.random.default_rng(0)
    for host, changes in ((steady, rng.exponential(600.0, 3000)), (staying, 60.0 * rng.pareto(0.5, 3000))):
        moments, now, version = np.cumsum(changes), 0.0, 0
        outlook = belief.at_first(host, 600.0, None)
        for _ in range(400):
            elapsed = min(outlook.good_for(0.5), 1e6)
            now += elapsed
            found = int(np.searchsorted(moments, now))
            outlook.foretold(host, elapsed, changed=found != version)
            outlook, version = outlook.after(host, elapsed, changed=found != version, silent=None), found
    assert max(steady.foretold[:3]) == steady.foretold[0]
    assert max(staying.foretold[:3]) != staying.foretold[0]


async def _served_stale() -> None:
    version = 1

    def play(heard: Heard) -> Told:
        return Told(headers={"Cache-Control": "max-age=10"}, body=b"version %d" % version, wait=0.2)

    settings = '[[serve]]\nhost = "a.example"\norigin = "{origin}"\nstale = "serve"\nthreshold = 0.8\n'
    async with serving(play, strict=False, settings=settings) as proxy:
        await proxy.ask()
        aged(proxy, 1000)
        version = 2
        began = time.monotonic()
        answers = await asyncio.gather(*(proxy.ask() for _ in range(10)))
        assert {got.body for got in answers} == {b"version 1"}
        assert time.monotonic() - began < 0.2 + 2
        await asyncio.sleep(0.5)
        assert (await proxy.ask()).body == b"version 2"
        assert len(proxy.origin.heard) == 2


def test_a_site_may_have_stale_copies_handed_out_while_they_are_refreshed() -> None:
    asyncio.run(_served_stale())


async def _own_name() -> None:
    def play(heard: Heard) -> Told:
        vary = {"Vary": "Accept-Language"} if heard.target == "/language" else {}
        body = heard.headers.get("accept-language", "none").encode()
        return Told(headers={"Cache-Control": "max-age=60", **vary}, body=body)

    async with serving(play, strict=False) as proxy:
        await proxy.ask("/", {"User-Agent": "me", "Accept-Language": "de", "X-Secret": "1", "Referer": "http://x/"})
        sent = proxy.origin.heard[0].headers
        assert sent["user-agent"].startswith("afresh/")
        assert not {"accept-language", "x-secret", "referer"} & set(sent)
        # A page that is known to depend on a field has a copy for each of its values, in one spelling.
        for language, expected in (("de", b"de"), ("en", b"en"), ("de", b"de"), (" DE ", b"de")):
            assert (await proxy.ask("/language", {"Accept-Language": language})).body.lower().strip() == expected
        assert [heard.headers.get("accept-language") for heard in proxy.origin.heard[1:]] == [None, "de", "en"]


def test_fetches_for_all_are_made_in_our_own_name() -> None:
    asyncio.run(_own_name())


def kept(store: Store, url: str, body: bytes, *, checked: float, rate: float, signals: int = 0, **meta: str) -> None:
    """Let a store have a page, as the runner would."""
    page = Page(url, url.split("/")[2])
    store.add([page])
    copy = Copy(url, body, "text/html", checked, checked, Validators('"k"'), {":status": "200", **meta})
    beliefs = Beliefs(1.0, rate, 0.5, 0.001, 10)
    state = PageState(page, beliefs, Validators('"k"'), checked, checked, signals, crawls=10)
    store.write([Record(Crawl(url, checked, Outcome.NEW), state, copy)])


async def _from_the_store(store: Store) -> None:
    async with serving(lambda heard: Told(body=b"asked"), strict=False, store=store) as proxy:
        now = time.time()
        url = proxy.origin.url
        kept(store, f"{url}/good", b"kept", checked=now - 60, rate=1e-4, **{"x-of": "origin"})
        kept(store, f"{url}/old", b"kept", checked=now - 1e6, rate=1e-4)
        kept(store, f"{url}/signalled", b"kept", checked=now - 60, rate=1e-4, signals=60)
        kept(store, f"{url}/private", b"kept", checked=now, rate=1e-4, **{"cache-control": "private"})
        kept(store, f"{url}/cookie", b"kept", checked=now, rate=1e-4, **{"set-cookie": ""})
        got = await proxy.ask("/good")
        assert (got.body, hit(got), got["x-of"], got["etag"]) == (b"kept", True, "origin", '"k"')
        assert float(got["x-fresh-probability"]) == pytest.approx(
            Beliefs(1.0, 1e-4, 0.5, 0.001).freshness(60, 0), abs=0.01
        )
        assert 59 <= int(got["age"]) <= 63
        for path in ("/old", "/signalled", "/private", "/cookie"):
            assert (await proxy.ask(path)).body == b"asked", path
        # The runner has fetched it meanwhile: the proxy notices.
        kept(store, f"{url}/good", b"newer", checked=time.time(), rate=1e-4)
        for _ in range(100):
            for entry in proxy.parts.service.cache:
                entry.look_again = 0.0
            if (got := await proxy.ask("/good")).body == b"newer":
                break
            await asyncio.sleep(0.05)
        assert got.body == b"newer"
        # Also where the reader would have had to wait for the origin: the store is asked first, once for all who wait.
        aged(proxy, 1e6)
        kept(store, f"{url}/good", b"newest", checked=time.time(), rate=1e-4)
        answers = await asyncio.gather(*(proxy.ask("/good") for _ in range(20)))
        assert [(got.body, hit(got)) for got in answers] == [(b"newest", True)] * 20
        assert not [heard for heard in proxy.origin.heard if heard.target == "/good"]
        # What must be asked about first is, whatever was crawled meanwhile.
        kept(store, f"{url}/good", b"of before", checked=time.time(), rate=1e-4)
        proxy.parts.service.cache.spoil(f"{url}/good")
        assert (await proxy.ask("/good")).body == b"asked"


def test_copies_of_the_runner_are_handed_out_by_what_is_believed_of_them(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "kept.db") as store:
        asyncio.run(_from_the_store(store))


async def _looked_again(store: Store) -> None:
    async with serving(lambda heard: Told(), strict=False, store=store) as proxy:
        now, url = time.time(), f"{proxy.origin.url}/p"

        async def after(state: PageState, outcome: Outcome) -> Got:
            """What a reader gets once the proxy has seen what the store knows."""
            store.write([Record(Crawl(url, now, outcome), state)])
            for entry in proxy.parts.service.cache:
                entry.look_again = entry.said_until = 0.0
            await proxy.ask("/p")
            if looks := proxy.parts.policy._looks:
                await asyncio.wait(looks.values())
            return await proxy.ask("/p")

        date = {"date": "Mon, 02 Nov 2026 08:00:00 GMT", "x-ua-compatible": "1"}
        kept(store, url, b"kept", checked=now - 3000, rate=2e-4, **date)
        first, state = await proxy.ask("/p"), store.state(url)
        assert state is not None
        assert hit(first)
        assert first["date"] == date["date"]
        assert {"Date", "ETag", "Content-Type", "X-UA-Compatible"} <= first.names
        # Nobody has looked again: whatever is believed by now, what is said of the copy does not rise.
        for rate in (1e-9, 1e-2):
            got = await after(replace(state, beliefs=Beliefs(1.0, rate, 0.5, 0.001, 10)), Outcome.FAILED)
            assert 0 <= float(first["x-fresh-probability"]) - float(got["x-fresh-probability"]) < 0.01
            assert int(got["age"]) - int(first["age"]) in range(5)
        got = await after(replace(state, signals=1), Outcome.FAILED)
        assert float(got["x-fresh-probability"]) < float(first["x-fresh-probability"]) - 0.01
        # The runner found that it holds: all three are those of a copy that was confirmed now.
        got = await after(replace(state, checked=now), Outcome.UNCHANGED)
        assert (hit(got), got.body, int(got["age"]) < 20) == (True, b"kept", True)
        assert got["date"] == dates.written(int(now))
        assert float(got["x-fresh-probability"]) > 0.98
        assert not proxy.origin.heard


def test_what_is_said_of_a_copy_falls_until_somebody_has_looked_again(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "kept.db") as store:
        asyncio.run(_looked_again(store))


async def _evidence(store: Store) -> tuple[str, dict[str, float], list[Signal], set[str]]:
    version = [b"1"]
    async with serving(
        lambda heard: Told(404 if heard.target == "/none" else 200, body=version[0]), strict=False, store=store
    ) as proxy:
        for _ in range(3):
            await proxy.ask("/a")
        await proxy.ask("/b", {"Cookie": "id=1"})  # one reader's own page says nothing of a copy
        await proxy.ask("/none")
        await asyncio.sleep(1.0)
        counted: dict[str, float] = {}
        entered: set[str] = set()
        for entry in store.inbox():
            if entry.kind == "requests":
                for each in evidence(entry)[0]:
                    assert isinstance(each, Request)
                    counted[each.url] = counted.get(each.url, 0) + each.count
            if entry.kind == "add":
                entered |= {page.url for page in edit_of(entry, store).pages}
        version[0] = b"2"
        aged(proxy, 1e6)
        await proxy.ask("/a")
        await proxy.ask("/a", method="POST", body=b"x")
        url = proxy.origin.url
    heard = [each for entry in store.inbox() if entry.kind == "signals" for each in evidence(entry)[0]]
    return url, counted, [each for each in heard if isinstance(each, Signal)], entered


def test_requests_are_evidence_within_a_second_and_new_pages_enter_by_them() -> None:
    with Memory() as store:
        url, counted, signals, entered = asyncio.run(_evidence(store))
        assert counted == {f"{url}/a": 3.0}
        assert entered == {f"{url}/a"}
        assert {(signal.url, signal.sender) for signal in signals} == {(f"{url}/a", "proxy")}


async def _bounded(store: Store) -> None:
    async with serving(lambda heard: Told(), strict=False, store=store, settings="[proxy]\nmax_pages = 3\n") as proxy:
        for path, times in (("/1", 1), ("/2", 2), ("/3", 3)):
            for _ in range(times):
                await proxy.ask(path)
        await asyncio.sleep(0.6)
        _carry_out(store)
        assert store.totals().pages == 3
        for _ in range(4):
            await proxy.ask("/4")
        await proxy.ask("/5")
        await asyncio.sleep(0.6)
        _carry_out(store)
        urls = {state.page.url.rpartition("/")[2] for _, state in store.states()}
        assert urls == {"2", "3", "4"}


def _carry_out(store: Store) -> None:
    for entry in store.inbox():
        if entry.kind not in ("requests", "signals"):
            edit_of(entry, store).write(store, entry.number)
        else:
            store.write([], taken=[entry.number])


def test_pages_that_readers_ask_for_displace_those_asked_for_less() -> None:
    with Memory() as store:
        asyncio.run(_bounded(store))


async def _purged(store: Store) -> None:
    token = "0123456789abcdef-token"
    async with serving(
        lambda heard: Told(headers={"Cache-Control": "max-age=60"}), strict=False, store=store, tokens=[token]
    ) as proxy:
        await proxy.ask("/p")
        for wrong in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": f"Basic {token}"}):
            assert (await proxy.ask("/p", wrong, method="PURGE")).status == 403
        assert hit(await proxy.ask("/p"))
        right = {"Authorization": f"Bearer {token}"}
        assert (await proxy.ask("/p", right, method="PURGE")).status == 200
        assert not hit(await proxy.ask("/p"))
        assert (await proxy.ask("/p", {**right, "Soft": "1"}, method="PURGE")).status == 200
        assert len(proxy.parts.service.cache) == 1
        assert not hit(await proxy.ask("/p"))
        url = proxy.origin.url
    wishes = [entry for entry in store.inbox() if entry.kind == "refresh"]
    assert {page for entry in wishes for page in json.loads(entry.body)} == {f"{url}/p"}
    async with serving(lambda heard: Told()) as proxy:
        assert (await proxy.ask("/p", right, method="PURGE")).status == 405


def test_pages_are_purged_with_a_token_and_a_soft_purge_is_a_refresh() -> None:
    with Memory() as store:
        asyncio.run(_purged(store))


async def _evicted(evict: str) -> tuple[int, int]:
    settings = f'[proxy]\nmemory = "300KiB"\nevict = "{evict}"\n'
    body = b"x" * 10_000
    async with serving(
        lambda heard: Told(headers={"Cache-Control": "max-age=600"}, body=body), strict=False, settings=settings
    ) as proxy:
        reader = await proxy.reader()
        for nth in range(200):  # one page that all want, and many that one wants once
            for _ in range(3):
                await reader.ask("/wanted")
            for many in range(15):
                await reader.ask(f"/{nth}-{many}")
        reader.close()
        fetched = sum(heard.target == "/wanted" for heard in proxy.origin.heard)
        return fetched, proxy.parts.service.cache.bytes


def test_the_least_valuable_leave() -> None:
    fetched, used = asyncio.run(_evicted("value"))
    assert fetched == 1
    assert used <= 300 << 10
    assert asyncio.run(_evicted("lru"))[0] == 1  # it is asked for often enough for that, too


def test_addresses_with_an_effect_do_not_enter_for_being_asked_for(tmp_path: Path) -> None:
    config = parse(
        '[[serve]]\nprefix = "/"\norigin = "http://a.example"\nprefetch_except = ["*?*", "/mine/*", "*delete"]\n'
    )
    with Sqlite(tmp_path / "s.db") as store:
        told = Evidence(store, most_pages=10, effects=with_effects(config))
        paths = ("p?q=1", "mine/x", "p/Delete/1", "p?delete=1", "yours/x")
        told._post({f"http://a.example/{path}": 1 for path in paths}, set(), set())
        asyncio.run(told.close())
        added = [edit_of(entry, store) for entry in store.inbox() if entry.kind == "add"]
    entered = {page.url for edit in added for page in edit.pages}
    assert entered == {"http://a.example/p?q=1", "http://a.example/yours/x"}
