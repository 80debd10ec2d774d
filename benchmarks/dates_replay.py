"""What dates of last changes and kinds are worth over whole histories, and for pages that are born all the time.

    python benchmarks/dates_replay.py DATA [--visits 5,20] [--born] [SET ...]

DATA is a folder with recorded histories. A replay begins after 20 to 40 % of the time of each, in five repetitions. So
the first crawls find content of some age; it is scored from there on. Pages weigh the same and nothing is heard of
changes. Dates are those of each page's last change: true ones, ones that say "now" on half of the hosts, ones that
never move there, or none. Pages of a history with fewer than eight hosts are shared out to sixteen.

`--born`: seven pages in ten become known at random moments on the way. Printed is also how fresh these were from their
first crawl to their tenth visit. Kinds are those of `cold_start.py` for the sets that it has.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from cold_start import SETS as KNOWN
from cold_start import ota

from afresh.lab.files import choose, read_history, read_names
from afresh.sim.dated import NOW, STUCK, TRUE, dates_of
from afresh.sim.field import close
from afresh.sim.history import History, make_history
from afresh.sim.learned import address_of, replay_learned

SETS = ("firehol_2015_11", "adguard_filters", "gitscrapes", "ota_contrib", "scoop_main", "teletext")
SHARES_BEFORE = (0.2, 0.25, 0.3, 0.35, 0.4)  # of the time, before the first crawl: one for each repetition
BORN = 0.7  # of all pages
YOUNG_VISITS = 10


def read_set(
    data: Path, name: str, rng: np.random.Generator, share: float, born: bool
) -> tuple[History, np.ndarray, np.ndarray]:
    """A history from its later part on, the last change of each page before that, and each page's host."""
    path = data / ("mdn_content.npz" if name == "mdn" else f"histories/{name}.npz")
    recorded = read_history(path)
    first, last = float(recorded.time.min()), float(recorded.time.max())
    start = first + share * (last - first)
    names = read_names(path)
    if name == "ota_contrib":
        names = {str(n): each.removeprefix("http://") for n, each in enumerate(ota(data).urls)}
    whole = choose(recorded, score_from=start, weights=None, addresses=names).history
    born_at = np.full(whole.pages, -np.inf) if whole.births is None else whole.births
    ends = np.full(whole.pages, np.inf) if whole.ends is None else whole.ends
    births = np.maximum(born_at, start)
    if born:
        late = rng.random(whole.pages) < BORN
        births[late] = np.maximum(births, start + 0.8 * rng.random(whole.pages) * (last - start))[late]
    births = np.minimum(births, np.where(np.isinf(ends), births, ends - 1.0))
    before = np.where(np.isinf(born_at), np.nan, born_at)
    for page in range(whole.pages):
        times = whole.times[whole.first[page] : whole.first[page + 1]]
        known = np.searchsorted(times, births[page], side="right")
        before[page] = times[known - 1] if known else before[page]
    before[before > births] = np.nan
    rows = np.repeat(np.arange(whole.pages), np.diff(whole.first))
    history = make_history(
        rows,
        whole.times,
        weight=np.ones(whole.pages),
        start=start,
        end=last,
        names=whole.names,
        ends=ends,
        births=np.where(births <= start, -np.inf, births),
    )
    hosts = [address_of(each)[1] for each in whole.names] or [""] * whole.pages
    numbers = np.unique(hosts, return_inverse=True)[1]
    if numbers.max() < 7:
        numbers = np.arange(whole.pages) % 16
    return history, before, numbers


