"""The heart: what is heard, learned and believed of pages, compiled, over the columns of all of them.

The live engine and the simulator call these same functions, one with the time of a clock and one with a virtual time.
A page is a slot number here; nothing knows names. The order of things:

1. `hear` takes a signal in, `afresh.estimate.wanted.ask` a request; `heard` and `believe` tell the schedule.
2. The schedule hands a page out (`schedule.wheel.turn.take`), and `mark_ordered` notes what was heard until then.
3. `check` learns from what the crawl found: the estimator, what the senders of signals are worth, what happened on the
   page's branches of its site. The copy is current again.
4. The schedule takes the page back (`crawl`, `hand_in`).
5. `look_round` passes on what was learned: to some siblings of a page that had changed, and to the pages whose turn it
   is. All at once would make the price ring.

`hearts.PlainHeart` does the same one page at a time in the interpreter, for any scheduler and estimator, and is the
specification.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.engine.columns import (
    ALIKE,
    BRANCHES,
    CERTAIN,
    FOUND,
    OUT_OF_PLAY,
    OUTDATED,
    SENDERS,
    TOGETHER,
    forget_heard,
    hear_out,
    join,
    leave,
    note_heard,
)
from afresh.estimate.activity import TOLD_OF_A_CHANGE
from afresh.estimate.activity_online import Slices, fresh, learn_activity, stretched
from afresh.estimate.online import (
    GLANCES,
    TYPICAL_RATE,
    Table,
    beliefs_of,
    glance,
    hear_signals,
    learn_crawl,
    signal_rate_of,
    usual_interval,
    weigh_page,
)
from afresh.estimate.points import fresh_of, weight_of
from afresh.estimate.senders import NOT_EARLY, change_curve, credit_signals, octave, signal_weight
from afresh.estimate.wanted import Asking, ask, request_rate_of
from afresh.schedule.wheel import events
from afresh.schedule.wheel.memory import page_at
from afresh.schedule.wheel.table import FREE, LEASED
from afresh.value.compiled import compiled

Records = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ABOUT = 0.1  # an age that is off by less is right enough
MAX_AGE = 1e15  # seconds: no copy is older
MAX_SIGNALS = 1e9
SHORT_WATCH = 0.25  # usual intervals: how often a page sends signals cannot be told from the first one before that
LEAST = 1e-300  # a chance whose logarithm is finite


class Heart(NamedTuple):
    """All that the functions here read and write: arrays that others own."""

    core: int  # the schedule
    table: Table  # what was learned
    asking: Asking  # and of requests
    slices: Slices  # what happened on branches,
    wider: Integers  # the branch that each is on,
    line: Integers  # and room for the branches that one page is on
    pages: Records
    heard: Records
    turn: Integers
    control: Integers
    credit: Floats  # of senders
    due: Floats
    checked: Floats


@compiled
def line_of(heart: Heart, slot: int) -> Integers:
    """The branches that a page is on, from its host to the narrowest."""
    depth, branch = 0, heart.pages[slot]["branch"]
    while branch >= 0:
        depth += 1
        branch = heart.wider[branch]
    branch = heart.pages[slot]["branch"]
    for place in range(depth - 1, -1, -1):
        heart.line[place] = branch
        branch = heart.wider[branch]
    return heart.line[:depth]


@compiled
def _weight(heart: Heart, sender: int, pair: int, early: int) -> float:
    """What a signal counts for, as a number of the best sender's."""
    if heart.control[ALIKE] != 0:
        return 1.0
    return float(signal_weight(heart.credit, heart.due, heart.control[SENDERS], sender, pair, early))


@compiled
def count_heard(heart: Heart, slot: int, ordered: bool) -> float:
    """Signals since the copy was current, or of those before the order, as a number of the best sender's."""
    total, at = 0.0, heart.pages[slot]["heard"]
    while at >= 0:
        entry = heart.heard[at]
        count = float(entry["ordered"] if ordered else entry["count"])
        if count > 0.0:
            total += count * _weight(heart, entry["sender"], entry["pair"], entry["early"])
        at = entry["next"]
    return min(total, MAX_SIGNALS)


