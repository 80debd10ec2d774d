"""Whether the index and the copies agree: every page read again, every word counted; and the index built anew."""

from collections import Counter
from collections.abc import Callable, Iterator

import apsw
import zstandard

from afresh.errors import StoreError
from afresh.index import schema
from afresh.index.documents import indexed, mark_of
from afresh.index.fulltext import FullText, marks_in, packed, site_words
from afresh.index.schema import number_in, rows_of
from afresh.store import Sqlite
from afresh.store.body import Packed, unpack
from afresh.store.faults import transaction, translated

Told = Callable[[int, int], object]  # how many of how many pages are done
PIECE = 200
MAX_PROBLEMS = 20  # that are told one by one

_PAGES = """SELECT page, url, host, content_type, size, copies.checksum, copies.body, docs.checksum, docs.mark,
  docs.words, docs.targets, docs.body FROM copies JOIN pages ON number = page LEFT JOIN search_docs AS docs USING (page)
  WHERE page > ? AND page NOT IN (SELECT page FROM search_due) ORDER BY page LIMIT ?"""

_DUE_DOCS = "SELECT words, targets FROM search_docs WHERE page IN (SELECT page FROM search_due)"


def _unheard(done: int, of: int) -> None:
    """Nobody wants to know."""


def problems(store: Sqlite, index: FullText, told: Told = _unheard) -> Iterator[str]:
    """Everything in which the index disagrees with the copies of its store, as of one moment; nothing if it is sound.

    Copies that are noted as due are no disagreement.
    """
    connection = store.reader()
    try:
        with translated(store.path):
            connection.execute("BEGIN")
            if not schema.is_made(connection):
                return
            try:
                yield from _problems(connection, index, told)
            except (apsw.Error, StoreError) as error:
                yield f"the index cannot be read: {error}"
    finally:
        connection.close()


def _problems(connection: apsw.Connection, index: FullText, told: Told) -> Iterator[str]:
    total = number_in(connection, "SELECT count(*) FROM copies")
    links: Counter[int] = Counter()
    after = done = docs = words = 0
    while rows := rows_of(connection, _PAGES, (after, PIECE)):
        for page, url, host, content_type, size, checksum, frame, known, mark, counted, targets, kept in rows:
            after, done = page, done + 1
            if known is None:
                yield f"{url} is not in the index"
                continue
            docs, words = docs + 1, words + counted
            links.update(marks_in(targets))
            if known != checksum:
                yield f"the index has another copy of {url}"
                continue
            try:
                body = unpack(Packed(size, checksum, frame), zstandard.ZstdDecompressor())
            except (ValueError, TypeError):
                continue  # the copy itself is damaged, which the store tells of
            content = indexed(url, body, content_type if isinstance(content_type, str) else "", max_text=index.max_text)
            if packed(content).encode("utf-8", "replace") != zstandard.ZstdDecompressor().decompress(kept):
                yield f"the index has another text of {url}"
            elif mark != mark_of(url) or marks_in(targets) != content.targets:
                yield f"the index has other links of {url}"
            elif not index.engine.holds(
                connection, page, checksum, (site_words(host), content.title, content.headings, content.text)
            ):
                yield f"the words of {url} are not all in the index"
        told(done, total)
    for counted, targets in rows_of(connection, _DUE_DOCS):
        docs, words = docs + 1, words + counted
        links.update(marks_in(targets))
    yield from _rest(connection, index, docs, words, links)


def _rest(connection: apsw.Connection, index: FullText, docs: int, words: int, links: Counter[int]) -> Iterator[str]:
    """What is counted over all pages."""
    stray = number_in(
        connection,
        "SELECT count(*) FROM search_docs WHERE page NOT IN (SELECT page FROM copies)"
        " AND page NOT IN (SELECT page FROM search_gone)",
    )
    if stray:
        yield f"{stray} pages are in the index that have no copy"
    gone = number_in(connection, "SELECT count(*) FROM search_docs WHERE page IN (SELECT page FROM search_gone)")
    if not gone and not stray:
        if index.counts(connection) != (docs, words):
            yield f"the index counts {index.counts(connection)} pages and words, and there are {(docs, words)}"
        kept = dict(rows_of(connection, "SELECT mark, pages FROM search_links"))
        if kept != dict(links):
            yield "the index counts links that are not there, or not those that are"
    rows = index.engine.pages(connection)
    known = number_in(connection, "SELECT count(*) FROM search_docs")
    # What was saved just before a kill is noted as due or gone still, and written again.
    unsure = index.engine.batched and (gone or number_in(connection, "SELECT count(*) FROM search_due"))
    if rows != known and not unsure:
        yield f"the index has the words of {rows} pages, and the texts of {known}"


def sound_inside(store: Sqlite, index: FullText) -> str:
    """What the engine finds wrong with its own structure; "" if nothing. It takes the writer's place for a while."""
    with store.writing() as connection:
        return index.engine.damage(connection) if schema.is_made(connection) else ""


def rebuild(store: Sqlite, index: FullText, told: Told = _unheard, *, anew: bool = True) -> int:
    """Build the index from the copies; how many pages were written. A kill at any moment leaves the rest as due.

    Unless `anew`, only what is due is written.
    """
    with store.writing() as connection, transaction(connection):
        if anew:
            schema.drop(connection)
        index.begin(connection)
    reader = store.reader()
    count, after = 0, 0
    try:
        with translated(store.path):
            total = number_in(reader, "SELECT count(*) FROM search_due")
            told(0, total)
            while ready := index.due(reader, after, index.engine.piece):
                after = ready[-1][3]
                with store.writing() as connection:
                    count += index.catch_up(connection, ready)
                told(min(count, total), total)
            with store.writing() as connection, transaction(connection):
                index.write(connection, {})  # forgets what is gone
            if index.engine.batched:
                with store.writing() as connection:
                    index.catch_up(connection, [])
    finally:
        reader.close()
    return count
