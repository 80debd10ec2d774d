"""The live engine from its first crawl on, where pages change by the second, the minute, the hour and the day.

One made-up collection, stretched in time, is kept fresh by the engine that `afresh run` uses, driven with a manual
clock. Printed is the share of requests that find a fresh copy over the first so many visits a page, for the engine,
for visits to all pages in turn, and for the optimum that knows every rate. All start with copies of all pages.
"""

import numpy as np

from afresh import Engine, Fetched, Order, Outcome, Page, Verdict
from afresh.estimate import Learner, typical_rate
from afresh.frontier import Lanes, Politeness
from afresh.schedule import DEFAULT_SWEEP, Scheduler
from afresh.value import optimum

PAGES = 200
LENGTHS = (1, 3, 10, 30)  # visits a page
SCALES = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class World:
    """When each page changes; and how long each copy has been fresh so far."""

    def __init__(self, seed: int, interval: float) -> None:
        rng = np.random.default_rng(seed)
        never = np.arange(PAGES) % 5 == 0
        self.rates = np.where(never, 0.0, np.exp(rng.normal(0.0, 1.5, PAGES))) / interval
        self.end = LENGTHS[-1] * interval
        self.changes = [np.sort(self.end * rng.random(rng.poisson(rate * self.end))) for rate in self.rates]
        self.interval = interval
        self.copied = np.zeros(PAGES)
        self.fresh = np.zeros(len(LENGTHS))  # page-seconds up to each length

    def visit(self, page: int, now: float) -> bool:
        """Renew the copy; whether the page had changed."""
        since, times = self.copied[page], self.changes[page]
        k = np.searchsorted(times, since, side="right")
        spoiled = min(times[k] if k < len(times) else np.inf, now)
        for nth, length in enumerate(LENGTHS):
            until = length * self.interval
            self.fresh[nth] += max(0.0, min(spoiled, until) - min(since, until))
        self.copied[page] = now
        return bool(spoiled < now)

    def shares(self) -> np.ndarray:
        """Of time that copies were fresh, up to each length."""
        for page in range(PAGES):
            self.visit(page, self.end)
        return self.fresh / (PAGES * self.interval * np.array(LENGTHS))


def engine_run(world: World) -> np.ndarray:
    """The engine of `afresh run`, every page on a host of its own and all of them polite at once."""
    budget = PAGES / world.interval
    engine = Engine(
        scheduler=Scheduler.live(budget=budget, lease=world.interval, sweep=DEFAULT_SWEEP),
        estimator=Learner(typical_rate=typical_rate(budget, PAGES)),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)),
    )
    for page in range(PAGES):
        engine.add(Page(f"https://h{page}.example/", host=f"h{page}.example"), 0.0, current=0.0)
    for tick in range(1, round(world.end * budget) + 1):
        now = tick / budget
        order = engine.next(now)
        if not isinstance(order, Order):
            continue
        changed = world.visit(int(order.url[9:].split(".")[0]), now)
        fetched = Fetched(order.url, started=now, took=0.0, status=200)
        engine.finish(order, fetched, Verdict(Outcome.CHANGED if changed else Outcome.UNCHANGED), now)
    return world.shares()


def uniform_run(world: World) -> np.ndarray:
    """All pages in turn."""
    budget = PAGES / world.interval
    for tick in range(1, round(world.end * budget) + 1):
        world.visit(tick % PAGES, tick / budget)
    return world.shares()


def main() -> None:
    """Print the table."""
    print(f"{PAGES} pages, one in five never changes; share of requests that find a fresh copy")
    print(f"{'visits a page':22}" + "".join(f"{length:>8}" for length in LENGTHS))
    for name, interval in SCALES.items():
        rows = {"engine": [], "in turn": []}
        best = []
        for seed in range(3):
            rows["engine"].append(engine_run(World(seed, interval)))
            rows["in turn"].append(uniform_run(World(seed, interval)))
            world = World(seed, interval)
            wanted = np.ones(PAGES)
            best.append(optimum(budget=PAGES / interval, request_rate=wanted, change_rate=world.rates).freshness)
        for way, shares in rows.items():
            print(f"{name:8}{way:14}" + "".join(f"{share:8.3f}" for share in np.mean(shares, axis=0)))
        print(f"{'':8}{'optimum':14}" + f"{np.mean(best):8.3f} in the long run")


if __name__ == "__main__":
    main()
