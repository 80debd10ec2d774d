"""How long idle time lasts, and what an order of downloads is worth by that: the optimum to compare rules with.

While every document has concave value, the greatest flux is best however long the idle time lasts. For other curves the
best order depends on that: who has little time takes what pays at once. `best` finds it by trying everything.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike

from afresh.errors import ConfigError
from afresh.value.arguments import numbers
from afresh.value.curves import Curve
from afresh.value.downloads import Piece

MAX_STATES = 2_000_000


class Idle:
    """The share of idle times that last at least so long, from those that were seen.

    >>> idle = Idle([1.0, 2.0, 4.0, 4.0])
    >>> idle.lasts(0.0), idle.lasts(1.0), idle.lasts(3.0), idle.lasts(5.0)
    (1.0, 0.75, 0.5, 0.0)
    >>> idle.mean_within(2.0, 4.0)  # seconds of it, on average, between two moments
    1.0
    """

    def __init__(self, durations: ArrayLike) -> None:
        seen = np.sort(numbers("durations", durations).ravel())
        if not len(seen) or not np.isfinite(seen).all() or seen[0] < 0:
            raise ConfigError("Durations are at least one, and none is below 0 or infinite.", hint="In seconds.")
        self.durations = seen
        self._sums = np.concatenate([[0.0], np.cumsum(seen)])

    def lasts(self, seconds: float) -> float:
        """How probably idle time goes on after that long."""
        return 1.0 - float(np.searchsorted(self.durations, seconds, "right")) / len(self.durations)

    def mean_within(self, start: float, end: float) -> float:
        """The integral of `lasts`: the mean of min(duration, end) less that of min(duration, start)."""
        return self._mean_up_to(end) - self._mean_up_to(start)

    def _mean_up_to(self, seconds: float) -> float:
        shorter = int(np.searchsorted(self.durations, seconds, "right"))
        return float(self._sums[shorter] + seconds * (len(self.durations) - shorter)) / len(self.durations)

    def worth(self, pieces: Iterable[Piece], rate: float) -> float:
        """What an order gains on average at a rate of bytes a second; of a piece that is cut off, its share."""
        now = total = 0.0
        for piece in pieces:
            took = piece.size / rate
            total += piece.gain / took * self.mean_within(now, now + took)
            now += took
        return total


def best(
    documents: Mapping[str, tuple[float, Curve]], idle: Idle, *, rate: float, slice_bytes: float
) -> tuple[float, list[str]]:
    """What the best order in slices gains on average, and whose slice comes when. For a few small documents.

    >>> from afresh.value.curves import Linear
    >>> best({"a": (0.5, Linear(2.0)), "b": (0.4, Linear(1.0))}, Idle([1.0, 9.0]), rate=1.0, slice_bytes=1.0)
    (0.65, ['b', 'a', 'a'])
    """
    names = list(documents)
    steps = [_values(*documents[name], slice_bytes) for name in names]
    states = np.prod([float(len(values)) for values in steps])
    if states > MAX_STATES:
        raise ConfigError(f"There are {states:.0f} states, more than {MAX_STATES:,}.", hint="Take larger slices.")
    took = slice_bytes / rate
    shape = tuple(len(values) for values in steps)
    share = [idle.mean_within(at * took, (at + 1) * took) / took for at in range(sum(shape) - len(shape))]
    gained, chosen = np.zeros(shape), np.full(shape, -1)
    for state in product(*(range(length - 1, -1, -1) for length in shape)):  # those that follow a state come before it
        options = [
            (share[sum(state)] * (values[done + 1] - values[done]) + gained[_after(state, which)], which)
            for which, (values, done) in enumerate(zip(steps, state, strict=True))
            if done + 1 < len(values)
        ]
        if options:
            gained[state], chosen[state] = max(options, key=itemgetter(0))
    state, order = tuple(0 for _ in names), list[str]()
    while (which := int(chosen[state])) >= 0:
        order.append(names[which])
        state = _after(state, which)
    return float(gained[tuple(0 for _ in names)]), order


def _values(probability: float, curve: Curve, slice_bytes: float) -> list[float]:
    count = int(np.ceil(curve.size / slice_bytes - 1e-9))
    return [probability * curve.value(min(n * slice_bytes, curve.size)) for n in range(count + 1)]


def _after(state: tuple[int, ...], which: int) -> tuple[int, ...]:
    return (*state[:which], state[which] + 1, *state[which + 1 :])
