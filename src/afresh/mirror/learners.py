"""Learners of refresh rates: they hand out plays, take the observed costs, and change their rates now and then.

    while learner.now < horizon:
        plays = learner.plays(horizon)
        learner.observe(plays, costs_of(plays))

Nothing is assumed of the costs but that they do not fall while a copy gets older, and that they are bounded.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.checks import number, whole
from afresh.errors import ConfigError
from afresh.mirror.plays import Plays, hand_out, new_arms, take_in
from afresh.mirror.step import ROUNDING, mirror_step, project

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The published experiments' values, for a hundred arms and a budget of 0.4 an arm, in forms that fit other numbers.
EPSILON = 0.05
LEAST_SHARE, LARGEST_SHARE = 1 / 16, 7.5  # r_min and r_max, of the mean rate
MIRROR_ETA, ASYNC_ETA, PSGD_ETA = 0.027, 0.016, 0.0008  # an arm
UPDATE_SHARE = 0.5  # of 1/r_min


class Learner(Protocol):
    """What all learners of rates can do."""

    now: float  # plays have been handed out up to this moment

    @property
    def rates(self) -> Floats:
        """The refresh rate of each arm."""

    def plays(self, until: float) -> Plays:
        """The next plays, up to the moment given or the next update, whichever is first."""

    def observe(self, plays: Plays, costs: ArrayLike) -> None:
        """What the plays that were handed out last have cost; updates the rates if it is time."""


class _Rounds:
    """What the learners have in common; they differ in `_update`."""

    _eta_per_arm = math.nan

    def __init__(
        self,
        arms: int,
        budget: float,
        *,
        rng: np.random.Generator,
        epsilon: float = EPSILON,
        eta: float | None = None,
        update_interval: float | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        now: float = 0.0,
    ) -> None:
        """`budget` (B) is the rate of all plays together: 1/(1+ε) of it refreshes, the rest is for probes.

        The defaults are those of the published experiments, in proportion to the mean rate; `eta` grows with the number
        of arms, since gradients are divided by it. It is for costs around 1.
        """
        whole("arms", arms, least=1)
        if not isinstance(rng, np.random.Generator):
            raise ConfigError(
                f"rng must be a numpy.random.Generator, not {rng!r:.40}.", hint="Give numpy.random.default_rng(1)."
            )
        self.budget = number("budget", budget, above=True)
        self.epsilon = number("epsilon", epsilon, above=True, most=1.0)
        self.eta = self._eta_per_arm * arms if eta is None else number("eta", eta)
        self.r_min = LEAST_SHARE * self.budget / arms if r_min is None else number("r_min", r_min, above=True)
        largest = LARGEST_SHARE * self.budget / arms if r_max is None else number("r_max", r_max, above=True)
        self._high = largest / (1.0 + self.epsilon)
        self._total = self.budget / (1.0 + self.epsilon)
        _check_bounds(arms, self.budget, self.epsilon, self.r_min, largest)
        self.update_interval = UPDATE_SHARE / self.r_min
        if update_interval is not None:
            self.update_interval = number("update_interval", update_interval, above=True)
        self.now = self._updated = number("now", now, least=-math.inf)
        self._rng = rng
        self._seed = np.uint64(rng.integers(2**63))
        self._awaited: list[Plays] = []  # whose costs are not known yet
        self._arms = new_arms(arms, self._total / arms, self.now)  # the barrier's own minimum: all alike

    @property
    def rates(self) -> Floats:
        """The refresh rate of each arm; a copy, since the learner goes on."""
        return self._arms.rates.copy()

    @property
    def next_update(self) -> float:
        """When the rates change next."""
        return self._updated + self.update_interval

    def plays(self, until: float) -> Plays:
        """The next plays, up to the moment given or the next update, whichever is first."""
        until = number("until", until, least=-math.inf, infinite=True)
        self.now = max(self.now, min(until, self.next_update))
        plays = hand_out(self._arms, self.epsilon, self._seed, self.now)
        if plays.arm.size:
            self._awaited.append(plays)
        return plays

    def observe(self, plays: Plays, costs: ArrayLike) -> None:
        """What the plays that were handed out last have cost; updates the rates if it is time."""
        if not isinstance(plays, Plays):
            raise ConfigError(f"plays must be what plays() gave, not {plays!r:.40}.", hint="Call plays() before.")
        try:
            found = np.asarray(costs, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            found = np.full(0, math.nan)
        sound = bool(np.isfinite(found).all()) and found.min(initial=0.0) >= 0.0
        if found.shape != plays.arm.shape or not sound:
            raise ConfigError(
                "costs must be finite numbers of at least 0, one a play.", hint="Give the cost before each refresh."
            )
        awaited = [each is plays for each in self._awaited]
        if plays.arm.size and True not in awaited:
            raise ConfigError(
                "These plays are not awaited: their costs are known already, or another learner handed them out.",
                hint="Observe what each call of plays() gave once.",
            )
        if plays.arm.size:
            del self._awaited[awaited.index(True)]
        take_in(self._arms, self.epsilon, plays.arm, plays.kind, found)
        if self.now >= self.next_update:
            self._update(np.flatnonzero(self._arms.counts))
            self._updated = self.now

    def _update(self, played: Integers) -> None:
        raise NotImplementedError

    def _slope(self, played: Integers) -> Floats:
        """The mean sample of each of these arms, divided by their number; forgets the samples."""
        mean = self._arms.sums[played] / self._arms.counts[played]
        self._arms.sums[played] = 0.0
        self._arms.counts[played] = 0
        return np.asarray(mean / max(played.size, 1))


def _check_bounds(arms: int, budget: float, epsilon: float, r_min: float, r_max: float) -> None:
    """ConfigError unless some rates between the bounds spend the budget; it names what to change, and to what.

    A share of the budget goes to probes. So r_max, like the budget, counts without it: both are divided by 1 + ε.
    """
    share = 1.0 + epsilon
    if r_min * share > r_max:
        raise ConfigError(
            f"r_min = {r_min:g} is above r_max = {r_max:g}, of which probes take a part.",
            hint=f"Lower r_min to {r_max / share:g} or less, or raise r_max to {r_min * share:g}.",
        )
    if arms * r_min * share > budget * (1.0 + ROUNDING):
        raise ConfigError(
            f"r_min = {r_min:g} is too high: {arms:,} times that, and probes, is {arms * r_min * share:g}, more than "
            f"the budget {budget:g}.",
            hint=f"Lower r_min to {budget / share / arms:g} or less, or raise the budget.",
        )
    if arms * r_max < budget * (1.0 - ROUNDING):
        raise ConfigError(
            f"r_max = {r_max:g} is too low: {arms:,} times that is {arms * r_max:g}, less than the budget {budget:g}.",
            hint=f"Raise r_max to {budget / arms:g} or more, or lower the budget.",
        )


class MirrorSync(_Rounds):
    """MIRRORSYNC, the form that the theory is about: rounds of 1/r_min, and every arm is fresh when one begins.

    A round's fresh start is free, which no real crawler has. All samples of a round are averaged.
    """

    _eta_per_arm = MIRROR_ETA

    def __init__(
        self,
        arms: int,
        budget: float,
        *,
        rng: np.random.Generator,
        epsilon: float = EPSILON,
        eta: float | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        now: float = 0.0,
    ) -> None:
        """As the others, but an update ends a round, and a round lasts 1/r_min."""
        super().__init__(arms, budget, rng=rng, epsilon=epsilon, eta=eta, r_min=r_min, r_max=r_max, now=now)
        self.update_interval = 1.0 / self.r_min

    def _update(self, played: Integers) -> None:
        arms = self._arms
        slope = np.zeros(arms.rates.size)
        slope[played] = self._slope(played)
        slope *= played.size / slope.size
        arms.rates[:] = mirror_step(arms.rates, slope, eta=self.eta, low=self.r_min, high=self._high, total=self._total)
        arms.since[:] = arms.synced[:] = self.now
        arms.nth[:] += np.uint64(1)
        arms.probed[:] = False
        arms.seen[:] = math.nan


class AsyncMirrorSync(_Rounds):
    """ASYNCMIRRORSYNC, the practical form: no free resets, and an update is about the arms with new samples alone.

    Their rates keep their sum, whatever the others have. Since an interval is cut when its rate changes, the refresh
    that ends it is a bridge: no sample is made of it.
    """

    _eta_per_arm = ASYNC_ETA

    def _update(self, played: Integers) -> None:
        if played.size == 0:
            return
        arms = self._arms
        old, since = arms.rates[played], arms.since[played]
        new = self._step(old, self._slope(played))
        sooner = (new > old) & (since + 1.0 / new >= self.now)
        bridge = since + 1.0 / np.where(sooner, new, old)
        at_once = self._rng.random(played.size) < self.epsilon
        arms.rates[played] = new
        arms.since[played] = np.where(at_once, self.now, bridge)
        arms.bridged[played] = True
        arms.probed[played] = False
        arms.seen[played] = math.nan

    def _step(self, rates: Floats, slope: Floats) -> Floats:
        return mirror_step(rates, slope, eta=self.eta, low=self.r_min, high=self._high)


class AsyncPsgdSync(AsyncMirrorSync):
    """ASYNCPSGDSYNC: the same with a Euclidean projected gradient step, for comparison."""

    _eta_per_arm = PSGD_ETA

    def _step(self, rates: Floats, slope: Floats) -> Floats:
        return project(rates - self.eta * slope, low=self.r_min, high=self._high, total=float(rates.sum()))
