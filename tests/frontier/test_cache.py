"""Every rule by which a cache forgets, against the rule as its authors tell it, in plain lists."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import cache as remembered

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.frontier.cache import RULES, Clock, Found, Lru, S3Fifo, Sieve, Static, fewest_misses, most_asked_for

Requests = st.lists(st.integers(0, 14), max_size=150)
Sizes = st.integers(1, 9)


class PlainClock:
    def __init__(self, size: int) -> None:
        self.size, self.ring, self.hand = size, list[list[int]](), 0

    def met(self, key: int) -> bool:
        for entry in self.ring:
            if entry[0] == key:
                entry[1] = 1
                return True
        if len(self.ring) < self.size:
            self.ring.append([key, 0])
            return False
        while self.ring[self.hand][1]:
            self.ring[self.hand][1] = 0
            self.hand = (self.hand + 1) % self.size
        self.ring[self.hand] = [key, 0]
        self.hand = (self.hand + 1) % self.size
        return False


class PlainLru:
    def __init__(self, size: int) -> None:
        self.size, self.order = size, OrderedDict[int, None]()

    def met(self, key: int) -> bool:
        hit = key in self.order
        if not hit and len(self.order) == self.size:
            self.order.popitem(last=False)
        self.order[key] = None
        self.order.move_to_end(key)
        return hit


class PlainSieve:
    """Oldest first. The hand is a key, or None for the oldest."""

    def __init__(self, size: int) -> None:
        self.size, self.order, self.marked, self.hand = size, list[int](), set[int](), None

    def met(self, key: int) -> bool:
        if key in self.order:
            self.marked.add(key)
            return True
        if len(self.order) == self.size:
            at = 0 if self.hand is None else self.order.index(self.hand)
            while self.order[at] in self.marked:
                self.marked.remove(self.order[at])
                at = (at + 1) % self.size
            self.hand = self.order[at + 1] if at + 1 < len(self.order) else None  # type: ignore[assignment]
            # What comes next stands behind the newest, so a hand at the end goes on there only if it waits there.
            del self.order[at]
        self.order.append(key)
        return False


class PlainS3Fifo:
    """Queues with the oldest first; `freq` as in the paper, capped at 3."""

    def __init__(self, size: int) -> None:
        self.size, self.small, self.main, self.ghosts = size, list[int](), list[int](), list[int]()
        self.freq = dict[int, int]()

    def met(self, key: int) -> bool:
        if key in self.small or key in self.main:
            self.freq[key] = min(self.freq[key] + 1, 3)
            return True
        queue = self.small
        if key in self.ghosts:
            self.ghosts.remove(key)
            queue = self.main
        if len(self.small) + len(self.main) >= self.size:
            self._make_room()
        queue.append(key)
        self.freq[key] = 0
        return False

    def _make_room(self) -> None:
        while len(self.small) >= max(1, self.size // 10) or (not self.main and self.small):
            oldest = self.small.pop(0)
            if self.freq[oldest] > 1:
                self.freq[oldest] = 0
                self.main.append(oldest)
                continue
            if len(self.ghosts) >= max(1, self.size - self.size // 10):
                self.ghosts.pop(0)
            self.ghosts.append(oldest)
            return
        while self.freq[self.main[0]] > 0:
            oldest = self.main.pop(0)
            self.freq[oldest] -= 1
            self.main.append(oldest)
        self.main.pop(0)


PLAIN = [(Clock, PlainClock), (Lru, PlainLru), (Sieve, PlainSieve), (S3Fifo, PlainS3Fifo)]


@pytest.mark.parametrize(("rule", "plain"), PLAIN)
@given(requests=Requests, size=Sizes, cut=st.integers(0, 150))
def test_compiled_rules_do_what_the_plain_ones_do(rule, plain, requests, size, cut) -> None:  # type: ignore[no-untyped-def]
    cache, oracle = rule(size), plain(size)
    found = [*cache.met_many(requests[:cut]), *cache.met_many(requests[cut:])]
    assert found == [oracle.met(key) for key in requests]
    assert cache.hits == sum(found)
    assert cache.hits + cache.misses == len(requests)


@pytest.mark.parametrize(("rule", "plain"), PLAIN)
def test_and_in_caches_of_other_sizes(rule, plain) -> None:  # type: ignore[no-untyped-def]
    requests = np.random.default_rng(1).zipf(1.2, 6_000) % 1_000
    for size in (30, 100):
        oracle = plain(size)
        assert rule(size).met_many(requests).tolist() == [oracle.met(key) for key in requests.tolist()]


@pytest.mark.parametrize("name", RULES)
@given(requests=Requests, size=Sizes)
def test_a_hit_is_always_a_duplicate_and_the_size_is_kept(name: str, requests: list[int], size: int) -> None:
    hits = RULES[name](size).met_many(requests)
    before: set[int] = set()
    for key, hit in zip(requests, hits, strict=True):
        assert key in before or not hit
        before.add(key)
    if len(before) <= size or name == "infinite":
        again = RULES[name](size)
        again.met_many(requests)
        if name != "s3-fifo":  # its queue for newcomers is shorter than the whole cache only when that is full
            assert again.misses == len(before)


@given(requests=st.lists(st.integers(0, 5), max_size=11), size=st.integers(1, 4))
@settings(max_examples=60)
def test_nobody_misses_less_than_who_knows_the_future(requests: list[int], size: int) -> None:
    least = fewest_misses(requests, size)
    assert least == _brute_force(tuple(requests), size)
    for name in ("random", "clock", "lru", "sieve", "s3-fifo"):
        cache = RULES[name](size)
        cache.met_many(requests)
        assert cache.misses >= least


def _brute_force(requests: Sequence[int], size: int) -> int:
    @remembered
    def least(at: int, held: frozenset[int]) -> int:
        if at == len(requests):
            return 0
        key = requests[at]
        if key in held:
            return least(at + 1, held)
        if len(held) < size:
            return 1 + least(at + 1, held | {key})
        return 1 + min(least(at + 1, held - {gone} | {key}) for gone in held)

    return least(0, frozenset())


@given(requests=Requests, size=Sizes)
def test_static_ones_hold_the_most_popular(requests: list[int], size: int) -> None:
    chosen = most_asked_for(requests, size).tolist()
    counts = Counter(requests)
    assert len(chosen) == min(size, len(counts))
    assert sorted((counts[key] for key in chosen), reverse=True) == sorted(counts.values(), reverse=True)[:size]
    cache = Static(size, chosen)
    assert cache.met_many(requests).tolist() == [key in chosen for key in requests]


@given(requests=Requests, size=Sizes, watch=st.integers(1, 60), cut=st.integers(0, 150))
def test_static_ones_that_are_found_on_the_way(requests: list[int], size: int, watch: int, cut: int) -> None:
    cache = Found(size, watch)
    found = [*cache.met_many(requests[:cut]), *cache.met_many(requests[cut:])]
    chosen = most_asked_for(requests[:watch], size).tolist()
    assert found == [at >= watch and key in chosen for at, key in enumerate(requests)]


def test_popular_keys_survive_a_flood() -> None:
    cache, rng = Clock(1_000), np.random.default_rng(1)
    both = np.empty(100_000, np.int64)
    both[::2] = rng.zipf(1.3, 50_000)
    both[1::2] = rng.integers(10**12, 10**15, 50_000)
    assert int(cache.met_many(both).sum()) > 35_000


def test_sizes_that_cannot_be() -> None:
    for size in (0, -1, 1 << 40):
        with pytest.raises(ValueError, match="a cache holds"):
            Clock(size)
    with pytest.raises(ValueError, match="do not fit"):
        Static(1, [1, 2])
    with pytest.raises(ValueError, match="at least one"):
        fewest_misses([1], 0)
