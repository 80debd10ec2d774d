"""How fast the scheduler decides: against an argmax over all pages, against a bare heap, and as pages become many.

Every line is a ratio, or holds figures that were measured side by side in one run. Seconds are those of the one core
that is used, so that others on the machine count little; only the disk is measured by the clock. `--huge` adds 10^8
pages (7 GiB).
"""

import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba import njit

from afresh.schedule import Scheduler
from afresh.schedule.wheel.events import signal
from afresh.schedule.wheel.memory import control_at
from afresh.schedule.wheel.turn import crawl, take
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
def rise(key: Any, who: Any, where: Any, i: int, due: float, slot: int) -> None:
    """Let a page rise from a place in the heap to where it belongs."""
    while i > 0:
        j = (i - 1) >> 1
        if key[j] <= due:
            break
        key[i], who[i] = key[j], who[j]
        if where is not None:
            where[who[i]] = i
        i = j
    key[i], who[i] = due, slot
    if where is not None:
        where[slot] = i


@njit(nogil=True)
def heap_turns(key: Any, who: Any, gaps: Any, count: int, where: Any, heard: Any) -> float:
    """The yardstick: a binary heap by due time, one pop and one push a decision, and no value function at all.

    Where it hears signals, one page more moves forward at each decision, by as much as a gap, and `where` says at which
    place each page is. Without (both None) that is compiled away.
    """
    size = key.size
    for turn in range(count):
        gap = gaps[turn % gaps.size]
        if heard is not None:
            slot = heard[turn % heard.size]
            rise(key, who, where, where[slot], max(key[where[slot]] - gap, key[0]), slot)
        due, slot = key[0] + gap, who[0]
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
            if where is not None:
                where[who[i]] = i
            i = j
        key[i], who[i] = last, mover
        if where is not None:
            where[mover] = i
        rise(key, who, where, size - 1, due, slot)
    return float(key[0])


def pages(count: int, budget: float, noisy: bool, uncertain: bool = False) -> dict[str, Any]:
    """Pages of which a third, if `noisy`, send signals: together about one a decision.

    `uncertain`: their rates are known as surely as one crawl to a hundred would tell.
    """
    rng = np.random.default_rng(1)
    span = count / budget
    change = rng.uniform(0.1, 3.0, count) / span
    given: dict[str, Any] = {"request_rate": rng.uniform(0.05, 1.0, count), "change_rate": change}
    if uncertain:
        given["shape"] = np.exp(rng.uniform(np.log(0.3), np.log(50.0), count))
    if noisy:
        third = np.arange(count) % 3 == 0
        recall = np.where(third, rng.uniform(0.2, 0.95, count), 0.0)
        given["recall"] = recall
        given["false_rate"] = np.where(third, np.maximum(3.0 / span - recall * change, 0.3 / span), 0.0)
    return given


def machine(count: int, *, noisy: bool, uncertain: bool = False) -> tuple[Scheduler, float]:
    """A scheduler whose copies are of all ages, and how long adding the pages took."""
    budget = count / 100.0
    given = pages(count, budget, noisy, uncertain)
    age = np.random.default_rng(2).uniform(0.0, 100.0, count)
    began = time.process_time()
    scheduler = Scheduler(budget=budget)
    scheduler.add_many(**given, now=0.0, age=age)
    return scheduler, time.process_time() - began


def rate(scheduler: Scheduler, decisions: int, *, noisy: bool, warm: int) -> float:
    """Seconds a decision, the best of five stretches, each with signals of its own, after `warm` decisions."""
    rng, third = np.random.default_rng(3), (len(scheduler) + 2) // 3
    tick, best = 1 / scheduler.budget, np.inf
    for count in (warm, *[decisions] * 5):
        heard = 3 * rng.integers(0, third, count) if noisy else np.zeros(0, np.int64)
        began = time.process_time()
        tick = decide(scheduler.state.core, tick, count, heard)
        if count == decisions:
            best = min(best, (time.process_time() - began) / decisions)
    return best


