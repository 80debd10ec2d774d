"""The rules that others use, with their published constants, compiled: when is a page due that was just fetched?

Each is a state machine on one interval a page. `RULES` gives the constants in the order in which `next_due` reads them;
times are seconds. Where more is due than the budget allows, the oldest due goes first, as they do it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.sim.field import Field, entries_since, modified
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

ROUND_ROBIN, FIXED, NUTCH, STORM, FACTOR, ENTRIES, MODIFIED, PROPORTIONAL = range(8)


class Rule(NamedTuple):
    """A state machine and its constants."""

    machine: int
    start: float = 0.0  # first interval
    shortest: float = 0.0
    longest: float = float("inf")
    grow: float = 0.0  # unchanged: the interval grows by this share, or to this multiple
    shrink: float = 0.0  # changed: it shrinks by this share, or is divided by this
    shift: float = 0.0  # Nutch: moved towards the last change by this share; others: see `next_due`
    wait: float = 0.0  # taken only when overdue by this, and then the oldest copy first


RULES = {
    "uniform": Rule(ROUND_ROBIN),
    "proportional": Rule(PROPORTIONAL),
    "nutch": Rule(FIXED, start=30 * DAY, longest=90 * DAY),
    "nutch-adaptive": Rule(NUTCH, 30 * DAY, MINUTE, 90 * DAY, grow=0.4, shrink=0.2, shift=0.3),
    "nutch-1.22": Rule(NUTCH, 30 * DAY, MINUTE, 90 * DAY, grow=0.4, shrink=0.2),  # its shift is cut to nothing
    "stormcrawler": Rule(FIXED, start=1440 * MINUTE),
    "stormcrawler-adaptive": Rule(STORM, 1440 * MINUTE, 60 * MINUTE, 14 * DAY, grow=0.5, shrink=0.5),
    "common-crawl-news": Rule(STORM, 1440 * MINUTE, 90 * MINUTE, 90 * DAY, grow=0.5, shrink=0.2),
    "heritrix": Rule(FACTOR, 12 * HOUR, HOUR, 28 * DAY, grow=1.5, shrink=1.5),
    "miniflux": Rule(ENTRIES, DAY, 5 * MINUTE, DAY, shift=7 * DAY),
    "yacy": Rule(MODIFIED, DAY, shift=0.5, wait=DAY),
    "scrapy": Rule(MODIFIED, DAY, shift=0.1),
    "squid": Rule(MODIFIED, DAY, 0.0, 3 * DAY, shift=0.2),
    "traffic-server": Rule(MODIFIED, DAY, HOUR, DAY, shift=0.1),
}


class Intervals(NamedTuple):
    """What the rules remember of each page."""

    interval: Floats
    changed_at: Floats  # when a change was last seen
    changes: Floats  # seen so far


def new_intervals(field: Field, rule: Rule) -> Intervals:
    """Before the first fetch."""
    pages = field.births.size
    return Intervals(np.full(pages, rule.start), field.births.copy(), np.zeros(pages))


@compiled
def _clamp(interval: float, rule: Rule) -> float:
    return min(max(interval, rule.shortest), rule.longest)


@compiled
def _nutch(rule: Rule, intervals: Intervals, page: int, now: float, changed: bool) -> float:
    interval = intervals.interval[page] * (1.0 - rule.shrink if changed else 1.0 + rule.grow)
    since_change = now - intervals.changed_at[page]
    # An interval shorter than the time since the last change is stretched to it; then the next fetch is moved back.
    interval = _clamp(max(interval, since_change), rule)
    intervals.interval[page] = interval
    return float(now - rule.shift * since_change + interval)


@compiled
def _multiply(rule: Rule, intervals: Intervals, page: int, now: float, changed: bool) -> float:
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
def next_due(rule: Rule, intervals: Intervals, field: Field, page: int, now: float, changed: bool) -> float:
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
def first_due(rule: Rule, intervals: Intervals, field: Field, page: int) -> float:
    """When a page that was just born is due: as after a fetch that says nothing about its changes."""
    born = field.births[page]
    if rule.machine in (FIXED, NUTCH, STORM, FACTOR):
        return float(born + intervals.interval[page])
    return next_due(rule, intervals, field, page, born, False)
