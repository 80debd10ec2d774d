"""The full-text index of a store: texts and links in SQLite, and the words by one of the `engines`.

Invariant: a page of the index was made of the copy that the store has now, or its number is noted as due or gone. The
engine holds no text that can be searched but the words' places; the text itself is beside it, compressed, for snippets.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import pack, unpack
from typing import NamedTuple

import apsw
import xxhash
import zstandard

from afresh.errors import ConfigError, StoreError
from afresh.index import schema
from afresh.index.documents import MAX_TEXT_BYTES, Indexed, indexed, mark_of
from afresh.index.engines import Engine, Fts5
from afresh.index.queries import SITE_END, Query, Term, without_port, word_of_host
from afresh.index.schema import row_of, rows_of
from afresh.store.body import Packed, signed
from afresh.store.body import unpack as unpack_body
from afresh.store.faults import transaction
from afresh.types import Copy

_log = logging.getLogger("afresh.index")

CANDIDATES = 200  # results by their text alone, among which links decide as well
MOST_PREPARED_SITES = 8  # labels of a host that are searched
PIECE = 200  # due copies that are read and written in one go
HALF_TRUST = 4.0  # the logarithm of links at which authority has half of its weight
TITLE_WEIGHT, HEADING_WEIGHT, AUTHORITY = 8.0, 3.0, 0.3
LEVEL = 3

_DUE = """SELECT url, host, content_type, size, checksum, body, page FROM search_due
  JOIN copies USING (page) JOIN pages ON number = page WHERE page > ? ORDER BY page LIMIT ?"""
_FIND_COPY = "SELECT number, host, checksum FROM pages JOIN copies ON page = number WHERE url = ?"
_KNOWN = "SELECT words, targets FROM search_docs WHERE page = ?"
_ADD_DOC = "INSERT OR REPLACE INTO search_docs (page, checksum, mark, words, targets, body) VALUES (?, ?, ?, ?, ?, ?)"
_LINKED = """INSERT INTO search_links VALUES (?, 1) ON CONFLICT (mark) DO UPDATE SET pages = pages + 1"""
_UNLINKED = "UPDATE search_links SET pages = pages - 1 WHERE mark = ?"
_FOUND = """SELECT page, url, coalesce(links.pages, 0) FROM search_docs JOIN pages ON number = page
  LEFT JOIN search_links AS links USING (mark) WHERE page = ?"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the parts of a page count in the ranking: in the title and in headings so many times more than in its text,
    and up to so much more where others link to it."""

    title: float = TITLE_WEIGHT
    headings: float = HEADING_WEIGHT
    authority: float = AUTHORITY

    @property
    def columns(self) -> tuple[float, float, float, float]:
        """What a word counts in each of `queries.COLUMNS`."""
        return 0.0, self.title, self.headings, 1.0

    def of_links(self, pages: int) -> float:
        """What the text's score is multiplied with where so many pages link to it.

        >>> Weights().of_links(0), 1.1 < Weights().of_links(50) < Weights().of_links(10_000) < 1.3
        (1.0, True)
        """
        from math import log1p

        known = log1p(max(pages, 0))
        return 1.0 + self.authority * known / (known + HALF_TRUST)


class Found(NamedTuple):
    """A result: its page by number and address, its score, and how many pages link to it."""

    page: int
    url: str
    score: float
    links: int


class Prepared(NamedTuple):
    """What is to be written of a copy, made before the transaction begins."""

    checksum: int
    content: Indexed


class Due(NamedTuple):
    """A copy that the index does not have yet, read."""

    url: str
    host: str
    prepared: Prepared
    page: int


def site_words(host: str) -> str:
    """A host as words, so that a domain is found as their end at any port, and a host with its port by one more.

    >>> site_words("www.example.com")
    'www example com 0siteend0'
    """
    name = without_port(host.lower())
    words = f"{' '.join(name.split('.')[-MOST_PREPARED_SITES:])} {SITE_END}"
    return words if name == host.lower() else f"{words} {word_of_host(host)}"


def packed(content: Indexed) -> str:
    """What is kept of a page's text."""
    return "\0".join((content.title, content.headings, content.text))


def unpacked(kept: str, targets: tuple[int, ...] = ()) -> Indexed:
    """The same again."""
    title, headings, text = kept.split("\0", 2)
    return Indexed(title, headings, text, targets)