@compiled
def age_of(heart: Heart, slot: int, now: float) -> float:
    """How old a copy is, in seconds as long as what happened in them makes them.

    What happens on the only branch concerns all alike: it counts for what is said, and not for the order.
    """
    current = float(heart.pages[slot]["current"])
    if heart.control[TOGETHER] == 0 or heart.control[BRANCHES] <= 1 or heart.pages[slot]["branch"] < 0:
        return max(now - current, 0.0)
    return stretched(heart.slices, line_of(heart, slot), current, now)


@compiled
def fresh_probability(heart: Heart, slot: int, now: float) -> float:
    """How likely the copy of a page is to be current; 0 where there is none."""
    page = heart.pages[slot]
    current = page["current"]
    if math.isnan(current) or page["flags"] & OUTDATED:
        return 0.0
    elapsed = min(max(now - current, 0.0), MAX_AGE)
    rate = heart.table.control[TYPICAL_RATE]
    weigh_page(heart.table, slot)
    by_time = fresh_of(heart.table.chance, rate, elapsed, 0.0)
    all_told = by_time
    if page["heard"] >= 0:
        all_told = fresh_of(heart.table.chance, rate, elapsed, count_heard(heart, slot, False))
    if heart.control[TOGETHER] == 0 or page["branch"] < 0:
        return all_told
    expected = -math.log(max(by_time, LEAST))
    told = -math.log(max(all_told, LEAST)) - expected
    return fresh(heart.slices, line_of(heart, slot), current, now, expected) * math.exp(-told)


@compiled
def _write_beliefs(heart: Heart, slot: int, now: float) -> None:
    """Let the schedule's record of a page say what is believed of it and its copy."""
    change_rate, recall, false_rate, shape = beliefs_of(heart.table, slot, now)
    if heart.control[CERTAIN] != 0:
        shape = math.inf
    events.believe(heart.core, slot, change_rate, recall, false_rate, shape)
    record, page = page_at(heart.core, slot), heart.pages[slot]
    page["request_rate"] = record.request_rate = request_rate_of(heart.table, heart.asking, slot, now)
    record.signals = count_heard(heart, slot, False)
    current = page["current"]
    if math.isnan(current):
        return
    if heart.control[TOGETHER] != 0 and heart.control[BRANCHES] > 1:
        current = now - age_of(heart, slot, now)
    record.current = current
    page["assumed"] = current


@compiled
def believe(heart: Heart, slot: int, now: float) -> None:
    """Tell the schedule what is believed of a page and its copy."""
    if page_at(heart.core, slot).place == FREE:
        return
    _write_beliefs(heart, slot, now)
    events.replace(heart.core, slot, now)


@compiled
def join_all(pages: Records, turn: Integers, control: Integers, slots: Integers) -> None:
    """New pages take their places on their branches."""
    for k in range(slots.size):
        if pages[slots[k]]["branch"] >= 0:
            join(pages, turn, control, slots[k])


@compiled
def believe_all(heart: Heart, slots: Integers, now: float) -> None:
    """The records of pages that are not in play say what is believed of them."""
    for k in range(slots.size):
        _write_beliefs(heart, slots[k], now)


@compiled
def hear(heart: Heart, slot: int, sender: int, pair: int, time: float) -> None:
    """Take a signal in, without telling the schedule; there must be a free entry."""
    page = heart.pages[slot]
    early = NOT_EARLY
    if page["flags"] & FOUND and not math.isnan(page["current"]):
        early = octave(time - page["current"])  # it may be about the change that was fetched
    note_heard(heart.pages, heart.heard, heart.control, slot, sender, pair, early, 1)
    hear_signals(heart.table, slot, min(_weight(heart, sender, pair, early), MAX_SIGNALS), time)


