"""Both stores keep every promise of the interface."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.store import Memory, PageState, Record, Sqlite, Store
from afresh.store.base import MAX_ALIKE
from afresh.testing import check_store
from afresh.testing.store_model import StoreModel, page, random_record, record
from afresh.types import Beliefs, Copy, Crawl, Outcome, Validators


def sqlite_maker(folder: Path, keep_crawls: int = 5) -> Callable[[], Sqlite]:
    names = count()
    return lambda: Sqlite(folder / f"{next(names)}.db", keep_crawls=keep_crawls)


def test_memory_passes_the_battery() -> None:
    check_store(lambda: Memory(keep_crawls=5))


def test_runs_of_failures_are_shortened_in_longer_histories(tmp_path: Path) -> None:
    check_store(lambda: Memory(keep_crawls=25), keep_crawls=25, steps=10)
    check_store(sqlite_maker(tmp_path, 25), keep_crawls=25, steps=10)
    store = Memory()
    store.add([page(1)])
    state = PageState(page(1))
    for nth, outcome in enumerate([Outcome.UNCHANGED] * 90 + [Outcome.FAILED] * 1_000):
        written = record(state, outcome, float(nth))
        store.write([written])
        state = written.state
    history = store.history(page(1).url, 1_000)
    assert [crawl.outcome for crawl in history].count(Outcome.UNCHANGED) == 90, "a bad week pushes nothing out"
    assert [crawl.time for crawl in history[:MAX_ALIKE]] == [*range(1_089, 1_089 - MAX_ALIKE + 1, -1), 90]
    assert (store.totals().crawls, state.failures) == (1_090, 1_000)


@pytest.mark.parametrize("seed", range(3))
def test_sqlite_passes_the_battery(tmp_path: Path, seed: int) -> None:
    def again(store: Store) -> Store:
        assert isinstance(store, Sqlite)
        return Sqlite(store.path, keep_crawls=5)

    check_store(sqlite_maker(tmp_path), again, seed=seed)


# One operation: pages to add by number, or a batch of crawls by seeds, or a second look after opening anew.
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.integers(0, 8), max_size=5)),
        st.tuples(st.just("write"), st.lists(st.integers(0, 2**32), max_size=5)),
        st.tuples(st.just("reopen"), st.just([])),
    ),
    max_size=20,
)


@given(operations=operations, keep_crawls=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_interleaving_leaves_what_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, list[int]]], keep_crawls: int
) -> None:
    path = tmp_path_factory.mktemp("walk") / "s.db"
    model, memory, sqlite = (
        StoreModel(keep_crawls),
        Memory(keep_crawls=keep_crawls),
        Sqlite(path, keep_crawls=keep_crawls),
    )
    for nth, (what, numbers) in enumerate(operations):
        if what == "reopen":
            sqlite.close()
            sqlite = Sqlite(path, keep_crawls=keep_crawls, create=False)
        elif what == "add":
            pages = [page(number) for number in numbers]
            assert model.add(pages) == memory.add(pages) == sqlite.add(pages)
        elif model.states:
            batch = [random_record(model, random.Random(number), float(nth)) for number in numbers]
            for taker in (model, memory, sqlite):
                taker.write(batch)
        model.compare(memory)
        model.compare(sqlite)
    assert list(sqlite.problems()) == []
    sqlite.close()


class Forgetful(Memory):
    """A store with one fault of each kind, to see that the battery can fail."""

    def __init__(self, fault: str) -> None:
        super().__init__(keep_crawls=6 if fault == "history" else 5)
        self.fault = fault

    def add(self, pages):  # type: ignore[no-untyped-def]
        return super().add(pages) + (self.fault == "count")

    def write(self, records):  # type: ignore[no-untyped-def]
        for each in records:
            batch = [replace(each, host=None)] if self.fault == "host" else [each]
            if self.fault == "copy" and each.crawl and each.crawl.outcome is Outcome.UNCHANGED:
                continue
            super().write(batch)

    def close(self) -> None:
        if self.fault != "close":
            super().close()


@pytest.mark.parametrize("fault", ["history", "count", "host", "copy", "close", "batch"])
def test_the_battery_sees_a_fault(fault: str) -> None:
    with pytest.raises(AssertionError):
        check_store(lambda: Forgetful(fault))


def test_a_record_of_two_pages_is_refused() -> None:
    with pytest.raises(ValueError, match="one page"):
        Record(Crawl(page(1).url, 1.0, Outcome.GONE), PageState(page(2)))
    with pytest.raises(ValueError, match="one page"):
        Record(None, PageState(page(2), fetched=1.0, checked=1.0), Copy(page(1).url, b"", "", 1.0, 1.0))


@pytest.mark.parametrize("field", ["fetched", "checked", "validators"])
def test_a_copy_of_another_fetch_than_the_state_is_refused(field: str) -> None:
    good = record(PageState(page(1)), Outcome.NEW, 1.0, b"body")
    other = {"fetched": 2.0, "checked": 2.0, "validators": Validators("other")}[field]
    with pytest.raises(ValueError, match="same in state and copy"):
        replace(good, state=replace(good.state, **{field: other}))


def test_a_record_with_nan_is_refused() -> None:
    good = record(PageState(page(1)), Outcome.NEW, 1.0, b"body")
    with pytest.raises(ValueError, match="not a number"):
        replace(good, state=replace(good.state, beliefs=Beliefs(change_rate=float("nan"))))
    assert good.crawl
    with pytest.raises(ValueError, match="not a number"):
        replace(good, crawl=replace(good.crawl, elapsed=float("nan")))


@pytest.mark.parametrize("make", [Memory, lambda **more: Sqlite("/nowhere/at/all.db", **more)])
def test_a_history_of_no_crawls_is_refused(make: Callable[..., Store]) -> None:
    with pytest.raises(ValueError, match="keep_crawls"):
        make(keep_crawls=0)
