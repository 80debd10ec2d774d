"""What learning costs: a crawl observation, a belief, the value of learning, a page's memory; and the plain estimator.

python benchmarks/bench_estimate.py
"""

import time

import numpy as np

from afresh.estimate import Grid
from afresh.estimate.curiosity import Copy
from afresh.estimate.online import PAGE, Table, beliefs_of, interest_of, new_table, observe_many
from afresh.value.compiled import compiled

SIZES = (1_000, 100_000, 1_000_000)
CRAWLS = 400_000
PLAIN = 2_000


@compiled
def _all_beliefs(table: Table, pages: np.ndarray) -> float:
    total = 0.0
    for k in range(pages.size):
        total += beliefs_of(table, pages[k], 1e6)[0]
    return total


@compiled
def _all_interests(table: Table, pages: np.ndarray) -> float:
    total = 0.0
    for k in range(pages.size):
        total += interest_of(table, pages[k], 2.0, 1.0, 1.5, Copy(0.0, 0.0), True)
    return total


def _evidence(pages: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    elapsed = rng.exponential(1.0, count)
    signals = rng.poisson(0.8 * elapsed).astype(float)
    changed = rng.random(count) < -np.expm1(-(0.3 * elapsed + 0.7 * signals))
    return rng.integers(pages, size=count), elapsed, signals, changed


def main() -> None:
    """Print one line a size, and the ratio to the plain estimator."""
    observe_many(new_table(2, typical_rate=1.0, now=0.0), *_evidence(2, 10))
    cost = 0.0
    print(
        f"{'pages':>10} {'µs an observation':>18} {'of it the sums':>15} {'µs a belief':>12} {'µs an interest':>15} "
        f"{'bytes a page':>13}"
    )
    for pages in SIZES:
        evidence = _evidence(pages, CRAWLS)
        table = new_table(pages, typical_rate=1.0, now=0.0)
        table.pages["heard"] = 1.0
        bare = new_table(pages, typical_rate=1.0, now=0.0, glances=0)
        observe_many(table, *evidence)
        times = []
        for each in (table, bare):
            began = time.process_time()
            observe_many(each, *evidence)
            times.append((time.process_time() - began) / CRAWLS * 1e6)
        _all_beliefs(table, evidence[0][:10])
        began = time.process_time()
        _all_beliefs(table, evidence[0])
        believing = (time.process_time() - began) / CRAWLS * 1e6
        some = evidence[0][: CRAWLS // 10]
        _all_interests(table, some[:10])
        began = time.process_time()
        _all_interests(table, some)
        weighing = (time.process_time() - began) / len(some) * 1e6
        cost = times[0]
        print(
            f"{pages:10,} {times[0]:18.3f} {times[1]:15.3f} {believing:12.3f} {weighing:15.3f} {PAGE.itemsize:13}",
        )
    page, elapsed, signals, changed = _evidence(100, PLAIN)
    grid = Grid(typical_rate=1.0)
    for slot in range(100):
        grid.add(slot, now=0.0)
    began = time.process_time()
    for k in range(PLAIN):
        grid.crawled(int(page[k]), elapsed=float(elapsed[k]), signals=int(signals[k]), changed=bool(changed[k]))
    plain = (time.process_time() - began) / PLAIN * 1e6
    print(f"the plain estimator takes {plain:.0f} µs an observation: {plain / cost:.0f} times as long")


if __name__ == "__main__":
    main()
