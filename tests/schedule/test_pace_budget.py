"""A budget that changes: what was begun at the old one does not hold up the new one, and no second holds a burst."""

import random

from afresh.schedule.pace import Pace


def test_a_budget_that_rises_is_spent_at_once() -> None:
    pace = Pace(0.01)
    pace.take(0.0)
    assert pace.wait(1.0) is not None
    pace.budget = 20.0
    assert pace.wait(1.0) is None
    pace.take(1.0)
    pace.budget = 0.01
    wait = pace.wait(1.1)
    assert wait is not None
    assert wait.until > 90.0, "a budget that falls is kept as well"
    pace.budget = 0.0
    pace.budget = 20.0
    assert pace.wait(1.1) is None


def test_no_second_holds_much_more_than_the_largest_budget_in_it() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        pace, now, taken = Pace(5.0), 0.0, list[float]()
        budgets = [(0.0, 5.0)]
        while now < 60.0:
            now += rng.uniform(0.0, 0.2)
            if rng.random() < 0.1:
                pace.budget = rng.choice([0.02, 0.5, 3.0, 8.0, 20.0])
                budgets.append((now, pace.budget))
            while pace.wait(now) is None:
                pace.take(now)
                taken.append(now)
        for first in taken:
            within = [each for each in taken if first <= each < first + 1.0]
            before = [budget for at, budget in budgets if at <= first][-1:]
            most = max(*before, *(budget for at, budget in budgets if first < at < first + 1.0), 0.0)
            assert len(within) <= 1.2 * most + 2  # what was late may be caught up at the new budget
