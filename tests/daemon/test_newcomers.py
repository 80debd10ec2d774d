"""A domain with very many hosts, beside others: nobody is starved by first crawls."""

import asyncio
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from afresh.daemon import Daemon
from afresh.daemon.keeping import Keeper
from afresh.daemon.newcomers import MAX_UNTRIED, Newcomers
from afresh.engine import Engine
from afresh.estimate import Grid, Learner
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness, host_of, site_of
from afresh.schedule import Greedy, Plain, Scheduler
from afresh.store import Memory, PageState, Record
from afresh.types import Copy, Fetched, Importance, Outcome, Page, Validators, Verdict, Wait

GAP = 1.0


class Crawling:
    """A keeper and an engine in made-up time: every fetch takes no time, and a new host's robots.txt an order."""

    def __init__(self, budget: float, *, fast: bool = True, sweep: float = 0.0, many: bool = False) -> None:
        scheduler = Scheduler.live(budget=budget, sweep=sweep) if fast else Plain(Greedy(), budget=budget)
        if many:  # as `live` has it beyond 65,536 pages
            scheduler = Scheduler(budget=budget, lease=120.0, sweep=sweep)
        politeness = Politeness(factor=0.0, shortest_gap=GAP)
        self.now = 1000.0
        self.engine = Engine(scheduler=scheduler, estimator=Grid(typical_rate=0.01), lanes=Lanes(politeness))
        self.keeper = Keeper(store=Memory(), engine=self.engine, clock=lambda: self.now)
        self.asked: list[tuple[float, str]] = []
        self.robots: set[str] = set()
        self.unreachable: set[str] = set()
        self.failed: set[str] = set()
        self.still = False  # nothing ever changes

    def know(self, hosts: list[str], pages: int = 20) -> None:
        """Hosts whose pages have copies."""
        states = [
            PageState(Page(f"http://{host}/{nth}", host), fetched=900.0 + nth, checked=900.0 + nth, crawls=1)
            for host in hosts
            for nth in range(pages)
        ]
        self.robots |= set(hosts)
        self.keeper.store.add([state.page for state in states])
        self.keeper.store.write([Record(None, state, copy_of(state)) for state in states])
        asyncio.run(self.keeper.take_in())

    def find(self, hosts: list[str], pages: int = 1) -> None:
        self.keeper.welcome([Page(f"http://{host}/{nth}", host) for host in hosts for nth in range(pages)])

    def run(self, seconds: float) -> Counter[str]:
        """How often each site was asked."""
        end, begin = self.now + seconds, len(self.asked)
        while self.now < end:
            decision = self.keeper.next(self.now)
            if isinstance(decision, Wait):
                self.now = min(max(decision.until, self.now + 1e-3), self.now + 0.1)
                continue
            if decision.host in self.unreachable:
                failed = Fetched(decision.url, self.now, 0.0, reason="refused")
                self.engine.finish(decision, failed, Verdict(Outcome.FAILED, reason="refused"), self.now)
                if decision.url not in self.failed:
                    self.failed.add(decision.url)
                    self.keeper._let_in(self.engine, self.keeper.newcomers.tried(decision.host), self.now)
                continue
            self.asked.append((self.now, decision.host))
            if decision.host not in self.robots:
                self.robots.add(decision.host)
                self.engine.release(decision, self.now, GAP)
                continue
            fetched = Fetched(decision.url, self.now, 0.0, status=200, body=b"x")
            first = self.engine.current(decision.url) is None
            outcome = Outcome.UNCHANGED if self.still else Outcome.CHANGED
            self.engine.finish(decision, fetched, Verdict(outcome, validators=Validators(fingerprint=1)), self.now)
            if first:
                self.keeper._let_in(self.engine, self.keeper.newcomers.tried(decision.host), self.now)
        return Counter(site_of(host) for _, host in self.asked[begin:])

    def longest_silence(self, hosts: list[str], since: float) -> float:
        moments = [since, *(moment for moment, host in self.asked if host in hosts and moment >= since), self.now]
        return max(later - earlier for earlier, later in pairwise(moments))


def copy_of(state: PageState) -> Copy | None:
    return state.fetched and Copy(state.page.url, b"x", "text/plain", state.fetched, state.checked or 0.0)


