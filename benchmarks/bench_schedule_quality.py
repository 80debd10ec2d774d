"""How fresh the fast scheduler keeps copies: against the exact argmax at every tick, and against the ceiling.

The settings of Figures 2 (no signals), 3 (no false signals) and 4 (noisy signals): 100 crawls a second, request and
change rates U(0, 1), copies fresh at the start. Fast and exact mode are compared from t = 1000 to 3000, fast mode and
the ceiling from 1000 to 9000, in four worlds each. Both modes hear the same signals, and freshness is integrated rather
than sampled, so that differences are those of the schedules. Ends with status 1 if a bound does not hold. `--quick`
leaves the 10,000 pages out.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np

from afresh.schedule import Scheduler

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from world import World, figure

POLICY = {2: "greedy", 3: "greedy-cis", 4: "greedy-ncis"}
BUDGET, WORLDS = 100.0, range(1, 5)
SETTLED, COMPARED, END = 1000.0, 3000.0, 9000.0
MOST_APART, LEAST_SHARE = 0.001, 0.995


def apart_and_share(number: int, count: int, seed: int) -> tuple[float, float, float]:
    """(freshness in fast mode, minus that in exact mode, share of the ceiling in fast mode over the longer time)."""
    found = []
    for exact in (True, False):
        machine = Scheduler(budget=BUDGET, policy=POLICY[number], exact=exact)
        world = World(machine, figure(number, count, seed), seed=seed)
        world.run(SETTLED)
        found.append(world.run(COMPARED))
    long = found[1] * (COMPARED - SETTLED) + world.run(END) * (END - COMPARED)
    return found[1], found[1] - found[0], long / (END - SETTLED) / world.ceiling()


def row(number: int, count: int) -> tuple[float, float]:
    """Print one line; (the furthest that fast and exact mode are apart, mean share of the ceiling)."""
    began = time.process_time()
    fast, apart, share = np.transpose([apart_and_share(number, count, seed) for seed in WORLDS])
    error = share.std(ddof=1) / math.sqrt(len(WORLDS))
    print(
        f"Figure {number}, {count:>6} pages: fast {fast.mean():.5f}, against exact {apart.mean():+.5f} (in a single "
        f"world at most {abs(apart).max():.5f}), of the ceiling {share.mean():.5f} +- {error:.5f}  "
        f"[{time.process_time() - began:.0f} s]",
        flush=True,
    )
    return float(abs(apart).max()), float(share.mean())


def main() -> None:
    """Print everything; fail if a bound does not hold."""
    good = True
    for number in POLICY:
        gaps = []
        for count in (1000,) if "--quick" in sys.argv else (1000, 10_000):
            apart, share = row(number, count)
            good = good and apart <= MOST_APART and share >= LEAST_SHARE
            gaps.append(1.0 - share)
        if len(gaps) > 1:
            print(f"Figure {number}: the gap to the ceiling goes from {gaps[0]:.5f} to {gaps[1]:.5f}")
            good = good and gaps[1] < gaps[0]
    print("all bounds hold" if good else "A BOUND DOES NOT HOLD")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
