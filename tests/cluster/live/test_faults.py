"""A cluster under faults, each with a bound on the time until all is as before; the web's own log is the witness."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from crew import BUDGET, Crew, until

from afresh.cluster.register import LEASE_SECONDS
from afresh.store import Entry
from afresh.store.messages import of_signals
from afresh.store.postgres import Postgres
from afresh.store.slices import slice_of
from afresh.types import Signal

WORKERS = 3


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    made = Crew(tmp_path_factory.mktemp("crew"), WORKERS)
    try:
        until(made.full_rate, 300, "the cluster at its full rate")
        yield made
    finally:
        made.close()


def test_what_is_sent_from_anywhere_takes_effect_at_the_owner_once(crew: Crew) -> None:
    urls = crew.web.urls()[::13]
    before = len(crew.web.log)
    with Postgres(crew.url) as anywhere:
        anywhere.post([Entry("refresh", json.dumps(urls), time.time(), key="once")])
        anywhere.post(of_signals([Signal(url, time.time(), "cms") for url in urls], time.time()))
        until(lambda: anywhere.totals().inbox_entries == 0, 20, "an empty inbox")
        until(
            lambda: not any((state := anywhere.state(url)) is None or state.urgent for url in urls), 20, "crawls of all"
        )
    asked = {f"http://{host}{path}" for host, path, _, _ in crew.web.log[before:]}
    assert set(urls) <= asked


def test_a_worker_that_is_killed_is_replaced_when_its_lease_is_over(crew: Crew) -> None:
    with Postgres(crew.url) as store:
        before = {state.page.url: state.crawls for _, state in store.states()}
    killed = crew.processes.process(0)
    assert killed is not None
    old, lag = crew.holder(0)
    os.kill(killed, signal.SIGKILL)
    # That nobody holds the lease may be too short a time to be seen: the new one asks for it twice a second.
    took = until(lambda: crew.holder(0)[0] != old, LEASE_SECONDS + 20, "a new worker after the end of its lease")
    assert took > LEASE_SECONDS - lag - 0.5, "it was replaced while its lease ran"
    until(lambda: crew.alive() == WORKERS, 30, "all workers")
    until(lambda: crew.full_rate() and crew.register.in_transit() == 0, 60, "the full rate again")
    until(lambda: crew.sums[-1] > 0.97 * BUDGET, 20, "all of the budget")
    with Postgres(crew.url) as store:
        after = {state.page.url: state.crawls for _, state in store.states()}
        assert list(store.problems()) == []
    assert all(after[url] >= crawls for url, crawls in before.items()), "an acknowledged crawl was lost"
    crew.check()


def test_a_worker_cut_off_from_the_database_stops_asking_before_its_lease_ends(crew: Crew) -> None:
    part = WORKERS - 1
    hosts = {url.split("/")[2] for url in crew.web.urls() if slice_of(url) in crew.register.slices_of(part)}
    assert hosts
    usual, crew.web.seconds = crew.web.seconds, 14.0  # what is under way would last beyond the lease
    time.sleep(1.0)
    crew.wire.cut()
    until(lambda: not {m.part: m for m in crew.register.members()}[part].alive, LEASE_SECONDS + 3, "its lease's end")
    ended = time.time()
    crew.web.seconds = usual
    asked = [begin for host, _, begin, _ in crew.web.log if host in hosts]
    assert max(asked) < ended - 1.0, "it asked until its lease was over"
    time.sleep(2.0)
    assert not [begin for host, _, begin, _ in crew.web.log if host in hosts and begin > ended], "it asked without one"
    asked_at = [end for host, _, begin, end in crew.web.log if host in hosts and ended - 12.0 < begin < ended]
    assert max(asked_at) < ended - 0.5, "what was under way was not broken off"
    assert len(asked_at) >= len(hosts) / 2, "what was under way was not broken off"
    crew.wire.mend()
    until(lambda: crew.alive() == WORKERS, 40, "the worker back")
    until(crew.full_rate, 60, "the full rate again")
    crew.check()


def test_a_worker_that_stood_still_asks_nothing_when_it_wakes(crew: Crew) -> None:
    """Others have its hosts by then."""
    part = WORKERS - 1
    stopped = crew.processes.process(part)
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    try:
        crew.register.scale(part, budget=BUDGET)
        until(lambda: crew.register.in_transit() == 0, LEASE_SECONDS + 20, "its slices with others")
    finally:
        os.kill(stopped, signal.SIGCONT)
    time.sleep(2.0)
    crew.check()
    crew.register.scale(WORKERS, budget=BUDGET)
    until(lambda: crew.alive() == WORKERS, 40, "all workers")


def test_the_database_may_restart(crew: Crew) -> None:
    crew.server.kill()
    time.sleep(1.0)
    crew.server.start()
    until(lambda: crew.alive() == WORKERS, 40, "all workers")
    until(crew.full_rate, 60, "the full rate again")
    with Postgres(crew.url) as store:
        assert list(store.problems()) == []
    crew.check()


def test_workers_go_on_without_a_coordinator_and_a_new_one_takes_over(crew: Crew) -> None:
    crew.unwatch()
    time.sleep(3.0)
    assert crew.full_rate()
    assert sum(m.budget for m in crew.register.members() if m.alive) > 0.9 * BUDGET
    crew.watch()
    crew.check()


def test_hosts_move_when_the_number_of_workers_changes(crew: Crew) -> None:
    """To 4, to 5 and back under load; what is asked for by two at once, or too soon, is seen in the log."""
    pages = len(crew.web.urls())
    for workers in (4, 5, 4, WORKERS):
        moves = crew.register.scale(workers, budget=BUDGET)
        assert moves < 1.25 * 4096 / max(workers, crew.alive())
        until(lambda: crew.register.in_transit() == 0, 60, f"the hand-over to {workers}")
        until(lambda count=workers: crew.alive() == count, 60, f"{workers} workers")  # type: ignore[misc]
        until(crew.full_rate, 60, "the full rate")
    with Postgres(crew.url) as store:
        assert store.totals().pages == pages
        assert list(store.problems()) == []
    crew.check()
