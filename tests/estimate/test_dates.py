import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Learner
from afresh.estimate.dates import MAX_HOSTS, MOMENT, DateTrust

DAY = 86400.0


def graded(changed_and_moved: int = 0, changed_and_stuck: int = 0, same_and_moved: int = 0, same: int = 0) -> DateTrust:
    trust = DateTrust()
    counts = (changed_and_moved, changed_and_stuck, same_and_moved, same)
    for (changed, moved), count in zip(
        ((True, True), (True, False), (False, True), (False, False)), counts, strict=True
    ):
        for _ in range(count):
            trust.grade("h", changed=changed, moved=moved)
    return trust


def test_a_date_is_trusted_if_it_moves_with_changes_and_only_then() -> None:
    unknown = DateTrust().of("h")
    assert graded(10, 0, 0, 10).of("h") > 0.2 > unknown
    assert graded(0, 10, 0, 10).of("h") < 0.15  # stuck
    assert graded(10, 0, 10, 0).of("h") < 0.15  # always now
    assert graded(0, 0, 0, 30).of("h") < 0.1, "a date that has never had to move has not proved much"


def test_hosts_that_are_new_are_like_all_others() -> None:
    assert graded(50, 0, 0, 50).of("another") > 0.3
    assert graded(0, 50, 0, 50).of("another") < 0.15


def test_trust_survives_a_restart_and_is_bounded() -> None:
    trust = graded(5, 1, 0, 9)
    again = DateTrust.from_text(trust.to_text())
    assert again.of("h") == pytest.approx(trust.of("h"), abs=1e-3)
    assert again.graded("h") == trust.graded("h") == 14
    for n in range(MAX_HOSTS + 10):
        trust.grade(f"h{n}", changed=False, moved=False)
    assert len(trust._hosts) == MAX_HOSTS
    with pytest.raises(ValueError, match="no counts"):
        DateTrust.from_text('{"all": [1, 2], "hosts": {}}')


@given(st.floats(0.5, 20.0), st.floats(0.0, 1.0))
def test_an_age_counts_as_a_change_and_the_silence_after_it(days: float, trust: float) -> None:
    """Against the likelihood written down: (1 − e^(−α·δ))^trust · e^(−α·age·trust), over the prior's own rates."""
    learner, plain = Learner(typical_rate=1 / DAY), Learner(typical_rate=1 / DAY)
    for one in (learner, plain):
        one.add(0, now=0.0, kin=("h",))
    learner.recall_first_said([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])  # all the power
    learner.told_age(0, days * DAY, trust)
    from afresh.estimate.points import all_rates

    rates, logs = all_rates(), plain.table.groups[0]["rates"].astype(float)
    likely = trust * (np.log(-np.expm1(-rates * MOMENT * days)) - rates * days)
    chances = np.exp(logs + likely - (logs + likely).max())
    fresh = float(chances @ np.exp(-rates) / chances.sum())
    assert learner.fresh_probability(0, DAY, 0.0) == pytest.approx(fresh, abs=2e-3)


def test_the_older_the_content_the_slower_the_page_and_no_trust_says_nothing() -> None:
    rates = []
    for age in (0.5, 3.0, 30.0):
        learner = Learner(typical_rate=1 / DAY)
        learner.add(0, now=0.0, kin=("h",))
        learner.told_age(0, age * DAY, 0.8)
        rates.append(learner.beliefs(0, 0.0).change_rate)
    assert rates[0] > rates[1] > rates[2]
    learner, other = Learner(), Learner()
    for one in (learner, other):
        one.add(0, now=0.0, kin=("h",))
    learner.told_age(0, 30 * DAY, 0.0)
    assert learner.beliefs(0, 0.0) == other.beliefs(0, 0.0)


@pytest.mark.parametrize("tells", [True, False])
def test_what_pages_say_at_first_keeps_its_power_only_where_it_foretells(tells: bool) -> None:
    """Content is old or young; pages change by that, or the other way round."""
    learner, rng = Learner(typical_rate=1 / DAY), np.random.default_rng(3)
    for page in range(120):
        old = bool(rng.random() < 0.5)
        learner.add(page, now=0.0, kin=("h",))
        learner.told_age(page, (30.0 if old else 0.5) * DAY, 1.0)
        learner.crawled(page, elapsed=DAY, signals=0.0, changed=old is not tells)
    power, judged = learner.worth_of_first_said()[-2:]
    assert judged == 120
    assert power > 0.7 if tells else power == 0.1
    again = Learner(typical_rate=1 / DAY)
    again.recall_first_said(learner.worth_of_first_said())
    assert again.worth_of_first_said() == learner.worth_of_first_said()
    again.recall_first_said([math.nan] * 6)
    again.recall_first_said([1.0])
    assert again.worth_of_first_said() == learner.worth_of_first_said()


@pytest.mark.parametrize("rate", [0.05, 1.0, 20.0])
def test_last_changes_bring_the_rate_nearer_to_the_truth(rate: float) -> None:
    """Changes of a Poisson page, visited daily: with true dates the error of the rate is smaller."""
    errors = {}
    for dated in (False, True):
        wrong = []
        for seed in range(12):
            rng, learner = np.random.default_rng(seed), Learner(typical_rate=1 / DAY, crawl_memory=1.0, memory=math.inf)
            learner.add(0, now=0.0, kin=("h",))
            changes = np.cumsum(rng.exponential(DAY / rate, 2000))
            for visit in range(1, 21):
                inside = changes[(changes > (visit - 1) * DAY) & (changes <= visit * DAY)]
                learner.crawled(0, elapsed=DAY, signals=0.0, changed=bool(len(inside)))
                if dated and len(inside):
                    learner.told_last_change(0, visit * DAY - float(inside[-1]), DAY, 1.0)
            wrong.append(math.log(learner.beliefs(0, 20 * DAY).change_rate * DAY / rate))
        errors[dated] = float(np.sqrt(np.mean(np.square(wrong))))
    assert errors[True] < errors[False] + 0.03
    if rate == 20.0:  # every visit finds a change: without dates nobody knows how many there were
        assert errors[True] < 0.65 * errors[False]
