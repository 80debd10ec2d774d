"""What a signal of each sender is worth, against the best of them: a sitemap, a feed, a ping are not alike.

The estimator knows one weight b a page; a signal of sender s on host h counts as w of them. Every checked crawl that
heard signals shares its change out among what could explain it, time and each sender, by what is believed so far: a
sender's ratio is the credit it got over the credit it was due. Hosts draw on what the sender is worth everywhere, as
far as they have seen little of it themselves. The best sender has w = 1, so that b is its own weight.

Signals may come late, and then describe a change that was fetched already (§1.4's T_delay). So signals that arrive
after a crawl that found a change are told apart by how long after, in octaves of seconds, and each octave is worth what
it turns out to be against all later ones: nothing as far as the sender is late, as much beyond. Nothing is dropped by a
switch; `delay_of` says where signals begin to be worth half of what they are worth later.

The arithmetic runs in the interpreter and, called from compiled code, compiled.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from afresh.checks import OUR_SENDERS, number

Floats = NDArray[np.float64]

SENDERS, SENDERS_BEFORE = "senders", "sources"  # the name under which a store keeps them, now and earlier
MOST_SENDERS = 32  # more are taken together as one
MOST_PAIRS = 4096  # of a sender and a host; on further hosts a sender is worth what it is everywhere
OCTAVES = 26  # of seconds after a crawl: up to two years
NOT_EARLY = -1  # the crawl before had found nothing that a signal could be late for
ALL, FIRST_SENDER = 0, 1
FIRST_OCTAVE = FIRST_SENDER + MOST_SENDERS
FIRST_PAIR = FIRST_OCTAVE + MOST_SENDERS * OCTAVES
ROWS = FIRST_PAIR + MOST_PAIRS
GUESS_WORTH = 2.0  # signals' weight that the first guess of a ratio counts for, here of all senders
SENDER_WORTH = 2.0  # and of a sender, by all of them
HOST_WORTH = 4.0  # and of a sender on a host, by the sender
OCTAVE_WORTH = 2.0
FADE = 0.9995  # a crawl that heard the sender
MOST_WEIGHT = 8.0
PINNED = 1e9  # signals' weight of what is said of a sender

Number = TypeVar("Number", int, float)


@register_jitable
def _ratio(credit: Floats, due: Floats, row: int, towards: float, worth: float) -> float:
    """What a row got over what it was due, drawn towards something by some signals' worth."""
    return float((worth * towards + credit[row]) / (worth + due[row]))


@register_jitable
def _sender_ratio(credit: Floats, due: Floats, sender: int) -> float:
    every = _ratio(credit, due, ALL, 1.0, GUESS_WORTH)
    return float(_ratio(credit, due, FIRST_SENDER + sender, every, SENDER_WORTH))


@register_jitable
def _early_share(credit: Floats, due: Floats, sender: int, early: int) -> float:
    """What signals of this octave after a change are worth against those of later octaves: at most 1."""
    row, end = FIRST_OCTAVE + sender * OCTAVES + early, FIRST_OCTAVE + (sender + 1) * OCTAVES
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
def signal_weight(credit: Floats, due: Floats, senders: int, sender: int, pair: int, early: int) -> float:
    """w of a signal; `pair` is the row of its sender on its host (0: none), `early` the octave after a change."""
    best = 1e-9
    for other in range(senders):
        best = max(best, _sender_ratio(credit, due, other))
    ratio = _sender_ratio(credit, due, sender)
    if pair > 0:
        ratio = _ratio(credit, due, pair, ratio, HOST_WORTH)
    if early >= 0:
        ratio *= _early_share(credit, due, sender, early)
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
    """One kind of signals (sender, pair, early) of a crawl: they made the copy stale by `weighed`, and would have by
    `plain` if all signals were alike; `curve` is `change_curve` of the whole staleness."""
    sender, pair, early = kind
    got, was_due = curve[0] * weighed, curve[1] * plain
    if early >= 0:
        share = _early_share(credit, due, sender, early)
        # A row's due is as if its signals were not early.
        _add(credit, due, FIRST_OCTAVE + sender * OCTAVES + early, got, curve[1] * weighed / max(share, 1e-6))
        was_due *= share
    if pair > 0:
        _add(credit, due, pair, got, was_due)
    _add(credit, due, FIRST_SENDER + sender, got, was_due)
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


