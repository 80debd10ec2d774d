"""A store that forgets everything when the program ends: for tests, simulations and short runs."""

import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from operator import itemgetter
from types import TracebackType
from typing import Self

from afresh.errors import StoreError
from afresh.store.base import (
    ENTRY_BYTES,
    INBOX_BYTES,
    KEPT_KEYS,
    MAX_ALIKE,
    Entry,
    Failing,
    Heard,
    KeepVersions,
    PageColumns,
    PageState,
    Record,
    Space,
    Totals,
    Version,
    gone_after,
)
from afresh.store.inbox import full
from afresh.store.versions import dated
from afresh.types import CHANGES, Copy, Crawl, HostState, Outcome, Page


@dataclass(slots=True)
class _Kept:
    """All about one page."""

    state: PageState
    crawls: deque[tuple[int, Crawl]]
    copy: Copy | None = None
    version: int = 0  # number of the crawl that brought the copy
    earlier: list[tuple[Version, bytes]] = field(default_factory=list)  # the newest first


class Memory:
    """A store in dictionaries; see `afresh.store.base.Store` for what each method promises.

    Bodies are kept as they are, so both byte totals are the same. Nothing outlives the object, and no other process
    can see it, so there is nobody to claim it from.
    """

    def __init__(self, *, keep_crawls: int = 100, max_inbox: int = INBOX_BYTES, max_bytes: int = 0) -> None:
        if keep_crawls < 1:
            raise ValueError(f"keep_crawls must be at least 1, not {keep_crawls}")
        self.keep_crawls = keep_crawls
        self._pages: dict[str, _Kept] = {}
        self._urls: list[str | None] = []  # the page with number n is at n − 1; None: it was removed
        self._numbers: dict[str, int] = {}
        self._hosts: dict[str, HostState] = {}
        self._named: dict[str, str] = {}
        self._totals = Totals()
        self.max_inbox = max_inbox
        self.max_bytes = max_bytes
        self.keep_versions = KeepVersions()
        self._inbox: dict[int, Entry] = {}
        self._keys: dict[str, None] = {}  # the latest, the oldest first
        self._posted = 0
        self._lock = threading.RLock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("The store in memory is closed.", hint="Make a new one.")

    def claim(self, *, brief: bool = False) -> None:
        """Nothing to do: no other process can see this store."""
        self._require_open()

    def add(self, pages: Iterable[Page]) -> int:
        """Take pages in that are not there yet, and set the importance of those that are; how many were new."""
        self._require_open()
        new = 0
        for page in pages:
            with self._lock:
                kept = self._pages.get(page.url)
                if kept is not None and page.importance is not None:
                    kept.state = replace(kept.state, page=replace(kept.state.page, importance=page.importance))
                elif kept is None:
                    self._pages[page.url] = _Kept(PageState(page), deque(maxlen=self.keep_crawls))
                    self._urls.append(page.url)
                    self._numbers[page.url] = len(self._urls)
                    new += 1
        return new

    def write(
        self,
        records: Iterable[Record],
        *,
        pages: Iterable[Page] = (),
        removed: Iterable[str] = (),
        urgent: Iterable[str] = (),
        values: Mapping[str, str | None] | None = None,
        taken: Iterable[int] = (),
        heard: Iterable[Heard] = (),
    ) -> int:
        """Keep a batch, all of it or nothing; how many pages were new."""
        self._require_open()
        batch, said, gone, numbers = list(records), list(pages), list(removed), list(taken)
        first = list(urgent)
        with self._lock:
            # Asked before anything is touched, so that a refused batch leaves no trace.
            known = {page.url for page in said}
            for record in batch:
                if record.state.page.url not in self._pages and record.state.page.url not in known:
                    raise StoreError(
                        f"The page {record.state.page.url} is not in the store, so its crawl cannot be kept.",
                        hint="Add the page first.",
                    )
            new = self.add(said)
            for page in said:
                kept = self._pages[page.url]
                told = kept.state.page
                kept.state = replace(kept.state, page=replace(page, host=told.host, added=told.added, depth=told.depth))
            for record in batch:
                self._write_one(record)
            for each in heard:
                about = self._pages.get(each.url)
                if about is not None:
                    about.state = replace(about.state, beliefs=each.beliefs, signals=each.signals, learned=each.learned)
            for url in first:
                if url in self._pages:
                    self._pages[url].state = replace(self._pages[url].state, urgent=True)
            for url in gone:
                self._remove_one(url)
            self.put(values or {})
            for number in numbers:
                self._inbox.pop(number, None)
            return new

    def _remove_one(self, url: str) -> None:
        kept = self._pages.pop(url, None)
        if kept is not None:
            self._urls[self._numbers.pop(url) - 1] = None
            size = self._totals.body_bytes - (len(kept.copy.body) if kept.copy else 0)
            copies = self._totals.copies - (kept.copy is not None)
            self._totals = replace(self._totals, copies=copies, body_bytes=size, stored_bytes=size)

    def post(self, entries: Iterable[Entry]) -> int:
        """Put entries into the inbox, all of them or none; how many were new."""
        self._require_open()
        with self._lock:
            new: list[Entry] = []
            keys: dict[str, None] = {}
            for entry in entries:
                if not entry.key or (entry.key not in self._keys and entry.key not in keys):
                    new.append(entry)
                    keys |= {entry.key: None} if entry.key else {}
            held = self._inbox_bytes()
            if new and held + sum(len(entry.body) + ENTRY_BYTES for entry in new) > self.max_inbox:
                raise full("in memory", held, self.max_inbox)
            for entry in new:
                self._posted += 1
                self._inbox[self._posted] = replace(entry, key="", number=self._posted)
            self._keys |= keys
            for key in list(islice(self._keys, max(len(self._keys) - KEPT_KEYS, 0))):
                del self._keys[key]
        return len(new)

    def inbox(self, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Entries that wait, in the order of their numbers."""
        self._require_open()
        with self._lock:
            return [entry for number, entry in self._inbox.items() if number > after][: max(limit, 0)]

    def _inbox_bytes(self) -> int:
        return sum(len(entry.body) + ENTRY_BYTES for entry in self._inbox.values())

    def _write_one(self, record: Record) -> None:
        kept, totals, crawl, copy = self._pages[record.state.page.url], self._totals, record.crawl, record.copy
        if crawl:
            _shorten_run(kept.crawls, crawl)
            if self.max_bytes and kept.crawls and totals.body_bytes >= self.max_bytes:
                kept.crawls.popleft()
            kept.crawls.append((totals.crawls + 1, crawl))
            changed = crawl.outcome is Outcome.CHANGED
            totals = replace(totals, crawls=totals.crawls + 1, changes=totals.changes + changed)
        if copy and crawl and crawl.outcome in (Outcome.NEW, Outcome.CHANGED):
            if kept.copy is not None:
                _keep_version(kept, self.keep_versions, totals.crawls, crawl.time)
            kept.version = totals.crawls
        if copy:
            size = totals.body_bytes + len(copy.body) - (len(kept.copy.body) if kept.copy else 0)
            totals = replace(totals, copies=totals.copies + (kept.copy is None), body_bytes=size, stored_bytes=size)
            kept.copy = copy
        fetched = kept.copy.fetched if kept.copy else None
        gone = gone_after(kept.state.gone, crawl) if crawl else kept.state.gone
        kept.state = replace(record.state, page=kept.state.page, fetched=fetched, gone=gone)
        if record.host:
            self._hosts[record.host.host] = record.host
        self._totals = totals

    def put(self, values: Mapping[str, str | None]) -> None:
        """Set named values, and forget those that are None."""
        self._require_open()
        with self._lock:
            self._named.update((name, value) for name, value in values.items() if value is not None)
            for name in [name for name, value in values.items() if value is None]:
                self._named.pop(name, None)

    def states(self, *, after: int = 0) -> Iterator[tuple[int, PageState]]:
        """Every page with its number, in the order in which they were added, beginning behind number `after`."""
        self._require_open()
        number = max(after, 0)
        while number < len(self._urls):
            number += 1
            url = self._urls[number - 1]
            if url is not None:
                yield number, self._pages[url].state

    def columns(self, *, after: int = 0, limit: int = 10_000) -> PageColumns:
        """The next pages behind number `after`, in columns."""
        found = list(islice(self.states(after=after), max(limit, 0)))
        states = [state for _, state in found]
        said = [state.page.importance for state in states]
        return PageColumns(
            numbers=[number for number, _ in found],
            urls=[state.page.url for state in states],
            hosts=[state.page.host for state in states],
            checked=[state.checked for state in states],
            crawls=[state.crawls for state in states],
            failures=[state.failures for state in states],
            signals=[state.signals for state in states],
            learned=[state.learned for state in states],
            importance=[None if each is None or each.times else each.value for each in said],
            times=[each.value if each is not None and each.times else None for each in said],
            popularity=[state.page.popularity for state in states],
            cost_same=[state.cost_same for state in states],
            cost_new=[state.cost_new for state in states],
            special={nth: state for nth, state in enumerate(states) if _is_special(state)},
        )

    def numbers(self, urls: Sequence[str]) -> list[int]:
        """The numbers of pages; 0 where one is not kept."""
        self._require_open()
        with self._lock:
            return [self._numbers.get(url, 0) for url in urls]

    def state_numbered(self, number: int) -> PageState | None:
        """The page with a number, or None if there is none."""
        self._require_open()
        url = self._urls[number - 1] if 0 < number <= len(self._urls) else None
        return None if url is None else self._pages[url].state

    def states_of_host(self, host: str) -> Iterator[PageState]:
        """Every page of a host, in the order in which they were added."""
        return (state for _, state in self.states() if state.page.host == host)

    def states_under(self, prefix: str, limit: int) -> list[PageState]:
        """The first pages whose addresses begin so, in the order of their addresses."""
        self._require_open()
        with self._lock:
            urls = sorted(url for url in self._pages if url.startswith(prefix))[:limit]
            return [self._pages[url].state for url in urls]

    def sizes_of_host(self, host: str) -> list[tuple[str, int, int, float]]:
        """(url, depth, bytes of the body, requests a second as last believed) of each page of a host with a copy."""
        self._require_open()
        with self._lock:
            kept = [each for each in self._pages.values() if each.state.page.host == host and each.copy is not None]
        return [
            (
                each.state.page.url,
                each.state.page.depth,
                len(each.copy.body) if each.copy else 0,
                each.state.beliefs.request_rate if each.state.beliefs else 0.0,
            )
            for each in kept
        ]

    def state(self, url: str) -> PageState | None:
        """One page, or None if it is not kept."""
        self._require_open()
        kept = self._pages.get(url)
        return kept.state if kept else None

    def copy(self, url: str) -> Copy | None:
        """The current copy, or None."""
        self._require_open()
        with self._lock:
            kept = self._pages.get(url)
            if kept is None or kept.copy is None:
                return None
            checked = kept.state.checked
            return replace(kept.copy, checked=kept.copy.fetched if checked is None else checked)

    def versions(self, url: str) -> list[Version]:
        """The versions of a page that are kept, the newest first."""
        self._require_open()
        with self._lock:
            kept = self._pages.get(url)
            if kept is None or kept.copy is None:
                return []
            found = [_version(kept), *(version for version, _ in kept.earlier)]
            return dated([replace(each, appeared=_appeared(kept, each)) for each in found])

    def version(self, url: str, number: int) -> Copy | None:
        """One version of a page by its number; None if it is not kept."""
        with self._lock:
            if any(each.number == number and not each.replaced_by for each in self.versions(url)):
                return self.copy(url)
            for each, body in self._pages[url].earlier if url in self._pages else ():
                if each.number == number:
                    return Copy(url, body, each.content_type, each.fetched, each.replaced or each.fetched)
        return None

    def history(self, url: str, limit: int = 20) -> list[Crawl]:
        """The latest crawls of a page, newest first."""
        self._require_open()
        with self._lock:
            kept = self._pages.get(url)
            return [crawl for _, crawl in islice(reversed(kept.crawls), max(limit, 0))] if kept else []

    def changes(self, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Crawl]]:
        """Crawls that found something new, changed or gone, in the order of their writing."""
        self._require_open()
        with self._lock:
            every = (each for kept in self._pages.values() for each in _changes(kept.crawls))
            found = sorted((each for each in every if each[0] > after), key=itemgetter(0))
        return found[: max(limit, 0)]

    def hosts(self) -> Iterator[HostState]:
        """Every host that has a state."""
        self._require_open()
        with self._lock:
            return iter(sorted(self._hosts.values(), key=lambda host: host.host))

    def host(self, name: str) -> HostState | None:
        """One host, or None if it has no state."""
        self._require_open()
        return self._hosts.get(name)

    def failing(self) -> list[Failing]:
        """The pages whose last crawl did not refresh their copies, counted by host, outcome and reason."""
        self._require_open()
        with self._lock:
            last = [
                ((kept.state.page.host, crawl.outcome, crawl.reason), kept.state.fetched is None)
                for kept in self._pages.values()
                if kept.state.failures and kept.crawls
                for _, crawl in [kept.crawls[-1]]
            ]
        without = Counter(alike for alike, has_none in last if has_none)
        counts = Counter(alike for alike, _ in last)
        return [Failing(*alike, pages, without[alike]) for alike, pages in sorted(counts.items())]

    def pages_by_host(self) -> Iterator[tuple[str, int, int]]:
        """Every host that has pages, in the order of their names: how many, and how many of them have a copy."""
        self._require_open()
        pages: dict[str, int] = {}
        copies: dict[str, int] = {}
        with self._lock:
            for kept in self._pages.values():
                host = kept.state.page.host
                pages[host] = pages.get(host, 0) + 1
                copies[host] = copies.get(host, 0) + (kept.copy is not None)
        return iter([(host, pages[host], copies[host]) for host in sorted(pages)])

    def names(self, prefix: str) -> list[tuple[str, int]]:
        """The names of values that begin so, each with about how many bytes its value takes."""
        self._require_open()
        with self._lock:
            return sorted((name, len(value)) for name, value in self._named.items() if name.startswith(prefix))

    def get(self, name: str) -> str | None:
        """A named value of the runner's, or None."""
        self._require_open()
        return self._named.get(name)

    def totals(self) -> Totals:
        """Counts over the whole store."""
        self._require_open()
        with self._lock:
            waiting = {"inbox_entries": len(self._inbox), "inbox_bytes": self._inbox_bytes()}
            return replace(self._totals, pages=len(self._pages), **waiting)

    def space(self) -> Space:
        """How much room there is: bodies alone are counted here."""
        self._require_open()
        return Space(self._totals.body_bytes, self.max_bytes)

    def close(self) -> None:
        """Let go of everything. A second call does nothing."""
        self._closed = True


def _is_special(state: PageState) -> bool:
    page = state.page
    return bool(page.shortest is not None or page.longest is not None or page.hours or page.paused or state.urgent)


def _version(kept: _Kept) -> Version:
    """The copy as one of the versions."""
    copy = kept.copy
    assert copy is not None  # noqa: S101 - the caller has looked
    return Version(kept.version, copy.fetched, copy.content_type, len(copy.body))


def _appeared(kept: _Kept, version: Version) -> float | None:
    """The first crawl since a version was brought that the history has."""
    first, last = version.number, version.replaced_by or inf
    return next((crawl.time for number, crawl in kept.crawls if 0 < first <= number < last), None)


def _keep_version(kept: _Kept, keeps: KeepVersions, number: int, now: float) -> None:
    """The copy becomes an earlier version; those that are beyond the bounds go."""
    if kept.copy is not None:
        kept.earlier.insert(0, (replace(_version(kept), replaced_by=number, replaced=now), kept.copy.body))
    total, left = 0, []
    for version, body in kept.earlier[: keeps.count]:
        total += len(body)
        too_old = keeps.seconds and (version.replaced or now) < now - keeps.seconds
        if not too_old and (not keeps.bytes or total <= keeps.bytes):
            left.append((version, body))
    kept.earlier = left


def _shorten_run(crawls: deque[tuple[int, Crawl]], new: Crawl) -> None:
    """Make room for one more of failures in a row that are all alike: see `MAX_ALIKE`."""
    latest = [crawl for _, crawl in islice(reversed(crawls), MAX_ALIKE)]
    alike = all((crawl.outcome, crawl.reason) == (new.outcome, new.reason) for crawl in latest)
    if not new.outcome.refreshed and len(latest) == MAX_ALIKE and alike:
        del crawls[1 - MAX_ALIKE]


def _changes(crawls: Iterable[tuple[int, Crawl]]) -> Iterator[tuple[int, Crawl]]:
    """What is new, changed or gone in a page's history; of being gone in a row the first alone."""
    before = None
    for number, crawl in crawls:
        if crawl.outcome in CHANGES and not crawl.outcome is before is Outcome.GONE:
            yield number, crawl
        before = crawl.outcome
