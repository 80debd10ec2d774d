"""What a cluster costs beside one process: CPU a crawl, writes to the database, and the coordinator's share.

    .venv/bin/python benchmarks/bench_cluster.py [--workers 3] [--seconds 30]

One process on a store in PostgreSQL, then workers that share the same pages and budget; all on this machine, with a web
on loopback that waits for nothing. CPU time is of the crawling processes alone; the database's is told apart.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import psycopg

import logged_web
from afresh.cli.crew import ADDRESS
from afresh.cluster.coordinator import Coordinator
from afresh.cluster.processes import Processes
from afresh.cluster.register import Register
from afresh.store import PageState
from afresh.store.postgres import Postgres
from afresh.testing.store_model import record
from afresh.types import Address, Outcome, Page
from postgres import Postgres as Server
from postgres import children

TICKS = os.sysconf("SC_CLK_TCK")
SETTINGS = '[fetch]\nallow_private = true\n[politeness]\nfactor = 0\nshortest_gap = "0s"\nrobots = false\n'
SETTINGS += '[crawl]\nsitemaps = false\nbudget = "{budget}/s"\n'


def cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def written(url: str) -> tuple[int, int, int]:
    """(bytes of write-ahead log, rows written, transactions) so far."""
    with psycopg.connect(url) as connection:
        log: Any = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").fetchone()
        rows: Any = connection.execute(
            """SELECT tup_inserted + tup_updated + tup_deleted, xact_commit FROM pg_stat_database
              WHERE datname = current_database()"""
        ).fetchone()
    return int(log[0]), int(rows[0]), int(rows[1])


def cpu_of_server(server: Server) -> float:
    """CPU seconds of the database so far, with all its sessions."""
    assert server._server is not None
    pid = server._server.pid
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS
    return cpu(pid) + ended + sum(map(cpu, children(pid)))


def stored(server: Server, seconds: float) -> tuple[float, float]:
    """(crawls a second that one session writes in batches of 256 with bodies of 6 KB, CPU of the database for each)."""
    url, body = server.fresh("stored"), os.urandom(6_000)
    pages = [Page(f"https://h{nth % 500}.example/{nth}", f"h{nth % 500}.example", 0.0) for nth in range(20_000)]
    with Postgres(url) as store:
        store.add(pages)
        began, used, count = time.monotonic(), cpu_of_server(server), 0
        while time.monotonic() - began < seconds:
            some = [pages[(count + nth) % len(pages)] for nth in range(256)]
            moment = float(count)
            store.write([record(PageState(page), Outcome.CHANGED, moment, body) for page in some])
            count += len(some)
        took = time.monotonic() - began
    return count / took, (cpu_of_server(server) - used) / count


def measure(server: Server, web: logged_web.LoggedWeb, workers: int, budget: float, seconds: float) -> dict[str, float]:
    """So many workers for so long, once all run."""
    url = server.fresh(f"bench{workers}")
    folder = Path(tempfile.mkdtemp())
    settings = folder / "afresh.toml"
    settings.write_text(SETTINGS.format(budget=budget))
    with Postgres(url) as store:
        store.add(Page(each, each.split("/")[2], time.time()) for each in web.urls())
    register = Register(url)

    def command(part: int) -> list[str]:
        if workers == 1:
            return [sys.executable, "-m", "afresh", "run", "--store", url, "--config", str(settings)]
        return [sys.executable, "-m", "afresh", "cluster", "worker", str(part), "--config", str(settings)]

    processes = Processes(command, {ADDRESS: url})
    coordinator = None
    try:
        if workers > 1:
            register.scale(workers, budget=budget)
            coordinator = Coordinator(Address(url), processes)
            threading.Thread(target=coordinator.run, daemon=True).start()
        else:
            processes.keep(1, frozenset(), frozenset())
        while web.rate(3.0) < 1 or (workers > 1 and sum(m.alive for m in register.members()) < workers):
            time.sleep(0.5)
        time.sleep(20.0)  # first crawls, and prices that agree
        pids = [pid for part in range(workers) if (pid := processes.process(part))]
        before = sum(map(cpu, pids)), len(web.log), written(url), cpu_of_server(server), time.monotonic()
        own = time.process_time()
        time.sleep(seconds)
        took = time.monotonic() - before[4]
        crawls = len(web.log) - before[1]
        log, rows, commits = (after - start for after, start in zip(written(url), before[2], strict=True))
        used = sum(map(cpu, pids)) - before[0]
        of_server = cpu_of_server(server) - before[3]
        members = register.members()
    finally:
        if coordinator is not None:
            coordinator.end()
        processes.close()
        register.close()
    return {
        "rate": crawls / took,
        "crawls per CPU-second": crawls / used,
        "ms of the database's CPU a crawl": 1e3 * of_server / crawls,
        "bytes logged a crawl": log / crawls,
        "rows written a crawl": rows / crawls,
        "transactions a second": commits / took,
        "this process (web and coordinator), CPU share": (time.process_time() - own) / took,
        "budget granted": sum(member.budget for member in members),
    }


def coordinator_share(server: Server, seconds: float) -> float:
    """CPU that a coordinator of eight workers uses, as a share of one core."""
    url = server.fresh("watched")
    Postgres(url).close()
    register = Register(url)
    register.scale(8, budget=100.0)
    for part in range(8):
        assert register.take(part, "bench") is not None
    watching = Coordinator(Address(url), None)
    watching.once()
    began, used, rounds = time.monotonic(), time.process_time(), 0
    while time.monotonic() - began < seconds:
        watching.once()
        rounds += 1
    share = (time.process_time() - used) / rounds  # one round a second
    register.close()
    watching.register.close()
    return share


def main() -> None:
    """Print it all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--budget", type=float, default=300.0)
    options = parser.parse_args()
    logged_web.SECONDS = 0.0
    server, web = Server("on"), logged_web.LoggedWeb(300, 10)
    try:
        share = coordinator_share(server, 3.0)
        print(f"coordinator of 8 workers: {100 * share:.2f} % of a core")
        rate, seconds = stored(server, 5.0)
        print(f"one session writes {rate:,.0f} crawls a second; the database's CPU: {1e3 * seconds:.2f} ms each")
        found = {count: measure(server, web, count, options.budget, options.seconds) for count in (1, options.workers)}
    finally:
        web.close()
        server.close()
    for name in found[1]:
        print(
            f"{name:48}",
            *(f"{count} process{'es' if count > 1 else ''}: {each[name]:10.2f}" for count, each in found.items()),
        )
    ratio = found[options.workers]["crawls per CPU-second"] / found[1]["crawls per CPU-second"]
    print(f"{options.workers} workers: {ratio:.2f} × the crawls per CPU-second of one process")


if __name__ == "__main__":
    main()
