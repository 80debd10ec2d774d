"""Costs by families of laws: what a play shows, what constant rates cost exactly, and the best rates there are.

An arm's mean cost c̄(τ) and its integral C̄(τ) say all: rates r cost mean(r·C̄(1/r)), and the slope by one rate is
−(c̄(1/r)/r − C̄(1/r)) over the number of arms.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from afresh.mirror import Plays
from afresh.mirror.draws import mixed
from afresh.mirror.step import check_set

Floats = NDArray[np.float64]
_HALVINGS = 100
_SLOWEST, _FASTEST = 0.005, 5.0  # change rates of the published Poisson family


class Family(Protocol):
    """Arms, each with a law of costs."""

    def costs(self, plays: Plays) -> Floats:
        """What these plays show; a probe and the sync after it are of one random path."""

    def mean_cost(self, age: Floats) -> Floats:
        """The expected cost of each arm at its age."""

    def mean_spent(self, age: Floats) -> Floats:
        """The expected integral of the cost from a refresh up to each arm's age."""


class Polynomial:
    """A·τ^p, with one draw of A an interval: a tenth around the arm's own a. The instance follows from the seed."""

    def __init__(self, arms: int, seed: int) -> None:
        legacy = np.random.RandomState(seed)  # as the published experiments draw their instances
        self.scale = legacy.uniform(size=arms)
        self.power = 1.0 / (1.0 + np.exp(-5.0 * legacy.uniform(size=arms)))
        self.noise = np.uint64(seed)

    def costs(self, plays: Plays) -> Floats:
        """One draw shared by the probe and the sync of an interval, so that a path never falls."""
        noise = 0.9 + 0.2 * mixed(self.noise, plays.arm.astype(np.uint64), plays.nth)
        return np.asarray(noise * self.scale[plays.arm] * plays.age ** self.power[plays.arm])

    def mean_cost(self, age: Floats) -> Floats:
        """a·τ^p."""
        return np.asarray(self.scale * age**self.power)

    def mean_spent(self, age: Floats) -> Floats:
        """a·τ^{p+1}/(p+1)."""
        return np.asarray(self.scale * age ** (self.power + 1.0) / (self.power + 1.0))


class Poisson:
    """Its importance from the first change on: stale or not. The instance follows from the seed."""

    def __init__(self, arms: int, seed: int, *, fastest: float = _FASTEST) -> None:
        legacy = np.random.RandomState(seed)
        self.change_rate = legacy.uniform(_SLOWEST, fastest, size=arms)
        self.importance = np.ones(arms)
        self.noise = np.uint64(seed)

    def costs(self, plays: Plays) -> Floats:
        """Whether the first change of the interval has come."""
        chance = mixed(self.noise, plays.arm.astype(np.uint64), plays.nth)
        first = -np.log1p(-chance) / self.change_rate[plays.arm]
        return np.asarray(self.importance[plays.arm] * (first < plays.age))

    def mean_cost(self, age: Floats) -> Floats:
        """1 − e^{−Δτ}, times the importance."""
        return np.asarray(-self.importance * np.expm1(-self.change_rate * age))

    def mean_spent(self, age: Floats) -> Floats:
        """τ − (1 − e^{−Δτ})/Δ, times the importance."""
        return np.asarray(self.importance * (age + np.expm1(-self.change_rate * age) / self.change_rate))


class AgeSquared(Poisson):
    """The square of the time since the first missed change: what has been stale for long is much worse."""

    def mean_cost(self, age: Floats) -> Floats:
        """E[max(0, τ − T)²] for an exponential time T."""
        rate = self.change_rate
        return np.asarray(age**2 - 2 * age / rate - 2 * np.expm1(-rate * age) / rate**2)

    def mean_spent(self, age: Floats) -> Floats:
        """Its integral."""
        rate = self.change_rate
        return np.asarray(age**3 / 3 - age**2 / rate + 2 * age / rate**2 + 2 * np.expm1(-rate * age) / rate**3)


class Significance(Poisson):
    """The sum of how much each missed change mattered, by a mean of the page's own."""

    def __init__(self, arms: int, seed: int, size: Floats) -> None:
        super().__init__(arms, seed)
        self.size = size

    def mean_cost(self, age: Floats) -> Floats:
        """Δ·size·τ."""
        return np.asarray(self.change_rate * self.size * age)

    def mean_spent(self, age: Floats) -> Floats:
        """Δ·size·τ²/2."""
        return np.asarray(0.5 * self.change_rate * self.size * age**2)


def cost_of(family: Family, rates: Floats) -> float:
    """J: what these constant rates cost a unit of time, on average over the arms."""
    return float(np.mean(rates * family.mean_spent(1.0 / rates)))


def slope_of(family: Family, rates: Floats) -> Floats:
    """∂J/∂r of each arm."""
    return _gain(family, rates) / -rates.size


def _gain(family: Family, rates: Floats) -> Floats:
    age = 1.0 / rates
    return np.asarray(age * family.mean_cost(age) - family.mean_spent(age))


def best_rates(family: Family, arms: int, *, low: float, high: float, total: float) -> Floats:
    """The rates of the least cost between the bounds, with this total: all gain alike, but those at a bound."""
    check_set(arms, low, high, total)

    def at(price: float) -> Floats:
        return _halve(lambda rates: _gain(family, rates) > price, np.full(arms, low), np.full(arms, high))

    gains = [_gain(family, np.full(arms, bound)) for bound in (high, low)]
    below, above = math.log(max(float(gains[0].min()), 1e-300)), math.log(float(gains[1].max()))
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        if at(math.exp(middle)).sum() > total:
            below = middle
        else:
            above = middle
    # Where a gain is flat to the last digit, a rate jumps between two prices that are as good as equal: the cost is a
    # straight line along such a jump, so the rates may be mixed.
    more, less = at(math.exp(below)), at(math.exp(above))
    share = (total - less.sum()) / (more.sum() - less.sum()) if more.sum() > less.sum() else 0.0
    return np.asarray(less + min(max(share, 0.0), 1.0) * (more - less))


def _halve(is_below: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """Where each arm's own answer turns from True to False."""
    for _ in range(50):
        middle = 0.5 * (low + high)
        more = is_below(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(0.5 * (low + high))
