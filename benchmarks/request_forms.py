"""Forecasts of how often a new page is asked for: two fading counters, or a rise, a plateau and a decay?

    python benchmarks/request_forms.py DATA

DATA is a folder with `requests/hn_frontpage.npz`: the points of stories, every half hour. Differences are requests.
Each story is watched from its first snapshot on. What is forecast is how many requests come in the next half hour and
in the next two, at the rate that the estimator believes in after each look but the first. Printed: the mean absolute
error as a share of all requests, the root mean square error, the log likelihood (Poisson, tempered by the spread of
counts), and microseconds a look (learning and belief, called one by one).
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from afresh.estimate import Learner
from afresh.estimate.courses import JUDGED, SCORE, SPREAD
from afresh.estimate.requests import Memory

HOUR = 3600.0
MOST = 32  # snapshots of a story


class Watched(NamedTuple):
    """Stories in rows: the seconds from the first look to each, and how many requests came since the look before."""

    at: np.ndarray
    counts: np.ndarray
    known: np.ndarray


def stories(data: Path) -> tuple[Watched, np.ndarray]:
    """All stories, the earliest first, and when each was first seen."""
    with np.load(data / "requests/hn_frontpage.npz") as file:
        ts, story, points = file["ts"].astype(np.int64), file["story"], file["points"].astype(np.float64)
    order = np.lexsort((ts, story))
    ts, story, points = ts[order], story[order], points[order]
    starts = np.flatnonzero(np.diff(story, prepend=-1))
    ends = np.append(starts[1:], len(story))
    long = ends - starts >= 6
    starts, ends = starts[long], ends[long]
    by_time = np.argsort(ts[starts], kind="stable")
    starts, ends = starts[by_time], ends[by_time]
    at, counts = np.zeros((len(starts), MOST)), np.zeros((len(starts), MOST))
    known = np.zeros((len(starts), MOST), bool)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        end = min(end, start + MOST)
        many = end - start
        at[row, :many] = ts[start:end] - ts[start]
        counts[row, 1:many] = np.maximum(np.diff(points[start:end]), 0)
        known[row, :many] = True
    return Watched(at, counts, known), ts[starts].astype(np.float64)


def learned(seen: Watched, births: np.ndarray, memory: Memory, judged: bool) -> tuple[np.ndarray, np.ndarray]:
    """Requests a second that the estimator expects of each story after each look, and what it kept of courses.

    Stories come as they came: all looks in the order of time. Unless courses are judged, they are never used.
    """
    learner = Learner(typical_rate=1 / 86400, requests=memory)
    kept = learner.asking.courses
    said = np.zeros_like(seen.at)
    rows, looks = np.nonzero(seen.known)
    moments = births[rows] + seen.at[rows, looks]
    for nth in np.argsort(moments, kind="stable").tolist():
        row, look, now = int(rows[nth]), int(looks[nth]), float(moments[nth])
        if not look:
            learner.add(row, now=now, kin=("h", "h/*"))
        elif seen.counts[row, look]:
            learner.requested(row, float(seen.counts[row, look]), now)
        said[row, look] = learner.beliefs(row, now).request_rate
        if not judged:
            kept[SCORE] = 0.0
    return said, kept


def scored(name: str, said: np.ndarray, came: np.ndarray, took: float) -> None:
    """Print how good forecasts were."""
    error = said - came
    said = np.maximum(said, 1e-3)
    likely = (came * np.log(said) - said - came * np.log(np.maximum(came, 1e-9)) + came) / SPREAD
    print(
        f"{name:38}{np.abs(error).sum() / came.sum():9.3f}{np.sqrt((error**2).mean()):9.2f}"
        f"{likely.mean():9.3f}{1e6 * took / said.size:9.2f}",
        flush=True,
    )


def main() -> None:
    """Print a table."""
    seen, births = stories(Path(sys.argv[1]))
    forecasts = {}
    for fast in (12, 3):
        for judged in (False, True):
            began = time.process_time()
            said, kept = learned(seen, births, Memory(fast=fast * HOUR), judged)
            name = f"{'courses, ' if judged else 'counts alone, '}{fast} h beside 30 d"
            forecasts[name] = said, time.process_time() - began
            if judged:
                print(f"{name}: ahead by {kept[SCORE]:.0f} nats after {kept[JUDGED]:,.0f} judged requests")
    print(f"{len(seen.at):,} stories\n{'forecast':38}{'error':>9}{'rmse':>9}{'log lik.':>9}{'µs':>9}")
    for ahead in (1, 4):
        came = np.add.reduce([np.roll(seen.counts, -step, axis=1) for step in range(1, ahead + 1)])
        whole = np.roll(seen.known, -ahead, axis=1)
        whole[:, -ahead:] = False
        whole[:, 0] = False  # nothing was counted yet
        span = np.roll(seen.at, -ahead, axis=1) - seen.at
        whole &= seen.known & (span < 1.3 * ahead * HOUR / 2) & (span > 0.7 * ahead * HOUR / 2)
        for name, (said, took) in forecasts.items():
            scored(f"{name}; {ahead / 2:g} h", (said * span)[whole], came[whole], took)


if __name__ == "__main__":
    main()
