"""Own policy: a copy is handed out while it is probably fresh, whatever lifetime its origin named.

What crawls have shown of a page is what counts. A page without history has its origin's word: a page with the
lifetime L is taken to change at k·ln 2/L, so that at the end of a lifetime that is to be believed (k = 1) half of such
copies are still fresh. How far a host's lifetimes can be trusted, k, is learned from what became of its copies.
"""

from math import exp, expm1, inf, log

from afresh.types import Beliefs

UNKNOWN_LIFETIME = 600.0  # of a page whose origin says nothing
SHORTEST_LIFETIME = 1.0
LONGEST_LIFETIME = 30 * 86400.0
PRIOR_SHAPE = 2.0  # how surely a page's rate is known from its lifetime alone: as from two observations
MOST_HOSTS = 10_000
_GRID = tuple(4.0 ** (step / 4.0) for step in range(-16, 17))  # k from 1/256 to 256
_WIDTH = 2.0  # of the prior of log₄ k


class Trust:
    """How far lifetimes of hosts can be trusted: a posterior of k on a grid for each.

    >>> trust = Trust()
    >>> for _ in range(50):
    ...     trust.saw("a.example", lifetime=60.0, elapsed=600.0, changed=False)
    >>> trust.factor("a.example") < 0.05 < 0.8 < trust.factor("b.example") < 1.3
    True
    """

    def __init__(self) -> None:
        self._hosts: dict[str, list[float]] = {}
        self._factors: dict[str, float] = {}

    def factor(self, host: str) -> float:
        """k, by what has been seen of a host; 1 where nothing has."""
        return self._factors.get(host, 1.0)

    def saw(self, host: str, lifetime: float, elapsed: float, *, changed: bool) -> None:
        """A copy was asked about after so many seconds."""
        logs = self._hosts.pop(host, None)
        if logs is None:
            logs = [-(((step - 16) / (4.0 * _WIDTH)) ** 2) / 2 for step in range(len(_GRID))]
            if len(self._hosts) >= MOST_HOSTS:
                oldest = next(iter(self._hosts))
                del self._hosts[oldest], self._factors[oldest]
        exposure = log(2.0) * max(elapsed, 1e-3) / bounded(lifetime)
        for place, k in enumerate(_GRID):
            logs[place] += log(max(-expm1(-k * exposure), 1e-12)) if changed else -k * exposure
        top = max(logs)
        logs = [each - top for each in logs]
        weights = [exp(each) for each in logs]
        self._hosts[host] = logs
        # The mean of log k: one host's k is between its smallest and its largest, not near the largest.
        self._factors[host] = exp(sum(w * log(k) for w, k in zip(weights, _GRID, strict=True)) / sum(weights))


def bounded(lifetime: float) -> float:
    """A lifetime as far as it makes sense."""
    return min(max(lifetime, SHORTEST_LIFETIME), LONGEST_LIFETIME)


def from_lifetime(lifetime: float, factor: float) -> Beliefs:
    """What is believed of a page that has no history."""
    return Beliefs(0.0, change_rate=factor * log(2.0) / bounded(lifetime), shape=PRIOR_SHAPE)


def good_for(beliefs: Beliefs, signals: int, threshold: float) -> float:
    """For how many seconds after it was confirmed a copy is fresh with this probability at least.

    >>> round(good_for(Beliefs(change_rate=0.01), 0, 0.5), 1), good_for(Beliefs(), 0, 0.5)
    (69.3, inf)
    """
    if threshold <= 0:
        return inf
    allowed = -log(threshold) - (beliefs.signal_weight * signals if signals else 0.0)
    if allowed <= 0:
        return 0.0
    rate = beliefs.silent_rate
    if rate <= 0:
        return inf
    if beliefs.shape < inf:
        allowed = beliefs.shape * expm1(min(allowed / beliefs.shape, 700.0))
    return allowed / rate
