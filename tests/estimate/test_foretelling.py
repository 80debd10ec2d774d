import math

import numpy as np
import pytest

from afresh.estimate.foretelling import MAX_LOG, PLACES, Foretelling, place_of


def test_marks_that_say_nothing_are_not_used_and_do_no_harm() -> None:
    found, rng = Foretelling(), np.random.default_rng(1)
    for _ in range(1500):
        marks = [place_of(f"word {n}") for n in rng.integers(0, 200, 8)]
        found.learn(marks, float(rng.poisson(3.0)), 3.0)
    assert not found.used
    factors = [found.factor([place_of(f"word {n}")]) for n in range(200)]
    assert 0.8 < min(factors) < max(factors) < 1.25


def test_marks_that_come_together_do_not_count_twice() -> None:
    found, rng = Foretelling(), np.random.default_rng(2)
    both = [place_of("one"), place_of("other")]
    for _ in range(800):
        found.learn(both, float(rng.poisson(8.0)), 2.0)
    assert found.factor(both) == pytest.approx(4.0, rel=0.15)
    assert found.used


def test_one_famous_page_does_not_speak_for_all_its_marks() -> None:
    found = Foretelling()
    found.learn([place_of("famous")], 1e12, 2.0)
    assert found.factor([place_of("famous")]) < 4.0
    assert found.factor([place_of("famous")] * 50) <= math.exp(MAX_LOG)


def test_it_survives_a_restart_and_what_makes_no_sense_is_refused() -> None:
    found = Foretelling()
    for nth in range(50):
        found.learn([nth, nth + 1], float(nth % 5), 2.0)
    for requests, expected in ((math.nan, 2.0), (-1.0, 2.0), (1.0, 0.0), (1.0, math.inf)):
        found.learn([3], requests, expected)
    again = Foretelling.from_text(found.to_text())
    assert again.factor([7, 8]) == pytest.approx(found.factor([7, 8]), rel=1e-3)
    assert (again.judged, again.score) == (50, found.score)
    for text in ('{"score": 0, "judged": 1, "seen": {"3": [-1, 2]}}', '{"score": NaN, "judged": 1, "seen": {}}'):
        with pytest.raises(ValueError, match="no counts"):
            Foretelling.from_text(text)
    with pytest.raises(IndexError):
        Foretelling.from_text(f'{{"score": 0, "judged": 1, "seen": {{"{PLACES}": [1, 2]}}}}')
