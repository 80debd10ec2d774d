"""Our schedule beside everybody else's, over many histories, budgets, weights and signals."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from afresh.errors import ConfigError
from afresh.lab.workers import workers
from afresh.schedule.peer_rules import RULES
from afresh.sim.field import Field, close
from afresh.sim.history import SILENCE, Heard, History, draw_signals
from afresh.sim.replay import BOUNDS, OURS, POLICIES, run_policy, scored

VISITS = (5.0, 20.0, 80.0)  # a page in the scored time
WEIGHTS = ("equal", "zipf")
# Recall, precision, and how late they are on average, as a share of the time between two visits to a page.
SIGNALS = {"none": (0.0, 1.0, 0.0), "weak": (0.5, 0.2, 0.0), "good": (0.8, 0.8, 0.0), "late": (0.8, 0.8, 0.01)}
ANY = "any"  # signals or weights that a policy does not look at
PEERS = tuple(name for name in POLICIES if name not in (*OURS, *BOUNDS))
ENTRANTS = ("afresh", "past", *PEERS)
GROUPS = ((0, 0), (1, 1), (2, 3), (4, 8), (9, 20), (21, None))  # of pages, by true changes in the scored time


@dataclass(frozen=True, slots=True)
class Subject:
    """A history to be replayed; its weights are equal."""

    name: str
    history: History
    score_from: float

    @property
    def span(self) -> float:
        """How long is scored."""
        return self.history.end - self.score_from


@dataclass(frozen=True, slots=True)
class Run:
    """A policy over a history, scored under all the weights that it does not look at."""

    subject: Subject
    every: float  # seconds between two visits to a page, on average
    policy: str
    weights: tuple[str, ...]
    signals: str
    seed: int


@dataclass(frozen=True, slots=True)
class Group:
    """Pages that changed as often in the scored time, and what became of them."""

    least: int
    most: int | None  # None: any number
    pages: int
    visits: float  # a page
    unvisited: float  # share of those there in all of the last half that got no visit in it
    fresh: float


@dataclass(frozen=True, slots=True)
class Row:
    """What a policy scored in one setting."""

    history: str
    pages: int
    visits: float  # a page in the scored time, on average
    every: float
    weights: str
    signals: str
    policy: str
    fresh: float
    stated: float  # NaN: it states nothing
    brier: float
    crawls: int
    seconds: float
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One setting: our schedule beside the others. NaN: was not asked to run."""

    history: str
    visits: float
    weights: str
    signals: str
    afresh: float
    stated: float
    uniform: float
    past: float
    peer: str  # the best one
    best: float

    @property
    def margin(self) -> float:
        """By how much afresh is above the best peer."""
        return self.afresh - self.best


@dataclass(frozen=True, slots=True)
class Summary:
    """All settings in a few numbers."""

    settings: int
    above: float  # share of settings above every peer; NaN: none ran
    plain: int  # settings with equal weights and no signals
    above_plain: float
    least_over_uniform: float
    stated_error: float  # mean absolute


