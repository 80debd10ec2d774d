"""A batch of records in few statements: pages are looked up at once, crawls go in by COPY, the rest in one pipeline."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from afresh.errors import StoreError
from afresh.store import rows
from afresh.store.base import MAX_ALIKE, KeepVersions, Record, gone_after, trouble_after
from afresh.store.body import Packed
from afresh.store.postgres import statements as sql
from afresh.store.postgres.link import Connection
from afresh.store.slices import slice_of, slice_of_host
from afresh.types import Outcome, Page

NOTHING = (0, 0, 0, 0, 0, 0, 0)


def key_of(url: str) -> tuple[int, bytes]:
    """What a page is found by: its slice, and a digest of its address."""
    return slice_of(url), blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def keys_of(urls: Iterable[str]) -> list[list[Any]]:
    """The same of many pages, as two columns."""
    found = [key_of(url) for url in urls]
    return [[each[0] for each in found], [each[1] for each in found]]


class Sums:
    """What a transaction adds to the totals of each slice."""

    def __init__(self) -> None:
        self._by_slice: dict[int, tuple[int, ...]] = {}

    def add(self, part: int, *counts: int) -> None:
        """Pages, copies, crawls, changes, bytes of bodies, bytes stored, crawls removed."""
        before = self._by_slice.get(part, NOTHING)
        self._by_slice[part] = tuple(map(sum, zip(before, (*counts, *NOTHING[len(counts) :]), strict=True)))

    def write(self, connection: Connection) -> None:
        """Add it all up in the store."""
        some = {part: counts for part, counts in sorted(self._by_slice.items()) if any(counts)}
        if some:
            connection.execute(sql.LOCK_TOTALS, ([*some],))
            with connection.cursor() as cursor:
                cursor.executemany(sql.ADD_TOTALS, [(*counts, part) for part, counts in some.items()])


def add_pages(connection: Connection, pages: Sequence[Page], sums: Sums) -> int:
    """Take pages in that are not there yet; how many were new. They are numbered in the order of their commits."""
    if not pages:
        return 0
    connection.execute(sql.STAGE)
    with connection.cursor() as cursor, cursor.copy(sql.COPY_STAGED) as copy:
        copy.set_types(sql.PAGE_TYPES)
        for page in pages:
            copy.write_row((*key_of(page.url), *rows.page_row(page)))
    connection.execute(sql.PAGES_LOCK)
    new = 0
    for part, count in connection.execute(sql.ADD_STAGED).fetchall():
        sums.add(part, count)
        new += count
    connection.execute("DROP TABLE staged")
    return new


@dataclass(slots=True)
class _Page:
    """A page that is written to in this batch."""

    number: int
    written: int
    had_copy: bool
    body_bytes: int
    stored_bytes: int
    gone: float | None
    trouble: int
    fetched: float | None = None
    title: str | None = None  # of a copy that comes


class Batch:
    """The records of one transaction.

    Records of one page take effect in their order: what becomes of its history after each is the same as if each were
    written alone.
    """

    def __init__(
        self, records: Sequence[Record], packed: Sequence[Packed | None], titles: Sequence[str | None]
    ) -> None:
        self.records = records
        self.packed = packed
        self.titles = titles

    def write(
        self, connection: Connection, where: object, sums: Sums, *, keep: int, is_full: bool, versions: KeepVersions
    ) -> None:
        """Write them all."""
        if not self.records:
            return
        keys = [key_of(record.state.page.url) for record in self.records]
        pages = self._found(connection, keys, where)
        rounds = self._rounds(keys)
        crawls, copies = self._tell_states(connection, keys, pages, sums)
        count = sum(len(each) for each in crawls.values())
        if not count:
            self._set_copies(connection, copies.values())
            return
        # Last: from here on others who write crawls wait until this is durable, so that serials appear in their order.
        found: Any = connection.execute(sql.TAKE_SERIALS, (count, count)).fetchone()
        serial = {nth: int(found[0]) + place for place, nth in enumerate(sorted(crawls), start=1)}
        for some in rounds:
            written = [nth for nth in some if nth in crawls]
            news = [nth for nth in written if nth in copies and _brings_version(self.records[nth])]
            self._keep_versions(connection, [(crawls[nth][0], serial[nth]) for nth in news], versions)
            self._set_copies(connection, [copies[nth] for nth in some if nth in copies])
            with connection.cursor() as cursor, cursor.copy(sql.COPY_CRAWLS) as copy:
                copy.set_types(sql.CRAWL_TYPES)
                for nth in written:
                    copy.write_row((*crawls[nth][0], serial[nth]))
            self._shorten(connection, [(crawls[nth][0], nth) for nth in written], keep=keep, is_full=is_full)

    def _found(
        self, connection: Connection, keys: Sequence[tuple[int, bytes]], where: object
    ) -> dict[tuple[int, bytes], _Page]:
        cursor = connection.cursor(binary=True)
        found = cursor.execute(sql.FIND_PAGES, ([key[0] for key in keys], [key[1] for key in keys])).fetchall()
        pages = {keys[row[0] - 1]: _Page(*row[1:]) for row in found}
        for key, record in zip(keys, self.records, strict=True):
            if key not in pages:
                raise StoreError(
                    f"The page {record.state.page.url} is not in the store {where}, so its crawl cannot be kept.",
                    hint="Add the page first.",
                )
        return pages

    @staticmethod
    def _rounds(keys: Sequence[tuple[int, bytes]]) -> list[list[int]]:
        """The places of records, so that no page comes twice in a round, and each page's in their order."""
        times: dict[tuple[int, bytes], int] = defaultdict(int)
        rounds: dict[int, list[int]] = defaultdict(list)
        for nth, key in enumerate(keys):
            rounds[times[key]].append(nth)
            times[key] += 1
        return [rounds[nth] for nth in sorted(rounds)]

    def _tell_states(
        self,
        connection: Connection,
        keys: Sequence[tuple[int, bytes]],
        pages: dict[tuple[int, bytes], _Page],
        sums: Sums,
    ) -> tuple[dict[int, list[tuple[Any, ...]]], dict[int, tuple[Any, ...]]]:
        """Write states and hosts, of each page and host the last; rows of crawls and of copies, by their places."""
        states: dict[tuple[int, bytes], tuple[Any, ...]] = {}
        copies: dict[int, tuple[Any, ...]] = {}
        hosts: dict[str, tuple[Any, ...]] = {}
        crawls: dict[int, list[tuple[Any, ...]]] = {}
        for nth, (key, record, packed) in enumerate(zip(keys, self.records, self.packed, strict=True)):
            page, part = pages[key], key[0]
            page.title = page.title if self.titles[nth] is None else self.titles[nth]
            body, stored, copied, had_copy = page.body_bytes, page.stored_bytes, 0, page.had_copy
            if record.copy and packed:
                copies[nth] = (part, *_text(rows.copy_row(page.number, record.copy, packed), 1, 3, 4))
                copied, page.had_copy = int(not page.had_copy), True
                page.fetched, page.body_bytes, page.stored_bytes = record.copy.fetched, packed.size, len(packed.frame)
            if record.crawl:
                page.written += 1
                page.gone = gone_after(page.gone, record.crawl)
                page.trouble, mark = trouble_after(page.trouble, record.crawl, has_copy=had_copy)
                row = _text(rows.crawl_row(page.number, page.written, record.crawl, mark, 0), 10)
                crawls[nth] = [(part, *row[:-1])]
            state = _text(rows.state_row(record.state), 5, 6)
            copied_row = page.fetched, page.body_bytes, page.stored_bytes
            states[key] = (*state, page.gone, page.trouble, page.title, page.written, *copied_row, *key)
            if record.host:
                name = record.host.host
                hosts[name] = (*_text(rows.host_row(record.host), 3), slice_of_host(name))
            sums.add(part, 0, copied, *rows.counts_of(record), page.body_bytes - body, page.stored_bytes - stored)
        with connection.cursor() as cursor:
            cursor.executemany(sql.SET_STATE, [states[key] for key in sorted(states)])
            cursor.executemany(sql.SET_HOST, [hosts[name] for name in sorted(hosts)])
        return crawls, copies

    @staticmethod
    def _set_copies(connection: Connection, copies: Iterable[tuple[Any, ...]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(sql.SET_COPY, list(copies))

    @staticmethod
    def _keep_versions(
        connection: Connection, news: Sequence[tuple[tuple[Any, ...], int]], versions: KeepVersions
    ) -> None:
        """Copies that are about to be replaced become earlier versions, within their bounds."""
        if not news:
            return
        values: dict[str, Any] = {
            "slices": [row[0] for row, _ in news],
            "pages": [row[1] for row, _ in news],
            "times": [row[3] for row, _ in news],
            "serials": [serial for _, serial in news],
            "count": versions.count,
            "seconds": versions.seconds,
            "bytes": versions.bytes,
        }
        if versions.count:
            connection.execute(sql.KEEP_VERSIONS, values)
        connection.execute(sql.TRIM_VERSIONS, values)
        connection.execute(sql.SET_VERSIONS, values)

    def _shorten(
        self, connection: Connection, crawls: Sequence[tuple[tuple[Any, ...], int]], *, keep: int, is_full: bool
    ) -> None:
        """Keep histories within their bounds."""
        failed = [row for row, nth in crawls if not _refreshed(self.records[nth])]
        for statement, some, more in (
            (sql.SHORTEN_RUNS, failed, {"alike": MAX_ALIKE}),
            (sql.DROP_OLDEST, [row for row, _ in crawls] if is_full else [], {}),
            (sql.TRIM_CRAWLS, [row for row, _ in crawls if row[2] > keep], {"keep": keep}),
        ):
            if some:
                values = {"slices": [row[0] for row in some], "pages": [row[1] for row in some], **more}
                connection.execute(statement, values)


def _brings_version(record: Record) -> bool:
    return record.crawl is not None and record.crawl.outcome in (Outcome.NEW, Outcome.CHANGED)


def _refreshed(record: Record) -> bool:
    return record.crawl is not None and record.crawl.outcome.refreshed


def _text(row: tuple[Any, ...], *places: int) -> tuple[Any, ...]:
    """A row with text at these places, which the rows of another database may hold as bytes."""
    made = list(row)
    for place in places:
        made[place] = rows.untext(made[place])
    return tuple(made)
