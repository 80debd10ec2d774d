"""What caching is worth: a trace of requests over a history of changes, by others' rules and by ours, at equal fetches.

Ours is the proxy's own policy, the very code, on a clock that stands where it is put; with refresh ahead, beside it the
live engine under a budget.
"""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afresh.engine import Arrivals, Engine
from afresh.errors import InputError
from afresh.estimate import Learner
from afresh.frontier import Lanes, Politeness
from afresh.lab.workers import workers
from afresh.schedule import DEFAULT_SWEEP, Scheduler
from afresh.serve.proxy import dates, rules
from afresh.serve.proxy import entry as entries
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import joined
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.routes import Site
from afresh.sim.caches import RULES, Asked, Knobs, Tally, play
from afresh.sim.history import History
from afresh.types import Fetched, Order, Outcome, Page, Request, Signal, Verdict

ORIGIN = "http://origin.example"
THRESHOLDS = (0.999, 0.995, 0.99, 0.98, 0.95, 0.925, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # Squid by dates
AHEAD = 0.5  # of the fetches that own policy makes on request: what refresh ahead gets besides
OURS, OURS_DATED, OURS_AHEAD = "afresh", "afresh, told dates", "afresh, refreshed ahead"
BY_DATES = "squid, by dates"
_TRACE_NAMES = ("item", "page", "pages")
_TRACE_HINT = "A trace is a .npz with an array item, page or pages: what was asked for, in order."
MAX_TRACE_BYTES = 4 << 30
NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, first_back_off=0.0, longest_back_off=0.0)


@dataclass(frozen=True, slots=True)
class Scene:
    """Pages with their requests, and all requests in order of time."""

    pages: list[Asked]
    order: list[tuple[float, int, int]]  # moment, page, version at the origin
    start: float
    end: float
    mean_gap: float  # seconds between two changes of a page
    left_out: int  # requests for more pages than there are, or for pages that were not there yet


@dataclass(frozen=True, slots=True)
class Row:
    """One rule at one setting, and what ours does at as many fetches."""

    rule: str
    setting: float  # a lifetime, a share, or a threshold
    requests: int
    fetches: float  # a request
    fresh: float
    unwaited: float
    our_fresh: float | None = None  # None: ours makes more or fewer fetches at every threshold
    our_unwaited: float | None = None


def read_trace(path: Path, most: int) -> NDArray[np.int64]:
    """What was asked for, in order."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.", hint="Check its name.")
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(each.file_size for each in packed.infolist()) > MAX_TRACE_BYTES:
                raise InputError(f"{path} unpacks to more than 4 GiB.", hint="Cut it in parts.")
        with np.load(path, allow_pickle=False) as file:
            name = next((name for name in _TRACE_NAMES if name in file), None)
            found = file[name] if name is not None else None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, MemoryError) as error:
        raise InputError(f"{path} is not an .npz of plain arrays: {error}.", hint=_TRACE_HINT) from None
    if found is None or found.ndim != 1 or found.dtype.kind not in "iu":
        raise InputError(f"{path} has no array of numbers of pages.", hint=_TRACE_HINT)
    items: NDArray[np.int64] = found.astype(np.int64)
    items = items[items >= 0][:most]
    if not len(items):
        raise InputError(f"{path} holds no request.", hint=_TRACE_HINT)
    return items


def join(items: NDArray[np.int64], history: History, seed: int) -> Scene:
    """Requests spread evenly over the time of a history; which page is how popular is drawn."""
    _, index, counts = np.unique(items, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    ranks = rank[index]
    pages = np.random.default_rng(seed).permutation(history.pages)
    times = history.start + (np.arange(len(items)) + 0.5) / len(items) * (history.end - history.start)
    inside = ranks < history.pages
    page, time = pages[ranks[inside]], times[inside]
    births = np.full(history.pages, -np.inf) if history.births is None else history.births
    ends = np.full(history.pages, np.inf) if history.ends is None else history.ends
    there = (time >= births[page]) & (time < ends[page])
    page, time = page[there], time[there]
    if not len(page):
        raise InputError("No request is for a page that is there.", hint="Give another trace, or more requests.")
    by_page = np.lexsort((time, page))
    made: list[Asked] = []
    order: list[tuple[float, int, int]] = []
    for some in np.split(by_page, np.flatnonzero(np.diff(page[by_page])) + 1):
        number = int(page[some[0]])
        changes = history.times[history.first[number] : history.first[number + 1]].tolist()
        since = max(float(births[number]), history.start)
        asked = Asked(time[some].tolist(), changes, since, f"{ORIGIN}/{number}")
        order += [(now, len(made), version) for now, version in zip(asked.requests, asked.versions, strict=True)]
        made.append(asked)
    lived = float(history.lived(history.start, history.end).sum())
    gap = lived / max(len(history.times), 1)
    return Scene(made, sorted(order), history.start, history.end, gap, len(items) - len(page))


def by_rule(scene: Scene, rule: str, setting: float, knobs: Knobs, seed: int) -> Tally:
    """All pages by another cache's rule."""
    total, rng = Tally(), np.random.default_rng(seed)
    for page in scene.pages:
        if rule == BY_DATES:
            total.add(play(page, RULES["squid"], 0.0, rng, by_date=setting, knobs=knobs))
        else:
            total.add(play(page, RULES[rule], setting, rng, knobs=knobs))
    return total


