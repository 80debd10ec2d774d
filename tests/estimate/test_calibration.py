import numpy as np
import pytest

from afresh.estimate.calibration import BINS, Calibration


def test_honest_statements_lie_on_the_diagonal_and_boasts_do_not() -> None:
    rng = np.random.default_rng(1)
    honest, boast = Calibration(), Calibration()
    for truth in rng.random(8000):
        fresh = bool(rng.random() < truth)
        honest.check(float(truth), fresh)
        boast.check(float(truth) ** 0.3, fresh)
    assert len(honest.table()) == BINS
    assert all(abs(line.stated - line.found) < 0.06 for line in honest.table())
    assert max(line.stated - line.found for line in boast.table()) > 0.2
    assert honest.brier == pytest.approx(1 / 6, abs=0.02)
    assert boast.brier is not None
    assert boast.brier > 0.19


def test_it_survives_a_restart_and_shrugs_at_nonsense() -> None:
    checked = Calibration()
    checked.check(0.0, False)
    checked.check(1.0, True)
    assert Calibration.read(checked.text()) == checked
    for text in (None, "", "{}", "[1,2]", "[[1],[2],[3],4]", '[["x"],[],[],0]'):
        assert Calibration.read(text).brier is None
