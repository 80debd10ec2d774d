"""Pages that change together, in a replay: what a crawl finds is told to some of the page's siblings at once."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.activity import SLICES_PER_ROUND, Activity
from afresh.estimate.activity_online import Slices, fresh, learn_activity, slices_of, stretched
from afresh.estimate.kin import branches_of
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Siblings(NamedTuple):
    """The branches of all pages, and whose turn it is on each."""

    on: bool
    ranks: bool  # what happens on the branches tells pages apart: there are several
    slices: Slices
    branches: Integers  # (pages, levels), from the host to the narrowest, which is repeated up to the end
    levels: Integers  # branches that each page is on
    members: Integers  # pages by narrowest branch: those of branch g are members[first[g] : first[g + 1]]
    first: Integers
    turn: Integers


def siblings_of(names: Sequence[str], pages: int, round_time: float) -> Siblings:
    """The siblings among pages of these addresses; without names, every page is on its own.

    Where all are on one branch, what happens there concerns all alike: it counts for what is said of their copies, and
    not for the order in which they are crawled.
    """
    activity = Activity(width=round_time / SLICES_PER_ROUND)
    rows = [activity.branches(branches_of(*address_of(name))) for name in names] or [(0,)] * pages
    most = max(len(row) for row in rows)
    branches = np.array([row + row[-1:] * (most - len(row)) for row in rows], np.int64)
    levels = np.array([len(row) for row in rows], np.int64)
    count = int(branches.max()) + 1
    members = np.argsort(branches[:, -1], kind="stable")
    first = np.searchsorted(branches[members, -1], np.arange(count + 1))
    several = bool(branches[:, -1].min() < branches[:, -1].max())
    turn = np.zeros(count, np.int64)
    return Siblings(bool(names), several, slices_of(activity), branches, levels, members, first, turn)


def address_of(name: str) -> tuple[str, str]:
    """A page's address and its host, whether there is a scheme before it or not; "" is the host of a path alone.

    >>> address_of("https://example.com/a/b"), address_of("example.com/a/b")
    (('https://example.com/a/b', 'example.com'), ('example.com/a/b', 'example.com'))
    >>> address_of("/docs/a.html"), address_of("17")
    (('/docs/a.html', ''), ('/17', ''))
    """
    if "/" not in name:
        return f"/{name}", ""
    return name, name.split("//", 1)[-1].split("/", 1)[0]


@compiled
def next_sibling(siblings: Siblings, page: int) -> int:
    """The sibling of a page whose turn it is; it may be the page itself."""
    branch = siblings.branches[page, -1]
    start, end = siblings.first[branch], siblings.first[branch + 1]
    turn = siblings.turn[branch]
    siblings.turn[branch] = turn + 1 if turn + 1 < end - start else 0
    return int(siblings.members[start + turn])


@compiled
def branches_on(siblings: Siblings, page: int) -> Integers:
    """The branches that a page is on."""
    return siblings.branches[page, : siblings.levels[page]]


@compiled
def age_of(siblings: Siblings, page: int, current: float, now: float) -> float:
    """How old a copy is, by what happened on its branches, as far as they tell pages apart."""
    if not siblings.ranks:
        return now - current
    return stretched(siblings.slices, branches_on(siblings, page), current, now)


@compiled
def fresh_by_time(siblings: Siblings, page: int, current: float, now: float, by_time: float) -> float:
    """How likely a copy is to be current, by what happened on its branches; `by_time`: how stale it is by the clock."""
    if not siblings.on:
        return math.exp(-by_time)
    return fresh(siblings.slices, branches_on(siblings, page), current, now, by_time)


@compiled
def tell(
    siblings: Siblings, page: int, current: float, now: float, expected: float, told: float, changed: bool
) -> None:
    """A crawl found a change, or none."""
    if siblings.on:
        learn_activity(siblings.slices, branches_on(siblings, page), current, now, expected, told, changed)
