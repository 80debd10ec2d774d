"""Policies side by side over one history, at equal budget, on as many cores as there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.errors import ConfigError
from afresh.lab.work import check_events, check_visits
from afresh.lab.workers import workers
from afresh.sim.history import SILENCE, Heard, History, draw_history, draw_signals
from afresh.sim.replay import POLICIES, Replayed, replay

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Contest:
    """One history, one budget, some policies."""

    history: History
    budget: float  # crawls per second
    score_from: float
    policies: tuple[str, ...]
    heard: Heard = SILENCE
    early: bool = True
    seed: int = 0


def check_policies(names: Sequence[str], *, signals: bool) -> tuple[str, ...]:
    """The policies of a comma-separated option; "all" is all of them that differ."""
    chosen = [name.strip() for text in names for name in text.split(",") if name.strip()]
    if not chosen or chosen == ["all"]:
        # Without signals our policies are one and the same.
        return POLICIES if signals else tuple(name for name in POLICIES if not name.startswith("greedy"))
    for name in chosen:
        if name not in POLICIES:
            raise ConfigError(f"There is no policy {name!r}.", hint=f"Choose all, or some of {', '.join(POLICIES)}.")
    return tuple(dict.fromkeys(chosen))


def ceiling(contest: Contest, lines: Sequence[Replayed]) -> float:
    """What the best constant rates scored on the same history: nobody knows those.

    A schedule that hears signals, or adapts to pages that change their ways, may pass it.
    """
    known = next((line for line in lines if line.policy == "clairvoyant"), None)
    return (known or _one(contest, "clairvoyant")).weighted


def compile_ahead(policies: Sequence[str], *, signals: bool) -> None:
    """Compile all that these policies need in this process, which can say so: others then find it on disk."""
    rng = np.random.default_rng(0)
    history = draw_history(rng, np.full(4, 1e-5), weight=np.ones(4), start=0.0, end=1e6)
    heard = draw_signals(rng, history, recall=0.5, precision=0.5) if signals else SILENCE
    for policy in policies:
        replay(history, policy, budget=4e-5, score_from=2.5e5, heard=heard)


def hold(
    contest: Contest, *, jobs: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Replayed]:
    """Every policy over the same changes and signals."""
    total = len(contest.policies)
    progress(0, total)
    found = []
    if jobs <= 1:
        for done, policy in enumerate(contest.policies, start=1):
            found.append(_one(contest, policy))
            progress(done, total)
        return found
    with workers(min(jobs, total)) as submit:
        futures = [submit(_one, contest, policy) for policy in contest.policies]
        for done, future in enumerate(futures, start=1):
            found.append(future.result())
            progress(done, total)
    return found


def _one(contest: Contest, policy: str) -> Replayed:
    return replay(
        contest.history,
        policy,
        budget=contest.budget,
        score_from=contest.score_from,
        heard=contest.heard,
        early=contest.early,
        seed=contest.seed,
    )


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """A synthetic collection, by a few numbers."""

    pages: int = 2000
    days: float = 365.0
    changes: float = 30.0  # median days between two changes of a page
    spread: float = 1.0  # standard deviation of the logarithm of change rates
    popularity: float = 1.0  # Zipf exponent of the requests; 0: all equal
    clumping: float = 0.0  # share of changes that come in bursts
    recall: float = 0.0
    precision: float = 1.0
    delay: float = 0.0  # seconds
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (("pages", 1, 10_000_000), ("days", 1, 36_500), ("changes", 1e-3, 1e5)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(
                    f"A world with {name} {getattr(self, name):g} cannot be made.",
                    hint=f"Give --{name} between {least:g} and {most:g}.",
                )
        if not 0 <= self.clumping < 1:
            raise ConfigError(f"A clumping of {self.clumping:g} makes no sense.", hint="Give it from 0 to below 1.")


def draw_contest(
    options: WorldOptions, *, every: float, policies: tuple[str, ...], train: float = 0.25, early: bool = True
) -> Contest:
    """A synthetic history with `every` seconds between two visits to a page on average, scored after the training."""
    check_visits(options.pages * options.days * DAY / every)
    changes = options.pages * options.days / options.changes * float(np.exp(min(options.spread**2 / 2, 700.0)))
    check_events(changes, "changes", "Give fewer --pages or --days, or more --changes days.")
    if options.recall > 0:
        check_events(changes * options.recall / options.precision, "signals", "Give --signals of a higher precision.")
    rng = np.random.default_rng([options.seed, options.pages])
    rates = np.exp(rng.normal(-np.log(options.changes * DAY), options.spread, options.pages))
    weight = rng.permutation(np.arange(1, options.pages + 1) ** -float(options.popularity))
    end = options.days * DAY
    history = draw_history(rng, rates, weight=weight, start=0.0, end=end, clumping=options.clumping)
    heard = SILENCE
    if options.recall > 0:
        heard = draw_signals(rng, history, recall=options.recall, precision=options.precision, delay=options.delay)
    return Contest(history, options.pages / every, train * end, policies, heard, early, options.seed)
