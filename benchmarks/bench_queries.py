"""A PostgreSQL whose tables change at different rates, 200 queries with popularity by Zipf: whose answers are right?

Ours is the whole thing: `afresh run` in a process of its own with a budget of database time, and an application that
asks `QueryCache`. An answer is right if the query, run at that moment, would give the same; one in fifty is run to see.

The others are reckoned from the same requests and the same changes, and nothing that they do takes time but the
queries: a cache with the one time to live that is best within the same database time, refreshing all in turn, and
running the query for every request as long as the same database time lasts (who is not served gets no right answer).

What a query takes is set by `pg_sleep`, so that a busy machine does not change it. Our database time is counted where
the application runs a query, and by the refreshes that the runner tells of. What it recorded is printed, too.

    python benchmarks/bench_queries.py --seconds 100 --warm-up 100
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from pathlib import Path

import numpy as np
import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from afresh import QueryCache
from afresh.store import Sqlite
from afresh.types import Fetched
from postgres import Postgres

QUERIES, TABLES, BUDGET = 200, 20, 0.2
SQL = "SELECT v.n, v.value FROM t{table} v JOIN costs c USING (n), LATERAL pg_sleep(c.seconds) WHERE v.n = :n"
ASK = "SELECT value FROM t{table} WHERE n = {n}"


class World:
    """Queries, what each takes, when each is asked for, and when its result changes; all drawn beforehand."""

    def __init__(self, seed: int, length: float, per_second: float) -> None:
        rng = np.random.default_rng(seed)
        self.cost = np.exp(rng.uniform(np.log(0.001), np.log(0.2), QUERIES))
        popular = 1.0 / np.arange(1, QUERIES + 1)
        self.popularity = rng.permutation(popular / popular.sum())
        self.table = rng.integers(0, TABLES, QUERIES)
        # Tables differ in how much changes in them, and so do the rows of one.
        base = np.exp(rng.uniform(np.log(1e-3), np.log(0.3), TABLES))
        self.rate = base[self.table] * np.exp(rng.normal(0.0, 0.7, QUERIES))
        count = rng.poisson(per_second * length)
        self.asked = np.sort(rng.uniform(0.0, length, count))
        self.which = rng.choice(QUERIES, count, p=self.popularity)
        self.changes = [np.sort(rng.uniform(0.0, length, rng.poisson(rate * length))) for rate in self.rate]

    def version(self, n: int, when: float) -> int:
        """How often a result has changed by then."""
        return int(np.searchsorted(self.changes[n], when, side="right"))


def time_to_live(world: World, begin: float, ttl: float) -> tuple[float, float]:
    """(share of right answers, database time a second) of a cache that keeps each result so long."""
    until, kept = np.full(QUERIES, -np.inf), np.full(QUERIES, -1)
    right = asked = 0
    spent = 0.0
    for when, n in zip(world.asked, world.which, strict=True):
        version = world.version(n, when)
        ran = when >= until[n]
        if ran:
            until[n], kept[n] = when + ttl, version
        if when >= begin:
            asked, right, spent = asked + 1, right + (kept[n] == version), spent + ran * world.cost[n]
    return right / asked, spent / (world.asked[-1] - begin)


def in_turn(world: World, begin: float, budget: float) -> float:
    """Share of right answers if all are refreshed one after the other."""
    refreshed: list[list[float]] = [[] for _ in range(QUERIES)]
    now, n = 0.0, 0
    while now < world.asked[-1]:
        refreshed[n].append(now)
        now, n = now + world.cost[n] / budget, (n + 1) % QUERIES
    right = asked = 0
    for when, n in zip(world.asked, world.which, strict=True):
        if when >= begin:
            last = bisect_right(refreshed[n], when) - 1
            right += last >= 0 and world.version(n, refreshed[n][last]) == world.version(n, when)
            asked += 1
    return right / asked


def run_always(world: World, begin: float, budget: float) -> float:
    """Share of right answers if every request runs its query, as far as the same database time goes."""
    asked = world.asked >= begin
    wanted = world.cost[world.which[asked]].sum() / (world.asked[-1] - begin)
    return min(1.0, budget / wanted)


def ours(world: World, length: float, begin: float, server: Postgres) -> dict[str, float]:  # noqa: C901
    """The same live."""
    tables = [f"CREATE TABLE t{table} (n int PRIMARY KEY, value bigint)" for table in range(TABLES)]
    url = server.fresh("bench", "CREATE TABLE costs (n int PRIMARY KEY, seconds float8)", *tables)
    with psycopg.connect(url, autocommit=True) as connection:
        for n in range(QUERIES):
            connection.execute("INSERT INTO costs VALUES (%s, %s)", [n, world.cost[n]])
            connection.execute(f"INSERT INTO t{world.table[n]} VALUES ({n}, 0)".encode())
        connection.execute(b"ANALYZE")
    folder = Path(tempfile.mkdtemp(prefix="afresh-bench-"))
    settings = f'[[database]]\nname = "bench"\nurl = "{url}"\nbudget = "{BUDGET} s/s"\nconnections = 4\n'
    for table in range(TABLES):
        settings += f'[[query]]\nname = "q{table}"\ndatabase = "bench"\nsql = "{SQL.format(table=table)}"\n'
    first = '[[query]]\nname = "one"\ndatabase = "bench"\nsql = "SELECT 1"\n'
    (folder / "afresh.toml").write_text(settings + first)
    Sqlite(folder / "afresh.db").close()  # makes the store, which the runner wants to be there
    command = [sys.executable, "-c", "from afresh.cli import main; main()", "run", "--json"]
    log = (folder / "log").open("wb")
    runner = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log)
    lines: list[dict[str, object]] = []
    started = threading.Event()

    def read() -> None:
        for line in runner.stdout or ():
            lines.append(json.loads(line))
            started.set()

    threading.Thread(target=read, daemon=True).start()
    assert started.wait(400), (folder / "log").read_text()
    zero = time.monotonic() + 2.0
    wall = time.time() + 2.0
    truth, moments = [0] * QUERIES, [0.0] * QUERIES

    def write() -> None:
        events = sorted((when, n) for n, times in enumerate(world.changes) for when in times)
        with psycopg.connect(url, autocommit=True) as connection:
            for when, n in events:
                time.sleep(max(zero + when - time.monotonic(), 0.0))
                moments[n] = time.monotonic()
                connection.execute(f"UPDATE t{world.table[n]} SET value = value + 1 WHERE n = {n}".encode())
                truth[n] += 1
                moments[n] = time.monotonic()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    ran: dict[tuple[str, float], float] = {}  # runs of the application, and what each has cost
    tally = {"asked": 0, "right": 0, "ran": 0, "checked": 0, "agree": 0, "errors": 0}
    lock = threading.Lock()
    probe = psycopg.connect(url, autocommit=True)
    with QueryCache(folder / "afresh.db") as cache:
        run = cache.source.run

        def counted(key: str) -> Fetched:
            fetched = run(key)
            ran[key, fetched.started] = fetched.cost.seconds
            return fetched

        cache.source.run = counted  # type: ignore[method-assign]

        def ask(nth: int, when: float, n: int) -> None:
            before = truth[n]
            try:
                rows = cache.get(f"q{world.table[n]}", n=int(n))
            except Exception as error:
                print("error", error, file=sys.stderr)
                with lock:
                    tally["errors"] += 1
                    tally["asked"] += when >= begin
                return
            # What changed while it was answered counts for neither.
            right = rows[0][1] in (before, truth[n])
            with lock:
                if when >= begin:
                    tally["asked"] += 1
                    tally["right"] += right
                    tally["ran"] += not rows.kept
                    if nth % 50 == 0:
                        found = probe.execute(ASK.format(table=world.table[n], n=n).encode()).fetchone()
                        tally["checked"] += 1
                        tally["agree"] += bool(found and (found[0] == rows[0][1]) == right)

        threads = []
        for nth, (when, n) in enumerate(zip(world.asked, world.which, strict=True)):
            time.sleep(max(zero + when - time.monotonic(), 0.0))
            threads.append(threading.Thread(target=ask, args=(nth, when, n)))
            threads[-1].start()
            threads = [each for each in threads if each.is_alive()]
        for thread in threads:
            thread.join(30)
    runner.terminate()
    runner.wait(30)
    log.close()
    measured = [
        (str(line["url"]), float(str(line["time"])), float(str(line["took"])))
        for line in lines
        if str(line["url"]).startswith("sql:bench/q") and wall + begin <= float(str(line["time"])) <= wall + length
    ]
    ours = [cost for (_, when), cost in ran.items() if wall + begin <= when <= wall + length]
    refreshes = sum(took for url, when, took in measured if (url, when) not in ran)
    return {
        "share": tally["right"] / tally["asked"],
        "spent": sum(took for _, _, took in measured) / (length - begin),
        "true": (sum(ours) + refreshes) / (length - begin),
        "by_application": sum(ours) / (length - begin),
        "ran": tally["ran"] / tally["asked"],
        **{name: float(tally[name]) for name in ("asked", "checked", "agree", "errors")},
    }


def main() -> None:
    """Ours live, then the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="that are measured")
    parser.add_argument("--warm-up", type=float, default=240.0)
    parser.add_argument("--requests", type=float, default=20.0, help="a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reckoned-only", action="store_true", help="leave ours out")
    options = parser.parse_args()
    begin, length = options.warm_up, options.warm_up + options.seconds
    world = World(options.seed, length, options.requests)
    print(f"{QUERIES} queries of {1e3 * world.cost.min():.0f} to {1e3 * world.cost.max():.0f} ms, {TABLES} tables,")
    print(f"{world.rate.sum():.1f} changes and {options.requests:g} requests a second, {options.seconds:g} s measured")
    budgets = {"budget": BUDGET}
    if not options.reckoned_only:
        server = Postgres()
        try:
            found = ours(world, length, begin, server)
        finally:
            server.close()
        print(f"ours: {100 * found['share']:.1f} % right at {found['true']:.3f} s/s of database time,")
        print(f"  of which the application ran {found['by_application']:.3f}; the runner recorded {found['spent']:.3f}")
        print(
            f"  {found['asked']:.0f} requests, {100 * found['ran']:.1f} % ran the query, {found['errors']:.0f} errors;"
        )
        print(f"  of {found['checked']:.0f} that were run to see, {found['agree']:.0f} agree with what was counted")
        budgets["ours"] = max(found["true"], BUDGET)
    for name, budget in budgets.items():
        best = max(
            (result[0], ttl)
            for ttl in np.geomspace(0.5, 1000.0, 60)
            if (result := time_to_live(world, begin, ttl))[1] <= budget
        )
        print(
            f"at {budget:.3f} s/s ({name}): best single time to live ({best[1]:.0f} s) {100 * best[0]:.1f} %, ", end=""
        )
        print(f"in turn {100 * in_turn(world, begin, budget):.1f} %, ", end="")
        print(f"run always {100 * run_always(world, begin, budget):.1f} %")


if __name__ == "__main__":
    main()
