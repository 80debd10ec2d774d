from math import inf

from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.web.agenda import (
    DEEPEST,
    FIRST_INTERVAL,
    HOUR,
    LONGEST_INTERVAL,
    MOST,
    SHORTEST_INTERVAL,
    Agenda,
    Known,
)
from afresh.types import Outcome, Validators

NEW, CHANGED, UNCHANGED = Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED


def turns(agenda: Agenda, now: float, number: int) -> list[str]:
    """What so many turns in a row go to, "" for a page; every sitemap is found new."""
    taken = []
    for _ in range(number):
        known = agenda.take(now)
        taken.append(known.url if known else "")
        if known:
            known.answered(NEW, Validators(etag="x"), now)
    return taken


def test_every_second_turn_at_most_goes_to_a_sitemap_and_each_comes_once() -> None:
    agenda = Agenda()
    assert turns(agenda, 0.0, 2) == ["", ""]
    agenda.named({"a": None, "b": None, "c": None})
    assert turns(agenda, 0.0, 8) == ["a", "", "b", "", "c", "", "", ""]
    assert turns(agenda, FIRST_INTERVAL - 1, 2) == ["", ""]
    assert turns(agenda, FIRST_INTERVAL, 4) == ["a", "", "b", ""]


def test_what_changes_is_read_more_often_and_what_does_not_less() -> None:
    known, now = Known("a"), 0.0
    intervals = {}
    for outcome in (NEW, CHANGED, CHANGED, CHANGED, CHANGED, UNCHANGED, *[UNCHANGED] * 20):
        known.answered(outcome, Validators(etag=str(outcome)), now)
        intervals.setdefault(outcome, []).append(known.due - now)
    assert intervals[NEW] == [FIRST_INTERVAL]
    assert intervals[CHANGED][0] == FIRST_INTERVAL / 2
    assert intervals[CHANGED][-1] == SHORTEST_INTERVAL
    assert intervals[UNCHANGED][0] == 2 * SHORTEST_INTERVAL
    assert intervals[UNCHANGED][-1] == LONGEST_INTERVAL


def test_failures_are_tried_again_later_and_later_and_forget_nothing() -> None:
    known = Known("a")
    known.answered(NEW, Validators(etag="kept"), 0.0)
    waits = []
    for _ in range(30):
        known.answered(Outcome.FAILED, Validators(), 0.0)
        waits.append(known.due)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (60.0, 30 * 24 * HOUR)
    assert known.validators.etag == "kept"
    known.answered(UNCHANGED, known.validators, 0.0)
    assert (known.failures, known.due) == (0, 2 * FIRST_INTERVAL)


def test_what_was_kept_while_a_clock_ran_ahead_does_not_wait_for_that_moment() -> None:
    ten_years = 10 * 366 * 86_400.0
    known = Known("https://e.org/map.xml")
    known.answered(Outcome.CHANGED, Validators(), ten_years)
    known.mend(1000.0)
    assert (known.read, known.due) == (1000.0, 1000.0)
    known.answered(Outcome.CHANGED, Validators(), 1000.0)
    due = known.due
    known.mend(1001.0)
    assert (known.read, known.due) == (1000.0, due)


def test_a_sitemap_that_its_index_calls_newer_is_due() -> None:
    agenda, index = Agenda(), Known("index")
    agenda.named({"index": None})
    agenda.named({"a": None, "b": 5.0}, index)
    turns(agenda, 10.0, 20)
    agenda.named({"a": 9.0, "b": 11.0}, index)
    assert turns(agenda, 20.0, 4) == ["b", "", "", ""]


def test_what_is_named_no_longer_is_forgotten_with_all_below_it() -> None:
    agenda = Agenda()
    agenda.named({"one": None, "two": None})
    agenda.named({"one/a": None}, Known("one"))
    agenda.named({"one/a/b": None}, Known("one/a", "one", 1))
    assert len(agenda) == 4
    agenda.named({"one/c": None}, Known("one"), all_of_them=False)
    assert len(agenda) == 5, "an index that broke off says nothing of the others"
    agenda.named({"two": None})
    assert len(agenda) == 1
    agenda.named({})
    assert len(agenda) == 0


def test_depth_and_number_are_bounded_and_loops_end() -> None:
    agenda, known = Agenda(), Known("0")
    agenda.named({"0": None})
    for depth in range(1, 10):
        agenda.named({str(depth): None, "0": None}, known, all_of_them=False)
        known = Known(str(depth), known.url, depth)
    assert len(agenda) == 1 + DEEPEST
    agenda.named({f"{number} more": None for number in range(3 * MOST)}, Known("0"), all_of_them=False)
    assert len(agenda) == MOST


NAMES = st.sampled_from("abcdef")


NAMED = st.tuples(st.dictionaries(NAMES, st.none() | st.floats(0, 100), max_size=6), NAMES | st.none())


@given(st.lists(NAMED, max_size=20))
def test_whatever_is_named_by_whatever_all_below_lead_up_to_robots(steps: list) -> None:
    agenda = Agenda()
    for now, (urls, by) in enumerate(steps):
        parent = agenda._known.get(by) if by is not None else None
        if by is None or parent is not None:
            agenda.named(urls, parent)
        turns(agenda, float(now), 3)
        for known in agenda._known.values():
            assert known.depth <= DEEPEST
            assert (known.parent == "") == (known.depth == 0)
            assert known.parent == "" or known.parent in agenda._known
            assert known.due < inf
