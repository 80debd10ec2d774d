"""The store in PostgreSQL: as many machines as there are, one who runs on it, or the workers of a cluster."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy as shallow
from dataclasses import dataclass
from itertools import islice
from math import inf
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import psycopg
import zstandard

from afresh.errors import StoreError
from afresh.store import rows
from afresh.store.base import (
    FIRST_COPIES_SHARE,
    INBOX_BYTES,
    Entry,
    Failing,
    Heard,
    KeepVersions,
    News,
    PageColumns,
    PageState,
    Record,
    Space,
    Totals,
    Version,
    in_order,
    untitled,
)
from afresh.store.body import LEVEL, Packed, pack, unpack
from afresh.store.faults import damaged, damaged_body
from afresh.store.listing import Listing, Wanted, list_pages
from afresh.store.postgres import inbox, schema
from afresh.store.postgres import statements as sql
from afresh.store.postgres.address import place_of
from afresh.store.postgres.claim import BRIEF, Claim, Lease
from afresh.store.postgres.link import AGAIN_SECONDS, Connection, Link, check_address, is_lost
from afresh.store.postgres.writing import Batch, Sums, add_pages, key_of, keys_of
from afresh.store.slices import slice_of
from afresh.store.understood import NONSENSE
from afresh.store.versions import dated
from afresh.types import Address, Copy, Crawl, HostState, Page

Made = TypeVar("Made")

NO_VERSIONS = KeepVersions()
LEAVING = 8  # earlier versions that leave with a batch, where the oldest must go

CHUNK = 1_000  # rows read at a time
ADD_CHUNK = 20_000  # pages added in one transaction
SPACE_SECONDS = 5.0  # between two looks at how large the database is
LAST_CHARACTER = "\U0010ffff"  # no address has a later one


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker of a cluster runs on."""

    number: int
    token: int  # of its lease
    slices: frozenset[int]  # that it holds
    shared: tuple[str, ...] = ()  # beginnings of names that are kept for all: what goes along with a host
    own: tuple[str, ...] = ()  # names of which a worker begins with nothing: sums, which are added up by who reads them


