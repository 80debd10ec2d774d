from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from afresh.sim.web import GONE, Ledger, Readers, Site, SiteOptions
from afresh.sim.web.ledger import MOST_CLIENTS, NOTHING, OTHERS

OPTIONS = SiteOptions(pages=50, hosts=5, day=1.0, processes="poisson", requests=200.0, seed=3)
Crawl = tuple[float, int, str]


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(OPTIONS)


def crawls(site: Site, span: float, rates: dict[str, float]) -> list[Crawl]:
    """Random crawls in time order: (time, page, client)."""
    rng = np.random.default_rng(8)
    found = [
        (float(t), int(rng.integers(site.options.pages)), name)
        for name, rate in rates.items()
        for t in rng.uniform(0.0, span, int(rate * span))
    ]
    return sorted(found)


def test_readers_share_is_what_a_plain_recount_gives(site: Site) -> None:
    ledger = Ledger(site, window=(2.0, 7.0))
    drawn: list[tuple[float, list[int]]] = []
    readers = Readers(ledger, listeners=(lambda pages, t: drawn.append((t, pages.tolist())),))
    done = crawls(site, 10.0, {"fast": 40.0, "slow": 5.0})
    queue = list(done)
    for t in np.arange(0.05, 10.0, 0.05):
        while queue and queue[0][0] <= t:
            moment, page, name = queue.pop(0)
            ledger.handed(ledger.client(name), page, site.version(page, moment), moment)
        readers.step(float(t))

    def fresh(name: str, page: int, t: float) -> bool:
        mine = [moment for moment, crawled, client in done if (crawled, client) == (page, name) and moment <= t]
        return bool(mine) and site.version(page, mine[-1]) == site.version(page, t)

    inside = [(t, page) for t, pages in drawn if 2.0 <= t <= 7.0 for page in pages]
    assert ledger.asked == len(inside) > 800
    shares = {}
    for name in ("fast", "slow"):
        assert ledger.client(name).served == sum(fresh(name, page, t) for t, page in inside)
        shares[name] = ledger.readers_fresh(name)
    assert 0.02 < shares["slow"] < shares["fast"] - 0.1 < 0.9
    assert readers.total == sum(len(pages) for _, pages in drawn) > ledger.asked


def test_freshness_over_time_is_the_exact_mean(site: Site) -> None:
    ledger = Ledger(site)
    done = crawls(site, 10.0, {"me": 30.0})
    for moment, page, name in done[:40]:
        ledger.handed(ledger.client(name), page, site.version(page, moment), moment)
    start = done[39][0]
    ledger.open_window(start, 9.0)
    for moment, page, name in done[40:]:
        ledger.handed(ledger.client(name), page, site.version(page, moment), moment)
    # Plain recount: between two crawls a copy is fresh until the page's next change.
    total = 0.0
    for page in range(50):
        mine = [moment for moment, crawled, _ in done if crawled == page]
        for begin, end in zip(mine, [*mine[1:], 9.0], strict=True):
            stop = min(end, 9.0, site.next_change(page, begin))
            total += max(0.0, stop - max(begin, start)) * site.request_rate[page]
    assert ledger.time_fresh("me", 10.0) == pytest.approx(total / site.request_rate.sum() / (9.0 - start))
    assert 0.1 < ledger.time_fresh("me", 10.0) < 0.95


def test_readers_and_exact_mean_agree_within_chance() -> None:
    site = Site(replace(OPTIONS, requests=5000.0))
    ledger = Ledger(site, window=(1.0, 10.0))
    readers, queue = Readers(ledger, seed=4), crawls(site, 10.0, {"me": 60.0})
    for t in np.arange(0.01, 10.0, 0.01):
        while queue and queue[0][0] <= t:
            moment, page, name = queue.pop(0)
            ledger.handed(ledger.client(name), page, site.version(page, moment), moment)
        readers.step(float(t))
    assert ledger.readers_fresh("me") == pytest.approx(ledger.time_fresh("me", 10.0), abs=4 * np.sqrt(0.25 / 45_000))


def test_crawling_at_a_fixed_interval_is_as_fresh_as_theory_says() -> None:
    site = Site(replace(OPTIONS, pages=300, kinds=(("news", 1), ("blog", 1))))
    ledger = Ledger(site)
    client = ledger.client("uniform")
    interval = 2.5
    for number in range(300 * 200):  # page by page, round after round
        page, t = number % 300, number * interval / 300
        ledger.handed(client, page, site.version(page, t), t)
    ledger_says = ledger.time_fresh("uniform", 200 * interval)
    # A Poisson page that was just fetched stays fresh for τ with probability exp(-Δτ); mean over the interval.
    load = site.change_rate * interval
    theory = float(site.request_rate @ ((1 - np.exp(-load)) / load) / site.request_rate.sum())
    assert 0.4 < theory < 0.8
    # 200 rounds of 300 pages, of which popularity makes some tens count: a standard error of about 0.003.
    assert ledger_says == pytest.approx(theory, abs=0.012)


