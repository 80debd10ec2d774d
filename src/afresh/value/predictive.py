"""What a crawl is worth when the silent rate is not known: its value over all rates that the page may have.

The silent rate α is taken to be Gamma distributed, with its mean and its shape A; infinity stands for a rate that is
known exactly. A copy with n signals since its fetch is then fresh with probability

    F = (1 + α·elapsed/A)^(−A) · e^(−b·n) = e^(−x),    x = A·log(1 + α·elapsed/A) + b·n

so x, the staleness, plays the part that it has in `kernels`: a page is crawled when x reaches its threshold. Silence
takes T(x) = (A/α)·(e^(x/A) − 1) seconds to get there. With n signals the threshold is reached at T(x − b·n), so the
expected time between crawls, and the value of a crawl, are

    ψ(x) = (1/γ)·Σ_n R_n(γ·T(x − b·n)),    V(x) = w − e^(−x)·ψ = ∫₀ˣ e^(−u)·ψ(u) du

which is `kernels`' V where A is infinite. The mean is ruled by rates that are not excluded yet, so V has a long tail:
for A ≤ 1 it grows without bound: a page about which little is known is worth a crawl in the end, whatever the price.
`resting` adds what a crawl gains because no rate lasts for ever; that is what the schedule uses.

Without signals all of it has a closed form. With signals V is a sum over Gauss's nodes: within a few thousandths where
signals are about as frequent as silent changes, and a few hundredths where they are far more so.
"""

import math

import numpy as np

from afresh.value.compiled import compiled
from afresh.value.kernels import page_curve

NO_COPY = 1e300  # seconds; the age of what has no copy yet: finite, so that rates times ages never become 0·∞
NO_COPY_AGE = 1e3  # its age where the rate is uncertain, in units of A/α: V may have no limit, and must have a value
MAX_GROWTH = 300.0  # of an exponent: its square and a few factors beyond must not overflow
NEARLY_EXACT = 1e7  # a shape from which on the rate counts as known
_INAUDIBLE = 1e-9  # signals that are so much rarer than silent changes do not move V
_MAX_TERMS = 12  # signals below a threshold, if each says little; more of them act like a drift
_SAYS_LITTLE = 0.2  # a weight up to which that is so
STALEST_HEARD = 12.0  # staleness that signals add at most, and beyond which V counts as reached where they are heard
_LEAST_PANEL, _MOST_PANEL = 0.5, 2.0  # staleness up to which the first panel of nodes reaches
_TINY = 1e-3
_X, _W = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 * (_X + 1.0), 0.5 * _W  # on the interval from 0 to 1
_X, _W = np.polynomial.legendre.leggauss(2)
_FEW_NODES, _FEW_WEIGHTS = 0.5 * (_X + 1.0), 0.5 * _W


@compiled
def told(signals: float, weight: float, shape: float) -> float:
    """What signals add to the staleness. Where the rate is uncertain, more of them say nothing once it is stale."""
    if not (signals > 0.0 and weight > 0.0):
        return 0.0
    return weight * signals if not shape < NEARLY_EXACT else min(weight * signals, STALEST_HEARD)


@compiled
def predictive_staleness(elapsed: float, signals: float, silent_rate: float, weight: float, shape: float) -> float:
    """x, such that the copy is fresh with probability e^(−x) over all silent rates that the page may have."""
    x = 0.0
    if silent_rate > 0.0:
        x = silent_rate * elapsed
        if shape < NEARLY_EXACT:
            x = shape * math.log1p(x / shape if elapsed < NO_COPY else NO_COPY_AGE)
    return x + told(signals, weight, shape)


@compiled
def silent_time(x: float, silent_rate: float, shape: float) -> float:
    """Seconds of silence after which a copy is this stale; infinity if time alone never makes it so."""
    if x <= 0.0:
        return 0.0
    if silent_rate <= 0.0:
        return math.inf
    if shape < NEARLY_EXACT:
        return shape / silent_rate * math.expm1(min(x / shape, MAX_GROWTH))
    return x / silent_rate


@compiled
def is_silent(silent_rate: float, signal_rate: float, weight: float) -> bool:
    """Whether a page sends no signal that counts."""
    return bool(weight <= 0.0 or signal_rate <= _INAUDIBLE * silent_rate)


@compiled
def climbs_stairs(x: float, weight: float) -> bool:
    """Whether signals are counted one by one on the way to this threshold; else they act like a drift."""
    return bool(x <= _MAX_TERMS * weight or weight >= _SAYS_LITTLE)


