"""Who knows which words stand where: an interface, and SQLite's FTS5, which writes in the transaction of the copies.

`afresh.testing.check_engine` is the battery that every engine passes.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import apsw

from afresh.errors import ConfigError, StoreError
from afresh.index import schema
from afresh.index.documents import spaced
from afresh.index.queries import Query, Term
from afresh.index.schema import number_in, row_of, rows_of
from afresh.index.words import Tokenizer

NAMES = ("fts5", "tantivy")
Parts = tuple[str, str, str, str]  # the texts of `queries.COLUMNS`

_ADD = "INSERT INTO search (rowid, site, title, headings, text) VALUES (?, ?, ?, ?, ?)"
_MAKE = """CREATE VIRTUAL TABLE search USING fts5 (
  site, title, headings, text, content='', contentless_delete=1, tokenize='{tokenize}'
)"""
_SIZE = "SELECT sz FROM search_docsize WHERE id = ?"


class Engine(Protocol):
    """Finds pages by their words. `connection` is one to the store; what writes is called inside a transaction.

    Invariant: what was put or forgotten is durable when the transaction is, or, if it is `batched`, before that: as
    soon as `save` returns. A kill in between leaves pages that the store still notes as due.
    """

    name: str
    batched: bool  # saving takes long: pages wait as due, and are written `piece` at a time
    piece: int
    exact: bool  # its scores are those of `scoring`

    def make(self, connection: apsw.Connection, tokenizer: str) -> None:
        """Begin with no pages."""

    def is_there(self, connection: apsw.Connection) -> bool:
        """Whether all that it keeps is where it was made."""

    def put(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> int:
        """A page has this text, whatever it had before; of how many words that is."""

    def forget(self, connection: apsw.Connection, page: int) -> None:
        """A page is gone; nothing, if it never was there."""

    def save(self) -> None:
        """Make durable what was put and forgotten."""

    def rest(self) -> None:
        """Nothing more is written for a while; what was not saved is given up."""

    def best(
        self, connection: apsw.Connection, query: Query, weights: Sequence[float], most: int
    ) -> list[tuple[int, float]]:
        """The best pages for a query and their scores, the best first; `weights` are of the columns."""

    def matching(self, connection: apsw.Connection, term: Term) -> int:
        """How many pages have a term."""

    def holds(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> bool:
        """Whether a page was put with this text and nothing else."""

    def pages(self, connection: apsw.Connection) -> int:
        """How many there are."""

    def damage(self, connection: apsw.Connection) -> str:
        """What is wrong with its own structure; "" if nothing. Outside a transaction."""

    def size(self, connection: apsw.Connection) -> int:
        """Bytes that it takes."""


class Fts5:
    """The engine inside SQLite: what it writes is part of the store's own transactions."""

    name = "fts5"
    batched = False
    exact = True
    piece = 200

    def make(self, connection: apsw.Connection, tokenizer: str) -> None:
        """Make the table."""
        connection.execute(_MAKE.format(tokenize=schema.TOKENIZERS[tokenizer]))

    def is_there(self, connection: apsw.Connection) -> bool:
        """It is where the store is."""
        return True

    def put(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> int:
        """A page has this text now."""
        self.forget(connection, page)
        connection.execute(_ADD, (page, *(_text(spaced(part)) for part in parts)))
        return sum(_lengths(connection, page))

    def forget(self, connection: apsw.Connection, page: int) -> None:
        """A page is gone."""
        connection.execute("DELETE FROM search WHERE rowid = ?", (page,))

    def save(self) -> None:
        """The store's own transaction does."""

    def rest(self) -> None:
        """There is nothing to give up: the store's own transaction does."""

    def best(
        self, connection: apsw.Connection, query: Query, weights: Sequence[float], most: int
    ) -> list[tuple[int, float]]:
        """The best pages."""
        rank = f"bm25({', '.join(map(repr, weights))})"
        try:
            rows = rows_of(
                connection,
                "SELECT rowid, -rank FROM search WHERE search MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?",
                (query.expression, rank, most),
            )
        except apsw.SQLError as error:
            raise StoreError(
                f"The index cannot be searched ({error}).", hint="Check it, and build it anew if need be: afresh check"
            ) from error
        return [(page, score) for page, score in rows]

    def matching(self, connection: apsw.Connection, term: Term) -> int:
        """How many pages have a term."""
        return number_in(connection, "SELECT count(*) FROM search WHERE search MATCH ?", (term.expression(),))

    def holds(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> bool:
        """Whether each part has as many words by the index as by its text."""
        tokenizer = _tokenizer(str(schema.state(connection, "tokenizer")))
        return _lengths(connection, page) == [len(tokenizer.words(part)) for part in parts]

    def pages(self, connection: apsw.Connection) -> int:
        """How many there are."""
        return number_in(connection, "SELECT count(*) FROM search_docsize")

    def damage(self, connection: apsw.Connection) -> str:
        """What FTS5 itself finds."""
        try:
            connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
        except apsw.Error as error:
            return f"the structure of the index is damaged ({error})"
        return ""

    def size(self, connection: apsw.Connection) -> int:
        """Bytes of words and their places."""
        return number_in(connection, "SELECT coalesce(sum(length(block)), 0) FROM search_data")


def engine_named(name: str) -> Engine:
    """The engine of this name; ConfigError if there is none, or its package is not installed."""
    if name == Fts5.name:
        return Fts5()
    if name not in NAMES:
        raise ConfigError(f"There is no engine {name!r}.", hint=f"Known: {', '.join(NAMES)}.")
    try:
        from afresh.index.with_tantivy import Tantivy
    except ImportError:
        raise ConfigError(
            "The package tantivy is not installed, and the index is to be kept by it.",
            hint="pip install 'afresh[tantivy]'. Or write engine = \"fts5\" below [index], then: afresh index",
        ) from None
    return Tantivy()


_tokenizer = lru_cache(maxsize=2)(Tokenizer)


def _lengths(connection: apsw.Connection, page: int) -> list[int]:
    return varints((row_of(connection, _SIZE, (page,)) or (b"",))[0])


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode() if not value.isascii() else value


def varints(kept: bytes) -> list[int]:
    """Numbers as SQLite packs them: seven bits a byte, the highest first.

    >>> varints(bytes([5, 0x81, 0]))
    [5, 128]
    """
    numbers, number = [], 0
    for byte in kept:
        number = number << 7 | byte & 127
        if byte < 128:
            numbers.append(number)
            number = 0
    return numbers
