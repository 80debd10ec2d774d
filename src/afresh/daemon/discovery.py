"""New pages from the links of those that were fetched: cache, scope, traps, seen before?, then into the store."""

from secrets import token_bytes

import numpy as np

from afresh.frontier import Admission, Clock, Refusal, Scope, Seen, fingerprints, host_of, links
from afresh.types import Fetched, Page

CACHE = 1 << 16  # addresses; most links of a site lead to the same few pages


class Discovery:
    """Reads fetched pages and collects the addresses that are new and within the scope.

    What is collected goes to the store in batches (`take`) and from there back to the engine like any other page: a new
    address competes with refreshes by the value of its first crawl. Invariant: an address is handed out once.
    """

    def __init__(self, scope: Scope, *, most_pages: int | None = None) -> None:
        self.most_pages = most_pages
        self._admission = Admission(scope)
        self._seen = Seen()
        # Whoever writes links must not be able to choose addresses that collide.
        self._secret = token_bytes(16)
        self._cache = Clock(CACHE)
        self._found: list[Page] = []
        self.known = 0
        self.refused: dict[str, int] = {}  # how many addresses each rule kept out

    def know(self, url: str) -> None:
        """A page is kept already, from before or because somebody added it."""
        if self._new([url]):
            self.known += 1
            self._admission.admit(url)

    def read(self, page: Page, fetched: Fetched) -> None:
        """Collect what a page links to."""
        if "html" not in fetched.content_type.lower():
            return
        depth = page.depth + 1
        found = links(fetched.body, fetched.location or page.url, content_type=fetched.content_type)
        wanted = [url for url in found.urls if self._admits(self._admission.scope.refusal(url, depth))]
        for url in self._new(wanted):
            if self.most_pages is not None and self.known >= self.most_pages:
                self._admits(Refusal("max_pages"))
            elif self._admits(self._admission.admit(url, depth)):
                self.known += 1
                self._found.append(Page(url, host_of(url), added=fetched.started, depth=depth))

    def take(self) -> list[Page]:
        """What was collected since the last time."""
        found, self._found = self._found, []
        return found

    def _new(self, urls: list[str]) -> list[str]:
        """Those that were never met before."""
        marks = fingerprints(urls, self._secret)
        unmet = [(url, mark) for url, mark in zip(urls, marks, strict=True) if not self._cache.met(int(mark))]
        if not unmet:
            return []
        new = self._seen.add_many(np.array([mark for _, mark in unmet], dtype=np.uint64))
        return [url for (url, _), first in zip(unmet, new, strict=True) if first]

    def _admits(self, refusal: Refusal | None) -> bool:
        """Whether there is no refusal; counts it by its rule if there is."""
        if refusal is not None:
            self.refused[refusal.rule] = self.refused.get(refusal.rule, 0) + 1
        return refusal is None
