"""Signals of several senders, or late ones, in a replay: what has been heard of each page, and what it is worth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.senders import (
    NOT_EARLY,
    OCTAVES,
    Senders,
    change_curve,
    credit_signals,
    octave,
    signal_weight,
)
from afresh.sim.history import Heard
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_KINDS = OCTAVES + 1  # of each sender: not early, and early by each octave


class Hearing(NamedTuple):
    """What was heard of each page since its copy was current, by sender and by how early after a change."""

    weighs: bool  # False: all signals are alike
    senders: int
    sender: Integers  # of each signal
    waiting: NDArray[np.float32]  # (pages, kinds)
    found: NDArray[np.bool_]  # whether the last visit to each page found a change
    credit: Floats
    due: Floats


def hearing_of(heard: Heard, pages: int, senders: Senders, *, learns: bool) -> Hearing:
    """Nothing heard yet; what is learned of the senders, which are named by their numbers, goes to `senders`."""
    weighs = learns and heard.sender is not None and len(heard.time) > 0
    sender = heard.sender if weighs and heard.sender is not None else np.empty(0, np.int64)
    count = int(sender.max()) + 1 if weighs else 0
    for number in range(count):
        senders.number(str(number))
    waiting = np.zeros((pages if weighs else 0, count * _KINDS), np.float32)
    return Hearing(weighs, count, sender, waiting, np.zeros(pages, np.bool_), senders.credit, senders.due)


@compiled
def _weight(hearing: Hearing, kind: int) -> float:
    sender, early = kind // _KINDS, kind % _KINDS - 1
    return float(signal_weight(hearing.credit, hearing.due, hearing.senders, sender, 0, early))


@compiled
def hear(hearing: Hearing, nth: int, page: int, elapsed: float) -> float:
    """Take in a signal, `elapsed` after the last visit to its page; its weight."""
    early = octave(elapsed) if hearing.found[page] else NOT_EARLY
    kind = hearing.sender[nth] * _KINDS + early + 1
    hearing.waiting[page, kind] += 1.0
    return _weight(hearing, kind)


@compiled
def counted(hearing: Hearing, page: int) -> float:
    """What was heard of a page, as a number of the best sender's signals."""
    total = 0.0
    for kind in range(hearing.waiting.shape[1]):
        count = np.float64(hearing.waiting[page, kind])
        if count > 0.0:
            total += count * _weight(hearing, kind)
    return total


@compiled
def learn_senders(hearing: Hearing, page: int, by_time: float, weight: float, changed: bool) -> None:
    """A visit has shown whether what was heard of the page was true."""
    curve = change_curve(by_time + weight * counted(hearing, page), changed)
    weights = np.empty(hearing.waiting.shape[1])
    for kind in range(weights.size):  # before any of them learns
        weights[kind] = _weight(hearing, kind) if hearing.waiting[page, kind] > 0.0 else 0.0
    for kind in range(weights.size):
        plain = weight * np.float64(hearing.waiting[page, kind])
        if plain > 0.0:
            which = (kind // _KINDS, 0, kind % _KINDS - 1)
            credit_signals(hearing.credit, hearing.due, which, plain * weights[kind], plain, curve)


@compiled
def heard_out(hearing: Hearing, page: int, changed: bool) -> None:
    """The page was visited: listen anew."""
    hearing.found[page] = changed
    if hearing.weighs:
        hearing.waiting[page, :] = 0.0
