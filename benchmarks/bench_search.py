"""The full-text index on many documents: what an update costs, judged queries included; how long a search takes; bytes.

    python benchmarks/bench_search.py [documents] [engine]

Documents are made of 30,000 words with Zipf frequencies, about 300 words each, written in batches of 256.
"""

import random
import statistics
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from afresh.index import FullText, Search, check, parse
from afresh.index.engines import engine_named
from afresh.index.quality import LISTED, Quality
from afresh.index.scoring import Collection, Wanted, rarity, wanted
from afresh.index.words import Tokenizer
from afresh.store import PageState, Record, Sqlite
from afresh.types import Copy, Crawl, Outcome, Page, Validators

DOCUMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
ENGINE = sys.argv[2] if len(sys.argv) > 2 else "fts5"
QUERIES, UPDATES, BATCH = 500, 2_000, 256
RNG = random.Random(1)
WORDS = [f"w{nth:x}" for nth in range(30_000)]
WEIGHTS = list(accumulate(1.0 / (nth + 3) for nth in range(len(WORDS))))


def text(rng: random.Random = RNG) -> str:
    """A document."""
    some = rng.choices(WORDS, cum_weights=WEIGHTS, k=rng.randint(100, 500))
    return f"<title>{' '.join(some[:5])}</title><h2>{' '.join(some[5:9])}</h2><p>{' '.join(some[9:])}"


def record(url: str, body: str, when: float) -> Record:
    """A crawl that found it."""
    checked = Validators(fingerprint=hash(body) & 0xFFFFFFFF)
    copy = Copy(url, body.encode(), "text/html", when, when, checked)
    state = PageState(Page(url, "a.example"), None, checked, when, when, crawls=1)
    return Record(Crawl(url, when, Outcome.NEW, size=len(body)), state, copy)


def write(kept: Sqlite, urls: list[str], bodies: list[str], when: float) -> float:
    """CPU seconds a document."""
    began = time.process_time()
    for first in range(0, len(urls), BATCH):
        some = zip(urls[first : first + BATCH], bodies[first : first + BATCH], strict=True)
        kept.write([record(url, body, when) for url, body in some])
    return (time.process_time() - began) / len(urls)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, Sqlite(Path(folder) / "afresh.db") as kept:
        index, urls = FullText(engine=engine_named(ENGINE)), [f"http://a.example/{nth}" for nth in range(DOCUMENTS)]
        kept.add(Page(url, "a.example") for url in urls)
        some = [text() for _ in range(BATCH)]
        without = write(kept, urls[:BATCH], some, 1.0)
        kept.accompany(index)
        size = 0
        for first in range(0, DOCUMENTS, BATCH):
            part = urls[first : first + BATCH]
            bodies = [text() for _ in part]
            size += sum(map(len, bodies))
            kept.write([record(url, body, 1.0) for url, body in zip(part, bodies, strict=True)])
        print(f"documents             {DOCUMENTS:,}, text {size / 1e6:.0f} MB, queries followed {QUERIES}")
        _caught_up(kept, index)
        _updates(kept, index, urls, without)
        _caught_up(kept, index)
        _searches(kept)
        reader = kept.reader()
        tables = dict(reader.execute("SELECT name, sum(pgsize) FROM dbstat WHERE name LIKE 'search%' GROUP BY name"))
        reader.close()
        words = sum(taken for name, taken in tables.items() if name in ("search_data", "search_idx", "search_docsize"))
        other = sum(tables.values()) - words
        words += index.engine.size(kept.reader()) if index.engine.batched else 0
        print(f"index                 words {words / size:.2f} and texts {other / size:.2f} times the text's bytes")
        began = time.process_time()
        assert not list(check.problems(kept, index))
        print(f"check                 {time.process_time() - began:.1f} s of CPU, all agrees")


def _caught_up(kept: Sqlite, index: FullText) -> None:
    """Write what an engine that saves in batches has not yet."""
    if index.engine.batched:
        began = time.process_time()
        count = check.rebuild(kept, index, anew=False)
        print(f"caught up             {1e3 * (time.process_time() - began) / count:.2f} ms of CPU a copy ({count:,})")


def _updates(kept: Sqlite, index: FullText, urls: list[str], without: float) -> None:
    reader, quality = kept.reader(), Quality(Tokenizer("words"))
    pages, words = index.counts(reader)
    for _ in range(QUERIES):
        query = parse(" ".join(RNG.choices(WORDS, cum_weights=WEIGHTS, k=2)))
        asked = wanted(query, quality.tokenizer)
        rare = {term: rarity(index.matching(reader, term), pages) for term in asked.words}
        found = index.search(reader, query, LISTED)
        ready = Wanted(query, asked.words, rare)
        quality.follow(query.text, ready, Collection(pages, words / pages), found, 1.0 / QUERIES)
    writes, judged = [], []
    for url in RNG.sample(urls, min(UPDATES, len(urls))):
        body = text()
        number = kept.numbers([url])[0]
        began = time.process_time()
        old = index.content(reader, number)
        new = index.content_of(Copy(url, body.encode(), "text/html", 2.0, 2.0))
        quality.judge(url, "a.example", old, new)
        middle = time.process_time()
        kept.write([record(url, body, 2.0)])
        judged.append(middle - began)
        writes.append(time.process_time() - middle)
    both = [sum(each) for each in zip(writes, judged, strict=True)]
    ranks = statistics.quantiles(both, n=20)
    print(f"without the index     {1e3 * without:.2f} ms of CPU a copy, in batches of {BATCH}")
    print(f"an update, on its own {1e3 * statistics.median(both):.2f} ms of CPU (median), {1e3 * ranks[-1]:.2f} (p95)")
    print(f"  of which judged     {1e3 * statistics.median(judged):.2f} ms")
    reader.close()


def _searches(kept: Sqlite) -> None:
    with Search(kept.path, tell=False) as search:
        for words in (1, 2, 3):
            took, cpu = [], []
            for _ in range(200):
                query = " ".join(RNG.choices(WORDS, cum_weights=WEIGHTS, k=words))
                began, clock = time.perf_counter(), time.thread_time()
                search.search(query)
                took.append(1e3 * (time.perf_counter() - began))
                cpu.append(1e3 * (time.thread_time() - clock))
            slow, busy = statistics.quantiles(took, n=20)[-1], statistics.quantiles(cpu, n=20)[-1]
            median = statistics.median(cpu)
            cost = f"{median:.1f} ms of CPU (median), {busy:.1f} (p95)"
            print(f"a search, {words} words     {cost}; {slow:.1f} ms by the clock (p95)")


if __name__ == "__main__":
    main()
