"""Statements about copies from what a store holds: what a runner would say if it started now."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from afresh.engine import Engine, FreshnessParts
from afresh.estimate import Estimator, Grid, Sources
from afresh.estimate.activity import SLICES_PER_ROUND
from afresh.estimate.activity_kept import from_text
from afresh.estimate.base import BY_LEARNER, typical_rate
from afresh.schedule import Few, Greedy, Plain
from afresh.store import PageState, Store, understood
from afresh.store.messages import WATCHED
from afresh.types import Beliefs, Importance

SAMPLE = 20_000  # pages of a large store that stand for all of it
STRETCH = 100  # neighbours among them
LIKE_IT = 500  # pages of its folder, of its host, and of the whole store that tell what a single page may be like


@dataclass(frozen=True, slots=True)
class Stated:
    """The statement about one page and its copy."""

    beliefs: Beliefs | None  # None: it was never crawled
    fresh: float  # how likely the copy is to be current; 0 where there is none
    value: float | None  # of a crawl now
    due: float  # when it will be worth its price
    held_by: str
    parts: FreshnessParts | None = None  # how that probability comes about; None where there is no copy
    first_crawls: int | None = None  # that go before it; None: not counted
    current: float | None = None  # as of when the copy is, if the runner knows better than the store


def some_states(kept: Store, most: int = SAMPLE) -> list[PageState]:
    """All pages of a small store; for a large one, evenly spaced runs of neighbours."""
    pages = kept.totals().pages
    if pages <= most:
        return [state for _, state in kept.states()]
    starts = range(0, pages, max(1, pages * STRETCH // most))
    return [state for start in starts for _, state in islice(kept.states(after=start), STRETCH)]


def _like(kept: Store, url: str) -> list[PageState]:
    """Pages that tell what a page may be like: some of its folder and of its host, and of all."""
    host = "/".join(url.split("/", 3)[:3]) + "/"
    near = [kept.states_under(prefix, LIKE_IT) for prefix in (url[: url.rindex("/") + 1], host)]
    found = {state.page.url: state for states in (*near, some_states(kept, LIKE_IT)) for state in states}
    found.pop(url, None)
    return list(found.values())


def stated_freshness(kept: Store, when: float, importance: Mapping[str, Importance]) -> tuple[float, bool] | None:
    """The share of requests that would find a fresh copy, over all rates that each page may have, and whether pages
    differ in how much they are wanted (else each counts the same); None if there is nothing to say.

    This is what calibration checks; freshness at the believed rates alone is more confident than that.
    """
    states = some_states(kept)
    engine = _engine(kept, states, when, importance)
    weights = [(_told(state) or engine.beliefs(state.page.url, when)).request_rate for state in states]
    fresh = math.fsum(
        weight * _fresh(engine, state, when) for weight, state in zip(weights, states, strict=True) if weight
    )
    total = math.fsum(weights)
    return (fresh / total, min(weights) < max(weights)) if total else None


def stated_of(kept: Store, state: PageState, price: float, when: float, importance: Mapping[str, Importance]) -> Stated:
    """What is said of one page, if a crawl has to gain so much; `importance` is that of the pages of each host."""
    if state.beliefs is None:
        return Stated(None, 0.0, None, when, "")
    if (told := _told(state)) is not None:
        scheduler = Plain(Greedy(), budget=1.0)
        scheduler.price = price
        slot = scheduler.add(
            request_rate=told.request_rate,
            change_rate=told.change_rate,
            recall=told.recall,
            false_rate=told.false_rate,
            shape=told.shape,
            now=when,
            age=math.inf if state.checked is None else max(when - state.checked, 0.0),
            signals=state.signals,
        )
        why = scheduler.explain(slot, when)
        return Stated(told, _fresh(None, state, when), why.value, why.due, why.held_by, _parts(told, state, when))
    url = state.page.url
    engine = _engine(kept, [*_like(kept, url), state], when, importance, price=price)
    why = engine.explain(url, when)
    parts = None if state.checked is None else engine.freshness_parts(url, when)
    return Stated(engine.beliefs(url, when), _fresh(engine, state, when), why.value, why.due, why.held_by, parts)


def stated_by_runner(said: Mapping[str, Any] | None) -> Stated | None:
    """What a runner answered about a page; None if there is none, or it was never crawled."""
    if said is None or said["current"] is None:
        return None
    believed = said["beliefs"]
    shape = math.inf if believed["shape"] is None else believed["shape"]
    return Stated(
        Beliefs(**{**believed, "shape": shape}),
        said["fresh_probability"],
        said["value"],
        math.inf if said["due"] is None else said["due"],
        said["held_by"],
        FreshnessParts(**said["parts"]),
        said["first_crawls"],
        said["current"],
    )


def _parts(told: Beliefs, state: PageState, when: float) -> FreshnessParts | None:
    if state.checked is None:
        return None
    age = max(when - state.checked, 0.0)
    with_signals = told.freshness(age, state.signals)
    return FreshnessParts(
        by_rate=math.exp(-told.change_rate * age),
        by_silence=math.exp(-told.silent_rate * age),
        by_all_rates=told.freshness(age, 0),
        with_signals=with_signals,
        with_siblings=with_signals,
    )


def _engine(
    kept: Store,
    states: Iterable[PageState],
    when: float,
    importance: Mapping[str, Importance],
    *,
    price: float = 0.0,
) -> Engine:
    """An engine that knows these pages and all that was learned of their sites, as a runner's would after a restart."""
    states = list(states)
    budget = understood("budget", lambda: float(kept.get("budget") or 1.0))
    typical = typical_rate(budget, kept.totals().pages)
    width = 1.0 / (SLICES_PER_ROUND * typical)
    scheduler = Few(budget=budget)
    scheduler.price = price
    engine = Engine(
        scheduler=scheduler,
        estimator=_estimator(states, typical),
        importance=importance,
        activity=understood("activity", lambda: from_text(kept.get("activity"), width=width, now=when)),
        sources=understood("sources", lambda: Sources.from_text(kept.get("sources"))),
    )

    if (since := kept.get(WATCHED)) is not None:
        engine.estimator.requests_since(understood(WATCHED, lambda: float(since)))

    def add_all() -> None:
        for state in states:
            engine.add(state.page, when, current=state.checked, signals=state.signals, learned=state.learned)

    understood("pages", add_all)
    return engine


def _estimator(states: list[PageState], typical: float) -> Estimator:
    """One that reads what was learned of these pages."""
    if not any(state.learned.startswith(BY_LEARNER) for state in states):
        return Grid(typical_rate=typical)
    from afresh.estimate import Learner

    return Learner(typical_rate=typical)


def _told(state: PageState) -> Beliefs | None:
    """Beliefs about a page from an estimator that saves nothing else; None if its state can be read back."""
    return None if state.learned else state.beliefs


def _fresh(engine: Engine | None, state: PageState, when: float) -> float:
    told = _told(state)
    if told is not None and state.checked is not None:
        return told.freshness(max(when - state.checked, 0.0), state.signals)
    return engine.fresh_probability(state.page.url, when) if engine is not None else 0.0
