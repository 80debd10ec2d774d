"""Stores of small pages to be searched."""

import random

from afresh.index import FullText
from afresh.store import PageState, Record, Sqlite
from afresh.types import Copy, Crawl, Outcome, Page, Validators

WORDS = [
    "ferry",
    "boat",
    "harbour",
    "island",
    "time",
    "table",
    "winter",
    "summer",
    "ticket",
    "price",
    "crew",
    "deck",
    "storm",
    "café",
    "naïve",
    "x1",
    "run",
    "running",
]
HOSTS = ("a.example", "docs.b.example", "b.example", "b.example.evil.test")


def record(url: str, host: str, body: str, when: float = 1.0, content_type: str = "text/html") -> Record:
    checked = Validators(fingerprint=1 + len(body))
    copy = Copy(url, body.encode(), content_type, when, when, checked)
    state = PageState(Page(url, host), None, checked, when, when, crawls=1)
    return Record(Crawl(url, when, Outcome.NEW, size=len(body)), state, copy)


def page_of(rng: random.Random) -> str:
    title, heading = (" ".join(rng.choices(WORDS, k=rng.randint(0, 4))) for _ in range(2))
    text = " ".join(rng.choices(WORDS, k=rng.randint(0, 60)))
    linked = "".join(f'<a href="/{rng.randint(0, 30)}">more</a>' for _ in range(rng.randint(0, 3)))
    return f"<title>{title}</title><h2><a href=#x>{heading}</a></h2><p>{text}</p>{linked}"


def fill(kept: Sqlite, index: FullText, rng: random.Random, pages: int) -> dict[str, tuple[str, str]]:
    """Some pages, each with its host and its text, most of them written several times."""
    kept.accompany(index)
    urls = [(f"http://{host}/{nth}", host) for nth in range(pages) for host in [rng.choice(HOSTS)]]
    kept.add(Page(url, host) for url, host in urls)
    bodies = {}
    for _ in range(3):
        some = rng.sample(urls, pages // 2)
        bodies |= {url: (host, page_of(rng)) for url, host in some}
        kept.write([record(url, host, bodies[url][1]) for url, host in some])
    gone = rng.sample(sorted(bodies), 3)
    kept.write([], removed=gone)
    return {url: each for url, each in bodies.items() if url not in gone}
