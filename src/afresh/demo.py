"""The demo: three schedules keep copies of one changing web site over real HTTP, at the same budget, side by side.

The site is synthetic and knows every change it makes; it counts, for every reader's request, whether the copy that each
crawler holds is the current one. The crawlers differ in their schedule and in nothing else. In the site's life a day
passes every second.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from afresh.daemon import Daemon, Event, Finished, SteadyClock
from afresh.engine import Engine
from afresh.errors import ConfigError
from afresh.estimate import Learner
from afresh.fetch import Http
from afresh.frontier import Lanes, Politeness, host_of
from afresh.schedule import Greedy, NutchAdaptive, Plain, Rule, Uniform
from afresh.sim.web import Ledger, Readers, Server, Site, SiteOptions
from afresh.store import Memory
from afresh.types import Page, Request
from afresh.units import show_count
from afresh.value import optimum

DAY = 1.0  # seconds
SCHEDULES: dict[str, Callable[[], Rule]] = {
    "afresh": Greedy,
    "uniform": Uniform,
    "nutch": lambda: NutchAdaptive(day=DAY),
}
# Loopback servers need no rest; still one request at a time to a host, as everywhere.
NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to show."""

    seconds: float = 60.0  # of crawling; the last two thirds are scored
    pages: int = 1000
    budget: float = 50.0  # crawls per second, for each schedule
    seed: int = 1

    def __post_init__(self) -> None:
        if not 3 <= self.seconds <= 3600:
            raise ConfigError(f"The demo cannot run for {self.seconds:g} s.", hint="Give --seconds between 3 and 3600.")
        if not 10 <= self.pages <= 100_000:
            raise ConfigError(
                f"The demo cannot show {show_count(self.pages, 'page')}.", hint="Give --pages between 10 and 100000."
            )
        if not 1 <= self.budget <= 500:
            raise ConfigError(f"The demo cannot spend {self.budget:g}/s.", hint="Give --budget between 1/s and 500/s.")
        if self.seed < 0:
            raise ConfigError(f"The seed is {self.seed}.", hint="Give --seed a whole number of at least 0.")

    @property
    def learning(self) -> float:
        """Seconds at the start that are not scored: nobody has copies yet, and nobody knows the pages."""
        return self.seconds / 3


@dataclass(slots=True)
class Contestant:
    """One schedule's crawler and what it has done so far."""

    name: str
    daemon: Daemon
    fetcher: Http
    outcomes: Counter[str] = field(default_factory=Counter)

    def hear(self, event: Event) -> None:
        """Count outcomes."""
        if isinstance(event, Finished):
            self.outcomes[event.crawl.outcome] += 1


@dataclass(frozen=True, slots=True)
class Line:
    """How one schedule stands; all but `changes` counted by the site."""

    name: str
    crawls: int
    not_modified: int
    changes: int
    fresh: float | None  # share of readers' requests served fresh since scoring began; None before
    fresh_now: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How all of them stand at a moment."""

    elapsed: float
    requests: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The figures at the end; shares lie between 0 and 1."""

    afresh: float
    uniform: float
    nutch: float
    ceiling: float
    budget: float
    pages: int
    seconds: float
    seed: int
    requests: int  # readers' requests that were scored
    counts: dict[str, dict[str, int]]


