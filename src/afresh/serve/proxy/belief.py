"""Own policy: a copy is handed out while it is probably fresh, whatever lifetime its origin named.

Several views of a page are held at once: that it changes at a steady rate; that it does, with a short memory; that what
changed long ago will stay for long (the chance of a change is as one over the time since the last); and what the
runner's crawls have shown, where it crawls the page. Which of them foretells best is learned for each host, and their
mixture decides.

A page without history has what is known of its host (`population`): its pages differ, and so does how far their
lifetimes hold. A Last-Modified says for how long the page was silent, with the probability that the host's dates move
when its pages change.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, expm1, inf, log, log1p

from afresh.serve.proxy.population import Population
from afresh.types import Beliefs

UNKNOWN_LIFETIME = 600.0  # of a page whose origin says nothing
SHORTEST_LIFETIME = 1.0
LONGEST_LIFETIME = 30 * 86400.0
MEMORIES = (20.0, 2.0)  # changes and confirmations that the two steady views remember
VIEWS = len(MEMORIES) + 2
CRAWLS_FIRST = 3.0  # log score that the view from crawls has beforehand
FORGETTING = 0.995  # of how well the views foretold, at each question
LEAST_SAID = 1e-3  # no view is ever surer than that
MOST_HOSTS = 10_000
FOREVER = 4e9  # seconds
SHORTEST_SECONDS = 1e-3


@dataclass(slots=True)
class Host:
    """What is known of a host: how its lifetimes, its dates and our views of its pages have fared."""

    pages: Population = field(default_factory=Population)  # those of which only the lifetime is known
    foretold: tuple[float, ...] = (*(0.0,) * (VIEWS - 1), CRAWLS_FIRST)  # log scores of the views
    right: float = 2.0  # how often its dates moved as its pages did
    wrong: float = 0.5

    @property
    def dated(self) -> bool:
        """Whether its dates are to be believed."""
        return self.right > 2.0 * self.wrong

    @property
    def date_trust(self) -> float:
        """How probably a date of it tells when a page changed last."""
        return self.right / (self.right + self.wrong)

    def weights(self, *, crawled: bool, alone: bool) -> tuple[float, ...]:
        """How much each view counts, together 1; `crawled`: there is one from crawls; `alone`: we know nothing else."""
        some = self.foretold if crawled else self.foretold[:-1]
        top = max(some)
        found = [0.0 if crawled and alone and nth < VIEWS - 1 else exp(score - top) for nth, score in enumerate(some)]
        total = sum(found) or 1.0
        return tuple(each / total for each in (*found, *(0.0,) * (VIEWS - len(found))))


class Trust:
    """What is known of hosts.

    >>> trust = Trust()
    >>> for _ in range(50):
    ...     trust.saw("a.example", lifetime=60.0, elapsed=600.0, changed=False)
    >>> trust.factor("a.example") < 0.05 < 0.8 < trust.factor("b.example") < 1.3
    True
    """

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    def host(self, name: str) -> Host:
        """What is known of a host, to be added to; the one not asked about for longest is forgotten first."""
        found = self._hosts.pop(name, None)
        if found is None:
            if len(self._hosts) >= MOST_HOSTS:
                del self._hosts[next(iter(self._hosts))]
            found = Host()
        self._hosts[name] = found
        return found

    def factor(self, name: str) -> float:
        """k of a host's pages, on average of its logarithm, by what has been seen of them; 1 where nothing has."""
        found = self._hosts.get(name)
        return 1.0 if found is None else found.pages.typical

    def saw(self, name: str, lifetime: float, elapsed: float, *, changed: bool) -> None:
        """A copy of which only its lifetime was known was asked about after so many seconds."""
        self.host(name).pages.saw(max(elapsed, 1e-3) / bounded(lifetime), changed=changed)

    def knows(self, name: str, lifetime: float, beliefs: Beliefs) -> None:
        """A page of a host is known from crawls: the next one of that host may be like it."""
        self.host(name).pages.knows(beliefs.change_rate * bounded(lifetime), beliefs.shape)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the views say of one page. The chance of no change in x seconds is (1 + x/time)^-shape for the steady ones,
    and silent/(silent + x) for the next.
    """

    shapes: tuple[float, ...]
    times: tuple[float, ...]
    silent: float  # seconds without a change, when it was last confirmed
    weights: tuple[float, ...]
    checks: int = 0
    crawled: Beliefs | None = None  # what the runner believes, where it crawls the page

    def views(self, elapsed: float) -> tuple[float, ...]:
        """The chance of no change in so many seconds, by each view."""
        steady = [(1.0 + elapsed / time) ** -shape for shape, time in zip(self.shapes, self.times, strict=True)]
        by_crawls = 1.0 if self.crawled is None else self.crawled.freshness(elapsed, 0)
        return (*steady, self.silent / (self.silent + elapsed), by_crawls)

    def freshness(self, elapsed: float, signals: int = 0) -> float:
        """How probably a copy that was confirmed so many seconds ago is fresh; the runner knows what signals mean."""
        mixed = sum(weight * each for weight, each in zip(self.weights, self.views(elapsed), strict=True))
        if signals and self.crawled is not None:
            mixed *= exp(-self.crawled.signal_weight * signals)
        return mixed

    def area(self, elapsed: float) -> float:
        """The integral of the freshness over so many seconds: how long of them it is fresh on average."""
        steady = [_area(shape, time, elapsed) for shape, time in zip(self.shapes, self.times, strict=True)]
        by_crawls = elapsed
        if self.crawled is not None and self.crawled.silent_rate > 0:
            shape, rate = self.crawled.shape, self.crawled.silent_rate
            by_crawls = -expm1(-rate * elapsed) / rate if shape == inf else _area(shape, shape / rate, elapsed)
        areas = (*steady, self.silent * log1p(elapsed / self.silent), by_crawls)
        return sum(weight * each for weight, each in zip(self.weights, areas, strict=True))

    def good_for(self, threshold: float, signals: int = 0, request_rate: float = 0.0) -> float:
        """For how many seconds it is handed out: until asking gains as much as a fetch must, 1 - threshold.

        A reader gains 1 - p by it, and those who come after the crawl value of the page, which is small where few come.
        So nothing is handed out that is fresh with less than the threshold; what many ask for is asked about sooner.
        """
        if threshold <= 0:
            return inf
        told = exp(-self.crawled.signal_weight * signals) if signals and self.crawled is not None else 1.0

        def kept(elapsed: float) -> float:
            fresh = self.freshness(elapsed)
            return told * (fresh - request_rate * (self.area(elapsed) - elapsed * fresh))

        return _falls_below(kept, threshold, self.silent)

    def after(self, host: Host, elapsed: float, *, changed: bool, silent: float | None) -> "Outlook":
        """What is said once somebody has looked again after so many seconds.

        `silent`: for how long the page has been as it is now, where a date that is believed says so.
        """
        shapes, times = [], []
        dated = not self.checks and self.weights[len(MEMORIES)] > 0.0  # what its date said begins to count for all
        for shape, time, memory in zip(self.shapes, self.times, MEMORIES, strict=True):
            if dated and host.dated:
                shape, time = shape + 1.0, time + self.silent
            if not changed:
                after = shape, time + elapsed
            elif silent is not None:
                after = shape + 1.0, time + silent
            else:
                after = _some_change(shape, time, elapsed)
            fading = min(memory / after[0], 1.0)
            shapes.append(after[0] * fading)
            times.append(after[1] * fading)
        known = silent if silent is not None else elapsed / 2 if changed else self.silent + elapsed
        weights = host.weights(crawled=self.crawled is not None, alone=False)
        return Outlook(tuple(shapes), tuple(times), max(known, 1.0), weights, self.checks + 1, self.crawled)

    def told(self, host: Host, crawled: Beliefs | None) -> "Outlook":
        """The same, with what the runner believes at its crawl."""
        if crawled is None:
            return self
        weights = host.weights(crawled=True, alone=not self.checks)
        return Outlook(self.shapes, self.times, self.silent, weights, self.checks, crawled)

    def heard(self, crawled: Beliefs | None) -> "Outlook":
        """The same, with what signals of the page mean. Between two looks what is said of a page only falls."""
        if self.crawled is not None or crawled is None:
            return self
        return Outlook(self.shapes, self.times, self.silent, self.weights, self.checks, crawled)

    def foretold(self, host: Host, elapsed: float, *, changed: bool) -> None:
        """Score the views by what was found after so many seconds."""
        likely = [min(max(each, LEAST_SAID), 1.0 - LEAST_SAID) for each in self.views(elapsed)]
        if self.crawled is None:
            likely[-1] = self.freshness(elapsed)  # who says nothing gains and loses nothing beside the others
            likely[-1] = min(max(likely[-1], LEAST_SAID), 1.0 - LEAST_SAID)
        host.foretold = tuple(
            score * FORGETTING + log(1.0 - each if changed else each)
            for score, each in zip(host.foretold, likely, strict=True)
        )


def _some_change(shape: float, time: float, elapsed: float) -> tuple[float, float]:
    """Shape and time after at least one change in `elapsed` seconds: mean and variance of the rate are kept exactly."""
    longer = log1p(elapsed / time)
    some = -expm1(-shape * longer)
    mean = shape / time * -expm1(-(shape + 1.0) * longer) / some
    square = shape * (shape + 1.0) / time**2 * -expm1(-(shape + 2.0) * longer) / some
    variance = max(square - mean * mean, 1e-3 * mean * mean)
    return mean * mean / variance, mean / variance


def _area(shape: float, time: float, elapsed: float) -> float:
    """The integral of (1 + x/time)^-shape."""
    if abs(shape - 1.0) < 1e-6:
        return time * log1p(elapsed / time)
    return time / (shape - 1.0) * -expm1((1.0 - shape) * log1p(elapsed / time))


def _falls_below(falling: Callable[[float], float], threshold: float, near: float) -> float:
    """Where a falling function goes below the threshold, to a part in two hundred; it is looked for near a place."""
    low = high = near
    while falling(high) > threshold:
        low, high = high, 2.0 * high
        if high > FOREVER:
            return inf
    while low == high or falling(low) <= threshold:
        low, high = low / 2.0, low
        if high < SHORTEST_SECONDS:
            return 0.0
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > threshold else (low, middle)
    return low


def bounded(lifetime: float) -> float:
    """A lifetime as far as it makes sense."""
    return min(max(lifetime, SHORTEST_LIFETIME), LONGEST_LIFETIME)


def at_first(host: Host, lifetime: float | None, silent: float | None) -> Outlook:
    """What is said of a page without history: by its host's pages, and by how long it was silent, if that is told.

    >>> host = Trust().host("a.example")
    >>> round(at_first(host, 60.0, None).good_for(0.5), -1), round(at_first(host, None, 3600.0).good_for(0.5), -2)
    (60.0, 2900.0)
    """
    seconds = bounded(UNKNOWN_LIFETIME if lifetime is None else lifetime)
    shape, half = host.pages.spread
    time, known = seconds * half / (2.0 ** (1.0 / shape) - 1.0), seconds * half
    trust = 0.0
    if silent is not None:
        known, trust = max(silent, 1.0), host.date_trust
    each = (1.0 - trust) / len(MEMORIES)
    weights = (*(each,) * len(MEMORIES), trust, 0.0)
    return Outlook((shape,) * len(MEMORIES), (time,) * len(MEMORIES), known, weights)
