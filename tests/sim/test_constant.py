from itertools import permutations

import numpy as np
import pytest

from afresh.sim.constant import best_rates
from afresh.sim.history import Floats, History, make_history
from afresh.sim.replay import replay

BEGIN, END = 100.0, 400.0


def history(seed: int, pages: int = 6) -> History:
    """Pages that change in all ways: in bursts, regularly, once and never; some come late and some go early."""
    rng = np.random.default_rng(seed)
    times = [rng.uniform(0, END, rng.integers(0, 12)) for _ in range(pages - 3)]
    times += [rng.uniform(200, 210, 30), np.array([50.0]), np.array([])]
    births, ends = np.full(pages, -np.inf), np.full(pages, np.inf)
    births[0], ends[1] = 180.0, 300.0
    page = np.repeat(np.arange(pages), [len(each) for each in times])
    weight = rng.uniform(0.5, 2.0, pages)
    return make_history(
        page, np.concatenate(times), weight=weight, start=0.0, end=END, births=births, ends=ends
    )  # fmt: skip


def fresh_time(subject: History, rates: Floats) -> float:
    """Weighted fresh time in the scored part at evenly spaced visits of random phase, by small steps."""
    total = 0.0
    for page, rate in enumerate(rates):
        changes = subject.times[subject.first[page] : subject.first[page + 1]]
        begin, end = max(BEGIN, subject.births[page]), min(END, subject.ends[page])  # type: ignore[index]
        moments = np.linspace(begin, end, 20_001)[:-1] + (end - begin) / 40_000
        before = np.searchsorted(changes, moments)
        since = np.where(before > 0, moments - np.concatenate([[0.0], changes])[before], 1e9)
        total += (
            subject.weight[page]
            * float(np.minimum(1.0, np.where(since < 1e9, since * rate, 1.0)).mean())
            * (end - begin)
        )
    return total


@pytest.mark.parametrize("seed", range(4))
def test_no_other_constant_rates_do_better(seed: int) -> None:
    subject, budget = history(seed), 0.1
    rates, lived = best_rates(subject, BEGIN, budget), subject.lived(BEGIN, END)
    assert rates @ lived == pytest.approx(budget * (END - BEGIN), rel=1e-3)
    best = fresh_time(subject, rates)
    rng = np.random.default_rng(seed)
    others = [np.ones(6), *np.maximum(rates * np.exp(rng.normal(0, 0.3, (30, 6))), rng.uniform(0, 1e-3, (30, 6)))]
    for giver, taker in permutations(np.flatnonzero(rates), 2):  # a tenth of the visits to one page for another
        moved = rates.copy()
        moved[giver] *= 0.9
        moved[taker] += 0.1 * rates[giver] * lived[giver] / lived[taker]
        others.append(moved)
    for other in others:
        assert fresh_time(subject, other * (rates @ lived) / (other @ lived)) < best + 1e-3


def test_a_copy_that_may_be_stale_is_visited_and_one_that_cannot_is_not() -> None:
    rates = best_rates(history(1), BEGIN, 0.1)
    assert rates[4] > 0  # changed before the scored time, and never again
    assert rates[5] == 0  # never changed
    silent = make_history(np.empty(0, int), np.empty(0), weight=np.ones(3), start=0.0, end=END)
    assert best_rates(silent, BEGIN, 0.3) == pytest.approx([0.1] * 3)


def test_it_stays_above_uniform_where_mean_rates_mislead() -> None:
    # Half of the pages change all the time for a tenth of it, and never again: their mean rates look hopeless.
    rng = np.random.default_rng(2)
    page = np.repeat(np.arange(40), 40)
    time = np.where(page < 20, rng.uniform(100, 130, 1600), rng.uniform(0, END, 1600))
    subject = make_history(page, time, weight=np.ones(40), start=0.0, end=END)
    found = {
        policy: replay(subject, policy, budget=1.0, score_from=BEGIN).weighted for policy in ("clairvoyant", "uniform")
    }
    assert found["clairvoyant"] > found["uniform"] + 0.005


def test_the_budget_is_spent_where_all_gaps_are_alike() -> None:
    regular = make_history(np.zeros(200, int), np.arange(1.0, 201.0), weight=np.ones(1), start=0.0, end=200.0)
    for budget in (0.25, 0.5, 1.0):
        assert best_rates(regular, 20.0, budget) == pytest.approx([budget], rel=0.02)
