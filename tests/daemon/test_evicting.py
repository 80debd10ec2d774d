"""What came because somebody asked leaves beyond a bound: first what is asked for least for its size."""

import asyncio

import pytest

from afresh.daemon.evicting import Evicting
from afresh.engine import Engine
from afresh.estimate import Learner
from afresh.schedule import Scheduler
from afresh.sources import Sources
from afresh.sources.sql import Database, Definitions, Query, Sql
from afresh.store import Memory, PageState, Record, Sqlite, Store
from afresh.store.messages import drain
from afresh.types import Copy, Page, Request, Validators


def keep(store: Store, key: str, size: int, depth: int) -> None:
    page, known = Page(key, "sql:shop", depth=depth), Validators(fingerprint=1)
    state = PageState(page, fetched=1.0, checked=1.0, validators=known)
    store.add([page])
    store.write([Record(None, state, Copy(key, b"x" * size, "application/json", 1.0, 1.0, known))])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_least_asked_for_leave(kind: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    store: Store = Memory() if kind == "memory" else Sqlite(tmp_path / "afresh.db")
    source = Sql(Definitions([Database("shop", "sqlite::memory:", max_kept=1000)], [Query("q", "shop", "SELECT :n")]))
    engine = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Learner(typical_rate=0.1))
    engine.requests_since(0.0)
    keys = [f"sql:shop/q?n={nth}" for nth in range(6)]
    sizes, asked, depth = [300, 300, 300, 300, 50, 300], [0, 9, 5, 7, 2, 0], [0, 1, 1, 1, 1, 1]
    for key, size, count, deep in zip(keys, sizes, asked, depth, strict=True):
        keep(store, key, size, deep)
        engine.add(Page(key, "sql:shop", depth=deep), 1.0, current=1.0)
        for _ in range(count):
            engine.observe(Request(key, 50.0), 50.0)
    evicting = Evicting(engine=engine, store=store, sources=Sources([source]), clock=lambda: 100.0, wake=lambda: None)
    # 1,550 bytes are kept: those asked for least for their size go, until 900 are left; what was added by name stays.
    assert asyncio.run(evicting.look()) == 3
    drain(store)
    left = [state.page.url for _, state in store.states()]
    assert left == [keys[0], keys[1], keys[4]]
    assert asyncio.run(evicting.look()) == 0
    store.close()
