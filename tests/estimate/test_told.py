"""What windows tell of senders: against a plain oracle, and whether the stated ranges hold."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate.told import PRIOR_RATE, Hint, Told, Window, fit


def windows_of(
    rng: np.random.Generator,
    *,
    changes: float,
    recall: float,
    precision: float,
    once: bool,
    count: int = 200,
    error: float = 1.0,
    obeyed: bool = False,
) -> list[Window]:
    """Windows with so many changes on average; `obeyed`: the crawl comes soon after the first hint."""
    made = []
    for _ in range(count):
        happened = np.sort(rng.uniform(0, 1, rng.poisson(changes)))
        false = rng.uniform(0, 1, rng.poisson(recall * changes * (1 - precision) / precision))
        heard = np.sort([*(each for each in happened if rng.random() < recall), *false])
        end = min(1.0, heard[0] + rng.uniform(0, 0.2)) if obeyed and len(heard) else 1.0
        heard = heard[heard <= end][: 1 if once else 4]
        hints = [Hint(0, at / end, at / end, once or nth == 3) for nth, at in enumerate(heard.tolist())]
        made.append(Window(changes * end * error, bool((happened <= end).any()), 1, hints))
    return made


def oracle(windows: list[Window]) -> tuple[float, float, float, float]:
    """Mean and deviation of precision and of recall, over a grid of everything that could be."""
    shares = np.linspace(0.01, 0.99, 50)
    recall, precision, pace = np.meshgrid(shares, shares, np.geomspace(0.1, 10, 81), indexing="ij")
    log = (PRIOR_RATE - 1) * np.log(pace) - PRIOR_RATE * pace + np.log(pace)  # the grid is even in the logarithm
    for window in windows:
        listened = max((hint.place for hint in window.hints if hint.last), default=1.0) * window.expected * pace
        deaf = window.expected * pace - listened
        hints = len(window.hints)
        log += hints * np.log(pace * recall / precision) - listened * recall / precision
        unchanged = np.exp(-(1 - recall) * listened - deaf) * (1 - precision) ** hints
        log += np.log(np.maximum(1 - unchanged if window.changed else unchanged, 1e-300))
    chance = np.exp(log - log.max())
    chance /= chance.sum()
    means = [(chance * each).sum() for each in (precision, recall)]
    spread = [
        np.sqrt((chance * (each - mean) ** 2).sum()) for each, mean in zip((precision, recall), means, strict=True)
    ]
    return means[0], spread[0], means[1], spread[1]


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    changes=st.floats(0.1, 3.0),
    recall=st.floats(0.1, 0.9),
    precision=st.floats(0.3, 0.95),
    once=st.booleans(),
)
def test_the_fit_agrees_with_a_grid_of_all_that_could_be(
    seed: int, changes: float, recall: float, precision: float, once: bool
) -> None:
    windows = windows_of(
        np.random.default_rng(seed), changes=changes, recall=recall, precision=precision, once=once, count=80
    )
    told = fit(windows, [Told()]).senders[0]
    precise, doubt, recalled, unsure = oracle(windows)
    assert told.precision.mean == pytest.approx(precise, abs=0.8 * doubt + 0.01)
    assert told.recall.mean == pytest.approx(recalled, abs=0.8 * unsure + 0.01)
    for share, deviation in ((told.precision, doubt), (told.recall, unsure)):
        assert 1.8 * deviation < share.high - share.low < 6.0 * deviation


def test_ranges_hold_at_least_as_often_as_stated() -> None:
    """Over rates, recalls and precisions, with and without repeats; and where beliefs are wrong and hints obeyed."""
    rng, held, biased = np.random.default_rng(7), [], []
    for changes, recall, precision, once, obeyed in product(
        (0.1, 0.5, 1.0, 2.0, 5.0, 10.0), (0.2, 0.5, 0.9, 1.0), (0.3, 0.7, 1.0), (False, True), (False, True)
    ):
        windows = windows_of(
            rng,
            changes=changes,
            recall=recall,
            precision=precision,
            once=once,
            obeyed=obeyed,
            error=0.7 if obeyed else 1.0,
        )
        told = fit(windows, [Told()]).senders[0]
        held.append(told.recall.low - 0.005 <= recall <= told.recall.high + 0.005)
        held.append(told.precision.low - 0.005 <= precision <= told.precision.high + 0.005)
        if changes <= 2.0 and precision > 0.5 and 0.1 < recall < 0.95:
            biased.append(told.recall.mean - recall)
    print(f"ranges that are to hold nine times in ten held in {np.mean(held):.1%} of {len(held)} cases")
    assert 0.88 <= np.mean(held) <= 0.99, np.mean(held)
    assert abs(np.mean(biased)) < 0.02, "on average, recall is as it is"


def test_whatever_is_seen_the_shares_make_sense() -> None:
    rng = random.Random(1)
    for count in (0, 1, 2, 16) * 8:
        made = []
        for _ in range(rng.choice([0, 1, 30])):
            hints = []
            for _ in range(rng.choice([0, 1, 6]) if count else 0):
                place = rng.choice([0.0, 1.0, rng.random()])
                hints.append(Hint(rng.randrange(count), place, rng.choice([place, 0.0]), rng.random() < 0.3))
            expected = rng.choice([0.0, 1e-9, 0.1, 1.0, 1e3])
            made.append(Window(expected, rng.random() < 0.5, rng.randrange(1 << count), hints))
        with np.errstate(all="raise", under="ignore"):
            fitted = fit(made, [Told()] * count, rng.choice([1e-3, 1.0, 1e3]))
        for share in (each for told in fitted.senders for each in (told.precision, told.recall)):
            assert 0.0 <= share.low <= share.mean <= share.high <= 1.0
            assert np.isfinite(share.weight)


def test_who_is_crawled_for_at_once_is_graded_right_and_so_are_those_who_say_the_same() -> None:
    """A crawl soon after each hint of one sender ends the windows of another."""
    rng, made = np.random.default_rng(3), []
    for _ in range(500):
        happened = np.sort(rng.uniform(0, 3, rng.poisson(3.0)))
        prompt = [at for at in happened if rng.random() < 0.9]
        slow = [at for at in happened if rng.random() < 0.4]
        end = min([*(at + 0.02 for at in prompt[:1]), 3.0])
        hints = [Hint(0, at / end, at / end, True) for at in prompt[:1]]
        hints += [Hint(1, at / end, at / end, False) for at in slow if at < end]
        made.append(Window(end, bool((happened <= end).any()), 0b11, hints))
    prompt_told, slow_told = fit(made, [Told(), Told()]).senders
    assert prompt_told.recall.mean == pytest.approx(0.9, abs=0.05)
    assert slow_told.recall.mean == pytest.approx(0.4, abs=0.08)
    assert slow_told.precision.high > 0.98


@pytest.mark.parametrize("recall", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("precision", [0.2, 0.9])
def test_hints_of_others_that_come_near_by_chance_do_not_count_as_of_one_change(
    recall: float, precision: float
) -> None:
    """Where hints abound, many of two senders are near each other; those of one change come together."""
    rng, made = np.random.default_rng(5), []
    senders = ((recall, precision), (0.6, 0.9))
    for _ in range(2000):
        length = rng.exponential(1.2)
        changes = rng.uniform(0, 1, rng.poisson(length))
        hints = []
        for nth, (told, right) in enumerate(senders):
            false = rng.uniform(0, 1, rng.poisson(told * length * (1 - right) / right))
            places = np.sort([*(each for each in changes if rng.random() < told), *false])[:4]
            hints += [Hint(nth, at, at, rank == 3) for rank, at in enumerate(places.tolist())]
        made.append(Window(length, len(changes) > 0, 0b11, hints))
    fitted = fit(made, [Told(), Told()])
    for (told, right), found in zip(senders, fitted.senders, strict=True):
        assert found.recall.mean == pytest.approx(told, abs=0.06)
        assert found.precision.mean == pytest.approx(right, abs=0.06)


def test_what_was_not_listened_to_says_nothing_of_recall() -> None:
    heard = Window(1.0, True, 1, [Hint(0, 0.5, 0.5, False)])
    quiet, deaf = Window(1.0, False, 1), Window(1.0, True, 1, deaf=((0, 0.0),))
    told = fit([heard, quiet] * 50, [Told()]).senders[0]
    assert fit([heard, quiet, deaf] * 50, [Told()]).senders[0].recall.mean == pytest.approx(told.recall.mean, abs=0.1)
    assert fit([heard, quiet, Window(1.0, True, 1)] * 50, [Told()]).senders[0].recall.mean < told.recall.mean - 0.2
