import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate import fit_change
from afresh.estimate.curiosity import Copy
from afresh.estimate.online import (
    GLANCES,
    LOUDNESSES,
    PAGE,
    PLAIN_PRICE,
    Table,
    beliefs_of,
    chances_of,
    fresh_probability_of,
    glance,
    interest_of,
    learn_crawl,
    new_table,
    observe_many,
    posterior_of,
    sweep,
)
from afresh.estimate.points import SILENT_RATES, WEIGHTS
from afresh.estimate.posterior import SUMS, add_crawl, digamma, gamma_shape, mode, pull, pull_inverse
from afresh.value import optimum

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
) -> tuple[float, float]:
    """Posterior means of α and b, by brute force."""
    alpha, b = np.meshgrid(np.geomspace(1e-4, 60.0, 220), np.geomspace(1e-3, 40.0, 160), indexing="ij")
    log = shape * np.log(alpha) - rate * alpha + signal_shape * np.log(b) - signal_rate * b
    for elapsed, signals, changed in crawls:
        x = alpha * elapsed + b * signals
        log += np.log(-np.expm1(-x)) if changed else -x
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    return float((weight * alpha).sum()), float((weight * b).sum())


@settings(max_examples=60, deadline=None)
@given(crawls=CRAWLS)
def test_a_page_is_believed_to_be_what_its_whole_posterior_says(crawls: list[tuple[float, int, bool]]) -> None:
    table = new_table(1, typical_rate=0.3, now=0.0, memory=np.inf)
    for elapsed, signals, changed in crawls:
        learn_crawl(table, 0, elapsed, float(signals), changed)
    alpha, b, shape, signal_shape = posterior_of(table, 0)
    expected_alpha, expected_b = plain_posterior(crawls, 0.5, 0.5 / 0.3, 0.5, 1.0)
    # A mode stands for a mean, and a tangent for a curve: right within a fraction of the spread.
    assert abs(np.log(alpha / expected_alpha)) < 0.7 + 0.8 / np.sqrt(shape)
    assert abs(np.log(b / expected_b)) < 0.8 + 1.2 / np.sqrt(signal_shape)


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


@settings(max_examples=60, deadline=None)
@given(
    sums=st.lists(st.floats(0.0, 50.0), min_size=SUMS, max_size=SUMS),
    prior=st.tuples(*[st.floats(0.05, 20.0) for _ in range(4)]),
)
def test_newton_finds_the_maximum(sums: list[float], prior: tuple[float, float, float, float]) -> None:
    kept = np.array(sums, np.float32)
    alpha, b, shape, signal_shape = mode(kept, *prior)
    assert min(alpha, b, shape, signal_shape) > 0

    def density(alpha: float, b: float) -> float:
        total = prior[0] * np.log(alpha) - prior[1] * alpha + prior[2] * np.log(b) - prior[3] * b
        return float(total + kept_likelihood(kept, alpha, b))

    best = density(alpha, b)
    for up in (0.9, 1.0, 1.1):
        for across in (0.9, 1.0, 1.1):
            assert density(alpha * up, b * across) <= best + 1e-4 * (1 + abs(best))


def test_the_error_falls_like_one_over_the_root_of_the_crawls() -> None:
    rng = np.random.default_rng(3)
    errors = []
    for count in (100, 1600):
        table = new_table(120, typical_rate=0.2, now=0.0, memory=np.inf)
        off = []
        for page in range(120):
            elapsed, signals, changed = watched(rng, count, silent=0.1, told=0.15, false=0.1, every=4.0)
            for k in range(count):
                learn_crawl(table, page, elapsed[k], signals[k], changed[k])
            alpha, b, _, _ = posterior_of(table, page)
            off.append((np.log(alpha / 0.1), b - np.log(2.5)))
        errors.append(np.sqrt(np.mean(np.square(off), axis=0)))
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.5)


