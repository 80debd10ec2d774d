"""Lifetimes that publishers name, as weak evidence on rates, as far as a host's have proved to say something.

A page with the lifetime L is taken to change at k·ln 2/L: at the end of a lifetime that is to be believed (k = 1) half
of such copies are still fresh. For each host k is learned from what crawls find: as a Gamma distribution, which a crawl
without a change moves by the time that it spans, and one with a change by how much it speaks for a higher rate. Hosts
that are not known yet are taken to be like the geometric mean of those that are.

Whether lifetimes tell pages apart is another question: beside k, each host has one rate for all its pages, and it is
counted by how many nats lifetimes foretell better than that. A lifetime weighs as much as that is likely.
"""

import json
import math
from collections import OrderedDict

KEPT = "lifetimes"  # under this name the store holds how far they can be trusted
MAX_HOSTS = 4_096  # that are graded apart; the longest unused are forgotten first
SHORTEST_LIFETIME, LONGEST_LIFETIME = 1.0, 10 * 365 * 86400.0  # seconds; what is named beyond says no more
MEMORY = 0.98  # what a graded crawl leaves of what was counted before
HOST_CRAWLS = 2.0  # changes' worth of all hosts, in what is thought of one
USUAL_HOSTS = 4.0  # hosts' worth of k = 1, in what is thought of all
LEAST_FACTOR, MOST_FACTOR = 1e-6, 1e6  # of k
DOUBT = -1.0  # log odds that lifetimes tell pages apart, before anything has shown it
MAX_NATS = 2.0  # that one crawl can prove
MAX_TRUST = 0.7  # a lifetime is nobody's observation
PROOF_CRAWLS = 4.0  # after so many graded crawls of a host its own word has half of its weight

# Of each host: the shape and the rate of k, those of the one rate of its pages, nats gained, graded crawls, log k.
SHAPE, RATE, OWN_SHAPE, OWN_RATE, SCORE, GRADED, LOG = range(7)


def bounded(lifetime: float) -> float:
    """A lifetime as far as it makes sense."""
    return min(max(lifetime, SHORTEST_LIFETIME), LONGEST_LIFETIME)