class Offering:
    """Pages that are offered one after the other."""

    def __init__(self) -> None:
        self.engine = Engine(scheduler=Plain(Greedy(), budget=1.0), estimator=Grid())
        self.newcomers = Newcomers(self.engine)

    def offer(self, url: str, *, crawls: int = 0, checked: float | None = None, weight: float | None = None) -> bool:
        """Whether it may go in at once."""
        importance = None if weight is None else Importance(weight)
        slots = self.engine.add_many([Page(url, host_of(url), importance=importance)], 1.0)
        facts = {"new": not crawls, "copied": checked is not None, "free": weight is None}
        waits = self.newcomers.offer(host_of(url), slots, **{name: np.array([so]) for name, so in facts.items()})
        self.engine.wait_many(waits)
        return not len(waits)

    def let_in(self, slot: int | None) -> str | None:
        if slot is None:
            return None
        self.engine.let_in(slot, 1.0)
        return self.engine.names.page(slot).url


KNOWN = [f"known{nth}.example" for nth in range(15)]
MANY = [f"n{nth}.many.example" for nth in range(1000)]


@pytest.mark.parametrize("budget", [5.0, 15.0, 60.0])
@pytest.mark.parametrize("pages", [1, 30])
def test_a_thousand_new_hosts_of_one_domain_do_not_starve_known_hosts(budget: float, pages: int) -> None:
    """While a thousand new names had their first crawls, 15 known hosts got no request for 36 s."""
    alone = Crawling(budget)
    alone.know(KNOWN)
    before = sum(alone.run(60.0).values())
    beside = Crawling(budget)
    beside.know(KNOWN)
    beside.find(MANY, pages)
    began = beside.now
    counts = beside.run(60.0)
    known = sum(count for site, count in counts.items() if site != "many.example")
    # The site's first host takes a turn of its own, as any host does, and its other hosts a share of one in 16.
    own = min(60.0 / GAP, 2 * pages)
    assert known >= 0.9 * (before - own)
    assert beside.longest_silence(KNOWN, began) < 3.0
    assert counts["many.example"] > 0.9 * min(60.0 * budget / 16, 2000)


DOMAINS = [f"domain{nth}.example" for nth in range(2000)]


@pytest.mark.parametrize("budget", [5.0, 15.0])
@pytest.mark.parametrize("pages", [1, 30])
@pytest.mark.parametrize("new", [DOMAINS, [*DOMAINS[:1000], *MANY]], ids=["domains", "both"])
@pytest.mark.parametrize("many", [False, True])
def test_first_crawls_of_many_domains_do_not_starve_refreshes(
    budget: float, pages: int, new: list[str], many: bool
) -> None:
    """While five hundred new domains had their first crawls, known pages were not refreshed at all."""
    crawling = Crawling(budget, many=many)
    crawling.know(KNOWN)
    crawling.run(120.0)
    crawling.find(new, pages)
    began = crawling.now
    counts = crawling.run(120.0)
    known = sum(count for site, count in counts.items() if site.startswith("known"))
    assert known >= 0.45 * 120 * budget
    assert crawling.longest_silence(KNOWN, began) < (100 if many else 20) / budget
    assert sum(counts.values()) > 0.97 * 120 * budget
    assert sum(counts.values()) - known >= 0.3 * 120 * budget


def test_first_crawls_do_not_starve_the_sweep() -> None:
    """Nobody asks for the copies that were left alone longest, but every n-th order is for them."""
    crawling = Crawling(15.0, sweep=0.1)
    crawling.know(KNOWN)
    crawling.run(60.0)
    crawling.find(DOMAINS)
    began = crawling.now
    crawling.run(120.0)
    refreshed = [crawling.engine.current(f"http://{host}/{nth}") for host in KNOWN for nth in range(20)]
    assert all(moment is not None and moment > began for moment in refreshed)


def test_first_crawls_do_not_wait_for_copies_that_are_as_good_as_new() -> None:
    """A round over 300 pages takes a minute here, and none of them is older than 40 s."""
    crawling = Crawling(5.0)
    crawling.now = 921.0
    crawling.know(KNOWN)
    crawling.find(DOMAINS)
    counts = crawling.run(20.0)
    assert sum(count for site, count in counts.items() if site.startswith("domain")) >= 0.8 * 20 * 5


