"""The tables of the full-text index, in the file of the store: made and dropped with the index, and with nothing else.

Two triggers note what has become of copies, whoever writes them. So a process that knows no index, or an earlier
version, leaves notes, and no copy that the index is wrong about.
"""

from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import apsw

VERSION = "2"
FIRST_ENGINE = "fts5"
TOKENIZERS = {
    "words": "unicode61 remove_diacritics 2",
    "english": "porter unicode61 remove_diacritics 2",
}

MAKE = """
-- What is known of each page in the index. `body` is its title, headings and text, compressed, for snippets.
CREATE TABLE search_docs (
  page INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL,     -- of the copy that this was made of, as `copies` has it
  mark INTEGER NOT NULL,         -- 64 bits of the page's address
  words INTEGER NOT NULL,
  targets BLOB NOT NULL,         -- marks of the addresses that it links to, eight bytes each
  body BLOB NOT NULL
) STRICT;
CREATE INDEX search_docs_by_mark ON search_docs (mark);
-- How many pages of the index link to an address.
CREATE TABLE search_links (mark INTEGER PRIMARY KEY, pages INTEGER NOT NULL) STRICT;
CREATE TABLE search_state (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
-- Answers that are kept ready for frequent queries: JSON.
CREATE TABLE search_answers (
  query TEXT PRIMARY KEY,
  right REAL NOT NULL,           -- how far it is taken to be right still: 1 when it is put together
  answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Pages whose copies are newer than what the index has of them, and pages whose copies are gone.
CREATE TABLE search_due (page INTEGER PRIMARY KEY) STRICT;
CREATE TABLE search_gone (page INTEGER PRIMARY KEY) STRICT;
CREATE TRIGGER search_copied AFTER INSERT ON copies BEGIN
  INSERT OR IGNORE INTO search_due VALUES (new.page);
  DELETE FROM search_gone WHERE page = new.page;
END;
CREATE TRIGGER search_dropped AFTER DELETE ON copies BEGIN
  INSERT OR IGNORE INTO search_gone VALUES (old.page);
  DELETE FROM search_due WHERE page = old.page;
END;
INSERT INTO search_due SELECT page FROM copies;
INSERT INTO search_state VALUES ('version', '{version}'), ('tokenizer', '{name}'), ('engine', '{engine}'),
  ('docs', 0), ('words', 0);
"""

DROP = """
DROP TRIGGER IF EXISTS search_copied;
DROP TRIGGER IF EXISTS search_dropped;
DROP TABLE IF EXISTS search_gone;
DROP TABLE IF EXISTS search_due;
DROP TABLE IF EXISTS search_state;
DROP TABLE IF EXISTS search_links;
DROP TABLE IF EXISTS search_answers;
DROP TABLE IF EXISTS search_docs;
"""


def rows_of(connection: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of an answer."""
    return connection.execute(statement, values).fetchall()


def row_of(connection: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of an answer, if there is one."""
    return connection.execute(statement, values).fetchone()


def number_in(connection: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> int:
    """The number that an answer is."""
    found = row_of(connection, statement, values)
    return 0 if found is None else int(found[0])


def is_made(connection: apsw.Connection) -> bool:
    """Whether a store has an index."""
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search_state'").fetchone())


def state(connection: apsw.Connection, name: str) -> str | int | None:
    """A named value of the index."""
    found = row_of(connection, "SELECT value FROM search_state WHERE name = ?", (name,))
    return None if found is None else found[0]


def engine_of(connection: apsw.Connection) -> str:
    """The name of the engine that has the index's words; earlier versions knew but one, and did not say."""
    return str(state(connection, "engine") or FIRST_ENGINE)


def is_current(connection: apsw.Connection, tokenizer: str, engine: str) -> bool:
    """Whether the index is of this version, and made with this tokenizer and engine."""
    known = state(connection, "version"), state(connection, "tokenizer"), engine_of(connection)
    return known == (VERSION, tokenizer, engine)


def make(connection: apsw.Connection, tokenizer: str, engine: str) -> None:
    """Make an empty index in the transaction that is open, but for the engine's own: all copies are due."""
    connection.execute(MAKE.format(version=VERSION, name=tokenizer, engine=engine))


def folder_beside(connection: apsw.Connection) -> Path:
    """Where an engine keeps what is not in the store's file."""
    return Path(f"{connection.filename}.words")


def drop(connection: apsw.Connection) -> None:
    """Forget the index in the transaction that is open, also one that is damaged."""
    connection.execute(DROP)
    rmtree(folder_beside(connection), ignore_errors=True)
    try:
        connection.execute("DROP TABLE IF EXISTS search")
    except apsw.Error:  # one that cannot be opened any more: what it consists of is taken out of the schema
        connection.execute("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'search'")
        connection.execute("PRAGMA writable_schema = RESET")
        for part in ("data", "idx", "docsize", "config"):
            connection.execute(f"DROP TABLE IF EXISTS search_{part}")
