import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.frontier import Clock


class PlainClock:
    """The rule as the textbook tells it: a ring of [key, asked again]."""

    def __init__(self, size: int) -> None:
        self.size, self.ring, self.hand = size, [], 0  # type: ignore[var-annotated]

    def met(self, key: int) -> bool:
        for entry in self.ring:
            if entry[0] == key:
                entry[1] = True
                return True
        if len(self.ring) < self.size:
            self.ring.append([key, False])
            return False
        while self.ring[self.hand][1]:
            self.ring[self.hand][1] = False
            self.hand = (self.hand + 1) % self.size
        self.ring[self.hand] = [key, False]
        self.hand = (self.hand + 1) % self.size
        return False


@given(st.lists(st.integers(0, 12), max_size=200), st.integers(1, 8))
def test_it_follows_the_clock_rule(keys: list[int], size: int) -> None:
    cache, plain = Clock(size), PlainClock(size)
    assert [cache.met(key) for key in keys] == [plain.met(key) for key in keys]
    assert len(cache) == min(size, len(set(keys)))
    assert cache.hits + cache.misses == len(keys)


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(1, 8))
def test_a_hit_is_always_a_duplicate(keys: list[int], size: int) -> None:
    cache, before = Clock(size), set[int]()
    for key in keys:
        assert not cache.met(key) or key in before
        before.add(key)


def test_popular_keys_survive_a_flood() -> None:
    cache, rng = Clock(1_000), np.random.default_rng(1)
    popular = rng.zipf(1.3, 50_000)
    flood = rng.integers(10**12, 10**15, 50_000)
    hits = 0
    for wanted, noise in zip(popular.tolist(), flood.tolist(), strict=True):
        hits += cache.met(wanted)
        cache.met(noise)
    assert hits > 35_000
    assert len(cache) == 1_000


def test_unmet_and_bad_sizes() -> None:
    assert Clock(10).unmet([3, 1, 3, 2]) == [3, 1, 2]
    with pytest.raises(ValueError, match="size is 0"):
        Clock(0)