def heap_rate(count: int, decisions: int, *, noisy: bool = False) -> float:
    """Seconds a turn of the bare heap: float64 keys and int32 slots, after every page has been through it twice.

    A heap that was just built is faster, for its paths still lie together in the cache. `noisy`: it hears a signal of a
    third of the pages at every turn, and so has to know where each page is.
    """
    rng = np.random.default_rng(4)
    key = np.sort(rng.exponential(1.0, count))
    who = rng.permutation(count).astype(np.int32)
    where = np.argsort(who).astype(np.int32)
    gaps = rng.exponential(1.0, 1 << 16)
    best = np.inf
    for turns in (2 * count, *[decisions] * 5):
        heard = 3 * rng.integers(0, (count + 2) // 3, turns) if noisy else None
        began = time.process_time()
        heap_turns(key, who, gaps, turns, where if noisy else None, heard)
        if turns == decisions:
            best = min(best, (time.process_time() - began) / decisions)
    return best


def argmax_rate(count: int, turns: int) -> float:
    """Seconds a decision of the algorithm as printed: numpy's argmax over the values of all pages."""
    given = pages(count, count / 100.0, False)
    current = -np.random.default_rng(2).uniform(0.0, 100.0, count)
    now = 0.0
    began = time.process_time()
    for _ in range(turns):
        now += 100.0 / count
        current[np.argmax(crawl_value(now - current, **given))] = now
    return (time.process_time() - began) / turns


def disk(scheduler: Scheduler) -> None:
    """Compare `save` and `load` with numpy writing and reading as many bytes as one array, on the same disk."""
    with TemporaryDirectory() as folder:
        ours, other = f"{folder}/scheduler", f"{folder}/array"
        scheduler.save(ours)
        size = Path(ours).stat().st_size
        array = np.frombuffer(np.random.default_rng(5).bytes(size), np.uint8)
        array.tofile(other)
        took = dict.fromkeys(("save", "tofile", "load", "fromfile"), np.inf)
        for _ in range(3):
            for name, call in (
                ("save", lambda: scheduler.save(ours)),
                ("tofile", lambda: array.tofile(other)),
                ("load", lambda: Scheduler.load(ours)),
                ("fromfile", lambda: np.fromfile(other, np.uint8)),
            ):
                # Each writes a new file: to write over one that is on its way to the disk has to wait for that.
                Path({"save": ours, "tofile": other}.get(name, f"{folder}/none")).unlink(missing_ok=True)
                began = time.perf_counter()
                call()
                took[name] = min(took[name], time.perf_counter() - began)
    for name, plain in (("save", "tofile"), ("load", "fromfile")):
        print(
            f"{name} of {size / 1e9:.2f} GB: {size / took[name] / 1e9:.2f} GB/s, {took[name] / took[plain]:.2f} x the "
            f"time of {plain}",
            flush=True,
        )


def huge(small: float, decisions: int) -> None:
    """10^8 pages, added in parts so that what they are made from takes little room; the budget grows with them.

    The parts are a tenth of what is there, so that the price never jumps: after a jump thresholds are set anew for a
    quarter of pages/budget, which would be measured with the rest.
    """
    count, part = 10**8, 10**7
    scheduler = Scheduler(budget=part / 100.0)
    scheduler.reserve(count)
    began = time.process_time()
    while len(scheduler) < count:
        given = pages(part, part / 100.0, False)
        age = np.random.default_rng(len(scheduler)).uniform(0.0, 100.0, part)
        scheduler.add_many(**given, now=0.0, age=age)
        scheduler.budget = len(scheduler) / 100.0
        part = min(len(scheduler) // 10, count - len(scheduler))
    print(f"10^8 pages: added in {time.process_time() - began:.0f} s", flush=True)
    cost = rate(scheduler, decisions, noisy=False, warm=400_000)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"10^8 pages: {cost * 1e6:.2f} us, {cost / small:.2f} x that at 10^5, {scheduler.nbytes / 2**30:.2f} GiB, "
        f"the whole process at most {most:.2f} GiB"
    )


def main() -> None:
    """Print everything."""
    decisions = 300_000
    rate(machine(1000, noisy=True)[0], 1000, noisy=True, warm=10)  # compile
    for noisy in (False, True):
        heap_rate(1000, 1000, noisy=noisy)
    found: dict[tuple[int, bool], float] = {}
    for count in (10**5,) if "--quick" in sys.argv else (10**5, 10**6, 10**7):
        heap = heap_rate(count, decisions)
        hearing = heap_rate(count, decisions, noisy=True)
        for noisy in (False, True):
            scheduler, took = machine(count, noisy=noisy)
            cost = found[count, noisy] = rate(scheduler, decisions, noisy=noisy, warm=min(4 * count, 4_000_000))
            kind = "a third noisy, one signal a decision" if noisy else "no signals"
            print(
                f"{count:>9} pages, {kind:<37}: {cost * 1e6:.2f} us a decision, {1 / cost:,.0f}/s, "
                f"{cost / heap:.2f} x heap ({heap * 1e6:.2f} us), "
                + (f"{cost / hearing:.2f} x one that hears them ({hearing * 1e6:.2f} us), " if noisy else "")
                + f"added in {took:.1f} s, "
                f"{scheduler.nbytes / count:.0f} bytes a page",
                flush=True,
            )
            scheduler, _ = machine(count, noisy=noisy, uncertain=True)
            unsure = rate(scheduler, decisions, noisy=noisy, warm=min(4 * count, 4_000_000))
            print(f"{'':>9} rates not known exactly: {unsure * 1e6:.2f} us, {unsure / cost:.2f} x that", flush=True)
        if count < 10**7:
            plain = argmax_rate(count, 2_000_000 // count)
            print(f"{count:>9} pages: {plain / found[count, False]:,.0f} x the decisions of an argmax", flush=True)
    for noisy in (False, True) if (10**7, True) in found else ():
        print(f"10^7 against 10^5, noisy={noisy}: {found[10**7, noisy] / found[10**5, noisy]:.2f} x a decision")
    disk(scheduler)
    if "--huge" in sys.argv:
        del scheduler
        huge(found[10**5, False], decisions)


if __name__ == "__main__":
    main()
