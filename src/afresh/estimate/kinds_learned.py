"""What was learned of kinds, for people: how many pages, how often they change, and what kinds are worth here."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.kinds import GAINED, JUDGED, LEVELS, MAX_KINDS, POWER
from afresh.estimate.online import OF_KINDS, TYPICAL_RATE, Table
from afresh.estimate.points import all_rates

LEVEL_NAMES = ("no known pages alike", "few", "many")  # in the group of a page


@dataclass(frozen=True, slots=True)
class KindLearned:
    """Of one kind."""

    pages: float  # by shares
    change_rate: float  # of a typical page: the geometric mean
    spread: float  # standard deviation of the natural logarithm of the rate
    value: float  # how much more its pages are wanted, as the operator says


@dataclass(frozen=True, slots=True)
class Worth:
    """What kinds are worth for pages whose group has so many pages that are known."""

    level: str
    power: float  # 0: switched off, 1: all that kinds say
    judged: int  # crawls
    gained: float  # nats a judged crawl, beside what would have been said without kinds


@dataclass(frozen=True, slots=True)
class KindsLearned:
    """Of all of them."""

    everything: KindLearned
    kinds: tuple[KindLearned, ...]  # kind 1 first
    unknown: float  # pages, by shares
    worth: tuple[Worth, ...]


def kinds_learned(table: Table, live: NDArray[np.bool_]) -> KindsLearned:
    """What a table holds on kinds."""
    own = table.pages["kind"][: len(live)][live].astype(np.int64)
    pages = np.zeros(MAX_KINDS + 1)
    for place in range(2):
        pages += np.bincount(own >> (4 * place) & 15, (own >> (8 + 4 * place) & 15) / 16, MAX_KINDS + 1)
    pages[0] = max(len(own) - pages[1:].sum(), 0.0)
    control = table.control[OF_KINDS:]
    return KindsLearned(
        _of(table, 0, float(len(own))),
        tuple(_of(table, kind, float(pages[kind])) for kind in range(1, MAX_KINDS + 1)),
        float(pages[0]),
        tuple(
            Worth(
                LEVEL_NAMES[level],
                float(control[POWER + level]),
                int(control[JUDGED + level]),
                float(control[GAINED + level] / max(control[JUDGED + level], 1.0)),
            )
            for level in range(LEVELS)
        ),
    )


def _of(table: Table, kind: int, pages: float) -> KindLearned:
    logs = table.groups[kind]["rates"].astype(np.float64)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    rates = np.log(all_rates() * table.control[TYPICAL_RATE])
    mean = float(chances @ rates)
    spread = float(np.sqrt(chances @ (rates - mean) ** 2))
    return KindLearned(pages, float(np.exp(mean)), spread, float(table.groups[kind]["value"]))
