from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from afresh.errors import ConfigError
from afresh.reading import compile_selectors, read
from afresh.sim.web import GONE, ROUGH, Site, SiteOptions, read_mark
from afresh.sim.web.announce import Announcer, Listing
from afresh.sim.web.render import Noise

OPTIONS = SiteOptions(pages=600, hosts=30, day=1.0, seed=11)


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(OPTIONS)


def text_of(body: bytes) -> str:
    page = read(body, selectors=compile_selectors(["main"], []))
    return "\n".join(page.block(nth) for nth in range(len(page)))


def test_a_seed_gives_one_web_and_another_seed_another(site: Site) -> None:
    again, other = Site(OPTIONS), Site(replace(OPTIONS, seed=12))
    assert [again.url(page, 80) for page in range(600)] == [site.url(page, 80) for page in range(600)]
    for name in ("request_rate", "change_rate", "recall", "false_rate", "noisy", "etag"):
        assert np.array_equal(getattr(again, name), getattr(site, name))
        assert not np.array_equal(getattr(other, name), getattr(site, name))
    assert np.array_equal(again.versions(9.0), site.versions(9.0))
    assert again.body(5, 3) == site.body(5, 3) != other.body(5, 3)


def test_addresses_lead_to_their_pages(site: Site) -> None:
    urls = [site.url(page, 8400) for page in range(600)]
    assert len(set(urls)) == 600
    assert [site.find(url) for url in urls] == list(range(600))
    for stranger in ("http://example.org/", urls[3] + "x", urls[3] + "?a=b", "http://[", "nonsense"):
        assert site.find(stranger) is None


def test_every_host_has_pages_and_all_are_reachable_from_its_front_page(site: Site) -> None:
    assert sum(len(site.pages_of(host)) for host in range(30)) == 600
    crossing = 0
    for host in range(30):
        own = site.pages_of(host)
        assert site.path(own[0]) == "/"
        found, todo = {own[0]}, [own[0]]
        while todo:
            targets = site.links(todo.pop())
            crossing += sum(target not in own for target in targets)
            new = {target for target in targets if target in own} - found
            found |= new
            todo += new
        assert found == set(own)
    assert crossing > 30


def test_links_in_the_html_are_the_links_of_the_page(site: Site) -> None:
    for page in range(0, 600, 37):
        body = site.body(page, 0, port=8400).decode()
        for target in site.links(page):
            href = site.path(target) if site.host_of[target] == site.host_of[page] else site.url(target, 8400)
            assert f'<a href="{href}">' in body


def test_kinds_change_as_often_as_their_kind() -> None:
    site = Site(SiteOptions(pages=20_000, hosts=200, day=1.0))
    for name, low, high in (("news", 1, 3), ("blog", 5, 9), ("shop", 2, 6), ("reference", 30, 180)):
        days = [1 / site.change_rate[page] for page in range(20_000) if site.kind(page).name == name]
        assert low < np.median(days) < high
        assert np.percentile(days, 99) / np.percentile(days, 1) > 10
    shares = [sum(kind.name == name for kind in site.host_kinds) for name in ("news", "blog", "shop", "reference")]
    assert shares == [60, 60, 40, 40]


def test_popularity_is_zipf_and_leans_to_changing_pages_loosely() -> None:
    site = Site(SiteOptions(pages=5000, hosts=50, zipf=1.0, requests=500.0, popularity_correlation=0.4))
    ranked = np.sort(site.request_rate)[::-1]
    assert ranked.sum() == pytest.approx(500.0)
    assert ranked[0] / ranked[9] == pytest.approx(10.0)
    ranks = np.argsort(np.argsort(site.request_rate)), np.argsort(np.argsort(site.change_rate))
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(0.4, abs=0.06)


def test_each_change_shows_in_the_main_text_and_noise_does_not() -> None:
    site = Site(SiteOptions(pages=40, hosts=8, noise_share=1.0))
    for page in range(40):
        texts = [text_of(site.body(page, version)) for version in range(10)]
        assert all(before != after for before, after in pairwise(texts))
        noisy = [site.body(page, 4, moment=Noise(time=t, request=n)) for t, n in ((1.0, 1), (2.5, 77))]
        assert noisy[0] != noisy[1]
        assert text_of(noisy[0]) == text_of(noisy[1])


