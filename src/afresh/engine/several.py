"""Several engines side by side, one for each purse: each spends a budget of its own, at a price of its own.

What is of one page is done by the engine of that page's purse. They share the lanes, each of which belongs to one
purse, what senders are worth, and how far statements came true. Where there is one purse only, its `Engine` does
without this.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from afresh.engine.loop import Engine
from afresh.engine.statements import FreshnessParts
from afresh.estimate import Calibration, Senders
from afresh.schedule import Explanation, LearnedRate
from afresh.types import Beliefs, Crawl, Fetched, Order, Page, Request, Signal, Spent, Verdict

MAX_PURSES = 64
MAX_REFUSED = 10_000


class Engines:
    """Asks the engine of a page's purse; `first` is that of the purse which needs no name.

    Invariants: a page is with one engine, that of `purse_of(url)`; an engine is made when the first page of its purse
    comes, by `make(purse)`, and stays. A purse beyond `MAX_PURSES` is the first one.
    """

    def __init__(self, first: Engine, make: Callable[[str], Engine | None], purse_of: Callable[[str], str]) -> None:
        self.first = first
        self.made: Callable[[Engine], None] = lambda _: None  # hears of every engine that is made later
        self._make, self._purse_of = make, purse_of
        self._parts = {first.purse: first}
        self._by_lane: dict[int, Engine] = {}  # by the number of the lane, of all purses but the first
        self._since: float | None = None  # requests are counted
        self._refused: set[str] = set()  # purses that nobody could make an engine for when it was asked for,
        self._stays: set[str] = set()  # and of these, those whose things are with the first one now
        self.lanes = first.lanes
        self.lanes.schedule = self

    # --- the parts ---

    @property
    def parts(self) -> tuple[Engine, ...]:
        """All engines, the first one first."""
        return tuple(self._parts.values())

    def part_of(self, url: str) -> Engine:
        """The engine that a page belongs to."""
        purse = self._purse_of(url)
        part = self._parts.get(purse)
        if part is None:
            made = None
            if len(self._parts) < MAX_PURSES and purse not in self._stays:
                made = self._make(purse)
            if made is None:
                if len(self._refused) < MAX_REFUSED:
                    self._refused.add(purse)
                return self.first
            part = self._parts[purse] = made
            part.lanes, self.lanes.schedule = self.lanes, self
            part.senders, part.calibration = self.first.senders, self.first.calibration
            if self._since is not None:
                part.requests_since(self._since)
            self.made(part)
        return part

    def by_part(self, urls: Sequence[str]) -> list[tuple[Engine, list[int]]]:
        """Each engine that some of these pages belong to, and which of them."""
        found: dict[str, tuple[Engine, list[int]]] = {}
        for nth, url in enumerate(urls):
            part = self.part_of(url)
            found.setdefault(part.purse, (part, []))[1].append(nth)
        return list(found.values())

    def reaches(self, part: Engine, lanes: Iterable[str]) -> None:
        """Pages of these lanes come to a part: what is known of the lanes is told to its schedule."""
        if part is self.first:
            self._stays |= self._refused.intersection(lanes)  # such a purse has the name of its lane
            return
        for name in lanes:
            number = self.lanes.number(name)
            if number not in self._by_lane:
                self._by_lane[number] = part
                part.scheduler.host_rests(number, self.lanes.state(name).ready)

    def host_rests(self, host: int, until: float) -> None:
        """`frontier.lanes.Schedule`."""
        self._by_lane.get(host, self.first).scheduler.host_rests(host, until)

    def set_host(self, host: int, *, gap: float | None = None, budget: float | None = None) -> None:
        """`frontier.lanes.Schedule`."""
        self._by_lane.get(host, self.first).scheduler.set_host(host, gap=gap, budget=budget)

    def host_price(self, host: int) -> float:
        """`frontier.lanes.Schedule`."""
        return self._by_lane.get(host, self.first).scheduler.host_price(host)

    # --- all of them ---

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts.values())

    def __contains__(self, url: str) -> bool:
        return url in self.part_of(url)

    @property
    def waiting(self) -> int:
        """Pages that wait for a first crawl."""
        return sum(part.waiting for part in self._parts.values())

    @property
    def without_room(self) -> bool:
        """Whether any page is put off because there was no room for its content."""
        return any(part.without_room for part in self._parts.values())

    @property
    def calibration(self) -> Calibration:
        """How far statements about copies came true."""
        return self.first.calibration

    @calibration.setter
    def calibration(self, calibration: Calibration) -> None:
        for part in self._parts.values():
            part.calibration = calibration

    @property
    def senders(self) -> Senders:
        """What signals of each sender are worth."""
        return self.first.senders

    @senders.setter
    def senders(self, senders: Senders) -> None:
        for part in self._parts.values():
            part.senders = senders

    def requests_since(self, moment: float) -> None:
        """Requests are counted since then."""
        self._since = moment
        for part in self._parts.values():
            part.requests_since(moment)

    def pages(self) -> Iterator[Page]:
        """All pages."""
        return chain.from_iterable(part.pages() for part in self.parts)

    def settle(self, now: float) -> Iterator[None]:
        """Let all pages that came in be in play."""
        for part in self.parts:
            yield from part.settle(now)

    def room_again(self, now: float, most: int, *, first_copies: bool = True) -> bool:
        """Bring pages back that were put off for want of room; False once there are no more."""
        more = [part.room_again(now, most, first_copies=first_copies) for part in self.parts]
        return any(more)

    def observe_many(self, evidence: Iterable[Signal | Request], now: float) -> int:
        """Take in many hints and requests; how many are of pages of ours."""
        every = list(evidence)
        some = self.by_part([each.url for each in every])
        return sum(part.observe_many([every[nth] for nth in places], now) for part, places in some)

    def believed(self, urls: Sequence[str], now: float) -> Iterator[tuple[str, Beliefs, int, bytes]]:
        """As `Engine.believed`."""
        for part, places in self.by_part(urls):
            yield from part.believed([urls[nth] for nth in places], now)

    # --- one page, in its own part ---

    def observe(self, evidence: Signal | Request, now: float | None = None) -> bool:
        """As `Engine.observe`."""
        return self.part_of(evidence.url).observe(evidence, now)

    def finish(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, *, rest: float = 0.0) -> Crawl:
        """As `Engine.finish`."""
        return self.part_of(order.url).finish(order, fetched, verdict, now, rest=rest)

    def receive(self, fetched: Fetched, verdict: Verdict, now: float) -> Crawl | None:
        """As `Engine.receive`."""
        return self.part_of(fetched.url).receive(fetched, verdict, now)

    def charge(self, url: str, spent: Spent, now: float) -> None:
        """As `Engine.charge`."""
        self.part_of(url).charge(url, spent, now)

    def release(self, order: Order, now: float, gap: float = 0.0) -> None:
        """As `Engine.release`."""
        self.part_of(order.url).release(order, now, gap)

    def is_out(self, order: Order) -> bool:
        """As `Engine.is_out`."""
        return self.part_of(order.url).is_out(order)

    def remove(self, url: str) -> None:
        """Forget a page."""
        self.part_of(url).remove(url)

    def tell(self, page: Page, now: float) -> None:
        """As `Engine.tell`."""
        self.part_of(page.url).tell(page, now)

    def looks_again(self, url: str, now: float) -> None:
        """A page that failed by itself may be well again."""
        self.part_of(url).looks_again(url, now)

    def crawl_now(self, url: str, now: float) -> None:
        """As `Engine.crawl_now`."""
        self.part_of(url).crawl_now(url, now)

    def comes_again(self, crawl: Crawl) -> bool:
        """As `Engine.comes_again`."""
        return self.part_of(crawl.url).comes_again(crawl)

    def page(self, url: str) -> Page:
        """As `Engine.page`."""
        return self.part_of(url).page(url)

    def explain(self, url: str, now: float) -> Explanation:
        """As `Engine.explain`."""
        return self.part_of(url).explain(url, now)

    def beliefs(self, url: str, now: float) -> Beliefs:
        """What is believed of a page."""
        return self.part_of(url).beliefs(url, now)

    def fresh_probability(self, url: str, now: float) -> float:
        """How likely the copy of a page is to be current; 0 where there is none."""
        return self.part_of(url).fresh_probability(url, now)

    def freshness_parts(self, url: str, now: float) -> FreshnessParts:
        """As `Engine.freshness_parts`."""
        return self.part_of(url).freshness_parts(url, now)

    def current(self, url: str) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        return self.part_of(url).current(url)

    def is_outdated(self, url: str) -> bool:
        """Whether the copy of a page is known to differ from it."""
        return self.part_of(url).is_outdated(url)

    def is_gone(self, url: str) -> bool:
        """Whether the last crawl of a page found that there is no such page any more."""
        return self.part_of(url).is_gone(url)

    def failures(self, url: str) -> int:
        """How often the page has failed in a row, up to now."""
        return self.part_of(url).failures(url)

    def signals(self, url: str) -> int:
        """How many signals a page has sent since its copy was current."""
        return self.part_of(url).signals(url)

    def learned_rate(self, url: str) -> LearnedRate | None:
        """As `Engine.learned_rate`."""
        return self.part_of(url).learned_rate(url)

    def learned(self, url: str) -> bytes:
        """What the estimator remembers of a page."""
        return self.part_of(url).learned(url)

    def costs_of(self, url: str) -> tuple[float | None, float | None]:
        """As `Engine.costs_of`."""
        return self.part_of(url).costs_of(url)

    def kind(self, url: str) -> int:
        """The kinds of a page, packed; 0: unknown."""
        return self.part_of(url).kind(url)

    def foretold(self, url: str) -> float | None:
        """As `Engine.foretold`."""
        return self.part_of(url).foretold(url)

    def tell_kind(self, url: str, kind: int, now: float) -> None:
        """As `Engine.tell_kind`."""
        self.part_of(url).tell_kind(url, kind, now)

    def tell_age(self, url: str, age: float, trust: float, now: float) -> None:
        """As `Engine.tell_age`."""
        self.part_of(url).tell_age(url, age, trust, now)

    def tell_last_change(self, url: str, since: float, elapsed: float, trust: float, now: float) -> None:
        """As `Engine.tell_last_change`."""
        self.part_of(url).tell_last_change(url, since, elapsed, trust, now)

    def host_of(self, url: str) -> str:
        """The lane of a page."""
        return self.part_of(url).host_of(url)


AnyEngine = Engine | Engines