def test_online_agrees_with_the_batch_fit() -> None:
    rng = np.random.default_rng(4)
    seen = watched(rng, 20_000, silent=0.05, told=0.2, false=0.1, every=3.0)
    table = new_table(1, typical_rate=0.2, now=0.0, memory=np.inf)
    observe_many(table, np.zeros(20_000, np.int64), *seen)
    alpha, b, _, _ = posterior_of(table, 0)
    fit = fit_change(*seen)
    assert alpha == pytest.approx(fit.silent_rate, rel=0.05)
    assert b == pytest.approx(fit.signal_weight[0], rel=0.05)


def crawl_all(table: Table, rng: np.random.Generator, rates: np.ndarray, count: int, every: float) -> None:
    for _ in range(count):
        for page, rate in enumerate(rates):
            learn_crawl(table, page, every, 0.0, bool(rng.random() < -np.expm1(-rate * every)))


def test_a_page_never_crawled_is_believed_to_be_like_the_others() -> None:
    rng = np.random.default_rng(5)
    table = new_table(51, typical_rate=1.0, now=0.0)
    crawl_all(table, rng, np.full(50, 0.1), 40, 5.0)
    sweep(table, 5)
    # The first guess, ten times off, still counts as two pages in the arithmetic half of the mean.
    assert beliefs_of(table, 50, 1.0)[0] == pytest.approx(0.1, rel=0.25)


def test_the_prior_is_as_wide_as_the_pages_differ() -> None:
    rng = np.random.default_rng(6)
    alike, unlike = (new_table(200, typical_rate=1.0, now=0.0) for _ in range(2))
    crawl_all(alike, rng, np.full(200, 0.2), 20, 4.0)
    crawl_all(unlike, rng, np.exp(rng.normal(np.log(0.2), 1.5, 200)), 20, 4.0)
    for table in (alike, unlike):
        sweep(table, 20)
    assert alike.groups["shape"][0] > 4 * unlike.groups["shape"][0]
    # So one changed crawl says more of a page among pages that differ.
    before = [posterior_of(table, 0)[0] for table in (alike, unlike)]
    for table in (alike, unlike):
        learn_crawl(table, 0, 0.01, 0.0, True)
    after = [posterior_of(table, 0)[0] for table in (alike, unlike)]
    assert after[1] / before[1] > after[0] / before[0]


def test_old_evidence_fades() -> None:
    forgetful, faithful = (new_table(1, typical_rate=1.0, now=0.0, memory=memory) for memory in (20.0, np.inf))
    for table in (forgetful, faithful):
        for k in range(200):
            learn_crawl(table, 0, 1.0, 0.0, k < 100)
    assert beliefs_of(forgetful, 0, 200.0)[0] < 0.3 * beliefs_of(faithful, 0, 200.0)[0]


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


def weighed(table: Table, page: int, now: float, request_rate: float, price: float, *, in_turn: bool = False) -> float:
    return float(interest_of(table, page, now, request_rate, price, Copy(0.0, 0.0), in_turn))


def test_crawls_of_pages_that_are_not_known_yet_are_worth_more() -> None:
    table = new_table(3, typical_rate=0.1, now=0.0, memory=np.inf)
    table.pages["heard"][:2] = 20
    rng = np.random.default_rng(9)
    for _ in range(1000):
        elapsed = float(rng.exponential(3.0))
        signals = float(rng.poisson(0.5 * elapsed))
        learn_crawl(table, 1, elapsed, signals, bool(rng.random() > np.exp(-(0.1 * elapsed + 0.8 * signals))))
    unknown, known, silent = (weighed(table, page, 40.0, 0.1, 0.1) for page in range(3))
    assert unknown > 1.5
    assert known < 1.1
    assert silent == 1.0  # nothing was heard of it
    # What is learned is worth nothing towards the end of a plan, nor if it is forgotten before it can be used.
    assert weighed(table, 0, 170.0, 0.1, 0.1) == 1.0
    forgetful = new_table(1, typical_rate=0.1, now=0.0, memory=0.1)
    forgetful.pages["heard"][:] = 20
    assert weighed(forgetful, 0, 40.0, 0.1, 0.1) == 1.0
    # Nor is a page that nobody asks for, or before there is a price.
    assert weighed(table, 0, 40.0, 0.0, 0.4) == weighed(table, 0, 40.0, 0.1, 0.0) == 1.0


