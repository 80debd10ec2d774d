"""How fast the scheduler decides: against an argmax over all pages, against a bare heap, and as pages become many.

Every line is a ratio, or holds figures that were measured side by side in one run. `--huge` adds 10^8 pages (7 GiB).
"""

import io
import sys
import time
from typing import Any

import numpy as np
from numba import njit

from afresh.schedule import Scheduler
from afresh.schedule.events import signal
from afresh.schedule.memory import control_at
from afresh.schedule.turn import crawl, take
from afresh.value import crawl_value


@njit(nogil=True)
def decide(core: int, tick: float, count: int, heard: Any) -> float:
    """So many decisions, each after one signal if there are any."""
    step = 1.0 / control_at(core).budget
    for i in range(count):
        if heard.size > 0:
            signal(core, heard[i % heard.size], tick, 1)
        slot = take(core, tick)
        if slot >= 0:
            crawl(core, slot, tick)
        tick += step
    return tick


@njit(nogil=True)
def heap_turns(key: Any, who: Any, count: int, seed: int) -> float:
    """The yardstick: a binary heap by due time, one pop and one push a decision, and no value function at all."""
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator
    size = key.size
    for _ in range(count):
        due, slot = key[0] + np.random.exponential(1.0), who[0]  # noqa: NPY002 - the compiled generator
        # Pop: the last one sinks from the root; then push: the same page rises from the end.
        last, mover = key[size - 1], who[size - 1]
        i = 0
        while True:
            j = 2 * i + 1
            if j >= size - 1:
                break
            if j + 1 < size - 1 and key[j + 1] < key[j]:
                j += 1
            if key[j] >= last:
                break
            key[i], who[i] = key[j], who[j]
            i = j
        key[i], who[i] = last, mover
        i = size - 1
        while i > 0:
            j = (i - 1) >> 1
            if key[j] <= due:
                break
            key[i], who[i] = key[j], who[j]
            i = j
        key[i], who[i] = due, slot
    return float(key[0])


def pages(count: int, budget: float, noisy: bool) -> dict[str, Any]:
    """Pages of which a third, if `noisy`, send signals: together about one a decision."""
    rng = np.random.default_rng(1)
    span = count / budget
    change = rng.uniform(0.1, 3.0, count) / span
    given: dict[str, Any] = {"request_rate": rng.uniform(0.05, 1.0, count), "change_rate": change}
    if noisy:
        third = np.arange(count) % 3 == 0
        recall = np.where(third, rng.uniform(0.2, 0.95, count), 0.0)
        given["recall"] = recall
        given["false_rate"] = np.where(third, np.maximum(3.0 / span - recall * change, 0.3 / span), 0.0)
    return given


def machine(count: int, *, noisy: bool) -> tuple[Scheduler, float]:
    """A scheduler whose copies are of all ages, and how long adding the pages took."""
    budget = count / 100.0
    given = pages(count, budget, noisy)
    age = np.random.default_rng(2).uniform(0.0, 100.0, count)
    began = time.perf_counter()
    scheduler = Scheduler(budget=budget)
    scheduler.add_many(**given, now=0.0, age=age)
    return scheduler, time.perf_counter() - began


def rate(scheduler: Scheduler, decisions: int, *, noisy: bool, warm: int) -> float:
    """Seconds a decision, the best of three stretches."""
    count = len(scheduler)
    heard = np.random.default_rng(3).integers(0, (count + 2) // 3, decisions) * 3 if noisy else np.zeros(0, np.int64)
    tick = decide(scheduler.state.core, 1 / scheduler.budget, warm, heard)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        tick = decide(scheduler.state.core, tick, decisions, heard)
        best = min(best, (time.perf_counter() - began) / decisions)
    return best


def heap_rate(count: int, decisions: int) -> float:
    """Seconds a turn of the bare heap."""
    rng = np.random.default_rng(4)
    key = np.sort(rng.exponential(1.0, count))
    for level in range(count.bit_length()):  # a sorted array is a heap, but its paths all lie in the cache
        rng.shuffle(key[2**level - 1 : 2 ** (level + 1) - 1])
    who = np.arange(count, dtype=np.int64)
    heap_turns(key, who, min(decisions, 2 * count), 1)
    best = np.inf
    for seed in range(3):
        began = time.perf_counter()
        heap_turns(key, who, decisions, seed)
        best = min(best, (time.perf_counter() - began) / decisions)
    return best


def argmax_rate(count: int, turns: int) -> float:
    """Seconds a decision of the algorithm as printed: numpy's argmax over the values of all pages."""
    given = pages(count, count / 100.0, False)
    current = -np.random.default_rng(2).uniform(0.0, 100.0, count)
    now = 0.0
    began = time.perf_counter()
    for _ in range(turns):
        now += 100.0 / count
        current[np.argmax(crawl_value(now - current, **given))] = now
    return (time.perf_counter() - began) / turns


def main() -> None:
    """Print everything."""
    decisions = 300_000
    rate(machine(1000, noisy=True)[0], 1000, noisy=True, warm=10)  # compile
    found: dict[tuple[int, bool], float] = {}
    for count in (10**5,) if "--quick" in sys.argv else (10**5, 10**6, 10**7):
        heap = heap_rate(count, decisions)
        for noisy in (False, True):
            scheduler, took = machine(count, noisy=noisy)
            cost = found[count, noisy] = rate(scheduler, decisions, noisy=noisy, warm=min(count, 400_000))
            kind = "a third noisy, one signal a decision" if noisy else "no signals"
            print(
                f"{count:>9} pages, {kind:<37}: {cost * 1e6:.2f} us a decision, {1 / cost:,.0f}/s, "
                f"{cost / heap:.2f} x heap ({heap * 1e6:.2f} us), added in {took:.1f} s, "
                f"{scheduler.nbytes / count:.0f} bytes a page",
                flush=True,
            )
        if count < 10**7:
            plain = argmax_rate(count, 2_000_000 // count)
            print(f"{count:>9} pages: {plain / found[count, False]:,.0f} x the decisions of an argmax", flush=True)
    for noisy in (False, True) if (10**7, True) in found else ():
        print(f"10^7 against 10^5, noisy={noisy}: {found[10**7, noisy] / found[10**5, noisy]:.2f} x a decision")
    began = time.perf_counter()
    file = io.BytesIO()
    scheduler.save(file)
    saved = time.perf_counter() - began
    file.seek(0)
    began = time.perf_counter()
    Scheduler.load(file)
    size = file.getbuffer().nbytes
    print(f"save {size / saved / 1e9:.2f} GB/s, load {size / (time.perf_counter() - began) / 1e9:.2f} GB/s, to memory")
    if "--huge" in sys.argv:
        scheduler, took = machine(10**8, noisy=False)
        cost = rate(scheduler, decisions, noisy=False, warm=400_000)
        print(
            f"10^8 pages: {cost * 1e6:.2f} us, {cost / found[10**5, False]:.2f} x that at 10^5, "
            f"{scheduler.nbytes / 2**30:.2f} GiB, added in {took:.0f} s"
        )


if __name__ == "__main__":
    main()
