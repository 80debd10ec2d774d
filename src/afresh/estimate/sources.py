"""What a signal of each source is worth, against the best of them: a sitemap, a feed, a ping are not alike.

The estimator knows one weight b a page; a signal of source s on host h counts as w of them. Every checked crawl that
heard signals shares its change out among what could explain it, time and each source, by what is believed so far: a
source's ratio is the credit it got over the credit it was due. Hosts draw on what the source is worth everywhere, as
far as they have seen little of it themselves. The best source has w = 1, so that b is its own weight.

Signals may come late, and then describe a change that was fetched already (§1.4's T_delay). So signals that arrive
after a crawl that found a change are told apart by how long after, in octaves of seconds, and each octave is worth what
it turns out to be against all later ones: nothing as far as the source is late, as much beyond. Nothing is dropped by a
switch; `delay_of` says where signals begin to be worth half of what they are worth later.

The arithmetic runs in the interpreter and, called from compiled code, compiled.
"""

import json
import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_SOURCES = 32  # more are taken together as one
MOST_PAIRS = 4096  # of a source and a host; on further hosts a source is worth what it is everywhere
OCTAVES = 26  # of seconds after a crawl: up to two years
NOT_EARLY = -1  # the crawl before had found nothing that a signal could be late for
ALL, FIRST_SOURCE = 0, 1
FIRST_OCTAVE = FIRST_SOURCE + MOST_SOURCES
FIRST_PAIR = FIRST_OCTAVE + MOST_SOURCES * OCTAVES
ROWS = FIRST_PAIR + MOST_PAIRS
GUESS_WORTH = 2.0  # signals' weight that the first guess of a ratio counts for, here of all sources
SOURCE_WORTH = 2.0  # and of a source, by all of them
HOST_WORTH = 4.0  # and of a source on a host, by the source
OCTAVE_WORTH = 2.0
FADE = 0.9995  # a crawl that heard the source
MOST_WEIGHT = 8.0

Number = TypeVar("Number", int, float)


@register_jitable
def _ratio(credit: Floats, due: Floats, row: int, towards: float, worth: float) -> float:
    """What a row got over what it was due, drawn towards something by some signals' worth."""
    return float((worth * towards + credit[row]) / (worth + due[row]))


@register_jitable
def _source_ratio(credit: Floats, due: Floats, source: int) -> float:
    every = _ratio(credit, due, ALL, 1.0, GUESS_WORTH)
    return float(_ratio(credit, due, FIRST_SOURCE + source, every, SOURCE_WORTH))


@register_jitable
def _early_share(credit: Floats, due: Floats, source: int, early: int) -> float:
    """What signals of this octave after a change are worth against those of later octaves: at most 1."""
    row, end = FIRST_OCTAVE + source * OCTAVES + early, FIRST_OCTAVE + (source + 1) * OCTAVES
    later_credit, later_due = OCTAVE_WORTH, OCTAVE_WORTH
    for other in range(row + 1, end):
        later_credit += credit[other]
        later_due += due[other]
    later = later_credit / later_due
    return float(min(1.0, _ratio(credit, due, row, later, OCTAVE_WORTH) / later))


@register_jitable
def octave(elapsed: float) -> int:
    """The number of an age in octaves of seconds."""
    return int(min(max(math.log2(max(elapsed, 1.0)), 0.0), OCTAVES - 1.0))


@register_jitable
def signal_weight(credit: Floats, due: Floats, sources: int, source: int, pair: int, early: int) -> float:
    """w of a signal; `pair` is the row of its source on its host (0: none), `early` the octave after a change."""
    best = 1e-9
    for other in range(sources):
        best = max(best, _source_ratio(credit, due, other))
    ratio = _source_ratio(credit, due, source)
    if pair > 0:
        ratio = _ratio(credit, due, pair, ratio, HOST_WORTH)
    if early >= 0:
        ratio *= _early_share(credit, due, source, early)
    return float(min(ratio / best, MOST_WEIGHT))


@register_jitable
def _add(credit: Floats, due: Floats, row: int, got: float, was_due: float) -> None:
    credit[row] = FADE * credit[row] + got
    due[row] = FADE * due[row] + was_due


@register_jitable
def credit_signals(
    credit: Floats,
    due: Floats,
    kind: tuple[int, int, int],
    weighed: float,
    plain: float,
    curve: tuple[float, float],
) -> None:
    """One kind of signals (source, pair, early) of a crawl: they made the copy stale by `weighed`, and would have by
    `plain` if all signals were alike; `curve` is `change_curve` of the whole staleness."""
    source, pair, early = kind
    got, was_due = curve[0] * weighed, curve[1] * plain
    if early >= 0:
        share = _early_share(credit, due, source, early)
        # A row's due is as if its signals were not early.
        _add(credit, due, FIRST_OCTAVE + source * OCTAVES + early, got, curve[1] * weighed / max(share, 1e-6))
        was_due *= share
    if pair > 0:
        _add(credit, due, pair, got, was_due)
    _add(credit, due, FIRST_SOURCE + source, got, was_due)
    _add(credit, due, ALL, got, was_due)