class _Ours:
    """Own policy over a scene."""

    def __init__(self, scene: Scene, threshold: float, *, dated: bool) -> None:
        self.scene = scene
        self.site = Site(ORIGIN, threshold=threshold)
        self.tally = Tally()
        self.copies: list[Entry | None] = [None] * len(scene.pages)
        self.heard: list[Signal] = []  # pages found changed on request: what the proxy tells the runner
        self._dated = dated
        self._now = scene.start
        self.policy = Policy(Cache(1 << 62), changed=lambda url: self.heard.append(Signal(url, self._now, "proxy")))

    def entry(self, page: int, version: int, now: float) -> Entry:
        """What the origin answers, as an entry."""
        lines = [(b"Date", dates.written(int(now)).encode())]
        if self._dated:
            changed = self.scene.pages[page].changed(version)
            lines.append((b"Last-Modified", dates.written(int(changed)).encode()))
        terms = rules.terms("GET", {}, 200, joined(lines), now, now)
        return entries.make(self.scene.pages[page].name, 200, lines, b"%d" % version, terms, now)

    def ask(self, now: float, page: int, version: int) -> None:
        """A reader asks."""
        copy, tally = self.copies[page], self.tally
        tally.requests += 1
        if copy is not None and now < copy.good_until:
            copy.hits += 1.0
            tally.unwaited += 1
            tally.fresh += int(copy.body) == version
            return
        self._now = now
        tally.fresh += 1
        tally.fetches += 1
        made = self.entry(page, version, now)
        if copy is not None and copy.body == made.body:
            self.policy.confirmed(copy, made, self.site, now)
        else:
            self.policy.fetched(copy, made, self.site, now)
        if copy is None:
            made.hits, made.hits_since = 1.0, now
        self.copies[page] = made


def ours(scene: Scene, threshold: float, *, dated: bool = False) -> Tally:
    """Own policy alone: everything is fetched when it is asked for."""
    run = _Ours(scene, threshold, dated=dated)
    for now, page, version in scene.order:
        run.ask(now, page, version)
    return run.tally


def ours_ahead(scene: Scene, threshold: float, budget: float) -> Tally:
    """Own policy beside the live engine, which refreshes what is asked for under a budget of fetches a second."""
    run = _Ours(scene, threshold, dated=False)
    engine = Engine(
        scheduler=Scheduler(budget=budget, lease=60.0, sweep=DEFAULT_SWEEP),
        estimator=Learner(typical_rate=budget / len(scene.pages)),
        lanes=Lanes(NO_GAPS),
    )
    numbers = {page.name: number for number, page in enumerate(scene.pages)}
    tick, known = scene.start + 1.0 / budget, set[int]()
    for now, page, version in scene.order:
        while tick <= now:
            _refresh(run, engine, numbers, tick)
            tick += 1.0 / budget
        name = scene.pages[page].name
        if page not in known:  # pages enter by being asked for
            known.add(page)
            engine.add_many(Arrivals.of([Page(name, "origin.example")]), now)
        engine.observe(Request(name, now))
        run.ask(now, page, version)
        for signal in run.heard:
            engine.observe(signal)
        run.heard.clear()
    return run.tally