@compiled
def heard(heart: Heart, slot: int, now: float) -> None:
    """Tell the schedule that signals of a page were heard.

    What is believed of it hardly changes by them, and is found anew when it is its turn: unless they are the first.
    The first ones of a page that was not watched for long also wait for its turn, half a round at most. A rate of
    signals found from one that has just come is far off then, and crawls would go where it is.
    """
    record = page_at(heart.core, slot)
    if record.weight == 0.0:
        if now - heart.table.pages[slot].since >= SHORT_WATCH * usual_interval(heart.table.control):
            believe(heart, slot, now)
        return
    more = count_heard(heart, slot, False) - np.float64(record.signals)
    if more > 0.0:
        events.signal(heart.core, slot, now, more)


@compiled
def hear_all(heart: Heart, slots: Integers, senders: Integers, pairs: Integers, times: Floats, now: float) -> None:
    """Take signals in, in their order, and tell the schedule; there must be free entries for them."""
    for k in range(slots.size):
        hear(heart, slots[k], senders[k], pairs[k], times[k])
    for k in range(slots.size):  # of the signals of one page, the first finds all of them counted
        heard(heart, slots[k], now)


@compiled
def ask_all(heart: Heart, slots: Integers, counts: Floats, times: Floats, now: float) -> None:
    """Take requests in, in their order, and tell the schedule."""
    for k in range(slots.size):
        ask(heart.table, heart.asking, slots[k], counts[k], times[k])
    for k in range(slots.size):
        believe(heart, slots[k], now)


@compiled
def _learn_senders(heart: Heart, slot: int, by_time: float, weight: float, changed: bool) -> None:
    """A crawl has shown whether what was heard of the page before was true."""
    x = by_time + weight * count_heard(heart, slot, True)
    if not (math.isfinite(x) and x >= 0.0) or heart.control[ALIKE] != 0:
        return
    curve = change_curve(x, changed)
    entries, at = 0, heart.pages[slot]["heard"]
    while at >= 0:
        entries += 1
        at = heart.heard[at]["next"]
    weights, nth, at = np.empty(entries), 0, heart.pages[slot]["heard"]
    while at >= 0:  # before any of them learns
        entry = heart.heard[at]
        weights[nth] = _weight(heart, entry["sender"], entry["pair"], entry["early"])
        nth += 1
        at = entry["next"]
    nth, at = 0, heart.pages[slot]["heard"]
    while at >= 0:
        entry = heart.heard[at]
        count = float(entry["ordered"])
        if count > 0.0:
            kind = (int(entry["sender"]), int(entry["pair"]), int(entry["early"]))
            credit_signals(heart.credit, heart.due, kind, count * weight * weights[nth], count * weight, curve)
            heart.checked[entry["sender"]] += count
        nth += 1
        at = entry["next"]


@compiled
def _learn(heart: Heart, slot: int, now: float, changed: bool) -> None:
    """A crawl has shown whether the copy had become stale."""
    current = heart.pages[slot]["current"]
    elapsed = min(max(now - current, 0.0), MAX_AGE)
    table, rate = heart.table, heart.table.control[TYPICAL_RATE]
    signals = count_heard(heart, slot, True) if heart.pages[slot]["heard"] >= 0 else 0.0
    together = heart.control[TOGETHER] != 0 and heart.pages[slot]["branch"] >= 0
    if together or signals > 0.0:
        weigh_page(table, slot)
        by_time = -math.log(max(fresh_of(table.chance, rate, elapsed, 0.0), LEAST))
        told = 0.0
        if signals > 0.0:
            told = -math.log(max(fresh_of(table.chance, rate, elapsed, signals), LEAST)) - by_time
            stretched_by = -math.log(max(fresh_of(table.chance, rate, age_of(heart, slot, now), 0.0), LEAST))
            usually = signal_rate_of(table, slot, now) * usual_interval(table.control)
            _learn_senders(heart, slot, stretched_by, weight_of(table.chance, usually), changed)
        if together:
            learn_activity(heart.slices, line_of(heart, slot), current, now, by_time, told, changed)
    learn_crawl(table, slot, elapsed, signals, changed)


