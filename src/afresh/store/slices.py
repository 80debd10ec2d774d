"""Which slice a page belongs to: a number that follows from its address alone, the same for all pages of a lane.

Stores that are divided among machines or processes are divided by slices. There are enough of them that a thousand
workers get about the same number each, and few enough that one statement can speak of all.
"""

import re

import xxhash

SLICES = 4096
_LANE = re.compile(r"(?:https?://([^/?#]*)|(file:)|([^/?#]*))")


def slice_of(url: str) -> int:
    """The slice of a page, 0 … 4095.

    >>> slice_of("https://example.org/a?b") == slice_of("http://example.org/") == slice_of_host("example.org")
    True
    >>> slice_of("sql:shop/top?day=1") == slice_of_host("sql:shop"), slice_of("file:///a/b") == slice_of_host("file:/a")
    (True, True)
    """
    match = _LANE.match(url)
    return slice_of_host((match[1] or match[2] or match[3] or "") if match else "")


def slice_of_host(host: str) -> int:
    """The slice of all pages of a host, or of another lane."""
    if host.startswith("file:"):
        host = "file:"  # where one mount ends and the next begins, an address does not say
    return xxhash.xxh3_64_intdigest(host.encode("utf-8", "surrogatepass")) % SLICES
