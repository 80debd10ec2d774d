"""The rules that others use, with their published constants, compiled: when is a page due that was just fetched?

Each is a state machine on one interval a page, with the constants of `schedule.peer_rules`; times are seconds.
Where more is due than the budget allows, the oldest due goes first, as they do it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.peer_rules import (
    ENTRIES,
    FACTOR,
    FIXED,
    MODIFIED,
    NUTCH,
    PROPORTIONAL,
    ROUND_ROBIN,
    STORM,
    PeerRule,
)
from afresh.sim.field import Field, entries_since, modified
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]


class Intervals(NamedTuple):
    """What the rules remember of each page."""

    interval: Floats
    changed_at: Floats  # when a change was last seen
    changes: Floats  # seen so far


def new_intervals(field: Field, rule: PeerRule) -> Intervals:
    """Before the first fetch."""
    pages = field.births.size
    return Intervals(np.full(pages, rule.start), field.births.copy(), np.zeros(pages))


@compiled
def _clamp(interval: float, rule: PeerRule) -> float:
    return min(max(interval, rule.shortest), rule.longest)


@compiled
def _nutch(rule: PeerRule, intervals: Intervals, page: int, now: float, changed: bool) -> float:
    interval = intervals.interval[page] * (1.0 - rule.shrink if changed else 1.0 + rule.grow)
    since_change = now - intervals.changed_at[page]
    # An interval shorter than the time since the last change is stretched to it; then the next fetch is moved back.
    interval = _clamp(max(interval, since_change), rule)
    intervals.interval[page] = interval
    return float(now - rule.shift * since_change + interval)


@compiled
def _multiply(rule: PeerRule, intervals: Intervals, page: int, now: float, changed: bool) -> float:
    interval = intervals.interval[page]
    if rule.machine == STORM:
        if changed:
            interval = (1.0 - rule.shrink) * interval + rule.shrink * rule.shortest
        else:
            interval *= 1.0 + rule.grow
    else:
        interval = interval / rule.shrink if changed else interval * rule.grow
    interval = _clamp(interval, rule)
    intervals.interval[page] = interval
    return float(now + interval)


@compiled
def next_due(rule: PeerRule, intervals: Intervals, field: Field, page: int, now: float, changed: bool) -> float:
    """When a page that was just visited is due again."""
    if changed:
        intervals.changed_at[page] = now
        intervals.changes[page] += 1.0
    if rule.machine == NUTCH:
        return _nutch(rule, intervals, page, now, changed)
    if rule.machine == STORM or rule.machine == FACTOR:
        return _multiply(rule, intervals, page, now, changed)
    if rule.machine == ENTRIES:
        entries = entries_since(field, page, now - rule.shift)
        return now + (_clamp(rule.shift / entries, rule) if entries > 0 else rule.longest)
    if rule.machine == MODIFIED:
        return now + _clamp(rule.shift * (now - modified(field, page)), rule)
    if rule.machine == PROPORTIONAL:
        return float(now + (now - field.births[page]) / (intervals.changes[page] + 1.0))
    if rule.machine == ROUND_ROBIN:
        return now
    return float(now + intervals.interval[page])


@compiled
def first_due(rule: PeerRule, intervals: Intervals, field: Field, page: int) -> float:
    """When a page that was just born is due: as after a fetch that says nothing about its changes."""
    born = field.births[page]
    if rule.machine in (FIXED, NUTCH, STORM, FACTOR):
        return float(born + intervals.interval[page])
    return next_due(rule, intervals, field, page, born, False)
