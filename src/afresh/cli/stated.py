"""Statements about copies from what a store holds: what a runner would say if it started now."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from afresh.engine import Engine, FreshnessParts
from afresh.estimate import Estimator, Grid, Senders
from afresh.estimate.activity import slice_width
from afresh.estimate.activity_kept import from_text
from afresh.estimate.base import BY_LEARNER, typical_rate
from afresh.frontier import Lanes, Politeness, SiteRules
from afresh.schedule import Greedy, Plain
from afresh.store import PageState, Store, understood
from afresh.store.messages import WATCHED
from afresh.types import Beliefs, Crawl, Importance

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
    outdated: bool = False  # whether the copy is known to differ from the page
    current: float | None = None  # as of when the copy is, if the runner knows better than the store
    ahead: int = 0  # crawls of its host that go before it
    turn: float = 0.0  # seconds from one crawl of its host to the next; 0: not known
    spare: bool = False  # there is more budget than hosts take
    every: float = 0.0  # seconds between its crawls that its host has room for, where more are wanted; 0: not so
    host_price: float = 0.0  # what a crawl of its host has to gain, at the host's own budget; 0: the common price


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


def beliefs_now(
    kept: Store, states: list[PageState], when: float, importance: Mapping[str, Importance], rules: SiteRules
) -> list[Beliefs]:
    """What is believed of pages that were crawled, with all that was heard since: a request for one tells of others."""
    engine = _engine(kept, states, when, importance, rules=rules)
    return [_told(state) or engine.beliefs(state.page.url, when) for state in states]


def stated_of(kept: Store, state: PageState, price: float, when: float, importance: Mapping[str, Importance]) -> Stated:
    """What is said of one page, if a crawl has to gain so much; `importance` is that of the pages of each host."""
    if state.beliefs is None and state.checked is None:
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
        why, last = scheduler.explain(slot, when), _last(kept, state)
        outdated = last is not None and last.leaves_outdated
        fresh = 0.0 if outdated else _fresh(None, state, when)
        parts = _parts(told, state, when)
        return Stated(told, fresh, why.value, why.due, why.held_by, parts, outdated=outdated)
    url = state.page.url
    engine = _engine(kept, [*_like(kept, url), state], when, importance, price=price)
    why = engine.explain(url, when)
    parts = None if state.checked is None else engine.freshness_parts(url, when)
    fresh, outdated = _fresh(engine, state, when), engine.is_outdated(url)
    return Stated(engine.beliefs(url, when), fresh, why.value, why.due, why.held_by, parts, outdated=outdated)


def stated_by_runner(said: Mapping[str, Any] | None) -> Stated | None:
    """What a runner answered about a page; None if there is none."""
    if said is None:
        return None
    due = math.inf if said["due"] is None else said["due"]
    queue = {name: said[name] for name in ("ahead", "turn", "spare", "every", "host_price")}
    if said["current"] is None:
        return Stated(None, 0.0, None, due, said["held_by"], first_crawls=0, **queue)
    believed = said["beliefs"]
    shape = math.inf if believed["shape"] is None else believed["shape"]
    return Stated(
        Beliefs(**{**believed, "shape": shape}),
        said["fresh_probability"],
        said["value"],
        due,
        said["held_by"],
        FreshnessParts(**said["parts"]),
        said["first_crawls"],
        said["outdated"],
        said["current"],
        **queue,
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
    rules: SiteRules | None = None,
) -> Engine:
    """An engine that knows these pages and all that was learned of their sites, as a runner's would after a restart."""
    states = list(states)
    budget = understood("budget", lambda: float(kept.get("budget") or 1.0))
    typical = typical_rate(budget, kept.totals().pages)
    width = slice_width(typical)
    scheduler = Plain(Greedy(), budget=budget)
    scheduler.price = price
    engine = Engine(
        scheduler=scheduler,
        estimator=_estimator(states, typical),
        lanes=Lanes(Politeness(shortest_gap=0.0)),  # it knows some pages of each: no queue of a host can be told
        importance=importance,
        rules=rules,
        activity=understood("activity", lambda: from_text(kept.get("activity"), width=width, now=when)),
        senders=understood("senders", lambda: Senders.recalled(kept.get)),
    )

    if (since := kept.get(WATCHED)) is not None:
        engine.estimator.requests_since(understood(WATCHED, lambda: float(since)))

    def add_all() -> None:
        for state in states:
            engine.add(
                state.page,
                when,
                current=state.checked,
                signals=state.signals,
                failures=state.failures,
                last=_last(kept, state),
                learned=state.learned,
            )

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


def _last(kept: Store, state: PageState) -> Crawl | None:
    """The last crawl of a page, if that failed."""
    return next(iter(kept.history(state.page.url, 1)), None) if state.failures else None


def _fresh(engine: Engine | None, state: PageState, when: float) -> float:
    if state.fetched is None:
        return 0.0  # an index told when it was crawled, and there is no copy
    if engine is not None and engine.is_gone(state.page.url):
        return 0.0
    told = _told(state)
    if told is not None and state.checked is not None and not (engine and engine.is_outdated(state.page.url)):
        return told.freshness(max(when - state.checked, 0.0), state.signals)
    return engine.fresh_probability(state.page.url, when) if engine is not None else 0.0
