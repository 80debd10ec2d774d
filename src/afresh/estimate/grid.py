"""The plain estimator: the whole posterior of a page's change rate, on a grid, with a prior that all pages share.

It is exact where it can be and small enough to read: P(changed) = 1 − exp(−(α·elapsed + b·signals)), with α from a
grid of silent rates for every page and b, what one signal is worth, from a grid for all pages together. The prior over
α starts broad and becomes the average of what the pages turned out to be (empirical Bayes), so a page never crawled is
believed to be like the others. What was seen fades with every crawl and with time, and belief goes back towards that.
"""

import struct
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt

import numpy as np
import numpy.typing as npt

from afresh.checks import moment, number, require_kinds, whole
from afresh.errors import ConfigError
from afresh.estimate.base import MAX_RATE, amount, bounded, check_wanted, checked_rate
from afresh.estimate.popularity import Popularity
from afresh.estimate.requests import MEMORY as REQUESTS
from afresh.estimate.requests import faded, ordinary_share, request_rate
from afresh.types import Beliefs, Importance

Floats = npt.NDArray[np.float64]

DECADES = 5.0  # the grid reaches this far to either side of the typical rate
POINTS = 41
PRIOR_SHAPE = 0.5  # of the first guess, a Gamma distribution: anything goes, over two orders of magnitude
CRAWL_MEMORY = 0.98  # what a crawl leaves of what was known before it
MEMORY = 100.0  # typical intervals, in which what was known fades to 1/e
USUAL_FADE = 0.999  # a crawl, of the usual time between two of them
MIN_SHAPE, MAX_SHAPE = 0.05, 50.0
LEAST_GUESS = 1e-6  # against the likeliest rate: pages far faster than typical are not ruled out
PRIOR_PAGES = 2.0  # how many pages' worth the first guess weighs
SHORTEST_WATCH = 0.01  # typical intervals; a first signal right after the start does not mean signals without end
SIGNAL_WEIGHTS = np.concatenate([[0.0], np.geomspace(0.05, 10.0, 20)])
MAX_ELAPSED, MAX_SIGNALS, MAX_REQUESTS = 1e15, 1e9, 1e15
_HEADER = struct.Struct("<8d")
_OLD_HEADER = struct.Struct("<6d")  # before requests faded
_UNSEEN = bytes(4 * POINTS)  # the likelihoods of a page that was never observed, as they are kept


@dataclass(slots=True)
class _Page:
    added: float
    importance: Importance | None = None
    popularity: float = 1.0
    requests: float = 0.0  # a count that fades slowly
    burst: float = 0.0  # and one that fades fast
    asked: float = 0.0  # when they were brought up to date
    group: int = 0  # of pages like it, for their requests
    signals: float = 0.0
    observations: int = 0
    likelihood: Floats = field(default_factory=lambda: np.zeros(POINTS))  # log, of each silent rate
    posterior: Floats | None = None  # what this page last gave to the shared prior


