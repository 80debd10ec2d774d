"""The exact steps against 400-step bisections, and against what makes an answer right: the KKT conditions."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from afresh.errors import ConfigError
from afresh.mirror import mirror_step, plain, project

Floats = NDArray[np.float64]
Instance = tuple[Floats, Floats, float, float, float, float]  # rates, gradient, eta, low, high, total


def random_instance(rng: np.random.Generator) -> Instance:
    """Rates within bounds; gradients from harmless to absurd, many of them 0 or equal; sums up to the very bounds."""
    count = int(rng.choice([1, 2, 3, 10, 100, 300]))
    low = 10.0 ** rng.uniform(-4, 0)
    high = low * 10.0 ** rng.uniform(0.01, 4)
    rates = np.clip(low * (high / low) ** rng.random(count), low, high)
    if rng.random() < 0.3:
        rates[rng.random(count) < 0.5] = rng.choice([low, high])
    spread = rng.choice([0.1, 1.0, 10.0, 100.0])
    gradient = -(10.0 ** (rng.uniform(-6, 3) + spread * 0.05 * rng.standard_normal(count)))
    gradient[rng.random(count) < rng.choice([0.0, 0.5, 0.95])] = 0.0
    if rng.random() < 0.2:
        gradient *= rng.choice([-1.0, 1.0], count)
    if rng.random() < 0.1:
        gradient[:] = gradient[0]
    share = rng.choice([rng.random(), 1e-9, 1 - 1e-9, 0.0, 1.0, math.nan])
    total = float(rates.sum()) if math.isnan(share) else count * (low + share * (high - low))
    return rates, gradient, 10.0 ** rng.uniform(-2, 1), low, high, total


ADVERSARIAL: list[Instance] = [
    # a few arms far from all others, either way
    (np.full(100, 0.4), np.r_[-1e9, np.zeros(99)], 1.0, 0.02, 3.0, 40.0),
    (np.full(100, 0.4), np.r_[1e9, np.zeros(99)], 1.0, 0.02, 3.0, 40.0),
    # places over many orders of magnitude: hardly ever is an arm between its bounds
    (np.full(60, 0.4), -(10.0 ** np.linspace(-8, 12, 60)), 1.0, 0.02, 3.0, 24.0),
    (np.full(60, 0.4), -(10.0 ** np.linspace(12, -8, 60)), 1.0, 0.399, 0.401, 24.0),
    # two groups whose corners touch: the slope jumps from one to the other
    (np.full(100, 0.4), np.r_[np.zeros(50), np.full(50, -(1 / 0.02 - 1 / 3.0))], 1.0, 0.02, 3.0, 40.0),
    (np.full(100, 0.4), np.r_[np.zeros(50), np.full(50, -1e5)], 1.0, 0.02, 3.0, 151.0),
    # bounds that hardly differ, and a single arm
    (np.full(10, 1.0), -np.arange(10.0), 5.0, 1.0 - 1e-9, 1.0 + 1e-9, 10.0),
    (np.array([0.7]), np.array([-3.0]), 2.0, 0.1, 5.0, 0.9),
    # all at the lower bound but one
    (np.r_[np.full(999, 0.025), 3.0], -np.r_[np.zeros(999), 5.0], 2.7, 0.025, 5.0, 999 * 0.025 + 3.0),
]


def check_kkt(x: Floats, place: Floats, inverse: Floats, low: float, high: float, total: float) -> None:
    """The sum and the bounds hold, and one multiplier explains all rates that are not at a bound, and all that are.

    `inverse` is v for x; a multiplier can be no finer than the places that it is added to.
    """
    scale = np.maximum(1.0, np.abs(place)) + np.abs(inverse)
    assert abs(math.fsum(x) - total) <= 1e-11 * total
    assert (x >= low * (1 - 1e-12)).all()
    assert (x <= high * (1 + 1e-12)).all()
    free = (x > low * (1 + 1e-11)) & (x < high * (1 - 1e-11))
    shift = inverse - place
    if free.any():
        pivot = np.flatnonzero(free)[np.argmin(scale[free])]
        nu = shift[pivot]
        assert (np.abs(shift - nu) / (scale + scale[pivot]))[free].max() < 1e-10
    else:
        at_low, at_high = shift[x <= low * (1 + 1e-11)], shift[x >= high * (1 - 1e-11)]
        nu = float(at_low.max()) if at_low.size else float(at_high.min())
    # Who is at the lower bound would like even less, who is at the upper one even more.
    slack = (shift - nu) / (scale + abs(nu))
    assert (slack[(x <= low * (1 + 1e-11)) & ~free] < 1e-10).all()
    assert (slack[(x >= high * (1 - 1e-11)) & ~free] > -1e-10).all()


def both_steps(instance: Instance) -> None:
    rates, gradient, eta, low, high, total = instance
    x = mirror_step(rates, gradient, eta=eta, low=low, high=high, total=total)
    check_kkt(x, 1.0 / rates + eta * gradient, 1.0 / x, low, high, total)
    point = rates - eta * gradient
    y = project(point, low=low, high=high, total=total)
    check_kkt(y, -point, -y, low, high, total)
    # A bisection knows the multiplier to a rounding of its size, and the rates no better.
    coarse = 1e-15 * (np.abs(eta * gradient).max() + 1.0 / low)
    slow = plain.mirror_step(rates, gradient, eta=eta, low=low, high=high, total=total)
    assert np.abs(x - slow).max() <= 1e-9 * high + 4 * coarse * high * high
    slow = plain.project(point, low=low, high=high, total=total)
    assert np.abs(y - slow).max() <= 1e-9 * high + 4 * coarse


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_those_of_a_bisection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        both_steps(random_instance(rng))


@pytest.mark.parametrize("instance", ADVERSARIAL)
def test_adversarial_instances(instance: Instance) -> None:
    both_steps(instance)


def test_a_step_goes_down_and_where_there_is_no_slope_it_stays() -> None:
    rng = np.random.default_rng(1)
    rates = rng.uniform(0.1, 1.0, 50)
    same = mirror_step(rates, np.zeros(50), eta=1.0, low=0.05, high=2.0)
    assert np.allclose(same, rates, rtol=1e-12)
    gradient = -rng.random(50)
    after = mirror_step(rates, gradient, eta=0.3, low=0.05, high=2.0)
    assert gradient @ after < gradient @ rates
    assert np.allclose(mirror_step(rates, np.full(50, -7.0), eta=1.0, low=0.05, high=2.0), rates)


def test_the_projection_of_a_point_inside_is_itself() -> None:
    point = np.array([0.5, 1.0, 1.5])
    assert np.allclose(project(point, low=0.1, high=2.0, total=3.0), point, rtol=1e-15)


@pytest.mark.parametrize(
    ("low", "high", "total", "named"),
    [(0.5, 1.0, 40.0, "low = 0.5 is too high"), (0.1, 0.3, 40.0, "high = 0.3 is too low"), (2.0, 1.0, 40.0, "above")],
)
def test_an_empty_set_is_refused_by_the_name_of_its_bound(low: float, high: float, total: float, named: str) -> None:
    rates = np.full(100, 0.4)
    with pytest.raises(ConfigError, match=named):
        mirror_step(rates, -rates, eta=1.0, low=low, high=high, total=total)
    with pytest.raises(ConfigError, match=named):
        project(rates, low=low, high=high, total=total)


@pytest.mark.parametrize("size", [1e20, 1e50, 1e150, 1e300, 1e308])
def test_huge_numbers_keep_the_sum_or_are_refused(size: float) -> None:
    both = mirror_step([1, 1], [-1, 0], eta=size, low=0.1, high=4)
    assert both.tolist() == pytest.approx([1.9, 0.1], rel=1e-12)
    assert mirror_step([1, 1], [-size, 0], eta=0.5, low=0.1, high=4).tolist() == pytest.approx([1.9, 0.1], rel=1e-12)
    assert project([size, 1.0, 0.0], low=0.5, high=2.0, total=3.0).tolist() == pytest.approx([2.0, 0.5, 0.5])
    rng = np.random.default_rng(1)
    for _ in range(50):
        rates = rng.uniform(0.1, 3.0, 7)
        gradient = -(10.0 ** rng.uniform(-3, math.log10(size), 7))
        x = mirror_step(rates, gradient, eta=0.7, low=0.1, high=3.0)
        assert x.sum() == pytest.approx(rates.sum(), rel=1e-12)
        assert np.array_equal(np.argsort(x, kind="stable")[-1:], np.argsort(-gradient)[-1:]) or x.max() == 3.0
        assert project(gradient, low=0.1, high=3.0, total=7.0).sum() == pytest.approx(7.0, rel=1e-12)
    for far in ([-size, size], [size, -size]):
        try:
            assert mirror_step([1, 1], far, eta=1.0, low=0.1, high=4).sum() == pytest.approx(2.0)
            assert project(far, low=0.1, high=4, total=2.0).sum() == pytest.approx(2.0)
        except ConfigError as error:
            assert "not finite" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("rates", "gradient", "eta", "said"),
    [
        ([], [], 1.0, "one number at least"),
        (["a"], [1.0], 1.0, "rates must be numbers"),
        ([1.0], [None, "x"], 1.0, "gradient must be numbers"),
        ([1.0, 1.0], [-1.0, 0.0], -1.0, "eta must be a finite number of at least 0"),
        ([1.0, 1.0], [-1.0, 0.0], "a", "eta must be a number"),
    ],
)
def test_arguments_without_sense_get_a_sentence(rates: object, gradient: object, eta: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mirror_step(rates, gradient, eta=eta, low=0.1, high=4.0)  # type: ignore[arg-type]


def test_numbers_that_are_none_are_refused() -> None:
    rates = np.full(3, 0.4)
    with pytest.raises(ConfigError, match="not finite"):
        mirror_step(rates, np.array([0.0, np.nan, 0.0]), eta=1.0, low=0.1, high=1.0)
    with pytest.raises(ConfigError, match="one length"):
        mirror_step(rates, np.zeros(2), eta=1.0, low=0.1, high=1.0)
    with pytest.raises(ConfigError, match="above 0"):
        mirror_step(np.zeros(3), np.zeros(3), eta=1.0, low=0.1, high=1.0)
