"""A tree of very many files, edited at very different rates: whose copies are fresh?

The tree, the edits and the looks are real (`afresh.sources.files.look`); the clock is not: a budget of looks a second
is spent in virtual time, as fast as this machine can. Ours is the engine with notices of which a share gets lost.
Beside it are uniform looks at the same budget, and a mirror that relies on the same notices alone.

    python benchmarks/bench_files.py --files 100000 --budget 500 --seconds 1500
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from afresh.engine import Arrivals, Engine
from afresh.engine.ahead import compile_ahead
from afresh.estimate import Learner
from afresh.estimate.base import typical_rate
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.sources.files import Limits, key_of
from afresh.sources.files.look import look
from afresh.types import Answer, Fetched, Order, Outcome, Signal, Validators, Verdict

START = 1_000_000.0
FOLDER_OF = 1000  # files


def made(root: Path, count: int) -> list[bytes]:
    """The tree."""
    paths = []
    for nth in range(count):
        folder = root / f"{nth // FOLDER_OF:03d}"
        if nth % FOLDER_OF == 0:
            folder.mkdir()
        path = os.fsencode(folder / f"{nth:06d}.txt")
        with open(path, "wb") as file:  # noqa: PTH123 - a hundred thousand times
            file.write(b"0")
        paths.append(path)
    return paths


class Edits:
    """When each file is edited; the same for all who are compared."""

    def __init__(self, count: int, seconds: float, slowest: float, fastest: float, lost: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rate = np.exp(rng.uniform(np.log(slowest), np.log(fastest), count))
        number = rng.poisson(self.rate * seconds)
        self.file = np.repeat(np.arange(count), number)
        when = rng.uniform(0.0, seconds, number.sum())
        order = np.argsort(when)
        self.when, self.file = when[order], self.file[order]
        self.told = rng.random(len(when)) >= lost


def uniform(edits: Edits, count: int, budget: float, seconds: float, begin: float) -> float:
    """Share of fresh copies, averaged over time, if all are looked at in turn."""
    period = count / budget
    stale = 0.0
    turn = np.arange(count) / budget  # when each is looked at first
    first_since = np.full(count, np.inf)  # the first edit since it was looked at
    last_turn = np.full(count, -1.0)
    for when, file in zip(edits.when, edits.file, strict=True):
        nth = np.floor((when - turn[file]) / period)
        if nth != last_turn[file]:
            last_turn[file], first_since[file] = nth, when
            seen = turn[file] + (nth + 1) * period
            stale += max(min(seen, seconds) - max(when, begin), 0.0)
    return 1.0 - stale / (count * (seconds - begin))


def told_alone(edits: Edits, count: int, seconds: float, begin: float) -> float:
    """The same if a file is read when a notice of it comes, at once, and never otherwise."""
    since = np.full(count, np.inf)
    stale = 0.0
    for when, file, told in zip(edits.when, edits.file, edits.told, strict=True):
        if told:
            if since[file] < np.inf:
                stale += max(when - max(since[file], begin), 0.0)
            since[file] = np.inf
        else:
            since[file] = min(since[file], when)
    left = since[since < np.inf]
    stale += float(np.maximum(seconds - np.maximum(left, begin), 0.0).sum())
    return 1.0 - stale / (count * (seconds - begin))


def ours(paths: list[bytes], edits: Edits, budget: float, seconds: float, begin: float, *, notices: bool) -> float:
    """The engine, on the tree."""
    count = len(paths)
    engine = Engine(
        scheduler=Scheduler.live(budget=budget, sweep=0.02),
        estimator=Learner(typical_rate=typical_rate(budget, count)),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=0.0)),
    )
    keys = [key_of(path) or "" for path in paths]
    number = {key: nth for nth, key in enumerate(keys)}
    # All copies were made just before: how a tree is first read is the same for everybody.
    engine.add_many(Arrivals(urls=keys, hosts=["file:/"] * count, current=[START - 1.0] * count), START)
    for _ in engine.settle(START):
        pass
    stamps = [look(path, folder=False, known="", limits=Limits(), wanted=bool).stamp.rstrip("~") for path in paths]
    stale_since = np.full(count, np.inf)
    stale, step, at, crawls = 0.0, 1.0 / budget, 0, 0
    now = 0.0
    while now < seconds:
        heard = []
        while at < len(edits.when) and edits.when[at] <= now:
            file = edits.file[at]
            with open(paths[file], "ab") as opened:  # noqa: PTH123
                opened.write(b"+")
            stale_since[file] = min(stale_since[file], edits.when[at])
            if notices and edits.told[at]:
                heard.append(Signal(keys[file], START + now, "notices"))
            at += 1
        if heard:
            engine.observe_many(heard, START + now)
        order = engine.next(START + now)
        if isinstance(order, Order):
            crawls += 1
            nth = number[order.url]
            seen = look(paths[nth], folder=False, known=stamps[nth], limits=Limits(), wanted=bool)
            changed = seen.body is not None and seen.stamp.rstrip("~") != stamps[nth]
            if changed:
                stamps[nth] = seen.stamp.rstrip("~")
                stale += max(now - max(stale_since[nth], begin), 0.0)
                stale_since[nth] = np.inf
            answer = Answer.NEW if changed else Answer.SAME
            fetched = Fetched(order.url, START + now, 0.0, answer=answer)
            outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
            engine.finish(order, fetched, Verdict(outcome, validators=Validators(fingerprint=1)), START + now)
        now += step
    left = stale_since[stale_since < np.inf]
    stale += float(np.maximum(seconds - np.maximum(left, begin), 0.0).sum())
    print(f"  {crawls:,} looks")
    return 1.0 - stale / (count * (seconds - begin))


def main() -> None:
    """Build the tree, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--budget", type=float, default=500.0, help="looks a second")
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--slowest", type=float, default=1e-6, help="edits a second of the quietest file")
    parser.add_argument("--fastest", type=float, default=1e-2)
    parser.add_argument("--lost", type=float, default=0.2, help="share of the notices that get lost")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = options.seconds / 3
    edits = Edits(options.files, options.seconds, options.slowest, options.fastest, options.lost, options.seed)
    print(
        f"{options.files:,} files, {len(edits.when) / options.seconds:.0f} edits and {options.budget:g} looks a second,"
    )
    print(
        f"{100 * options.lost:g} % of the notices lost; "
        f"the last {options.seconds - begin:.0f} of {options.seconds:g} s count"
    )
    compile_ahead()
    for notices in (True, False):
        root = Path(tempfile.mkdtemp(prefix="afresh-tree-"))
        try:
            began, cpu = time.monotonic(), time.process_time()
            paths = made(root, options.files)
            share = ours(paths, edits, options.budget, options.seconds, begin, notices=notices)
        finally:
            shutil.rmtree(root)
        took = f"{time.process_time() - cpu:.0f} s of CPU, {time.monotonic() - began:.0f} by the clock"
        print(f"ours {'with' if notices else 'without'} notices: {100 * share:.2f} % fresh ({took})")
    print(f"uniform: {100 * uniform(edits, options.files, options.budget, options.seconds, begin):.2f} %")
    print(f"notices alone: {100 * told_alone(edits, options.files, options.seconds, begin):.2f} %")


if __name__ == "__main__":
    main()