def test_a_page_that_flaps_teaches_nothing() -> None:
    table = new_table(1, typical_rate=0.1, now=0.0)
    table.pages["heard"][0] = 20
    assert weighed(table, 0, 40.0, 0.1, 0.1) > 1.0
    table.pages["surprise"][0] = 64 * 25
    assert weighed(table, 0, 40.0, 0.1, 0.1) == 1.0


def test_what_pages_turned_out_to_be_is_what_others_are_thought_to_be() -> None:
    rng, alpha, b = np.random.default_rng(5), 0.2, 0.8
    table = new_table(300, typical_rate=0.1, now=0.0, memory=np.inf)
    table.pages["heard"] = 20
    for page in range(299):
        for _ in range(25):
            elapsed = float(rng.exponential(4.0))
            signals = float(rng.poisson(0.3 * elapsed))
            learn_crawl(table, page, elapsed, signals, bool(rng.random() > np.exp(-(alpha * elapsed + b * signals))))
    again = new_table(300, typical_rate=0.1, now=0.0, memory=np.inf)
    again.pages[:] = table.pages
    before = chances_of(table, 299)
    for _ in range(12):
        for page in range(300):
            weighed(table, page, 40.0, 0.1, 0.4, in_turn=True)
    sweep(again, 12)  # the same is found when all pages were read back at once
    for after in (chances_of(table, 299), chances_of(again, 299)):
        assert after.sum() == pytest.approx(1.0)
        for axis, values, truth in ((1, 0.1 * SILENT_RATES, alpha), (0, WEIGHTS, b)):
            apart = np.abs(np.log(values / truth))
            off = [each.reshape(len(SILENT_RATES), -1).sum(axis) @ apart for each in (before, after)]
            assert off[1] < 0.45
            assert off[1] < 0.5 * off[0]
    # All alike, and known by now: there is nothing left to learn about the one that was never crawled.
    assert weighed(table, 299, 40.0, 0.1, 0.4) < 1.05


@pytest.mark.parametrize(
    ("pages", "shown", "enough"), [(60, 60, 60), (150, 150, 100), (600, 600, 200), (600, 90, 600), (600, 120, 290)]
)
def test_what_pages_are_like_is_settled_after_a_third_of_them_unless_these_show_little(
    pages: int, shown: int, enough: int
) -> None:
    table = new_table(pages, typical_rate=0.1, now=0.0)
    table.pages["heard"] = 20
    first = enough - 100 if shown == 120 else 0  # the others were never crawled
    for page in range(first, first + shown):
        learn_crawl(table, page, 10.0, 1.0, False)
    before = table.prior.copy()
    for page in range(enough):
        assert np.array_equal(table.prior, before)
        weighed(table, page, 40.0, 0.1, 0.1, in_turn=True)
    assert not np.array_equal(table.prior, before)
    assert table.found.sum() == 0.0


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_a_group_that_is_unlike_the_others_tilts_the_points(rate: float) -> None:
    rng, pages = np.random.default_rng(8), 600
    table = new_table(pages, typical_rate=0.1, now=0.0, memory=np.inf)
    groups = np.concatenate([table.groups, table.groups])
    groups["parent"][LOUDNESSES:] = LOUDNESSES
    groups["parent"][LOUDNESSES] = 0
    table = table._replace(groups=groups)
    table.pages["heard"] = 20
    other = np.arange(pages) % 10 == 0
    table.pages["group"] = np.where(other, LOUDNESSES, 0)
    alpha = np.where(other, rate, 0.1 * np.exp(0.5 * rng.standard_normal(pages)))
    for page in range(pages - 10):  # the last ten are never crawled, and one of them is of that group
        for _ in range(30):
            elapsed = float(rng.exponential(1.0 / alpha[page]))
            learn_crawl(table, page, elapsed, 0.0, bool(rng.random() > np.exp(-alpha[page] * elapsed)))
    sweep(table, 8)
    new, of_others = (
        np.exp(chances_of(table, page).reshape(len(SILENT_RATES), -1).sum(1) @ np.log(0.1 * SILENT_RATES))
        for page in (pages - 10, pages - 9)
    )
    assert abs(np.log(new / rate)) < 0.7
    assert abs(np.log(of_others / 0.1)) < 0.5