def _refresh(run: _Ours, engine: Engine, numbers: dict[str, int], now: float) -> None:
    """One tick of the budget."""
    order = engine.next(now)
    if not isinstance(order, Order):
        return
    page = numbers[order.url]
    asked, copy = run.scene.pages[page], run.copies[page]
    version = int(np.searchsorted(asked.changes, now, side="right"))
    made = run.entry(page, version, now)
    changed = copy is None or copy.body != made.body
    outcome = Outcome.NEW if engine.current(order.url) is None else Outcome.CHANGED if changed else Outcome.UNCHANGED
    engine.finish(order, Fetched(order.url, started=now, took=0.0, status=200), Verdict(outcome), now)
    run.tally.fetches += 1
    made.beliefs = engine.beliefs(order.url, now)
    run.policy.crawled(copy, made, run.site)
    run.copies[page] = made


def compare(
    scene: Scene,
    *,
    lifetimes: tuple[float, ...],
    knobs: Knobs,
    seed: int,
    jobs: int,
    ahead: bool,
    progress: Callable[[int, int], None],
) -> list[Row]:
    """All rules at all settings, ours last; each with what ours comes to at as many fetches."""
    peers = [(rule, each) for rule in RULES for each in lifetimes] + [(BY_DATES, each) for each in SHARES]
    with workers(jobs) as submit:
        futures = {(OURS, each): submit(ours, scene, each) for each in THRESHOLDS} | {
            (OURS_DATED, each): submit(_ours_dated, scene, each) for each in THRESHOLDS
        }
        futures |= {(rule, each): submit(by_rule, scene, rule, each, knobs, seed) for rule, each in peers}
        total = len(futures) + (len(THRESHOLDS) if ahead else 0)
        tallies: dict[tuple[str, float], Tally] = {}
        for done, (key, future) in enumerate(futures.items(), start=1):
            tallies[key] = future.result()
            progress(done, total)
        if ahead:
            span = scene.end - scene.start
            more = {
                (OURS_AHEAD, each): submit(ours_ahead, scene, each, AHEAD * tallies[OURS, each].fetches / span)
                for each in THRESHOLDS
            }
            for done, (key, future) in enumerate(more.items(), start=len(futures) + 1):
                tallies[key] = future.result()
                progress(done, total)
    return _rows(tallies)


def _ours_dated(scene: Scene, threshold: float) -> Tally:
    return ours(scene, threshold, dated=True)


def _rows(tallies: dict[tuple[str, float], Tally]) -> list[Row]:
    def shares(tally: Tally) -> tuple[float, float, float]:
        return tuple(each / tally.requests for each in (tally.fetches, tally.fresh, tally.unwaited))  # type: ignore[return-value]

    curves = {
        name: np.array(sorted(shares(tally) for (rule, _), tally in tallies.items() if rule == name)).T
        for name in (OURS, OURS_DATED)
    }
    rows = []
    for (rule, setting), tally in tallies.items():
        fetches, fresh, unwaited = shares(tally)
        row = Row(rule, setting, tally.requests, fetches, fresh, unwaited)
        curve = curves[OURS_DATED if rule == BY_DATES else OURS]
        if rule in (*RULES, BY_DATES) and curve[0, 0] <= fetches <= curve[0, -1]:
            own = [float(np.interp(fetches, curve[0], curve[nth])) for nth in (1, 2)]
            row = Row(rule, setting, tally.requests, fetches, fresh, unwaited, *own)
        rows.append(row)
    return sorted(rows, key=lambda row: (row.rule in (OURS, OURS_DATED, OURS_AHEAD), row.rule, row.setting))
