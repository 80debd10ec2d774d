"""The hot loop: changes, signals, requests and crawls in the order of time, millions a second.

All Poisson processes of all pages are one Poisson process whose events are dealt to pages and kinds by an alias table;
so an event costs the same in a small and in a large world, and the world's events are the same whatever the schedule
does. Decisions are made by the scheduler's own compiled functions, on its own table: what is measured here is what runs
live.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.events import signal
from afresh.schedule.wheel.memory import control_at
from afresh.schedule.wheel.policies import THRESHOLD
from afresh.schedule.wheel.turn import crawl, take
from afresh.sim.alias import draw
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Blocks of the alias table: what a page may do.
SILENT_CHANGE, SIGNALLED_CHANGE, FALSE_SIGNAL, REQUEST = range(4)
RING = 256  # ticks that a signal may be on its way

# Indices of `clock` and `tally`: numbers that go on from one call to the next.
NOW, NEXT_EVENT, NEXT_TICK = range(3)
EVENTS, REQUESTS, HITS, CRAWLS, FINDS = range(5)


class Truth(NamedTuple):
    """The world as arrays, and how each copy stands."""

    keep: Floats  # the alias table of (kind, page)
    other: NDArray[np.int32]
    total_rate: float
    pages: int
    signal_delay: float  # mean ticks
    request_rate: Floats
    fresh: NDArray[np.uint8]
    since: Floats  # fresh copies: scored up to this moment
    fresh_time: Floats  # of each page, in the scored time
    crawls: Integers  # of each page, in the scored time
    first: NDArray[np.int32]  # signals on their way: first of each tick of the ring
    following: NDArray[np.int32]  # and the next one behind each
    where: NDArray[np.int32]  # the page of each
    sent: Floats  # when each was sent
    dated: bool  # whether signals tell when they were sent, so that those about an older copy can be dropped
    crawled: Floats  # when each page was crawled last
    free: Integers  # head of the free places
    picks: Integers  # pages to crawl at the ticks, known beforehand; empty: ask the scheduler
    bins: Floats  # requests and hits per bin of time, two rows
    bin_width: float


@compiled
def _send(truth: Truth, page: int, now: float, tick_number: int, rng: Any) -> bool:
    """Put a signal on its way; False if it arrives at once."""
    ticks = rng.poisson(truth.signal_delay)
    if ticks == 0:
        return False
    place = truth.free[0]
    if place < 0:
        return False
    truth.free[0] = truth.following[place]
    bucket = (tick_number + min(ticks, RING - 1)) % RING
    truth.where[place] = page
    truth.sent[place] = now
    truth.following[place] = truth.first[bucket]
    truth.first[bucket] = place
    return True


@compiled
def _deliver(core: int, truth: Truth, tick_number: int, now: float) -> int:
    """Hand over the signals that have arrived by this tick; how many."""
    bucket = tick_number % RING
    place = truth.first[bucket]
    count = 0
    while place >= 0:
        page = truth.where[place]
        if not (truth.dated and truth.sent[place] <= truth.crawled[page]):
            signal(core, page, now, 1)
        count += 1
        following = truth.following[place]
        truth.following[place] = truth.free[0]
        truth.free[0] = place
        place = following
    truth.first[bucket] = -1
    return count


@compiled
def _close(truth: Truth, page: int, now: float, score_from: float) -> None:
    """The copy's fresh time ends now."""
    if now > score_from:
        truth.fresh_time[page] += now - max(truth.since[page], score_from)


@compiled
def _crawl(core: int, truth: Truth, tally: Integers, page: int, now: float, score_from: float) -> None:
    if truth.picks.size == 0:
        crawl(core, page, now)
    truth.crawled[page] = now
    scored = now > score_from
    if scored:
        truth.crawls[page] += 1
        tally[CRAWLS] += 1
    if truth.fresh[page] == 0:
        truth.fresh[page] = 1
        truth.since[page] = now
        if scored:
            tally[FINDS] += 1


@compiled
def _tick(core: int, truth: Truth, tally: Integers, tick_number: int, now: float, score_from: float) -> None:
    """One tick of the budget (or, for the continuous policy, one bucket of its wheel)."""
    if truth.signal_delay > 0.0:
        tally[EVENTS] += _deliver(core, truth, tick_number, now)
    if truth.picks.size > 0:
        page = truth.picks[tick_number - 1] if tick_number <= truth.picks.size else -1
    else:
        page = take(core, now)
    while page >= 0:
        _crawl(core, truth, tally, page, now, score_from)
        tally[EVENTS] += 1
        if control_at(core).policy != THRESHOLD:
            return
        page = take(core, now)


@compiled
def _asked(truth: Truth, tally: Integers, page: int, now: float, score_from: float) -> None:
    """Somebody asks for a page: fresh or not."""
    hit = truth.fresh[page]
    if now > score_from:
        tally[REQUESTS] += 1
        tally[HITS] += hit
    if truth.bins.shape[1] > 0:
        cell = int(now / truth.bin_width)
        if cell < truth.bins.shape[1]:
            truth.bins[0, cell] += 1
            truth.bins[1, cell] += hit


@compiled
def run_until(
    core: int, truth: Truth, clock: Floats, tally: Integers, rng: Any, score_from: float, until: float
) -> None:
    """Let the world go on until a moment; ticks are 1/budget apart. Call again to go on from there."""
    control = control_at(core)
    step = control.width if control.policy == THRESHOLD else 1.0 / control.budget
    pages = truth.pages
    event, tick = clock[NEXT_EVENT], clock[NEXT_TICK]
    tick_number = round(tick / step)
    while True:
        if tick <= event:
            if tick > until:
                break
            _tick(core, truth, tally, tick_number, tick, score_from)
            tick += step
            tick_number += 1
            continue
        if event > until:
            break
        now = event
        cell = draw(rng, truth.keep, truth.other)
        event = now + rng.standard_exponential() / truth.total_rate
        tally[EVENTS] += 1
        kind = cell // pages
        page = cell - kind * pages
        if kind == REQUEST:
            _asked(truth, tally, page, now, score_from)
            continue
        if kind != FALSE_SIGNAL and truth.fresh[page] == 1:
            truth.fresh[page] = 0
            _close(truth, page, now, score_from)
        if kind != SILENT_CHANGE and not (truth.signal_delay > 0.0 and _send(truth, page, now, tick_number, rng)):
            signal(core, page, now, 1)
            tally[EVENTS] += 1 if kind == SIGNALLED_CHANGE else 0
    clock[NOW], clock[NEXT_EVENT], clock[NEXT_TICK] = until, event, tick
