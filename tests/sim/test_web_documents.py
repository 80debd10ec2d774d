from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.robotparser import RobotFileParser
from xml.etree import ElementTree

import aiohttp
import pytest

from afresh.sim.web import Server, Site, SiteOptions
from afresh.sim.web.documents import Documents

Play = Callable[..., None]
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
ATOM = "{http://www.w3.org/2005/Atom}"
EPOCH = 1_700_000_000.0


def test_robots_txt_forbids_what_it_should_and_names_the_sitemap(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        forbidden = 0
        for host, name in enumerate(server.site.hosts):
            async with session.get(f"http://{name}:{server.port}/robots.txt") as answer:
                assert (answer.status, answer.content_type) == (200, "text/plain")
                robots = RobotFileParser()
                robots.parse((await answer.text()).splitlines())
            assert robots.site_maps() == [f"http://{name}:{server.port}/sitemap.xml"]
            assert robots.crawl_delay("afresh") == 3
            for page in server.site.pages_of(host):
                assert robots.can_fetch("afresh", server.url(page)) == (not server.site.disallowed[page])
                forbidden += bool(server.site.disallowed[page])
        assert 3 < forbidden < 40
        assert server.ledger.client("tester").counts.other_requests == len(server.site.hosts)

    play(scene, disallowed_share=0.3, crawl_delay=3.0)


def lastmods(text: str) -> dict[str, float]:
    """Unix time by address."""
    rows = ElementTree.fromstring(text).findall(f"{SITEMAP}url")
    return {
        row.findtext(f"{SITEMAP}loc", ""): datetime.fromisoformat(row.findtext(f"{SITEMAP}lastmod", "")).timestamp()
        for row in rows
    }


def test_a_sitemap_lists_all_pages_with_their_last_announcement(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        clock.time = 86400.0 * 10
        for host, name in enumerate(server.site.hosts):
            async with session.get(f"http://{name}:{server.port}/sitemap.xml") as answer:
                listed = lastmods(await answer.text())
            assert set(listed) == {server.url(page) for page in server.site.pages_of(host)}
            for page in server.site.pages_of(host):
                expected = EPOCH + server.site.sitemap.last(page, clock.time)
                assert listed[server.url(page)] == pytest.approx(expected, abs=0.001)

    play(scene)


@pytest.mark.parametrize(("recall", "precision"), [(0.3, 0.9), (0.9, 0.5)])
def test_lastmod_moves_with_the_set_recall_and_precision(recall: float, precision: float) -> None:
    site = Site(
        SiteOptions(
            pages=150,
            hosts=1,
            kinds=(("news", 1.0),),
            processes="poisson",
            day=10.0,
            sitemap_recall=recall,
            sitemap_precision=precision,
            seed=4,
        )
    )
    documents = Documents(site, port=80, epoch=0.0)
    changes = true = moves = 0
    before = lastmods(documents.sitemap(0, "", 0.0) or "")
    # Looked at so often that two events hardly ever fall between two looks.
    for step in range(1, 1000):
        t = step * 0.05
        now = lastmods(documents.sitemap(0, "", t) or "")
        moved = {url for url in now if now[url] != before[url]}
        changed = {site.url(page, 80) for page in site.pages_of(0) if site.changes(page, t - 0.05, t)}
        changes, moves, true = changes + len(changed), moves + len(moved), true + len(moved & changed)
        before = now
    assert changes > 200
    # Four standard errors, and one per cent for events that share a look.
    assert true / changes == pytest.approx(recall, abs=4 * (recall * (1 - recall) / changes) ** 0.5 + 0.01)
    assert true / moves == pytest.approx(precision, abs=4 * (precision * (1 - precision) / moves) ** 0.5 + 0.01)


def test_a_large_host_has_an_index_of_sitemaps() -> None:
    site = Site(SiteOptions(pages=2_500, hosts=1))
    documents = Documents(site, port=8400, epoch=EPOCH)
    index = ElementTree.fromstring(documents.sitemap(0, "", 5.0) or "")
    parts = [row.findtext(f"{SITEMAP}loc", "") for row in index.findall(f"{SITEMAP}sitemap")]
    assert index.tag == f"{SITEMAP}sitemapindex"
    assert len(parts) == 3
    listed: dict[str, float] = {}
    for part in parts:
        found = documents.document(0, part.removeprefix(documents.home(0)), 5.0)
        assert found is not None
        listed |= lastmods(found[1])
    assert set(listed) == {site.url(page, 8400) for page in range(2_500)}
    for missing in ("-3", "-", "-x", "-²", "-99999999999999999999"):
        assert documents.sitemap(0, missing, 5.0) is None


def test_hosts_without_a_sitemap_have_none(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        statuses = []
        for name in server.site.hosts:
            async with session.get(f"http://{name}:{server.port}/sitemap.xml") as answer:
                statuses.append(answer.status)
            async with session.get(f"http://{name}:{server.port}/robots.txt") as answer:
                assert ("Sitemap:" in await answer.text()) == (statuses[-1] == 200)
        assert sorted(statuses) == [200] * 3 + [404] * 3

    play(scene, sitemap_share=0.5)


def test_feeds_list_the_latest_changes_newest_first(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        clock.time = 86400.0 * 20
        kinds = set()
        for host, kind in enumerate(server.site.host_kinds):
            async with session.get(f"http://{server.site.hosts[host]}:{server.port}/feed.xml") as answer:
                if not kind.feed:
                    assert answer.status == 404
                    continue
                kinds.add(kind.feed)
                tree = ElementTree.fromstring(await answer.text())
            if kind.feed == "rss":
                items = tree.findall("channel/item")
                found = [
                    (parsedate_to_datetime(item.findtext("pubDate", "")).timestamp(), item.findtext("link", ""))
                    for item in items
                ]
            else:
                items = tree.findall(f"{ATOM}entry")
                found = [
                    (
                        datetime.fromisoformat(item.findtext(f"{ATOM}updated", "")).timestamp(),
                        next(link.get("href", "") for link in item.findall(f"{ATOM}link")),
                    )
                    for item in items
                ]
            pages = server.site.pages_of(host)
            latest = sorted(pages, key=lambda page: -server.site.last_change(page, clock.time))[:4]
            assert [url for _, url in found] == [server.url(page) for page in latest]
            for (moment, _), page in zip(found, latest, strict=True):
                assert moment == pytest.approx(EPOCH + server.site.last_change(page, clock.time), abs=1.0)
        assert kinds == {"rss", "atom"}

    play(scene, feed_items=4, hosts=8)
