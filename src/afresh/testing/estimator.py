"""What every estimator promises."""

# ruff: noqa: S101 - a broken promise is an AssertionError here, by contract

import math
from collections.abc import Callable

import numpy as np

from afresh.estimate import Estimator
from afresh.types import Beliefs

_PAGES = 12
_MOST_BYTES = 512  # that an estimator may ask the store to keep of a page


def check_estimator(make: Callable[[], Estimator]) -> None:
    """Put estimators that `make` makes to the test; AssertionError says which promise was broken."""
    _learns(make())
    _is_always_a_number(make)
    _is_repeatable(make)
    _keeps_pages_apart(make())
    _remembers(make)
    _stays_small(make())
    _forgets(make)


def _added(estimator: Estimator) -> Estimator:
    for slot in range(_PAGES):
        estimator.add(slot, now=0.0, kin=("host", f"host/{slot % 3}"))
    return estimator


def _crawl(estimator: Estimator, rng: np.random.Generator, slot: int, rate: float, count: int, every: float) -> None:
    for _ in range(count):
        changed = bool(rng.random() < -math.expm1(-rate * every))
        estimator.crawled(slot, elapsed=every, signals=0, changed=changed)
        estimator.glance()


def _learns(estimator: Estimator) -> None:
    rng = np.random.default_rng(1)
    _added(estimator)
    for slot, rate in ((0, 1 / 3600), (1, 1 / 360_000)):
        _crawl(estimator, rng, slot, rate, 400, 0.7 / rate)
        found = estimator.beliefs(slot, 1e9).change_rate
        assert rate / 1.35 < found < rate * 1.35, (
            f"after 400 crawls a change rate of {rate:.3g} is taken for {found:.3g}"
        )
    fresh = estimator.fresh_probability(0, 3600.0, 0)
    # What is known of a page fades, so it is never known better than some fifty crawls tell.
    assert abs(fresh - math.exp(-1.0)) < 0.15, (
        f"a copy as old as the mean time between changes is fresh with {fresh:.2f}"
    )


def _check_beliefs(believed: Beliefs, fresh: float, what: str) -> None:
    numbers = (believed.request_rate, believed.change_rate, believed.recall, believed.false_rate, fresh)
    assert all(math.isfinite(each) for each in numbers), f"{what}: {believed}, fresh with {fresh}"
    assert believed.change_rate > 0, f"{what}: a change rate of {believed.change_rate}"
    assert believed.request_rate >= 0, f"{what}: a request rate of {believed.request_rate}"
    assert believed.false_rate >= 0, f"{what}: a rate of false signals of {believed.false_rate}"
    assert believed.shape > 0, f"{what}: a shape of {believed.shape}"
    assert 0 <= believed.recall <= 1, f"{what}: a recall of {believed.recall}"
    assert 0 <= fresh <= 1, f"{what}: fresh with probability {fresh}"


def _is_always_a_number(make: Callable[[], Estimator]) -> None:
    extremes = (0.0, 1e-9, 1.0, 1e6, 1e12)
    for changed in (False, True):
        for elapsed in extremes:
            for signals in (0, 1, 10**6):
                estimator = _added(make())
                for _ in range(30):
                    estimator.signalled(0, signals)
                    estimator.crawled(0, elapsed=elapsed, signals=signals, changed=changed)
                what = f"30 crawls after {elapsed:g} s with {signals} signals, changed: {changed}"
                for later in (0.0, 1e12):
                    fresh = estimator.fresh_probability(0, later, signals)
                    _check_beliefs(estimator.beliefs(0, later), fresh, what)


def _evidence(seed: int) -> list[tuple[int, float, int, bool]]:
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(_PAGES)), float(rng.exponential(86400.0)), int(rng.poisson(1.0)), bool(rng.random() < 0.4))
        for _ in range(200)
    ]


def _feed(estimator: Estimator, evidence: list[tuple[int, float, int, bool]], *, ask: bool = False) -> None:
    for slot, elapsed, signals, changed in evidence:
        estimator.signalled(slot, signals)
        estimator.crawled(slot, elapsed=elapsed, signals=signals, changed=changed)
        if ask:
            estimator.beliefs(slot, 1e6)


def _is_repeatable(make: Callable[[], Estimator]) -> None:
    """The same evidence teaches the same, whether somebody asks in between or not."""
    evidence = _evidence(2)
    quiet, asked = _added(make()), _added(make())
    _feed(quiet, evidence)
    _feed(asked, evidence, ask=True)
    for slot in range(_PAGES):
        one, other = quiet.beliefs(slot, 1e6), asked.beliefs(slot, 1e6)
        assert one == other, f"asking for beliefs on the way changed them: {one} and {other}"


def _keeps_pages_apart(estimator: Estimator) -> None:
    rng = np.random.default_rng(3)
    _added(estimator)
    _crawl(estimator, rng, 0, 1e-3, 300, 700.0)
    _crawl(estimator, rng, 3, 1e-6, 300, 700_000.0)
    fast, slow = estimator.beliefs(0, 1e9).change_rate, estimator.beliefs(3, 1e9).change_rate
    assert fast > 100 * slow, (
        f"pages of one group, one a thousand times as fast, are taken for {fast:.3g} and {slow:.3g}"
    )


def _remembers(make: Callable[[], Estimator]) -> None:
    before = _added(make())
    _feed(before, _evidence(4))
    before.requested(5, 20.0, 10.0)
    after = make()
    for slot in range(_PAGES):
        after.add(slot, now=1e6, learned=before.learned(slot), kin=("host", f"host/{slot % 3}"))
    for slot in range(_PAGES):
        again, kept = after.learned(slot), before.learned(slot)
        assert again == kept, f"what was learned of page {slot} is not the same after a restart"
        old, new = before.beliefs(slot, 1e6), after.beliefs(slot, 1e6)
        assert math.isclose(old.change_rate, new.change_rate, rel_tol=0.5), f"{old} became {new} by a restart"
        assert old.observations == new.observations, f"{old} became {new} by a restart"
    strange = make()
    strange.add(0, now=0.0, learned=b"written by somebody else")
    assert strange.beliefs(0, 1.0).observations == 0, "the memory of another estimator was misread"


def _stays_small(estimator: Estimator) -> None:
    _added(estimator)
    rng = np.random.default_rng(5)
    for count in (1, 2000):
        _crawl(estimator, rng, 0, 1e-4, count, 9000.0)
        size = len(estimator.learned(0))
        assert size <= _MOST_BYTES, f"after {count} crawls a page's memory takes {size} bytes"


def _forgets(make: Callable[[], Estimator]) -> None:
    estimator = _added(make())
    estimator.requested(0, 50.0, 5.0)
    _crawl(estimator, np.random.default_rng(6), 0, 1e-2, 50, 100.0)
    estimator.remove(0)
    estimator.add(0, now=10.0)
    assert estimator.beliefs(0, 20.0).observations == 0, "a removed page left its crawls to the next one in its slot"
