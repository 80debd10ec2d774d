"""Dates of last changes as evidence on rates, as far as a host's dates have proved true.

Crawls show whether a date moves exactly when the content does. For each host it is counted how often a date moved when
the page had changed, and how often it stood still when it had not; hosts that are not known yet are taken to be like
all others. A date that lies fails at one of the two, and loses its weight.

A date that is true says when the last change was, so the page was silent since then: likelihood α·e^(−α·age), which is
that of a change in a short while, and none in the rest. It counts with the trust in it as a power.

Where pages change in bursts, old content says less than that. So what pages say at their first crawl has a power of its
own, learned on this collection: for some powers it is kept how well they would have foretold the second crawls.

The arithmetic of trust runs in the interpreter and, called from compiled code, compiled.
"""

import json
import math
from collections import OrderedDict

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from afresh.estimate.points import Logs, fresh_of, weigh_rates
from afresh.estimate.sums import FEW, FEW_TIME, SUMS, TIME, Sums, pull, pull_inverse
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

MAX_HOSTS = 4_096  # that are graded apart; the longest unused are forgotten first
MEMORY = 0.98  # what a graded crawl leaves of what was counted before,
MEMORY_OF_ALL = 0.999  # and of what was counted of all hosts
HOST_CRAWLS = 4.0  # graded crawls' worth of all hosts, in what is thought of one
FIRST_RIGHT, FIRST_ALL = 1.0, 4.0  # what is thought of all hosts before any crawl: not much
MOMENT = 0.02  # of an age: the short while in which the change was
CAUTION = 4.0  # the power
LEAST_TRUST = 0.05  # below this a date is not heard at all
LONGEST_AGE, SHORTEST_AGE = 30.0, 0.5  # typical intervals: content that is older or younger says no more

MOST_SAID = 1.0  # changes' worth, beyond which nothing more is heard of a page before its second crawl

MOVED, MOVED_OF, STILL, STILL_OF = range(4)

# What is kept in `online.Table.control` of what pages say at their first crawl: nats that each power has gained, the
# power in use, and how many crawls have judged.
POWERS = np.array([0.0, 0.3, 0.6, 1.0])
POWER, JUDGED = POWERS.size, POWERS.size + 1
CONTROL_SIZE = POWERS.size + 2
SCORE_MEMORY = 0.999  # what a judged crawl leaves of the scores before it
LEAST_POWER = 0.1  # with less, nobody would notice that it has become worth more
_LEAST = 1e-6  # no crawl rules a power out for ever,
_MOST = 300.0  # and nats beyond this prove no more


@register_jitable
def grade_counts(counts: Floats, memory: float, changed: bool, moved: bool) -> None:
    """A crawl has shown whether the content changed, and whether the date moved."""
    first = MOVED if changed else STILL
    counts[first] *= memory
    counts[first + 1] = counts[first + 1] * memory + 1.0
    if moved == changed:
        counts[first] += 1.0


@register_jitable
def trust_in(own: Floats, of_all: Floats) -> float:
    """The weight of a date: how often dates moved with changes, times how often only then, to a power.

    To a power, since a lie does more harm than a true date does good: it may be off by years.
    """
    trust = 1.0
    for first in (MOVED, STILL):
        usual = of_all[first] / of_all[first + 1]
        trust *= (own[first] + HOST_CRAWLS * usual) / (own[first + 1] + HOST_CRAWLS)
    return float(trust**CAUTION)


def nothing_graded() -> Floats:
    """What is counted of all hosts before any crawl."""
    return np.array([FIRST_RIGHT, FIRST_ALL, FIRST_RIGHT, FIRST_ALL])


