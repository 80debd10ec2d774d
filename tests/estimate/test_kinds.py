import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Learner
from afresh.estimate.kinds import GUESSES, JUDGED_CRAWLS, MAX_KINDS, POWERS, START_SCORES, pack, unpack
from afresh.estimate.online import OF_KINDS
from afresh.estimate.points import all_rates

DAY = 86400.0


@given(st.lists(st.floats(0, 1), max_size=MAX_KINDS))
def test_packed_shares_come_back_to_a_sixteenth(shares: list[float]) -> None:
    packed = pack(shares)
    assert 0 <= packed < 1 << 16
    best = sorted(shares, reverse=True)
    for place, (kind, share) in enumerate(unpack(packed)):
        assert share == pytest.approx(best[place], abs=1 / 16)
        assert shares[kind - 1] == best[place]


def one_kind(kind: int) -> int:
    return pack([0.0] * (kind - 1) + [1.0])


def world(*, told: bool, honest: bool = True, hosts: int = 60, seed: int = 0) -> tuple[Learner, float, int]:
    """Pages of a fast and a slow kind, two of each on every host; log likelihood of first visits on later hosts."""
    rng, learner, total, judged, slot = np.random.default_rng(seed), Learner(typical_rate=1 / DAY), 0.0, 0, 0
    for host in range(hosts):
        for kind in (1, 2, 1, 2):
            learner.add(slot, now=host * DAY, kin=(f"h{host}", f"h{host}/*"))
            if told:
                learner.told_kind(slot, one_kind(kind if honest else int(rng.integers(1, 3))))
            for visit in range(6):
                changed = bool(rng.random() < (0.9 if kind == 1 else 0.05))
                if visit == 0 and host >= hosts // 2:
                    fresh = learner.fresh_probability(slot, DAY, 0.0)
                    total += math.log(1 - fresh if changed else fresh)
                    judged += 1
                learner.crawled(slot, elapsed=DAY, signals=0.0, changed=changed)
                learner.glance()
            slot += 1
    return learner, total / judged, judged


def test_kinds_that_tell_foretell_new_pages() -> None:
    learner, told, _ = world(told=True)
    _, untold, _ = world(told=False)
    assert told > untold + 0.2
    found = learner.of_kinds()
    assert found.kinds[0].change_rate > 10 * found.kinds[1].change_rate
    assert max(each.power for each in found.worth) > 0.8
    assert (found.kinds[0].pages, found.unknown) == (pytest.approx(120 * 15 / 16), pytest.approx(240 / 16))


def test_kinds_that_tell_nothing_are_switched_off_and_cost_nothing() -> None:
    learner, told, _ = world(told=True, honest=False)
    _, untold, _ = world(told=False)
    assert told > untold - 0.02
    assert max(each.power for each in learner.of_kinds().worth) < 0.15


def test_power_goes_to_what_foretold_best_in_plain_form() -> None:
    """The score of each power is the log likelihood of what it would have said, with priors made by hand."""
    learner = Learner(typical_rate=1 / DAY)
    learner.add(0, now=0.0, kin=("h",))
    learner.told_kind(0, one_kind(3))
    groups, rates = learner.table.groups, all_rates() / DAY
    prior = groups[0]["rates"].astype(float).copy()
    own = np.where(rates < 1 / DAY, -8.0, -2.0)
    groups[3]["rates"] = own
    learner.crawled(0, elapsed=DAY, signals=0.0, changed=True)
    scores = learner.table.control[OF_KINDS : OF_KINDS + len(POWERS)]
    for power, score in zip(POWERS, scores, strict=True):
        logs = prior + power * 15 / 16 * (own - prior)
        chances = np.exp(logs - logs.max())
        fresh = (chances / chances.sum()) @ np.exp(-rates * DAY)
        assert score == pytest.approx(math.log(1 - fresh), rel=1e-4)
    weights = np.exp(scores + START_SCORES)
    assert learner.of_kinds().worth[0].power == pytest.approx(float(weights @ POWERS / weights.sum()), rel=1e-6)


def test_only_the_first_crawls_of_a_page_judge() -> None:
    learner = Learner(typical_rate=1 / DAY)
    learner.add(0, now=0.0, kin=("h",))
    learner.told_kind(0, one_kind(1))
    for _ in range(JUDGED_CRAWLS + 4):
        learner.crawled(0, elapsed=DAY, signals=0.0, changed=False)
    assert learner.of_kinds().worth[0].judged == JUDGED_CRAWLS


def test_a_page_without_a_kind_is_believed_as_before() -> None:
    one, other = Learner(typical_rate=1 / DAY), Learner(typical_rate=1 / DAY)
    for learner in (one, other):
        learner.add(0, now=0.0, kin=("h",))
    one.table.groups[GUESSES]["rates"] = 0.0
    one.recall_kinds([1.0] * len(one.scores_of_kinds()))
    for learner in (one, other):
        learner.crawled(0, elapsed=DAY, signals=0.0, changed=True)
    assert one.beliefs(0, DAY) == other.beliefs(0, DAY)


def test_what_an_operator_says_of_a_kind_counts_at_once_and_gives_way() -> None:
    learner = Learner(typical_rate=1 / DAY)
    learner.describe_kind(2, rate=50 / DAY, value=3.0)
    learner.add(0, now=0.0, kin=("h",))
    before = learner.beliefs(0, 0.0)
    learner.told_kind(0, one_kind(2))
    after = learner.beliefs(0, 0.0)
    assert after.change_rate > 2 * before.change_rate
    assert after.request_rate == pytest.approx(before.request_rate * (1 + 2 * 15 / 16))
    for _ in range(40):
        learner.crawled(0, elapsed=DAY, signals=0.0, changed=False)
        learner.glance()
    assert learner.beliefs(0, 40 * DAY).change_rate < 0.2 / DAY


@pytest.mark.parametrize("spread", [1.5, 3.0, 8.0])
def test_the_spread_that_an_operator_names_is_that_of_the_rates(spread: float) -> None:
    learner = Learner(typical_rate=1 / DAY)
    learner.describe_kind(2, rate=3 / DAY, spread=spread)
    said = learner.of_kinds().kinds[1]
    assert said.change_rate == pytest.approx(3 / DAY, rel=0.1)
    assert said.spread == pytest.approx(math.log(spread), rel=0.1)


def test_kinds_and_their_worth_survive_a_restart() -> None:
    learner, _, _ = world(told=True, hosts=20)
    again = Learner(typical_rate=1 / DAY)
    again.add(0, now=0.0, learned=learner.learned(0), kin=("h0", "h0/*"))
    assert again.kind_of(0) == learner.kind_of(0) == one_kind(1)
    again.recall_kinds(learner.scores_of_kinds())
    assert again.of_kinds().worth == learner.of_kinds().worth
    again.recall_kinds([math.nan] * 3)  # of another version
    assert again.of_kinds().worth == learner.of_kinds().worth
