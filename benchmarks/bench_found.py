"""How fast links are told apart and written down, far beyond memory: known URLs, waiting URLs, a kill in between.

A stream of links as of pages with 25 links each: hosts by Zipf's law, half of the links to pages that were not linked
before, one host in a hundred a trap that is linked again and again and never twice with the same URL. Each link goes
the way that it goes in a crawl: fingerprint, cache, what is known, and what is new waits on disk with its text. What
making the stream takes is not counted. Halfway the process is killed (-9) and goes on; at the end what is known and
what waits is compared with what the stream says.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afresh.frontier import Sieve, fingerprints, host_of
from afresh.frontier.seen import Fingerprints
from afresh.sources.web.known import Known
from afresh.store.waiting import Waiting

LINKS = 25  # of a page
PAGES = 2_000  # whose links are looked up together
NEW = 0.5  # of the links
TRAPS = 100  # one host in so many
SAMPLE = 1_000_000


class Stream:
    """Links, batch by batch: the same for the same seed."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self.counts = np.zeros(hosts, np.int64)  # pages of each host that were linked
        self.total = 0

    def batch(self, nth: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Host and page of each link."""
        rng = np.random.default_rng(nth)
        size = LINKS * PAGES
        host = np.minimum(np.exp(rng.random(size) * np.log(self.hosts)).astype(np.int64), self.hosts - 1)
        before = self.counts[host]
        new = (rng.random(size) < NEW) | (before == 0) | (host % TRAPS == TRAPS - 1)
        page = (before * rng.random(size) ** 3).astype(np.int64)
        # The new ones of each host are its next pages, in order.
        places = np.flatnonzero(new)
        order = places[np.argsort(host[places], kind="stable")]
        grouped = host[order]
        starts = np.flatnonzero(np.concatenate(([True], grouped[1:] != grouped[:-1])))
        sizes = np.diff(np.concatenate((starts, [len(order)])))
        page[order] = self.counts[grouped] + np.arange(len(order)) - np.repeat(starts, sizes)
        self.counts[grouped[starts]] += sizes
        self.total += len(order)
        return host, page


def name(host: int) -> str:
    """The name of a host."""
    return f"www.site{host:07d}.example"


def address(host: int, page: int) -> str:
    """The URL of a page."""
    return f"http://www.site{host:07d}.example/section/{page % 97}/page-of-some-length-{page}.html"


def feed(folder: Path, hosts: int, urls: int, memory: int, first: int) -> None:
    """Feed the stream from a batch on; says after each batch that it is safe, and at the end what it took."""
    stream, nth = Stream(hosts), 0
    for nth in range(first):
        stream.batch(nth)
    known, waiting = Known(folder / "known", memory=memory * 5 // 8), Waiting(folder / "waiting", memory=memory // 4)
    known_after_start = len(known)
    for marks, _ in waiting.replay(host_of):
        known.keep(marks[known.look(marks)])
    print(json.dumps({"ready": len(known), "before_replay": known_after_start, "waiting": len(waiting)}), flush=True)
    cache, secret, names = Sieve(1 << 16), known.secret, [name(host) for host in range(hosts)]
    spent = {"fingerprint": 0.0, "look": 0.0, "keep": 0.0, "put": 0.0}
    links = new_links = 0
    longest = 0.0  # that the caller waited for what is put
    nth, began, all_began, made = first, time.monotonic(), time.process_time(), 0.0
    while stream.total < urls:
        start = time.thread_time()
        host, page = stream.batch(nth)
        texts = list(map(address, host.tolist(), page.tolist()))
        at = time.thread_time()
        made += at - start
        marks = fingerprints(texts, secret)
        after = time.thread_time()
        spent["fingerprint"] += after - at
        unmet = np.flatnonzero(~cache.met_many(marks))
        unmet = unmet[known.look(marks[unmet])]
        at = time.thread_time()
        spent["look"] += at - after
        found, put_at = unmet.tolist(), time.monotonic()
        waiting.put(marks[unmet], [texts[n] for n in found], [names[n] for n in host[unmet].tolist()], [3] * len(found))
        after, longest = time.thread_time(), max(longest, time.monotonic() - put_at)
        spent["put"] += after - at
        known.keep(marks[unmet])
        spent["keep"] += time.thread_time() - after
        links, new_links, nth = links + len(texts), new_links + len(found), nth + 1
        print(json.dumps({"batch": nth, "new": new_links}), flush=True)
    at = time.thread_time()
    waiting.close()
    known.close()
    spent["close"] = time.thread_time() - at
    # What threads took beside: chunks of what waits, merges of what is known.
    spent["put"] += time.process_time() - all_began - made - sum(spent.values())
    whole = {"links": links, "new": new_links, "made": made, "seconds": time.monotonic() - began}
    print(json.dumps(whole | spent | {"peak": peak(), "hits": cache.hits, "longest": longest}), flush=True)


def peak() -> int:
    """Bytes of memory that this process had at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def run(folder: Path, options: argparse.Namespace, first: int, stop_at: int) -> tuple[int, dict[str, float]]:
    """Feed in a process of its own, killed once so many are new; the batches that are safe, its last word."""
    command = [sys.executable, __file__, "--urls", str(options.urls), "--hosts", str(options.hosts)]
    command += ["--memory", str(options.memory), "--feed", str(folder), "--first", str(first)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    batch, said = first, {}
    for line in process.stdout or ():
        said = json.loads(line)
        batch = int(said.get("batch", batch))
        if "ready" in said:
            print(f"  begins at batch {first}: {said}", flush=True)
        if said.get("new", 0) >= stop_at and "links" not in said:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return batch, said
    if process.wait():
        raise SystemExit(f"the feed ended with {process.returncode}")
    return batch, said


def check(folder: Path, hosts: int, batches: int, memory: int) -> None:
    """Compare with the stream: a sample of what is known and is not, and all that waits of some hosts."""
    stream = Stream(hosts)
    for nth in range(batches):
        stream.batch(nth)
    rng = np.random.default_rng(0)
    known, waiting = Known(folder / "known", memory=memory * 5 // 8), Waiting(folder / "waiting", memory=memory // 4)
    host = rng.integers(0, hosts, 4 * SAMPLE)
    host = host[stream.counts[host] > 0][:SAMPLE]
    page = (stream.counts[host] * rng.random(host.size)).astype(np.int64)
    there = list(map(address, host.tolist(), page.tolist()))
    absent = list(map(address, host.tolist(), (stream.counts[host] + page).tolist()))
    sample: list[Fingerprints] = [fingerprints(some, known.secret) for some in (there, absent)]
    missing, wrong = int(known.look(sample[0]).sum()), len(set(absent)) - int(known.look(sample[1]).sum())
    print(f"  of {len(there):,} URLs that were linked {missing:,} are not known; of as many others {wrong:,} are")
    print(f"  known {len(known):,}, waiting {len(waiting):,}, in the stream {stream.total:,}")
    taken, expected = 0, 0
    bad = 0
    for number in rng.permutation(len(waiting.names)).tolist():
        if taken > SAMPLE:
            break
        urls = [url for url, _ in waiting.take(number, 1 << 40)]
        which = int(waiting.names[number][8:15])
        plain = [address(which, nth) for nth in range(int(stream.counts[which]))]
        bad += sorted(urls) != sorted(plain)
        taken, expected = taken + len(urls), expected + len(plain)
    print(f"  taken {taken:,} of {expected:,} waiting URLs of some hosts; hosts that differ: {bad}")
    known.close()
    waiting._let_go()


def main() -> None:
    """Print everything."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--urls", type=float, default=1e6, help="that are different")
    options.add_argument("--hosts", type=float, default=1e5)
    options.add_argument("--memory", type=float, default=512, help="MiB")
    options.add_argument("--folder", type=Path, help="where a folder is made; default: the system's place")
    options.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    hosts, urls, memory = int(chosen.hosts), int(chosen.urls), int(chosen.memory * (1 << 20))
    if chosen.feed:
        feed(chosen.feed, hosts, urls, memory, chosen.first)
        return
    folder = Path(tempfile.mkdtemp(dir=chosen.folder))
    try:
        killed_at, _ = run(folder, chosen, 0, urls // 2)
        print(f"killed after batch {killed_at}", flush=True)
        batches, said = run(folder, chosen, killed_at, 1 << 60)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        links, new = said["links"], said["new"]
        looks, texts = said["fingerprint"] + said["look"] + said["keep"], said["put"]
        everything = looks + texts + said["close"]
        print(
            f"the second half: {links:,} links, {new:,} new; {100 * said['hits'] / links:.1f} % answered by the cache"
        )
        print(
            f"  fingerprints made, looked up and kept: {links / looks:,.0f}/s"
            f" (looked up and kept alone {links / (looks - said['fingerprint']):,.0f}/s)"
        )
        print(
            f"  new URLs with their text to disk, all threads included: {new / texts:,.0f}/s;"
            f" all together {new / everything:,.0f} new/s; the longest wait for it {1000 * said['longest']:,.0f} ms"
        )
        print(
            f"  by the clock {said['seconds']:.0f} s, of which making links took {said['made']:.0f} s of processor time"
        )
        print(f"  memory {said['peak'] / 2**20:,.0f} MiB at most; on disk {size / 2**30:.2f} GiB")
        check(folder, hosts, batches, memory)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
