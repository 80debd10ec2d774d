"""What `QueryCache` says of kept results, beside the share of them that is right.

Cheap and costly queries, over tables of a real PostgreSQL that change hardly ever up to ten times a second, all out of
one budget of database time. Each table has a query of its own, which a reader asks for about once a second. The runner
is a process of its own. With `--still` nothing changes at first: that was learned, and something better has to be.

    python benchmarks/bench_stated.py --seconds 150 --budget "0.2 s/s"
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from afresh import QueryCache
from afresh.store import Sqlite
from postgres import Postgres


class Table(NamedTuple):
    """A table, and what the query over it takes."""

    name: str
    every: float  # seconds between two changes
    takes: float  # seconds


TABLES = [
    Table("still", 1e9, 0.01),
    Table("slow", 60.0, 0.3),
    Table("medium", 10.0, 0.05),
    Table("medium_costly", 10.0, 1.0),
    Table("fast", 1.5, 0.02),
    Table("fast_costly", 1.5, 1.0),
    Table("very_fast", 0.1, 0.02),
    Table("very_fast_costly", 0.1, 1.0),
]


class Answer(NamedTuple):
    """What was said of an answer, and what it was."""

    when: float
    said: float
    right: bool
    kept: bool


class World:
    """A server whose tables change, and readers who ask."""

    def __init__(self, tables: list[Table], still: float) -> None:
        self.tables, self.still = tables, still
        self.truth = {table.name: 0 for table in tables}
        self.answers: dict[str, list[Answer]] = {table.name: [] for table in tables}
        self.over = False
        self.server = Postgres()
        made = [f"CREATE TABLE {table.name} AS SELECT 0 AS n" for table in tables]
        self.url = self.server.fresh("bench", *made, "ANALYZE")

    def change(self, table: Table) -> None:
        """Change a table until it is over."""
        time.sleep(self.still)
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self.over:
                time.sleep(min(random.expovariate(1.0 / table.every), 1e4))
                if self.over:
                    return
                connection.execute(f"UPDATE {table.name} SET n = n + 1".encode())
                self.truth[table.name] += 1

    def ask(self, cache: QueryCache, table: Table, begun: float) -> None:
        """Ask for a result until it is over."""
        while not self.over:
            time.sleep(random.expovariate(1.0))
            before = self.truth[table.name]
            rows = cache.get(table.name)
            # What changed while it was answered counts for neither.
            right = not rows.kept or before <= rows[0][0] <= self.truth[table.name]
            self.answers[table.name].append(Answer(time.monotonic() - begun, rows.fresh, right, rows.kept))


def main() -> None:
    """Run it, and print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=150.0, help="of which the last six tenths count")
    parser.add_argument("--budget", default="0.2 s/s")
    parser.add_argument("--still", type=float, default=0.0, help="seconds at the start in which nothing changes")
    parser.add_argument("--only", default="", help="names of tables, with commas")
    options = parser.parse_args()
    world = World([each for each in TABLES if not options.only or each.name in options.only.split(",")], options.still)
    folder = Path(tempfile.mkdtemp(prefix="afresh-bench-"))
    settings = f'[[database]]\nname = "bench"\nurl = "{world.url}"\nbudget = "{options.budget}"\n'
    for table in world.tables:
        sql = f"SELECT n FROM {table.name}, pg_sleep({table.takes})"
        settings += f'[[query]]\nname = "{table.name}"\ndatabase = "bench"\nsql = "{sql}"\n'
    (folder / "afresh.toml").write_text(settings)
    Sqlite(folder / "afresh.db").close()
    command = [sys.executable, "-c", "from afresh.cli import main; main()", "run"]
    runner = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with QueryCache(folder / "afresh.db") as cache:
            while len(cache.definitions.queries) < len(world.tables):  # the runner compiles first
                time.sleep(0.5)
                cache.definitions.recall(Sqlite(folder / "afresh.db"))
            begun = time.monotonic()
            threads = [threading.Thread(target=world.ask, args=(cache, each, begun)) for each in world.tables]
            for table in world.tables:
                threading.Thread(target=world.change, args=(table,), daemon=True).start()
            for thread in threads:
                thread.start()
            time.sleep(options.seconds)
            world.over = True
            for thread in threads:
                thread.join()
    finally:
        runner.terminate()
        runner.wait(30)
        world.server.close()
    print("table              changes every   query takes   kept answers   right    said    run for who asked")
    for table in world.tables:
        late = [each for each in world.answers[table.name] if each.when > 0.4 * options.seconds]
        kept = [each for each in late if each.kept]
        right, said = sum(each.right for each in kept), sum(each.said for each in kept)
        every = "-" if table.every > 1e6 else f"{table.every:g} s"
        shares = f"{right / len(kept):8.3f}{said / len(kept):8.3f}" if kept else f"{'-':>8}{'-':>8}"
        ran = f"{100 * (1 - len(kept) / max(len(late), 1)):.0f} %"
        print(f"{table.name:18} {every:>13} {table.takes:11.2f} s {len(kept):14d}{shares} {ran:>20}")


if __name__ == "__main__":
    main()