@pytest.mark.parametrize("dead", [0, 3])
@pytest.mark.parametrize("exact_up_to", [0, 20_000])
def test_after_a_restart_few_copies_do_not_take_the_orders_of_many_hosts(exact_up_to: int, dead: int) -> None:
    """Of 1,500 sites 60 have a copy, and nothing changes. Half of the orders went to the same few copies, again and
    again; beyond some number of pages nearly all did, as the price was never found; and some hosts that cannot be
    reached were enough to take early turns from all others."""
    budget, hosts, copies = 20.0, [f"d{nth}.example" for nth in range(1500)], 60
    crawling = Crawling(budget)
    crawling.engine = Engine(
        scheduler=Scheduler(budget=budget, lease=120.0, exact_up_to=exact_up_to),
        estimator=Learner(typical_rate=budget / 6000),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=GAP)),
    )
    crawling.keeper = Keeper(store=Memory(), engine=crawling.engine, clock=lambda: crawling.now)
    crawling.still = True
    crawling.unreachable = set(hosts[100 : 100 + 100 * dead])
    crawling.know(hosts[:copies], 1)
    crawling.keeper.store.add([Page(f"http://{host}/{nth}", host) for host in hosts[copies:] for nth in range(4)])
    asyncio.run(crawling.keeper.take_in())
    assert exact_up_to or crawling.engine.scheduler.price > 1e-9
    counts, new = crawling.run(75.0), set(hosts[copies:])
    # With a robots.txt for each new host. Those that fail in between take some orders as well.
    assert sum(count for site, count in counts.items() if site in new) > 0.75 * sum(counts.values()) > 75.0 * budget / 4


@pytest.mark.parametrize("where", ["first host", "other host", "queue"])
def test_a_page_can_be_pulled_from_wherever_it_waits(where: str) -> None:
    offering = Offering()
    newcomers, engine = offering.newcomers, offering.engine
    if where != "queue":
        offering.offer("http://b.example/", checked=1.0)
    host = "a.example" if where != "other host" else "x.a.example"
    offering.offer("http://a.example/")
    urls = [f"http://{host}/{nth}" for nth in range(MAX_UNTRIED + 2)]
    entered = [offering.offer(url) for url in urls]
    assert not all(entered)
    engine.let_in(engine.names.slot(urls[-1]), 1.0)
    taken = []
    for _ in range(3 * len(urls)):
        slot = newcomers.take()
        taken.append(offering.let_in(newcomers.tried(host) if slot is None else slot))
    assert urls[-1] not in taken
    assert len(newcomers) == 0


def test_no_part_of_the_budget_is_lost_to_fairness() -> None:
    """Fifteen hosts that may be asked once a second leave 45 of 60 orders a second to those who wait."""
    crawling = Crawling(60.0)
    crawling.know(KNOWN)
    crawling.find(MANY, 5)
    counts = crawling.run(30.0)
    assert sum(counts.values()) > 0.97 * 60 * 30
    assert sum(count for site, count in counts.items() if site != "many.example") > 0.93 * 15 * 30


def test_a_site_alone_does_not_wait() -> None:
    crawling = Crawling(60.0)
    crawling.find(MANY)
    assert len(crawling.engine) == 1000
    assert len(crawling.keeper.newcomers) == 0


def test_sites_with_many_hosts_get_the_same_share() -> None:
    crawling = Crawling(20.0)
    crawling.know(KNOWN)
    crawling.find(MANY)
    crawling.find([f"n{nth}.other.example" for nth in range(200)])
    counts = crawling.run(120.0)
    assert counts["other.example"] == pytest.approx(counts["many.example"], rel=0.1)


def test_pages_that_wait_are_kept_once_and_taken_in_once() -> None:
    crawling = Crawling(60.0)
    crawling.know(KNOWN)
    crawling.keeper.store.add([Page(f"http://{host}/", host) for host in MANY])
    assert asyncio.run(crawling.keeper.take_in()) == 1000
    assert asyncio.run(crawling.keeper.take_in()) == 0
    held = [crawling.engine.explain(f"http://{host}/", crawling.now).held_by for host in MANY]
    assert held.count("first turn") == len(crawling.keeper.newcomers) > 900
    assert "paused" not in held, "nobody has paused them"
    waits = f"http://{MANY[held.index('first turn')]}/"
    crawling.engine.pause(waits)
    assert crawling.engine.explain(waits, crawling.now).held_by == "paused"
    crawling.engine.resume(waits, crawling.now)
    crawling.run(60.0)
    waiting = len(crawling.keeper.newcomers)
    assert len(crawling.engine) == 15 * 20 + 1000
    assert waiting < 900