def test_a_change_rewrites_one_paragraph_and_the_line_under_the_title(site: Site) -> None:
    for page in range(0, 600, 50):
        for version in (0, 3, 5, 9, 21):
            old, new = (
                site.body(page, v).partition(b"<main>")[2].partition(b"</main>")[0].split(b"\n<p")
                for v in (version, version + 1)
            )
            differing = [index for index, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
            assert len(differing) == 2
            assert new[differing[0]].startswith(b' class="lead"')


def test_a_small_change_leaves_most_of_the_text_and_an_edition_little(site: Site) -> None:
    def kept(page: int, before: int, after: int) -> float:
        old, new = (set(site.body(page, v).split(b"\n<p>")) for v in (before, after))
        return len(old & new) / len(old)

    long = [page for page in range(600) if site.body(page, 0).count(b"<p>") > 10]
    assert len(long) > 50
    assert np.mean([kept(page, 2, 3) for page in long]) > 0.75
    assert np.mean([kept(page, 7, 8) for page in long]) < 0.1


def test_a_counter_in_the_text_is_noise_that_the_main_text_shows() -> None:
    site = Site(SiteOptions(pages=5, hosts=1, noise_share=0.0, noisy_text_share=1.0))
    first, second = (text_of(site.body(2, 0, moment=Noise(request=n))) for n in (1, 2))
    assert first != second


def test_bodies_have_web_like_sizes(site: Site) -> None:
    sizes = [len(site.body(page, 0)) for page in range(600)]
    assert min(sizes) > 2000
    assert 4000 < np.median(sizes) < 12_000
    assert 15_000 < max(sizes) < 60_000


def test_a_body_tells_its_version_and_whether_it_is_whole(site: Site) -> None:
    body = site.body(7, 12)
    mark = read_mark(body)
    assert mark is not None
    assert (mark.page, mark.version, mark.whole) == (7, 12, True)
    for size in range(400, len(body) - 2, 97):
        cut = read_mark(body[:size])
        assert cut is None or not cut.whole
    spliced = read_mark(body[:3000] + site.body(7, 13)[3000:])
    assert spliced is not None
    assert not spliced.whole
    assert read_mark(b"<html>another site</html>") is None
    assert read_mark(b'<meta name="revision" content="x.y">') is None


def test_deleted_pages_are_gone_for_good() -> None:
    site = Site(replace(OPTIONS, gone_share=0.3, gone_within=5.0))
    gone = np.flatnonzero(site.gone_at < np.inf)
    assert len(gone) == pytest.approx(0.3 * 570, abs=4 * np.sqrt(570 * 0.21))
    page = int(gone[0])
    end = float(site.gone_at[page])
    assert site.version(page, np.nextafter(end, 0)) >= 0
    assert site.version(page, end) == site.versions(end)[page] == GONE
    assert site.next_change(page, end) == np.inf
    assert site.changes(page, 0.0, 100.0)[-1] == site.last_change(page, 50.0) == end
    assert all(moment < site.gone_at[p] for moment, p in site.signals(0.0, 30.0))


def quality(site: Site, announcer: Announcer, span: float) -> tuple[int, int, int]:
    """Changes, announced changes and false announcements on the hosts that announce at all."""
    pages = np.flatnonzero(announcer.member[site.host_of]).tolist()
    told = [true for page in pages for _, true in announcer.between(page, 0.0, span)]
    return sum(len(site.changes(page, 0.0, span)) for page in pages), sum(told), len(told) - sum(told)


@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_announcements_have_the_set_recall_and_precision(spread: float) -> None:
    site = Site(
        replace(
            OPTIONS,
            signal_spread=spread,
            sitemap_recall=0.8,
            sitemap_precision=0.6,
            ping_recall=0.5,
            ping_precision=0.9,
        )
    )
    for announcer, recall, precision in ((site.sitemap, 0.8, 0.6), (site.pings, 0.5, 0.9)):
        # Page by page, the means are as set …
        member = announcer.member[site.host_of]
        told_rate = announcer.recall * site.change_rate
        precisions = (told_rate / np.where(member, told_rate + announcer.all_false_rate, 1.0))[member]
        assert announcer.recall[member].mean() == pytest.approx(recall, abs=0.02)
        assert precisions.mean() == pytest.approx(precision, abs=0.02)
        assert (precisions.std() > 0.01) == (spread > 0)
        # … and what happens is what the rates say, within four standard errors.
        changes, true, false = quality(site, announcer, 100.0)
        assert changes > 5000
        expected = told_rate.sum() / site.change_rate[member].sum()
        assert true / changes == pytest.approx(expected, abs=4 * np.sqrt(0.25 / changes))
        expected = told_rate.sum() / (told_rate + announcer.all_false_rate).sum()
        assert true / (true + false) == pytest.approx(expected, abs=4 * np.sqrt(0.25 / (true + false)))


def test_half_of_the_hosts_ping_and_the_others_never_do(site: Site) -> None:
    assert site.pings.member.sum() == 15
    silent = set(np.flatnonzero(~site.pings.member[site.host_of]).tolist())
    assert not any(page in silent for _, page in site.signals(0.0, 20.0))
    assert (site.recall[list(silent)] == 0).all()


@pytest.mark.parametrize("delay", [0.0, 0.7])
def test_walking_along_the_pings_meets_the_same_pings(delay: float) -> None:
    site = Site(replace(OPTIONS, ping_delay=delay, storms_per_day=0.1, gone_share=0.2))
    listing, met = Listing(site.pings), []
    for t in np.linspace(0.1, 20.0, 200):
        met += listing.advance(float(t))
    assert met == sorted(met)
    assert met == site.signals(0.0, np.nextafter(20.0, 99))
    assert len(met) > 100


def test_a_storm_announces_a_whole_host_at_once() -> None:
    quiet, stormy = Site(replace(OPTIONS, ping_recall=0.0)), Site(replace(OPTIONS, ping_recall=0.0, storms_per_day=0.5))
    assert quiet.signals(0.0, 50.0) == []
    moments: dict[float, set[int]] = {}
    for moment, page in stormy.signals(0.0, 50.0):
        moments.setdefault(moment, set()).add(page)
    assert len(moments) == pytest.approx(15 * 25, abs=4 * np.sqrt(15 * 25))
    for pages in moments.values():
        assert pages == set(stormy.pages_of(int(stormy.host_of[min(pages)])))
    assert stormy.false_rate[stormy.pings.member[stormy.host_of]] == pytest.approx(0.5)


@pytest.mark.parametrize("delay", [0.0, 0.7])
def test_the_latest_announcement_is_the_last_of_all(delay: float) -> None:
    site = Site(replace(OPTIONS, ping_delay=delay, storms_per_day=0.02))
    for page in range(0, 600, 7):
        told = [moment for moment, _ in site.pings.between(page, 0.0, np.nextafter(15.0, 99))]
        expected = told[-1] if told else site.timeline.change_time(page, 0)
        assert site.pings.last(page, 15.0) == expected


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"pages": 0}, "pages"),
        ({"hosts": 30, "pages": 20}, "20 pages"),
        ({"day": 0.0}, "day"),
        ({"day": float("nan")}, "day"),
        ({"noise_share": 1.5}, "noise_share"),
        ({"ping_precision": 0.0}, "ping_precision"),
        ({"processes": "chaos"}, "chaos"),
        ({"kinds": (("zoo", 1.0),)}, "zoo"),
        ({"kinds": ()}, "kind"),
        ({"kinds": (("news", -1.0),)}, "news"),
        ({"error_share": 0.6, "reset_share": 0.6}, "add up"),
        ({"seed": 1.5}, "seed"),
        ({"pages": True}, "pages"),
    ],
)
def test_bad_options_are_named(bad: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        SiteOptions(**bad)  # type: ignore[arg-type]
    assert caught.value.hint


def test_the_rough_preset_is_valid() -> None:
    assert replace(SiteOptions(), **ROUGH).error_share > 0  # type: ignore[arg-type]


def test_a_site_can_be_one_page() -> None:
    site = Site(SiteOptions(pages=1, hosts=1))
    assert site.links(0) == []
    assert site.find(site.url(0, 80)) == 0


def test_one_kind_and_one_law_can_be_asked_for() -> None:
    site = Site(SiteOptions(pages=10, hosts=2, kinds=(("shop", 1.0),), processes="poisson"))
    assert {kind.name for kind in site.host_kinds} == {"shop"}
    assert (site.timeline.processes == 0).all()
    assert len(set(Site(SiteOptions(hosts=40)).timeline.processes.tolist())) == 3
