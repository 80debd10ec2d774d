"""What earlier versions of pages cost a store: processor time of a crawl that brings a new copy, with and without them.

python benchmarks/bench_versions.py
"""

import random
import tempfile
import time
from pathlib import Path

from afresh.store import KeepVersions, PageState, Record, Sqlite
from afresh.types import Copy, Crawl, Outcome, Page, Validators

PAGES, CHANGES, BATCH = 2_000, 5, 250
WORDS = 1_500  # of a page


def crawl(path: Path, versions: int) -> tuple[float, int]:
    """(seconds of processor time for each crawl, bytes of the store) with so many versions kept."""
    rng = random.Random(1)
    pages = [Page(f"https://example.org/{nth}", "example.org") for nth in range(PAGES)]
    spent, count = 0.0, 0
    with Sqlite(path, keep_versions=KeepVersions(versions)) as store:
        store.add(pages)
        for change in range(CHANGES + 1):
            when, validators = float(change), Validators(fingerprint=change + 1)
            outcome = Outcome.CHANGED if change else Outcome.NEW
            for first in range(0, PAGES, BATCH):
                batch = []
                for page in pages[first : first + BATCH]:
                    body = " ".join(f"w{rng.randrange(5_000)}" for _ in range(WORDS)).encode()
                    state = PageState(page, None, validators, when, when)
                    copy = Copy(page.url, body, "text/html", when, when, validators)
                    batch.append(Record(Crawl(page.url, when, outcome), state, copy))
                began = time.process_time()
                store.write(batch)
                spent, count = spent + time.process_time() - began, count + BATCH
        return spent / count, store.space().used


def main() -> None:
    """Print a line for each number of versions, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        without, bare = crawl(Path(folder, "without.db"), 0)
        for versions in (1, 10):
            found, size = crawl(Path(folder, f"{versions}.db"), versions)
            ratio = f"{found / without:.2f} x the {1e6 * without:.0f} us without"
            print(f"{versions:3} versions: {1e6 * found:.0f} us a crawl, {ratio}; {size / bare:.1f} x the bytes")


if __name__ == "__main__":
    main()
