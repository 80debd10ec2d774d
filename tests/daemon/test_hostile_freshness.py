"""Rows T1 and T2 of what must be survived: what traps and noise cost the other hosts of a crawl.

The synthetic web is crawled in its own time by the parts that a daemon puts together (engine, politeness, detection,
discovery), so that the site's books give the freshness exactly and the same on every run.
"""

import heapq
import random
from dataclasses import replace
from functools import cache
from itertools import count
from math import inf

import numpy as np

from afresh.detect import compare
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.frontier import Lanes, Politeness, Scope, Traps, host_of
from afresh.schedule import Greedy, Plain
from afresh.sim.web import Site, SiteOptions
from afresh.sim.web.ledger import Ledger
from afresh.sources.web import Discovery
from afresh.types import Fetched, Order, Outcome, Page, Validators

PAGES, HOSTS, BUDGET = 720, 80, 45.0  # the budget is what is scarce: the hosts would bear 80 fetches a second
START, END = 30.0, 80.0  # of the window that counts
TOOK = 0.05
TRAP = "http://trap.example"
OPEN = Traps(0, 0, 0, 0, False, 0, 0, 0, 0, 0)


class Trap:
    """A host on which every address answers, always differently, and leads to ever more addresses."""

    def __init__(self) -> None:
        self.rng = random.Random(1)
        self.number = count()

    def body(self, path: str) -> bytes:
        month, token = next(self.number), self.rng.getrandbits(128)
        links = [
            f"/calendar/{2000 + month // 12}-{month % 12 + 1:02}",
            f"/calendar?month={month}",
            f"/page?sid={token:x}",
            f"{path.rstrip('/')}/a/b",
            f"/list?sort={month}&filter={month % 7}",
            f"/list?filter={month % 7}&sort={month}",
            f"/missing/{month}/next",
            f"/shop/{token:032x}",
            "/" + "".join(self.rng.choices("abcdefghij", k=12)),
            path,
        ]
        text = " ".join("".join(self.rng.choices("abcdefghij", k=6)) for _ in range(60))
        return f"<main><p>{text}</p></main>{''.join(f'<a href={link}>x</a>' for link in links)}".encode()


class Noise(Trap):
    """A host whose one page has another text at every fetch, and no links."""

    def body(self, path: str) -> bytes:
        return super().body(path).partition(b"<a")[0]


class Run:
    """A crawl of the synthetic web in its own time, beside something hostile or not."""

    def __init__(
        self, trap: Trap | None = None, *, traps: Traps | None = None, politeness: Politeness | None = None
    ) -> None:
        kinds = (("news", 1.0),)
        options = SiteOptions(
            pages=PAGES, hosts=HOSTS, seed=3, kinds=kinds, day=30.0, processes="poisson", noise_share=0
        )
        self.site, self.trap, self.now = Site(options), trap or Trap(), 0.0
        self.ledger = Ledger(self.site, window=(START, END))
        self.ledger.weights = np.ones(PAGES)
        scheduler, estimator = Plain(Greedy(), budget=BUDGET), Grid(typical_rate=BUDGET / PAGES)
        self.engine = Engine(scheduler=scheduler, estimator=estimator, lanes=Lanes(politeness))
        self.discovery = Discovery(Scope(traps=traps))
        self.pages: dict[str, Page] = {}
        self.known: dict[str, Validators] = {}
        self.fetches: dict[str, list[float]] = {"good": [], "trap": []}
        fronts = [self.site.url(page, 80).replace(":80/", "/") for page in self.site.first_page.tolist()]
        self.take_in([Page(url, host_of(url)) for url in (*fronts, *[TRAP + "/"] * (trap is not None))])
        self.discovery.know(list(self.pages))
        self.go()
        self.fresh = self.ledger.time_fresh("us", END)

    def take_in(self, pages: list[Page]) -> None:
        for page in pages:
            self.pages[page.url] = page
            self.engine.add(page, self.now)

    def go(self) -> None:
        under_way: list[tuple[float, int, Order, Fetched]] = []
        number = count()
        while self.now < END:
            while under_way and under_way[0][0] <= self.now:
                self.finish(*heapq.heappop(under_way)[2:])
            decision = self.engine.next(self.now)
            if isinstance(decision, Order):
                heapq.heappush(under_way, (self.now + TOOK, next(number), decision, self.fetch(decision.url)))
            else:
                self.now = min(decision.until, under_way[0][0] if under_way else inf, END)

    def fetch(self, url: str) -> Fetched:
        page = self.site.find(url)
        self.fetches["trap" if page is None else "good"].append(self.now)
        if page is None:
            body = self.trap.body(url.removeprefix(TRAP))
            return Fetched(url, self.now, TOOK, status=200, body=body, content_type="text/html")
        version = self.site.version(page, self.now)
        self.ledger.handed(self.ledger.client("us"), page, version, self.now)
        offered = Validators(etag=f'"{version}"')
        if self.known.get(url, Validators()).etag == offered.etag:
            return Fetched(url, self.now, TOOK, status=304, validators=offered)
        body = self.site.body(page, version)
        return Fetched(url, self.now, TOOK, status=200, body=body, content_type="text/html", validators=offered)

    def finish(self, order: Order, fetched: Fetched) -> None:
        # The bytes tell: nothing here changes without meaning, and reading every page takes long.
        verdict = compare(self.known.get(order.url, Validators()), replace(fetched, content_type=""))
        self.known[order.url] = verdict.validators
        crawl = self.engine.finish(order, fetched, verdict, self.now)
        if crawl.outcome in (Outcome.NEW, Outcome.CHANGED):
            self.take_in(self.discovery.read(self.pages[order.url], fetched))


@cache
def alone() -> Run:
    return Run()


def check_that_it_measures(run: Run) -> None:
    """All pages are found, the budget is used up, and copies do go stale."""
    assert len([url for url in run.pages if not url.startswith(TRAP)]) == PAGES
    assert sum(len(moments) for moments in run.fetches.values()) >= BUDGET * END - 2
    assert 0.6 < run.fresh < 0.95


def test_t1_a_trap_costs_the_other_hosts_less_than_1_percent_of_their_freshness() -> None:
    beside = Run(Trap())
    for run in (alone(), beside):
        check_that_it_measures(run)
    visits = len(beside.fetches["trap"])
    assert 50 < visits <= END / Politeness().shortest_gap + 1, "it is walked into, in its host's own turns"
    assert abs(beside.fresh / alone().fresh - 1) <= 0.01, (beside.fresh, alone().fresh)


def test_t1_without_rules_and_rests_the_same_trap_costs_a_lot() -> None:
    """What the test above would say if nothing held the trap back."""
    beside = Run(Trap(), traps=OPEN, politeness=Politeness(0, 0, 0, 0))
    assert len(beside.fetches["trap"]) > 500
    assert beside.fresh < 0.98 * alone().fresh


def test_t2_a_page_whose_text_differs_at_every_fetch_is_visited_seldom_and_costs_the_others_nothing() -> None:
    beside = Run(Noise())
    check_that_it_measures(beside)
    visits = beside.fetches["trap"]
    # It is a page that changes often, and worth a visit now and then; its host would bear eighty.
    assert 3 <= len(visits) <= 20, "so many show that it cannot be kept fresh"
    assert abs(beside.fresh / alone().fresh - 1) <= 0.01
