"""Who comes next: the compiled models against plain ones, bounded memory, and what is learned from whom."""

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.estimate.paths import Paths, UserModel, counts, mixing
from afresh.estimate.paths.layout import ABOUT, CHOSEN, MODELS, MOVES, NETWORK, PAGES, TRAIL
from afresh.estimate.paths.user import PLACE_SIZE
from afresh.estimate.paths.user_model import Evidence, Place, Senses

SITE = "http://e.org"
steps = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7), st.floats(0.0, 900.0)), max_size=60)
menus = st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), min_size=1, max_size=5), max_size=6)


def page(number: int) -> str:
    return f"{SITE}/{number}"


def walked(moves: list[tuple[int, int, float]], links: dict[int, list[int]]) -> tuple[Paths, dict[int, list[int]]]:
    """Paths after these requests; and what every reader asked for."""
    paths, now, trails = Paths(1 << 20), 0.0, defaultdict[int, list[int]](list)
    for number, targets in links.items():
        paths.links(page(number), [page(each) for each in targets], 0.0)
    for reader, number, pause in moves:
        now += pause
        if reader in last and now - last[reader] > paths.window:
            trails[reader] = []
        last[reader] = now
        paths.request(str(reader), page(number), now)
        trails[reader].append(number)
    last.clear()
    return paths, trails


last: dict[int, float] = {}


def number_of(paths: Paths, name: str) -> int:
    return paths._numbers[name]


def each_foretold(paths: Paths, reader: int) -> dict[str, np.ndarray]:
    """What each model takes each page to be, for a reader."""
    tables = paths.tables
    found = {}
    for name, number in paths._numbers.items():
        each, place, ways = np.empty(len(MODELS)), np.empty(PLACE_SIZE), np.empty(ABOUT * len(MOVES))
        mixing.foretold(tables, tables.trails[reader], tables.abouts[reader], number, each, place, ways)
        found[name] = each
    return found


def slot(paths: Paths, reader: int) -> int:
    return paths._readers[f"{SITE} {reader}"][0]


@settings(max_examples=60, deadline=None)
@given(steps, menus)
def test_transitions_are_counted_as_a_dictionary_counts_them(moves: list, links: dict) -> None:
    paths, tables, plain = Paths(1 << 20), None, defaultdict[tuple, Counter](Counter)
    now, seen = 0.0, dict[int, tuple[float, list[str]]]()
    for reader, number, pause in moves:
        now += pause
        before, trail = seen.get(reader, (now, []))
        trail = [] if now - before > paths.window else trail
        for depth in (1, 2):
            if len(trail) >= depth:
                plain[tuple(trail[-depth:])][page(number)] += 1
        seen[reader] = now, [*trail, page(number)]
        paths.request(str(reader), page(number), now)
    tables, found = paths.tables, {}
    for context in plain:
        numbers = [number_of(paths, each) for each in context]
        at = counts.found(
            tables.contexts, counts.page_key(*numbers) if len(numbers) == 1 else counts.pair_key(*numbers)
        )
        cell, found[context] = tables.contexts[at]["head"], Counter[str]()
        while cell >= 0:
            found[context][paths._names[tables.cells[cell]["page"]]] = tables.cells[cell]["count"]
            cell = tables.cells[cell]["next"]
        assert tables.contexts[at]["total"] == sum(plain[context].values())
    assert found == plain


@settings(max_examples=60, deadline=None)
@given(steps.filter(bool), menus)
def test_every_model_is_a_distribution_and_the_forecast_is_their_mixture(moves: list, links: dict) -> None:
    paths, _ = walked(moves, links)
    reader = slot(paths, moves[-1][0])
    each = each_foretold(paths, reader)
    assert sum(each.values()) == pytest.approx(np.ones(len(MODELS)))
    tables, chosen, probable = paths.tables, np.empty(8, np.int32), np.empty(8)
    place = mixing.foretold(
        tables, tables.trails[reader], tables.abouts[reader], 0, np.empty(5), np.empty(PLACE_SIZE), np.empty(12)
    )
    weights = tables.sites[tables.pages[0]["site"], place : place + len(MODELS)]
    for alone in (-1, *range(len(MODELS))):
        shares = weights / weights.sum() if alone < 0 else np.eye(len(MODELS))[alone]
        number = mixing.forecast(tables, reader, alone, chosen, probable)
        said = {paths._names[at]: p for at, p in zip(chosen[:number], probable[:number], strict=True)}
        assert all(said[name] == pytest.approx(float(shares @ each[name])) for name in said)
        assert list(said.values()) == sorted(said.values(), reverse=True)
        if alone != MODELS.index("uniform") and len(said) < 8:
            left_out = [float(shares @ each[name]) for name in each if name not in said]
            assert all(p <= min(said.values()) + 1e-12 for p in left_out if said)
    assert not tables.scores.any()