class Postgres:
    """A store in a database; see `afresh.store.base.Store` for what each method promises.

    A few connections read, and one writes, under a lock. A connection that is lost is replaced, also in the midst of a
    batch: a mark in the database says whether that had become durable, so that nothing is written twice.

    With a `part` it is the view of one worker: its own pages, hosts and inbox, and named values of its own.
    """

    def __init__(
        self,
        address: Address | str,
        *,
        create: bool = True,
        keep_crawls: int = 100,
        patience: float = 10.0,
        max_inbox: int = INBOX_BYTES,
        max_bytes: int = 0,
        keep_versions: KeepVersions = NO_VERSIONS,
        part: Part | None = None,
        scripts: Sequence[str] | None = None,
    ) -> None:
        """Open the store in the database at `address`, or make a new one in it if `create`.

        `keep_crawls` of each page stay in the history, and earlier versions of it within `keep_versions`; `patience` is
        how many seconds to wait for a server that is away; `max_inbox` bytes may wait in the inbox; `max_bytes` is
        what it should not grow beyond (0: no bound); `scripts` are the schema's steps, if not the product's own.
        """
        if keep_crawls < 1:
            raise ValueError(f"keep_crawls must be at least 1, not {keep_crawls}")
        self.address = Address(address) if isinstance(address, str) else address
        check_address(self.address)
        self.path = place_of(self.address)
        self.keep_crawls, self.patience = keep_crawls, patience
        self.max_inbox, self.max_bytes = max_inbox, max_bytes
        self.keep_versions = keep_versions
        self.title_of: Callable[[Copy], str] = untitled
        self.part = part
        self._slices = {"slices": None if part is None else sorted(part.slices)}
        self._number = -1 if part is None else part.number
        self._claim: Claim = Claim(self.address) if part is None else Lease(self.address, part.number, part.token)
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)  # serves one thread at a time: under the write lock
        self._write_lock = threading.RLock()
        self._writer: Connection | None = None
        self._space = (-SPACE_SECONDS, 0)
        self._link = Link(self.address, patience=patience)
        try:
            with self._link.translated():
                self._writer = self._link.connect()
                scripts = schema.steps() if scripts is None else scripts
                schema.migrate(self._writer, str(self.address), scripts, create=create)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything; the store may be opened again. A second call does nothing."""
        with self._write_lock:
            self._link.close()
            writer, self._writer = self._writer, None
            if writer is not None:
                with suppress(psycopg.Error):
                    self._claim.release(writer)
                with suppress(psycopg.Error):
                    writer.close()

    def claim(self, *, brief: bool = False) -> None:
        """Become the one process that runs on this store; StoreLocked if there is another."""
        with self._write_lock, self._link.translated():
            connection = self._session()
            if self.part is not None or not self._claim.held:
                self._claim.take(connection, brief=brief, patience=self.patience)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """One more connection, for questions that take long."""
        with self._link.translated(), self._link.connect() as connection:
            yield connection

    def at_once(self, work: Callable[[Connection], Made]) -> Made:
        """Do something in one transaction of the one who runs on the store, all of it or nothing."""
        with self._write_lock:
            self.claim()
            return self._transact(work, claimed=True)

    def by_anybody(self, work: Callable[[Connection], Made]) -> Made:
        """Do something in one transaction that needs no right to run on the store, all of it or nothing."""
        return self._transact(work, claimed=False)

    def read_together(self, *questions: tuple[str, Any]) -> list[list[tuple[Any, ...]]]:
        """The rows of some statements, all of one moment."""
        return self._link.read_together(*questions)

    def is_run(self) -> bool:
        """Whether a process, or a cluster, runs on it now: one that holds it for longer than a command takes."""
        holder = str(self._read(sql.RUN)[0][0])
        return bool(self._read(sql.LEASED)[0][0] or (holder and not holder.endswith(BRIEF)))

    def _session(self) -> Connection:
        """The connection that writes; a new one if it was lost, which proves that nobody was there meanwhile."""
        if self._link.closed:
            raise StoreError(f"The store {self.address} is closed.", hint="Open it again before using it.")
        if self._writer is None or self._writer.closed or self._writer.broken:
            self._writer = None
            writer = self._link.connect()
            try:
                if self._claim.held:
                    self._claim.take_again(writer, self.patience)
            except BaseException:
                writer.close()
                raise
            self._writer = writer
        return self._writer

    def _transact(self, work: Callable[[Connection], Made], *, claimed: bool) -> Made:
        """Do something in a transaction, all of it or nothing, and once, also if the connection is lost meanwhile."""
        deadline, mark, done = time.monotonic() + self.patience, uuid4().hex, False
        made: Made | None = None
        with self._write_lock, self._link.translated():
            while True:
                try:
                    connection = self._session()
                    if done and connection.execute(sql.WRITTEN, (self._claim.part, mark)).fetchone():
                        return made  # type: ignore[return-value]  # the work was done
                    done = False
                    with connection.transaction():
                        if claimed:
                            proof = mark, self._claim.part, self._claim.token
                            if not connection.execute(sql.PROVE, proof).rowcount:
                                raise self._claim.taken()
                        made = work(connection)
                        done = claimed
                    return made
                except psycopg.Error as error:
                    again = (claimed or not done) and is_lost(error)
                    if not again or time.monotonic() > deadline:
                        raise
                time.sleep(AGAIN_SECONDS)

    def add(self, pages: Iterable[Page]) -> int:
        """Take pages in that are not there yet, in batches that are each whole or absent; how many were new."""
        new, source = 0, iter(pages)
        while chunk := list(islice(source, ADD_CHUNK)):
            said = [page for page in chunk if page.importance is not None]
            told = [(*rows.importance_row(page.importance), *key_of(page.url)) for page in said]

            def work(connection: Connection, chunk: list[Page] = chunk, told: list[Any] = told) -> int:
                sums = Sums()
                added = add_pages(connection, chunk, sums)
                with connection.cursor() as cursor:
                    cursor.executemany(sql.SET_IMPORTANCE, told)
                sums.write(connection)
                return added

            new += self._transact(work, claimed=False)
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
        """Make a batch durable, all of it or nothing; claims the store if need be. How many pages were new."""
        batch, said, gone, numbers = list(records), list(pages), list(removed), list(taken)
        first, believed, named = list(urgent), list(heard), dict(values or {})
        with self._write_lock:
            self.claim()
            self._require_own(record.state.page.url for record in batch)
            used, bound = self.space().used if self.max_bytes else 0, self.max_bytes
            is_full, keeps = bool(bound) and used >= bound, self.keep_versions
            nearly_full = bool(bound) and used >= FIRST_COPIES_SHARE * bound
            if nearly_full:
                keeps = NO_VERSIONS  # what was leaves first
            times = [record.crawl.time for record in batch if record.crawl]
            horizon = inf if nearly_full else max(times) - keeps.seconds if keeps.seconds and times else -inf
            packed = [pack(record.copy.body, self._compressor) if record.copy else None for record in batch]
            titles = [self.title_of(record.copy) if record.copy else None for record in batch]

            def work(connection: Connection) -> int:
                sums = Sums()
                new = self._say(connection, [page for page in said if self._owns(page.url)], sums)
                Batch(batch, packed, titles).write(
                    connection, self.address, sums, keep=self.keep_crawls, is_full=is_full, versions=keeps
                )
                if horizon > -inf:
                    connection.execute(sql.DROP_OLDEST_VERSIONS, (LEAVING, horizon))
                with connection.cursor() as cursor:
                    cursor.executemany(
                        sql.SET_HEARD, [(*rows.heard_row(each)[:-1], *key_of(each.url)) for each in believed]
                    )
                    cursor.executemany(sql.SET_URGENT, [key_of(url) for url in first if self._owns(url)])
                    if numbers:
                        cursor.execute(sql.TAKE_ENTRIES, (numbers,))
                for url in filter(self._owns, gone):
                    self._remove_one(connection, url, sums)
                self._put(connection, named)
                sums.write(connection)
                return new

            return self._transact(work, claimed=True)

    def _owns(self, url: str) -> bool:
        return self.part is None or slice_of(url) in self.part.slices

    def _require_own(self, urls: Iterable[str]) -> None:
        for url in urls:
            if not self._owns(url):
                raise StoreError(f"{url} belongs to another worker.", hint="It was handed over.")

    @staticmethod
    def _say(connection: Connection, pages: Sequence[Page], sums: Sums) -> int:
        """Set all that the operator says of pages; how many were not there yet."""
        new = add_pages(connection, pages, sums)
        if new < len(pages):
            with connection.cursor() as cursor:
                cursor.executemany(sql.SET_WISHES, [(*rows.wishes_row(page), *key_of(page.url)) for page in pages])
        return new

    @staticmethod
    def _remove_one(connection: Connection, url: str, sums: Sums) -> None:
        """Forget a page inside the batch's transaction, with all that is kept of it."""
        part, key = key_of(url)
        found = connection.cursor(binary=True).execute(sql.FIND_PAGES, ([part], [key])).fetchone()
        if found is None:
            return
        _, number, written, had_copy, body_bytes, stored_bytes, *_ = found
        for statement in (sql.FORGET_CRAWLS, sql.FORGET_COPY, sql.FORGET_VERSIONS, sql.FORGET_PAGE):
            connection.execute(statement, (part, number))
        sums.add(part, -1, -int(had_copy), 0, 0, -body_bytes, -stored_bytes, written)

    def put(self, values: Mapping[str, str | None]) -> None:
        """Set named values, durably, and forget those that are None; claims the store if that was not done."""
        with self._write_lock:
            self.claim()
            self._transact(lambda connection: self._put(connection, values), claimed=True)

    def _put(self, connection: Connection, values: Mapping[str, str | None]) -> None:
        with connection.cursor() as cursor:
            kept = [(self._part_of(name), name, value) for name, value in values.items() if value is not None]
            cursor.executemany(sql.SET_NAMED, kept)
            gone = [(self._part_of(name), name) for name, value in values.items() if value is None]
            cursor.executemany(sql.FORGET_NAMED, gone)

    def _part_of(self, name: str) -> int:
        return -1 if self.part is None or name.startswith(self.part.shared) else self._number

    def post(self, entries: Iterable[Entry]) -> int:
        """Put entries into the inbox, durably, all of them or none; how many were new."""
        batch = list(entries)
        return self._transact(
            lambda connection: inbox.post(connection, batch, bound=self.max_inbox, where=self.address), claimed=False
        )

    def inbox(self, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Entries that wait, in the order of their numbers."""
        values = {"after": after, "limit": max(limit, 0), "part": self._number}
        found = self._made(inbox.entry_from, self._read(sql.ENTRIES_AFTER, values))
        if self.part is not None and (strays := inbox.strays(found, self.part.slices)):
            self._transact(lambda connection: inbox.forward(connection, strays), claimed=False)
            return self.inbox(after=after, limit=limit)
        return found

    def _read(self, statement: str, values: Any = ()) -> list[rows.Row]:
        return self._link.read(statement, values)

    def _made(self, make: Callable[[rows.Row], Made], found: Iterable[rows.Row]) -> list[Made]:
        """Something of each row; a damaged database may hold rows that cannot be read."""
        try:
            return [make(row) for row in found]
        except NONSENSE as error:
            raise damaged(self.address, "it holds a row that makes no sense") from error

    def states(self, *, after: int = 0) -> Iterator[tuple[int, PageState]]:
        """Every page with its number, in the order in which they were added, beginning behind number `after`."""
        while found := self._read(sql.STATES_AFTER, {"after": after, "limit": CHUNK, **self._slices}):
            yield from self._made(rows.state_from, found)
            after = found[-1][0]

    def columns(self, *, after: int = 0, limit: int = 10_000) -> PageColumns:
        """The next pages behind number `after`, in columns."""
        found = self._read(sql.COLUMNS_AFTER, {"after": after, "limit": max(limit, 0), **self._slices})

        def special(number: int) -> PageState:
            return rows.state_from(self._read(sql.STATE_NUMBERED, (number,))[0])[1]

        return self._made(lambda _: rows.columns_from(found, special), [()])[0]

    def numbers(self, urls: Sequence[str]) -> list[int]:
        """The numbers of pages; 0 where one is not kept."""
        return [int(row[0]) for row in self._read(sql.NUMBERS_OF, tuple(keys_of(urls)))] if urls else []

    def state_numbered(self, number: int) -> PageState | None:
        """The page with a number, or None if there is none."""
        found = self._read(sql.STATE_NUMBERED, (number,))
        return self._made(rows.state_from, found)[0][1] if found else None

    def states_of_host(self, host: str) -> Iterator[PageState]:
        """Every page of a host, in the order in which they were added."""
        after = 0
        while found := self._read(sql.STATES_OF_HOST, {"after": after, "host": host, "limit": CHUNK}):
            yield from (state for _, state in self._made(rows.state_from, found))
            after = found[-1][0]

    def states_under(self, prefix: str, limit: int) -> list[PageState]:
        """The first pages whose addresses begin so, in the order of their addresses."""
        found = self._read(sql.STATES_UNDER, {"prefix": prefix, "last": prefix + LAST_CHARACTER, "limit": limit})
        return [state for _, state in self._made(rows.state_from, found)]

    def identity(self) -> str:
        """A name that no other store has."""
        return str(self._read(sql.IDENTITY)[0][0])

    def titles(self, urls: Sequence[str]) -> list[str]:
        """The titles of pages, as their copies had them when they were written; "" where there is none."""
        return [str(row[0]) for row in self._read(sql.TITLES_OF, tuple(keys_of(urls)))] if urls else []

    def listed(self, wanted: Wanted) -> Listing:
        """A part of a list of pages, in the order of an index; where there is none, in that of their numbers."""

        def read(statement: str, values: rows.Row) -> list[rows.Row]:
            return self._read(statement, dict(zip("abc", values, strict=False)))

        return self._made(lambda _: list_pages(read, wanted, sql.LISTED), [()])[0]

    def sizes_of_host(self, host: str) -> list[tuple[str, int, int, float]]:
        """(url, depth, bytes of the body, requests a second as last believed) of each page of a host with a copy."""
        found = self._read(sql.SIZES_OF_HOST, (host,))
        return self._made(lambda row: (str(row[0]), int(row[1]), int(row[2]), float(row[3])), found)

    def state(self, url: str) -> PageState | None:
        """One page, or None if it is not kept."""
        found = self._read(sql.STATE_OF, key_of(url))
        return self._made(rows.state_from, found)[0][1] if found else None

    def copy(self, url: str) -> Copy | None:
        """The current copy, or None; StoreError if the body is not what was stored."""
        found = self._read(sql.COPY_OF, key_of(url))
        if not found:
            return None
        try:
            body = unpack(Packed(*found[0][-3:]), zstandard.ZstdDecompressor())
        except (ValueError, TypeError) as error:
            raise damaged_body(self.address, f"copy of {url}: {error}") from error
        return self._made(lambda row: rows.copy_from(row, body), found)[0]

    def versions(self, url: str) -> list[Version]:
        """The versions of a page that are kept, the newest first."""
        key = key_of(url)
        current, earlier = self._link.read_together((sql.CURRENT_VERSION, key), (sql.VERSIONS_OF, key))
        return dated(self._made(rows.version_from, [*current, *earlier]))

    def version(self, url: str, number: int) -> Copy | None:
        """One version of a page by its number, whole; StoreError if it is not what was stored."""
        key = key_of(url)
        current, copies, earlier = self._link.read_together(
            (sql.CURRENT_VERSION, key), (sql.COPY_OF, key), (sql.VERSION_OF, (*key, number))
        )
        is_current = bool(current) and current[0][0] == number
        found = copies if is_current else earlier
        if not found:
            return None
        try:
            body = unpack(Packed(*found[0][-3:]), zstandard.ZstdDecompressor())
        except (ValueError, TypeError) as error:
            raise damaged_body(self.address, f"version {number} of {url}: {error}") from error
        if is_current:
            return self._made(lambda row: rows.copy_from(row, body), found)[0]
        return self._made(lambda row: Copy(url, body, str(row[1]), row[0], row[2]), found)[0]

    def history(self, url: str, limit: int = 20) -> list[Crawl]:
        """The latest crawls of a page, newest first."""
        return self._made(rows.crawl_from, self._read(sql.HISTORY_OF, (*key_of(url), max(limit, 0))))

    def changes(self, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Crawl]]:
        """Crawls that found something new, changed or gone, in the order of their writing."""
        found = self._read(sql.CHANGES_AFTER, (after, max(limit, 0)))
        return self._made(lambda row: (row[0], rows.crawl_from(row[1:])), found)

    def news(self, *, after: int = 0, limit: int = 1000) -> list[News]:
        """Crawls that found something new, changed or gone, that failed, or found a page well again."""
        asked = after, max(limit, 0)
        changes, troubles = self._link.read_together((sql.CHANGES_AFTER, asked), (sql.TROUBLES_AFTER, asked))
        found = self._made(lambda row: (row[0], rows.crawl_from(row[1:])), changes)
        return in_order(found, self._made(rows.news_from, troubles), limit)

    def hosts(self) -> Iterator[HostState]:
        """Every host that has a state."""
        after = None
        while found := self._read(sql.HOSTS_AFTER, {"after": after, "limit": CHUNK, **self._slices}):
            yield from self._made(rows.host_from, found)
            after = found[-1][0]

    def host(self, name: str) -> HostState | None:
        """One host, or None if it has no state."""
        return next(iter(self._made(rows.host_from, self._read(sql.HOST_OF, (name,)))), None)

    def failing(self) -> list[Failing]:
        """The pages whose last crawl did not refresh their copies, counted by host, outcome and reason."""
        return self._made(rows.failing_from, self._read(sql.FAILING, self._slices))

    def pages_by_host(self) -> Iterator[tuple[str, int, int]]:
        """Every host that has pages, in the order of their names: how many, and how many of them have a copy."""
        yield from self._made(rows.counted_from, self._read(sql.PAGES_BY_HOST, self._slices))

    def get(self, name: str) -> str | None:
        """A named value of the runner's, or None."""
        own = self.part is not None and name in self.part.own
        found = self._read(sql.GET_OWN if own else sql.GET_NAMED, (name, self._number))
        return str(found[0][0]) if found else None

    def names(self, prefix: str) -> list[tuple[str, int]]:
        """The names of values that begin so, each with about how many bytes its value takes."""
        found = self._read(sql.NAMES_UNDER, (prefix, prefix + LAST_CHARACTER, self._number))
        return [(str(name), int(size)) for name, size in found]

    def as_its_owner(self, url: str) -> "Postgres":
        """The same store, whose named values are those of the worker that owns a page; itself where none does."""
        found = self._read(sql.OWNER, (slice_of(url),))
        if not found:
            return self
        view = shallow(self)
        view._number = int(found[0][0])
        return view

    def owners(self) -> dict[int, int]:
        """The worker that holds each slice, or held it last; nothing of slices that are just handed over."""
        return {int(number): int(part) for number, part in self._read(sql.OWNERS)}

    def values_of_parts(self, prefix: str) -> dict[int, dict[str, str]]:
        """Named values that begin so, by whose they are: of one worker, or (−1) of the whole store."""
        found: dict[int, dict[str, str]] = {}
        for part, name, value in self._read(sql.VALUES_UNDER, (prefix, prefix + LAST_CHARACTER)):
            found.setdefault(int(part), {})[str(name)] = str(value)
        return found

    def totals(self) -> Totals:
        """Counts over the whole store, or over what a worker holds, kept up with every write."""
        counted = self._read(sql.TOTALS, self._slices)[0]
        waiting = self._read(sql.INBOX_TOTALS, {"part": self._number})[0]
        return self._made(rows.totals_from, [(*(each or 0 for each in counted), *waiting)])[0]

    def space(self) -> Space:
        """How much room there is: what the whole database takes, looked at now and then."""
        looked, used = self._space
        if time.monotonic() - looked >= SPACE_SECONDS:
            used = int(self._read(sql.USED)[0][0])
            self._space = time.monotonic(), used
        return Space(used, self.max_bytes)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with the store: counts, and every copy."""
        (counted,), (totals,) = self._link.read_together((sql.COUNTED, ()), (sql.TOTALS, {"slices": None}))
        kept = *totals[:3], *totals[4:]
        if tuple(counted) != kept:
            yield f"the totals are {kept}, counted are {counted}"
        after = 0
        while found := self._read(sql.COPIES_AFTER, (after,)):
            for number, url in found:
                after = number
                try:
                    self.copy(url)
                except StoreError as error:
                    yield error.message
        after = 0
        while found := self._read(sql.ALL_VERSIONS, (after,)):
            for after, url, number in found:  # noqa: B007 - where to go on
                try:
                    self.version(url, number)
                except StoreError as error:
                    yield error.message
