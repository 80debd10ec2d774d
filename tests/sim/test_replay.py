from dataclasses import replace

import numpy as np
import pytest

from afresh.schedule.peer_rules import DAY, RULES
from afresh.sim.field import close, new_field, visit
from afresh.sim.history import History, draw_history, draw_signals, make_history
from afresh.sim.learned import Known, replay_learned
from afresh.sim.replay import POLICIES, replay, run_policy, scored

SPAN = 720 * DAY


def collection(pages: int = 400, seed: int = 1, clumping: float = 0.0) -> History:
    """Like real pages: change rates over two orders of magnitude, and few that are asked for a lot."""
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(-np.log(40 * DAY), 1.2, pages))
    weight = rng.permutation(1.0 / np.arange(1, pages + 1))
    return draw_history(rng, rates, weight=weight, start=0.0, end=SPAN, clumping=clumping)


def score(history: History, policy: str, **options: object) -> float:
    return replay(history, policy, budget=history.pages / (20 * DAY), score_from=SPAN / 4, **options).weighted  # type: ignore[arg-type]


@pytest.mark.parametrize("clumping", [0.0, 0.3])
def test_what_is_learned_beats_every_peer_and_comes_close_to_knowing(clumping: float) -> None:
    history = collection(clumping=clumping)
    ours, oracle = score(history, "afresh"), score(history, "oracle")
    assert ours > oracle - 0.02
    assert ours > score(history, "past") - 0.005
    for peer in (*RULES, "refresh-probabilities"):
        assert ours > score(history, peer) + 0.01, peer


def test_signals_help_who_learns_what_they_are_worth() -> None:
    history = collection()
    heard = draw_signals(np.random.default_rng(2), history, recall=0.7, precision=0.7)
    assert score(history, "afresh", heard=heard) > score(history, "afresh") + 0.02
    useless = draw_signals(np.random.default_rng(2), history, recall=0.02, precision=0.02)
    assert score(history, "afresh", heard=useless) > score(history, "afresh") - 0.02
    assert score(history, "afresh", heard=useless) > score(history, "greedy-cis", heard=useless)


def test_knowing_is_an_upper_bound_for_constant_rates() -> None:
    history = collection()
    assert score(history, "clairvoyant") == pytest.approx(score(history, "oracle"), abs=0.01)
    assert score(history, "clairvoyant") > score(history, "uniform")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_spends_the_same_budget(policy: str) -> None:
    history = collection(60)
    line = replay(history, policy, budget=60 / (20 * DAY), score_from=0.0)
    assert line.crawls == pytest.approx(60 * 36, abs=2)
    assert 0 < line.weighted < 1
    assert 0 < line.finds < 1
    assert line.stale_age > 0


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(ValueError, match="telepathy"):
        replay(collection(10), "telepathy", budget=1 / DAY)


def test_made_up_signals_have_their_recall_and_precision() -> None:
    history = collection(300)
    heard = draw_signals(np.random.default_rng(3), history, recall=0.6, precision=0.75)
    assert len(heard.time) == pytest.approx(0.8 * len(history.times), rel=0.05)
    assert (np.diff(heard.time) >= 0).all()
    true = np.isin(heard.time, history.times).sum()
    assert true / len(heard.time) == pytest.approx(0.75, abs=0.02)
    late = draw_signals(np.random.default_rng(3), history, recall=1.0, precision=1.0, delay=DAY)
    assert late.time.mean() - history.times.mean() == pytest.approx(DAY, rel=0.05)


def test_drawn_histories_keep_their_rates_with_and_without_bursts() -> None:
    for clumping in (0.0, 0.5):
        rng = np.random.default_rng(4)
        history = draw_history(rng, np.full(300, 0.1), weight=np.ones(300), start=0.0, end=1000.0, clumping=clumping)
        assert history.rates().mean() == pytest.approx(0.1, rel=0.03)
        gaps = np.concatenate([np.diff(part) for part in np.split(history.times, history.first[1:-1])])
        short = float((gaps < 1.0).mean())
        assert short == pytest.approx(1 - np.exp(-0.1), abs=0.01) if clumping == 0 else short > 0.3


def test_what_is_stated_is_near_what_is_true() -> None:
    for clumping in (0.0, 0.3):
        line = replay(collection(clumping=clumping), "afresh", budget=400 / (20 * DAY), score_from=SPAN / 4)
        assert line.expected == pytest.approx(line.weighted, abs=0.02)
    assert np.isnan(replay(collection(40), "uniform", budget=1 / DAY).expected)


def test_pages_that_differ_at_every_fetch_do_not_eat_the_budget() -> None:
    rng = np.random.default_rng(1)
    rates = np.exp(rng.normal(-np.log(40 * DAY), 1.2, 400))
    rates[::20] = 24 / DAY
    weight = rng.permutation(1.0 / np.arange(1, 401))
    history = draw_history(rng, rates, weight=weight, start=0.0, end=SPAN)

    def run(**known: Known) -> tuple[float, float]:
        """(served fresh, share of the visits that went to them)."""
        field, _ = replay_learned(history, budget=400 / (20 * DAY), score_from=SPAN / 4, **known)  # type: ignore[arg-type]
        spent = field.visits[::20].sum() / field.visits.sum()
        close(field)
        return scored(history, "afresh", field, 0.0).weighted, spent

    # The best page of all is among them: who knows all rates visits it often, too.
    fresh, spent = run()
    best, well_spent = run(known=(rates, 0.0, 0.0))
    assert fresh > 0.97 * best
    assert spent < well_spent + 0.12


