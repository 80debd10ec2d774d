"""What each part of learning is worth: one table, every part left out in turn, over histories and the papers' world.

    python benchmarks/bench_parts.py HISTORY.npz … [--visits 5,20]

Points of freshness that are lost (negative: gained) without a part: the value over all rates (the mean rate is taken
for the rate), fading (nothing is ever forgotten), the sweep, siblings (pages tell nothing about each other), and the
popularity of groups (a page that nobody asked for yet is worth as much as any other). Without a history only Figure 4's
world and requests are measured. Equal weights, no signals, the first quarter unscored; names beside a history
(NAME.items.txt.gz, NAME.pages.txt.gz) are its addresses.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from afresh.cli.replay import scored_from
from afresh.errors import AfreshError
from afresh.estimate import Learner
from afresh.lab.files import choose, read_history, read_names
from afresh.sim.field import close
from afresh.sim.history import History, draw_history
from afresh.sim.learned import replay_learned
from afresh.sim.replay import scored
from afresh.value import optimum

WITHOUT: Mapping[str, Mapping[str, float | bool]] = {
    "all rates": {"certain": True},
    "fading": {"memory": math.inf, "crawl_memory": 1.0},
    "sweep": {"sweep": 0.0},
}


def fresh(history: History, budget: float, begin: float, **options: float | bool) -> float:
    """Share of time that copies were fresh."""
    field, stated = replay_learned(history, budget=budget, score_from=begin, **options)  # type: ignore[arg-type]
    close(field)
    return scored(history, "afresh", field, stated).weighted


def row(name: str, history: History, visits: float, begin: float) -> None:
    """One line of the table."""
    budget = history.pages * visits / (history.end - begin)
    whole = fresh(history, budget, begin)
    lost = {part: whole - fresh(history, budget, begin, **options) for part, options in WITHOUT.items()}
    if history.names:
        lost["siblings"] = whole - fresh(replace(history, names=()), budget, begin)
    cells = " ".join(f"{part} {100 * points:+.2f}" for part, points in lost.items())
    print(f"{name[:24]:<24} {visits:>4g} visits: fresh {whole:.4f}, points lost without: {cells}", flush=True)


def real(path: Path, visits: list[float]) -> None:
    """A recorded history."""
    recorded = read_history(path)
    begin = scored_from(recorded, 0.25, None)
    try:
        addresses = read_names(path)
    except AfreshError:
        addresses = None
    chosen = choose(recorded, score_from=begin, weights=None, addresses=addresses, apart=addresses is None)
    for each in visits:
        row(path.name.split(".")[0], chosen.history, each, begin)


def papers(visits: list[float]) -> None:
    """Figure 4's world without signals: rates and weights U(0, 1), 1,000 pages, 100 visits a second."""
    for each in visits:
        end = each * 10.0 / 0.75
        rng = np.random.default_rng(1)
        history = draw_history(rng, rng.uniform(0, 1, 1000), weight=rng.uniform(0, 1, 1000), start=0.0, end=end)
        row("the papers' world", history, each, 0.25 * end)


def served(rates: np.ndarray, wanted: np.ndarray, change: np.ndarray) -> float:
    """Share of requests that find a fresh copy at these constant rates."""
    found = np.where(rates > 0, rates * -np.expm1(-change / np.maximum(rates, 1e-300)) / change, 0.0)
    return float(wanted @ found / wanted.sum())


def popularity() -> None:
    """Pages of 40 groups that are wanted more or less; rates are known, requests are learned, by groups and without."""
    rng = np.random.default_rng(2)
    pages, groups, day = 4000, 40, 86400.0
    group = np.arange(pages) % groups
    wanted = np.exp(rng.normal(0, 1.5, groups))[group] * np.exp(rng.normal(0, 1.0, pages)) / day
    change = np.exp(rng.normal(0, 1.0, pages)) / day
    for requests in (0.1, 1.0, 10.0):
        seconds = requests / wanted.mean()
        seen = rng.poisson(wanted * seconds)
        shares = []
        for kin in (True, False):
            learner = Learner(typical_rate=1 / day)
            for page in range(pages):
                learner.add(page, now=0.0, kin=("host", f"host/{group[page]}/*") if kin else ())
            for page in np.flatnonzero(seen):
                learner.requested(int(page), float(seen[page]), seconds)
            believed = np.array([learner.beliefs(page, seconds).request_rate for page in range(pages)])
            rates = optimum(budget=pages / day, request_rate=believed, change_rate=change).rates
            shares.append(served(rates, wanted, change))
        best = optimum(budget=pages / day, request_rate=wanted, change_rate=change).rates
        known = served(best, wanted, change)
        print(
            f"after {requests:g} requests a page: served fresh with groups {shares[0]:.4f}, without {shares[1]:.4f}, "
            f"knowing all request rates {known:.4f}: {100 * (shares[0] - shares[1]):+.2f} points",
            flush=True,
        )


def main() -> None:
    """Print everything."""
    words = sys.argv[1:]
    visits = [5.0, 20.0]
    if "--visits" in words:
        at = words.index("--visits")
        visits = [float(word) for word in words[at + 1].split(",")]
        del words[at : at + 2]
    popularity()
    papers(visits)
    for word in words:
        real(Path(word), visits)


if __name__ == "__main__":
    main()