def test_a_page_is_in_play_or_waits() -> None:
    offering = Offering()
    urls = [f"http://h{nth}.a.example/" for nth in range(5)]
    assert offering.offer("http://b.example/")
    assert [offering.offer(url) for url in urls] == [True, False, False, False, False]
    assert len(offering.newcomers) == 4
    assert [offering.let_in(offering.newcomers.take()) for _ in range(5)] == [*urls[1:], None]
    assert len(offering.newcomers) == 0


def test_a_page_that_left_while_it_waited_is_passed_over() -> None:
    offering = Offering()
    urls = [f"http://h{nth}.a.example/" for nth in range(5)]
    for url in ("http://b.example/", *urls):
        offering.offer(url)
    offering.engine.remove(urls[2])
    assert [offering.let_in(offering.newcomers.take()) for _ in range(4)] == [urls[1], *urls[3:], None]


def test_a_host_that_offers_pages_without_end_does_not_fill_the_engine() -> None:
    """Each page in the engine takes time on the event loop, and a host is asked one thing at a time anyway."""
    crawling = Crawling(60.0)
    crawling.know(KNOWN)
    crawling.find(["trap.example"], 5000)
    crawling.run(30.0)
    waiting = len(crawling.keeper.newcomers)
    assert len(crawling.engine) - waiting <= 15 * 20 + 30 + MAX_UNTRIED
    assert len(crawling.engine) == 15 * 20 + 5000


def test_pages_that_are_removed_untried_leave_their_places_to_the_others_of_their_host() -> None:
    crawling = Crawling(60.0)
    crawling.find(["a.example"], 200)
    for nth in range(90):
        crawling.keeper.remove(f"http://a.example/{nth}")
    assert crawling.run(150.0)["a.example"] > 110
    assert not len(crawling.keeper.newcomers)
    assert len(crawling.engine) == 110


def test_a_page_goes_in_for_each_that_was_tried_in_the_order_in_which_they_were_found() -> None:
    offering = Offering()
    urls = [f"http://a.example/{nth}" for nth in range(MAX_UNTRIED + 3)]
    assert [offering.offer(url) for url in urls] == [True] * MAX_UNTRIED + [False] * 3
    tried = [offering.let_in(offering.newcomers.tried("a.example")) for _ in range(4)]
    assert tried == [*urls[MAX_UNTRIED:], None]
    assert len(offering.newcomers) == 0
    for _ in range(MAX_UNTRIED):
        offering.newcomers.tried("a.example")
    assert offering.offer("http://a.example/more")


def test_pages_that_are_known_or_that_somebody_gave_a_weight_do_not_queue() -> None:
    offering = Offering()
    for nth in range(MAX_UNTRIED):
        offering.offer(f"http://a.example/{nth}")
    assert offering.offer("http://b.example/")
    assert offering.offer("http://a.example/known", checked=1.0, crawls=1)
    assert offering.offer("http://a.example/failed", crawls=1)
    assert offering.offer("http://a.example/weight", weight=2.0)
    assert not offering.offer("http://a.example/new")


def test_pages_that_queue_are_not_left_out_of_the_count_or_of_what_is_said_of_freshness() -> None:
    store = Memory()
    store.add([Page(f"http://a.example/{nth}", "a.example") for nth in range(MAX_UNTRIED + 100)])
    engine = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Grid(typical_rate=0.01))
    daemon = Daemon(engine=engine, fetcher=Scripted({}), store=store, clock=lambda: 1000.0)
    asyncio.run(daemon._keeper.take_in())
    assert len(engine) - engine.waiting == MAX_UNTRIED
    assert daemon.pages == MAX_UNTRIED + 100
    one = PageState(Page("http://b.example/", "b.example"), fetched=1000.0, checked=1000.0, crawls=1)
    store.add([one.page])
    store.write([Record(None, one, copy_of(one))])
    asyncio.run(daemon._keeper.take_in())
    asyncio.run(daemon.overview.renew())
    assert daemon.overview.stated is not None
    assert daemon.overview.stated.pages == daemon.pages
    assert 0.0 < daemon.overview.stated.share < 1.5 / daemon.pages