class Lifetimes:
    """How far the lifetimes of each host can be trusted.

    >>> lifetimes = Lifetimes()
    >>> for _ in range(50):
    ...     lifetimes.saw("a.example", lifetime=60.0, elapsed=600.0, changed=False)
    >>> lifetimes.factor("a.example") < 0.05 < 0.2 < lifetimes.factor("b.example") < 1.3
    True
    """

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, list[float]] = OrderedDict()
        self._logs = 0.0  # the sum of the hosts' log k
        self._score = 0.0  # nats gained, of all hosts

    def factor(self, host: str) -> float:
        """k, by what has been seen of a host; that of the others where nothing has; 1 where nothing was seen at all."""
        own, usual = self._hosts.get(host), self._usual()
        return usual if own is None else self._mean(own, usual)

    def trust(self, host: str) -> float:
        """The weight of a lifetime of this host, from 0 to `MAX_TRUST`."""
        own = self._hosts.get(host, _NOTHING)
        odds = DOUBT + min(max(self._score / 10.0, -2.0), 2.0) + own[SCORE]
        known = (own[GRADED] + 1.0) / (own[GRADED] + 1.0 + PROOF_CRAWLS)
        return MAX_TRUST * known / (1.0 + math.exp(-min(max(odds, -50.0), 50.0)))

    def age_of(self, host: str, lifetime: float) -> float:
        """The mean time between two changes of a page with this lifetime."""
        return bounded(lifetime) / (math.log(2.0) * self.factor(host))

    def saw(self, host: str, lifetime: float, elapsed: float, *, changed: bool) -> None:
        """A crawl found a page changed, or not, so many seconds after it had this lifetime."""
        usual, elapsed = self._usual(), max(elapsed, 1e-3)
        exposure = math.log(2.0) * elapsed / bounded(lifetime)
        own = self._hosts.pop(host, None)
        if own is None:
            rate = usual * math.log(2.0) / bounded(lifetime)
            own = [0.0, 0.0, HOST_CRAWLS, HOST_CRAWLS / rate, 0.0, 0.0, 0.0]
        else:
            self._logs -= own[LOG]
        by_lifetime = _fresh(HOST_CRAWLS + own[SHAPE], HOST_CRAWLS / usual + own[RATE], exposure)
        by_host = _fresh(own[OWN_SHAPE], own[OWN_RATE], elapsed)
        if changed:
            by_lifetime, by_host = 1.0 - by_lifetime, 1.0 - by_host
        gained = math.log(max(by_lifetime, 1e-6) / max(by_host, 1e-6))
        gained = min(max(gained, -MAX_NATS), MAX_NATS)
        own[SCORE] = own[SCORE] * MEMORY + gained
        self._score = self._score * MEMORY + gained
        own[GRADED] = own[GRADED] * MEMORY + 1.0
        for first, seen, mean in (
            (SHAPE, exposure, self._mean(own, usual)),
            (OWN_SHAPE, elapsed, own[OWN_SHAPE] / own[OWN_RATE]),
        ):
            own[first] *= MEMORY
            own[first + 1] *= MEMORY
            if changed:
                own[first] += _pull(mean * seen)
            else:
                own[first + 1] += seen
        own[OWN_SHAPE] = max(own[OWN_SHAPE], 0.1)
        own[OWN_RATE] = max(own[OWN_RATE], 1e-3)
        own[LOG] = math.log(self._mean(own, usual))
        self._logs += own[LOG]
        self._hosts[host] = own
        if len(self._hosts) > MAX_HOSTS:
            self._logs -= self._hosts.popitem(last=False)[1][LOG]

    def graded(self, host: str) -> int:
        """Crawls of a host that have shown something of its lifetimes, as far as they are remembered."""
        return round(self._hosts.get(host, _NOTHING)[GRADED])

    def _usual(self) -> float:
        return math.exp(self._logs / (len(self._hosts) + USUAL_HOSTS))

    @staticmethod
    def _mean(own: list[float], usual: float) -> float:
        mean = (HOST_CRAWLS + own[SHAPE]) / (HOST_CRAWLS / usual + own[RATE])
        return min(max(mean, LEAST_FACTOR), MOST_FACTOR)

    def to_text(self) -> str:
        """All that is known, for `from_text`."""
        hosts = {host: [float(f"{each:.5g}") for each in own] for host, own in self._hosts.items()}
        return json.dumps({"score": self._score, "hosts": hosts})

    @classmethod
    def from_text(cls, text: str | None) -> "Lifetimes":
        """What was kept so; nothing is known if there is no text."""
        lifetimes = cls()
        if text:
            kept = json.loads(text)
            lifetimes._score = _finite(kept["score"])
            for host, own in list(kept["hosts"].items())[-MAX_HOSTS:]:
                numbers = [_finite(each) for each in own]
                if len(numbers) != len(_NOTHING) or min(numbers[:SCORE]) < 0.0 or not numbers[OWN_RATE]:
                    raise ValueError("no counts of lifetimes")
                lifetimes._hosts[str(host)] = numbers
                lifetimes._logs += numbers[LOG]
        return lifetimes


_NOTHING = [0.0] * 7


def _finite(kept: float) -> float:
    if not math.isfinite(number := float(kept)):
        raise ValueError("no counts of lifetimes")
    return number


def _fresh(shape: float, rate: float, exposure: float) -> float:
    """How likely nothing changed in an exposure, with a Gamma distribution of what changes in one."""
    return math.exp(-shape * math.log1p(exposure / rate))


def _pull(x: float) -> float:
    """How much a change speaks for a higher rate, where x were expected; see `sums.pull`."""
    return x / math.expm1(x) if 1e-9 < x < 700.0 else float(x <= 1e-9)