def test_readers_ask_by_popularity_at_their_rate_and_repeat_themselves(site: Site) -> None:
    asked = np.zeros(50)
    readers = Readers(Ledger(site), rate=4000.0, seed=1)
    pages = [readers.step(t) for t in np.arange(0.1, 10.0, 0.1).tolist()]
    for batch in pages:
        asked += np.bincount(batch, minlength=50)
    assert asked.sum() == pytest.approx(4000 * 9.9, abs=4 * np.sqrt(4000 * 9.9))
    expected = site.request_rate / site.request_rate.sum() * asked.sum()
    assert (np.abs(asked - expected) < 5 * np.sqrt(expected)).all()
    again = Readers(Ledger(site), rate=4000.0, seed=1)
    assert all(np.array_equal(batch, again.step(t)) for batch, t in zip(pages, np.arange(0.1, 10.0, 0.1), strict=True))


def test_a_bad_rate_is_refused(site: Site) -> None:
    with pytest.raises(ValueError, match="rate"):
        Readers(Ledger(site), rate=-1.0)


def test_a_version_handed_out_late_is_stale_from_the_start(site: Site) -> None:
    ledger, client = Ledger(site), Ledger(site).client("late")
    change = site.next_change(0, 0.0)
    ledger.handed(client, page=0, version=0, t=change + 0.001)
    assert client.held[0] == 0
    ledger.handed(client, page=1, version=0, t=0.5)
    assert client.fresh(0.4)[1] < client.fresh(0.5)[1]  # not before it was there
    assert not client.fresh(change + 0.001)[0]
    ledger.handed(client, page=0, version=1, t=change + 0.001)
    assert client.fresh(change + 0.001)[0]


def test_knowing_that_a_page_is_gone_is_fresh_for_ever() -> None:
    site = Site(replace(OPTIONS, gone_share=1.0, gone_within=2.0))
    ledger = Ledger(site)
    client = ledger.client("me")
    end = float(site.gone_at[1])
    ledger.handed(client, 1, site.version(1, end / 2), end / 2)
    assert not client.fresh(end)[1]
    ledger.handed(client, 1, GONE, end)
    assert client.fresh(1e9)[1]
    assert ledger.score({site.url(1, 80): GONE}, end).current == 1


def test_clients_beyond_the_limit_share_one_account(site: Site) -> None:
    ledger = Ledger(site)
    clients = {ledger.client(f"crawler-{number}").name for number in range(500)}
    assert len(clients) == len(ledger.clients) == MOST_CLIENTS + 1
    assert OTHERS in clients
    assert ledger.client("crawler-3").name == "crawler-3"
    assert (ledger.client("crawler-3").held == NOTHING).all()


def test_there_is_no_score_before_the_window(site: Site) -> None:
    ledger = Ledger(site, window=(5.0, 6.0))
    ledger.client("me")
    assert isnan(ledger.time_fresh("me", 4.0))
    assert isnan(ledger.readers_fresh("me"))
    assert ledger.report(4.0)["me"]["time_fresh"] is None
    with pytest.raises(ValueError, match="window"):
        ledger.open_window(3.0, 3.0)


def test_any_set_of_copies_is_scored(site: Site) -> None:
    ledger, t = Ledger(site), 3.0
    versions = site.versions(t)
    changed = np.flatnonzero(versions > 0)
    copies: dict[str, bytes | int] = {site.url(page, 8400): site.body(page, int(versions[page])) for page in range(50)}
    assert ledger.score(copies, t).fresh == pytest.approx(1.0)
    old, cut, wrong, lost = (int(page) for page in changed[:4])
    copies[site.url(old, 8400)] = int(versions[old]) - 1
    copies[site.url(cut, 8400)] = site.body(cut, int(versions[cut]))[:-100]
    copies[site.url(wrong, 8400)] = site.body(old, int(versions[old]))
    del copies[site.url(lost, 8400)]
    copies["http://example.org/"] = b"hello"
    score = ledger.score(copies, t)
    assert (score.current, score.stale, score.broken, score.missing, score.unknown) == (46, 1, 2, 1, 1)
    lost_weight = site.request_rate[[old, cut, wrong, lost]].sum() / site.request_rate.sum()
    assert score.fresh == pytest.approx(1.0 - lost_weight)