class FullText:
    """The index of one store: a companion of its writes, and what answers queries over a connection of its own.

    The other methods may be called from any thread; `write` is called inside the store's transaction.
    """

    def __init__(
        self,
        *,
        tokenizer: str = "words",
        weights: Weights | None = None,
        max_text: int = MAX_TEXT_BYTES,
        engine: Engine | None = None,
    ) -> None:
        if tokenizer not in schema.TOKENIZERS:
            raise ConfigError(f"There is no tokenizer {tokenizer!r}.", hint=f"Known: {', '.join(schema.TOKENIZERS)}.")
        self.tokenizer = tokenizer
        self.weights = weights or Weights()
        self.max_text = max_text
        self.engine = engine or Fts5()
        self._ready: dict[str, Prepared] = {}
        self._lock = threading.Lock()

    # --- a companion of the store's writes ---

    def begin(self, connection: apsw.Connection) -> None:
        """Make the index if there is none of this sort; all copies are due then. Inside a transaction."""
        kept = schema.is_made(connection)
        if kept and not (
            schema.is_current(connection, self.tokenizer, self.engine.name) and self.engine.is_there(connection)
        ):
            schema.drop(connection)
            kept = False
        if not kept:
            schema.make(connection, self.tokenizer, self.engine.name)
            self.engine.make(connection, self.tokenizer)

    def content_of(self, copy: Copy) -> Indexed:
        """What is searched of a copy; the latest are remembered until they are written."""
        checksum = signed(xxhash.xxh3_64_intdigest(copy.body))
        with self._lock:
            known = self._ready.get(copy.url)
        if known is not None and known.checksum == checksum:
            return known.content
        content = indexed(copy.url, copy.body, copy.content_type, max_text=self.max_text)
        with self._lock:
            if len(self._ready) > PIECE:
                self._ready.clear()
            self._ready[copy.url] = Prepared(checksum, content)
        return content

    def prepare(self, copies: Iterable[Copy]) -> dict[str, Prepared]:
        """Read copies that are about to be written; before the transaction, since that takes a while."""
        prepared = {}
        for copy in copies:
            try:
                prepared[copy.url] = Prepared(signed(xxhash.xxh3_64_intdigest(copy.body)), self.content_of(copy))
            except Exception:  # a fault of ours must not keep the copy itself from being stored: it stays due
                _log.exception("The copy of %s cannot be indexed.", copy.url)
            with self._lock:
                self._ready.pop(copy.url, None)
        return prepared

    def write(self, connection: apsw.Connection, prepared: Mapping[str, Prepared]) -> None:
        """Write what was prepared and forget what is gone, inside the transaction of the copies themselves.

        With an engine that writes in batches, nothing: what is due and gone is noted, and `catch_up` writes it.
        """
        if self.engine.batched or not schema.is_made(connection):
            return
        totals = [0, 0]
        self._forget_gone(connection, totals)
        for url, (checksum, content) in prepared.items():
            found = row_of(connection, _FIND_COPY, (url,))
            if found is not None and found[2] == checksum:
                self._put(connection, found[0], url, found[1], checksum, content, totals)
        self._count(connection, totals)

    def _forget_gone(self, connection: apsw.Connection, totals: list[int]) -> None:
        for (page,) in rows_of(connection, "SELECT page FROM search_gone LIMIT 10000"):
            self._forget(connection, page, totals)
            self.engine.forget(connection, page)
            connection.execute("DELETE FROM search_gone WHERE page = ?", (page,))

    def _put(
        self,
        connection: apsw.Connection,
        page: int,
        url: str,
        host: str,
        checksum: int,
        content: Indexed,
        totals: list[int],
    ) -> None:
        self._forget(connection, page, totals)
        parts = site_words(host), content.title, content.headings, content.text
        words = self.engine.put(connection, page, checksum, parts)
        targets = content.targets
        body = zstandard.ZstdCompressor(level=LEVEL).compress(packed(content).encode("utf-8", "replace"))
        row = page, checksum, mark_of(url), words, pack(f"<{len(targets)}q", *targets), body
        connection.execute(_ADD_DOC, row)
        connection.executemany(_LINKED, [(mark,) for mark in targets])
        connection.execute("DELETE FROM search_due WHERE page = ?", (page,))
        totals[0] += 1
        totals[1] += words

    def _forget(self, connection: apsw.Connection, page: int, totals: list[int]) -> None:
        known = row_of(connection, _KNOWN, (page,))
        if known is None:
            return
        words, targets = known
        marks = [(mark,) for mark in marks_in(targets)]
        connection.executemany(_UNLINKED, marks)
        connection.executemany("DELETE FROM search_links WHERE mark = ? AND pages <= 0", marks)
        connection.execute("DELETE FROM search_docs WHERE page = ?", (page,))
        totals[0] -= 1
        totals[1] -= words

    @staticmethod
    def _count(connection: apsw.Connection, totals: Sequence[int]) -> None:
        if any(totals):
            for name, more in zip(("docs", "words"), totals, strict=True):
                connection.execute("UPDATE search_state SET value = value + ? WHERE name = ?", (more, name))

    def due(self, connection: apsw.Connection, after: int = 0, limit: int = PIECE) -> list[Due]:
        """Some copies that the index does not have yet, read."""
        found = rows_of(connection, _DUE, (after, limit))
        ready = []
        for url, host, content_type, size, checksum, frame, page in found:
            try:
                body = unpack_body(Packed(size, checksum, frame), zstandard.ZstdDecompressor())
            except (ValueError, TypeError):
                body = b""  # a damaged copy is found by its address, until it is fetched anew
            kind = content_type if isinstance(content_type, str) else ""
            content = indexed(url, body, kind, max_text=self.max_text)
            ready.append(Due(url, host, Prepared(checksum, content), page))
        return ready

    def has_gone(self, connection: apsw.Connection) -> bool:
        """Whether pages are in the index whose copies are gone."""
        return row_of(connection, "SELECT 1 FROM search_gone LIMIT 1") is not None

    def catch_up(self, connection: apsw.Connection, ready: Iterable[Due]) -> int:
        """Write copies that were due, unless they were replaced meanwhile; in a transaction of its own. How many."""
        count, totals = 0, [0, 0]
        try:
            with transaction(connection):
                if self.engine.batched:
                    self._forget_gone(connection, totals)
                for url, host, (checksum, content), page in ready:
                    now = row_of(connection, "SELECT checksum FROM copies WHERE page = ?", (page,))
                    if now is not None and now[0] == checksum:
                        self._put(connection, page, url, host, checksum, content, totals)
                        count += 1
                self._count(connection, totals)
                self.engine.save()  # first: what is noted as written must not get lost
        finally:
            self.engine.rest()
        return count

    # --- answers ---

    def search(self, connection: apsw.Connection, query: Query, limit: int) -> list[Found]:
        """The best results, the best first."""
        rows = self.engine.best(connection, query, self.weights.columns, max(CANDIDATES, limit))
        found = []
        for page, score in rows:
            known = row_of(connection, _FOUND, (page,))
            if known is not None:
                found.append(Found(page, known[1], score * self.weights.of_links(known[2]), known[2]))
        found.sort(key=lambda each: (-each.score, each.url))
        return found[:limit]

    def content(self, connection: apsw.Connection, page: int) -> Indexed | None:
        """What is searched of a page, as the index has it; None: it is not there."""
        found = row_of(connection, "SELECT body, targets FROM search_docs WHERE page = ?", (page,))
        if found is None:
            return None
        limit = 4 * (self.max_text + MAX_TEXT_BYTES)
        try:
            kept = zstandard.ZstdDecompressor().decompress(found[0], max_output_size=limit)
            return unpacked(kept.decode("utf-8", "replace"), marks_in(found[1]))
        except (zstandard.ZstdError, ValueError) as error:
            raise StoreError(f"The index is damaged ({error}).", hint="Build it anew: afresh check") from error

    def linked(self, connection: apsw.Connection, url: str) -> int:
        """How many pages of the index link to an address."""
        found = row_of(connection, "SELECT pages FROM search_links WHERE mark = ?", (mark_of(url),))
        return 0 if found is None else int(found[0])

    def matching(self, connection: apsw.Connection, term: Term) -> int:
        """How many pages have a term."""
        return self.engine.matching(connection, term)

    def counts(self, connection: apsw.Connection) -> tuple[int, int]:
        """How many pages are in the index, and words of them together."""
        docs, words = (schema.state(connection, name) for name in ("docs", "words"))
        return int(docs or 0), int(words or 0)


def marks_in(targets: bytes) -> tuple[int, ...]:
    """The marks of the addresses that a page links to."""
    return unpack(f"<{len(targets) // 8}q", targets[: len(targets) // 8 * 8])
