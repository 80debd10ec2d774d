"""What `afresh run` shows of itself, without a run."""

from dataclasses import replace

import pytest

from afresh.cli.run import Progress
from afresh.config import Config
from afresh.daemon import Finished, Ordered, Released, Started
from afresh.types import Crawl, Order, Outcome
from afresh.units import Budget

ORDER = Order(0, "http://a.example/", "a.example", 0.0)


def told(outcomes: dict[Outcome, int], given_back: int = 0) -> Progress:
    config = Config()
    progress = Progress(replace(config, crawl=replace(config.crawl, budget=Budget(20.0))), as_json_lines=False)
    progress.hear(Started(5))
    for outcome, count in outcomes.items():
        for _ in range(count):
            progress.hear(Ordered(ORDER))
            progress.hear(Finished(Crawl(ORDER.url, 0.0, outcome)))
    for _ in range(given_back):
        progress.hear(Ordered(ORDER))
        progress.hear(Released(ORDER))
    progress.began -= 10.0
    return progress


def test_the_rate_is_that_of_finished_crawls_whatever_was_given_back() -> None:
    progress = told({Outcome.NEW: 60, Outcome.FAILED: 7}, given_back=94)
    assert "now 6.7/s, 0 under way, 67 crawls" in progress.lines(500)[0]


def test_what_others_hand_over_was_never_under_way_here() -> None:
    progress = told({Outcome.NEW: 2})
    progress.hear(Finished(Crawl(ORDER.url, 0.0, Outcome.CHANGED), ordered=False))
    assert "0 under way, 3 crawls" in progress.lines(500)[0]


def test_the_budget_is_the_one_in_force_at_that_moment() -> None:
    progress, budgets = told({}), [10.0, 5.0]
    progress.in_force = lambda: budgets[0]
    assert ", budget 10/s, " in progress.lines(500)[0]
    del budgets[0]
    assert ", budget 5/s, " in progress.lines(500)[0]


def test_what_crawls_found_adds_up_and_failures_come_first() -> None:
    counts = {Outcome.NEW: 5, Outcome.CHANGED: 4, Outcome.UNCHANGED: 3, Outcome.GONE: 2, Outcome.MOVED: 1}
    progress = told({**counts, Outcome.FAILED: 1, Outcome.BUSY: 1, Outcome.REFUSED: 1})
    assert progress.lines(9)[1] == "3 failed, 5 new, 4 changed, 3 unchanged"
    assert progress.lines(9)[2] == "2 gone, 1 moved"
    assert "18 crawls" in progress.lines(9)[0]


def test_counts_are_written_alike_in_thousands() -> None:
    progress = told({})
    progress.outcomes.update(dict.fromkeys((str(outcome) for outcome in Outcome), 12_345))
    assert "12345" not in " ".join(progress.lines(12_345))


@pytest.mark.parametrize("many", [999_999, 9_999_999])
def test_nothing_is_cut_at_80_columns(many: int) -> None:
    progress = told({})
    progress.outcomes.update({str(outcome): many for outcome in Outcome})
    progress.not_modified, progress.sitemaps, progress.signals, progress.under_way = many, 9_999, many, 64
    assert all(len(line) <= 78 for line in progress.lines(many))  # a spinner stands before the first
