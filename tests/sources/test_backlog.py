"""What is found and cannot come in at once: nothing is lost, nothing comes twice, and no host crowds out the others."""

import asyncio
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from afresh.daemon import Daemon
from afresh.daemon.keeping import Keeper
from afresh.daemon.kinds import Kinds
from afresh.errors import ConfigError, StoreError
from afresh.frontier import Scope, Traps, host_of
from afresh.sources.web import Discovery
from afresh.sources.web import backlog as module
from afresh.sources.web.backlog import Backlog
from afresh.sources.web.known import LEAST_MEMORY
from afresh.store import Sqlite
from afresh.types import Fetched, Page
from live_site import Crawl, LiveSite, html

START = "http://h0.example/"
MEMORY = 2 * LEAST_MEMORY


def opened(folder: Path, *, name: str = "one", max_known: int | None = None) -> tuple[Discovery, Backlog]:
    backlog = Backlog(folder, memory=MEMORY, name=name, max_known=max_known)
    return Discovery(Scope(traps=Traps(pages_per_host=10_000)), backlog=backlog), backlog


def read(discovery: Discovery, url: str, links: list[str], depth: int = 0) -> list[str]:
    body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
    page = Page(url, host_of(url), depth=depth)
    fetched = Fetched(url, 1.0, 0.1, status=200, body=body, content_type="text/html")
    return [page.url for page in discovery.read(page, fetched)]


def drain(backlog: Backlog, space: int = 1 << 30, price: float = 0.0) -> list[Page]:
    pages: list[Page] = []
    backlog.space = space
    while some := backlog.enter(2.0, price):
        pages += some
    return pages


