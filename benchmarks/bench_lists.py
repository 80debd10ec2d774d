"""How long a part of a list of pages takes, in a store of a million pages against one of ten thousand.

Processor time of one part of 50 pages, the median of many, at the beginning and deep inside the list.

    python benchmarks/bench_lists.py
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from afresh.store import Sqlite
from afresh.store.listing import Wanted
from afresh.types import Page

FEW, HOSTS = 10_000, 2_000
LISTS = {
    "by address": Wanted(),
    "longest unchecked": Wanted(order="checked"),
    "first added": Wanted(order="added"),
    "failing": Wanted(state="failing"),
    "gone": Wanted(state="gone"),
    "fresh": Wanted(state="fresh"),
    "paused": Wanted(state="paused"),
    "without a copy": Wanted(state="without"),
    "of a host": Wanted(host="h0007.example"),
    "containing a text": Wanted(text="99"),
    "containing what is nowhere": Wanted(text="nowhere"),
}
CHECK = """UPDATE pages SET checked = 1.7e9 + number % 1000, fetched = 1.7e9, crawls = 3, failures = (number % 100 = 0),
  gone = CASE WHEN number % 200 = 0 THEN 1.7e9 + number END, paused = (number % 50 = 1), request_rate = 1.0,
  change_rate = 1e-5, recall = 0.0, false_rate = 0.0, observations = 3
  WHERE number % 50 <> 7"""


def filled(path: Path, pages: int) -> Sqlite:
    """A store with so many pages on 2,000 hosts."""
    store = Sqlite(path)
    store.add(Page(f"https://h{n % HOSTS:04}.example/{n:07}", f"h{n % HOSTS:04}.example", 1.7e9) for n in range(pages))
    with store.writing() as connection:
        connection.execute(CHECK)
    return store


def part(store: Sqlite, wanted: Wanted, times: int = 31) -> float:
    """Seconds of a processor for a part: the median over parts that follow each other."""
    took, after = [], ""
    for _ in range(times):
        asked = Wanted(wanted.order, wanted.state, wanted.host, wanted.text, after)
        began = time.process_time()
        after = store.listed(asked).after
        took.append(time.process_time() - began)
    return statistics.median(took)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    pages = parser.parse_args().pages
    with tempfile.TemporaryDirectory() as folder:
        few, many = filled(Path(folder) / "few.db", FEW), filled(Path(folder) / "many.db", pages)
        print(f"{'list':28} {f'{FEW:,} pages':>14} {f'{pages:,} pages':>16} {'ratio':>7}")
        for name, wanted in LISTS.items():
            small, large = part(few, wanted), part(many, wanted)
            print(f"{name:28} {1000 * small:11.2f} ms {1000 * large:13.2f} ms {large / small:7.2f}")
        few.close()
        many.close()


if __name__ == "__main__":
    main()