class Grid:
    """Change rate, signal quality and request rate of each page.

    `typical_rate` is the first guess of how often a page changes: any guess within a few orders of magnitude will do,
    such as the rate at which the budget could visit every page.
    """

    def __init__(self, *, typical_rate: float = 1 / 86400) -> None:
        self.typical_rate = typical_rate = checked_rate(typical_rate)
        self.rates = typical_rate * np.logspace(-DECADES, DECADES, POINTS)
        guess = (self.rates / typical_rate) ** PRIOR_SHAPE * np.exp(-PRIOR_SHAPE * self.rates / typical_rate)
        guess = np.maximum(guess, LEAST_GUESS * guess.max())
        self._mass = PRIOR_PAGES * guess / guess.sum()  # the prior, as a number of pages at each rate
        self._signal_likelihood = -0.5 * (SIGNAL_WEIGHTS / 5.0) ** 2  # log; a mild doubt that signals say much
        self._signal_bytes: bytes | None = None  # the same as it is kept, found anew when it has changed
        self._signal_weight = self._mean_signal_weight()
        # Of a page that was never observed, while the prior stays as it is.
        self._unseen_rate: tuple[float, float] | None = None
        self._signal_crawls = 0.0  # that taught this
        self._usual = 0.0  # seconds between two crawls of a page
        self._pages: dict[int, _Page] = {}
        self._popularity = Popularity()
        self._counted_since = inf  # where logs reach further back than pages are watched

    def add(
        self,
        slot: int,
        *,
        now: float,
        importance: Importance | None = None,
        popularity: float | None = None,
        learned: bytes = b"",
        kin: tuple[str, ...] = (),
    ) -> None:
        """Start to learn about a page, or go on from what `learned` of it before; kin matter for requests."""
        slot, now = whole("slot", slot), moment("now", now)
        require_kinds((learned, bytes, "learned"))
        check_wanted(importance, popularity)
        page = _Page(added=now, asked=now)
        if learned:
            self._restore(page, learned)
        self._pages[slot] = page
        self.told(slot, importance=importance, popularity=popularity)
        page.group = self._popularity.group(kin)
        requests = faded(page.requests, now - page.asked, REQUESTS.slow)
        self._popularity.add(page.group, now, since=self._since(page), requests=requests)
        if page.observations:
            self._share(page)

    def told(self, slot: int, *, importance: Importance | None, popularity: float | None) -> None:
        """The operator says something else of the page from now on."""
        check_wanted(importance, popularity)
        page = self._known(slot)
        page.importance, page.popularity = importance, 1.0 if popularity is None else popularity

    def requests_since(self, moment: float) -> None:
        """Requests are counted since this moment, also those of pages that were added later."""
        moment = bounded("moment", moment)
        before, self._counted_since = self._counted_since, min(self._counted_since, moment)
        for page in self._pages.values():  # their groups were watched for longer, too
            was, requests = min(page.added, before), page.requests
            self._popularity.remove(page.group, page.asked, since=was, requests=requests)
            self._popularity.add(page.group, page.asked, since=self._since(page), requests=requests)

    def _known(self, slot: int) -> _Page:
        page = self._pages.get(slot)
        if page is None:
            raise ConfigError(f"slot must be one that was added, not {slot!r:.40}.", hint="Add the page first.")
        return page

    def _since(self, page: _Page) -> float:
        return min(page.added, self._counted_since)

    def _restore(self, page: _Page, learned: bytes) -> None:
        size = len(learned) - 4 * (POINTS + len(SIGNAL_WEIGHTS))
        if size not in (_HEADER.size, _OLD_HEADER.size):
            return  # written by another estimator: start again rather than misread it
        header = _HEADER if size == _HEADER.size else _OLD_HEADER
        page.added, page.requests, page.signals, observations, typical_rate, signal_crawls, *more = header.unpack_from(
            learned
        )
        if more:
            page.burst, page.asked = more
        page.observations = int(observations)
        numbers = np.frombuffer(learned, "<f4", offset=size).astype(np.float64)
        kept, signal_likelihood = numbers[:POINTS], numbers[POINTS:]
        if signal_crawls > self._signal_crawls:
            # What all pages know of signals is kept with each: the latest word of it is the one with most crawls.
            self._signal_crawls, self._signal_likelihood = signal_crawls, signal_likelihood
            self._signal_bytes = None
            self._signal_weight = self._mean_signal_weight()
        # It was learned on the grid of that time, which need not be this one's.
        then = np.log(typical_rate) + np.log(self.rates / self.typical_rate)
        same = typical_rate == self.typical_rate
        page.likelihood = kept if same else np.interp(np.log(self.rates), then, kept)

    def learned(self, slot: int) -> bytes:
        """All that was learned of the page, for `add` after a restart."""
        page = self._pages[slot]
        head = _HEADER.pack(
            *(page.added, page.requests, page.signals, page.observations, self.typical_rate, self._signal_crawls),
            *(page.burst, page.asked),
        )
        if self._signal_bytes is None:
            self._signal_bytes = self._signal_likelihood.astype("<f4").tobytes()
        return head + (page.likelihood.astype("<f4").tobytes() if page.observations else _UNSEEN) + self._signal_bytes

    def crawled(self, slot: int, *, elapsed: float, signals: float, changed: bool) -> None:
        """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
        page = self._known(slot)
        elapsed = min(number("elapsed", elapsed), MAX_ELAPSED)
        signals = min(number("signals", signals), MAX_SIGNALS)
        if signals:
            silent = self._silent_rate(page)[0] * elapsed
            self._signal_likelihood += _log_probability(silent + SIGNAL_WEIGHTS * signals, changed)
            self._signal_likelihood -= self._signal_likelihood.max()
            self._signal_bytes = None
            self._signal_weight = self._mean_signal_weight()
            self._signal_crawls += 1
        self._usual += (1.0 - USUAL_FADE) * (elapsed - self._usual)
        page.likelihood *= CRAWL_MEMORY * exp(-elapsed / (MEMORY * max(1.0 / self.typical_rate, self._usual)))
        page.likelihood += _log_probability(self.rates * elapsed + self._signal_weight * signals, changed)
        page.likelihood -= page.likelihood.max()
        page.observations += 1
        self._share(page)

    def glance(self) -> tuple[int, ...]:
        """None: whatever is seen of a page takes its place in the prior of all at once."""
        return ()

    def signalled(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """A hint arrived."""
        self._known(slot).signals += min(max(amount("count", count), 0.0), MAX_SIGNALS)
        if now is not None:
            bounded("now", now)

    def requested(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """Somebody asked for the page."""
        page = self._known(slot)
        count, now = min(max(amount("count", count), 0.0), MAX_REQUESTS), None if now is None else bounded("now", now)
        if now is not None and now > page.asked:
            page.requests = faded(page.requests, now - page.asked, REQUESTS.slow)
            page.burst = faded(page.burst, now - page.asked, REQUESTS.fast)
            page.asked = now
        late = 0.0 if now is None else max(page.asked - now, 0.0)  # what came before others that are counted
        page.burst += faded(count, late, REQUESTS.fast)
        count = faded(count, late, REQUESTS.slow)
        count *= ordinary_share(page.requests, page.burst, page.asked - self._since(page))
        page.requests += count
        self._popularity.ask(page.group, count, page.asked)

    def beliefs(self, slot: int, now: float) -> Beliefs:
        """What is believed of the page now."""
        page, now = self._known(slot), bounded("now", now)
        watched = max(now - page.added, 0.0)
        # The signal rate γ is counted; b = log(γ/ν) then splits it into false signals and signalled changes.
        signal_rate = page.signals / (watched + SHORTEST_WATCH / self.typical_rate)
        false_rate = signal_rate * exp(-self._signal_weight)
        silent_rate, shape = self._silent_rate(page)
        change_rate = silent_rate + signal_rate - false_rate
        return Beliefs(
            request_rate=self._request_rate(page, now),
            change_rate=change_rate,
            recall=(signal_rate - false_rate) / change_rate,
            false_rate=false_rate,
            shape=shape,
            observations=page.observations,
        )

    def fresh_probability(self, slot: int, elapsed: float, signals: float) -> float:
        """How likely a copy of this age is to be current, over all rates that the page may have."""
        posterior = self._posterior(self._known(slot))
        elapsed, signals = max(number("elapsed", elapsed, least=-inf), 0.0), number("signals", signals)
        fresh = float(posterior @ np.exp(-self.rates * elapsed - self._signal_weight * signals))
        return min(fresh, 1.0)

    def remove(self, slot: int) -> None:
        """Forget the page."""
        page = self._pages.pop(slot)
        self._popularity.remove(page.group, page.asked, since=self._since(page), requests=page.requests)
        if page.posterior is not None:
            self._mass -= page.posterior
            self._unseen_rate = None

    def _share(self, page: _Page) -> None:
        """Let the page's posterior take its place in the prior of all."""
        self._unseen_rate = None
        posterior = self._posterior(page)
        if page.posterior is not None:
            self._mass -= page.posterior
        self._mass += posterior
        page.posterior = posterior

    def _posterior(self, page: _Page) -> Floats:
        # The prior is what the others are like: a page that took part in its own prior would count its crawls twice.
        others = self._mass if page.posterior is None else self._mass - page.posterior
        weight: Floats = np.maximum(others, 1e-12) * np.exp(page.likelihood)
        return np.asarray(weight / weight.sum())

    def _silent_rate(self, page: _Page) -> tuple[float, float]:
        """(mean, shape) of the Gamma distribution closest to what the page may be: of the same mean and mean log."""
        if page.observations:
            return self._closest(page)
        if self._unseen_rate is None:
            self._unseen_rate = self._closest(page)
        return self._unseen_rate

    def _closest(self, page: _Page) -> tuple[float, float]:
        posterior = self._posterior(page)
        mean = float(posterior @ self.rates)
        return mean, _shape(log(mean) - float(posterior @ np.log(self.rates)))

    def _mean_signal_weight(self) -> float:
        weight = np.exp(self._signal_likelihood - self._signal_likelihood.max())
        return float(weight @ SIGNAL_WEIGHTS / weight.sum())

    def _request_rate(self, page: _Page, now: float) -> float:
        """Counted requests, drawn towards the average of its siblings; all equal while none was seen."""
        if page.importance is not None and not page.importance.times:
            return page.importance.value
        elapsed = now - page.asked
        rate = request_rate(
            faded(page.requests, elapsed, REQUESTS.slow),
            faded(page.burst, elapsed, REQUESTS.fast),
            now - self._since(page),
            self._popularity.average(page.group, now),
            popularity=page.popularity,
        )
        return min(rate if page.importance is None else page.importance.of(rate), MAX_RATE)


def _shape(gap: float) -> float:
    """The shape of the Gamma distribution whose log of the mean exceeds its mean log by `gap`, within 1.5 %."""
    gap = max(gap, 1e-9)
    shape = (3.0 - gap + sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    return min(max(shape, MIN_SHAPE), MAX_SHAPE)


def _log_probability(x: Floats, changed: bool) -> Floats:
    """log of 1 − exp(−x) if it changed, of exp(−x) if not; bounded, so that one odd crawl cannot rule a rate out."""
    if changed:
        return np.maximum(np.log(-np.expm1(-np.maximum(x, 1e-12))), -12.0)
    return np.maximum(-x, -12.0)