def young_freshness(history: History, picks: np.ndarray, step: float) -> float:
    """The share of time that copies of pages born on the way were fresh, up to their tenth visit."""
    ticks = np.flatnonzero(picks >= 0)
    pages, moments = picks[ticks], history.start + (ticks + 1) * step
    order = np.lexsort((moments, pages))
    pages, moments = pages[order], moments[order]
    cuts = np.searchsorted(pages, np.arange(history.pages + 1))
    fresh, total = 0.0, 0.0
    assert history.births is not None
    assert history.ends is not None
    for page in np.flatnonzero(history.births > history.start).tolist():
        birth, end = history.births[page], min(history.end, history.ends[page])
        visits = moments[cuts[page] : cuts[page + 1]]
        visits = visits[visits > birth][:YOUNG_VISITS]
        if len(visits) == YOUNG_VISITS:
            end = min(end, visits[-1])
        edges = np.concatenate([[birth], visits[visits < end], [end]])
        times = history.times[history.first[page] : history.first[page + 1]]
        following = np.searchsorted(times, edges[:-1], side="right")
        spoiled = np.where(following < len(times), np.append(times, np.inf)[following], np.inf)
        fresh += float((np.minimum(spoiled, edges[1:]) - edges[:-1]).sum())
        total += end - birth
    return fresh / total if total else float("nan")


def kinds_of(data: Path, name: str, history: History) -> np.ndarray | None:
    """Kinds by the addresses that `cold_start` knows them under; None where it knows none."""
    short = {"ota_contrib": "ota", "teletext": "teletext"}.get(name)
    if short is None:
        return None
    found = KNOWN[short](data)
    known = dict(zip((each.removeprefix("http://") for each in found.urls), found.kinds, strict=True))
    return np.array([known[each] for each in history.names], np.int64)


LIES = {"nothing": None, "true dates": TRUE, "half say now": NOW, "half are stuck": STUCK}


def replayed(history: History, budget: float, lie: int | None, told: tuple, kinds: np.ndarray | None) -> list[float]:
    """How fresh copies were and were said to be, those of young pages, and the CPU time."""
    before, hosts, liar = told
    dates = None if lie is None else dates_of(before, hosts, np.where(liar, lie, TRUE))
    picks = np.full(int((history.end - history.start) * budget) + 1, -1)
    began = time.process_time()
    field, stated = replay_learned(
        history, budget=budget, score_from=history.start, dates=dates, kinds=kinds, picks=picks
    )
    spent = time.process_time() - began
    close(field)
    fresh = float(field.fresh_time.sum() / history.lived(history.start, history.end).sum())
    young = young_freshness(history, picks, 1.0 / budget)
    return [fresh, stated, young, 1e6 * spent / max(int((picks >= 0).sum()), 1)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--visits", default="5,20")
    parser.add_argument("--born", action="store_true")
    asked = parser.parse_args()
    print("points of freshness with nothing known besides, and gained; +-: standard error over five repetitions")
    heads = f"{'fresh':>7}{'':7}{'stated':>7}{'young':>7}{'':6}{'us/crawl':>10}"
    print(f"{'set':16}{'visits':>7}  {'known besides':16}{heads}")
    for name in asked.sets:
        found: dict[tuple[float, str], list[list[float]]] = {}
        for nth, share in enumerate(SHARES_BEFORE):
            rng = np.random.default_rng(nth)
            history, before, hosts = read_set(asked.data, name, rng, share, asked.born)
            told = before, hosts, rng.permutation(hosts.max() + 1)[hosts] % 2 == 0
            kinds = kinds_of(asked.data, name, history)
            for visits in map(float, asked.visits.split(",")):
                budget = history.pages * visits / (history.end - history.start)
                ways: list[tuple[str, int | None, np.ndarray | None]] = [
                    (label, lie, None) for label, lie in LIES.items()
                ]
                if kinds is not None:
                    ways += [("kinds", None, kinds), ("kinds and dates", TRUE, kinds)]
                for label, lie, own in ways:
                    found.setdefault((visits, label), []).append(replayed(history, budget, lie, told, own))
        for (visits, label), rows in found.items():
            now, without = np.array(rows), np.array(found[visits, "nothing"])
            shown = []
            for column in (0, 2):
                gains = 100 * (now[:, column] - without[:, column])
                error = gains.std(ddof=1) / np.sqrt(len(gains))
                shown.append(
                    f"{100 * now[:, column].mean():7.2f}       "
                    if label == "nothing"
                    else f"{gains.mean():+7.2f}+-{error:4.2f} "
                )
            print(
                f"{name:16}{visits:7g}  {label:16}{shown[0]}{100 * now[:, 1].mean():6.2f}{shown[1]}"
                f"{now[:, 3].mean():8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
