"""Compiles what the frontier runs before a crawl begins, so that nothing is compiled while hosts wait."""

import numpy as np

from afresh.frontier.cache import Sieve
from afresh.frontier.links import links
from afresh.frontier.seen import Seen

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def compile_ahead() -> None:
    """Compile all that gathers links and remembers URLs, by doing it once: with few of them, and with many."""
    links(b'<a href="x">x</a>', "http://example.org/")
    seen = Seen(large=4_000, bulk=1_000)
    keys = np.arange(1, 9_001, dtype=np.uint64) * _SPREAD
    for first in range(0, 6_000, 600):
        seen.look(keys[:1])
        seen.add_many(keys[first : first + 600])
    seen.look(keys[:1])
    seen.add_many(keys[6_000:])
    Sieve(4).met_many(keys[:9])
