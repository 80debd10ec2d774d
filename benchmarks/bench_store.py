"""How fast the store writes and reads, as ratios to plainer ways of keeping the same bytes on the same disk.

Compared with: a file that is appended to and synced once per batch (what the disk can do), and a bare SQLite table
of uncompressed bodies (what SQLite can do), both with the same durability after every batch.
"""

import argparse
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from afresh.store import HostState, PageState, Record, Sqlite
from afresh.types import Beliefs, Copy, Crawl, Outcome, Page, Validators

WORDS = [f"word{n}" for n in range(3_000)]


def body(rng: random.Random, size: int) -> bytes:
    """Text that compresses about as web pages do: few words many times, with markup between."""
    text = " ".join(f'<p class="entry">{rng.choice(WORDS)} {rng.choice(WORDS)}</p>' for _ in range(size // 32))
    return text.encode()[:size]


def page(nth: int) -> Page:
    """The n-th page of a web of 1,000 hosts."""
    return Page(
        f"https://host{nth % 1000}.example/section/{nth * 7919 % 1_000_003}/page.html", f"host{nth % 1000}.example"
    )


def record(nth: int, content: bytes, moment: float) -> Record:
    """What a crawl that found a change leaves behind."""
    target, validators = page(nth), Validators(f'"{moment}"', "", nth)
    state = PageState(target, Beliefs(), validators, moment, moment, crawls=1, changes=1, learned=bytes(64))
    crawl = Crawl(target.url, moment, Outcome.CHANGED, 60.0, 1, 0.1, 200, len(content))
    copy = Copy(target.url, content, "text/html", moment, moment, validators)
    return Record(crawl, state, copy, HostState(target.host, moment))


def batches(records: list[Record], size: int) -> Iterator[list[Record]]:
    """The records in batches."""
    source = iter(records)
    while batch := list(islice(source, size)):
        yield batch


def rate(count: int, work: Callable[[], object]) -> float:
    """How many a second."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def write_store(folder: Path, records: list[Record], size: int) -> float:
    """The store itself."""
    with Sqlite(folder / f"store{size}.db") as store:
        store.add(item.state.page for item in records)
        store.claim()
        return rate(len(records), lambda: [store.write(batch) for batch in batches(records, size)])


def write_table(folder: Path, records: list[Record], size: int) -> float:
    """The standard library's SQLite, one table, bodies as they are."""
    table = sqlite3.connect(folder / f"table{size}.db", isolation_level=None)
    table.execute("PRAGMA journal_mode=wal")
    table.execute("PRAGMA synchronous=full")
    table.execute("CREATE TABLE bodies (url TEXT PRIMARY KEY, body BLOB)")

    def work() -> None:
        for batch in batches(records, size):
            table.execute("BEGIN")
            rows = [(item.state.page.url, item.copy.body) for item in batch if item.copy]
            table.executemany("INSERT OR REPLACE INTO bodies VALUES (?, ?)", rows)
            table.execute("COMMIT")

    found = rate(len(records), work)
    table.close()
    return found


def write_file(folder: Path, records: list[Record], size: int) -> float:
    """One file, appended to, synced after every batch."""
    with (folder / f"file{size}").open("ab") as file:

        def work() -> None:
            for batch in batches(records, size):
                file.write(b"".join(item.copy.body for item in batch if item.copy))
                file.flush()
                os.fsync(file.fileno())

        return rate(len(records), work)


def bench_writes(folder: Path, count: int, body_size: int) -> None:
    """Records written per second, in batches of several sizes."""
    rng = random.Random(1)
    records = [record(nth, body(rng, body_size), float(nth)) for nth in range(count)]
    for size in (10, 100, 1000):
        store, table, file = (write(folder, records, size) for write in (write_store, write_table, write_file))
        print(
            f"write, batches of {size:>4}: store {store:>7,.0f}/s, bare table {table:>7,.0f}/s, file {file:>7,.0f}/s;"
            f" store/table {store / table:.2f}, store/file {store / file:.2f}"
        )
    kept, bare = (folder / "store1000.db").stat().st_size, (folder / "table1000.db").stat().st_size
    print(f"file size: store {kept / 1e6:.1f} MB, bare table {bare / 1e6:.1f} MB; ratio {kept / bare:.2f}")


def bench_reads(folder: Path, count: int) -> None:
    """Copies and states read per second, in random order."""
    rng = random.Random(2)
    urls = [page(rng.randrange(count)).url for _ in range(count)]
    table = sqlite3.connect(folder / "table1000.db")
    bare = rate(
        count, lambda: [table.execute("SELECT body FROM bodies WHERE url = ?", (url,)).fetchone() for url in urls]
    )
    table.close()
    with Sqlite(folder / "store1000.db") as store:
        copies = rate(count, lambda: [store.copy(url) for url in urls])
        states = rate(count, lambda: [store.state(url) for url in urls])
        histories = rate(count, lambda: [store.history(url) for url in urls])
    print(
        f"read: copy {copies:,.0f}/s (bare table {bare:,.0f}/s, ratio {copies / bare:.2f}), state {states:,.0f}/s,"
        f" history {histories:,.0f}/s"
    )


def bench_bulk(folder: Path, count: int) -> None:
    """Adding many pages, streaming their states, and the totals."""
    with Sqlite(folder / "bulk.db") as store:
        added = rate(count, lambda: store.add(page(nth) for nth in range(count)))
        streamed = rate(count, lambda: sum(1 for _ in store.states()))
        totals = rate(1_000, lambda: [store.totals() for _ in range(1_000)])
        counted = rate(1, lambda: store._read("SELECT count(*), sum(body_bytes) FROM pages"))
    print(
        f"{count:,} pages: add {added:,.0f}/s, states {streamed:,.0f}/s,"
        f" totals {1e6 / totals:.0f} µs ({totals / counted:,.0f} times as fast as counting)"
    )


def main() -> None:
    """Print everything."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=5_000)
    options.add_argument("--body", type=int, default=10_000, help="bytes of a body")
    options.add_argument("--pages", type=int, default=100_000, help="pages added in bulk")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bench_writes(Path(name), chosen.records, chosen.body)
        bench_reads(Path(name), chosen.records)
        bench_bulk(Path(name), chosen.pages)


if __name__ == "__main__":
    main()
