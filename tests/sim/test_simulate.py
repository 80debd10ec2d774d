import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.schedule import Greedy
from afresh.sim.alias import alias_table
from afresh.sim.evenly import evenly_spaced
from afresh.sim.plain import ByUrgency, simulate_plainly
from afresh.sim.simulate import simulate
from afresh.sim.world import World, make_world, paper_world


def noisy(pages: int, seed: int = 0, **options: float) -> World:
    return paper_world(np.random.default_rng([seed, 7]), pages, signals="noisy", **options)  # type: ignore[arg-type]


class Played:
    """Crawls a given sequence of pages."""

    def __init__(self, picks: list[int]) -> None:
        self.picks = iter(picks)

    def start(self, world: World, budget: float) -> None: ...

    def signal(self, page: int, now: float) -> None: ...

    def pick(self, now: float) -> int:
        return next(self.picks)

    def crawled(self, page: int, now: float, changed: bool) -> None: ...


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), pages=st.integers(1, 12), warm_up=st.sampled_from([0.0, 3.0]))
def test_the_compiled_loop_scores_a_known_sequence_as_the_plain_one_does(seed: int, pages: int, warm_up: float) -> None:
    world = noisy(pages, seed)
    picks = evenly_spaced(world.baseline(5.0).rates, 101).tolist()
    plain = simulate_plainly(world, Played(picks), budget=5.0, horizon=20.0, warm_up=warm_up, seed=seed)
    fast = simulate(world, "lds", budget=5.0, horizon=20.0, warm_up=warm_up, seed=seed)
    assert fast.accuracy == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("policy", ["greedy", "greedy-cis", "greedy-ncis"])
def test_decisions_are_those_of_the_plain_argmax(policy: str) -> None:
    world = noisy(15, 3)
    plain = simulate_plainly(world, ByUrgency(Greedy(policy)), budget=4.0, horizon=150.0, seed=3)
    exact = simulate(world, policy, budget=4.0, horizon=150.0, seed=3, exact=True)
    # Beliefs are kept to seven digits, so that a near tie may now and then go the other way.
    assert exact.accuracy == pytest.approx(plain, abs=0.004)


def test_the_world_does_not_depend_on_the_policy() -> None:
    world = noisy(50)
    changes = set()
    for policy in ("greedy", "greedy-ncis", "lds"):
        score = simulate(world, policy, budget=20.0, horizon=50.0, requests=True)
        changes.add(score.events - score.crawls)
    assert len(changes) == 1


def test_simulated_requests_agree_with_exact_time() -> None:
    score = simulate(noisy(200), budget=50.0, horizon=300.0, requests=True)
    assert score.sampled == pytest.approx(score.accuracy, abs=0.01)
    assert score.crawls == pytest.approx(50 * 300, abs=2)
    assert 0 < score.finds < score.crawls


def test_the_fast_scheduler_does_as_well_as_the_exact_one() -> None:
    world = noisy(300)
    fast, exact = (simulate(world, horizon=200.0, warm_up=20.0, exact=exact).accuracy for exact in (False, True))
    assert fast == pytest.approx(exact, abs=0.01)


def test_late_signals_are_worth_less() -> None:
    prompt = simulate(noisy(100), horizon=300.0).accuracy
    late = simulate(noisy(100, signal_delay=30.0), horizon=300.0).accuracy
    assert late < prompt - 0.01


def test_a_page_that_is_never_crawled_is_fresh_until_its_first_change() -> None:
    world = make_world(request_rate=[1.0, 1e-9], change_rate=[1e-6, 1.0])
    score = simulate(world, "greedy", budget=0.001, horizon=500.0)
    assert score.accuracy > 0.99
    assert score.unweighted < 0.6


@given(weights=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=40).filter(lambda values: sum(values) > 1e-3))
def test_the_alias_table_keeps_every_weight(weights: list[float]) -> None:
    keep, other = alias_table(np.array(weights))
    share = keep.copy()
    for cell, target in enumerate(other):
        if keep[cell] < 1:
            share[target] += 1 - keep[cell]
    assert share / len(weights) == pytest.approx(np.array(weights) / sum(weights), abs=1e-9)


@given(rates=st.lists(st.floats(0.01, 10.0), min_size=1, max_size=20))
def test_evenly_spaced_crawls_keep_to_their_rates(rates: list[float]) -> None:
    share = np.array(rates) / sum(rates)
    picks = evenly_spaced(np.array(rates), 500)
    counts = np.stack([np.cumsum(picks == page) for page in range(len(rates))])
    expected = share[:, None] * np.arange(1, 501)
    assert np.abs(counts - expected).max() < 3.5


@pytest.mark.parametrize(
    "bad", [{"recall": 1.5}, {"change_rate": -1.0}, {"request_rate": np.nan}, {"signal_delay": -1.0}]
)
def test_a_world_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        make_world(**({"request_rate": 1.0, "change_rate": [1.0, 2.0]} | bad))  # type: ignore[arg-type]
