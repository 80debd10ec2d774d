"""Dates of last changes as evidence on rates, as far as a host's dates have proved true.

Crawls show whether a date moves exactly when the content does. For each host it is counted how often a date moved when
the page had changed, and how often it stood still when it had not; hosts that are not known yet are taken to be like
all others. A date that lies fails at one of the two, and loses its weight.

A date that is true says when the last change was, so the page was silent since then: likelihood α·e^(−α·age), which is
that of a change in a short while, and none in the rest. It counts with the trust in it as a power.
"""

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.sums import FEW, FEW_TIME, TIME, pull, pull_inverse

MAX_HOSTS = 4_096  # that are graded apart; the longest unused are forgotten first
MEMORY = 0.98  # what a graded crawl leaves of what was counted before
HOST_CRAWLS = 4.0  # graded crawls' worth of all hosts, in what is thought of one
FIRST_RIGHT, FIRST_ALL = 1.0, 4.0  # what is thought of all hosts before any crawl: not much
MOMENT = 0.02  # of an age: the short while in which the change was
CAUTION = 4.0  # the power
LEAST_TRUST = 0.05  # below this a date is not heard at all

MOVED, MOVED_OF, STILL, STILL_OF = range(4)


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
        self._all = np.array([FIRST_RIGHT, FIRST_ALL, FIRST_RIGHT, FIRST_ALL])
        self._hosts: OrderedDict[str, NDArray[np.float64]] = OrderedDict()

    def grade(self, host: str, *, changed: bool, moved: bool) -> None:
        """A crawl has shown whether the content changed, and whether the date moved."""
        own = self._hosts.pop(host, None)
        own = np.zeros(4) if own is None else own
        first = MOVED if changed else STILL
        for counts, left in ((own, MEMORY), (self._all, 1.0 - (1.0 - MEMORY) / 20)):
            counts[first : first + 2] *= left
            counts[first] += moved == changed
            counts[first + 1] += 1.0
        self._hosts[host] = own
        if len(self._hosts) > MAX_HOSTS:
            self._hosts.popitem(last=False)

    def of(self, host: str) -> float:
        """The weight of a date of this host: how often dates moved with changes, times how often only then, to a power.

        To a power, since a lie does more harm than a true date does good: it may be off by years.
        """
        own = self._hosts.get(host, _NOTHING)
        trust = 1.0
        for first in (MOVED, STILL):
            of_all = self._all[first] / self._all[first + 1]
            trust *= float((own[first] + HOST_CRAWLS * of_all) / (own[first + 1] + HOST_CRAWLS))
        return float(trust**CAUTION)

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


def add_age(sums: NDArray[np.float32], age: float, trust: float, shortest: float = 0.0) -> None:
    """Of a page that is new: its content is so old, with this much trust in that.

    An age below the `shortest` says no more than that: changes come in bursts, and many dates are those of the answer.
    """
    age = max(age, shortest)
    sums[TIME] += trust * age
    sums[FEW] += trust
    sums[FEW_TIME] += trust * MOMENT * age


def add_last_change(sums: NDArray[np.float32], since: float, elapsed: float, rate: float, trust: float) -> None:
    """Of a page that a crawl found changed after `elapsed`: the last change was so long ago, by a date trusted so far.

    The crawl has counted a change somewhere in `elapsed`; of a page with this rate, that is a share of one that is told
    where it was. The rest is added here. The change joins the others as in `sums.add_crawl`: the gradient is kept.
    """
    sums[TIME] += trust * since
    weight = trust * (1.0 - _pull(rate * elapsed))
    before = float(sums[FEW])
    after = before + weight
    if weight <= 0.0 or rate <= 0.0:
        return
    pulled = weight * _pull(rate * MOMENT * since)
    if before > 0.0:
        pulled += before * _pull(rate * float(sums[FEW_TIME]) / before)
    sums[FEW], sums[FEW_TIME] = after, after * _pull_inverse(pulled / after) / rate


# As they are written: the interpreter need not wait until they are compiled.
_pull: Callable[[float], float] = cast(Any, pull).py_func
_pull_inverse: Callable[[float], float] = cast(Any, pull_inverse).py_func
