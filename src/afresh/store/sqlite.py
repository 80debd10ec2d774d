"""The default store: one SQLite file, one writer, any number of readers."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate, islice, repeat
from math import inf
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import apsw
import zstandard

from afresh.errors import StoreError
from afresh.store import inbox, rows
from afresh.store.base import (
    FIRST_COPIES_SHARE,
    INBOX_BYTES,
    MAX_ALIKE,
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
    gone_after,
    in_order,
    trouble_after,
    untitled,
)
from afresh.store.body import LEVEL, Packed, pack, unpack
from afresh.store.companion import Companion
from afresh.store.faults import damaged, damaged_body, moment, transaction, translated
from afresh.store.files import Claim, ensure, is_run
from afresh.store.listing import Listing, Wanted, list_pages
from afresh.store.schema import behind, migrate, steps
from afresh.store.understood import NONSENSE
from afresh.store.versions import dated
from afresh.types import Copy, Crawl, HostState, Outcome, Page

Made = TypeVar("Made")

NO_VERSIONS = KeepVersions()
LEAVING = 8  # earlier versions that leave with a batch, where the oldest must go

CHUNK = 1_000  # rows read at a time: large enough to be fast, small enough to hold no lock for long
_END = (1 << 63) - 1  # behind the numbers of all crawls
LAST_CHARACTER = "\U0010ffff"  # no address has a later one
ADD_CHUNK = 20_000  # pages added in one transaction, a fraction of a second, so that a running crawler hardly waits
CHECK_SECONDS = 1.0  # spent at most on looking for damage when a store is claimed
CACHE_BYTES = 32 << 20  # of each of the two connections: the upper levels of the trees of ten million pages
JOURNAL_BYTES = 64 << 20  # the journal is cut back to this after a large batch


class Sqlite:
    """A store in one file; see `afresh.store.base.Store` for what each method promises.

    One connection writes and one reads, each under its own lock, so that a write in a worker thread never holds up a
    read. Everything that one crawl leaves goes into one transaction of one file with `synchronous=FULL`.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        create: bool = True,
        keep_crawls: int = 100,
        patience: float = 10.0,
        max_inbox: int = INBOX_BYTES,
        max_bytes: int = 0,
        keep_versions: KeepVersions = NO_VERSIONS,
        scripts: Sequence[str] | None = None,
    ) -> None:
        """Open the store at `path`, or make a new one there if `create`.

        `keep_crawls` of each page stay in the history, and earlier versions of it within `keep_versions`; `patience` is
        how many seconds to wait for another process's write; `max_inbox` bytes may wait in the inbox; `max_bytes` is
        what it should not grow beyond (0: no bound); `scripts` are the schema's steps, if not the product's own.
        """
        if keep_crawls < 1:
            raise ValueError(f"keep_crawls must be at least 1, not {keep_crawls}")
        # The real path: SQLite puts its journal beside the real file, and the claim must be one for all its names.
        self.path = Path(path).expanduser().resolve()
        self.keep_crawls = keep_crawls
        self.patience = patience
        self.max_inbox = max_inbox
        self.max_bytes = max_bytes
        self.keep_versions = keep_versions
        self.title_of: Callable[[Copy], str] = untitled
        self.companion: Companion | None = None  # what is derived of copies, and written with them: see `accompany`
        self._scripts = steps() if scripts is None else scripts
        self._write_lock, self._read_lock = threading.RLock(), threading.RLock()
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)  # serves one thread at a time: under the write lock
        self._claim: Claim | None = None
        with translated(self.path):
            ensure(self.path, self._build, create=create)
            self._writer = self._connect(self.path)
            try:
                self._upgrade()
                self._reader = self._connect(self.path)
            except BaseException:
                self._writer.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
        connection = apsw.Connection(str(path), flags=flags)
        try:
            connection.set_busy_timeout(round(self.patience * 1000))
            # FULL: a commit is on the disk when it returns, not at the next checkpoint.
            connection.pragma("synchronous", "FULL")
            connection.pragma("journal_size_limit", JOURNAL_BYTES)
            connection.pragma("cell_size_check", True)
            connection.pragma("cache_size", -CACHE_BYTES // 1024)
        except BaseException:
            connection.close()
            raise
        return connection

    def _build(self, path: Path) -> None:
        connection = self._connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            # Stays in the file's header, so that nobody ever has to change it while others have the store open.
            connection.pragma("journal_mode", "wal")
            migrate(connection, self.path, self._scripts)
        finally:
            connection.close()

    def _upgrade(self) -> None:
        if behind(self._writer, self.path, self._scripts):
            # A runner of an older version would be lost in the new schema.
            claim = Claim(self.path)
            try:
                migrate(self._writer, self.path, self._scripts)
            finally:
                claim.release()

    def claim(self, *, brief: bool = False) -> None:
        """Become the one process that runs on this store; StoreLocked if there is another."""
        with self._write_lock, translated(self.path):
            self._writer.cache_stats()  # an error if the store is closed
            if self._claim is None:
                claim = Claim(self.path, brief=brief, patience=self.patience)
                try:
                    if not brief:
                        self._look_for_damage(CHECK_SECONDS)
                except BaseException:
                    claim.release()
                    raise
                self._claim = claim

    def is_run(self) -> bool:
        """Whether a process runs on it now: one that holds it for longer than a command takes."""
        return is_run(self.path)

    def accompany(self, companion: Companion) -> None:
        """Let something that is derived of copies be written in the transactions that write them."""
        with self._write_lock, translated(self.path), transaction(self._writer):
            companion.begin(self._writer)
            self.companion = companion

    def reader(self) -> apsw.Connection:
        """One more connection, which only reads, for questions that take long; the caller closes it."""
        with translated(self.path):
            connection = self._connect(self.path)
            connection.pragma("query_only", True)
            return connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """The connection that writes, for tables that are not the store's own; transactions are the caller's."""
        with self._write_lock, translated(self.path):
            yield self._writer

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """The connection that reads, for the same."""
        with self._read_lock, translated(self.path):
            yield self._reader

    def _look_for_damage(self, seconds: float) -> None:
        """Check the file's structure, as far as that gets in the time; bodies are proven whole when they are read."""
        deadline = time.monotonic() + seconds
        with self._read_lock:
            self._reader.set_progress_handler(lambda: time.monotonic() > deadline, 1_000)
            try:
                found = self._reader.execute("PRAGMA quick_check(1)").fetchall()
            except apsw.InterruptError:
                return
            finally:
                self._reader.set_progress_handler(None)
        if found != [("ok",)]:
            raise damaged(self.path, str(found[0][0]).replace("\n", " "))

    def add(self, pages: Iterable[Page]) -> int:
        """Take pages in that are not there yet, in batches that are each whole or absent; how many were new.

        Of those that are there, only the importance is set, if one is given.
        """
        new, source = 0, iter(pages)
        # Collected outside the transaction: the source may be slow, and nobody can write while it is open.
        while chunk := list(islice(source, ADD_CHUNK)):
            batch = [rows.page_row(page) for page in chunk]
            told = [(*rows.importance_row(page.importance), page.url) for page in chunk if page.importance is not None]
            with self._write_lock, translated(self.path), transaction(self._writer):
                before = self._writer.total_changes()
                self._writer.executemany(rows.ADD_PAGE, batch)
                added = self._writer.total_changes() - before
                self._writer.executemany(rows.SET_IMPORTANCE, told)
                self._writer.execute(rows.ADD_TOTALS, (added, 0, 0, 0, 0, 0))
            new += added
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
        first = [(url,) for url in urgent]
        with self._write_lock:
            self.claim()
            # Compressed before the transaction begins, to keep that short.
            used, bound = self.space().used if self.max_bytes else 0, self.max_bytes
            is_full, keeps = bool(bound) and used >= bound, self.keep_versions
            nearly_full = bool(bound) and used >= FIRST_COPIES_SHARE * bound
            if nearly_full:
                keeps = NO_VERSIONS  # what was leaves first
            packed = [pack(record.copy.body, self._compressor) if record.copy else None for record in batch]
            titles = [self.title_of(record.copy) if record.copy else None for record in batch]
            companion = self.companion
            derived = companion.prepare([each.copy for each in batch if each.copy]) if companion else None
            with translated(self.path), transaction(self._writer):
                new = self._say(said)
                nth = list(accumulate(record.crawl is not None for record in batch))
                counts = list(map(self._write_one, batch, packed, titles, nth, repeat(is_full), repeat(keeps)))
                times = [record.crawl.time for record in batch if record.crawl]
                horizon = max(times) - keeps.seconds if keeps.seconds and times else -inf
                self._drop_oldest_versions(inf if nearly_full else horizon)
                hosts = {record.host.host: record.host for record in batch if record.host}  # of each the last
                self._writer.executemany(rows.SET_HOST, list(map(rows.host_row, hosts.values())))
                self._writer.executemany(rows.SET_HEARD, list(map(rows.heard_row, heard)))
                self._writer.executemany(rows.SET_URGENT, first)
                counts += map(self._remove_one, gone)
                self._writer.execute(rows.ADD_TOTALS, tuple(map(sum, zip((new, *(0,) * 5), *counts, strict=True))))
                self._put(values or {})
                inbox.take(self._writer, numbers)
                if companion:
                    companion.write(self._writer, derived)
        return new

    def _say(self, pages: Sequence[Page]) -> int:
        """Set all that the operator says of pages; how many were not there yet."""
        before = self._writer.total_changes()
        self._writer.executemany(rows.ADD_PAGE, map(rows.page_row, pages))
        new = self._writer.total_changes() - before
        if new < len(pages):
            self._writer.executemany(rows.SET_WISHES, [(*rows.wishes_row(page), page.url) for page in pages])
        return new

    def _remove_one(self, url: str) -> tuple[int, int, int, int, int, int]:
        """Forget a page inside the batch's transaction, with all that is kept of it; what that adds to the totals."""
        execute = self._writer.execute
        found = execute(rows.FIND_PAGE, (url,)).fetchone()
        if found is None:
            return 0, 0, 0, 0, 0, 0
        number, written, had_copy, body_bytes, stored_bytes, *_ = found
        for statement in (rows.FORGET_CRAWLS, rows.FORGET_COPY, rows.FORGET_VERSIONS, rows.FORGET_PAGE):
            execute(statement, (number,))
        execute(rows.ADD_REMOVED, (written,))  # crawls are counted for ever: their numbers are never used twice
        return -1, -int(had_copy), 0, 0, -body_bytes, -stored_bytes

    def post(self, entries: Iterable[Entry]) -> int:
        """Put entries into the inbox, durably, all of them or none; how many were new."""
        batch = list(entries)
        with self._write_lock, translated(self.path), transaction(self._writer):
            return inbox.post(self._writer, batch, bound=self.max_inbox, path=self.path)

    def inbox(self, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Entries that wait, in the order of their numbers."""
        return self._made(inbox.entry_from, self._read(inbox.ENTRIES_AFTER, (after, max(limit, 0))))

    def _write_one(
        self,
        record: Record,
        packed: Packed | None,
        title: str | None,
        nth: int,
        is_full: bool,
        keeps: KeepVersions,
    ) -> tuple[int, int, int, int, int, int]:
        """Write one record inside the batch's transaction; what it adds to the totals."""
        execute, state, crawl, copy = self._writer.execute, record.state, record.crawl, record.copy
        found = execute(rows.FIND_PAGE, (state.page.url,)).fetchone()
        if found is None:
            raise StoreError(
                f"The page {state.page.url} is not in the store {self.path}, so its crawl cannot be kept.",
                hint="Add the page first.",
            )
        number, written, had_copy, body_bytes, stored_bytes, gone, trouble = found
        if crawl:
            written += 1
            gone = gone_after(gone, crawl)
            trouble, mark = trouble_after(trouble, crawl, has_copy=bool(had_copy))
            execute(rows.ADD_CRAWL, rows.crawl_row(number, written, crawl, mark, nth))
            if not crawl.outcome.refreshed:
                self._shorten_run(number)
            if is_full:  # the oldest makes room for the newest
                execute(rows.DROP_OLDEST_CRAWL, (number, written))
            if written > self.keep_crawls:
                execute(rows.TRIM_CRAWLS, (number, self.keep_crawls))
        fetched, body, stored = None, body_bytes, stored_bytes
        if copy and crawl and crawl.outcome in (Outcome.NEW, Outcome.CHANGED):
            if keeps.count and had_copy and (not keeps.bytes or stored_bytes <= keeps.bytes):
                execute(rows.KEEP_VERSION, (number, nth, crawl.time))
            self._trim_versions(number, keeps, crawl.time)
            execute(rows.SET_VERSION, (nth, number))
        if copy and packed:
            execute(rows.SET_COPY, rows.copy_row(number, copy, packed))
            fetched, body, stored = copy.fetched, packed.size, len(packed.frame)
        execute(rows.SET_STATE, (*rows.state_row(state), gone, trouble, title, written, fetched, body, stored, number))
        copies = int(copy is not None and not had_copy)
        return 0, copies, *rows.counts_of(record), body - body_bytes, stored - stored_bytes

    def _shorten_run(self, number: int) -> None:
        """Of failures in a row that are all alike, drop one in the middle: see `MAX_ALIKE`."""
        latest = self._writer.execute(rows.LATEST_CRAWLS, (number, MAX_ALIKE + 1)).fetchall()
        if len(latest) > MAX_ALIKE and len({row[1:] for row in latest}) == 1:
            self._writer.execute(rows.DROP_CRAWL, (number, latest[-2][0]))

    def _trim_versions(self, number: int, keeps: KeepVersions, now: float) -> None:
        """Let the earlier versions of a page go that are beyond the bounds, the oldest first."""
        total, found = 0, cast(list[rows.Row], self._writer.execute(rows.EARLIER, (number,)).fetchall())
        for nth, (row, replaced, stored) in enumerate(found):
            total += stored
            too_old = keeps.seconds and replaced < now - keeps.seconds
            if nth >= keeps.count or too_old or (keeps.bytes and total > keeps.bytes):
                self._writer.execute(rows.DROP_VERSION, (row,))

    def _drop_oldest_versions(self, horizon: float) -> None:
        """Let some of the oldest versions of all pages go: those that were replaced before a moment."""
        found = cast(list[rows.Row], self._writer.execute(rows.OLDEST_VERSIONS, (LEAVING,)).fetchall())
        for row, replaced in found:
            if replaced < horizon:
                self._writer.execute(rows.DROP_VERSION, (row,))

    def put(self, values: Mapping[str, str | None]) -> None:
        """Set named values, durably, and forget those that are None; claims the store if that was not done."""
        with self._write_lock:
            self.claim()
            with translated(self.path), transaction(self._writer):
                self._put(values)

    def _put(self, values: Mapping[str, str | None]) -> None:
        kept = [(name, rows.text(value)) for name, value in values.items() if value is not None]
        self._writer.executemany(rows.SET_NAMED, kept)
        self._writer.executemany(rows.FORGET_NAMED, [(name,) for name, value in values.items() if value is None])

    def _read(self, statement: str, values: rows.Row = ()) -> list[rows.Row]:
        with self._read_lock, translated(self.path):
            return self._reader.execute(statement, values).fetchall()

    def _made(self, make: Callable[[rows.Row], Made], found: Iterable[rows.Row]) -> list[Made]:
        """Something of each row; a damaged file may hold rows that cannot be read."""
        try:
            return [make(row) for row in found]
        except NONSENSE as error:
            raise damaged(self.path, "it holds a row that makes no sense") from error

    def states(self, *, after: int = 0) -> Iterator[tuple[int, PageState]]:
        """Every page with its number, in the order in which they were added, beginning behind number `after`."""
        while found := self._read(rows.STATES_AFTER, (after, CHUNK)):
            yield from self._made(rows.state_from, found)
            after = found[-1][0]

    def columns(self, *, after: int = 0, limit: int = 10_000) -> PageColumns:
        """The next pages behind number `after`, in columns."""
        found = self._read(rows.COLUMNS_AFTER, (after, max(limit, 0)))

        def special(number: int) -> PageState:
            return rows.state_from(self._read(rows.STATE_NUMBERED, (number,))[0])[1]

        return self._made(lambda _: rows.columns_from(found, special), [()])[0]

    def numbers(self, urls: Sequence[str]) -> list[int]:
        """The numbers of pages; 0 where one is not kept."""
        with self._read_lock, translated(self.path):
            execute = self._reader.execute
            found = [execute(rows.NUMBER_OF, (url,)).fetchone() for url in urls]
        return [0 if row is None else int(row[0]) for row in found]

    def state_numbered(self, number: int) -> PageState | None:
        """The page with a number, or None if there is none."""
        found = self._read(rows.STATE_NUMBERED, (number,))
        return self._made(rows.state_from, found)[0][1] if found else None

    def states_of_host(self, host: str) -> Iterator[PageState]:
        """Every page of a host, in the order in which they were added."""
        after = 0
        while found := self._read(rows.STATES_OF_HOST, (after, host, CHUNK)):
            yield from (state for _, state in self._made(rows.state_from, found))
            after = found[-1][0]

    def states_under(self, prefix: str, limit: int) -> list[PageState]:
        """The first pages whose addresses begin so, in the order of their addresses."""
        found = self._read(rows.STATES_UNDER, (prefix, prefix + LAST_CHARACTER, limit))
        return [state for _, state in self._made(rows.state_from, found)]

    def identity(self) -> str:
        """A name that no other store has."""
        return self._made(lambda row: str(row[0]), self._read(rows.IDENTITY))[0]

    def titles(self, urls: Sequence[str]) -> list[str]:
        """The titles of pages, as their copies had them when they were written; "" where there is none."""
        with self._read_lock, translated(self.path):
            execute = self._reader.execute
            found = [execute(rows.TITLE_OF, (url,)).fetchone() for url in urls]
        return ["" if row is None else str(row[0]) for row in found]

    def listed(self, wanted: Wanted) -> Listing:
        """A part of a list of pages, in the order of an index."""
        return self._made(lambda _: list_pages(self._read, wanted), [()])[0]

    def sizes_of_host(self, host: str) -> list[tuple[str, int, int, float]]:
        """(url, depth, bytes of the body, requests a second as last believed) of each page of a host with a copy."""
        found = self._read(rows.SIZES_OF_HOST, (host,))
        return self._made(lambda row: (str(row[0]), int(row[1]), int(row[2]), float(row[3])), found)

    def state(self, url: str) -> PageState | None:
        """One page, or None if it is not kept."""
        found = self._read(rows.STATE_OF, (url,))
        return self._made(rows.state_from, found)[0][1] if found else None

    def copy(self, url: str) -> Copy | None:
        """The current copy, or None; StoreError if the body is not what was stored."""
        found = self._read(rows.COPY_OF, (url,))
        if not found:
            return None
        try:
            # A decompressor serves one thread at a time, and a large body must not hold up those who read states.
            body = unpack(Packed(*found[0][-3:]), zstandard.ZstdDecompressor())
        except (ValueError, TypeError) as error:
            raise damaged_body(self.path, f"copy of {url}: {error}") from error
        return self._made(lambda row: rows.copy_from(row, body), found)[0]

    def versions(self, url: str) -> list[Version]:
        """The versions of a page that are kept, the newest first."""
        with self._read_lock, translated(self.path), moment(self._reader):
            execute = self._reader.execute
            found = [*execute(rows.CURRENT_VERSION, (url,)).fetchall(), *execute(rows.VERSIONS_OF, (url,)).fetchall()]
        return dated(self._made(rows.version_from, found))

    def version(self, url: str, number: int) -> Copy | None:
        """One version of a page by its number, whole; StoreError if it is not what was stored."""
        with self._read_lock, translated(self.path), moment(self._reader):
            execute = self._reader.execute
            current = execute(rows.CURRENT_VERSION, (url,)).fetchall()
            is_current = bool(current) and current[0][0] == number
            # To its end: a cursor that is let go of outside the lock may leave the connection with an old view.
            found = cast(
                list[rows.Row],
                execute(
                    rows.COPY_OF if is_current else rows.VERSION_OF, (url,) if is_current else (url, number)
                ).fetchall(),
            )
        if not found:
            return None
        row = found[0]
        try:
            body = unpack(Packed(*row[-3:]), zstandard.ZstdDecompressor())
        except (ValueError, TypeError) as error:
            raise damaged_body(self.path, f"version {number} of {url}: {error}") from error
        if is_current:
            return self._made(lambda row: rows.copy_from(row, body), [row])[0]
        fetched, content_type, replaced = row[:3]
        return self._made(lambda _: Copy(url, body, rows.untext(content_type), fetched, replaced), [row])[0]

    def history(self, url: str, limit: int = 20) -> list[Crawl]:
        """The latest crawls of a page, newest first."""
        return self._made(rows.crawl_from, self._read(rows.HISTORY_OF, (url, max(limit, 0))))

    def changes(self, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Crawl]]:
        """Crawls that found something new, changed or gone, in the order of their writing."""
        found = self._read(rows.CHANGES_AFTER, (after, max(limit, 0)))
        return self._made(lambda row: (row[0], rows.crawl_from(row[1:])), found)

    def latest_changes(self, limit: int, before: int = _END) -> list[tuple[int, Crawl]]:
        """The latest of these before a number, the newest first."""
        found = self._read(rows.LATEST_CHANGES, (before, max(limit, 0)))
        return self._made(lambda row: (row[0], rows.crawl_from(row[1:])), found)

    def news(self, *, after: int = 0, limit: int = 1000) -> list[News]:
        """Crawls that found something new, changed or gone, that failed, or found a page well again."""
        asked = after, max(limit, 0)
        with self._read_lock, translated(self.path), moment(self._reader):
            execute = self._reader.execute
            changes, troubles = (execute(each, asked).fetchall() for each in (rows.CHANGES_AFTER, rows.TROUBLES_AFTER))
        found = self._made(lambda row: (row[0], rows.crawl_from(row[1:])), changes)
        return in_order(found, self._made(rows.news_from, troubles), limit)

    def hosts(self) -> Iterator[HostState]:
        """Every host that has a state."""
        first = ""  # also a host's name: that of local files
        while found := self._read(rows.HOSTS_FROM, (first, CHUNK)):
            yield from self._made(rows.host_from, found)
            first = found[-1][0] + "\0"  # the very next name that there could be

    def host(self, name: str) -> HostState | None:
        """One host, or None if it has no state."""
        return next(iter(self._made(rows.host_from, self._read(rows.HOST_OF, (name,)))), None)

    def failing(self) -> list[Failing]:
        """The pages whose last crawl did not refresh their copies, counted by host, outcome and reason."""
        return self._made(rows.failing_from, self._read(rows.FAILING))

    def pages_by_host(self) -> Iterator[tuple[str, int, int]]:
        """Every host that has pages, in the order of their names: how many, and how many of them have a copy."""
        yield from self._made(rows.counted_from, self._read(rows.PAGES_BY_HOST))

    def get(self, name: str) -> str | None:
        """A named value of the runner's, or None."""
        found = self._read(rows.GET_NAMED, (name,))
        return self._made(lambda row: rows.untext(row[0]), found)[0] if found else None

    def names(self, prefix: str) -> list[tuple[str, int]]:
        """The names of values that begin so, each with about how many bytes its value takes."""
        return [(name, size) for name, size in self._read(rows.NAMES_UNDER, (prefix, prefix + LAST_CHARACTER))]

    def space(self) -> Space:
        """How much room there is."""
        page, pages, unused = (
            self._read(f"PRAGMA {name}")[0][0] for name in ("page_size", "page_count", "freelist_count")
        )
        return Space(page * (pages - unused), self.max_bytes)

    def totals(self) -> Totals:
        """Counts over the whole store, kept up with every write."""
        found = self._made(rows.totals_from, self._read(rows.TOTALS))
        if not found:
            raise damaged(self.path, "its totals are gone")
        return found[0]

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with the file, read from end to end: structure, counts and every copy."""
        for (line,) in self._read("PRAGMA integrity_check"):
            if line != "ok":
                yield line
        totals = self.totals()
        counted = tuple(number or 0 for number in self._read(rows.COUNTED)[0])
        kept = totals.pages, totals.copies, totals.crawls, totals.body_bytes, totals.stored_bytes
        if counted != kept:
            yield f"the totals are {kept}, counted are {counted}"
        for url in [row[0] for row in self._read(rows.URLS_OF_COPIES)]:
            try:
                self.copy(url)
            except StoreError as error:
                yield error.message
        for url, number in self._read(rows.ALL_VERSIONS):
            try:
                self.version(url, number)
            except StoreError as error:
                yield error.message

    def close(self) -> None:
        """Let go of everything; the store may be opened again. A second call does nothing."""
        with self._write_lock, self._read_lock, translated(self.path), ExitStack() as last:
            # Each is let go of even if the one before it fails: the claim must not outlive the store.
            claim, self._claim = self._claim, None
            if claim is not None:
                last.callback(claim.release)
            last.callback(self._writer.close)
            last.callback(self._reader.close)
