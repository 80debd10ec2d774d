import numpy as np
import pytest

from afresh.estimate import Estimator, Grid, Learner, kin_of
from afresh.estimate.base import BY_LEARNER
from afresh.estimate.learner import MOST_GROUPS
from afresh.testing import check_estimator
from afresh.types import Importance

DAY = 86400.0


@pytest.mark.parametrize("kind", [Grid, Learner])
def test_the_battery(kind: type) -> None:
    check_estimator(kind)


def test_the_battery_sees_an_estimator_that_cannot_learn() -> None:
    class Stubborn(Learner):
        def crawled(self, slot: int, *, elapsed: float, signals: int, changed: bool) -> None:
            super().crawled(slot, elapsed=elapsed, signals=signals, changed=False)

    with pytest.raises(AssertionError, match="change rate"):
        check_estimator(Stubborn)


def crawl(learner: Estimator, rng: np.random.Generator, slot: int, rate: float, count: int, every: float) -> None:
    for _ in range(count):
        learner.crawled(slot, elapsed=every, signals=0, changed=bool(rng.random() < -np.expm1(-rate * every)))
        learner.glance()


def test_a_new_page_starts_from_its_kin() -> None:
    learner, rng = Learner(typical_rate=1 / DAY), np.random.default_rng(1)
    for slot in range(60):
        news = slot % 2 == 0
        host = "a.example"
        url = f"https://{host}/{'news' if news else 'docs'}/{slot}.html"
        learner.add(slot, now=0.0, kin=kin_of(url, host))
        crawl(learner, rng, slot, 10 / DAY if news else 0.1 / DAY, 30, 0.1 * DAY if news else 8 * DAY)
    for slot, folder in ((60, "news"), (61, "docs"), (62, "else")):
        learner.add(slot, now=0.0, kin=kin_of(f"https://a.example/{folder}/new.html", "a.example"))
    assert learner.beliefs(60, 1.0).change_rate * DAY > 3.0
    # The mean rate of a page that was never crawled is ruled by what is not excluded yet; freshness is what tells.
    news, docs, other = (learner.fresh_probability(slot, 2 * DAY, 0) for slot in (60, 61, 62))
    assert news < 0.1
    assert docs > 0.5  # e^(−0.2) is 0.82
    assert news + 0.1 < other < docs - 0.1


def test_priors_are_learned_again_after_a_restart() -> None:
    before, rng = Learner(typical_rate=1 / DAY), np.random.default_rng(2)
    for slot in range(80):
        before.add(slot, now=0.0, kin=("a.example",))
        crawl(before, rng, slot, 0.05 / DAY, 20, 10 * DAY)
    after = Learner(typical_rate=1 / DAY)
    for slot in range(80):
        after.add(slot, now=1e7, learned=before.learned(slot), kin=("a.example",))
    for learner in (before, after):
        learner.add(99, now=1e7, kin=("a.example",))
    old, new = (learner.beliefs(99, 1e7).change_rate for learner in (before, after))
    assert new == pytest.approx(old, rel=0.1)


def test_requests_rise_with_a_burst_and_fall_back() -> None:
    learner = Learner()
    for slot in range(20):
        learner.add(slot, now=0.0, importance=Importance(7.0) if slot == 19 else None)
    for day in range(60):
        for slot in range(19):
            learner.requested(slot, 10.0, day * DAY)
    calm = learner.beliefs(0, 60 * DAY).request_rate
    assert calm == pytest.approx(10 / DAY, rel=0.25)
    learner.requested(0, 500.0, 60 * DAY)
    during = learner.beliefs(0, 60 * DAY).request_rate
    assert during > 20 * calm
    assert learner.beliefs(0, 60.5 * DAY).request_rate < 0.5 * during
    assert learner.beliefs(0, 64 * DAY).request_rate < 4 * calm
    assert learner.beliefs(19, 64 * DAY).request_rate == 7.0


def test_a_page_that_differs_at_every_fetch_is_thought_to_change_often_and_never_to_stay_fresh() -> None:
    learner, rng = Learner(typical_rate=1 / DAY), np.random.default_rng(3)
    for slot in range(30):
        learner.add(slot, now=0.0)
        crawl(learner, rng, slot, 1 / DAY, 12, 0.5 * DAY)
    for _ in range(60):
        # Whenever it is thought fresh with even chance it is fetched again, and has changed again.
        rate = learner.beliefs(0, 1.0).change_rate
        learner.crawled(0, elapsed=0.7 / rate, signals=0, changed=True)
    assert learner.beliefs(0, 1.0).change_rate > 4 * learner.beliefs(1, 1.0).change_rate
    assert learner.fresh_probability(0, DAY, 0) < 0.05


