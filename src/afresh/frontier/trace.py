"""The links of a crawl as they were met, 24 bytes each: what was linked to, its host, and the host of the page.

URLs and hosts are 64-bit fingerprints (xxh3, without a secret), so that traces of several crawls can be compared and
no address is given away by the file itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.frontier.seen import fingerprints
from afresh.frontier.split import mark_of_host
from afresh.frontier.url import host_of

MAGIC = b"afresh-url-trace\x01\n"  # what a file begins with; compressed frames of records follow
RECORD = np.dtype([("url", "<u8"), ("host", "<u8"), ("page_host", "<u8")])

Records = NDArray[Any]


def records(page_host: str, urls: Sequence[str]) -> Records:
    """The links of one page, in their order.

    >>> found = records("a.example", ["http://a.example/x", "http://b.example/"])
    >>> (found["host"] == found["page_host"]).tolist()
    [True, False]
    """
    found = np.empty(len(urls), RECORD)
    found["url"] = fingerprints(urls)
    hosts = [host_of(url) for url in urls]
    marks = {host: mark_of_host(host) for host in {*hosts, page_host}}
    found["host"] = [marks[host] for host in hosts]
    found["page_host"] = marks[page_host]
    return found
