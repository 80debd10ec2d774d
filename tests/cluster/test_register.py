"""Leases, slices and the inbox of a cluster, in a real database; no worker runs."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from afresh.cluster.gate import NO_LEASE, Gate, Gated
from afresh.cluster.register import Register
from afresh.cluster.travel import Travel
from afresh.cluster.worker import SHARED
from afresh.errors import StoreError, StoreLocked
from afresh.fetch import Scripted
from afresh.store import Entry, PageState
from afresh.store.messages import of_signals
from afresh.store.postgres import Part, Postgres
from afresh.store.slices import slice_of
from afresh.testing.store_model import record
from afresh.types import Fetched, Outcome, Page, Signal, Validators
from postgres import Postgres as Server

PAGES = [Page(f"https://h{nth}.example/", f"h{nth}.example", float(nth)) for nth in range(40)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def url(server: Server) -> str:
    url = server.fresh("register")
    with Postgres(url) as store:
        store.add(PAGES)
    return url


@pytest.fixture
def register(url: str) -> Iterator[Register]:
    made = Register(url)
    yield made
    made.close()


def view(url: str, register: Register, part: int, token: int) -> Postgres:
    return Postgres(url, create=False, part=Part(part, token, register.slices(part), SHARED))


def test_one_worker_at_a_time_and_who_lost_its_lease_writes_nothing(url: str, register: Register) -> None:
    register.scale(1, budget=8.0)
    first = register.take(0, "first", lease=0.6)
    assert first is not None
    assert register.take(0, "second") is None
    old = view(url, register, 0, first[0])
    state = PageState(PAGES[0])
    old.write([record(state, Outcome.NEW, 1.0, b"one")])
    with Postgres(url) as single, pytest.raises(StoreLocked, match="cluster"):
        single.claim()
    time.sleep(0.7)
    with pytest.raises(StoreLocked, match="lost its lease"):
        old.write([record(state, Outcome.CHANGED, 2.0, b"two")])
    second = register.take(0, "second")
    assert second is not None
    assert second[0] > first[0]
    assert register.beat(0, first[0], spending=1.0, price=1.0, said={}) is None
    with view(url, register, 0, second[0]) as new:
        new.write([record(state, Outcome.CHANGED, 3.0, b"three")])
        copy = new.copy(PAGES[0].url)
        assert copy is not None
        assert copy.body == b"three"
        with pytest.raises(StoreLocked):
            old.put({"price": "1"})
    old.close()


def test_slices_change_hands_only_when_they_are_let_go_or_the_lease_is_over(url: str, register: Register) -> None:
    register.scale(1, budget=8.0)
    first = register.take(0, "a")
    assert first is not None
    assert len(register.slices(0)) == 4096
    register.scale(2)
    second = register.take(1, "b")
    assert second is not None
    assert register.slices(1) == frozenset()
    found = register.beat(0, first[0], spending=0.0, price=1.0, said={})
    assert found is not None
    assert found[2].to_give == 4096 - len(register.slices(0)) > 1_500
    register.hand_over(0, first[0])
    ours, theirs = register.slices(0), register.slices(1)
    assert not ours & theirs
    assert len(ours | theirs) == 4096
    assert register.in_transit() == 0
    with view(url, register, 0, first[0]) as one, view(url, register, 1, second[0]) as two:
        seen = [{state.page.url for _, state in store.states()} for store in (one, two)]
        assert seen[0] | seen[1] == {page.url for page in PAGES}
        assert not seen[0] & seen[1]
        assert one.totals().pages + two.totals().pages == len(PAGES)
        foreign = next(page for page in PAGES if page.url in seen[1])
        with pytest.raises(StoreError, match="another worker"):
            one.write([record(PageState(foreign), Outcome.NEW, 1.0, b"x")])
        # What is of a host goes along, what a worker has learned stays with it.
        one.put({"robots https://h1.example": "rules", "price": "3"})
        assert (two.get("robots https://h1.example"), two.get("price")) == ("rules", None)


def test_what_is_sent_reaches_the_owner_once_also_after_a_change_of_owners(url: str, register: Register) -> None:
    register.scale(2, budget=8.0)
    tokens = [register.take(part, "x") for part in (0, 1)]
    assert all(tokens)
    signals = [Signal(page.url, 5.0, "cms") for page in PAGES]
    wishes = [Entry("refresh", json.dumps([page.url for page in PAGES])), Entry("pause-host", '["h1.example"]')]
    with Postgres(url) as anywhere:
        entries = [*of_signals(signals, 6.0, key="once"), *wishes]
        assert anywhere.post(entries) == len(entries)
        assert anywhere.post(entries[:1]) == 0, "a key that was seen is the same sent again"

    def heard(part: int) -> list[tuple[str, object]]:
        token = tokens[part]
        assert token is not None
        with view(url, register, part, token[0]) as store:
            found = []
            for entry in store.inbox(limit=1_000):
                items = json.loads(entry.body)
                found += [(entry.kind, item[0] if entry.kind == "signals" else item) for item in items]
            return found

    everything = [each for part in (0, 1) for each in heard(part)]
    for kind in ("signals", "refresh"):
        assert sorted(str(url) for each, url in everything if each == kind) == sorted(page.url for page in PAGES)
    assert everything.count(("pause-host", "h1.example")) == 2, "what concerns no page alone is for every worker"
    # All hosts go to worker 0, and so does what waits for worker 1.
    register.scale(1)
    assert tokens[1] is not None
    register.hand_over(1, tokens[1][0])
    heard(1)
    with Postgres(url) as store:
        assert store.totals().inbox_entries > 0
    assert sorted(str(url) for kind, url in heard(0) if kind == "signals") == sorted(page.url for page in PAGES)


def test_budget_is_spread_once_however_many_do_it(url: str, register: Register) -> None:
    register.scale(3, budget=9.0)
    tokens = [register.take(part, "x") for part in range(3)]
    others = Register(url)
    heard = [0.0] * 3
    for _ in range(6):
        for each in (register, others):
            each.spread()
            members = each.members()
            assert sum(max(m.budget, m.spending) for m in members) <= 9.0 * (1 + 1e-9)
        for part, token in enumerate(tokens):
            assert token is not None
            found = register.beat(part, token[0], spending=heard[part], price=float(4**part), said={"pages": 5})
            assert found is not None
            heard[part] = found[0]
    assert 0.8 * 9.0 < sum(heard) <= 9.0 * (1 + 1e-9)
    assert heard[0] < heard[1] < heard[2]
    others.close()


def test_a_closed_gate_lets_nothing_through_and_breaks_off_what_is_under_way() -> None:
    class Slow(Scripted):
        began = 0

        async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
            self.began += 1
            await asyncio.sleep(60)
            raise AssertionError("it was not broken off")

    async def go() -> None:
        slow = Slow({})
        gate = Gate(time.monotonic() + 60)
        task = asyncio.create_task(Gated(slow, gate).fetch("http://e.org/", Validators()))
        await asyncio.sleep(0.01)
        assert gate.under_way == 1
        gate.shut()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert gate.under_way == 0
        fetched = await Gated(slow, gate).fetch("http://e.org/", Validators())
        assert (fetched.reason, slow.began) == (NO_LEASE, 1)

    asyncio.run(go())


def test_pages_of_others_are_sent_once_and_ours_are_kept() -> None:
    mine = frozenset(slice_of(page.url) for page in PAGES[:20])
    travel = Travel(mine)
    ours, theirs = travel.divided(PAGES)
    assert {page.url for page in ours} == {page.url for page in PAGES if slice_of(page.url) in mine}
    assert len(ours) + len(theirs) == len(PAGES)
    again, none = travel.divided([replace(page, depth=3) for page in PAGES])
    assert (len(again), none) == (len(ours), [])