class Senders:
    """The weights of all senders on all hosts.

    Invariants: weights are finite and at least 0, whatever comes in; memory is bounded; what is learned does not depend
    on when it is asked for, and is the same after `to_text` and `from_text`.

    >>> senders = Senders()
    >>> feed, ping = senders.number("feed"), senders.number("ping")
    >>> for _ in range(50):
    ...     senders.learn("example.com", {(feed, NOT_EARLY): 1}, by_time=0.1, weight=2.0, changed=True)
    ...     senders.learn("example.com", {(ping, NOT_EARLY): 1}, by_time=0.1, weight=2.0, changed=False)
    >>> round(senders.weight("elsewhere.org", feed), 1), round(senders.weight("elsewhere.org", ping), 1)
    (1.0, 0.0)
    """

    def __init__(self) -> None:
        self.credit, self.due = np.zeros(ROWS), np.zeros(ROWS)
        self.checked = np.zeros(MOST_SENDERS)  # signals of each that crawls have checked
        self._senders: dict[str, int] = {}
        self._pairs: dict[tuple[str, int], int] = {}
        self._free: dict[int, tuple[float, float]] = {}  # what rows held before they were pinned

    @property
    def learned(self) -> bool:
        """Whether anything was."""
        return bool(self.due[ALL] > 0)

    def number(self, sender: str) -> int:
        """The number of a sender; those beyond `MOST_SENDERS` share the last one, which is nobody's own.

        Whoever may signal may do so under many names: there is always room for afresh's own senders.
        """
        number = self._senders.get(sender)
        if number is None:
            reserved = 0 if sender in OUR_SENDERS else len(OUR_SENDERS - self._senders.keys())
            number = len(self._senders)
            if number >= MOST_SENDERS - 1 - reserved:
                return MOST_SENDERS - 1
            self._senders[sender] = number
        return number

    @property
    def names(self) -> dict[str, int]:
        """Every sender, with its number."""
        return self._senders

    def pin(self, sender: str, host: str, weight: float) -> None:
        """What a sender is worth is said, and not learned: so much of the best, as learned; on one host, or on all.

        What crawls teach moves it a little until this is said again.
        """
        number, credit, due = self.number(sender), self.credit.copy(), self.due.copy()
        for row, free in self._free.items():
            credit[row], due[row] = free
        best = max(_sender_ratio(credit, due, other) for other in self._senders.values())  # as learned
        pairs = [row for (name, each), row in self._pairs.items() if each == number and host in ("", name)]
        for row in [*pairs, *([] if host else [FIRST_SENDER + number])]:
            if row not in self._free:
                self._free[row] = float(self.credit[row]), float(self.due[row])
            self.credit[row], self.due[row] = weight * best * PINNED, PINNED

    def unpin(self) -> None:
        """What was said is learned again, from where it was left."""
        for row, (credit, due) in self._free.items():
            self.credit[row], self.due[row] = credit, due
        self._free.clear()

    @property
    def known(self) -> int:
        """How many senders there are."""
        return len(self._senders)

    def weight(self, host: str, sender: int, early: int = NOT_EARLY) -> float:
        """How many of the best sender's signals one of this sender is worth, on this host."""
        return self.weight_by_row(sender, self._pairs.get((host, sender), 0), early)

    def weight_by_row(self, sender: int, pair: int, early: int) -> float:
        """The same, by the row of the sender on the host."""
        return signal_weight(self.credit, self.due, len(self._senders), sender, pair, early)

    def count(self, host: str, heard: Mapping[tuple[int, int], int]) -> float:
        """Signals, by (sender, early), as a number of the best sender's."""
        return sum(count * self.weight(host, sender, early) for (sender, early), count in heard.items())

    def learn(
        self, host: str, heard: Mapping[tuple[int, int], int], *, by_time: float, weight: float, changed: bool
    ) -> None:
        """A checked crawl: time had made the copy stale by `by_time`, and `heard` signals had arrived, the best of
        which weigh `weight`; it had or had not changed."""
        by_time, weight = number("by_time", by_time, infinite=True), number("weight", weight, infinite=True)
        for each in heard.values():
            number("count", each, infinite=True)
        self.learn_by_row(
            [(sender, self.row(host, sender), early, count) for (sender, early), count in sorted(heard.items())],
            by_time=by_time,
            weight=weight,
            changed=changed,
        )

    def learn_by_row(
        self, heard: Iterable[tuple[int, int, int, float]], *, by_time: float, weight: float, changed: bool
    ) -> None:
        """The same, with (sender, row of the sender on the host, early, count) of what was heard."""
        parts = [(kind, count, count * weight * self.weight_by_row(*kind)) for *kind, count in heard if count > 0]
        x = by_time + sum(part for _, _, part in parts)
        if not (math.isfinite(x) and x >= 0):
            return
        curve = change_curve(x, changed)
        for (sender, pair, early), count, part in parts:
            credit_signals(self.credit, self.due, (sender, pair, early), part, count * weight, curve)
            self.checked[sender] += count

    def delay_of(self, sender: str) -> float:
        """T_delay: seconds after a crawl that found a change within which its signals are worth less than half."""
        number, delay = self._senders.get(sender), 0.0
        for nth in range(OCTAVES if number is not None else 0):
            row = FIRST_OCTAVE + (number or 0) * OCTAVES + nth
            if self.due[row] >= 4 * OCTAVE_WORTH:
                if _early_share(self.credit, self.due, number or 0, nth) >= 0.5:
                    break
                delay = 2.0 ** (nth + 1)
        return delay

    def row(self, host: str, sender: int) -> int:
        """The row of a sender on a host; 0 where there is no room for another."""
        row = self._pairs.get((host, sender))
        if row is None:
            if len(self._pairs) >= MOST_PAIRS:
                return 0
            row = self._pairs[host, sender] = FIRST_PAIR + len(self._pairs)
        return row

    def to_text(self) -> str:
        """All of it, for `from_text`."""
        rows = {
            str(row): list(self._free.get(row, (float(self.credit[row]), float(self.due[row]))))
            for row in np.flatnonzero(self.due).tolist()
        }
        pairs = [[host, sender, row] for (host, sender), row in self._pairs.items()]
        return json.dumps(
            {
                "senders": list(self._senders),
                "pairs": pairs,
                "rows": rows,
                "checked": self.checked[: len(self._senders)].tolist(),
            }
        )

    def _range(self, number: int, best: int) -> tuple[float, float]:
        """Between what bounds the worth of a sender lies, nine times in ten; the best's is 1 by definition."""
        if number == best:
            return 1.0, 1.0
        worth = self.weight("", number)
        # Credit is a sum of chances that a change was signalled, about as uncertain as a count of so many.
        counts = [SENDER_WORTH + float(self.credit[FIRST_SENDER + each]) for each in (number, best)]
        off = math.exp(1.64 * math.sqrt(sum(1.0 / count for count in counts)))
        worth /= self.weight("", best)
        return min(worth / off, 1.0), min(worth * off, 1.0)

    def summary(self) -> list[dict[str, str | float]]:
        """What is known of each sender, the best first, and those last of which nothing is: worth, delay, hosts."""
        numbers = list(self._senders.values())
        # Compared with the best of those of which crawls have told something, if there are any.
        told = [number for number in numbers if self.due[FIRST_SENDER + number] > 0]
        best = max(told or numbers, key=lambda number: self.weight("", number), default=0)
        found: list[dict[str, str | float]] = [
            {
                "sender": name,
                "worth": self.weight("", number),  # of the best sender's; on a host that never heard of it
                "late": self.delay_of(name),
                "hosts": sum(sender == number for _, sender in self._pairs),
                "evidence": float(self.due[FIRST_SENDER + number]),
                "checked": float(self.checked[number]),  # signals that all this rests on
                "worth_from": self._range(number, best)[0],
                "worth_to": self._range(number, best)[1],
            }
            for name, number in self._senders.items()
        ]
        return sorted(found, key=lambda each: (not each["evidence"], -float(each["worth"]), str(each["sender"])))

    @classmethod
    def together(cls, before: "Senders", since: Sequence["Senders"]) -> "Senders":
        """What several go by on average, who each went on from what was learned before; `before` if there are none.

        Whoever learned more of a sender counts for more. What was learned before is in each of them: it is counted
        once among the signals that were checked, and what the average rests on is as much as that.
        """
        made, several = cls(), since or [before]
        old, own = before._checked_of(), [each._checked_of() for each in several]
        checked = {name: old.get(name, 0.0) for one in own for name in one}
        for one in own:
            for name, count in one.items():
                checked[name] += max(count - old.get(name, 0.0), 0.0)
        for name in sorted(checked, key=lambda name: -checked[name]):  # for the rest there may be no room
            made.number(name)
        every = _once(sum(checked.values()), sum(sum(one.values()) for one in own), len(several))
        for each in several:
            made._add_row(ALL, each, ALL, every)
            for name, theirs in each._senders.items():
                if (mine := made._senders.get(name)) is None:
                    continue
                met = [one[name] for one in own if name in one]
                share = _once(checked[name], sum(met), len(met))
                made.checked[mine] = checked[name]
                made._add_row(FIRST_SENDER + mine, each, FIRST_SENDER + theirs, share)
                for nth in range(OCTAVES):
                    to, of = (FIRST_OCTAVE + sender * OCTAVES + nth for sender in (mine, theirs))
                    made._add_row(to, each, of, share)
            names = {theirs: name for name, theirs in each._senders.items()}
            for host, theirs in each._pairs:
                if (mine := made._senders.get(names.get(theirs, ""))) is not None:
                    made.row(host, mine)
        return made

    def _checked_of(self) -> dict[str, float]:
        return {name: float(self.checked[number]) for name, number in self._senders.items()}

    def _add_row(self, row: int, other: "Senders", theirs: int, share: float) -> None:
        credit, due = other._free.get(theirs, (other.credit[theirs], other.due[theirs]))
        self.credit[row] += share * credit
        self.due[row] += share * due

    @classmethod
    def recalled(cls, get: Callable[[str], str | None]) -> "Senders":
        """As a store kept them; stores of earlier versions call them by another name."""
        return cls.from_text(get(SENDERS) or get(SENDERS_BEFORE))

    @classmethod
    def from_text(cls, text: str | None) -> "Senders":
        """What `to_text` wrote; nothing learned if there is nothing, or nothing that can be read."""
        made = cls()
        try:
            found = json.loads(text or "")
            names = found["senders"] if "senders" in found else found[SENDERS_BEFORE]
            made._senders = {str(name): number for number, name in enumerate(names[:MOST_SENDERS])}
            for host, sender, row in found["pairs"]:
                made._pairs[str(host), int(sender)] = _checked(int(row), FIRST_PAIR, ROWS)
            for row, amounts in found["rows"].items():
                at = _checked(int(row), 0, ROWS)
                made.credit[at], made.due[at] = (_checked(float(amount), 0.0, math.inf) for amount in amounts)
            for number, count in enumerate(found.get("checked", [])[:MOST_SENDERS]):
                made.checked[number] = _checked(float(count), 0.0, math.inf)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return made


def _once(checked: float, counted: float, several: int) -> float:
    """What share of a sum counts, where several each have what was before."""
    return min(checked / counted, 1.0) if counted > 0 else 1.0 / several


def _checked(value: Number, least: Number, below: Number) -> Number:
    if not least <= value < below:
        raise ValueError(f"{value} is out of bounds")
    return value
