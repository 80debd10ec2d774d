"""How fast URLs are found, spelled, judged and remembered, beside plainer ways of doing the same in the same run.

All rates are per second of processor time on one core. `--urls 1e8` fills the eliminator to that size (a minute or
two, and half a gigabyte); `--html FOLDER` reads real pages instead of made ones.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from afresh.frontier import Admission, Eliminator, Resolver, Robots, Scope, Seen, canonical_or_none, fingerprints, links
from afresh.store import SeenOnDisk

BATCH = 1_000_000
HERE = "https://www.example.org/docs/section/page.html"
WORDS = [f"word{n}" for n in range(3_000)]


def rate(count: int, work: Callable[[], object]) -> float:
    """How many a second of processor time."""
    began = time.process_time()
    work()
    return count / (time.process_time() - began)


def batch(nth: int, size: int = BATCH) -> NDArray[np.uint64]:
    """The n-th batch of fingerprints."""
    return np.random.default_rng(nth).integers(0, (1 << 64) - 1, size, np.uint64)


def fill(seen: Eliminator, count: int, size: int = BATCH) -> float:
    """Add so many new ones; how many a second, the making of them not counted."""
    spent = 0.0
    for nth in range(count // size):
        new = batch(nth, size)
        began = time.process_time()
        seen.add_many(new)
        spent += time.process_time() - began
    return len(seen) / spent


def bench_seen(count: int) -> None:
    """The eliminator in memory, beside a Python set."""
    seen = Seen()
    seen.add_many(batch(10**6, 1_000))  # compile
    seen = Seen()
    new = fill(seen, count)
    mixed = np.random.default_rng(1).permutation(
        np.concatenate([batch(0)[: 9 * BATCH // 10], batch(10**7)[: BATCH // 10]])
    )
    known = [batch(nth) for nth in range(min(3, count // BATCH))]
    old = max(rate(BATCH, lambda keys=keys: seen.add_many(keys)) for keys in known)  # type: ignore[misc]
    tenth = rate(BATCH, lambda: seen.add_many(mixed))
    small = max(rate(BATCH, lambda: [seen.add_many(part) for part in np.split(known[0], 1_000)]) for _ in range(2))
    print(
        f"seen, {len(seen):,} URLs: {seen.nbytes / len(seen):.3f} bytes each; known {old / 1e6:.2f} M/s"
        f" (batches of 1,000: {small / 1e6:.2f} M/s), one in ten new {tenth / 1e6:.2f} M/s, all new {new / 1e6:.2f} M/s"
    )
    plain: set[int] = set()
    few = [batch(nth).tolist() for nth in range(2)]
    into = rate(2 * BATCH, lambda: [plain.update(keys) for keys in few])
    out = rate(BATCH, lambda: [key in plain for key in few[0]])
    print(f"  a Python set of 2,000,000: known {out / 1e6:.2f} M/s, all new {into / 1e6:.2f} M/s, about 90 bytes each")


def bench_disk(count: int) -> None:
    """The eliminator on disk, in 64 MiB of memory."""
    with tempfile.TemporaryDirectory() as name, SeenOnDisk(Path(name) / "seen") as seen:
        new = fill(seen, count, 100_000)
        old = rate(BATCH, lambda: seen.add_many(np.concatenate([batch(nth, 100_000) for nth in range(10)])))
        small = rate(20_000, lambda: [seen.add_many(batch(nth, 1_000)) for nth in range(10**6, 10**6 + 20)])
        print(
            f"seen on disk, {len(seen):,} URLs, 64 MiB allowed: known {old / 1e6:.2f} M/s, all new {new / 1e6:.2f} M/s,"
            f" batches of 1,000 {small / 1e6:.2f} M/s"
        )


def bench_urls(rng: random.Random) -> None:
    """Spelling, fingerprints and scope."""
    plain = [f"/docs/{rng.choice(WORDS)}/{rng.choice(WORDS)}.html" for _ in range(20_000)]
    relative = [f"../{rng.choice(WORDS)}/{rng.choice(WORDS)}.html?page={n}#top" for n in range(20_000)]
    for name, found in (("rooted", plain), ("relative", relative)):
        resolve = Resolver(HERE)
        fast = rate(len(found), lambda found=found, resolve=resolve: [resolve(link) for link in found])  # type: ignore[misc]
        full = rate(len(found), lambda found=found: [canonical_or_none(link, HERE) for link in found])  # type: ignore[misc]
        print(f"canonical, {name} links: {fast:,.0f}/s, by the full parser {full:,.0f}/s; ratio {fast / full:.1f}")
    urls = ["https://www.example.org" + path for path in plain]
    keyed, bare = rate(len(urls), lambda: fingerprints(urls, b"secret")), rate(len(urls), lambda: fingerprints(urls))
    admission = Admission(Scope(hosts=["*.example.org"], exclude=["/private/", "*print="]))
    admission.admit(urls[0])
    admitted = rate(len(urls), lambda: [admission.admit(url) for url in urls])
    print(f"fingerprints: keyed {keyed:,.0f}/s, bare {bare:,.0f}/s; scope: {admitted:,.0f}/s")


def made_page(rng: random.Random) -> bytes:
    """A page of about 38 kB with 93 links, as manuals have them."""
    parts = ["<!DOCTYPE html><html><head><title>x</title></head><body><nav>"]
    for nth in range(93):
        text = " ".join(rng.choices(WORDS, k=45))
        parts.append(
            f'<div class="s"><p>{text} <a class="x" href="{rng.choice(WORDS)}-{nth}.html#p">more</a></p></div>'
        )
    return "".join([*parts, "</body></html>"]).encode()


def by_tree(page: bytes) -> int:
    """The same links through a tree of the page."""
    found = {canonical_or_none(node.attributes["href"] or "", HERE) for node in LexborHTMLParser(page).css("a[href]")}
    return len(found)


def bench_links(pages: Sequence[bytes]) -> None:
    """Links of pages, beside a tree parser that looks for `a` alone."""
    links(pages[0], HERE)  # compile
    ours = max(rate(len(pages), lambda: [links(page, HERE) for page in pages]) for _ in range(3))
    tree = max(rate(len(pages), lambda: [by_tree(page) for page in pages]) for _ in range(3))
    mean = sum(map(len, pages)) / len(pages)
    found = sum(len(links(page, HERE).urls) for page in pages) / len(pages)
    print(
        f"links, {len(pages)} pages of {mean / 1e3:.0f} kB and {found:.0f} links: {ours:,.0f} pages/s,"
        f" by a tree {tree:,.0f} pages/s; ratio {ours / tree:.1f}"
    )


def bench_robots() -> None:
    """Rules of a large robots.txt, and of one that is meant to hurt."""
    text = "User-agent: *\n" + "".join(f"Disallow: /{word}/\nDisallow: /*/{word}?x=\n" for word in WORDS[:200])
    robots = Robots(text, "afresh")
    bomb = Robots("User-agent: *\n" + "Disallow: /" + "*a" * 2_000 + "b\n", "afresh")
    parsed = rate(50, lambda: [Robots(text, "afresh") for _ in range(50)])
    asked = rate(2_000, lambda: [robots.allowed(HERE) for _ in range(2_000)])
    hurt = rate(100, lambda: [bomb.allowed("http://e.org/" + "a" * 2_000) for _ in range(100)])
    print(f"robots.txt with 400 rules: read {parsed:,.0f}/s, asked {asked:,.0f}/s; a bomb of 8,000 stars {hurt:,.0f}/s")


def main() -> None:
    """Print everything."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--urls", type=float, default=1e7, help="in the eliminator")
    options.add_argument("--html", type=Path, help="a folder of pages")
    chosen = options.parse_args()
    rng = random.Random(1)
    pages = [made_page(rng) for _ in range(200)]
    if chosen.html:
        pages = [path.read_bytes() for path in sorted(chosen.html.rglob("*.html"))[:1_000]]
    bench_links(pages)
    bench_urls(rng)
    bench_robots()
    bench_disk(min(int(chosen.urls), 10_000_000))
    bench_seen(int(chosen.urls))


if __name__ == "__main__":
    main()