@compiled
def check(heart: Heart, slot: int, started: float, now: float, learns: bool, changed: bool, found: bool) -> None:
    """A crawl that began at `started` has confirmed or replaced the copy: learn from it, and let its age start again.

    Not `learns`: it was the first one, which shows nothing. `found`: signals for what it found may yet come. Call it
    before the schedule takes the page back.
    """
    if learns:
        _learn(heart, slot, started, changed)
    page = heart.pages[slot]
    page["current"] = started
    page["failures"] = 0
    page["flags"] = (page["flags"] & OUT_OF_PLAY) | (FOUND if found else 0)
    hear_out(heart.pages, heart.heard, heart.control, slot)
    _write_beliefs(heart, slot, now)
    record = page_at(heart.core, slot)
    if record.place == LEASED:
        record.previous = 0  # signals that count for the crawl are taken off already


@compiled
def _look_at_siblings(heart: Heart, slot: int, now: float) -> None:
    branch = heart.pages[slot]["branch"]
    if heart.control[TOGETHER] == 0 or heart.control[BRANCHES] <= 1 or branch < 0:
        return
    first = heart.turn[branch]
    for _ in range(TOLD_OF_A_CHANGE):
        sibling = heart.turn[branch]
        page = heart.pages[sibling]
        heart.turn[branch] = page["following"]
        if not math.isnan(page["current"]):
            age = age_of(heart, sibling, now)
            if abs(now - page["assumed"] - age) > ABOUT * age:
                believe(heart, sibling, now)
        if heart.turn[branch] == first:
            return


@compiled
def look_round(heart: Heart, slot: int, now: float, changed: bool) -> None:
    """After a crawl: some siblings, if the page had changed, and the pages whose turn it is, are believed anew."""
    if changed:
        _look_at_siblings(heart, slot, now)
    seen = np.empty(int(heart.table.control[GLANCES]), np.int64)
    for nth in range(seen.size):
        seen[nth] = glance(heart.table)
    for nth in range(seen.size):
        if seen[nth] >= 0:
            believe(heart, seen[nth], now)


@compiled
def forget(heart: Heart, slot: int) -> None:
    """Forget what is kept of a page here."""
    forget_heard(heart.pages, heart.heard, heart.control, slot)
    leave(heart.pages, heart.turn, slot)


@compiled
def state_all(heart: Heart, slots: Any, now: float, fresh_of_each: Floats) -> None:
    """How likely the copies at these slots are to be current."""
    for k in range(slots.size):
        fresh_of_each[k] = fresh_probability(heart, slots[k], now)


@compiled
def _roughly_fresh(page: Any, record: Any, now: float) -> float:
    """How likely a copy is to be current, by what the schedule takes to be true: a rate with a Gamma distribution."""
    if math.isnan(page["current"]) or page["flags"] & OUTDATED:
        return 0.0
    x = float(record["silent_rate"]) * max(now - record["current"], 0.0)
    shape = float(record["shape"])
    if shape < math.inf:
        x = shape * math.log1p(x / shape)
    if record["signals"] > 0.0:
        x += float(record["weight"]) * float(record["signals"])
    return math.exp(-x)


@compiled
def state_roughly(pages: Records, records: Records, slots: Integers, now: float, fresh_of_each: Floats) -> None:
    """How likely the copies at these slots are to be current, roughly."""
    for k in range(slots.size):
        fresh_of_each[k] = _roughly_fresh(pages[slots[k]], records[slots[k]], now)


@compiled
def sum_roughly(pages: Records, records: Records, used: Any, now: float) -> tuple[float, float]:
    """The requests for all pages in use, and those of them that would find a fresh copy, roughly."""
    total, found = 0.0, 0.0
    for slot in range(min(used.size, pages.size, records.size)):
        if used[slot]:
            weight = float(pages[slot]["request_rate"])
            total += weight
            found += weight * _roughly_fresh(pages[slot], records[slot], now)
    return total, found
