"""The bounds of a crawl: where it may go, and how they are kept for the next time."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from afresh.cli.opening import require_wanted
from afresh.cli.terminal import now
from afresh.errors import InputError
from afresh.frontier import HostPatterns, Scope, canonical, host_of
from afresh.sources.web import Discovery
from afresh.sources.web.url_trace import UrlTrace
from afresh.store import Store, understood
from afresh.types import Fetched, Page

NAME = "crawl"  # under which they are kept in the store


@dataclass(frozen=True, slots=True)
class Bounds:
    """Hosts, paths, depth and number of pages."""

    hosts: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    max_pages: int | None = None

    @staticmethod
    def seeds(urls: Iterable[str], never: HostPatterns) -> list[Page]:
        """Pages from the addresses on the command line."""
        pages = [canonical(url) for url in urls]
        for url in pages:
            require_wanted(host_of(url), never)
        return [Page(url, host_of(url), added=now()) for url in pages]

    @staticmethod
    def stored(store: Store) -> "Bounds | None":
        """The bounds of the crawl that the store holds."""
        text = store.get(NAME)
        if text is None:
            return None
        return understood(NAME, lambda: Bounds._read(json.loads(text)))

    @staticmethod
    def _read(kept: dict[str, Any]) -> "Bounds":
        return Bounds(
            hosts=tuple(kept["hosts"]),
            include=tuple(kept["include"]),
            exclude=tuple(kept["exclude"]),
            depth=kept["depth"],
            max_pages=kept["max_pages"],
        )

    def keep(self, store: Store) -> None:
        """Remember them."""
        store.put({NAME: json.dumps(asdict(self))})

    @staticmethod
    def read_again(store: Store, discovery: Discovery) -> None:
        """Bounds were changed: links that were out of bounds may be within them now, so read all copies again."""
        for _, state in store.states():
            discovery.know([state.page.url])
        found: list[Page] = []
        for _, state in store.states():
            copy = store.copy(state.page.url)
            if copy is not None:
                seen = Fetched(copy.url, copy.fetched, 0.0, body=copy.body, content_type=copy.content_type)
                found += discovery.read(state.page, seen)
        store.add(found)

    def discovery(self, never: Iterable[str], trace: UrlTrace | None = None) -> Discovery:
        """What reads links within these bounds, and not of hosts that are never to be crawled; `trace` hears of all."""
        try:
            scope = Scope(hosts=self.hosts, never=never, include=self.include, exclude=self.exclude, depth=self.depth)
        except ValueError as error:
            raise InputError(f"The bounds cannot be used: {error}.", hint="See afresh crawl --help.") from None
        return Discovery(scope, most_pages=self.max_pages, trace=trace)