def check_names(texts: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """The names in comma-separated options; none is all of them."""
    names = tuple(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no {what} {name!r}.", hint=f"Choose some of {', '.join(known)}.")
    return names or tuple(known)


def runs_of(
    subject: Subject,
    *,
    everies: Sequence[float],
    weights: Sequence[str],
    signals: Sequence[str],
    policies: Sequence[str],
    seed: int,
) -> list[Run]:
    """What must run for all settings of a history: only our policies hear signals, and few others know the weights."""
    runs = []
    for every in everies:
        for policy in policies:
            heard = signals if policy in OURS else (ANY,)
            apart = [tuple(weights)] if policy in RULES else [(each,) for each in weights]
            runs += [Run(subject, every, policy, known, each, seed) for known in apart for each in heard]
    return runs


def weights_of(kind: str, pages: int, seed: int) -> NDArray[np.float64]:
    """How much each page is asked for: all alike, or one over its rank in a random order."""
    if kind == "equal":
        return np.ones(pages)
    return np.random.default_rng([seed, 5]).permutation(1.0 / np.arange(1, pages + 1))


def _signals(run: Run) -> Heard:
    recall, precision, late = SIGNALS.get(run.signals, SIGNALS["none"])
    if recall == 0:
        return SILENCE
    rng = np.random.default_rng([run.seed, 4])
    return draw_signals(rng, run.subject.history, recall=recall, precision=precision, delay=late * run.every)


def carry_out(run: Run) -> list[Row]:
    """Run a policy, and score it under each of its weights."""
    subject, pages = run.subject, run.subject.history.pages
    began = time.perf_counter()
    history = replace(subject.history, weight=weights_of(run.weights[0], pages, run.seed))
    field, stated = run_policy(
        history,
        run.policy,
        budget=pages / run.every,
        score_from=subject.score_from,
        heard=_signals(run),
        seed=run.seed,
    )
    last = field.current.copy()
    close(field)
    groups = _groups(subject, field, last) if run.policy in OURS else ()
    rows = []
    for kind in run.weights:
        history = replace(subject.history, weight=weights_of(kind, pages, run.seed))
        line = scored(history, run.policy, field, stated)
        rows.append(
            Row(
                history=subject.name,
                pages=pages,
                visits=subject.span / run.every,
                every=run.every,
                weights=kind,
                signals=run.signals,
                policy=run.policy,
                fresh=line.weighted,
                stated=stated,
                brier=line.brier,
                crawls=line.crawls,
                seconds=time.perf_counter() - began,
                groups=groups,
            )
        )
    return rows


def _groups(subject: Subject, field: Field, last: NDArray[np.float64]) -> tuple[Group, ...]:
    history, middle = subject.history, subject.history.end - subject.span / 2
    scored_changes = (history.times > subject.score_from) & (history.times <= history.end)
    changes = np.bincount(
        np.repeat(np.arange(history.pages), np.diff(history.first))[scored_changes], minlength=history.pages
    )
    there = (field.ends >= history.end) & (field.births < middle)
    groups = []
    for least, most in GROUPS:
        inside = (changes >= least) & (changes <= (np.inf if most is None else most))
        time_there = field.fresh_time[inside].sum() + field.stale_time[inside].sum()
        groups.append(
            Group(
                least,
                most,
                int(inside.sum()),
                _mean(field.visits[inside]),
                _mean(last[inside & there] < middle),
                float(field.fresh_time[inside].sum() / time_there) if time_there > 0 else float("nan"),
            )
        )
    return tuple(groups)


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.astype(np.float64).mean()) if values.size else float("nan")


def hold_all(
    runs: Sequence[Run], *, jobs: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Row]:
    """All runs, the longest first; the rows in the order of the runs."""
    progress(0, len(runs))
    found: dict[int, list[Row]] = {}
    for done, (number, rows) in enumerate(_each(runs, jobs), start=1):
        found[number] = rows
        progress(done, len(runs))
    return [row for number in sorted(found) for row in found[number]]


def _each(runs: Sequence[Run], jobs: int) -> Iterator[tuple[int, list[Row]]]:
    order = sorted(range(len(runs)), key=lambda number: -_work(runs[number]))
    if jobs <= 1:
        for number in order:
            yield number, carry_out(runs[number])
        return
    with workers(min(jobs, len(runs))) as submit:
        waiting = {submit(carry_out, runs[number]): number for number in order}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def visits_of(run: Run) -> float:
    """How many visits a run makes, from the start of its history on."""
    history = run.subject.history
    return history.pages * (history.end - history.start) / run.every


def _work(run: Run) -> float:
    return visits_of(run) * (10.0 if run.policy in OURS else 1.0)


def lines_of(rows: Sequence[Row]) -> list[Line]:
    """The settings in which our schedule ran, each beside who else did."""
    others: dict[tuple[str, float, str], dict[str, float]] = {}
    for row in rows:
        if row.policy not in OURS:
            others.setdefault((row.history, row.visits, row.weights), {})[row.policy] = row.fresh
    lines = []
    for row in rows:
        if row.policy != "afresh":
            continue
        beside = others.get((row.history, row.visits, row.weights), {})
        peers = {name: beside[name] for name in PEERS if name in beside}
        peer = max(peers, key=lambda name: peers[name]) if peers else ""
        nan = float("nan")
        lines.append(
            Line(
                row.history,
                row.visits,
                row.weights,
                row.signals,
                row.fresh,
                row.stated,
                beside.get("uniform", nan),
                beside.get("past", nan),
                peer,
                peers.get(peer, nan),
            )
        )
    return lines


def summary_of(lines: Sequence[Line]) -> Summary:
    """How often we are above every peer, how far below uniform at worst, and how true what we state is.

    NaN where no peer, or not `uniform`, ran beside us.
    """
    compared = [line for line in lines if not math.isnan(line.margin)]
    plain = [line for line in lines if line.weights == "equal" and line.signals == "none"]
    return Summary(
        len(lines),
        _mean(np.array([line.margin > 0 for line in compared])),
        len(plain),
        _mean(np.array([line.margin > 0 for line in compared if line in plain])),
        float(np.min([line.afresh - line.uniform for line in lines])) if lines else float("nan"),
        _mean(np.array([abs(line.stated - line.afresh) for line in lines])),
    )
