"""Words by tantivy (the optional extra `afresh[tantivy]`): quick searches, and writes that are saved in batches.

It keeps a folder beside the store's file, `<store>.words/<id>`; the index in the store names the id. Words are told
apart by the same tokenizer as with FTS5. Scores are tantivy's own: BM25 of each part of a page by itself.
"""

import json
import secrets
import zlib
from collections.abc import Sequence
from pathlib import Path

import apsw
import tantivy
from tantivy import Occur
from tantivy import Query as Ask

from afresh.errors import StoreError
from afresh.index import schema
from afresh.index.engines import Parts
from afresh.index.queries import COLUMNS, Any, Node, Query, Term
from afresh.index.words import Tokenizer

PLAIN = "plain"  # words are told apart before: blanks are between them
HEAP = 30_000_000  # bytes before it writes a part of its own accord
FOOTER = 1337  # how each of its files ends: a description in JSON, its length, and this number
_HINT = "Build it anew: afresh index --again"


class Tantivy:
    """The engine beside the store. Its methods are called from one thread at a time.

    Invariant: what it saved is newer than what the store notes as written, or the same: never older.
    """

    name = "tantivy"
    batched = True
    exact = False
    piece = 1000

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._stamp: object = None
        self._index: tantivy.Index | None = None
        self._searcher: tantivy.Searcher | None = None
        self._writer: tantivy.IndexWriter | None = None
        self._tokenizer = Tokenizer("words")
        self._schema = _schema()

    def make(self, connection: apsw.Connection, tokenizer: str) -> None:
        """Make an empty folder with a name that was never used."""
        name = secrets.token_hex(8)
        connection.execute("INSERT OR REPLACE INTO search_state VALUES ('folder', ?)", (name,))
        folder = schema.folder_beside(connection) / name
        try:
            folder.mkdir(parents=True)
            tantivy.Index(self._schema, path=str(folder))
        except (OSError, ValueError) as error:
            raise StoreError(f"The index cannot be made ({error}).", hint="Is there room beside the store?") from error

    def is_there(self, connection: apsw.Connection) -> bool:
        """Whether the folder that the store names can be opened."""
        try:
            self._open(connection)
        except StoreError:
            return False
        return True

    def _open(self, connection: apsw.Connection) -> tantivy.Searcher:
        """What is saved now."""
        folder = schema.folder_beside(connection) / str(schema.state(connection, "folder"))
        try:
            seen = (folder / "meta.json").stat()
            stamp = folder, seen.st_mtime_ns, seen.st_ino
            if self._index is None or folder != self._folder:
                self._index = tantivy.Index.open(str(folder))
                plain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
                self._index.register_tokenizer(PLAIN, plain)
                self._folder, self._writer = folder, None
                self._tokenizer = Tokenizer(str(schema.state(connection, "tokenizer")))
                self._searcher = None
            if self._searcher is None or stamp != self._stamp:
                self._index.reload()
                self._searcher, self._stamp = self._index.searcher(), stamp
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(f"The words of the index cannot be opened ({error}).", hint=_HINT) from error
        return self._searcher

    def _writing(self, connection: apsw.Connection) -> tantivy.IndexWriter:
        if self._writer is None:
            self._open(connection)
            assert self._index is not None  # noqa: S101 - just opened
            try:
                self._writer = self._index.writer(HEAP, 1)
            except ValueError as error:
                raise StoreError(f"The index cannot be written ({error}).", hint=_HINT) from error
        return self._writer

    def put(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> int:
        """A page has this text now, as soon as it is saved."""
        writer = self._writing(connection)
        words = [self._tokenizer.words(part) for part in parts]
        document = tantivy.Document()
        document.add_unsigned("page", page)
        document.add_integer("checksum", checksum)
        document.add_unsigned("words", sum(map(len, words)))
        for name, some in zip(COLUMNS, words, strict=True):
            document.add_text(name, " ".join(some))
        writer.delete_documents_by_query(Ask.term_query(self._schema, "page", page))
        writer.add_document(document)
        return sum(map(len, words))

    def forget(self, connection: apsw.Connection, page: int) -> None:
        """A page is gone."""
        self._writing(connection).delete_documents_by_query(Ask.term_query(self._schema, "page", page))

    def save(self) -> None:
        """Make durable what was put and forgotten."""
        if self._writer is not None:
            try:
                self._writer.commit()
            except (OSError, ValueError) as error:
                raise StoreError(f"The index cannot be written ({error}).", hint="Is the disk full?") from error

    def rest(self) -> None:
        """Let merges end, and let go of what was not saved."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()

    def best(
        self, connection: apsw.Connection, query: Query, weights: Sequence[float], most: int
    ) -> list[tuple[int, float]]:
        """The best pages."""
        searcher = self._open(connection)
        ask = self._node(query.root, dict(zip(COLUMNS, weights, strict=True)))
        if ask is None:
            return []
        try:
            hits = searcher.search(ask, most, count=False).hits
            pages = searcher.fast_field_values("page", [place for _, place in hits])
        except (OSError, ValueError) as error:
            raise StoreError(f"The index cannot be searched ({error}).", hint=_HINT) from error
        return [(int(page or 0), float(hit[0] or 0)) for hit, page in zip(hits, pages, strict=True)]

    def matching(self, connection: apsw.Connection, term: Term) -> int:
        """How many pages have a term."""
        searcher = self._open(connection)
        ask = self._node(term, dict.fromkeys(COLUMNS, 1.0))
        return 0 if ask is None else int(searcher.search(ask, 1).count)  # type: ignore[attr-defined]

    def _node(self, node: Node, weights: dict[str, float]) -> Ask | None:
        """The same question for tantivy; None for what has no words."""
        if isinstance(node, Term):
            return self._term(node, weights)
        parts = [ask for ask in (self._node(each, weights) for each in node.of) if ask is not None]
        if not parts:
            return None
        if isinstance(node, Any):
            return Ask.boolean_query([(Occur.Should, each) for each in parts])
        without = [ask for ask in (self._node(each, weights) for each in node.without) if ask is not None]
        must, not_ = [(Occur.Must, each) for each in parts], [(Occur.MustNot, each) for each in without]
        return Ask.boolean_query([*must, *not_])

    def _term(self, term: Term, weights: dict[str, float]) -> Ask | None:
        words = self._tokenizer.words(term.words)
        if not words:
            return None
        columns = [term.column] if term.column else COLUMNS[1:]
        some = [Ask.boost_query(self._words(name, words, term.prefix), weights[name]) for name in columns]
        return some[0] if len(some) == 1 else Ask.boolean_query([(Occur.Should, each) for each in some])

    def _words(self, column: str, words: list[str], prefix: bool) -> Ask:
        if prefix:
            return Ask.phrase_prefix_query(self._schema, column, list(words))
        if len(words) == 1:
            return Ask.term_query(self._schema, column, words[0])
        return Ask.phrase_query(self._schema, column, list(words))

    def holds(self, connection: apsw.Connection, page: int, checksum: int, parts: Parts) -> bool:
        """Whether a page is there once, with as many words, of a copy with this checksum."""
        searcher = self._open(connection)
        places = [place for _, place in searcher.search(Ask.term_query(self._schema, "page", page), 2).hits]
        made_of = searcher.fast_field_values("checksum", places)
        counts = searcher.fast_field_values("words", places)
        words = sum(len(self._tokenizer.words(part)) for part in parts)
        return list(zip(made_of, counts, strict=True)) == [(checksum, words)]

    def pages(self, connection: apsw.Connection) -> int:
        """How many there are."""
        return int(self._open(connection).num_docs)

    def damage(self, connection: apsw.Connection) -> str:
        """Files that are not there, or not as they were written, by their checksums."""
        try:
            self._open(connection)
            folder = schema.folder_beside(connection) / str(schema.state(connection, "folder"))
            managed = json.loads((folder / ".managed.json").read_bytes())
            for name in managed:
                path = folder / str(name)
                if path.name != "meta.json" and path.exists() and not _is_whole(path.read_bytes()):
                    return f"the file {path.name} of the index is damaged"
        except (StoreError, OSError, ValueError, TypeError) as error:
            return f"the words of the index cannot be read ({error})"
        return ""

    def size(self, connection: apsw.Connection) -> int:
        """Bytes of its folder."""
        return sum(path.stat().st_size for path in schema.folder_beside(connection).rglob("*") if path.is_file())


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("page", indexed=True, fast=True)
    builder.add_integer_field("checksum", fast=True)
    builder.add_unsigned_field("words", fast=True)
    for name in COLUMNS:
        builder.add_text_field(name, tokenizer_name=PLAIN, index_option="position")
    return builder.build()


def _is_whole(kept: bytes) -> bool:
    """Whether a file of tantivy's has the checksum that its end says."""
    length, number = (int.from_bytes(kept[at : at + 4 or None], "little") for at in (-8, -4))
    if number != FOOTER or length + 8 > len(kept):
        return False
    said = json.loads(kept[-8 - length : -8])
    return int(said["crc"]) == zlib.crc32(kept[: -8 - length])
