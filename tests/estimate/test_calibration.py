import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.estimate import Calibration

statements = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


@given(statements)
def test_the_score_is_the_mean_square_and_the_bias_the_mean_difference(said: list[tuple[float, bool]]) -> None:
    kept = Calibration(memory=1e12)  # as good as no fading
    for probability, fresh in said:
        kept.add(probability, fresh)
    if not said:
        assert math.isnan(kept.brier)
        assert math.isnan(kept.bias)
        return
    misses = [probability - fresh for probability, fresh in said]
    assert kept.brier == pytest.approx(np.mean(np.square(misses)), abs=1e-9)
    assert kept.bias == pytest.approx(np.mean(misses), abs=1e-9)
    assert kept.statements == pytest.approx(len(said))
    for row in kept.rows():
        inside = [each for each in said if min(int(each[0] * 10), 9) == min(int(row.stated * 10 + 1e-9), 9)]
        assert row.statements == pytest.approx(len(inside)) or row.stated * 10 % 1 < 1e-6


@given(statements, statements)
def test_it_goes_on_from_its_text_as_if_nothing_had_been(
    before: list[tuple[float, bool]], after: list[tuple[float, bool]]
) -> None:
    one = Calibration(memory=20)
    for each in before:
        one.add(*each)
    other = Calibration.from_text(one.to_text())
    for each in after:
        one.add(*each)
        other.add(*each)
    assert other.to_text() == one.to_text()


def test_honest_statements_lie_on_the_diagonal_and_boasts_below_it() -> None:
    rng = np.random.default_rng(1)
    honest, boasting = Calibration(), Calibration()
    for probability in rng.random(20_000):
        fresh = bool(rng.random() < probability)
        honest.add(probability, fresh)
        boasting.add(probability**0.5, fresh)
    assert all(abs(row.stated - row.fresh) < 0.03 for row in honest.rows())
    assert abs(honest.bias) < 0.01 < 0.1 < boasting.bias
    assert honest.brier < boasting.brier


def test_old_statements_fade() -> None:
    kept = Calibration(memory=100)
    for _ in range(50_000):
        kept.add(0.9, False)
    for _ in range(1_000):
        kept.add(0.9, True)
    (row,) = kept.rows()
    assert row.fresh > 0.999
    assert row.statements == pytest.approx(101, abs=2)


@pytest.mark.parametrize(
    "text", [None, "", "nonsense", "{}", "[]", '{"counts": {"memory": 5, "bins": [], "square": 0}}']
)
def test_what_cannot_be_read_is_an_empty_start(text: str | None) -> None:
    assert Calibration.from_text(text).statements == 0


def test_bad_statements_are_refused() -> None:
    with pytest.raises(ConfigError, match="probability"):
        Calibration().add(1.5, True)
    with pytest.raises(ConfigError, match="probability"):
        Calibration().add(math.nan, True)
    with pytest.raises(ConfigError, match="memory"):
        Calibration(memory=0)
