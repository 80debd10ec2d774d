"""The order of downloads: each theorem against every possible order, and what changes while it runs."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.value.curves import Curve, Linear, Pieces, Sliced, enveloped
from afresh.value.downloads import Downloads, Piece
from afresh.value.idle import Idle, best

chances = st.floats(0.01, 1.0)
sizes = st.integers(1, 4)


def order_of(documents: dict[str, tuple[float, Curve]], **options: float) -> list[Piece]:
    downloads = Downloads(**options)
    for name, (probability, curve) in documents.items():
        downloads.add(name, probability, curve)
    return list(downloads)


def gained_by(pieces: list[Piece], documents: dict[str, tuple[float, Curve]], horizon: float) -> float:
    """What is there after so many bytes, the last piece cut off where time ended."""
    total = 0.0
    for piece in pieces:
        if horizon <= 0:
            break
        probability, curve = documents[piece.name]
        end = piece.start + min(piece.size, horizon)
        total += probability * (curve.value(end) - curve.value(piece.start))
        horizon -= piece.size
    return total


def most_at(documents: dict[str, tuple[float, Curve]], horizon: int) -> float:
    """The most that any way to spend so many bytes gains."""
    every = product(*(range(int(curve.size) + 1) for _, curve in documents.values()))
    return max(
        sum(p * curve.value(done) for (p, curve), done in zip(documents.values(), spent, strict=True))
        for spent in every
        if sum(spent) <= horizon
    )


def named(curves: list[tuple[float, Curve]]) -> dict[str, tuple[float, Curve]]:
    return {f"d{number}": each for number, each in enumerate(curves)}


def check_best_at_every_moment(documents: dict[str, tuple[float, Curve]], slack: float = 1e-9) -> None:
    pieces = order_of(documents)
    assert sum(piece.size for piece in pieces) == pytest.approx(sum(curve.size for _, curve in documents.values()))
    for horizon in range(int(sum(curve.size for _, curve in documents.values())) + 1):
        assert gained_by(pieces, documents, horizon) >= most_at(documents, horizon) - slack


@given(st.lists(st.tuples(chances, sizes), min_size=1, max_size=4))
def test_whole_documents_go_by_probability_whatever_their_length(drawn: list[tuple[float, int]]) -> None:
    # Theorem 1: what counts is the download time that is left, so every byte of every document counts the same.
    documents = named([(p, Linear(size, worth=size)) for p, size in drawn])
    check_best_at_every_moment(documents)
    pieces = order_of(documents)
    assert [piece.start for piece in pieces] == [0.0] * len(drawn)  # each to completion
    likely = [documents[piece.name][0] for piece in pieces]
    assert likely == sorted(likely, reverse=True)


@given(st.lists(st.tuples(chances, sizes, st.floats(0.1, 5.0)), min_size=1, max_size=4))
def test_constant_flux(drawn: list[tuple[float, int, float]]) -> None:
    check_best_at_every_moment(named([(p, Linear(size, worth)) for p, size, worth in drawn]))  # Theorem 2


@given(
    st.lists(st.tuples(chances, st.lists(st.tuples(sizes, chances), min_size=1, max_size=3)), min_size=1, max_size=3)
)
def test_segments_of_decreasing_flux(drawn: list[tuple[float, list[tuple[int, float]]]]) -> None:
    # Theorem 3: `worth` is of a byte here, so that flux can be made to fall.
    falling = [
        (p, Pieces([(size, size * flux) for size, flux in zip(*_sorted_fluxes(parts), strict=True)]))
        for p, parts in drawn
    ]
    check_best_at_every_moment(named(falling))


def _sorted_fluxes(parts: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [size for size, _ in parts], sorted((flux for _, flux in parts), reverse=True)


@settings(max_examples=50)
@given(st.lists(st.tuples(chances, sizes, st.floats(0.2, 1.0)), min_size=1, max_size=3), st.data())
def test_smooth_concave_value_and_mixtures(drawn: list[tuple[float, int, float]], data: st.DataObject) -> None:
    # Theorem 4, and the mixtures: quanta of 1/8 byte lose at most what one of them is worth in each document.
    curves: list[tuple[float, Curve]] = []
    slack = 1e-9
    for p, size, power in drawn:
        kind = data.draw(st.sampled_from(["smooth", "linear", "pieces"]))
        if kind == "smooth":
            curves.append((p, Sliced(size, lambda done, size=size, power=power: (done / size) ** power, 0.125)))
            slack = max(slack, p * (0.125 / size) ** power)
        else:
            curves.append((p, Linear(size) if kind == "linear" else Pieces([(1, 0.8), (size, 0.2)])))
    check_best_at_every_moment(named(curves), slack)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(chances, st.lists(st.floats(0, 1), min_size=2, max_size=4)), min_size=2, max_size=3),
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
)
def test_no_order_beats_the_best_and_for_concave_value_the_rule_is_the_best(
    drawn: list[tuple[float, list[float]]], lasting: list[int]
) -> None:
    idle = Idle(lasting)
    rough = named([(p, Pieces([(1, worth) for worth in worths])) for p, worths in drawn])
    smooth = named([(p, enveloped(curve, 1.0)) for p, curve in rough.values()])
    gained, order = best(rough, idle, rate=1.0, slice_bytes=1.0)
    assert idle.worth(order_of(rough), 1.0) <= gained + 1e-9
    assert sorted(order) == sorted(name for name, (_, curve) in rough.items() for _ in range(int(curve.size)))
    assert idle.worth(order_of(smooth), 1.0) == pytest.approx(best(smooth, idle, rate=1.0, slice_bytes=1.0)[0])


def test_a_steep_end_is_seen_from_its_beginning_by_the_envelope_alone() -> None:
    late = Sliced(4.0, lambda done: 1.0 if done >= 4 else 0.0, 1.0)
    documents = {"late": (1.0, late), "flat": (0.5, Linear(4.0))}
    idle = Idle([4.0])
    slices = idle.worth(order_of(documents), 1.0)
    hull = idle.worth(order_of({"late": (1.0, enveloped(late, 1.0)), "flat": (0.5, Linear(4.0))}), 1.0)
    assert slices == 0.5
    assert hull == best(documents, idle, rate=1.0, slice_bytes=1.0)[0] == 1.0


def test_documents_come_and_go_while_it_runs() -> None:
    downloads = Downloads()
    downloads.add("a", 0.5, Pieces([(10, 0.6), (10, 0.4)]))
    downloads.add("b", 0.4, Linear(20.0))
    assert downloads.next() == Piece("a", 0.0, 10.0, 0.3)
    downloads.add("c", 0.9, Linear(20.0), done=5.0)
    assert downloads.next() == Piece("c", 5.0, 20.0, pytest.approx(0.675))
    assert downloads.remove("a") == 10.0
    assert downloads.held == 20.0
    downloads.weigh("b", 0.0)
    assert downloads.next() is None  # nobody wants it
    downloads.demand("b")
    assert downloads.next() == Piece("b", 0.0, 20.0, 0.0)
    assert downloads.next() is None
    with pytest.raises(ConfigError, match="is there already"):
        downloads.add("b", 0.1, Linear(1.0))
    with pytest.raises(ConfigError, match="between 0 and 1"):
        downloads.weigh("b", 1.5)


def test_a_request_preempts_and_completes_what_is_partly_there() -> None:
    downloads = Downloads(most_each=10.0, cost_per_kb=1.0)
    downloads.add("a", 0.5, Pieces([(10, 0.9), (10, 0.1)]))
    downloads.add("b", 0.9, Linear(10.0))
    assert [piece.name for piece in (downloads.next(), downloads.next()) if piece] == ["b", "a"]
    assert downloads.next() is None  # ten bytes of each, no more
    downloads.arrived("a", 4.0)  # it was cut off
    downloads.demand("a")
    assert [(piece.start, piece.end) for piece in downloads] == [(4.0, 10.0), (10.0, 20.0)]


def test_it_ends_where_a_kilobyte_costs_more_than_it_gains_and_the_cost_may_change() -> None:
    downloads = Downloads(cost_per_kb=0.3)
    downloads.add("a", 0.5, Linear(1000.0))
    downloads.add("b", 0.2, Linear(1000.0))
    assert [piece.name for piece in downloads] == ["a"]
    downloads.cost_per_kb = 0.1
    assert [piece.name for piece in downloads] == ["b"]


def test_changing_costs() -> None:
    def names(**options: float) -> list[str]:
        downloads = Downloads(**options)
        for name, host in (("a", "one"), ("b", "one"), ("c", "two")):
            quanta = Sliced(100.0, lambda done: (done / 100) ** 0.5, 10.0)
            downloads.add(name, {"a": 0.5, "b": 0.45, "c": 0.48}[name], quanta, host=host)
        return [piece.name for piece in downloads]

    def changes(order: list[str]) -> int:
        return sum(one != other for one, other in pairwise(order))

    free, dear, very_dear = names(), names(switch_bytes=20.0), names(switch_bytes=1e6)
    assert changes(free) > changes(dear) > changes(very_dear) == 2
    near = names(switch_bytes=5.0, move_bytes=1e6)  # another page of the host is near, another host is far
    assert near.index("c") == 20


def test_the_limits() -> None:
    downloads = Downloads(rate=10.0, most=25.0)
    for name in "abc":
        downloads.add(name, 0.5, Linear(10.0))
    assert downloads.wait(100.0) == 0.0
    assert downloads.next(100.0) is not None
    assert downloads.wait(100.0) == 1.0
    assert downloads.wait(100.25) == 0.75
    assert downloads.next(101.0) is not None
    assert downloads.next(102.0) is None  # there is no room
    downloads.remove("a")
    assert downloads.next(102.0) is not None


def test_ten_thousand_documents_and_ten_times_as_many_changes_stay_in_their_heaps() -> None:
    rng = np.random.default_rng(1)
    downloads = Downloads()
    for number in range(10_000):
        downloads.add(str(number), float(rng.random()), Linear(100.0))
    for number in rng.integers(0, 10_000, 100_000):
        downloads.weigh(str(number), float(rng.random()))
    gains = [piece.gain for piece in downloads]
    assert len(gains) == 10_000
    assert gains == sorted(gains, reverse=True)
    for number in range(10_000):
        downloads.remove(str(number))
    assert len(downloads) == 0
    assert downloads.held == 0.0