@register_jitable
def change_curve(x: float, changed: bool) -> tuple[float, float]:
    """κ/x and λ of a crawl whose copy was stale by x: the curve κ·log x − λ·x that touches its log likelihood."""
    if not changed:
        return 0.0, 1.0
    x = max(x, 1e-9)
    if x > 30.0:
        return 0.0, 0.0
    e = math.expm1(x)
    kappa = x * x * (1.0 + e) / (e * e)
    return kappa / x, kappa / x - 1.0 / e


class Sources:
    """The weights of all sources on all hosts.

    Invariants: weights are finite and at least 0, whatever comes in; memory is bounded; what is learned does not depend
    on when it is asked for, and is the same after `to_text` and `from_text`.

    >>> sources = Sources()
    >>> feed, ping = sources.number("feed"), sources.number("ping")
    >>> for _ in range(50):
    ...     sources.learn("example.com", {(feed, NOT_EARLY): 1}, by_time=0.1, weight=2.0, changed=True)
    ...     sources.learn("example.com", {(ping, NOT_EARLY): 1}, by_time=0.1, weight=2.0, changed=False)
    >>> round(sources.weight("elsewhere.org", feed), 1), round(sources.weight("elsewhere.org", ping), 1)
    (1.0, 0.0)
    """

    def __init__(self) -> None:
        self.credit, self.due = np.zeros(ROWS), np.zeros(ROWS)
        self._sources: dict[str, int] = {}
        self._pairs: dict[tuple[str, int], int] = {}

    @property
    def learned(self) -> bool:
        """Whether anything was."""
        return bool(self.due[ALL] > 0)

    def number(self, source: str) -> int:
        """The number of a source; beyond `MOST_SOURCES` they share the last one."""
        number = self._sources.get(source)
        if number is None:
            number = min(len(self._sources), MOST_SOURCES - 1)
            if len(self._sources) < MOST_SOURCES:
                self._sources[source] = number
        return number

    def weight(self, host: str, source: int, early: int = NOT_EARLY) -> float:
        """How many of the best source's signals one of this source is worth, on this host."""
        pair = self._pairs.get((host, source), 0)
        return signal_weight(self.credit, self.due, len(self._sources), source, pair, early)

    def count(self, host: str, heard: Mapping[tuple[int, int], int]) -> float:
        """Signals, by (source, early), as a number of the best source's."""
        return sum(count * self.weight(host, source, early) for (source, early), count in heard.items())

    def learn(
        self, host: str, heard: Mapping[tuple[int, int], int], *, by_time: float, weight: float, changed: bool
    ) -> None:
        """A checked crawl: time had made the copy stale by `by_time`, and `heard` signals had arrived, the best of
        which weigh `weight`; it had or had not changed."""
        parts = [(kind, count, count * weight * self.weight(host, *kind)) for kind, count in sorted(heard.items())]
        x = by_time + sum(part for _, _, part in parts)
        if not (math.isfinite(x) and x >= 0):
            return
        curve = change_curve(x, changed)
        for (source, early), count, part in parts:
            kind = source, self._pair(host, source), early
            credit_signals(self.credit, self.due, kind, part, count * weight, curve)

    def delay_of(self, source: str) -> float:
        """T_delay: seconds after a crawl that found a change within which its signals are worth less than half."""
        number, delay = self._sources.get(source), 0.0
        for nth in range(OCTAVES if number is not None else 0):
            row = FIRST_OCTAVE + (number or 0) * OCTAVES + nth
            if self.due[row] >= 4 * OCTAVE_WORTH:
                if _early_share(self.credit, self.due, number or 0, nth) >= 0.5:
                    break
                delay = 2.0 ** (nth + 1)
        return delay

    def _pair(self, host: str, source: int) -> int:
        row = self._pairs.get((host, source))
        if row is None:
            if len(self._pairs) >= MOST_PAIRS:
                return 0
            row = self._pairs[host, source] = FIRST_PAIR + len(self._pairs)
        return row

    def to_text(self) -> str:
        """All of it, for `from_text`."""
        rows = {str(row): [self.credit[row], self.due[row]] for row in np.flatnonzero(self.due).tolist()}
        pairs = [[host, source, row] for (host, source), row in self._pairs.items()]
        return json.dumps({"sources": list(self._sources), "pairs": pairs, "rows": rows})

    @classmethod
    def from_text(cls, text: str | None) -> "Sources":
        """What `to_text` wrote; nothing learned if there is nothing, or nothing that can be read."""
        made = cls()
        try:
            found = json.loads(text or "")
            made._sources = {str(name): number for number, name in enumerate(found["sources"][:MOST_SOURCES])}
            for host, source, row in found["pairs"]:
                made._pairs[str(host), int(source)] = _checked(int(row), FIRST_PAIR, ROWS)
            for row, amounts in found["rows"].items():
                at = _checked(int(row), 0, ROWS)
                made.credit[at], made.due[at] = (_checked(float(amount), 0.0, math.inf) for amount in amounts)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return made


def _checked(value: Number, least: Number, below: Number) -> Number:
    if not least <= value < below:
        raise ValueError(f"{value} is out of bounds")
    return value
