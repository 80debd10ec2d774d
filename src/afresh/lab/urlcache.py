"""How small a cache of URLs may be: misses of every rule over traces of links, by the size of the cache.

A full trace is every link in its order, as one crawler meets them. A cross-host trace is what several owners of hosts
would have to send each other: for each owner, the links on its pages to hosts of others, each with a cache of its own.
"""

import lzma
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import zstandard
from numpy.typing import NDArray

from afresh.errors import InputError
from afresh.frontier.cache import RULES, Found, Static, UrlCache, fewest_misses, most_asked_for
from afresh.frontier.split import mark_of_host, owner_of_mark
from afresh.frontier.trace import MAGIC, RECORD
from afresh.lab.labelled import opened

POLICIES = ("infinite", "min", "lru", "clock", "random", "sieve", "s3-fifo", "static", "static-online")
WATCHED = 10  # static-online watches one in so many of the requests first
MAX_LINE = 1 << 20  # bytes
MAX_LINKS = 100_000_000  # 24 bytes of memory each, and some more at work
CHUNK = 1 << 20  # bytes that are unpacked at a time
HINT = "Each line is '# ' with the address of a page, or a link on it; or let afresh crawl --trace FILE write one."

Progress = Callable[[int, int], None]
Marks = NDArray[np.uint64]


@dataclass(frozen=True)
class Trace:
    """Links in the order in which they were met: what each leads to, whose host that is, and whose page it stood on."""

    url: Marks
    host: Marks
    page_host: Marks

    @cached_property
    def distinct(self) -> int:
        """How many different URLs there are."""
        return int(np.unique(self.url).size)

    def crossing(self, owners: int) -> list[Marks]:
        """What each of so many owners of hosts meets that another one owns."""
        of_link, of_page = _owners(self.host, owners), _owners(self.page_host, owners)
        return [self.url[(of_page == each) & (of_link != each)] for each in range(owners)]


@dataclass(frozen=True, slots=True)
class Row:
    """How one rule does in caches of one size; `size` is that of each cache."""

    trace: str  # full or cross
    policy: str
    size: int
    misses: int
    requests: int
    caches: int
    file: str


def read_trace(path: Path) -> Trace:
    """A trace from a file of ours, or from text, which may be packed by xz or gzip."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.", hint="Check its name.")
    try:
        with path.open("rb") as file:
            ours = file.read(len(MAGIC)) == MAGIC
        trace = _read_ours(path) if ours else _read_text(path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=HINT) from None
    if trace.url.size == 0:
        raise InputError(f"{path} holds no links.", hint=HINT)
    return trace


def sizes_for(most: int) -> tuple[int, ...]:
    """Powers of two, up to the first that holds everything.

    >>> sizes_for(5)
    (1, 2, 4, 8)
    """
    return tuple(1 << k for k in range(max(0, most - 1).bit_length() + 1))


def study(
    traces: dict[str, Trace],
    *,
    owners: int,
    sizes: Sequence[int] = (),
    policies: Sequence[str] = POLICIES,
    progress: Progress = lambda done, total: None,
) -> list[Row]:
    """Every rule in caches of every size, over the full trace and the crossing links of every file."""
    parts = [
        (name, kind, streams)
        for name, trace in traces.items()
        for kind, streams in (("full", [trace.url]), ("cross", trace.crossing(owners) if owners > 1 else []))
        if any(stream.size for stream in streams)
    ]
    rows: list[Row] = []
    chosen = {
        (name, kind): sizes or sizes_for(max(int(np.unique(stream).size) for stream in streams))
        for name, kind, streams in parts
    }
    total = sum(len(each) for each in chosen.values()) * len(policies)
    for name, kind, streams in parts:
        requests, asking = sum(stream.size for stream in streams), sum(stream.size > 0 for stream in streams)
        for policy in policies:
            for size in chosen[name, kind]:
                missed = sum(misses(stream, policy, size) for stream in streams)
                rows.append(Row(kind, policy, size, missed, requests, asking, name))
                progress(len(rows), total)
    return rows


def misses(requests: Marks, policy: str, size: int) -> int:
    """How many of the requests miss.

    >>> misses(np.array([1, 2, 1, 3, 1, 2], np.uint64), "lru", 2)
    4
    """
    if policy == "min":
        return fewest_misses(requests, size)
    if policy == "static":
        cache: UrlCache = Static(size, most_asked_for(requests, size))
    elif policy == "static-online":
        cache = Found(size, max(1, requests.size // WATCHED))
    else:
        cache = RULES[policy](size)
    cache.met_many(requests)
    return cache.misses


def _owners(hosts: Marks, owners: int) -> NDArray[np.int64]:
    different, where = np.unique(hosts, return_inverse=True)
    return np.array([owner_of_mark(int(each), owners) for each in different], np.int64)[where]


def _read_ours(path: Path) -> Trace:
    """All that is whole: a crawl that was killed may leave half a frame.

    It is unpacked a little at a time, as a small file may hold more than there is memory.
    """
    columns: dict[str, list[Marks]] = {name: [] for name in RECORD.names or ()}
    left, size = b"", 0
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        unpacking = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        try:
            while found := unpacking.read(CHUNK):
                left += found
                count = len(left) // RECORD.itemsize
                records = np.frombuffer(left, RECORD, count)
                left = left[count * RECORD.itemsize :]
                size += count
                if size > MAX_LINKS:
                    raise InputError(f"{path} has more than {MAX_LINKS:,} links.", hint="Study it in parts.")
                for name, column in columns.items():
                    column.append(np.ascontiguousarray(records[name], np.uint64))
        except zstandard.ZstdError:
            raise InputError(f"{path} is damaged behind {size:,} links.", hint=HINT) from None
    return Trace(*(np.concatenate([np.empty(0, np.uint64), *columns.pop(name)]) for name in list(columns)))


def _read_text(path: Path) -> Trace:
    import xxhash

    marks: dict[str, int] = {}  # of hosts
    url, host, page_host = array("Q"), array("Q"), array("Q")
    page = None
    for number, line in _lines(path):
        if line.startswith(b"# "):
            page = _host_mark(line[2:], marks)
            continue
        if page is None:
            raise InputError(f"Line {number} of {path} is a link, and no page was named before it.", hint=HINT)
        url.append(xxhash.xxh3_64_intdigest(line))
        host.append(_host_mark(line, marks))
        page_host.append(page)
        if len(url) > MAX_LINKS:
            raise InputError(f"{path} has more than {MAX_LINKS:,} links.", hint="Study it in parts.")
    return Trace(*(np.frombuffer(column, np.uint64) for column in (url, host, page_host)))


def _host_mark(url: bytes, marks: dict[str, int]) -> int:
    text = url.decode("utf-8", "replace")
    try:
        host = (urlsplit(text).netloc.rpartition("@")[2] or text).lower()
    except ValueError:
        host = text
    mark = marks.get(host)
    if mark is None:
        mark = marks[host] = mark_of_host(host)
    return mark


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with opened(path) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise InputError(f"Line {number} of {path} is longer than {MAX_LINE >> 20} MiB.", hint=HINT)
            if line := line.strip():
                yield number, line