@settings(max_examples=40, deadline=None)
@given(steps.filter(bool), menus)
def test_the_compiled_network_is_the_exact_one(moves: list, links: dict) -> None:
    paths, trails = walked(moves, links)
    reader = slot(paths, moves[-1][0])
    tables = paths.tables
    row, trail = tables.sites[tables.pages[0]["site"]], trails[moves[-1][0]][::-1][:TRAIL]
    here, each = trail[0], each_foretold(paths, reader)
    place = Place(
        links=[page(target) for target in dict.fromkeys(links.get(here, []))],
        before=page(trail[1]) if len(trail) > 1 else None,
        seen=[page(each) for each in trail[2:]],
        usual={
            name: float(foretold[0] * 0 + mixing.often(tables, number_of(paths, name)))
            for name, foretold in each.items()
        },
        fame={name: int(tables.pages[number]["fame"]) for name, number in paths._numbers.items()},
    )
    exact, _ = UserModel.of(row).next(place, tables.abouts[reader].tolist())
    assert {name: foretold[NETWORK] for name, foretold in each.items()} == pytest.approx(exact)


def test_the_network_agrees_with_going_through_every_case() -> None:
    place = Place(
        links=["a", "b", "c"],
        before="b",
        seen=["x", "a"],
        usual={"a": 0.25, "b": 0.25, "c": 0.25, "x": 0.25},
        fame={"a": 3, "b": 1},
        likeness={"c": 1.0},
    )
    rng = np.random.default_rng(3)
    model = UserModel(
        next_about=rng.random((3, 3)),
        dwells=rng.random((3, 5)),
        moves=rng.random((3, 4)),
        attraction=rng.random((3, 24)),
    )
    evidence, believed = Evidence(dwell=20.0, scrolled=0.5, mouse="c", gaze="b"), [0.2, 0.5, 0.3]
    likely = Counter[str]()
    of_about = np.zeros(3)
    weights = np.array([[model.attraction[now, place.fame.get(link, 0)] for link in "abc"] for now in range(3)])
    weights[2, 2] *= 3.0  # on a topic, and the text of c is all alike
    senses = Senses()
    for was, now, way, target in product(range(3), range(3), range(4), "abcx"):
        p = believed[was] * model.next_about[was, now] * model.dwells[now, 2] * model.moves[now, way]
        if way == 0:
            p *= target == "b"
        elif way == 1:
            p *= {"x": 0.5, "a": 0.5}.get(target, 0.0)
        elif way == 2:
            if target == "x":
                continue
            at = "abc".index(target)
            p *= weights[now, at] / weights[now].sum()
            if at:
                p *= senses.shown / (1 - at / 3) if at / 3 <= 0.5 else (1 - senses.shown) / (at / 3)
            p *= 3 * (senses.mouse if target == "c" else (1 - senses.mouse) / 2)
            p *= 3 * (senses.gaze if target == "b" else (1 - senses.gaze) / 2)
        else:
            p *= 0.25
        likely[target] += p
        of_about[now] += p
    total = sum(likely.values())
    pages, about = model.next(place, believed, evidence)
    assert pages == pytest.approx({target: p / total for target, p in likely.items()})
    assert about == pytest.approx(of_about / total)
    unseen = model.next(place, believed, Evidence())[0]
    assert unseen == pytest.approx(model.next(place, believed)[0])  # a node that is not observed changes nothing


def test_what_readers_are_about_is_learned() -> None:
    # Half of the readers go through the results of a search and come back after seconds; the others read on.
    paths, rng, now = Paths(1 << 20), np.random.default_rng(5), 0.0
    for number in range(200):
        paths.links(page(number), [page((number + each) % 200) for each in range(1, 9)], 0.0)
    for session in range(600):
        at, now = int(rng.integers(200)), now + 4000.0
        hops = session % 2 == 0
        paths.request(str(session), page(at), now)
        for _ in range(3):
            now += 3.0 if hops else 200.0
            target = (at + int(rng.integers(1, 9))) % 200
            paths.request(str(session), page(target), now)
            if hops:
                now += 3.0
                paths.request(str(session), page(at), now)
            else:
                at = target
    model = UserModel.of(paths.tables.sites[paths._sites[SITE]])
    place = Place(links=[page(1), page(2)], before=page(9), usual={page(50): 1.0})
    quick = model.next(place, [1 / 3] * 3, Evidence(dwell=3.0))[0]
    slow = model.next(place, [1 / 3] * 3, Evidence(dwell=200.0))[0]
    assert quick[page(9)] > 0.4 > 0.1 > slow[page(9)]
    weights, losses = paths.weights(SITE), paths.losses(SITE)
    assert max(weights, key=weights.__getitem__) == "network"
    assert losses["mixture"] < losses["network"] + 0.1 < min(losses["markov-1"], losses["uniform"])


