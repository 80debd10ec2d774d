"""How alike two rankings are: overlap, rank-biased overlap, and discounted gain; 1: the same, 0: nothing in common."""

from collections.abc import Hashable, Mapping, Sequence
from math import log2

DEPTH = 10  # ranks that count, if nothing else is said
PERSISTENCE = 0.9  # the share of readers of one rank who look at the next one, too


def attention(rank: int) -> float:
    """The share of readers who look at a rank; the first is 1.

    >>> attention(1), round(attention(10), 3)
    (1.0, 0.387)
    """
    return PERSISTENCE ** (rank - 1)


def overlap(found: Sequence[Hashable], fresh: Sequence[Hashable], depth: int = DEPTH) -> float:
    """The share of one's first results that the other has as well.

    >>> overlap("abcd", "abxy", 4)
    0.5
    """
    some, others = set(found[:depth]), set(fresh[:depth])
    return len(some & others) / max(len(some), len(others)) if some or others else 1.0


def rank_biased_overlap(
    found: Sequence[Hashable], fresh: Sequence[Hashable], depth: int = DEPTH, persistence: float = PERSISTENCE
) -> float:
    """Overlap of the first 1, 2, … results, each depth weighted by how many readers get there.

    That of the first `depth` ranks, scaled so that equal rankings have 1. A list that ends early counts as it is.

    >>> rank_biased_overlap("abc", "abc"), rank_biased_overlap("abc", "xyz")
    (1.0, 0.0)
    >>> round(rank_biased_overlap("ab", "ba", 2), 3)
    0.474
    """
    if not found and not fresh:
        return 1.0
    some: set[Hashable] = set()
    others: set[Hashable] = set()
    total = weights = 0.0
    weight, common = 1.0, 0
    for place in range(depth):
        if place < len(found):
            common += found[place] in others
            some.add(found[place])
        if place < len(fresh):
            common += fresh[place] in some
            others.add(fresh[place])
        total += weight * common / max(len(some), len(others))
        weights += weight
        weight *= persistence
    return min(total / weights, 1.0)


def discounted_gain(found: Sequence[Hashable], fresh: Mapping[Hashable, float], depth: int = DEPTH) -> float:
    """Discounted cumulative gain (nDCG): results are worth what the `fresh` ranking scores them.

    >>> discounted_gain("ab", {"a": 2.0, "b": 1.0}), round(discounted_gain("ba", {"a": 2.0, "b": 1.0}), 3)
    (1.0, 0.86)
    """
    best = sum(gain / log2(place + 2) for place, gain in enumerate(sorted(fresh.values(), reverse=True)[:depth]))
    if best <= 0:
        return 1.0 if not found else 0.0
    return sum(fresh.get(each, 0.0) / log2(place + 2) for place, each in enumerate(found[:depth])) / best
