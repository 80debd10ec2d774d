"""New pages from the links of those that were fetched: cache, scope, traps, seen before?, then into the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from secrets import token_bytes

import numpy as np

from afresh.frontier import (
    Admission,
    Eliminator,
    Links,
    Refusal,
    Scope,
    Seen,
    Sieve,
    canonical_or_none,
    fingerprints,
    host_of,
    links,
)
from afresh.frontier.links import NOTHING_COUNTED, wanted
from afresh.reading import Document, Wanted
from afresh.sources.pieces import in_pieces
from afresh.sources.web.backlog import Backlog
from afresh.sources.web.url_trace import UrlTrace
from afresh.types import Fetched, Page

CACHE = 1 << 16  # addresses; most links of a site lead to the same few pages
COUNTED = 1 << 14  # links to new pages that are counted when they come again
LONGEST_WRITTEN = 200  # bytes of a link as written that is remembered so; longer ones are rare


class Discovery:
    """Reads fetched pages and collects the addresses that are new and within the scope.

    What is collected goes to the engine at once, where a new address competes with refreshes by the value of its first
    crawl, and to the store in batches. With a `backlog` that is so as long as there is room; what else is found waits
    there. Invariant: an address is handed out once.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        most_pages: int | None = None,
        trace: UrlTrace | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self.most_pages = most_pages
        self.trace = trace  # hears of every link, and so keeps short cuts from being taken
        self.heard: Callable[[Page, Fetched, Links], None] = lambda page, fetched, links: None  # is told of each page
        self.closed = False  # the store has no room for new pages: what is found leaves no trace, and is found again
        self._admission = Admission(scope)
        self.backlog = backlog
        self._seen: Eliminator = Seen() if backlog is None else backlog.known
        # Whoever writes links must not be able to choose addresses that collide.
        self._secret = token_bytes(16) if backlog is None else backlog.known.secret
        self._cache = Sieve(CACHE)  # the best of `afresh lab urlcache` at this size
        self._written = _Written(CACHE)
        self._links = 0  # that were met since the start,
        self._remembered = 0  # and of these, those that what is remembered of pages, or the cache, answered
        if backlog is not None:
            backlog.is_named = scope.names
        self.known = 0 if backlog is None else backlog.begin(self._admission)
        self.refused: dict[str, int] = {}  # how many addresses each rule kept out

    def know(self, urls: list[str]) -> None:
        """These pages are kept already, from before or because somebody added them."""
        for url, mark in self._unseen(self._unmet(urls)):
            self.known += 1
            self._admission.admit(url)
            self._seen.keep(np.array([mark], np.uint64))

    def read(self, page: Page, fetched: Fetched) -> list[Page]:
        """Collect what a page links to; the pages that are new."""
        if "html" not in fetched.content_type.lower():
            return []
        met, where = self.met(page, fetched), fetched.location or page.url
        found = links(fetched.body, where, content_type=fetched.content_type, robots_tag=fetched.robots, met=met)
        return [new for some in self.follow(page, fetched, found, met) for new in some]

    def wanted(self) -> Wanted:
        """What reading is to look for: links."""
        return wanted()

    def links(self, read: Document, page: Page, fetched: Fetched, met: set[bytes]) -> Links:
        """The links of a page that was read. Runs in a thread."""
        where = fetched.location or page.url
        return links(read, where, robots_tag=fetched.robots, met=met, counted=self._written.counted(where))

    def met(self, page: Page, fetched: Fetched) -> set[bytes]:
        """Links that need no parsing if the page repeats them; the reader of the page gets this."""
        return set() if self.trace is not None else self._written.of(fetched.location or page.url)

    def follow(self, page: Page, fetched: Fetched, found: Links, met: set[bytes]) -> Iterator[list[Page]]:
        """Collect the links that were found on a page, some at a time; of each piece the pages that are new.

        A page may have thousands of links, and others want a turn in between.
        """
        if self.trace is not None:
            self.trace.met(host_of(fetched.location or page.url), found.urls)
        self.heard(page, fetched, found)
        if self.closed:
            return
        self._links += len(found.urls) + found.met
        self._remembered += found.met
        depth = page.depth + 1
        too_deep, admitted = set[str](), set[str]()
        for piece in in_pieces(found.urls, len):
            wanted = []
            for url in piece:
                if url in self._written.settled:
                    self._remembered += 1
                    continue
                refusal = self._admission.scope.refusal(url, depth)
                if self._admits(refusal):
                    wanted.append(url)
                elif refusal is not None and refusal.rule == "depth":
                    too_deep.add(url)
            new = self._collect(wanted, depth, fetched.started)
            admitted.update(each.url for each in new)
            yield new
        if self.trace is not None:
            return
        # What was too deep here may be nearer from another page.
        self._written.add(met, (raw for raw, url in found.written.items() if url not in too_deep))
        self._written.settle(url for url in found.urls if url not in too_deep)
        new_links = ((raw, url) for raw, url in found.written.items() if url in admitted)
        self._written.count(fetched.location or page.url, new_links)

    def listed(self, urls: list[str], now: float) -> list[Page]:
        """Collect what a sitemap names, one step from the site's own front door; those that are new."""
        self._links += len(urls)
        wanted = [url for url in urls if self._admits(self._admission.scope.refusal(url, 1))]
        return self._collect(wanted, 1, now)

    def moved(self, page: Page, fetched: Fetched) -> list[Page]:
        """A page points elsewhere: if that is within the scope it is a page of its own; the page, if it is new."""
        url = canonical_or_none(fetched.location)
        if url is None or not self._admits(self._admission.scope.refusal(url, page.depth)):
            return []
        self._links += 1
        return self._collect([url], page.depth, fetched.started)

    def _collect(self, urls: list[str], depth: int, now: float) -> list[Page]:
        """Those of some addresses within the scope that are new, and that there is room for, as pages; of these, what
        need not wait."""
        if self.closed:
            return []
        # What there is no room for leaves no trace.
        unmet = self._unmet(urls)
        self._remembered += len(urls) - len(unmet)
        unmet = [(url, mark) for url, mark in unmet if self._admits(self._admission.full(url))]
        pages: list[Page] = []
        marks: list[int] = []
        refused: list[int] = []
        for url, mark in self._unseen(unmet):
            if self.backlog is not None and (why := self.backlog.full(len(pages), host_of(url))):
                self._admits(Refusal(why))
            elif self.most_pages is not None and self.known >= self.most_pages:
                self._admits(Refusal("max_pages"))
                refused.append(mark)
            elif self._admits(self._admission.count(url)):
                self.known += 1
                pages.append(Page(url, host_of(url), added=now, depth=depth))
                marks.append(mark)
            else:
                refused.append(mark)
        new = np.array(marks, np.uint64)
        # Written down first: a page that is known and nowhere would never be crawled.
        straight = pages if self.backlog is None else self.backlog.take_in(pages, new)
        self._seen.keep(np.concatenate([new, np.array(refused, np.uint64)]))
        return straight

    def _unmet(self, urls: list[str]) -> list[tuple[str, int]]:
        """Those that the cache does not know, and their marks."""
        marks = fingerprints(urls, self._secret)
        met = self._cache.met_many(marks)
        return [(url, mark) for url, mark, old in zip(urls, marks.tolist(), met, strict=True) if not old]

    def _unseen(self, unmet: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those that were never met before; nothing is noted."""
        if not unmet:
            return []
        new = self._seen.look(np.array([mark for _, mark in unmet], dtype=np.uint64))
        return [each for each, first in zip(unmet, new, strict=True) if first]

    def wants(self, page: Page) -> bool:
        """Whether a page that was found once is within the scope of today."""
        return self._admission.scope.refusal(page.url, page.depth) is None

    def counts(self) -> dict[str, float]:
        """How it stands: links that were met, those that the cache knew, pages admitted; and the backlog's own.

        Links that a page has in common with others of its folder are not even read: that is the cache's answer too.
        """
        own: dict[str, float] = {
            "looked_up": self._links,
            "cache_hits": self._remembered,
            "admitted": self.known,
        }
        return own if self.backlog is None else own | self.backlog.counts()

    def _admits(self, refusal: Refusal | None) -> bool:
        """Whether there is no refusal; counts it by its rule if there is."""
        if refusal is not None:
            self.refused[refusal.rule] = self.refused.get(refusal.rule, 0) + 1
        return refusal is None


class _Written:
    """Links as they were written on the pages of each folder, once they are settled; bounded in number and length."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.settled: set[str] = set()  # what they mean, for links that are written in other ways
        self._folders: dict[str, set[bytes]] = {}
        self._new: dict[str, dict[bytes, str]] = {}  # links to pages that were new, and what they mean
        self._new_count = 0
        self._count = 0

    def of(self, url: str) -> set[bytes]:
        """Those that were met on pages of the same folder."""
        if self._count > self.size or len(self._folders) > self.size or len(self.settled) > self.size:
            # Beginning anew is as good as anything cleverer: what is still in use is met again on the next page.
            self._folders.clear()
            self.settled.clear()
            self._new.clear()
            self._new_count = 0
            self._count = 0
        return self._folders.setdefault(_folder(url), set())

    def counted(self, url: str) -> Mapping[bytes, str]:
        """Those that led to pages that were new, on pages of the same folder."""
        return self._new.get(_folder(url), NOTHING_COUNTED)

    def count(self, url: str, written: Iterable[tuple[bytes, str | None]]) -> None:
        """These lead to new pages: when they come again, that is of interest."""
        for raw, new in written:
            if self._new_count >= COUNTED:
                self._new.clear()
                self._new_count = 0
            if new is not None and len(raw) <= LONGEST_WRITTEN:
                self._new.setdefault(_folder(url), {})[raw] = new
                self._new_count += 1

    def settle(self, urls: Iterable[str]) -> None:
        """Nothing more need be done about these."""
        self.settled.update(url for url in urls if len(url) <= LONGEST_WRITTEN)

    def add(self, met: set[bytes], written: Iterable[bytes]) -> None:
        """Remember some more for the pages of one folder."""
        before = len(met)
        met.update(raw for raw in written if len(raw) <= LONGEST_WRITTEN)
        self._count += len(met) - before


def _folder(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rindex("/")]
