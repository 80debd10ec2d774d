"""Which of the URLs that were found are worth keeping: where a crawl may go, how far, and what looks like a trap.

Rules that need only the URL come first (hosts, paths, depth, shape), then those that count what was admitted: pages of
a host, hosts of a site, query variants of a path, pages of one pattern, months of a calendar. A refusal names its rule,
so that every URL that was left out can be explained. Patterns are globs, matched in linear time.

Counts are kept in bounded memory: of hosts and sites exactly, of paths and patterns in a table of fixed size which may
count too much, never too little, so that no cap can be passed.
"""

import re
import zlib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import xxhash

from afresh.errors import ConfigError
from afresh.frontier.glob import Glob
from afresh.frontier.host_patterns import HostPatterns

_SESSION = re.compile(
    r"[;?&](?:jsessionid|phpsessid|sessionid|session_id|session|sid|aspsessionid[a-z]{0,8}|cfid|cftoken|s_id|sess)=",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[0-9]+")
# A run is taken whole and then looked at: were a digit looked for ahead from every place, time would be quadratic.
_HEX = re.compile(r"[0-9A-Fa-f-]{16,}")
# A year and a month, apart from each other and from other numbers.
_MONTH = re.compile(r"(?<![0-9])([1-9][0-9]{3})[-/._](0?[1-9]|1[0-2])(?![0-9])")


@dataclass(frozen=True, slots=True)
class Traps:
    """How much of one sort is believed. A cap of 0 switches a rule off."""

    segments: int = 20  # of a path
    repeats: int = 2  # of one segment, or of a run of segments, in a row
    same_segment: int = 4  # of one segment anywhere in the path
    parameters: int = 12  # of a query
    sessions: bool = True  # refuse session identifiers
    variants: int = 200  # queries of one path
    pattern: int = 20_000  # pages whose addresses differ in numbers and parameter values alone
    months: int = 400  # that the dates in such addresses name: a news archive ends, a calendar does not
    pages_per_host: int = 100_000
    hosts_per_site: int = 1_000  # names below one registrable domain


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a URL is left out: the rule, and what of the URL it is about."""

    rule: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.rule} ({self.detail})" if self.detail else self.rule


class Scope:
    """Where a crawl may go. Hosts are names or `*.name` (the name itself included); none means anywhere.

    Hosts that are `never` to be asked are out of every scope.

    Paths to include and exclude are globs over path and query, as in robots.txt: `/docs/*.html$`, `*print=`.

    >>> scope = Scope(hosts=["*.example.org"], exclude=["/private/"], depth=3)
    >>> [str(scope.refusal(url, depth=1)) for url in ("http://www.example.org/", "http://example.org/private/x")]
    ['None', 'exclude (/private/)']
    >>> str(scope.refusal("http://other.org/", depth=1)), str(scope.refusal("http://example.org/", depth=4))
    ('host (other.org)', 'depth (4)')
    """

    def __init__(
        self,
        *,
        hosts: Iterable[str] = (),
        never: Iterable[str] = (),
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        depth: int | None = None,
        traps: Traps | None = None,
    ) -> None:
        self._hosts = HostPatterns(hosts)
        self._sites = {site_of(name) for name in self._hosts.names}
        self._never = HostPatterns(never)
        self._include = [_path_pattern(pattern) for pattern in include]
        self._exclude = [_path_pattern(pattern) for pattern in exclude]
        self._depth = depth
        self.traps = traps or Traps()

    def names(self, host: str) -> bool:
        """Whether one of the hosts or domains that it names is of the site of this host."""
        return site_of(host) in self._sites

    def refusal(self, url: str, depth: int = 0) -> Refusal | None:
        """Why a canonical URL, found this many links from a seed, is out of scope; None if it is not."""
        host, path, query = _parts(url)
        if host in self._never:
            return Refusal("never", host)
        if self._hosts and host not in self._hosts:
            return Refusal("host", host)
        if self._depth is not None and depth > self._depth:
            return Refusal("depth", str(depth))
        tail = path + query
        if self._include and not any(glob.matches(tail) for glob in self._include):
            return Refusal("include")
        for glob in self._exclude:
            if glob.matches(tail):
                return Refusal("exclude", glob.pattern)
        return _shape_refusal(path, query, self.traps)


class Admission:
    """Admits URLs within a scope while the caps hold. Ask only for URLs that were never admitted before.

    Invariant: no cap of `scope.traps` is ever passed, however many URLs are offered.

    >>> admission = Admission(Scope(traps=Traps(variants=2)))
    >>> [str(admission.admit(f"http://e.org/list?sort={n}")) for n in "abc"]
    ['None', 'None', 'variants (/list)']
    """

    def __init__(self, scope: Scope, *, table: int = 1 << 20) -> None:
        self.scope = scope
        self._pages: dict[str, int] = {}  # by host
        self._hosts: dict[str, int] = {}  # by site
        self._counts = Counts(table)

    def admit(self, url: str, depth: int = 0) -> Refusal | None:
        """Count a URL and let it in, or say why not."""
        return self.scope.refusal(url, depth) or self.count(url)

    def count(self, url: str) -> Refusal | None:
        """The same for a URL that is known to be within the scope."""
        host, path, query = _parts(url)
        site = self._new_on(host)
        capped = _capped(host, path, query, self.scope.traps) + self._month(host, path, query)
        refusal = self._over(host, site, capped)
        if refusal is not None:
            return refusal
        for rule, key, _, _ in capped:
            self._counts.add(rule + key)
        self._pages[host] = self._pages.get(host, 0) + 1
        if site:
            self._hosts[site] = self._hosts.get(site, 0) + 1
        return None

    def full(self, url: str) -> Refusal | None:
        """The cap that keeps a URL out, None if there is room for it; nothing is counted.

        A trap offers new URLs without end. What is refused by this before it is remembered as seen takes no memory.
        """
        host, path, query = _parts(url)
        capped = _capped(host, path, query, self.scope.traps) + self._month(host, path, query)
        return self._over(host, self._new_on(host), capped)

    def _new_on(self, host: str) -> str:
        """The site that would get one host more with this one; "" if none would, or nobody counts."""
        return site_of(host) if self.scope.traps.hosts_per_site and not self._pages.get(host, 0) else ""

    def _over(self, host: str, site: str, capped: list[tuple[str, str, str, int]]) -> Refusal | None:
        traps = self.scope.traps
        if traps.pages_per_host and self._pages.get(host, 0) >= traps.pages_per_host:
            return Refusal("pages_per_host", host)
        if site and self._hosts.get(site, 0) >= traps.hosts_per_site:
            return Refusal("hosts_per_site", site)
        return next(
            (Refusal(rule, detail) for rule, key, detail, cap in capped if self._counts[rule + key] >= cap), None
        )

    def _month(self, host: str, path: str, query: str) -> list[tuple[str, str, str, int]]:
        """The cap on months, if this URL names one that is new among the URLs of its pattern."""
        match = _MONTH.search(path + query) if self.scope.traps.months else None
        if match is None:
            return []
        pattern, month = _pattern(path, query), f"{match[1]}-{int(match[2])}"
        if self._counts[f"month {month} {host}{pattern}"]:
            return []
        cap = self.scope.traps.months
        return [("months", host + pattern, pattern, cap), (f"month {month} ", host + pattern, pattern, 1)]

    def snapshot(self) -> Callable[[], bytes]:
        """All counts as they are now, for `recall`; another thread may make the bytes of them."""
        of_pages, of_hosts, counts = dict(self._pages), dict(self._hosts), self._counts.snapshot()

        def made() -> bytes:
            pages, hosts = (
                "\n".join(f"{count} {name}" for name, count in each.items()) for each in (of_pages, of_hosts)
            )
            return b"\n\n".join([pages.encode(), hosts.encode(), counts()])

        return made

    def recall(self, saved: bytes) -> None:
        """Go on with counts that were saved; ValueError if these are none."""
        pages, hosts, counts = saved.split(b"\n\n", 2)
        self._pages, self._hosts = _counts_in(pages.decode()), _counts_in(hosts.decode())
        self._counts.recall(counts)

    def pages(self, host: str) -> int:
        """How many pages of a host were admitted."""
        return self._pages.get(host, 0)


class Counts:
    """How often each text was added, in a fixed amount of memory; may say too much, never too little."""

    def __init__(self, size: int = 1 << 20) -> None:
        self._size = size
        self._rows = array("I", bytes(4 * size)), array("I", bytes(4 * size))

    def __getitem__(self, text: str) -> int:
        first, second = self._places(text)
        return min(self._rows[0][first], self._rows[1][second])

    def add(self, text: str) -> None:
        """Count a text once more; a cell that says more already stays, which keeps the excess small."""
        (one, other), (first, second) = self._rows, self._places(text)
        count = min(one[first], other[second]) + 1
        one[first], other[second] = max(one[first], count), max(other[second], count)

    def snapshot(self) -> Callable[[], bytes]:
        """The table as it is now; what makes it bytes compresses it: most of it is empty for long."""
        rows = b"".join(row.tobytes() for row in self._rows)
        return lambda: zlib.compress(rows, 1)

    def recall(self, saved: bytes) -> None:
        """Go on with a table that was saved; ValueError if it is none of this size."""
        width = self._rows[0].itemsize * self._size
        whole = zlib.decompressobj().decompress(saved, 2 * width + 1)
        if len(whole) != 2 * width:
            raise ValueError("a table of counts has another size")
        self._rows = array("I", whole[:width]), array("I", whole[width:])

    def _places(self, text: str) -> tuple[int, int]:
        code = xxhash.xxh3_128_intdigest(text.encode())
        return (code & 0xFFFFFFFFFFFFFFFF) % self._size, (code >> 64) % self._size


def _counts_in(text: str) -> dict[str, int]:
    counts = (line.partition(" ") for line in text.split("\n") if line)
    return {name: int(count) for count, _, name in counts}


@cache
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList  # the list takes a while to read: not before somebody needs it

    return PublicSuffixList()


@lru_cache(maxsize=4096)
def site_of(host: str) -> str:
    """The registrable domain of a host: what one owner can make names below; the host itself if there is none.

    >>> site_of("a.b.example.co.uk:8080"), site_of("10.0.0.1"), site_of("localhost")
    ('example.co.uk', '10.0.0.1', 'localhost')
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.replace(".", "").isdigit() or name.startswith("["):
        return name
    return _suffixes().privatesuffix(name.rstrip(".")) or name


def _parts(url: str) -> tuple[str, str, str]:
    """Host with port, path, and query with its question mark, of a canonical URL."""
    start = url.index("//") + 2
    end = url.index("/", start)
    path, mark, query = url[end:].partition("?")
    return url[start:end], path, mark + query


def _shape_refusal(path: str, query: str, traps: Traps) -> Refusal | None:
    """What can be said against a URL by looking at it."""
    if traps.sessions and (match := _SESSION.search(path + query)):
        return Refusal("session", match[0][1:-1].lower())
    segments = [segment for segment in path.split("/") if segment]
    if traps.segments and len(segments) > traps.segments:
        return Refusal("segments", str(len(segments)))
    if traps.same_segment and len(segments) > traps.same_segment:
        for segment in set(segments):
            if segments.count(segment) > traps.same_segment:
                return Refusal("same_segment", segment)
    if traps.repeats and (run := _repeated(segments, traps.repeats)):
        return Refusal("repeats", run)
    if traps.parameters and query.count("&") + bool(query) > traps.parameters:
        return Refusal("parameters", str(query.count("&") + 1))
    return None


def _repeated(segments: list[str], repeats: int) -> str:
    """The run of segments that comes more than `repeats` times in a row, or ""; paths are short by now."""
    for length in range(1, len(segments) // (repeats + 1) + 1):
        same = 0  # places in a row that equal the place one run earlier
        for place in range(length, len(segments)):
            same = same + 1 if segments[place] == segments[place - length] else 0
            if same >= length * repeats:
                return "/".join(segments[place - length + 1 : place + 1])
    return ""


def _capped(host: str, path: str, query: str, traps: Traps) -> list[tuple[str, str, str, int]]:
    """The caps that count this URL: rule, what is counted, how to name it, how many."""
    found = []
    if query and traps.variants:
        found.append(("variants", host + path, path, traps.variants))
    pattern = _pattern(path, query)
    if traps.pattern and pattern != path + query:
        found.append(("pattern", host + pattern, pattern, traps.pattern))
    return found


@lru_cache(maxsize=1024)  # asked for several times while one URL is looked at
def _pattern(path: str, query: str) -> str:
    """The address with `#` for numbers and long hexadecimal words, and parameters by name alone, in order."""
    shape = _DIGITS.sub("#", _HEX.sub(_marked, path))
    if not query:
        return shape
    names = sorted({parameter.partition("=")[0] for parameter in query[1:].split("&")})
    return shape + "?" + "&".join(_DIGITS.sub("#", name) for name in names)


def _marked(run: re.Match[str]) -> str:
    """A long run of hexadecimal digits is a number in one of its many forms if any of them is a decimal one."""
    return "#" if _DIGITS.search(run[0]) else run[0]


def _path_pattern(pattern: str) -> Glob:
    if not pattern.startswith(("/", "*")):
        raise ConfigError(f"{pattern!r} is not a path pattern.", hint="Begin it with / or *, such as /docs/ or *.pdf$.")
    return Glob(pattern)