class DateTrust:
    """How far the dates of each host can be trusted.

    >>> trust = DateTrust()
    >>> for _ in range(20):
    ...     trust.grade("good", changed=True, moved=True), trust.grade("stuck", changed=True, moved=False)
    ...     trust.grade("good", changed=False, moved=False), trust.grade("stuck", changed=False, moved=False)
    ... # doctest: +ELLIPSIS
    (None, None)...
    >>> trust.of("good") > 0.3 > 0.01 > trust.of("stuck")
    True
    """

    def __init__(self) -> None:
        self._all = nothing_graded()
        self._hosts: OrderedDict[str, NDArray[np.float64]] = OrderedDict()

    def grade(self, host: str, *, changed: bool, moved: bool) -> None:
        """A crawl has shown whether the content changed, and whether the date moved."""
        own = self._hosts.pop(host, None)
        own = np.zeros(4) if own is None else own
        grade_counts(own, MEMORY, changed, moved)
        grade_counts(self._all, MEMORY_OF_ALL, changed, moved)
        self._hosts[host] = own
        if len(self._hosts) > MAX_HOSTS:
            self._hosts.popitem(last=False)

    def note(self, host: str) -> None:
        """A host gives dates; nothing was graded yet."""
        self._hosts.setdefault(host, np.zeros(4))
        if len(self._hosts) > MAX_HOSTS:
            self._hosts.popitem(last=False)

    def knows(self, host: str) -> bool:
        """Whether a host has given dates."""
        return host in self._hosts

    def of(self, host: str) -> float:
        """The weight of a date of this host."""
        return trust_in(self._hosts.get(host, _NOTHING), self._all)

    def graded(self, host: str) -> int:
        """Crawls of a host that have shown something of its dates, as far as they are remembered."""
        own = self._hosts.get(host, _NOTHING)
        return round(float(own[MOVED_OF] + own[STILL_OF]))

    def to_text(self) -> str:
        """All that is known, for `from_text`."""
        hosts = {host: [round(each, 4) for each in own.tolist()] for host, own in self._hosts.items()}
        return json.dumps({"all": self._all.tolist(), "hosts": hosts})

    @classmethod
    def from_text(cls, text: str | None) -> "DateTrust":
        """What was kept so; nothing is known if there is no text."""
        trust = cls()
        if text:
            kept = json.loads(text)
            trust._all = _counts(kept["all"])
            trust._hosts.update((host, _counts(own)) for host, own in list(kept["hosts"].items())[-MAX_HOSTS:])
        return trust


_NOTHING = np.zeros(4)


def _counts(kept: list[float]) -> NDArray[np.float64]:
    counts = np.array([float(each) for each in kept])
    if counts.shape != (4,) or not np.isfinite(counts).all() or counts.min() < 0.0:
        raise ValueError("no counts of dates")
    return counts


def start(control: Floats) -> None:
    """Nothing is known yet of what is worth to hear at first crawls."""
    control[:] = 0.0
    control[POWER] = float(POWERS.mean())


@compiled
def add_age(sums: Sums, age: float, trust: float, shortest: float) -> None:
    """Of a page that is new: its content is so old, with this much trust in that.

    An age below the `shortest` says no more than that: changes come in bursts, and many dates are those of the answer.
    """
    age = max(age, shortest)
    sums[TIME] += trust * age
    sums[FEW] += trust
    sums[FEW_TIME] += trust * MOMENT * age


@compiled
def add_last_change(sums: Sums, since: float, elapsed: float, rate: float, trust: float) -> None:
    """Of a page that a crawl found changed after `elapsed`: the last change was so long ago, by a date trusted so far.

    The crawl has counted a change somewhere in `elapsed`; of a page with this rate, that is a share of one that is told
    where it was. The rest is added here. The change joins the others as in `sums.add_crawl`: the gradient is kept.
    """
    sums[TIME] += trust * since
    weight = trust * (1.0 - pull(rate * elapsed))
    before = np.float64(sums[FEW])
    after = before + weight
    if weight <= 0.0 or rate <= 0.0:
        return
    pulled = weight * pull(rate * MOMENT * since)
    if before > 0.0:
        pulled += before * pull(rate * np.float64(sums[FEW_TIME]) / before)
    sums[FEW] = after
    sums[FEW_TIME] = after * pull_inverse(pulled / after) / rate


@compiled
def judge_first(
    control: Floats, chance: Floats, sums: Sums, typical_rate: float, prior: Logs, elapsed: float, held: bool
) -> None:
    """What a page said at its first crawl is in its sums: how well would it have foretold the second, at each power?"""
    scaled, best, total, mean = np.empty(SUMS, np.float32), -math.inf, 0.0, 0.0
    for nth in range(POWERS.size):
        for k in range(SUMS):
            scaled[k] = sums[k] * (POWERS[nth] / control[POWER])
        weigh_rates(scaled, typical_rate, prior, chance)
        fresh = fresh_of(chance, typical_rate, elapsed, 0.0)
        likely = max(fresh if held else 1.0 - fresh, _LEAST)
        control[nth] = control[nth] * SCORE_MEMORY + math.log(likely)
        best = max(best, control[nth])
    for nth in range(POWERS.size):
        weight = math.exp(max(control[nth] - best, -_MOST))
        total += weight
        mean += weight * POWERS[nth]
    control[POWER] = max(mean / total, LEAST_POWER)
    control[JUDGED] += 1.0