@pytest.mark.parametrize("policy", ["afresh", "oracle", "clairvoyant", "uniform", "yacy", "refresh-probabilities"])
def test_a_page_counts_until_it_is_gone_and_is_then_left_alone(policy: str) -> None:
    alive = collection(60)
    ends = np.full(60, np.inf)
    ends[::2] = SPAN / 2
    dying = replace(alive, ends=ends)
    line = replay(dying, policy, budget=60 / (20 * DAY), score_from=SPAN / 4)
    whole = replay(alive, policy, budget=60 / (20 * DAY), score_from=SPAN / 4)
    assert 0 < line.weighted < 1
    # Nobody has to look after the dead: the living get their share of the budget.
    assert line.weighted > whole.weighted + 0.01
    field = replay_learned(dying, budget=60 / (20 * DAY), score_from=0.0)[0]
    late = field.current[::2] > SPAN / 2
    assert (field.current[::2][late] < field.current[1::2].max()).all()
    assert field.visits[::2].sum() < 0.8 * field.visits[1::2].sum()


@pytest.mark.parametrize("policy", [name for name in POLICIES if not name.startswith("greedy")])
def test_a_page_is_left_alone_until_it_is_born_and_counts_from_then_on(policy: str) -> None:
    all_there = collection(60)
    births = np.where(np.arange(60) % 3 == 0, SPAN * (0.3 + np.arange(60) / 100), -np.inf)
    late = all_there.times > births[np.repeat(np.arange(60), np.diff(all_there.first))]
    page = np.repeat(np.arange(60), np.diff(all_there.first))[late]
    growing = make_history(
        page, all_there.times[late], weight=all_there.weight, start=0.0, end=SPAN, births=births
    )  # fmt: skip
    field, _ = run_policy(growing, policy, budget=60 / (20 * DAY), score_from=0.0)
    assert field.visits[::3].any()
    seen = field.current >= field.births
    assert seen.all()
    close(field)
    # A copy counts for all of the page's life, and for nothing before: visits to the unborn would show here.
    assert field.fresh_time + field.stale_time == pytest.approx(growing.lived(0.0, SPAN))
    line = replay(growing, policy, budget=60 / (20 * DAY), score_from=SPAN / 4)
    assert line.crawls == pytest.approx(60 * 27, abs=3)
    if policy not in ("afresh", "uniform"):
        return
    # Until the others are born there is more for those that are there.
    assert line.weighted > replay(all_there, policy, budget=60 / (20 * DAY), score_from=SPAN / 4).weighted - 0.005
    if policy == "afresh":
        assert line.expected == pytest.approx(line.weighted, abs=0.04)


def test_signals_are_of_pages_that_are_there() -> None:
    births = np.where(np.arange(60) % 2 == 0, SPAN / 2, -np.inf)
    whole = collection(60)
    page = np.repeat(np.arange(60), np.diff(whole.first))
    history = make_history(page, whole.times, weight=whole.weight, start=0.0, end=SPAN, births=births)
    heard = draw_signals(np.random.default_rng(3), history, recall=0.6, precision=0.2)
    assert (heard.time >= np.maximum(births[heard.page], 0.0)).all()
    assert len(heard.time) == pytest.approx(3 * len(history.times), rel=0.1)


def test_who_knows_all_is_not_below_uniform_where_most_pages_have_fallen_silent() -> None:
    # All change once before the scored time; then nine of ten never again.
    rng = np.random.default_rng(5)
    pages, often = np.arange(200), np.repeat(np.arange(20), 30)
    page = np.concatenate([pages, often])
    time = np.concatenate([SPAN * rng.uniform(0.1, 0.24, 200), SPAN * rng.random(len(often))])
    history = make_history(page, time, weight=np.ones(200), start=0.0, end=SPAN)
    for policy in ("oracle", "clairvoyant"):
        assert score(history, policy) > score(history, "uniform"), policy


def test_knowing_the_weights_alone_is_worth_something() -> None:
    history = collection()
    assert score(history, "afresh") > score(history, "weights-only") > score(history, "uniform") + 0.02
    even = replace(history, weight=np.ones(history.pages))
    assert score(even, "weights-only") == pytest.approx(score(even, "uniform"), abs=0.01)


def test_what_was_stated_is_weighed_by_the_pages_that_were_there() -> None:
    # Most pages change all the time and go half-way; the few that stay hardly ever change.
    rates = np.where(np.arange(400) < 360, 1 / (10 * DAY), 1e-9 / DAY)
    history = draw_history(np.random.default_rng(2), rates, weight=np.ones(400), start=0.0, end=SPAN)
    history = replace(history, ends=np.where(np.arange(400) < 360, SPAN / 2, np.inf))
    line = replay(history, "afresh", budget=400 / (20 * DAY), score_from=SPAN / 4)
    assert line.expected == pytest.approx(line.weighted, abs=0.03)


def test_fresh_time_of_a_page_that_goes_is_counted_to_its_end() -> None:
    history = replace(collection(1), times=np.array([30.0]), first=np.array([0, 1]), ends=np.array([80.0]), end=200.0)
    field = new_field(history, 10.0)
    visit(field, 0, 50.0)
    close(field)
    assert field.fresh_time[0] == pytest.approx((30 - 10) + (80 - 50))
    assert field.stale_time[0] == pytest.approx(20)
