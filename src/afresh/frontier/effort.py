"""What a page costs us to read, and how long its host rests for that, so that no host takes the others' processor time.

Each host has a turn of its own, and a page of a megabyte or with thousands of new links takes a hundred times as long
to read as most. Where several sites compete, its host therefore rests in proportion. What ordinary pages cost is free.
Reckoned are bytes, links and their lengths, not seconds: a busy machine must not make hosts wait.
"""

from collections.abc import Iterable

from afresh.frontier.links import Links
from afresh.types import Fetched

SECONDS_PER_BYTE = 2e-8  # to receive, compare and store
SECONDS_PER_LINK = 4e-5  # that was not met before: to look it up and to admit it
USUAL_LENGTH = 100  # bytes of an address that this includes
SECONDS_PER_LINK_BYTE = 5e-7  # beyond that
FREE_SECONDS = 5e-3  # of every page
SHARE = 0.01  # of our time that one host may take beyond that
MAX_REST = 30.0  # seconds


def rest_for(size: int, addresses: Iterable[str] = ()) -> float:
    """Seconds that a host rests at least after so many bytes that name these addresses.

    >>> round(rest_for(1_000, ["x" * 2_000] * 250), 1)
    24.3
    """
    lengths = [len(address) for address in addresses]
    beyond = max(sum(lengths) - len(lengths) * USUAL_LENGTH, 0)
    effort = size * SECONDS_PER_BYTE + len(lengths) * SECONDS_PER_LINK + beyond * SECONDS_PER_LINK_BYTE
    return min(max(effort - FREE_SECONDS, 0.0) / SHARE, MAX_REST)


def rest_after(fetched: Fetched, links: Links | None) -> float:
    """Seconds that a host rests at least after this page.

    >>> rest_after(Fetched("http://a.example/", 0.0, 0.0, body=bytes(100_000)), None)
    0.0
    >>> round(rest_after(Fetched("http://a.example/", 0.0, 0.0, body=bytes(1_000_000)), None), 1)
    1.5
    """
    return rest_for(len(fetched.body), links.urls if links else ())
