"""Write the links of a crawl of a made web, as a trace for `afresh lab urlcache`.

Hosts have sizes by Zipf's law, and so have pages in-links. Of the 25 links of a page 5 are the menu of its host, 14
lead to pages of its host, of which early ones are linked more often, and 6 elsewhere, to popular pages of popular
hosts. The crawl is breadth-first on each host, and asks the hosts in turn.

    python benchmarks/made_trace.py made.urls --pages 1e6 --visited 3e5
    afresh lab urlcache made.urls
"""

import argparse
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from afresh.frontier.packed import mixed
from afresh.frontier.trace import MAGIC, RECORD

MENU, OWN, OTHER = 5, 14, 6
AT_ONCE = 20_000  # pages

Integers = NDArray[np.int64]


def marks(numbers: Integers, seed: int) -> NDArray[np.uint64]:
    """A fingerprint for each number."""
    return np.fromiter((mixed(np.uint64(each), np.uint64(seed)) for each in numbers.tolist()), np.uint64, numbers.size)


def main() -> None:
    """Write the file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path)
    options.add_argument("--pages", type=float, default=1e6)
    options.add_argument("--hosts", type=float, default=1e4)
    options.add_argument("--visited", type=float, default=3e5, help="pages that are crawled")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    rng, hosts = np.random.default_rng(chosen.seed), int(chosen.hosts)
    weight = 1.0 / np.arange(1, hosts + 1)
    size = np.maximum((chosen.pages * weight / weight.sum()).astype(np.int64), 1)
    first = np.concatenate(([0], np.cumsum(size)[:-1]))
    host_of = np.repeat(np.arange(hosts), size)
    rank = np.arange(size.sum()) - first[host_of]
    # Hosts in turn, each breadth-first.
    order = np.argsort(rank + rng.random(rank.size), kind="stable")[: int(chosen.visited)]
    page_marks, host_marks = marks(np.arange(rank.size), 1), marks(np.arange(hosts), 2)
    share = np.cumsum(weight / weight.sum())
    with chosen.file.open("wb") as file:
        file.write(MAGIC)
        for start in range(0, order.size, AT_ONCE):
            pages = order[start : start + AT_ONCE]
            own = host_of[pages][:, None]
            to = np.empty((pages.size, MENU + OWN + OTHER), np.int64)
            to[:, :MENU] = first[own] + np.minimum(np.arange(MENU), size[own] - 1)
            to[:, MENU : MENU + OWN] = first[own] + zipf(rng, size[own], OWN)
            elsewhere = np.minimum(np.searchsorted(share, rng.random((pages.size, OTHER))), hosts - 1)
            to[:, MENU + OWN :] = first[elsewhere] + zipf(rng, size[elsewhere], OTHER)
            found = np.empty(to.size, RECORD)
            found["url"], found["host"] = page_marks[to.ravel()], host_marks[host_of[to.ravel()]]
            found["page_host"] = np.repeat(host_marks[own.ravel()], to.shape[1])
            file.write(zstandard.ZstdCompressor(level=3).compress(found.tobytes()))


def zipf(rng: np.random.Generator, size: Integers, columns: int) -> Integers:
    """Ranks of pages, the n-th in proportion to about 1/n."""
    drawn = rng.random((size.shape[0], columns))
    return np.minimum(np.exp(drawn * np.log(size + 1.0)).astype(np.int64) - 1, size - 1)


if __name__ == "__main__":
    main()