@compiled
def _silent_curve(x: float, silent_rate: float, shape: float) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) without signals, in closed form."""
    scale = shape / silent_rate
    s = min(x / shape, MAX_GROWTH)
    interval = scale * math.expm1(s)
    bend = (interval + scale) / shape
    if s < _TINY and x < _TINY:
        # The two parts of the difference below are nearly equal here: the first terms of their series.
        third, fourth = (0.5 - shape) / 3.0, (1.0 / 6.0 - 0.5 * shape + 0.5 * shape * shape) / 4.0
        return shape * scale * s * s * (0.5 + s * (third + s * fourth)), interval, bend
    rest = 1.0 - shape
    grown = s if abs(rest * s) < 1e-9 else math.expm1(min(rest * s, MAX_GROWTH)) / rest
    return scale * grown - interval * math.exp(-x), interval, bend


@compiled
def stairs(u: float, silent_rate: float, signal_rate: float, weight: float, shape: float) -> tuple[float, float]:
    """(ψ, dψ/dx) at a threshold that at most a few signals reach."""
    scale = shape / silent_rate
    grown = math.exp(min(u / shape, MAX_GROWTH))
    shrink = math.exp(-weight / shape)
    total, slope, n = 0.0, 0.0, 0
    while True:
        y = signal_rate * scale * (grown - 1.0)
        if y <= 0.0:
            break
        none = math.exp(-y)
        term, missed = none, none
        for k in range(1, n + 1):
            term *= y / k
            missed += term
        total += 1.0 - missed if n > 0 or y > 1e-3 else -math.expm1(-y)
        slope += term * grown
        grown *= shrink
        n += 1
        if u - n * weight <= 0.0:
            break
    return total / signal_rate, slope / silent_rate


@compiled
def _drifting_time(x: float, silent_rate: float, drift: float, shape: float) -> float:
    """When time and very many signals, each of which says little, make a copy this stale."""
    t = min(silent_time(x, silent_rate, shape), x / drift)
    for _ in range(50):
        through = 1.0 + silent_rate * t / shape
        step = (x - shape * math.log(through) - drift * t) / (silent_rate / through + drift)
        t = max(t + step, 0.5 * t)
        if abs(step) <= 1e-9 * t:
            break
    return t


@compiled
def _drift_value(x: float, end: float, silent_rate: float, drift: float, shape: float) -> float:
    """V of a page that is crawled at `end`, when it is x stale, without any chance in it."""
    # Over s with t = (A/α)·(e^s − 1) freshness falls smoothly, however long its tail is over t.
    scale = shape / silent_rate
    last, fresh = math.log1p(end / scale), 0.0
    for begin, until in ((0.0, 0.6), (0.6, 1.0)):
        length = (until - begin) * last
        for k in range(_NODES.size):
            s = begin * last + length * _NODES[k]
            fresh += length * _WEIGHTS[k] * scale * math.exp((1.0 - shape) * s - drift * scale * math.expm1(s))
    return max(fresh - end * math.exp(-x), 0.0)


@compiled
def _drifting_curve(
    x: float, silent_rate: float, signal_rate: float, weight: float, shape: float
) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) where signals are so frequent that their number is practically certain.

    The last signal carries a copy beyond its threshold, by half a weight if it was signals that got it there.
    """
    drift = signal_rate * weight
    end = _drifting_time(x, silent_rate, drift, shape)
    beyond = 0.5 * weight * drift / (silent_rate / (1.0 + silent_rate * end / shape) + drift)
    end = _drifting_time(x + beyond, silent_rate, drift, shape)
    bend = 1.0 / (silent_rate / (1.0 + silent_rate * end / shape) + drift)
    value = _drift_value(x + beyond, end, silent_rate, drift, shape)
    first = 0.5 * beyond * beyond / (silent_rate + drift)  # V of so little
    return math.exp(beyond) * max(value - first, 0.0), end, bend


@compiled
def gained_between(
    begin: float, end: float, silent_rate: float, signal_rate: float, weight: float, shape: float
) -> float:
    """How much more V is at one threshold than at another nearby, with signals."""
    gained = 0.0
    for k in range(_FEW_NODES.size):
        u = begin + (end - begin) * _FEW_NODES[k]
        gained += _FEW_WEIGHTS[k] * math.exp(-u) * stairs(u, silent_rate, signal_rate, weight, shape)[0]
    return gained * (end - begin)


@compiled
def predictive_curve(
    x: float, silent_rate: float, signal_rate: float, weight: float, shape: float
) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) at threshold x; dV/dx = e^(−x)·ψ. With signals, all of it is that at `STALEST_HEARD` beyond it."""
    if x <= 0.0 or silent_rate <= 0.0 or not shape < NEARLY_EXACT:
        return page_curve(x, silent_rate, signal_rate, weight)
    if is_silent(silent_rate, signal_rate, weight):
        return _silent_curve(x, silent_rate, shape)
    x = min(x, STALEST_HEARD)
    if not climbs_stairs(x, weight):
        return _drifting_curve(x, silent_rate, signal_rate, weight, shape)
    # ψ bends where one signal more is needed, so the first panel ends where one is enough.
    value, begin, end = 0.0, 0.0, min(x, max(_LEAST_PANEL, min(weight, _MOST_PANEL)))
    while True:
        for k in range(_NODES.size):
            u = begin + (end - begin) * _NODES[k]
            value += (end - begin) * _WEIGHTS[k] * math.exp(-u) * stairs(u, silent_rate, signal_rate, weight, shape)[0]
        if end >= x:
            break
        begin, end = end, min(x, 4.0 * end)
    interval, bend = stairs(x, silent_rate, signal_rate, weight, shape)
    return value, interval, bend
