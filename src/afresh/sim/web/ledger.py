"""The truth: who was handed which version, and whether it is still the current one.

The site counts, not the crawler. A client is the first word of a User-Agent header. It holds the version of a page that
it was last handed whole, or that a truthful 304 confirmed. From the moment of hand-over that copy is fresh until the
page's next change, which the site knows in advance; so freshness over time is summed exactly, at O(1) an answer.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web.render import read_mark
from afresh.sim.web.site import GONE, Site

NOTHING = -1  # the version held by a client that holds no copy
MOST_CLIENTS = 64  # beyond these, all further names are counted together
OTHERS = "(others)"


@dataclass(slots=True)
class Counts:
    """What a client asked for and got; pages only, except `other_requests`."""

    requests: int = 0  # for pages
    full: int = 0  # whole bodies handed out
    not_modified: int = 0  # 304
    errors: int = 0  # whole answers of 400 and above
    broken: int = 0  # answers that were not sent whole
    heads: int = 0  # HEAD requests answered
    bytes_sent: int = 0  # of page bodies
    other_requests: int = 0  # robots.txt, sitemaps, feeds and addresses that do not exist


@dataclass(slots=True)
class Client:
    """One crawler, as the site sees it."""

    name: str
    pages: int
    counts: Counts = field(default_factory=Counts)
    held: NDArray[np.int64] = field(init=False)  # version of each page, NOTHING or GONE
    since: NDArray[np.float64] = field(init=False)  # when it was handed over
    until: NDArray[np.float64] = field(init=False)  # when that version ended, or will
    fresh_time: float = 0.0  # request rate × seconds fresh within the window, over copies that were replaced since
    served: int = 0  # readers that would have found a fresh copy

    def __post_init__(self) -> None:
        self.held = np.full(self.pages, NOTHING, np.int64)
        self.since = np.full(self.pages, inf)
        self.until = np.full(self.pages, -inf)

    def fresh(self, t: float, pages: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.bool_]:
        """Whether the copies held are current at `t` (now or later, as long as nothing more is handed out)."""
        return np.asarray((self.since[pages] <= t) & (t < self.until[pages]))


@dataclass(frozen=True, slots=True)
class Score:
    """How good a set of copies is. `fresh` weighs pages by popularity; the counts are of pages."""

    fresh: float  # share of requests that would meet a current copy
    current: int
    stale: int
    broken: int  # no whole page, or another page's
    missing: int
    unknown: int  # copies of addresses that are not on the site


class Ledger:
    """Books of all clients. Scores count within `window`, a span (start, end) of site time.

    >>> from afresh.sim.web.options import SiteOptions
    >>> ledger = Ledger(Site(SiteOptions(pages=4, hosts=1)))
    >>> ledger.handed(ledger.client("me"), page=0, version=0, t=0.0)
    >>> int(ledger.client("me").fresh(0.0).sum())
    1
    """

    def __init__(self, site: Site, *, window: tuple[float, float] = (0.0, inf)) -> None:
        self.site = site
        self.weights = site.request_rate
        self.clients: dict[str, Client] = {}
        self.asked = 0  # readers within the window
        self.window = window

    def open_window(self, start: float, end: float = inf) -> None:
        """Count from `start` to `end` only, and forget what was counted; call it not later than `start`."""
        if not start < end:
            raise ValueError(f"window start {start} is not before its end {end}")
        self.window = (start, end)
        self.asked = 0
        for client in self.clients.values():
            client.fresh_time, client.served = 0.0, 0

    def client(self, name: str) -> Client:
        """The books of a client, opened at its first request."""
        found = self.clients.get(name)
        if found is None:
            if len(self.clients) >= MOST_CLIENTS and name != OTHERS:
                return self.client(OTHERS)
            found = self.clients[name] = Client(name, self.site.options.pages)
        return found

    def handed(self, client: Client, page: int, version: int, t: float) -> None:
        """The client holds this version from `t` on: it was sent whole, or truthfully confirmed."""
        client.fresh_time += self._overlap(float(client.since[page]), float(client.until[page]), t) * float(
            self.weights[page]
        )
        client.held[page] = version
        client.since[page] = t
        client.until[page] = self._ends(page, version)

    def _ends(self, page: int, version: int) -> float:
        if version == GONE:
            return inf
        return min(self.site.timeline.change_time(page, version + 1), float(self.site.gone_at[page]))

    def _overlap(self, start: float, end: float, t: float) -> float:
        return max(0.0, min(end, t, self.window[1]) - max(start, self.window[0]))

    def time_fresh(self, name: str, t: float) -> float:
        """Share of requests served fresh within the window up to `t` (now), as the exact mean over time."""
        start, end = self.window[0], min(self.window[1], t)
        if end <= start:
            return nan
        client = self.client(name)
        open_time = np.minimum(client.until, end) - np.maximum(client.since, start)
        total = client.fresh_time + float(self.weights @ np.maximum(open_time, 0.0))
        return total / (float(self.weights.sum()) * (end - start))

    def readers_fresh(self, name: str) -> float:
        """Share of the drawn readers' requests, within the window, that met a current copy."""
        return self.client(name).served / self.asked if self.asked else nan

    def fresh_now(self, name: str, t: float) -> float:
        """Share of requests that would be served fresh at this moment."""
        return float(self.weights @ self.client(name).fresh(t) / self.weights.sum())

    def report(self, t: float) -> dict[str, dict[str, float | int | None]]:
        """All counts and scores by client, ready for JSON (no score yet: None)."""
        found: dict[str, dict[str, float | int | None]] = {}
        for name, client in self.clients.items():
            scores = {
                "readers_fresh": self.readers_fresh(name),
                "time_fresh": self.time_fresh(name, t),
                "fresh_now": self.fresh_now(name, t),
            }
            found[name] = {**asdict(client.counts), **{key: v if v == v else None for key, v in scores.items()}}
        return found

    def score(self, copies: Mapping[str, bytes | int], t: float) -> Score:
        """Judge copies, given as address → body (or bare version), against the site at `t`."""
        tally = {"current": 0, "stale": 0, "broken": 0, "unknown": 0}
        weight, seen = 0.0, set()
        for url, copy in copies.items():
            page = self.site.find(url)
            verdict = "unknown" if page is None else self._judge(page, copy, t)
            tally[verdict] += 1
            if page is not None and page not in seen:
                seen.add(page)
                weight += float(self.weights[page]) if verdict == "current" else 0.0
        missing = self.site.options.pages - len(seen)
        return Score(fresh=weight / float(self.weights.sum()), missing=missing, **tally)

    def _judge(self, page: int, copy: bytes | int, t: float) -> str:
        if isinstance(copy, bytes):
            mark = read_mark(copy)
            if mark is None or not mark.whole or mark.page != page:
                return "broken"
            copy = mark.version
        return "current" if copy == self.site.version(page, t) else "stale"
