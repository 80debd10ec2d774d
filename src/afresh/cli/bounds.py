"""The bounds of a crawl: where it may go, and how they are kept for the next time."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from afresh.cli.opening import require_wanted
from afresh.cli.terminal import now
from afresh.errors import BodyDamaged, InputError
from afresh.fetch.headers import robots_tag
from afresh.frontier import HostPatterns, Scope, canonical, host_of
from afresh.sources.web import Discovery
from afresh.sources.web.backlog import Backlog
from afresh.sources.web.url_trace import UrlTrace
from afresh.store import Store, understood
from afresh.store.messages import FOUND_SO_FAR, packed
from afresh.types import Fetched, Page

NAME = "crawl"  # under which they are kept in the store
AGENT = "afresh"  # whom robots' headers may speak to
PIECE = 100  # entries of the inbox at a time
UNREAD = "copies unread"  # the named value that says that there are copies whose links were not read within them
FOLDER_NAME = "found"  # and what tells the folder of what was found from that of another crawl


@dataclass(frozen=True, slots=True)
class Bounds:
    """Hosts, paths, depth and number of pages."""

    hosts: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    max_pages: int | None = None
    max_known: int | None = None
    max_kept: int | None = None

    @staticmethod
    def seeds(urls: Iterable[str], never: HostPatterns) -> list[Page]:
        """Pages from the addresses on the command line."""
        pages = [canonical(url) for url in urls]
        for url in pages:
            require_wanted(host_of(url), never)
        return [Page(url, host_of(url), added=now()) for url in pages]

    @property
    def scope(self) -> "Bounds":
        """The bounds that say which links are taken in, without those of how many of them."""
        return replace(self, max_known=None, max_kept=None)

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
            max_known=kept.get("max_known"),
            max_kept=kept.get("max_kept"),
        )

    def keep(self, store: Store, before: "Bounds | None") -> None:
        """Remember them, and that copies are to be read for what is within these bounds and was not within those."""
        values = {NAME: json.dumps(asdict(self))}
        if (before is None and store.totals().copies) or (before is not None and self._takes_more_than(before, store)):
            values[UNREAD] = "bounds"  # with them: whoever is killed before the copies are read does so next time
        store.put(values)

    def _takes_more_than(self, before: "Bounds", store: Store) -> bool:
        """Whether links may be taken in that earlier bounds have kept out, and that left no trace."""
        if before.scope != self.scope:
            return True
        most = before.max_known
        if most is None or (self.max_known is not None and self.max_known <= most):
            return False
        known = understood(FOUND_SO_FAR, lambda: float(json.loads(store.get(FOUND_SO_FAR) or "{}").get("known", most)))
        return known >= most // 2  # a site is kept out early, where others are to have room

    @staticmethod
    def read_copies(store: Store, discovery: Discovery) -> None:
        """Read the links of all copies: those from elsewhere were never read, others within other bounds.

        A page that is unchanged is not read again, so nothing else would find them.
        """
        for _, state in store.states():
            discovery.know([state.page.url])
        found: list[Page] = []
        for _, state in store.states():
            try:
                copy = store.copy(state.page.url)
            except BodyDamaged:
                continue  # the next fetch of the page replaces it, and it is read then
            if copy is not None:
                robots = robots_tag([value] if (value := copy.meta.get("x-robots-tag")) else [], AGENT)
                seen = Fetched(
                    copy.url, copy.fetched, 0.0, body=copy.body, content_type=copy.content_type, robots=robots
                )
                found += discovery.read(state.page, seen)
        store.add(found)
        store.put({UNREAD: None})  # what was found is on disk by now

    def backlog(self, store: Store, path: Path, memory: int) -> Backlog:
        """What of this crawl is known and waits, in a folder beside the store; if that is lost copies are read anew."""
        before = store.get(FOLDER_NAME)
        name = Backlog.new_name() if before is None else before
        if before is None:
            store.put({FOLDER_NAME: name})
        folder = path.with_name(path.name + ".found")
        if before is not None and not Backlog.is_of(folder, name):
            store.put({UNREAD: "lost"})  # before the folder is begun anew: a kill in between must not hide it
        return Backlog(
            folder,
            memory=memory,
            max_known=self.max_known,
            name=name,
            numbers=store.numbers,
            remove=lambda urls: _remove(store, urls),
        )

    def discovery(
        self, never: Iterable[str], trace: UrlTrace | None = None, backlog: Backlog | None = None
    ) -> Discovery:
        """What reads links within these bounds, and not of hosts that are never to be crawled; `trace` hears of all.

        What it finds beyond what there is room for waits in a `backlog`.
        """
        try:
            scope = Scope(hosts=self.hosts, never=never, include=self.include, exclude=self.exclude, depth=self.depth)
        except ValueError as error:
            raise InputError(f"The bounds cannot be used: {error}.", hint="See afresh crawl --help.") from None
        return Discovery(scope, most_pages=self.max_pages, trace=trace, backlog=backlog)


def _remove(store: Store, urls: Sequence[str]) -> None:
    """Wish that pages are removed. Not twice: they may have come in again before the second wish is read."""
    wished, after = set[str](), 0
    while urls and (entries := store.inbox(after=after, limit=PIECE)):
        wished.update(url for entry in entries if entry.kind == "remove" for url in json.loads(entry.body))
        after = entries[-1].number
    if left := [url for url in urls if url not in wished]:
        store.post(packed("remove", left, now()))