def test_what_there_is_room_for_goes_on_and_the_rest_waits_in_order(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.share = 1 << 30
    links = [f"http://h0.example/a{nth}" for nth in range(300)]
    backlog.space = 100
    straight = read(discovery, START, links)
    assert straight == links[:100]
    backlog.count_untried("h0.example", len(straight))
    assert read(discovery, START, links) == []
    read(discovery, "http://h0.example/a0", [f"http://h0.example/b{nth}" for nth in range(50)], depth=5)
    assert len(backlog) == 250
    assert [page.url for page in drain(backlog, 60)] == links[100:160]
    backlog.close()
    discovery, backlog = opened(tmp_path / "found")  # a new process
    backlog.share = 1 << 30
    assert discovery.known == 350
    assert read(discovery, START, links) == []
    rest = drain(backlog)
    # What was handed out and not said to be safe comes again; the runner knows it then.
    assert {page.url for page in rest} == {*links, *(f"http://h0.example/b{nth}" for nth in range(50))}
    assert {page.depth for page in rest if "/b" in page.url} == {6}
    backlog.settle(backlog.handed)
    backlog.close()
    _, backlog = opened(tmp_path / "found")
    assert not drain(backlog)
    backlog.close()
    discovery, backlog = opened(tmp_path / "found", name="another crawl's")
    backlog.space = backlog.share = 1_000
    assert read(discovery, START, links) == links
    backlog.close()


def test_a_kill_at_any_place_loses_nothing_that_was_found(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    everything = set[str]()
    for nth in range(12):
        discovery, backlog = opened(tmp_path / "found")
        backlog.share, backlog.space = 1 << 30, 7
        new = {f"http://h{nth % 5}.example/{nth}/{number}" for number in range(60)}
        everything |= new
        seen.update(read(discovery, START, sorted(new)))
        if nth % 3 == 1:
            backlog.waiting.save()
        seen.update(page.url for page in drain(backlog, 25))
        if nth % 4:
            backlog.settle(backlog.handed)
        # What a kill leaves: files as they are.
        backlog.waiting._let_go()
        backlog.known._let_go()
    discovery, backlog = opened(tmp_path / "found")
    backlog.share = 1 << 30
    seen.update(page.url for page in drain(backlog))
    assert set(seen) == everything
    assert discovery.known >= len(everything)
    assert not backlog.known.look(backlog.known.look([1]).astype("u8")[:0]).any()
    backlog.close()


@pytest.mark.parametrize("seed", range(3))
def test_after_a_kill_each_page_is_kept_or_waits_and_none_does_both(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    kept: dict[str, Page] = {}  # what the store has
    removals: list[str] = []
    everything = set[str]()

    def start() -> tuple[Discovery, Backlog]:
        backlog = Backlog(
            tmp_path / "found",
            memory=MEMORY,
            name="one",
            numbers=lambda urls: [int(url in kept) for url in urls],
            remove=lambda urls: removals.extend(set(urls).difference(removals)),
        )
        return Discovery(Scope(traps=Traps(pages_per_host=10_000)), backlog=backlog), backlog

    def removed() -> None:
        for url in removals:
            kept.pop(url, None)
        removals.clear()

    for nth in range(25):
        discovery, backlog = start()
        removed()  # what was wished before is heard before anything comes in
        backlog.share = 1 << 30
        out: list[Page] = []
        for turn in range(rng.randrange(5)):
            if rng.random() < 0.5:
                removed()
            backlog.space = rng.randrange(40)
            new = [f"http://h{number % 5}.example/{nth}-{turn}-{number}" for number in range(30)]
            everything |= set(new)
            out += [Page(url, host_of(url), depth=1) for url in read(discovery, START, new)]
            if not backlog.leaving & set(kept):  # as the runner does
                out += backlog.enter(2.0, 0.0)
            if rng.random() < 0.5:
                kept |= {page.url: page for page in out}
                backlog.settle(len(out))
                out = []
            if rng.random() < 0.3:
                backlog.waiting.save()
            leave = rng.sample(sorted(kept.keys() - set(removals)), min(len(kept) - len(removals), 5))
            backlog.put_back([kept[url] for url in leave])
            if rng.random() < 0.2:
                break  # killed before it could say so
            removals += leave
        if rng.random() < 0.5:  # durable, and killed before that was said
            kept |= {page.url: page for page in out}
        # What a kill leaves: files as they are.
        backlog.waiting._let_go()
        backlog.known._let_go()
    _, backlog = start()
    removed()
    backlog.share = 1 << 30
    waits = [page.url for page in drain(backlog)]
    assert len(waits) == len(set(waits))
    assert set(waits) | set(kept) == everything
    assert not set(waits) & set(kept)
    backlog.close()


def test_a_host_that_offers_endlessly_leaves_room_for_others(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.space = 0
    read(discovery, START, [f"http://trap.example/{'x' * nth}/y" for nth in range(1_500)])
    read(discovery, START, [f"http://good{nth}.example/{page}" for nth in range(20) for page in "abc"])
    backlog.space, backlog.share = 300, 75
    entered = Counter(page.host for page in backlog.enter(2.0, 0.0))
    assert 50 <= entered["trap.example"] <= 75
    assert sum(entered.values()) == entered["trap.example"] + 60
    # They are in, and so it may have no more of them than that, however much room there is.
    backlog.count_untried("trap.example", 75)
    backlog._choice.clear()
    backlog.space = 300
    assert not backlog.enter(2.0, 0.0)
    backlog.count_untried("trap.example", -3)
    assert [page.host for page in backlog.enter(2.0, 0.0)] == 3 * ["trap.example"]
    backlog.count_untried("trap.example", -72)
    # Its pages bring nothing; others are worth something: it comes in when nothing else does.
    for nth in range(40):
        backlog.tried(Page(f"http://trap.example/{nth}", "trap.example"), 5.0, copied=False)
        backlog.tried(Page(f"http://good1.example/{nth}", "good1.example"), 5.0, copied=True)
    read(discovery, START, ["http://good1.example/new"])
    backlog._choice.clear()
    backlog.space, backlog.share = 1, 1_000
    assert [page.url for page in backlog.enter(2.0, 0.0)] == ["http://good1.example/new"]
    backlog.space = 1_000
    assert not backlog.enter(2.0, 4.9), "nothing that waits is worth a refresh"
    assert backlog.enter(2.0, 0.0)
    backlog.close()


def test_a_domain_that_offers_hosts_endlessly_has_what_one_host_may_have(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.space = 0
    wild = [f"http://n{nth}.wild.example/{page}" for nth in range(400) for page in ("", "a")]
    read(discovery, START, wild)
    read(discovery, START, [f"http://good{nth}.example/{page}" for nth in range(20) for page in "abc"])
    backlog.space, backlog.share = 300, 75
    entered = Counter(page.host.rpartition("n")[2] for page in backlog.enter(2.0, 0.0))
    assert sum(count for host, count in entered.items() if "wild" in host) <= 75
    assert sum(count for host, count in entered.items() if "wild" not in host) == 60, "all others are in"
    # They are in and untried, and others wait: there is no more room for further names.
    for host in {host_of(url) for url in wild}:
        backlog.count_untried(host, 1)
    read(discovery, START, ["http://good1.example/late", "http://good2.example/late"])
    backlog._choice.clear()
    backlog.space = 300
    assert {page.host for page in backlog.enter(2.0, 0.0)} == {"good1.example", "good2.example"}
    # Alone it may have all there is.
    backlog._choice.clear()
    backlog.space = 50
    assert len(drain(backlog, 50)) == 50
    backlog.close()
    _, backlog = opened(tmp_path / "found")
    values, _, _, sites = backlog._values()
    assert len(set(sites.tolist())) == 21
    assert len(values) == 420
    backlog.close()


def test_the_more_a_domain_has_in_the_less_are_its_other_hosts_worth(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.share = 1_000
    for nth in range(3):
        backlog.space = 0
        read(discovery, START, [f"http://n{nth}-{host}.wild.example/" for host in range(300)])
        assert len(drain(backlog, 300)) == 300
    backlog.space = 0
    read(discovery, START, ["http://last.wild.example/", "http://good.example/x/y/"], depth=2)
    backlog.tried(Page(START, "h0.example"), 1.0, copied=True)
    fresh, first = backlog.best(2)
    assert (fresh, first) == (1 / (1 + 900 / 4_000), 0.7)
    wild = Page("http://last.wild.example/", "last.wild.example", depth=1)
    assert backlog.value(wild) == fresh
    backlog.most_held = 1_000  # of which it has more than half, and others wait
    assert [page.url for page in drain(backlog, 1)] == ["http://good.example/x/y/"]
    assert [page.url for page in drain(backlog, 1)] == ["http://last.wild.example/"]
    backlog.close()


def test_a_domain_never_takes_the_last_of_the_known_addresses_unless_it_was_named(tmp_path: Path) -> None:
    def known(scope: Scope, name: str) -> tuple[int, int]:
        backlog = Backlog(tmp_path / name, memory=MEMORY, max_known=1_000)
        discovery = Discovery(scope, backlog=backlog)
        for nth in range(30):
            read(discovery, START, [f"http://n{nth}-{host}.wild.example/" for host in range(60)])
            read(discovery, START, [f"http://good{nth}.example/{page}" for page in "abcde"])
        taken = {page.url for page in drain(backlog)}
        backlog.close()
        return len(taken), sum("wild" in url for url in taken)

    total, wild = known(Scope(hosts=["*.example"]), "anywhere")
    assert 450 <= wild <= 560
    assert total == wild + 150, "there was room for all others"
    assert known(Scope(hosts=["*.example", "*.wild.example"]), "named")[0] == 1_000


def test_of_many_hosts_it_is_not_reckoned_for_each_page_which_come_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW_HOSTS", 500)
    discovery, backlog = opened(tmp_path / "found")
    backlog.space = 0
    read(discovery, START, [f"http://h{nth}.example/{page}" for nth in range(1_000) for page in "abc"])
    reckoned, values = 0, backlog._values

    def counted() -> object:
        nonlocal reckoned
        reckoned += 1
        return values()

    monkeypatch.setattr(backlog, "_values", counted)
    pages: list[Page] = []
    for _ in range(100):
        backlog.space = 2
        pages += backlog.enter(2.0, 0.0)
    assert len({page.url for page in pages}) == 200
    assert reckoned == 20
    backlog.close()


def test_hosts_that_come_in_while_a_step_is_taken_can_be_tried_and_enter(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.space = 0
    read(discovery, START, [f"http://a.example/{nth}" for nth in range(9)])
    going, chunks = threading.Event(), backlog.waiting._write_chunks

    def slowly() -> None:
        going.wait(10)
        chunks()

    backlog.waiting._write_chunks = slowly  # type: ignore[method-assign]
    backlog.waiting._begin_step()
    read(discovery, START, ["http://new.example/x"])
    going.set()
    while backlog.waiting.stepping:
        time.sleep(0.01)
    backlog.share = 3
    assert len(backlog.enter(2.0, 0.0)) == 0
    backlog.space = 3
    assert len(backlog.enter(2.0, 0.0)) == 3
    new = Page("http://new.example/x", "new.example", depth=1)
    backlog.tried(new, 5.0, copied=True)
    assert backlog.value(new) > 0
    backlog._choice.clear()
    assert new.url in {page.url for page in drain(backlog)}
    backlog.close()


def test_where_nothing_waits_one_host_has_its_share_and_the_rest_of_it_waits(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.space, backlog.share = 100, 25
    backlog.count_untried("trap.example", 20)
    links = [f"http://trap.example/{nth}" for nth in range(50)] + ["http://a.example/", "http://b.example/"]
    assert read(discovery, START, links) == [*links[:5], *links[-2:]]
    assert len(backlog) == 45
    backlog.space = 100
    assert [page.url for page in backlog.enter(2.0, 0.0)] == links[5:10]
    backlog.count_untried("trap.example", 5)
    assert not backlog.enter(2.0, 0.0)
    backlog.close()


def test_what_is_in_and_worth_less_can_be_told_from_what_waits_and_waits_again(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    backlog.space, backlog.share = 0, 100
    read(discovery, START, [f"http://h1.example/a/b/c/d/{nth}" for nth in range(3)], depth=8)
    backlog.tried(Page(START, "h0.example"), 10.0, copied=True)
    deep, front = (
        Page("http://h1.example/a/b/c/d/9", "h1.example", depth=9),
        Page("http://h9.example/", "h9.example", depth=9),
    )
    assert backlog.best(10) == [backlog.value(deep)] * 3
    assert backlog.value(front) > 2 * backlog.value(deep)
    backlog.put_back([front])
    assert backlog.best(2) == [backlog.value(front), backlog.value(deep)]
    assert next(page.url for page in drain(backlog)) == front.url
    assert discovery.known == 3
    backlog.close()


def test_beyond_max_known_nothing_leaves_a_trace(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found", max_known=10)
    backlog.space = backlog.share = 100
    assert len(read(discovery, START, [f"http://h0.example/{nth}" for nth in range(30)])) == 10
    assert discovery.refused == {"max_known": 20}
    assert len(backlog.known) == 10
    assert discovery.counts()["known_at_most"] == 10
    backlog.close()
    with pytest.raises(ConfigError, match="too little memory"):
        Backlog(tmp_path / "none", memory=1_000)


def test_known_addresses_that_are_missing_are_said_to_be(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    read(discovery, START, [f"http://h0.example/{nth}" for nth in range(300)])
    read(discovery, START, ["http://h0.example/last"])
    backlog.close()
    journal = tmp_path / "found" / "known" / "known"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-3])  # which looks like a record that was being written
    with pytest.raises(StoreError, match=r"Of 301 known URLs .* 1 are missing"):
        opened(tmp_path / "found")


def test_a_folder_without_what_waits_is_said_to_lack_it(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    read(discovery, START, [f"http://h0.example/{nth}" for nth in range(300)])
    backlog.close()
    shutil.rmtree(tmp_path / "found" / "waiting")
    for _ in range(2):
        with pytest.raises(StoreError, match="missing"):
            opened(tmp_path / "found")
        shutil.rmtree(tmp_path / "found" / "waiting", ignore_errors=True)


@pytest.mark.parametrize("mark", [b"\xff\xfe", None])
def test_a_mark_that_makes_no_sense_is_that_of_another_crawl(tmp_path: Path, mark: bytes | None) -> None:
    _, backlog = opened(tmp_path / "found")
    backlog.close()
    path = tmp_path / "found" / "crawl"
    path.unlink()
    if mark is None:
        path.mkdir()
    else:
        path.write_bytes(mark)
    assert not Backlog.is_of(tmp_path / "found", "one")
    _, backlog = opened(tmp_path / "found")
    backlog.close()
    assert Backlog.is_of(tmp_path / "found", "one")


def test_links_that_pages_have_in_common_count_as_answered_by_the_cache(tmp_path: Path) -> None:
    discovery, backlog = opened(tmp_path / "found")
    discovery.know([START, "http://h0.example/kept"])
    menu = [f"http://h0.example/{nth}" for nth in range(10)]
    for nth in range(5):
        read(discovery, f"http://h0.example/page{nth}", [*menu, f"/only-on-{nth}"])
    counts = discovery.counts()
    assert (counts["looked_up"], counts["cache_hits"]) == (55, 40)
    read(discovery, "http://h0.example/in/another/folder", menu)
    counts = discovery.counts()
    assert (counts["looked_up"], counts["cache_hits"]) == (65, 50)
    backlog.close()


def test_a_page_that_is_removed_while_it_is_fetched_is_no_fault(tmp_path: Path) -> None:
    keepers: list[Keeper] = []
    faults: list[str] = []

    def answer(host: str, path: str) -> bytes:
        if path == "/2":
            keepers[0].remove(site.url(host, path))  # others are worth more
        return html("<p>x", kind="text/plain" if path == "/robots.txt" else "text/html")

    site = LiveSite(answer)

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(str(context)))
        await site.start()
        with Sqlite(tmp_path / "s.db") as store:

            def began(daemon: Daemon) -> None:
                daemon._kinds = Kinds([])
                keepers.append(daemon._keeper)

            urls = [site.url("a.test", f"/{nth}") for nth in range(1, 4)]
            await Crawl(site, store, began=began).until(
                lambda: store.totals().copies >= 2 and "/2" in site.asked("a.test"), *urls
            )
            await asyncio.sleep(0.1)
        site.stop()

    asyncio.run(go())
    assert not faults


def test_a_live_crawl_finds_all_through_a_small_door(tmp_path: Path) -> None:
    pages = {f"/{nth}": [f"/{nth * 3 + step}" for step in (1, 2, 3)] for nth in range(60)}

    def answer(host: str, path: str) -> bytes:
        if path == "/":
            path = "/0"
        if path.startswith("/dead") or path == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        links = "".join(f'<a href="{to}">x</a>' for to in pages.get(path, []))
        return html(f'{links}<a href="/dead{path[1:]}">gone</a><p>{path}')

    site = LiveSite(answer)

    async def go() -> None:
        await site.start()
        discovery, backlog = opened(tmp_path / "found")
        with Sqlite(tmp_path / "s.db") as store:
            crawl = Crawl(site, store, discovery=discovery)
            crawl.began = lambda daemon: setattr(daemon._entering, "max_untried", 4)
            await crawl.until(lambda: store.totals().copies >= 181, site.url("a.test"))
            urls = [state.page.url for _, state in store.states()]
            assert len(urls) == len(set(urls))
            backlog.share = 1_000
            left = [page.url for page in drain(backlog)]
            everything = {site.url("a.test", path) for path in ["/", *map("/{}".format, range(1, 181))]}
            dead = {site.url("a.test", f"/dead{nth}") for nth in range(181)}
            assert everything <= set(urls)
            assert {*urls, *left} == everything | dead
        backlog.close()
        site.stop()

    asyncio.run(go())
    asked = Counter(site.asked("a.test"))
    assert {f"/{nth}" for nth in range(1, 181)} <= set(asked)
