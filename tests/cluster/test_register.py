"""Leases, slices and the inbox of a cluster, in a real database; no worker runs."""

import asyncio
import json
import threading
import time
from dataclasses import replace
from socket import AF_INET, SOCK_STREAM
from typing import Any

import pytest

from afresh.cluster.gate import NO_LEASE, Gate, Gated, now
from afresh.cluster.register import Register
from afresh.cluster.travel import Travel
from afresh.cluster.worker import SHARED
from afresh.daemon import SteadyClock
from afresh.errors import StoreError, StoreLocked
from afresh.fetch import Http, Scripted
from afresh.fetch.resolve import SystemResolver
from afresh.store import Entry, PageState
from afresh.store.messages import of_signals
from afresh.store.postgres import Part, Postgres
from afresh.store.postgres.link import Connection
from afresh.store.slices import slice_of
from afresh.testing.store_model import record
from afresh.types import Blame, Fetched, Outcome, Page, Signal, Validators
from postgres import Postgres as Server

PAGES = [Page(f"https://h{nth}.example/", f"h{nth}.example", float(nth)) for nth in range(40)]


@pytest.fixture
def url(server: Server) -> str:
    url = server.fresh("register")
    with Postgres(url) as store:
        store.add(PAGES)
    return url


def view(url: str, register: Register, part: int, token: int) -> Postgres:
    return Postgres(url, create=False, part=Part(part, token, register.slices(part, token), SHARED))


def test_one_worker_at_a_time_and_who_lost_its_lease_writes_nothing(url: str, register: Register) -> None:
    register.scale(1, budget=8.0)
    first = register.take(0, "first", lease=1.5)
    assert first is not None
    assert register.take(0, "second") is None
    old = view(url, register, 0, first[0])
    state = PageState(PAGES[0])
    old.write([record(state, Outcome.NEW, 1.0, b"one")])
    with Postgres(url) as single, pytest.raises(StoreLocked, match="cluster"):
        single.claim()
    time.sleep(1.6)
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


def test_slices_are_taken_only_after_a_batch_that_was_begun_under_the_old_lease(url: str, register: Register) -> None:
    """Of one that stands still in the midst of a batch, and goes on when its lease is over."""
    register.scale(2, budget=8.0)
    old = register.take(1, "old", lease=1.0)
    assert old is not None
    held = register.slices(1, old[0])
    begun, goes_on = threading.Event(), threading.Event()

    def stands_still(connection: Connection) -> None:
        begun.set()
        assert goes_on.wait(20)

    with view(url, register, 1, old[0]) as store:
        writing = threading.Thread(target=store.at_once, args=(stands_still,))
        writing.start()
        assert begun.wait(20)
        register.scale(1)
        time.sleep(1.1)
        new = register.take(0, "new")
        assert new is not None
        assert not register.slices(0, new[0]) & held, "they were taken while a batch for them was being written"
        goes_on.set()
        writing.join(20)
        assert register.slices(0, new[0]) >= held


def test_a_token_never_comes_twice_and_who_has_an_old_one_takes_nothing(url: str, register: Register) -> None:
    register.scale(2, budget=8.0)
    paused = register.take(1, "paused", lease=0.1)
    assert paused is not None
    time.sleep(0.2)
    second = register.take(1, "second")
    assert second is not None
    register.scale(1)
    register.hand_over(1, second[0])
    register.give_up(1, second[0])
    register.scale(2)
    third = register.take(1, "third")
    assert third is not None
    assert third[0] > second[0] > paused[0]
    assert register.beat(1, paused[0], spending=0.0, price=1.0, said={}) is None
    assert register.slices(1, paused[0]) == frozenset()
    assert register.in_transit() > 0, "one that has no lease took slices"
    assert len(register.slices(1, third[0])) > 0


def test_budget_moves_again_soon_after_a_worker_stood_still_in_a_batch(url: str, register: Register) -> None:
    """Meanwhile the leases of the others are renewed."""
    register.scale(2, budget=8.0)
    tokens = [register.take(part, "x") for part in (0, 1)]
    assert tokens[0] is not None
    assert tokens[1] is not None
    with Postgres(url, part=Part(1, tokens[1][0], frozenset(), SHARED)) as store:
        begun, goes_on = threading.Event(), threading.Event()

        def stands_still(connection: Connection) -> None:
            begun.set()
            assert goes_on.wait(20)

        writing = threading.Thread(target=store.at_once, args=(stands_still,))
        writing.start()
        assert begun.wait(20)
        coordinator = Register(url)
        began = time.monotonic()
        with pytest.raises(StoreLocked):
            coordinator.spread()
        assert time.monotonic() - began < 2.5
        assert register.beat(0, tokens[0][0], spending=0.0, price=1.0, said={}) is not None
        goes_on.set()
        writing.join(20)
        assert sum(each.granted for each in coordinator.spread()) == pytest.approx(8.0)
        coordinator.close()


def test_workers_go_by_the_clock_of_the_database(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() - 30.0)
    ahead = register.ahead()
    assert ahead == pytest.approx(30.0, abs=1.0)
    assert SteadyClock(ahead)() == pytest.approx(true(), abs=1.0)


def test_slices_change_hands_only_when_they_are_let_go_or_the_lease_is_over(url: str, register: Register) -> None:
    register.scale(1, budget=8.0)
    first = register.take(0, "a")
    assert first is not None
    assert len(register.slices(0, first[0])) == 4096
    register.scale(2)
    second = register.take(1, "b")
    assert second is not None
    assert register.slices(1, second[0]) == frozenset()
    found = register.beat(0, first[0], spending=0.0, price=1.0, said={})
    assert found is not None
    assert found[2].to_give == 4096 - len(register.slices(0, first[0])) > 1_500
    register.hand_over(0, first[0])
    ours, theirs = register.slices(0, first[0]), register.slices(1, second[0])
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
        gate = Gate(now() + 60)
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


def test_nothing_goes_out_when_the_gate_has_closed_while_a_connection_was_made() -> None:
    """As where a process is stopped in between, and goes on when another has taken its place."""
    asked = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: /2\r\nContent-Length: 0\r\n\r\n")
            gate.until = 0.0
            await reader.read()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def in_time(host: str, port: int, **_: object) -> list[Any]:
        return [(AF_INET, SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    def late(host: str, port: int, **_: object) -> list[Any]:
        gate.until = 0.0
        return in_time(host, port)

    async def go() -> list[Fetched]:
        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        found = []
        for look_up in (late, in_time):
            gate.until = now() + 60.0
            resolver = SystemResolver(look_up)
            http = Http(user_agent="test/1", allow_private=True, permit=gate.require, resolver=resolver)
            found.append(await Gated(http, gate).fetch(f"http://a.example:{port}/1", Validators()))
            await http.close()
            await asyncio.sleep(0.05)  # that the server hears of it
        listening.close()
        return found

    gate = Gate(0.0)
    assert [(each.reason, each.blame) for each in asyncio.run(go())] == [(NO_LEASE, Blame.NOBODY)] * 2
    assert [each.split()[1] for each in asked] == [b"/1"]


def test_pages_of_others_are_sent_once_and_ours_are_kept() -> None:
    mine = frozenset(slice_of(page.url) for page in PAGES[:20])
    travel = Travel(mine)
    ours, theirs = travel.divided(PAGES)
    assert {page.url for page in ours} == {page.url for page in PAGES if slice_of(page.url) in mine}
    assert len(ours) + len(theirs) == len(PAGES)
    again, none = travel.divided([replace(page, depth=3) for page in PAGES])
    assert (len(again), none) == (len(ours), [])
