"""The two steps that learn rates: log-barrier mirror descent, and the Euclidean projection. Both are exact.

The rates stay between two bounds and have a fixed sum. In both steps each rate is a falling function of `place + ν`,
cut off at the bounds: 1/v for the barrier, −v for the projection. One number ν makes the sum right, and one function
finds it: by Newton's steps, and where these fail, by halving the set of the corners at which a rate meets a bound.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.checks import number
from afresh.errors import ConfigError
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Names = tuple[str, str, str]

BARRIER, EUCLID = range(2)
TOLERANCE = 1e-13  # of the sum, at which the search ends; adding a million rates is hardly more exact
ROUNDING = 1e-12  # of the sum, by which bounds may miss it: rates that lie on a bound add up to no exact number
_MISSED = 1e-9  # of the sum; more than that is missed only if numbers have left the range of what is finite
_PATIENCE = 8  # Newton steps before every second step halves the corners
_ROUNDS = 24  # in which places over all orders of magnitude that numbers have are brought near zero, 15 digits a time
_PASSES = 1000  # never reached: halving the corners takes about twice the logarithm of their number
_NAMES = ("low", "high", "total")


@compiled
def _corner(place: Floats, first: float, last: float, low: float, high: float, salt: int) -> float:
    """One of the corners between `low` and `high`, as good as at random; NaN if there is none."""
    count = 0
    for k in range(place.size):
        count += low < first - place[k] < high
        count += low < last - place[k] < high
    if count == 0:
        return math.nan
    left = (salt + 1) * 2_654_435_761 % count
    for k in range(place.size):
        for corner in (first - place[k], last - place[k]):
            if low < corner < high:
                if left == 0:
                    return float(corner)
                left -= 1
    return math.nan


@compiled
def _fill(curve: int, place: Floats, shift: float, first: float, last: float, out: Floats) -> tuple[float, float]:
    """(sum of the rates at this shift, minus its slope)."""
    total, slope = 0.0, 0.0
    for k in range(place.size):
        v = place[k] + shift
        inside = first < v < last
        v = min(max(v, first), last)
        x = 1.0 / v if curve == BARRIER else -v
        out[k] = x
        total += x
        if inside:
            slope += x * x if curve == BARRIER else 1.0
    return total, slope


@compiled
def _search(
    curve: int, place: Floats, ends: tuple[float, float, float, float], start: float, total: float, out: Floats
) -> float:
    """Fill `out` with rates of this total; the shift that gives them. `ends`: of v, and of the shift."""
    first, last, low, high = ends
    shift = min(max(start, low), high)
    for count in range(_PASSES):
        found, slope = _fill(curve, place, shift, first, last, out)
        missing = found - total
        if abs(missing) <= TOLERANCE * total:
            break
        if missing > 0.0:
            low = shift
        else:
            high = shift
        after = shift + missing / slope if slope > 0.0 else math.nan
        trusted = low < after < high
        if not trusted or (count >= _PATIENCE and count % 2 == 0):
            corner = _corner(place, first, last, low, high, count)
            if corner == corner:
                after = corner
            elif not trusted:
                after = low + 0.5 * (high - low)
        if not low < after < high:  # no number lies between them
            break
        shift = after
    return shift


@compiled
def solve(curve: int, place: Floats, low: float, high: float, total: float, start: float, out: Floats) -> None:
    """The rates between `low` and `high` with this total, from their places; `place` is used up.

    A shift is only as fine as its own size lets it be. So it is added to the places, and what is left is searched for
    again, near zero, where numbers are dense.
    """
    count = place.size
    first, last = (1.0 / high, 1.0 / low) if curve == BARRIER else (-high, -low)
    mean = count / total if curve == BARRIER else -total / count
    least, most = place[0], place[0]
    for k in range(count):
        least, most = min(least, place[k]), max(most, place[k])
    below, above = mean - most, mean - least
    fine = False
    for nth in range(_ROUNDS):
        if nth >= 3 and fine:
            return
        fine = above <= max(abs(first), abs(last))  # what this round searches is no wider than the rates' own scale
        shift = _search(curve, place, (first, last, below, above), start, total, out)
        found = 0.0
        for k in range(count):
            found += out[k]
        if abs(found - total) <= TOLERANCE * total:
            return
        for k in range(count):
            place[k] += shift
        above = 1e-15 * (abs(shift) + abs(below) + abs(above))
        below, start = -above, 0.0


def check_set(count: int, low: float, high: float, total: float, names: Names = _NAMES) -> None:
    """ConfigError unless some rates between the bounds have this total; it names the bound that is in the way."""
    for name, value in zip(names, (low, high, total), strict=True):
        number(name, value, above=True)
    if low > high:
        raise ConfigError(f"{names[0]} = {low:g} is above {names[1]} = {high:g}.", hint=f"Lower {names[0]}.")
    if count * low > total * (1.0 + ROUNDING):
        raise ConfigError(
            f"{names[0]} = {low:g} is too high: {count:,} times that is {count * low:g}, more than the {total:g} "
            f"of {names[2]}.",
            hint=f"Lower {names[0]} to {total / count:g} or less, or raise {names[2]}.",
        )
    if count * high < total * (1.0 - ROUNDING):
        raise ConfigError(
            f"{names[1]} = {high:g} is too low: {count:,} times that is {count * high:g}, less than the {total:g} "
            f"of {names[2]}.",
            hint=f"Raise {names[1]} to {total / count:g} or more, or lower {names[2]}.",
        )


def mirror_step(
    rates: ArrayLike, gradient: ArrayLike, *, eta: float, low: float, high: float, total: float | None = None
) -> Floats:
    """The x that minimises η⟨x, g⟩ + Σ(−log(x/r) + x/r − 1) over low ≤ x ≤ high, Σx = total (by default Σr).

    >>> mirror_step([1.0, 1.0], [-1.0, 0.0], eta=0.5, low=0.1, high=4.0).round(6).tolist()
    [1.236068, 0.763932]
    """
    now, slope = _columns(rates=rates, gradient=gradient)
    eta = number("eta", eta)
    if not (now > 0.0).all():
        raise ConfigError("rates must be above 0.", hint="Start from the uniform rates, total / count.")
    wanted = float(now.sum()) if total is None else number("total", total, above=True)
    with np.errstate(over="ignore", invalid="ignore"):
        place = 1.0 / now + eta * slope
        squares = now * now
        # To first order, for small steps; the search is safe from any start.
        start = -eta * float(squares @ slope) / float(squares.sum())
    return _solved(BARRIER, place, low, high, wanted, start)


def project(point: ArrayLike, *, low: float, high: float, total: float) -> Floats:
    """The nearest x to a point with low ≤ x ≤ high and Σx = total.

    >>> project([3.0, 1.0, 0.0], low=0.5, high=2.0, total=3.0).tolist()
    [2.0, 0.5, 0.5]
    """
    place = -_column("point", point)
    total = number("total", total, above=True)
    with np.errstate(over="ignore", invalid="ignore"):
        start = -(float(place.sum()) + total) / place.size
    return _solved(EUCLID, place, low, high, total, start)


def _column(name: str, given: Any) -> Floats:
    try:
        found = np.array(given, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name} must be numbers, not {given!r:.40}.", hint="Give one number an arm.") from None
    if not found.size:
        raise ConfigError(f"{name} must have one number at least.", hint="Give one number an arm.")
    return found


def _columns(*, rates: Any, gradient: Any) -> tuple[Floats, Floats]:
    first, second = _column("rates", rates), _column("gradient", gradient)
    if first.shape != second.shape or first.ndim != 1:
        raise ConfigError(
            f"rates and gradient must be of one length, not {first.shape} and {second.shape}.",
            hint="Give one number an arm.",
        )
    return first, second


def _solved(curve: int, place: Floats, low: float, high: float, total: float, start: float) -> Floats:
    check_set(place.size, low, high, total)
    if not np.isfinite(place).all():
        raise _not_finite()
    out = np.empty(place.size)
    for bound in (low, high):  # the only rates there are
        if abs(place.size * bound - total) <= ROUNDING * total:
            out.fill(bound)
            return out
    solve(curve, place, low, high, total, start if math.isfinite(start) else 0.0, out)
    if not abs(float(out.sum()) - total) <= _MISSED * total:
        raise _not_finite()
    return out


def _not_finite() -> ConfigError:
    return ConfigError("Some numbers of the step are not finite.", hint="Lower eta, or bound the costs.")
