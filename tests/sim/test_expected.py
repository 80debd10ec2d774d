import numpy as np
import pytest

from afresh.sim.expected import freshness_of_picks
from afresh.sim.field import close, new_field, visit
from afresh.sim.history import Heard, make_history
from afresh.sim.learned import replay_learned
from afresh.sim.world import World

WORLD = World(
    request_rate=np.array([1.0, 3.0, 0.5, 2.0]),
    change_rate=np.array([0.4, 1.5, 0.2, 0.8]),
    recall=np.array([0.5, 0.9, 0.0, 1.0]),
    false_rate=np.array([0.3, 0.2, 0.0, 0.0]),
)
STEP, END, EDGES = 0.5, 12.0, (4.0, 5.25, 12.0)


def happened(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Heard]:
    """(pages and moments of all changes, signals)."""
    page, moment, told = [], [], []
    for which in range(4):
        change_rate, recall, false_rate = (
            column[which] for column in (WORLD.change_rate, WORLD.recall, WORLD.false_rate)
        )
        for rate, changes, signals in (
            (recall * change_rate, True, True),
            ((1 - recall) * change_rate, True, False),
            (false_rate, False, True),
        ):
            count = rng.poisson(rate * END)
            page += [which] * count
            moment += list(rng.uniform(0.0, END, count))
            told += [(changes, signals)] * count
    kinds = np.array(told, bool).reshape(-1, 2)
    pages, moments = np.array(page, np.int64), np.array(moment)
    order = np.argsort(moments[kinds[:, 1]])
    heard = Heard(moments[kinds[:, 1]][order], pages[kinds[:, 1]][order])
    return pages[kinds[:, 0]], moments[kinds[:, 0]], heard


def test_on_average_it_is_what_happens() -> None:
    rng = np.random.default_rng(3)
    picks = np.array([0, 1, 1, -1, 3, 2, 0, 0, 3, 3, 1, -1, -1, 2, 0, 1, 3, 3, 1, 0, 2, 1, 1, 0])
    expected, found = np.zeros(3), np.zeros(3)
    runs = 800
    for _ in range(runs):
        page, moment, heard = happened(rng)
        expected += freshness_of_picks(WORLD, heard, picks, step=STEP, edges=EDGES) / runs
        begin = 0.0
        for window, end in enumerate(EDGES):
            field = new_field(make_history(page, moment, weight=WORLD.request_rate, start=0.0, end=end), begin)
            for tick, which in enumerate(picks):
                if which >= 0 and (tick + 1) * STEP <= end:
                    visit(field, int(which), (tick + 1) * STEP)
            close(field)
            fresh = WORLD.request_rate @ field.fresh_time / WORLD.request_rate.sum()
            found[window] += fresh / (end - begin) / runs
            begin = end
    np.testing.assert_allclose(expected, found, atol=0.015)


def test_windows_add_up() -> None:
    _, _, heard = happened(np.random.default_rng(4))
    picks = np.array([0, 1, -1, 2, 3] * 5)
    parts = freshness_of_picks(WORLD, heard, picks, step=STEP, edges=EDGES)
    whole = freshness_of_picks(WORLD, heard, picks, step=STEP, edges=EDGES[-1:])
    assert parts @ np.diff(EDGES, prepend=0.0) / END == pytest.approx(whole[0])


def test_without_crawls_and_signals_a_copy_is_fresh_until_its_first_change() -> None:
    quiet = World(np.ones(1), np.array([0.4]), np.zeros(1), np.zeros(1))
    nothing = Heard(np.empty(0), np.empty(0, np.int64))
    share = freshness_of_picks(quiet, nothing, np.full(5, -1), step=1.0, edges=(4.0,))
    assert share[0] == pytest.approx(-np.expm1(-1.6) / 1.6)


def test_a_run_leaves_the_page_of_every_tick() -> None:
    page, moment, heard = happened(np.random.default_rng(5))
    history = make_history(page, moment, weight=WORLD.request_rate, start=0.0, end=END)
    for room in (24, 10):
        picks = np.full(room, -1)
        field, _ = replay_learned(history, budget=1 / STEP, score_from=0.0, heard=heard, picks=picks)
        last = {int(which): (tick + 1) * STEP for tick, which in enumerate(picks) if which >= 0}
        assert len(last) > 1
        if room == 24:
            assert list(field.visits) == list(np.bincount(picks[picks >= 0], minlength=4))
            for which, then in last.items():
                assert field.current[which] == then
    assert replay_learned(history, budget=1 / STEP, score_from=0.0, heard=heard)[0].visits.sum() == field.visits.sum()