class Demo:
    """Sets the stage, runs the contest, and reads the site's books."""

    def __init__(self, options: DemoOptions, show: Callable[[Standing], None] = lambda standing: None) -> None:
        self.options = options
        self.show = show
        self.site = Site(
            SiteOptions(
                seed=options.seed,
                pages=options.pages,
                hosts=max(1, options.pages // 10),
                day=DAY,
                processes="poisson",  # the ceiling is a theorem for these
                requests=2000.0,
            )
        )
        self.ledger = Ledger(self.site)
        self.contestants: list[Contestant] = []

    def ceiling(self) -> float:
        """The share of requests that the best schedule with perfect knowledge serves fresh, in the long run."""
        best = optimum(
            budget=self.options.budget, request_rate=self.site.request_rate, change_rate=self.site.change_rate
        )
        return float(best.freshness)

    async def run(self) -> Result:
        """The contest; about `seconds` long."""
        began = time.monotonic()

        def site_time() -> float:
            return time.monotonic() - began

        server = Server(self.site, clock=site_time, ledger=self.ledger)
        await server.start()
        try:
            urls = server.urls()
            self.contestants = [self._contestant(name, rule(), urls) for name, rule in SCHEDULES.items()]
            start = site_time()
            self.ledger.open_window(start + self.options.learning, start + self.options.seconds)
            readers = Readers(self.ledger, start=start, listeners=(self._report_requests(urls),))
            await self._contest(readers, site_time)
        finally:
            for each in self.contestants:
                await each.fetcher.close()
            await server.stop()
        return self._result()

    def _contestant(self, name: str, rule: Rule, urls: Sequence[str]) -> Contestant:
        budget = self.options.budget
        store = Memory()
        store.add(Page(url, host_of(url)) for url in urls)
        clock = SteadyClock()
        fetcher = Http(user_agent=name, allow_private=True, clock=clock)
        daemon = Daemon(
            engine=Engine(
                scheduler=Plain(rule, budget=budget),
                estimator=Learner(typical_rate=budget / len(urls)),
                lanes=Lanes(NO_GAPS),
            ),
            fetcher=fetcher,
            store=store,
            clock=clock,
        )
        contestant = Contestant(name, daemon, fetcher)
        daemon.listeners.append(contestant.hear)
        return contestant

    def _report_requests(self, urls: Sequence[str]) -> Callable[[npt.NDArray[np.int64], float], None]:
        """Tell every engine what readers ask for, as a proxy in front of it would; only ours makes use of it."""

        def hear(pages: npt.NDArray[np.int64], _: float) -> None:
            asked, counts = np.unique(pages, return_counts=True)
            for each in self.contestants:
                now = each.daemon.clock()
                for page, count in zip(asked.tolist(), counts.tolist(), strict=True):
                    each.daemon.engine.observe(Request(urls[page], now, count))

        return hear

    async def _contest(self, readers: Readers, clock: Callable[[], float]) -> None:
        crawls = [asyncio.create_task(each.daemon.run()) for each in self.contestants]
        start, end = readers.time, self.ledger.window[1]
        reading = asyncio.create_task(readers.run(clock, every=0.1, until=end))
        try:
            while not reading.done():
                done, _ = await asyncio.wait([reading, *crawls], timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # a crawler that fails must not go unnoticed
                now = min(clock(), end)
                self.show(self._standing(now, now - start))
        finally:
            reading.cancel()
            for each in self.contestants:
                each.daemon.stop()
            await asyncio.gather(*crawls)

    def _standing(self, now: float, elapsed: float) -> Standing:
        lines = []
        for each in self.contestants:
            counts = self.ledger.client(each.name).counts
            lines.append(
                Line(
                    name=each.name,
                    crawls=counts.requests,
                    not_modified=counts.not_modified,
                    changes=each.outcomes["changed"],
                    fresh=self.ledger.readers_fresh(each.name) if self.ledger.asked else None,
                    fresh_now=self.ledger.fresh_now(each.name, now),
                )
            )
        return Standing(elapsed, self.ledger.asked, tuple(lines))

    def _result(self) -> Result:
        shares = {name: self.ledger.readers_fresh(name) for name in SCHEDULES}
        counts = {
            each.name: {
                **{name: value for name, value in asdict(self.ledger.client(each.name).counts).items() if value},
                "changes_found": each.outcomes["changed"],
            }
            for each in self.contestants
        }
        options = self.options
        return Result(
            **shares,
            ceiling=self.ceiling(),
            budget=options.budget,
            pages=options.pages,
            seconds=options.seconds,
            seed=options.seed,
            requests=self.ledger.asked,
            counts=counts,
        )
