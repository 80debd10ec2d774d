"""What a signal of each sender is worth, learned online, against the fit of the whole history."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Senders, fit_change
from afresh.estimate.senders import FIRST_SENDER, MOST_PAIRS, MOST_SENDERS, NOT_EARLY, OCTAVES
from afresh.lab.trials import DAY, ROUND, share_fresh, two_senders
from afresh.sim.history import Heard
from afresh.sim.learned import replay_learned


def crawls_of(
    rng: np.random.Generator, weights: list[float], count: int, silent: float = 0.3
) -> list[tuple[np.ndarray, bool]]:
    heard = rng.poisson(0.5, (count, len(weights)))
    stale = silent + heard @ np.array(weights)
    return list(zip(heard, (rng.random(count) < -np.expm1(-stale)).tolist(), strict=True))


def feed(senders: Senders, crawls: list[tuple[np.ndarray, bool]], host: str = "h", silent: float = 0.3) -> None:
    for heard, changed in crawls:
        kinds = {(number, NOT_EARLY): int(count) for number, count in enumerate(heard) if count}
        senders.learn(host, kinds, by_time=silent, weight=2.0, changed=changed)


def made(count: int = 2) -> Senders:
    senders = Senders()
    for number in range(count):
        senders.number(f"sender {number}")
    return senders


def test_weights_come_to_what_the_whole_history_says() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for count in (100, 1000, 10_000):
        crawls = crawls_of(rng, [2.0, 0.5, 0.0], count)
        senders = made(3)
        feed(senders, crawls)
        signals = np.array([heard for heard, _ in crawls], np.float64)
        changed = np.array([changed for _, changed in crawls])
        fit = fit_change(np.ones(count), signals, changed)
        found = [2.0 * senders.weight("elsewhere", number) for number in range(3)]
        errors.append(max(abs(mine - batch) for mine, batch in zip(found, fit.signal_weight, strict=True)))
    assert errors[-1] < 0.15
    assert errors[-1] < errors[0]


def test_a_host_of_its_own_kind_is_believed_once_it_has_shown_it() -> None:
    rng = np.random.default_rng(2)
    senders = made()
    feed(senders, crawls_of(rng, [2.0, 0.0], 2000), "many")
    assert senders.weight("new", 0) == pytest.approx(1.0, abs=0.05)
    assert senders.weight("new", 1) < 0.1
    feed(senders, crawls_of(rng, [0.0, 2.0], 300), "other way round")
    assert senders.weight("other way round", 1) > 3 * senders.weight("other way round", 0)
    assert senders.weight("many", 0) > 3 * senders.weight("many", 1)


def test_one_sender_alone_always_weighs_one() -> None:
    senders = made(1)
    feed(senders, crawls_of(np.random.default_rng(3), [0.4], 500), "a")
    assert senders.weight("b", 0) == 1.0


evidence = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(-1, OCTAVES - 1),
        st.integers(1, 10**9),
        st.sampled_from([0.0, 1e-9, 0.3, 50.0, 1e300, math.inf]),
        st.sampled_from([0.0, 1e-12, 0.7, 30.0, 1e9, math.inf]),
        st.booleans(),
    ),
    max_size=40,
)


@given(evidence)
def test_weights_are_numbers_whatever_comes_in_and_survive_a_restart(
    crawls: list[tuple[int, int, int, float, float, bool]],
) -> None:
    senders, again = made(4), made(4)
    for sender, early, count, by_time, weight, changed in crawls:
        for each in (senders, again):
            each.learn(f"host {sender}", {(sender, early): count}, by_time=by_time, weight=weight, changed=changed)
        again = Senders.from_text(again.to_text())
        found = senders.weight(f"host {sender}", sender, early)
        assert math.isfinite(found)
        assert found >= 0
        assert again.weight(f"host {sender}", sender, early) == found
    np.testing.assert_array_equal(again.credit, senders.credit)
    np.testing.assert_array_equal(again.due, senders.due)


def test_memory_is_bounded() -> None:
    senders = Senders()
    numbers = {senders.number(f"sender {i}") for i in range(10 * MOST_SENDERS)}
    assert max(numbers) == MOST_SENDERS - 1
    ours = {senders.number(name) for name in ("sitemap", "feed", "indexnow")}
    assert len(ours) == 3, "many names of others leave room for ours"
    assert not ours & numbers, "and nobody shares a number with them"
    for i in range(MOST_PAIRS + 50):
        senders.learn(f"host {i}", {(0, NOT_EARLY): 1}, by_time=0.1, weight=1.0, changed=True)
    assert senders.weight("host 0", 0) > 0
    assert len(json.loads(senders.to_text())["pairs"]) == MOST_PAIRS


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"senders": 3}', '{"senders": ["a"], "pairs": [["h", 0, 5]]}'])
def test_what_cannot_be_read_is_not_learned(text: str | None) -> None:
    assert not Senders.from_text(text).learned


@pytest.mark.parametrize("delay", [0.0, 0.3 * DAY])
def test_learning_the_delay_gains_where_signals_are_late_and_costs_nothing_where_not(delay: float) -> None:
    gains = []
    for seed in range(3):
        history, heard = two_senders(300, seed, delay=delay, useless=False)
        gains.append(share_fresh(history, heard) - share_fresh(history, Heard(heard.time, heard.page)))
    assert np.mean(gains) > (0.003 if delay else -0.003)


def test_the_learned_delay_is_about_the_true_one() -> None:
    for delay in (0.0, 0.06 * DAY, 0.3 * DAY):
        history, heard = two_senders(300, 5, delay=delay, useless=False)
        senders = Senders()
        replay_learned(history, budget=history.pages / ROUND, score_from=0.0, heard=heard, senders=senders)
        found = senders.delay_of("0")
        assert delay / 2 <= found <= 3 * delay + 600


def test_what_earlier_versions_kept_is_still_read() -> None:
    """Until senders got their name, a store kept them as `sources`."""
    senders = made()
    feed(senders, crawls_of(np.random.default_rng(4), [2.0, 0.0], 500))
    kept = json.loads(senders.to_text())
    kept["sources"] = kept.pop("senders")
    again = Senders.recalled({"sources": json.dumps(kept)}.get)
    assert again.to_text() == senders.to_text()
    assert (
        Senders.recalled({"sources": json.dumps(kept), "senders": made(3).to_text()}.get).summary()[2]["worth"] == 1.0
    )


def test_the_summary_says_what_each_sender_is_worth_the_best_first() -> None:
    senders = made()
    feed(senders, crawls_of(np.random.default_rng(4), [0.0, 2.0], 500))
    best, worst = senders.summary()
    assert (best["sender"], worst["sender"]) == ("sender 1", "sender 0")
    assert best["worth"] == pytest.approx(1.0, abs=0.05)
    assert float(worst["worth"]) < 0.2
    assert (best["hosts"], best["late"]) == (1, 0.0)
    assert float(best["evidence"]) > 0


def test_a_sender_of_which_nothing_is_known_is_not_the_one_that_others_are_compared_with() -> None:
    senders = made(3)
    feed(senders, crawls_of(np.random.default_rng(4), [0.5, 2.0], 300))
    assert senders.due[FIRST_SENDER + 2] == 0
    best, second, unknown = senders.summary()
    assert (best["sender"], second["sender"], unknown["sender"]) == ("sender 1", "sender 0", "sender 2")
    assert (best["worth_from"], best["worth_to"]) == (1.0, 1.0)
    assert 0 < float(second["worth_from"]) < float(second["worth_to"]) <= 1