def test_a_site_where_the_last_two_pages_matter_trusts_the_second_order() -> None:
    paths, rng = Paths(1 << 20), np.random.default_rng(2)
    for session in range(400):
        first = int(rng.integers(10))
        for at, number in enumerate((first, 50, 60 + first)):  # where it goes on from 50 depends on where it came from
            paths.request(str(session), page(number), 10.0 * session + at)
    weights = paths.weights(SITE)
    assert max(weights, key=weights.__getitem__) == "markov-2"
    paths.request("x", page(3), 1e5)
    assert paths.request("x", page(50), 1e5 + 1, most=1)[0][0] == page(63)
    assert paths.weights("http://other.example") != weights  # each site for itself


def test_memory_is_bounded_and_what_is_kept_stays_consistent() -> None:
    paths, rng = Paths(1 << 20), np.random.default_rng(4)
    before = paths.nbytes
    for request in range(12_000):
        reader, number = int(rng.integers(500)), int(rng.zipf(1.2)) % 20_000
        url = f"http://s{number % 300}.example/{number}"
        if request % 10 == 0:
            paths.links(url, [f"http://s{number % 300}.example/{number + 300 * each}" for each in range(5)], request)
        said = paths.request(str(reader), url, float(request), most=8)
        assert all(0.0 < p <= 1.0 + 1e-9 for _, p in said)
    assert paths.nbytes == before
    assert paths.pages <= paths.room.pages
    assert len(paths._readers) <= paths.room.readers
    tables, used = paths.tables, Counter[int]()
    for context in tables.contexts[tables.contexts["key"] != 0]:
        cell = context["head"]
        while cell >= 0:
            used[int(cell)] += 1
            assert tables.pages[tables.cells[cell]["page"]]["site"] >= 0
            cell = tables.cells[cell]["next"]
    cell = int(tables.state[counts.FREE_CELL])
    while cell >= 0:
        used[cell] += 1
        cell = int(tables.cells[cell]["next"])
    assert set(used.values()) == {1}
    assert len(used) == paths.room.cells
    live = np.bincount(tables.pages["site"][tables.pages["site"] >= 0], minlength=256)
    assert (tables.sites[:, PAGES] == live).all()


def test_long_names_leave_less_room() -> None:
    paths = Paths(1 << 20)
    for number in range(3000):
        paths.request("x", f"{SITE}/{number}/{'long' * 500}", float(number))
    assert 0 < paths.pages < 200
    assert sum(map(len, paths._names)) <= 150 * paths.room.pages


def test_what_is_not_done_any_more_fades() -> None:
    paths = Paths(1 << 20, half_life=1e6)
    for reader in range(30):
        for at, number in enumerate((1, 2)):
            paths.request(f"old {reader}", page(number), reader + at)
    for reader in range(8):
        for at, number in enumerate((1, 3)):
            paths.request(f"new {reader}", page(number), 1e5 + reader + at)
    paths.request("x", page(9), 1e5 + 50)
    assert paths.request("x", page(1), 1e5 + 51, most=1)[0][0] == page(2)
    for _ in range(3):
        paths.fade(2e5)
    for reader in range(8):
        for at, number in enumerate((1, 3)):
            paths.request(f"newer {reader}", page(number), 3e5 + reader + at)
    paths.request("y", page(9), 3e5 + 50)
    assert paths.request("y", page(1), 3e5 + 51, most=1)[0][0] == page(3)


def test_a_session_ends_and_links_elsewhere_are_left_out() -> None:
    paths = Paths(1 << 20, window=100.0)
    paths.links(page(1), [page(2), "http://elsewhere.example/", page(2)], 0.0)
    assert paths.knows_links(page(1))
    assert not paths.knows_links(page(2))
    assert [name for name, _ in paths.request("x", page(1), 0.0, most=5)] == [page(2)]
    paths.request("x", page(5), 500.0)
    paths.request("y", page(1), 501.0)
    said = dict(paths.request("z", page(1), 501.0, most=5))
    assert page(2) in said
    row = paths.tables.sites[paths._sites[SITE]]
    assert row[CHOSEN : CHOSEN + 24].sum() == pytest.approx(24.0)  # nobody has gone by a link in one session
    with pytest.raises(ConfigError, match="too few"):
        Paths(1000)