def test_the_plain_price_is_the_one_at_which_pages_ask_for_the_crawls_there_are() -> None:
    rng, pages = np.random.default_rng(6), 400
    table = new_table(pages, typical_rate=0.1, now=0.0, memory=np.inf)
    request_rate = rng.uniform(0.1, 1.0, pages)
    for page in range(pages):
        for k in range(200):  # α is about a fifth, no signals
            learn_crawl(table, page, 3.0, 0.0, k % 20 < 9)
    assert table.control[PLAIN_PRICE] == 0.0
    for _ in range(30):
        for page in rng.permutation(pages):
            weighed(table, int(page), 40.0, request_rate[page], 10.0, in_turn=True)
    change_rate = np.array([beliefs_of(table, page, 40.0)[0] for page in range(pages)])
    wanted = optimum(request_rate=request_rate, change_rate=change_rate, budget=0.1 * pages).price
    assert table.control[PLAIN_PRICE] == pytest.approx(wanted, rel=0.1)
    for _ in range(
        30
    ):  # as many again that nobody asks for: they want no crawls, and there are twice as many for the others
        for page in rng.permutation(pages):
            weighed(table, int(page), 40.0, request_rate[page], 10.0, in_turn=True)
            weighed(table, int(page), 40.0, 0.0, 10.0, in_turn=True)
    wanted = optimum(request_rate=request_rate, change_rate=change_rate, budget=0.2 * pages).price
    assert table.control[PLAIN_PRICE] == pytest.approx(wanted, rel=0.1)
    weighed(table, 0, 40.0, request_rate[0], 0.5 * wanted, in_turn=True)
    assert table.control[PLAIN_PRICE] <= 0.5 * wanted  # exploring never makes a crawl cheaper


def test_pages_that_are_as_loud_share_what_they_learn() -> None:
    rng = np.random.default_rng(7)
    pages = 200
    table = new_table(pages + 2, typical_rate=0.1, now=0.0, memory=np.inf)
    loud = np.arange(pages) % 2 == 0
    for _ in range(12):
        for page in range(pages):
            told = rng.poisson(6.0 if loud[page] else 1.0)
            changed = rng.random() < -np.expm1(-(0.05 * 4.0 + (0.05 if loud[page] else 1.5) * told))
            table.pages["heard"][page] += told
            learn_crawl(table, page, 4.0, float(told), bool(changed))
    table.pages["heard"][pages:] = 6 * 12, 12  # of these two nothing else is known yet
    beliefs_of(table, 0, 48.0)
    sweep(table, 12)
    weights = [posterior_of(table, page)[1] for page in (pages, pages + 1)]
    assert weights[0] < 0.2
    assert weights[1] > 0.8
    assert np.mean(table.pages["group"][:pages][loud] == 3) > 0.95
    assert np.mean(table.pages["group"][:pages][~loud] == 1) > 0.95


def test_a_page_takes_64_bytes() -> None:
    assert PAGE.itemsize <= 64


@pytest.mark.parametrize("shape", [0.06, 0.5, 1.0, 7.0, 40.0])
def test_the_shape_of_a_gamma_is_found_from_its_means(shape: float) -> None:
    assert gamma_shape(np.log(shape) - digamma(shape)) == pytest.approx(shape, rel=1e-3)
    assert digamma(1.0) == pytest.approx(-0.5772156649, abs=1e-9)


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
