"""What learning costs: a crawl observation, what is believed of a page, a page's memory; and the plain estimator.

python benchmarks/bench_estimate.py
"""

import time

import numpy as np

from afresh.estimate import Grid
from afresh.estimate.online import PAGE, Table, beliefs_of, new_table, observe_many
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


def _evidence(pages: int, count: int, *, heard: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    elapsed = rng.exponential(1.0, count)
    signals = rng.poisson(0.8 * heard * elapsed).astype(float)
    changed = rng.random(count) < -np.expm1(-(0.3 * elapsed + 0.7 * signals))
    return rng.integers(pages, size=count), elapsed, signals, changed


def _table(pages: int, *, heard: bool, glances: int = 2) -> Table:
    table = new_table(pages, typical_rate=1.0, now=0.0, glances=glances)
    table.pages["heard"] = float(heard)
    return table


def _measure(pages: int, *, heard: bool) -> tuple[float, float, float]:
    """µs an observation, µs of it without glances at others, µs a belief."""
    evidence = _evidence(pages, CRAWLS, heard=heard)
    table = _table(pages, heard=heard)
    observe_many(table, *evidence)
    times = []
    for each in (table, _table(pages, heard=heard, glances=0)):
        began = time.process_time()
        observe_many(each, *evidence)
        times.append((time.process_time() - began) / CRAWLS * 1e6)
    began = time.process_time()
    _all_beliefs(table, evidence[0])
    return times[0], times[1], (time.process_time() - began) / CRAWLS * 1e6


def main() -> None:
    """Print two lines a size, without signals and with them, and the ratio to the plain estimator."""
    small = _table(2, heard=True)
    observe_many(small, *_evidence(2, 10, heard=True))
    _all_beliefs(small, np.array([0]))
    print(f"{'pages':>10} {'signals':>8} {'µs an observation':>18} {'of it its own':>14} {'µs a belief':>12}")
    cost = 0.0
    for pages in SIZES:
        for heard in (False, True):
            cost, own, believing = _measure(pages, heard=heard)
            print(f"{pages:10,} {'yes' if heard else 'no':>8} {cost:18.3f} {own:14.3f} {believing:12.3f}")
    print(f"a page takes {PAGE.itemsize} bytes")
    page, elapsed, signals, changed = _evidence(100, PLAIN, heard=True)
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
