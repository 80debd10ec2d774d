import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate import fit_change
from afresh.estimate.kinds import FIRST_OWN
from afresh.estimate.online import (
    GLANCES,
    GROUP,
    PAGE,
    Table,
    beliefs_of,
    fresh_probability_of,
    glance,
    learn_crawl,
    new_table,
    observe_many,
    posterior_of,
    set_guess,
    sweep,
)
from afresh.estimate.points import PER_OCTAVE, RATES, SLOWEST, WEIGHTS
from afresh.estimate.sums import SUMS, add_crawl, pull, pull_inverse

SILENT_RATES = SLOWEST * 2.0 ** (np.arange(RATES) / PER_OCTAVE)  # times the typical rate
FOR_EVER = {"memory": np.inf, "crawl_memory": 1.0}
HALF_A_STEP = 0.5 * np.log(2.0) / PER_OCTAVE  # from one rate to the next
CRAWLS = st.lists(
    st.tuples(st.floats(0.01, 30.0), st.integers(0, 6), st.booleans()),
    min_size=1,
    max_size=25,
)


def watched(
    rng: np.random.Generator, count: int, *, silent: float, told: float, false: float, every: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(elapsed, signals, changed) of a page's crawls."""
    elapsed = rng.exponential(every, count)
    heard = rng.poisson(told * elapsed)
    changed = (heard + rng.poisson(silent * elapsed)) > 0
    return elapsed, (heard + rng.poisson(false * elapsed)).astype(float), changed


def plain_posterior(
    crawls: list[tuple[float, int, bool]], shape: float, rate: float, signal_shape: float, signal_rate: float
) -> tuple[float, float, float]:
    """Posterior mean of α, its spread in logarithms, and what a signal adds to the staleness, by brute force."""
    alpha, b = np.meshgrid(np.geomspace(1e-4, 60.0, 220), np.geomspace(0.015, 7.0, 160), indexing="ij")
    log = shape * np.log(alpha) - rate * alpha + signal_shape * np.log(b) - signal_rate * b
    for elapsed, signals, changed in crawls:
        x = alpha * elapsed + b * signals
        log += np.log(-np.expm1(-x)) if changed else -x
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean_log = (weight * np.log(alpha)).sum()
    spread = np.sqrt((weight * (np.log(alpha) - mean_log) ** 2).sum())
    return float((weight * alpha).sum()), float(spread), float(-np.log((weight * np.exp(-b)).sum()))


@settings(max_examples=300, deadline=None, derandomize=True)  # of other draws 4 in 900 exceed the bounds below
@given(crawls=CRAWLS)
def test_a_page_is_believed_to_be_what_its_whole_posterior_says(crawls: list[tuple[float, int, bool]]) -> None:
    table = new_table(1, typical_rate=0.3, now=0.0, **FOR_EVER)
    table.pages["heard"] = sum(signals for _, signals, _ in crawls)
    for elapsed, signals, changed in crawls:
        learn_crawl(table, 0, elapsed, float(signals), changed)
    alpha, _, b = posterior_of(table, 0)
    expected_alpha, spread, expected_b = plain_posterior(crawls, 0.5, 0.5 / 0.3, 0.5, 1.0)
    # Some rates stand for all between them, and a few sums for all crawls: right within a fraction of the spread.
    assert abs(np.log(alpha / expected_alpha)) < HALF_A_STEP + 0.65 * spread
    # Where a signal takes next to nothing of freshness, it does not matter how little. At most 0.68 in 900 draws.
    assert abs(np.log((b + 0.03) / (expected_b + 0.03))) < 0.8


def kept_likelihood(sums: np.ndarray, alpha: float, b: float) -> float:
    """What the eight sums say of (α, b), as their meaning is written down."""
    total = -float(sums[0]) * alpha - float(sums[1]) * b
    for count, elapsed, signals in (sums[2:5].astype(float), sums[5:8].astype(float)):
        if count > 0 and elapsed + signals > 0:
            total += count * np.log(-np.expm1(-(alpha * elapsed + b * signals) / count))
    return float(total)


def test_the_pull_of_a_change_can_be_undone() -> None:
    for x in np.geomspace(1e-5, 30.0, 300):
        assert pull_inverse(pull(x)) == pytest.approx(x, rel=1e-5)
    assert pull(0.0) == 1.0
    assert pull_inverse(1.0) > 0.0


@settings(max_examples=100, deadline=None)
@given(crawls=CRAWLS, alpha=st.floats(0.02, 2.0), b=st.floats(0.05, 2.0))
def test_the_sums_keep_the_slope_of_the_likelihood_at_what_is_believed(
    crawls: list[tuple[float, int, bool]], alpha: float, b: float
) -> None:
    sums = np.zeros(SUMS, np.float32)
    counted = [(t, n, z) for t, n, z in crawls if not (z and alpha * t + b * n > 30.0)]
    for elapsed, signals, changed in crawls:
        add_crawl(sums, elapsed, float(signals), changed, alpha, b)

    def whole(alpha: float, b: float) -> float:
        return sum(np.log(-np.expm1(-(alpha * t + b * n))) if z else -(alpha * t + b * n) for t, n, z in counted)

    for up, across in ((1e-3, 0.0), (0.0, 1e-3)):
        ahead, behind = (alpha * (1 + up), b * (1 + across)), (alpha * (1 - up), b * (1 - across))
        kept = kept_likelihood(sums, *ahead) - kept_likelihood(sums, *behind)
        exact = whole(*ahead) - whole(*behind)
        assert kept == pytest.approx(exact, rel=1e-3, abs=2e-5 * len(crawls))


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 60),
    elapsed=st.floats(0.1, 20.0),
    signals=st.integers(0, 5),
    alpha=st.floats(0.01, 1.0),
    b=st.floats(0.05, 1.5),
)
def test_crawls_that_are_all_alike_are_kept_exactly(
    count: int, elapsed: float, signals: int, alpha: float, b: float
) -> None:
    sums = np.zeros(SUMS, np.float32)
    for k in range(count):  # whatever was believed meanwhile
        add_crawl(sums, elapsed, float(signals), True, alpha * (1 + k % 3), b)
    if (3 * alpha * elapsed + b * signals) < 20.0:
        for other in (0.3, 1.0, 3.0):
            x = other * (alpha * elapsed + b * signals)
            exact = count * np.log(-np.expm1(-x))
            assert kept_likelihood(sums, other * alpha, other * b) == pytest.approx(exact, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_time_and_signals_are_told_apart_on_a_page_that_never_is_silent(seed: int) -> None:
    rng, alpha, b, usual = np.random.default_rng(seed), 0.4, 0.4, 1.5
    sums, crawls = np.zeros(SUMS, np.float32), []
    for _ in range(400):
        elapsed = float(rng.exponential(1.5))
        signals = 1 + int(rng.poisson(usual * elapsed))
        changed = bool(rng.random() > np.exp(-(alpha * elapsed + b * signals)))
        crawls.append((elapsed, signals, changed))
        add_crawl(sums, elapsed, float(signals), changed, alpha, b)

    def lost(alpha: float, b: float) -> tuple[float, float]:
        """How much less likely these are than the truth, by the sums and by all crawls."""
        whole = sum(np.log(-np.expm1(-(alpha * t + b * n))) if z else -(alpha * t + b * n) for t, n, z in crawls)
        return kept_likelihood(sums, alpha, b), float(whole)

    truth = np.array(lost(alpha, b))
    for other in ((0.8, 0.25), (0.1, 0.6)):  # more by time and less by signals, or the other way round
        kept, exact = truth - lost(*other)
        assert kept == pytest.approx(exact, abs=1.0)


def test_the_error_falls_until_the_points_are_no_finer() -> None:
    rng = np.random.default_rng(3)
    errors = []
    for count in (100, 1600):
        table = new_table(120, typical_rate=0.2, now=0.0, **FOR_EVER)
        table.pages["heard"] = 20
        off = []
        for page in range(120):
            elapsed, signals, changed = watched(rng, count, silent=0.1, told=0.15, false=0.1, every=4.0)
            for k in range(count):
                learn_crawl(table, page, elapsed[k], signals[k], changed[k])
            alpha, _, b = posterior_of(table, page)
            off.append((np.log(alpha / 0.1), b - np.log(2.5)))
        errors.append(np.sqrt(np.mean(np.square(off), axis=0)))
    assert errors[1][0] < min(errors[0][0] / 4, 0.1)  # one of the points is right
    assert errors[1][1] < min(errors[0][1], 0.2)  # the closest ones are 0.12 below and 0.38 above


def test_online_agrees_with_the_batch_fit() -> None:
    rng = np.random.default_rng(4)
    seen = watched(rng, 20_000, silent=0.05, told=0.2, false=0.1, every=3.0)
    table = new_table(1, typical_rate=0.2, now=0.0, **FOR_EVER)
    table.pages["heard"] = 20
    observe_many(table, np.zeros(20_000, np.int64), *seen)
    alpha, _, b = posterior_of(table, 0)
    fit = fit_change(*seen)
    assert abs(np.log(alpha / fit.silent_rate)) < HALF_A_STEP
    nearest = WEIGHTS[np.argsort(np.abs(WEIGHTS - fit.signal_weight[0]))[:2]]
    assert nearest.min() * (1 - 1e-9) <= b <= nearest.max() * (1 + 1e-9)


def crawl_all(table: Table, rng: np.random.Generator, rates: np.ndarray, count: int, every: float) -> None:
    for _ in range(count):
        for page, rate in enumerate(rates):
            learn_crawl(table, page, every, 0.0, bool(rng.random() < -np.expm1(-rate * every)))


def test_a_page_never_crawled_is_believed_to_be_like_the_others() -> None:
    rng = np.random.default_rng(5)
    table = new_table(51, typical_rate=1.0, now=0.0)
    crawl_all(table, rng, np.full(50, 0.1), 40, 5.0)
    sweep(table, 5)
    # The first guess, ten times off, still counts as two pages, and rules the arithmetic mean.
    assert beliefs_of(table, 50, 1.0)[0] == pytest.approx(0.1, rel=0.5)
    chance = table.chance[:RATES]
    assert np.exp(chance @ np.log(SILENT_RATES)) == pytest.approx(0.1, rel=0.25)


def test_the_prior_is_as_wide_as_the_pages_differ() -> None:
    rng = np.random.default_rng(6)
    alike, unlike = (new_table(201, typical_rate=1.0, now=0.0) for _ in range(2))
    crawl_all(alike, rng, np.full(200, 0.2), 20, 4.0)
    crawl_all(unlike, rng, np.exp(rng.normal(np.log(0.2), 1.5, 200)), 20, 4.0)
    for table in (alike, unlike):
        sweep(table, 20)
    shapes = [posterior_of(table, 200)[1] for table in (alike, unlike)]  # of a page that was never crawled
    assert shapes[0] > 2 * shapes[1]
    # So one changed crawl says more of a page among pages that differ.
    before = [fresh_probability_of(table, 200, 4.0, 0.0) for table in (alike, unlike)]
    for table in (alike, unlike):
        learn_crawl(table, 200, 1.0, 0.0, True)
    after = [fresh_probability_of(table, 200, 4.0, 0.0) for table in (alike, unlike)]
    assert after[1] / before[1] < 0.9 * after[0] / before[0]


@pytest.mark.parametrize(
    "forgetting", [{"memory": 20.0, "crawl_memory": 1.0}, {"memory": np.inf, "crawl_memory": 0.95}]
)
def test_old_evidence_fades(forgetting: dict[str, float]) -> None:
    forgetful, faithful = (new_table(1, typical_rate=1.0, now=0.0, **each) for each in (forgetting, FOR_EVER))
    for table in (forgetful, faithful):
        for k in range(200):
            learn_crawl(table, 0, 1.0, 0.0, k < 100)
    assert beliefs_of(forgetful, 0, 200.0)[0] < 0.3 * beliefs_of(faithful, 0, 200.0)[0]


def test_a_page_that_was_silent_for_long_may_wake() -> None:
    """What is believed fades towards what pages are like, by visits and by time, however long it was silent."""
    rng, pages = np.random.default_rng(11), 100
    table = new_table(pages, typical_rate=1.0, now=0.0)
    crawl_all(table, rng, np.where(np.arange(pages) < 50, 1.0, 1e-5), 30, 1.0)
    sweep(table, 20)
    like_others = fresh_probability_of(table, 99, 1.0, 0.0)
    for _ in range(1000):
        learn_crawl(table, 99, 1.0, 0.0, False)
    # A thousand silent visits are no more than fifty: what was found before them fades as fast as they come.
    assert table.pages["sums"][99].sum() < 60.0
    long_silent = [fresh_probability_of(table, 99, age, 0.0) for age in (1.0, 100.0, 10_000.0)]
    assert long_silent[0] > like_others > 0.9
    assert long_silent[2] < 0.9
    woken = []
    for _ in range(20):
        learn_crawl(table, 99, 1.0, 0.0, True)
        woken.append(fresh_probability_of(table, 99, 1.0, 0.0))
    assert woken[4] < 0.9
    assert woken[19] < 0.7


def test_half_of_the_pages_never_change_and_are_told_from_the_others() -> None:
    rng, pages = np.random.default_rng(12), 400
    rates = np.where(np.arange(pages) % 2 == 0, 1.0, 0.0)
    table = new_table(pages + 1, typical_rate=1.0, now=0.0)
    crawl_all(table, rng, rates, 6, 1.0)
    sweep(table, 60)
    prior = np.exp(table.groups["rates"][0].astype(float))
    slow, between, fast = (
        prior[low:high].sum()
        for low, high in zip(
            *(np.searchsorted(SILENT_RATES, edges) for edges in ((0, 0.02, 0.3), (0.02, 0.3, 5e4))), strict=False
        )
    )
    assert slow == pytest.approx(0.5, abs=0.1)
    assert fast == pytest.approx(0.5, abs=0.1)
    assert between < 0.1
    found = np.array([posterior_of(table, page)[0] for page in range(pages)])
    assert np.quantile(found[rates > 0], 0.02) > 10 * np.quantile(found[rates == 0], 0.95)
    # Of a page that was never crawled it is not known which it is: a coin is tossed once, not at every moment.
    fresh = [fresh_probability_of(table, pages, age, 0.0) for age in (1.0, 30.0)]
    assert fresh[0] == pytest.approx(0.5 + 0.5 * np.exp(-1.0), abs=0.1)
    assert fresh[1] > 0.3


def test_what_is_stated_comes_true() -> None:
    rng = np.random.default_rng(7)
    rates = np.exp(rng.normal(np.log(0.1), 1.0, 3000))
    table = new_table(3000, typical_rate=1.0, now=0.0)
    crawl_all(table, rng, rates, 3, 6.0)
    sweep(table, 30)
    stated = [fresh_probability_of(table, page, 8.0, 0.0) for page in range(3000)]
    assert np.mean(stated) == pytest.approx(np.mean(np.exp(-rates * 8.0)), abs=0.03)
    low = np.array(stated) < np.median(stated)
    assert np.mean(np.array(stated)[low]) == pytest.approx(np.mean(np.exp(-rates[low] * 8.0)), abs=0.045)


@settings(max_examples=30, deadline=None)
@given(crawls=CRAWLS, cut=st.integers(0, 25))
def test_any_batching_learns_the_same(crawls: list[tuple[float, int, bool]], cut: int) -> None:
    one, many, parts = (new_table(3, typical_rate=0.3, now=0.0) for _ in range(3))
    page = np.arange(len(crawls)) % 3
    elapsed = np.array([each[0] for each in crawls])
    signals = np.array([float(each[1]) for each in crawls])
    changed = np.array([each[2] for each in crawls])
    for k in range(len(crawls)):
        learn_crawl(one, page[k], elapsed[k], signals[k], changed[k])
        for _ in range(int(one.control[GLANCES])):
            glance(one)
    observe_many(many, page, elapsed, signals, changed)
    observe_many(parts, page[:cut], elapsed[:cut], signals[:cut], changed[:cut])
    observe_many(parts, page[cut:], elapsed[cut:], signals[cut:], changed[cut:])
    for other in (many, parts):
        assert other.pages.tobytes() == one.pages.tobytes()
        assert other.groups.tobytes() == one.groups.tobytes()


def test_what_pages_turned_out_to_be_is_what_others_are_thought_to_be() -> None:
    rng, alpha, b = np.random.default_rng(5), 0.2, 0.8
    table = new_table(300, typical_rate=0.1, now=0.0, **FOR_EVER)
    table.pages["heard"] = 20
    for page in range(299):
        for _ in range(25):
            elapsed = float(rng.exponential(4.0))
            signals = float(rng.poisson(0.3 * elapsed))
            learn_crawl(table, page, elapsed, signals, bool(rng.random() > np.exp(-(alpha * elapsed + b * signals))))
    posterior_of(table, 299)
    before = table.chance.copy()
    sweep(table, 12)
    posterior_of(table, 299)
    after = table.chance.copy()
    for part, values, truth in ((slice(RATES), 0.1 * SILENT_RATES, alpha), (slice(RATES, None), WEIGHTS, b)):
        assert after[part].sum() == pytest.approx(1.0)
        apart = np.abs(np.log(values / truth))
        off = [each[part] @ apart for each in (before, after)]
        # Pages of a group are never held to be all alike: part of what is found goes to the neighbours of each point.
        assert off[1] < 0.55 * min(off[0], 1.0)
    found_alpha, _, found_b = posterior_of(table, 299)
    assert (found_alpha, found_b) == (pytest.approx(alpha, rel=0.15), pytest.approx(b, rel=0.1))


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_a_group_that_is_unlike_the_others_has_a_prior_of_its_own(rate: float) -> None:
    rng, pages = np.random.default_rng(8), 600
    table = new_table(pages, typical_rate=0.1, now=0.0, **FOR_EVER)
    own = np.zeros(1, GROUP)
    set_guess(own[0])
    table = table._replace(groups=np.concatenate([table.groups, own]))
    table.pages["heard"] = 20
    other = np.arange(pages) % 10 == 0
    table.pages["group"] = np.where(other, FIRST_OWN, 0)
    alpha = np.where(other, rate, 0.1 * np.exp(0.5 * rng.standard_normal(pages)))
    for page in range(pages - 10):  # the last ten are never crawled, and one of them is of that group
        for _ in range(30):
            elapsed = float(rng.exponential(1.0 / alpha[page]))
            learn_crawl(table, page, elapsed, 0.0, bool(rng.random() > np.exp(-alpha[page] * elapsed)))
    sweep(table, 8)
    found = []
    for page in (pages - 10, pages - 9):
        posterior_of(table, page)
        found.append(np.exp(table.chance[:RATES] @ np.log(0.1 * SILENT_RATES)))
    assert abs(np.log(found[0] / rate)) < 0.7
    assert abs(np.log(found[1] / 0.1)) < 0.5


def test_a_page_takes_72_bytes() -> None:
    assert PAGE.itemsize <= 72


@pytest.mark.parametrize("pages", [1, 63, 64, 200, 960, 1000, 11_767])
def test_every_page_has_its_turn_once_and_any_part_of_a_turn_is_of_pages_from_all_over(pages: int) -> None:
    table = new_table(pages, typical_rate=1.0, now=0.0)
    for _ in range(2):
        turn = np.array([glance(table) for _ in range(pages)])
        assert sorted(turn) == list(range(pages))
        if pages >= 960:
            assert abs(np.mean(turn[: pages // 2]) / pages - 0.5) < 0.1


def test_pages_that_are_crawled_in_their_order_teach_the_others_within_the_first_round() -> None:
    pages, day = 4000, 86400.0
    table = new_table(pages, typical_rate=1 / (100 * day), now=0.0)
    guessed = beliefs_of(table, pages - 1, 50 * day)[0]
    for page in range(pages // 2):  # all have changed: their rate is much higher than was guessed
        learn_crawl(table, page, 100 * day, 0.0, True)
        glance(table)
        glance(table)
    assert beliefs_of(table, pages - 1, 50 * day)[0] > 1.3 * guessed


@pytest.mark.parametrize("rate", [0.35, 0.7, 1.0, 1.4])
def test_a_prior_of_pages_that_are_alike_does_not_settle_on_one_rate(rate: float) -> None:
    """Otherwise the past decides on which, and the same crawls in another order would say something else."""
    rng, pages, rounds = np.random.default_rng(6), 30, 25
    changed = rng.random((rounds, pages)) < -np.expm1(-rate * 1.0)
    means = []
    for order in (np.arange(rounds), np.arange(rounds)[::-1]):
        table = new_table(pages, typical_rate=1.0, now=0.0, **FOR_EVER)
        for k in order:
            observe_many(table, np.arange(pages), np.ones(pages), np.zeros(pages), changed[k])
        chance = np.exp(table.groups[0]["rates"].astype(float))
        assert chance.max() / chance.sum() < 0.9
        means.append(np.mean([posterior_of(table, page)[0] for page in range(pages)]))
    assert means[0] == pytest.approx(means[1], rel=0.1)
    assert np.mean(means) == pytest.approx(rate, rel=0.2)
