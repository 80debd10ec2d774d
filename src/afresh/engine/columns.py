"""What the engine remembers of each page, beside the records of the schedule and of the estimator: 48 bytes a page.

A page's slot is its place in all of them. Signals are kept apart, for the pages that have any: what was heard since the
copy was current, by sender and by how early after a change. The pages of a branch form a ring, so that they can be
looked at in turn. The functions here run in the interpreter and, called from compiled code, compiled.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Records = NDArray[Any]
Integers = NDArray[np.int64]

TRACKED = np.dtype(
    [
        ("current", "f8"),  # the copy is as of this moment; NaN: there is none
        ("assumed", "f8"),  # the schedule takes it to be as of this one: where siblings were busy, time is longer
        ("host", "i4"),
        ("branch", "i4"),  # the narrowest that it is on; −1: none
        ("following", "i4"),  # neighbours in the ring of its branch
        ("preceding", "i4"),
        ("heard", "i4"),  # the first entry of what was heard; −1: nothing
        ("signals", "i4"),  # heard since the copy was current
        ("request_rate", "f4"),  # as the schedule was told
        ("failures", "u2"),  # in a row, up to now: all that it is gone, or all others
        ("flags", "u2"),
    ]
)
MOST_FAILURES = 65_535
OUTDATED = 1  # the copy is known to differ from the page: there was no room for the new one
FOUND = 2  # the last crawl found a change, for which signals may yet come
GONE = 4  # the last failure said that the page is gone
NO_ROOM = 8  # it is put off because the store was full
WAITING = 16  # it is kept out of play until it is its turn for a first crawl,
HELD = 32  # or because an operator says so
OUT_OF_PLAY = WAITING | HELD

HEARD = np.dtype(
    [
        ("sender", "i2"),
        ("early", "i2"),  # octave after a change that was found; −1: there was none
        ("pair", "i4"),  # the row of the sender on this host; 0: none
        ("count", "f4"),
        ("ordered", "f4"),  # how many of these before the order was given
        ("next", "i4"),  # the next entry of the page, or the next free one; −1: none
    ]
)

# Indices of `control`: the first free entry of what was heard, and how many there are; the branches that have had
# pages; how many senders there are; whether pages may change together; and for comparison, whether rates are taken to
# be known exactly, and whether all signals are taken to be alike.
FREE_HEARD, FREE_ENTRIES, BRANCHES, SENDERS, TOGETHER, CERTAIN, ALIKE = range(7)
NEVER, EMPTY = -1, -2  # whose turn it is on a branch that never had a page, or has none any more


class Columns:
    """The arrays, which grow."""

    def __init__(self) -> None:
        self.pages = np.zeros(0, TRACKED)
        self.heard = np.zeros(0, HEARD)
        self.turn = np.full(16, NEVER)  # of each branch, the page to be looked at next
        self.control = np.array([-1, 0, 0, 0, 0, 0, 0])

    def make_room(self, slot: int, branch: int = -1) -> None:
        """Let there be a record for this slot, and for this branch."""
        if slot >= len(self.pages):
            self.reserve(max(64, slot + 1, len(self.pages) * 5 // 4))
        if branch >= len(self.turn):
            more = np.full(max(branch + 1, 2 * len(self.turn)), NEVER)
            more[: len(self.turn)] = self.turn
            self.turn = more

    def reserve(self, pages: int) -> None:
        """Make room for this many pages at once, and not for a quarter more."""
        if pages > len(self.pages):
            more = np.zeros(pages, TRACKED)
            more[: len(self.pages)] = self.pages
            self.pages = more

    def room_for_heard(self, count: int) -> None:
        """Let there be at least this many free entries for what is heard."""
        if self.control[FREE_ENTRIES] >= count:
            return
        have = len(self.heard)
        more = np.zeros(max(64, count, have // 2), HEARD)
        more["next"] = np.arange(have + 1, have + 1 + len(more))
        more["next"][-1] = self.control[FREE_HEARD]
        self.control[FREE_HEARD] = have
        self.control[FREE_ENTRIES] += len(more)
        self.heard = np.concatenate([self.heard, more])

    def enter(self, slot: int, *, host: int, branch: int, current: float, failures: int, flags: int) -> None:
        """A page comes in."""
        self.make_room(slot, branch)
        failures = min(failures, MOST_FAILURES)
        self.pages[slot] = (current, math.inf, host, branch, slot, slot, -1, 0, 0.0, failures, flags)
        if branch >= 0:
            join(self.pages, self.turn, self.control, slot)

    def enter_many(
        self,
        slots: Integers,
        *,
        host: Integers,
        branch: Integers,
        current: NDArray[np.float64],
        failures: Integers,
        flags: Integers,
    ) -> None:
        """Pages come in, in this order."""
        self.make_room(int(slots.max(initial=-1)), int(branch.max(initial=-1)))
        new = np.zeros(len(slots), TRACKED)
        new["current"], new["assumed"] = current, math.inf
        new["host"], new["branch"] = host, branch
        new["following"] = new["preceding"] = slots
        new["heard"] = -1
        new["failures"], new["flags"] = np.minimum(failures, MOST_FAILURES), flags
        self.pages[slots] = new

    def entries(self, slot: int) -> list[tuple[int, int, int, float, float]]:
        """What was heard of a page: (sender, pair, early, count, ordered) each."""
        found, at = [], int(self.pages[slot]["heard"])
        while at >= 0:
            each = self.heard[at]
            found.append(
                (
                    int(each["sender"]),
                    int(each["pair"]),
                    int(each["early"]),
                    float(each["count"]),
                    float(each["ordered"]),
                )
            )
            at = int(each["next"])
        return found


@register_jitable
def join(pages: Records, turn: Integers, control: Integers, slot: int) -> None:
    """Let a page be the last one to be looked at on its branch."""
    branch = pages[slot]["branch"]
    first = turn[branch]
    if first < 0:
        if first == NEVER:
            control[BRANCHES] += 1
        turn[branch] = slot
        return
    last = pages[first]["preceding"]
    pages[slot]["preceding"] = last
    pages[slot]["following"] = first
    pages[last]["following"] = slot
    pages[first]["preceding"] = slot


@register_jitable
def leave(pages: Records, turn: Integers, slot: int) -> None:
    """Take a page out of the ring of its branch."""
    branch = pages[slot]["branch"]
    if branch < 0:
        return
    following, preceding = pages[slot]["following"], pages[slot]["preceding"]
    pages[following]["preceding"] = preceding
    pages[preceding]["following"] = following
    if turn[branch] == slot:
        turn[branch] = following if following != slot else EMPTY
    pages[slot]["following"] = slot
    pages[slot]["preceding"] = slot
    pages[slot]["branch"] = -1


@register_jitable
def note_heard(
    pages: Records, heard: Records, control: Integers, slot: int, sender: int, pair: int, early: int, count: int
) -> None:
    """Signals of this kind arrived; there must be a free entry."""
    pages[slot]["signals"] += count
    at = pages[slot]["heard"]
    while at >= 0:
        if heard[at]["sender"] == sender and heard[at]["early"] == early:
            heard[at]["count"] += np.float32(count)
            return
        at = heard[at]["next"]
    at = control[FREE_HEARD]
    control[FREE_HEARD] = heard[at]["next"]
    control[FREE_ENTRIES] -= 1
    heard[at]["sender"] = sender
    heard[at]["early"] = early
    heard[at]["pair"] = pair
    heard[at]["count"] = count
    heard[at]["ordered"] = 0.0
    heard[at]["next"] = pages[slot]["heard"]
    pages[slot]["heard"] = at


@register_jitable
def mark_ordered(pages: Records, heard: Records, slot: int) -> None:
    """An order is given: what was heard until now may be about what it will find, what comes later may not."""
    at = pages[slot]["heard"]
    while at >= 0:
        heard[at]["ordered"] = heard[at]["count"]
        at = heard[at]["next"]


def spare(columns: Columns, slot: int, later: Sequence[int]) -> None:
    """Of what was marked as ordered, signals of these senders came later: they may not be about what was found."""
    for sender in later:
        at = int(columns.pages[slot]["heard"])
        while at >= 0:
            entry = columns.heard[at]
            if entry["sender"] == sender and entry["ordered"] >= 1.0:
                entry["ordered"] -= np.float32(1.0)
                break
            at = int(entry["next"])


@register_jitable
def hear_out(pages: Records, heard: Records, control: Integers, slot: int) -> None:
    """The page was crawled: of what was heard of it, only what came after the order is left."""
    at, kept, left = pages[slot]["heard"], -1, 0.0
    while at >= 0:
        following = heard[at]["next"]
        heard[at]["count"] -= heard[at]["ordered"]
        heard[at]["ordered"] = 0.0
        if heard[at]["count"] > 0.0:
            left += heard[at]["count"]
            heard[at]["next"] = kept
            kept = at
        else:
            heard[at]["next"] = control[FREE_HEARD]
            control[FREE_HEARD] = at
            control[FREE_ENTRIES] += 1
        at = following
    pages[slot]["heard"] = kept
    pages[slot]["signals"] = int(left)


@register_jitable
def forget_heard(pages: Records, heard: Records, control: Integers, slot: int) -> None:
    """Forget all that was heard of a page."""
    mark_ordered(pages, heard, slot)
    hear_out(pages, heard, control, slot)
