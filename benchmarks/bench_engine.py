"""The engine with everything that a live crawl uses: what a page takes, and what each operation costs, by size.

Each size runs in a process of its own. Costs are seconds of the processor; the last column of each is its ratio to the
first size's, which should be near 1: nothing but memory grows with the number of pages.

    python benchmarks/bench_engine.py                     # 100,000 and a million pages
    python benchmarks/bench_engine.py 100000 10000000     # these
    python benchmarks/bench_engine.py --crawls            # next + finish alone, for 100,000 pages: half a minute

The last says what of it the compiled parts take, in the same turns; that ratio is the same on a busy machine.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BATCH = 20_000  # pages added at once
TURNS = 20  # in which next + finish and its parts alternate; the least of each counts
CRAWLS = 20_000
SIGNALS = 50_000
HOSTS = 5_000
NAMES = {
    "bytes": "bytes a page, (RSS(N) - RSS(0)) / N",
    "add": "add in bulk, µs a page",
    "settle": "believe and place, µs a page",
    "crawl": "next + finish, µs",
    "parts": "  the schedule's and the heart's part, µs",
    "share": "  next + finish, times that part",
    "signal": "signals in batches of 100, µs each",
    "survey": "a statement about all copies, µs a page",
    "remove": "remove, µs",
}


CRAWL_NAMES = ("crawl", "parts", "share")


def url_of(number: int) -> tuple[str, str]:
    """A page and its host: a hundred pages of a host stand together, in seven folders."""
    host = f"h{number // 100 % HOSTS}.example"
    return f"https://{host}/folder{number % 7}/page{number}.html", host


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def cost(act: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    act()
    return time.process_time() - began


def measure(pages: int, only_crawls: bool = False) -> dict[str, float]:
    """All that is measured at one size."""
    from afresh.engine import Arrivals, Engine, Names
    from afresh.engine.ahead import compile_ahead
    from afresh.estimate import Activity, Learner
    from afresh.frontier import Lanes, Politeness
    from afresh.schedule import Scheduler
    from afresh.types import Fetched, Order, Outcome, Page, Signal, Verdict, Wait

    compile_ahead()
    budget = pages / 1000.0
    engine = Engine(
        scheduler=Scheduler(budget=budget, lease=90.0, sweep=0.02),
        estimator=Learner(typical_rate=1e-3),
        activity=Activity(width=60.0),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=0.0, first_back_off=0.0, longest_back_off=0.0)),
        names=Names(b"secret of the crawl", read=lambda number: Page(*url_of(number - 1))),
    )
    before, found = resident(), {"add": 0.0}
    for first in range(0, pages, BATCH):
        numbers = range(first, min(first + BATCH, pages))
        urls, hosts = zip(*(url_of(number) for number in numbers), strict=True)
        some = Arrivals(
            urls=urls, hosts=hosts, numbers=[number + 1 for number in numbers], current=[0.0] * len(numbers)
        )
        found["add"] += cost(lambda some=some: engine.add_many(some, 1.0, settle=False)) / pages
    found["settle"] = cost(lambda: list(engine.settle(1.0))) / pages
    now = 100.0

    def crawl(count: int) -> None:
        nonlocal now
        done = 0
        while done < count:
            now += 1.0 / budget
            order = engine.next(now)
            if isinstance(order, Order):
                done += 1
                verdict = Verdict(Outcome.CHANGED if done % 5 == 0 else Outcome.UNCHANGED)
                engine.finish(order, Fetched(order.url, now, 0.0, status=200), verdict, now)

    def parts(count: int) -> None:
        nonlocal now
        done = 0
        while done < count:
            now += 1.0 / budget
            pick = engine.scheduler.next(now)
            if not isinstance(pick, Wait):
                done += 1
                changed = done % 5 == 0
                engine.heart.close(pick.slot, now, now, learns=True, changed=changed, found=changed, gap=0.0)

    crawl(CRAWLS // 4)
    turns = [(cost(lambda: crawl(CRAWLS // TURNS)), cost(lambda: parts(CRAWLS // TURNS))) for _ in range(TURNS)]
    found["crawl"], found["parts"] = (TURNS * min(each) / CRAWLS for each in zip(*turns, strict=True))
    found["share"] = found["crawl"] / found["parts"] / 1e6
    if only_crawls:
        return {name: 1e6 * found[name] for name in CRAWL_NAMES}
    chosen = random.Random(1).sample(range(pages), min(SIGNALS, pages))
    signals = [Signal(url_of(number)[0], now, "feed") for number in chosen]

    def hear() -> None:
        for first in range(0, len(signals), 100):
            engine.observe_many(signals[first : first + 100], now)

    found["signal"] = cost(hear) / len(signals)
    survey = engine.survey(now)
    survey.carry_out()
    found["survey"] = cost(lambda: engine.survey(now).carry_out()) / pages
    found["bytes"] = (resident() - before) / pages / 1e6
    some_urls = [url_of(number)[0] for number in chosen[:5_000]]
    found["remove"] = cost(lambda: engine.remove_many(some_urls)) / len(some_urls)
    return {name: 1e6 * found[name] for name in NAMES}


def main() -> None:
    """Measure each size and print a table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(int(sys.argv[2]), "--crawls" in sys.argv)))
        return
    only = ["--crawls"] if "--crawls" in sys.argv else []
    sizes = [int(each) for each in sys.argv[1:] if each not in only]
    sizes = sizes or [100_000] + [1_000_000] * (not only)
    rows = []
    for size in sizes:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(size), *only], check=True, capture_output=True, text=True
        )
        rows.append(json.loads(done.stdout))
    print(f"{'':42}" + "".join(f"{size:>13,}" for size in sizes) + "   ratio")
    for name, title in NAMES.items():
        if name not in rows[0]:
            continue
        values = [row[name] for row in rows]
        print(f"{title:42}" + "".join(f"{value:13.2f}" for value in values) + f"{values[-1] / values[0]:8.2f}")


if __name__ == "__main__":
    main()
