"""Copies out of the store, read in threads beside the runner that writes them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import time
from typing import TypeVar

from afresh.errors import AfreshError
from afresh.frontier.url import canonical_or_none
from afresh.serve.proxy import entry as entries
from afresh.serve.proxy import rules, vary
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Lines, Named, joined, usual
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.vary import selected
from afresh.store.base import PageState, Store
from afresh.types import Copy

THREADS = 2
MOST_WAITING = 256  # readers who wait for the store; the next ones ask the origin
STATUS = ":status"
T = TypeVar("T")
# What speaks of the body as it came, while what is kept is the body as it was undone.
_NOT_OURS = frozenset({"content-encoding", "content-length", "content-md5", "digest", "content-digest", "repr-digest"})


class Shelf:
    """Looks pages up in a store. `sent`: the fields that the crawler asks with, which a copy may depend on."""

    def __init__(self, store: Store, sent: Named, *, clock: Callable[[], float] = time) -> None:
        self._store = store
        self._sent = sent
        self._clock = clock
        self._threads = ThreadPoolExecutor(THREADS, "afresh-shelf")
        self._waiting = 0

    async def find(self, url: str, site: Site, asked_with: Named) -> Entry | None:
        """The copy of a page, if it may be handed out for this request."""
        found = await self._run(self._read, url)
        return None if found is None else self._entry(url, *found, asked_with)

    async def newer(self, entry: Entry, site: Site) -> Entry | None:
        """What the store knows of a page by now; None if that is nothing new."""
        state = await self._run(self._state, entry.url)
        if state is None or state.fetched is None or state.checked is None:
            return None
        if state.checked > entry.confirmed and state.fetched > entry.confirmed:
            found = await self._run(self._read, entry.url)
            made = None if found is None else self._entry(entry.url, *found, self._sent)
            if made is not None and made.names == entry.names and made.selector == entry.selector:
                made.hits, made.hits_since = entry.hits, entry.hits_since
                return made
            return None
        made = _believed(replace(entry, said_until=0.0), state)
        return entries.checked(made, made.confirmed) if made.confirmed > entry.confirmed else made

    async def _run(self, read: Callable[[str], T], url: str) -> T | None:
        """Read in a thread; nothing, if too many wait or the store cannot be read."""
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, read, url)
        except AfreshError:
            return None
        finally:
            self._waiting -= 1

    def _state(self, url: str) -> PageState | None:
        return self._store.state(url)

    def _read(self, url: str) -> tuple[Copy, PageState] | None:
        # Only what is written as the crawler writes it: two spellings may be two pages for their origin.
        if canonical_or_none(url) != url:
            return None
        state = self._store.state(url)
        if state is None or state.fetched is None:
            return None
        copy = self._store.copy(url)
        return None if copy is None else (copy, state)

    def _entry(self, url: str, copy: Copy, state: PageState, asked_with: Named) -> Entry | None:
        """A copy as an entry; None if it is not for everybody."""
        lines = _lines_of(copy)
        fields = joined(lines)
        status = int(copy.meta.get(STATUS, "200"))
        terms = rules.terms("GET", {}, status, fields, copy.checked, copy.checked, url=url)
        names = vary.names_of(fields)
        secret = {"set-cookie": ""} if "set-cookie" in copy.meta else {}
        if names is None or not Policy.storable(terms, status, fields | secret):
            return None
        names = tuple(name for name in names if name != "accept-encoding")
        selector = selected(names, self._sent)
        if selected(names, asked_with) != selector:
            return None
        now = self._clock()
        made = entries.make(url, status, lines, copy.body, terms, now, selected_by=(names, selector))
        made = entries.checked(made, min(copy.checked, now), again=copy.checked > copy.fetched)
        made.confirmed = state.checked or copy.checked
        return _believed(made, state)

    def close(self) -> None:
        """Read no more."""
        self._threads.shutdown(wait=False)


def _lines_of(copy: Copy) -> Lines:
    """The fields that a copy is handed out with."""
    meta = {name: value for name, value in copy.meta.items() if not name.startswith(":") and name not in _NOT_OURS}
    if copy.content_type:
        meta.setdefault("content-type", copy.content_type)
    if copy.validators.etag:
        meta.setdefault("etag", copy.validators.etag)
    if copy.validators.last_modified:
        meta.setdefault("last-modified", copy.validators.last_modified)
    # A strong tag is of the bytes as they came; undone they are others.
    if "content-encoding" in copy.meta and meta.get("etag", "").startswith('"'):
        meta["etag"] = "W/" + meta["etag"]
    return [(usual(name).encode("latin-1"), value.encode("latin-1", "replace")) for name, value in meta.items()]


def _believed(entry: Entry, state: PageState) -> Entry:
    """The entry with what the store knows of its page."""
    checked = state.checked or 0.0
    # Signals of before we ourselves looked say nothing any more; the store counts them until the next crawl.
    entry.signals_before = 0 if checked > entry.confirmed else entry.signals_before
    entry.signals = max(state.signals - entry.signals_before, 0)
    entry.confirmed = max(entry.confirmed, checked)
    if state.beliefs is not None and state.crawls > 0:
        entry.beliefs = state.beliefs
    return entry
