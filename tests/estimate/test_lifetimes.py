import math

import numpy as np
import pytest

from afresh.estimate.lifetimes import MAX_HOSTS, Lifetimes

HOUR, DAY = 3600.0, 86400.0


def crawled(factor: float, *, tell: bool, crawls: int = 400, seed: int = 0) -> Lifetimes:
    """Pages of a host with very different lifetimes, that change by these times a factor, or all alike."""
    found, rng = Lifetimes(), np.random.default_rng(seed)
    for _ in range(crawls):
        lifetime = float(HOUR * 4.0 ** rng.integers(0, 5))
        rate = factor * math.log(2.0) / (lifetime if tell else 16 * HOUR)
        elapsed = float(rng.exponential(16 * HOUR))
        found.saw("h", lifetime, elapsed, changed=bool(rng.random() < -math.expm1(-rate * elapsed)))
    return found


@pytest.mark.parametrize("factor", [0.05, 1.0, 20.0])
def test_how_far_a_host_exaggerates_is_learned(factor: float) -> None:
    found = [math.log(crawled(factor, tell=True, seed=seed).factor("h")) for seed in range(6)]
    assert np.mean(found) == pytest.approx(
        math.log(factor), abs=1.1
    )  # where nearly all crawls find changes: cautiously


def test_lifetimes_that_do_not_tell_pages_apart_lose_their_weight() -> None:
    assert crawled(1.0, tell=True).trust("h") > 0.6
    assert crawled(1.0, tell=False).trust("h") < 0.05
    assert 0.0 < Lifetimes().trust("h") < 0.06


def test_it_is_bounded_and_absurd_numbers_do_no_harm() -> None:
    found = Lifetimes()
    for n in range(MAX_HOSTS + 5):
        found.saw(f"h{n}", 10.0 ** (n % 25 - 5), 10.0 ** (n % 19 - 4), changed=n % 2 == 0)
    assert len(found._hosts) == MAX_HOSTS
    for host in ("h7", "h100", "never seen"):
        assert 0.0 < found.factor(host) < 1e7
        assert 0.0 <= found.trust(host) < 1.0
    again = Lifetimes.from_text(found.to_text())
    assert again.factor("never seen") == pytest.approx(found.factor("never seen"), rel=0.05)