def test_groups_are_bounded() -> None:
    learner = Learner()
    learner._groups = {str(k): 0 for k in range(10)}
    learner.table = learner.table._replace(groups=np.repeat(learner.table.groups[:1], MOST_GROUPS))
    learner.add(0, now=0.0, kin=("one more host",))
    assert len(learner.table.groups) == MOST_GROUPS
    assert learner.beliefs(0, 1.0).change_rate > 0


def test_a_new_path_pattern_starts_from_its_host() -> None:
    learner, rng = Learner(typical_rate=1 / DAY), np.random.default_rng(4)
    for slot in range(60):
        host, rate = ("often.example", 4 / DAY) if slot % 2 else ("seldom.example", 0.1 / DAY)
        learner.add(slot, now=0.0, kin=(host, f"{host}/news"))
        crawl(learner, rng, slot, rate, 30, DAY / 2)
    learner.add(60, now=0.0, kin=("often.example", "often.example/new"))
    learner.add(61, now=0.0, kin=("seldom.example", "seldom.example/new"))
    crawl(learner, rng, 0, 0.1 / DAY, 200, DAY / 2)  # time passes, and groups settle
    assert learner.beliefs(60, 1.0).change_rate * DAY > 2.0
    often, seldom = (learner.fresh_probability(slot, DAY, 0) for slot in (60, 61))
    assert often < 0.15  # e^(−4) is 0.02
    assert seldom > 0.65  # e^(−0.1) is 0.9


def test_a_page_that_fell_silent_is_not_expected_to_signal_as_before() -> None:
    learner = Learner(typical_rate=1.0)
    learner.add(0, now=0.0)
    for k in range(1, 101):
        learner.signalled(0, now=0.1 * k)
    loud = learner.beliefs(0, 10.0).signal_rate
    assert 5.0 < loud < 15.0
    # In five intervals fifty were to be expected, and none came.
    assert learner.beliefs(0, 15.0).signal_rate <= 3.0 / 5.0 + 1e-6
    assert learner.beliefs(0, 10.05).signal_rate > 0.9 * loud


def test_what_was_learned_before_signals_faded_is_read() -> None:
    before = Learner(typical_rate=1.0)
    before.add(0, now=0.0)
    for k in range(1, 21):
        before.signalled(0, now=float(k))
        before.crawled(0, elapsed=1.0, signals=1.0, changed=k % 2 == 0)
    old = before.learned(0)[: len(BY_LEARNER) + 64]
    after = Learner(typical_rate=1.0)
    after.add(0, now=20.0, learned=old)
    assert after.beliefs(0, 20.0).observations == 20
    assert after.beliefs(0, 20.0).signal_rate > 0.0


@pytest.mark.parametrize("damage", [b"\xff" * 72, b"\x7f" * 72, bytes(range(100, 172)), b"\xff\xff\x7f\xff" * 18])
def test_a_damaged_record_teaches_nobody(damage: bytes) -> None:
    learner = Learner(typical_rate=1 / DAY)
    learner.add(0, now=0.0, learned=BY_LEARNER + damage)
    learner.add(1, now=0.0)
    fresh = Learner(typical_rate=1 / DAY)
    fresh.add(0, now=0.0)
    for slot in (0, 1):
        assert learner.beliefs(slot, 10.0) == fresh.beliefs(0, 10.0)


@pytest.mark.parametrize("count", [1e39, 1e300, float("inf"), float("nan"), -5.0])
def test_no_number_of_requests_or_signals_spoils_a_belief(count: float) -> None:
    learner = Learner(typical_rate=1 / DAY)
    learner.add(0, now=0.0)
    learner.requested(0, count, now=1.0)
    learner.signalled(0, count, now=1.0)
    learner.crawled(0, elapsed=DAY, signals=min(count, 1e9) if count > 0 else 0.0, changed=True)
    beliefs = learner.beliefs(0, DAY)
    for value in (beliefs.request_rate, beliefs.change_rate, beliefs.recall, beliefs.false_rate, beliefs.shape):
        assert np.isfinite(value)
        assert value >= 0.0


def test_a_signal_from_the_end_of_time_spoils_nothing() -> None:
    learner = Learner(typical_rate=1.0)
    learner.add(0, now=0.0)
    for moment in (1e300, 1.0, 2.0, -1e300, 1e160, 3.0):
        learner.signalled(0, 1.0, moment)
    learner.crawled(0, elapsed=1.0, signals=6.0, changed=True)
    beliefs = learner.beliefs(0, 4.0)
    assert np.isfinite([beliefs.change_rate, beliefs.recall, beliefs.false_rate, beliefs.shape]).all()
