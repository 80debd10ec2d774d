"""What a runner says of all its pages: of one moment, kept up to date beside the crawl, and after a restart."""

import asyncio
import json
from pathlib import Path

import pytest

from afresh.daemon import Daemon
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Scripted
from afresh.frontier import Allowance, Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.store import Memory, PageState, Record
from afresh.store.socket_file import ask
from afresh.types import Fetched, Page

NOW = 1_000_000.0


def daemon(store: Memory, socket: Path | None = None, gap: float = 1.0) -> Daemon:
    """One that never crawls: it has no budget."""
    engine = Engine(
        scheduler=Scheduler.live(budget=0.0),
        estimator=Grid(typical_rate=1e-3),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=gap)),
    )
    return Daemon(
        engine=engine,
        fetcher=Scripted(lambda url, known: Fetched(url, NOW, 0.0, reason="reset")),
        store=store,
        clock=lambda: NOW,
        socket=socket,
    )


def stored(pages: int) -> Memory:
    store = Memory()
    found = [Page(f"http://h{number % 3}.example/{number}", f"h{number % 3}.example") for number in range(pages)]
    store.add(found)
    store.write([Record(None, PageState(page, None, checked=NOW - 100.0), None) for page in found[: pages // 2]])
    return store


async def for_a_moment(running: Daemon, act: object = None) -> object:
    task = asyncio.create_task(running.run())
    for _ in range(1000):
        if running.overview.allowance is not None:
            break
        await asyncio.sleep(0.02)
    found = await asyncio.to_thread(act) if callable(act) else None
    running.stop()
    await task
    return found


def test_the_price_of_before_a_restart_holds_and_what_politeness_allows_is_kept() -> None:
    store = stored(6)
    store.put({"price": "115.0"})
    running = daemon(store)
    asyncio.run(for_a_moment(running))
    assert running.engine.scheduler.price == 115.0
    assert store.get("price") == "115.0"
    kept = Allowance.from_text(store.get("allowance"))
    assert kept is not None
    assert (kept.rate, kept.hosts) == (pytest.approx(3.0), 3)
    assert "3 hosts, asked once in 1 s each (politeness.shortest_gap)" in kept.sentence(20.0)


def test_whoever_asks_is_told_how_it_is_at_this_moment(tmp_path: Path) -> None:
    store = stored(6)
    running = daemon(store, tmp_path / "afresh.db.sock")
    found = asyncio.run(for_a_moment(running, lambda: ask(tmp_path / "afresh.db", "status")))
    assert isinstance(found, dict), found
    stated = found["freshness"]
    assert (stated["time"], stated["pages"], stated["by_requests"]) == (NOW, 6, False)
    fresh = running.engine.fresh_probability("http://h0.example/0", NOW)
    assert 0.5 < fresh < 1.0
    assert stated["share"] == pytest.approx(fresh / 2), "half of the pages have a copy"
    assert json.loads(found["allowance"])["hosts"] == 3
