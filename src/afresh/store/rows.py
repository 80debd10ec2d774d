"""The nouns as rows of the SQLite schema, and back; every SQL statement that names their columns."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from afresh.store.base import Failing, Heard, News, PageColumns, PageState, Record, Totals, Version
from afresh.store.body import Packed, signed, unsigned
from afresh.types import Beliefs, Copy, Crawl, HostState, Importance, Outcome, Page, Validators

Row = tuple[Any, ...]

NUMBER_OF_COLUMNS = len(fields(PageColumns)) - 1  # those of `COLUMNS_AFTER` that are kept as they are
HIGHEST_RATE = 1e30  # a second; beyond that a number is damage

WISHES = "importance, importance_factor, shortest, longest, hours, paused, popularity"
ADD_PAGE = f"""INSERT INTO pages (url, host, added, depth, {WISHES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (url) DO NOTHING"""  # noqa: S608
SET_IMPORTANCE = "UPDATE pages SET importance = ?, importance_factor = ? WHERE url = ?"
SET_URGENT = "UPDATE pages SET urgent = 1 WHERE url = ?"
SET_WISHES = f"UPDATE pages SET ({WISHES}) = (?, ?, ?, ?, ?, ?, ?) WHERE url = ?"  # noqa: S608

STATE_COLUMNS = f"""number, url, host, added, depth, {WISHES},
  request_rate, change_rate, recall, false_rate, observations,
  etag, last_modified, fingerprint, fetched, checked, signals, crawls, changes, failures, learned, noise, urgent,
  cost_same, cost_new, shape, gone"""
STATES_AFTER = f"SELECT {STATE_COLUMNS} FROM pages WHERE number > ? ORDER BY number LIMIT ?"  # noqa: S608
STATES_UNDER = f"SELECT {STATE_COLUMNS} FROM pages WHERE url >= ? AND url < ? ORDER BY url LIMIT ?"  # noqa: S608
STATES_OF_HOST = f"SELECT {STATE_COLUMNS} FROM pages WHERE number > ? AND host = ? ORDER BY number LIMIT ?"  # noqa: S608
SIZES_OF_HOST = """SELECT url, depth, body_bytes, coalesce(request_rate, 0.0) FROM pages
  WHERE host = ? AND fetched IS NOT NULL ORDER BY number"""
STATE_NUMBERED = f"SELECT {STATE_COLUMNS} FROM pages WHERE number = ?"  # noqa: S608
NUMBER_OF = "SELECT number FROM pages WHERE url = ?"
COLUMNS_AFTER = """SELECT number, url, host, checked, crawls, failures, signals, learned,
  importance, importance_factor, popularity, cost_same, cost_new,
  shortest IS NOT NULL OR longest IS NOT NULL OR hours <> '' OR paused OR urgent
  FROM pages WHERE number > ? ORDER BY number LIMIT ?"""
STATE_OF = f"SELECT {STATE_COLUMNS} FROM pages WHERE url = ?"  # noqa: S608

IDENTITY = "SELECT identity FROM totals"
SET_IDENTITY = "UPDATE totals SET identity = ?"
TITLE_OF = "SELECT title FROM pages WHERE url = ?"
FIND_PAGE = (
    "SELECT number, written, fetched IS NOT NULL, body_bytes, stored_bytes, gone, trouble FROM pages WHERE url = ?"
)
SET_STATE = """UPDATE pages SET request_rate = ?, change_rate = ?, recall = ?, false_rate = ?, observations = ?,
  etag = ?, last_modified = ?, fingerprint = ?, checked = ?, signals = ?,
  crawls = ?, changes = ?, failures = ?, learned = ?, noise = ?, urgent = ?, cost_same = ?, cost_new = ?, shape = ?,
  gone = ?, trouble = ?, title = coalesce(?, title), written = ?, fetched = coalesce(?, fetched),
  body_bytes = ?, stored_bytes = ? WHERE number = ?"""

SET_HEARD = """UPDATE pages SET request_rate = ?, change_rate = ?, recall = ?, false_rate = ?, observations = ?,
  shape = ?, signals = ?, learned = ? WHERE url = ?"""

SET_COPY = """INSERT OR REPLACE INTO copies
  (page, content_type, fetched, etag, last_modified, fingerprint, size, checksum, body, meta)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# One statement, so that page and copy are seen at one moment.
COPY_OF = """SELECT url, content_type, copies.fetched, coalesce(checked, copies.fetched), copies.etag,
  copies.last_modified, copies.fingerprint, meta, size, checksum, body
  FROM pages JOIN copies ON page = number WHERE url = ?"""
URLS_OF_COPIES = "SELECT url FROM copies JOIN pages ON number = page ORDER BY page"

# The copy as it is becomes an earlier version: its frame is moved, and not made anew.
KEEP_VERSION = """INSERT INTO versions
  (page, number, replaced_by, replaced, fetched, content_type, size, checksum, stored, body)
  SELECT page, version, (SELECT crawls FROM totals) + ?2, ?3, copies.fetched, content_type, size, checksum,
  length(body), body FROM copies JOIN pages ON page = pages.number WHERE page = ?1"""
SET_VERSION = "UPDATE pages SET version = (SELECT crawls FROM totals) + ? WHERE number = ?"
EARLIER = "SELECT id, replaced, stored FROM versions WHERE page = ? ORDER BY id DESC"
OLDEST_VERSIONS = "SELECT id, replaced FROM versions ORDER BY id LIMIT ?"
DROP_VERSION = "DELETE FROM versions WHERE id = ?"
# Of the crawls since a version was brought, the first in the history brought it, or came soon after it.
_APPEARED = """(SELECT min(time) FROM crawls WHERE crawls.page = pages.number AND {0} > 0 AND serial >= {0}"""
CURRENT_VERSION = f"""SELECT version, copies.fetched, content_type, size, 0, NULL, {_APPEARED.format("version")})
  FROM pages JOIN copies ON page = pages.number WHERE url = ?"""  # noqa: S608
VERSIONS_OF = f"""SELECT versions.number, versions.fetched, content_type, size, replaced_by, replaced,
  {_APPEARED.format("versions.number")} AND serial < replaced_by)
  FROM pages JOIN versions ON page = pages.number WHERE url = ? ORDER BY id DESC"""  # noqa: S608
VERSION_OF = """SELECT versions.fetched, content_type, replaced, size, checksum, body
  FROM pages JOIN versions ON page = pages.number WHERE url = ? AND versions.number = ? ORDER BY id DESC LIMIT 1"""
ALL_VERSIONS = "SELECT url, versions.number FROM versions JOIN pages ON page = pages.number ORDER BY id"

ADD_CRAWL = """INSERT INTO crawls (page, nth, time, outcome, elapsed, signals, took, status, size, significance,
  reason, fresh_probability, trouble, serial)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT crawls FROM totals) + ?)"""
LATEST_CRAWLS = "SELECT nth, outcome, reason FROM crawls WHERE page = ? ORDER BY nth DESC LIMIT ?"
DROP_CRAWL = "DELETE FROM crawls WHERE page = ? AND nth = ?"
DROP_OLDEST_CRAWL = """DELETE FROM crawls WHERE page = ?1 AND nth < ?2
  AND nth = (SELECT min(nth) FROM crawls WHERE page = ?1)"""
TRIM_CRAWLS = """DELETE FROM crawls WHERE page = ?1
  AND nth <= (SELECT nth FROM crawls WHERE page = ?1 ORDER BY nth DESC LIMIT 1 OFFSET ?2)"""
HISTORY_OF = """SELECT url, time, outcome, elapsed, crawls.signals, took, status, size, significance, reason,
  fresh_probability FROM pages JOIN crawls ON page = number WHERE url = ? ORDER BY nth DESC LIMIT ?"""

_CHANGES = """SELECT serial, url, time, outcome, elapsed, crawls.signals, took, status, size, significance,
  reason, fresh_probability FROM crawls JOIN pages ON page = number
  WHERE outcome IN ('new', 'changed', 'gone') AND serial > 0
  AND (outcome <> 'gone' OR coalesce((SELECT earlier.outcome FROM crawls AS earlier
    WHERE earlier.page = crawls.page AND earlier.nth < crawls.nth ORDER BY earlier.nth DESC LIMIT 1), '') <> 'gone')"""
CHANGES_AFTER = f"{_CHANGES} AND serial > ? ORDER BY serial LIMIT ?"
TROUBLES_AFTER = """SELECT serial, crawls.trouble, url, time, outcome, elapsed, crawls.signals, took, status, size,
  significance, reason, fresh_probability FROM crawls INDEXED BY troubles_by_serial JOIN pages ON page = number
  WHERE crawls.trouble <> 0 AND serial > ? ORDER BY serial LIMIT ?"""
LATEST_CHANGES = f"{_CHANGES} AND serial < ? ORDER BY serial DESC LIMIT ?"

HOST_COLUMNS = "host, ready, failures, reason, since, asked, recent_asks, recent_seconds"
SET_HOST = f"INSERT OR REPLACE INTO hosts ({HOST_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
PAGES_BY_HOST = "SELECT host, count(*), count(fetched) FROM pages GROUP BY host ORDER BY host"
HOSTS_FROM = f"SELECT {HOST_COLUMNS} FROM hosts WHERE host >= ? ORDER BY host LIMIT ?"  # noqa: S608
HOST_OF = f"SELECT {HOST_COLUMNS} FROM hosts WHERE host = ?"  # noqa: S608
# By the last crawl of each page that fails.
FAILING = """SELECT host, outcome, reason, count(*), count(*) - count(fetched)
  FROM pages JOIN crawls ON page = number AND nth = written
  WHERE failures > 0 GROUP BY host, outcome, reason ORDER BY host, outcome, reason"""
SET_NAMED = "INSERT OR REPLACE INTO named (name, value) VALUES (?, ?)"
GET_NAMED = "SELECT value FROM named WHERE name = ?"
FORGET_NAMED = "DELETE FROM named WHERE name = ?"
NAMES_UNDER = "SELECT name, length(value) FROM named WHERE name >= ? AND name < ? ORDER BY name"

TOTALS = "SELECT pages, copies, crawls, changes, body_bytes, stored_bytes, inbox_entries, inbox_bytes FROM totals"
ADD_TOTALS = """UPDATE totals SET pages = pages + ?, copies = copies + ?, crawls = crawls + ?, changes = changes + ?,
  body_bytes = body_bytes + ?, stored_bytes = stored_bytes + ?"""
COUNTED = """SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM copies),
  (SELECT coalesce(sum(written), 0) FROM pages) + (SELECT removed_crawls FROM totals),
  (SELECT sum(size) FROM copies), (SELECT sum(length(body)) FROM copies)"""

FORGET_CRAWLS = "DELETE FROM crawls WHERE page = ?"
FORGET_COPY = "DELETE FROM copies WHERE page = ?"
FORGET_VERSIONS = "DELETE FROM versions WHERE page = ?"
FORGET_PAGE = "DELETE FROM pages WHERE number = ?"
ADD_REMOVED = "UPDATE totals SET removed_crawls = removed_crawls + ?"


def text(value: str) -> str | bytes:
    """Text that may have come from the network: as a blob where it is not valid Unicode, which SQLite demands."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def untext(value: str | bytes) -> str:
    """The text again."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def page_row(page: Page) -> Row:
    """What `ADD_PAGE` takes."""
    return page.url, page.host, page.added, page.depth, *wishes_row(page)


def importance_row(importance: Importance | None) -> Row:
    """The two columns of an importance; one of them is NULL, or both are."""
    if importance is None:
        return None, None
    return (None, importance.value) if importance.times else (importance.value, None)


def wishes_row(page: Page) -> Row:
    """What the operator says of a page: the columns of `WISHES`."""
    said = page.shortest, page.longest, page.hours, int(page.paused), page.popularity
    return *importance_row(page.importance), *said


def page_from(url: str, host: str, added: float, depth: int, *wishes: Any) -> Page:
    """A page from the columns that `ADD_PAGE` fills."""
    rate, factor, shortest, longest, hours, paused, popularity = wishes
    importance = None
    if rate is not None or factor is not None:
        importance = Importance(rate if factor is None else factor, times=factor is not None)
    for number in (rate, factor, shortest, longest, popularity):
        if number is not None and not 0 <= number < HIGHEST_RATE:
            raise ValueError("a wish that cannot be")
    return Page(url, host, added, importance, depth, shortest, longest, hours, bool(paused), popularity)


def state_row(state: PageState) -> Row:
    """The first part of what `SET_STATE` takes."""
    known = state.beliefs
    return (
        *((known.request_rate, known.change_rate, known.recall, known.false_rate) if known else (None,) * 4),
        known.observations if known else None,
        *validators_row(state.validators),
        state.checked,
        state.signals,
        state.crawls,
        state.changes,
        state.failures,
        state.learned,
        state.noise,
        int(state.urgent),
        state.cost_same,
        state.cost_new,
        _shape_row(known),
    )


def _shape_row(known: Beliefs | None) -> float | None:
    return None if known is None or known.shape == math.inf else known.shape


def heard_row(heard: Heard) -> Row:
    """What `SET_HEARD` takes."""
    known = heard.beliefs
    believed = known.request_rate, known.change_rate, known.recall, known.false_rate, known.observations
    return *believed, _shape_row(known), heard.signals, heard.learned, heard.url


def state_from(row: Row) -> tuple[int, PageState]:
    """A page's number and state, from a row of `STATE_COLUMNS`."""
    number, url, host, added, depth, *wishes = row[:12]
    request_rate, change_rate, recall, false_rate, observations = row[12:17]
    *marks, fetched, checked, signals, crawls, changes, failures, learned, noise, urgent = row[17:29]
    costs, shape = row[29:31], math.inf if row[31] is None else row[31]
    if any(cost is not None and not 0 <= cost < HIGHEST_RATE for cost in costs):
        raise ValueError("a cost that cannot be")
    beliefs = None
    if request_rate is not None:
        beliefs = Beliefs(request_rate, change_rate, recall, false_rate, observations, shape)
        rates = request_rate, change_rate, false_rate
        if not (0 <= min(rates) <= max(rates) < HIGHEST_RATE and 0 <= recall <= 1 and shape > 0):
            raise ValueError("rates that cannot be")
    if url is None or host is None or min(signals, crawls, changes, failures) < 0:
        raise ValueError("a page that cannot be")
    page = page_from(url, host, added, depth, *wishes)
    validators = validators_from(*marks)
    counts = signals, crawls, changes, failures
    tail = learned, noise, bool(urgent), *costs, row[32]
    return number, PageState(page, beliefs, validators, fetched, checked, *counts, *tail)


def columns_from(rows: Sequence[Row], special: Callable[[int], PageState]) -> PageColumns:
    """Pages in columns, from rows of `COLUMNS_AFTER`; `special` gives the state of one with a number."""
    if not rows:
        return PageColumns((), (), (), (), (), (), (), (), (), (), (), (), (), {})
    columns: list[Any] = list(zip(*rows, strict=True))
    for counts in columns[4:7]:
        if min(counts) < 0:
            raise ValueError("a page that cannot be")
    for wishes in columns[8:NUMBER_OF_COLUMNS]:
        if any(each is not None and not 0 <= each < HIGHEST_RATE for each in wishes):
            raise ValueError("a wish that cannot be")
    if None in columns[1] or None in columns[2]:
        raise ValueError("a page that cannot be")
    marked = {nth: special(columns[0][nth]) for nth, more in enumerate(columns[NUMBER_OF_COLUMNS]) if more}
    names = [each.name for each in fields(PageColumns)][:NUMBER_OF_COLUMNS]
    return PageColumns(**dict(zip(names, columns, strict=False)), special=marked)


def validators_row(validators: Validators) -> Row:
    """The three columns of the validators."""
    return text(validators.etag), text(validators.last_modified), signed(validators.fingerprint)


def validators_from(etag: str | bytes, last_modified: str | bytes, fingerprint: int) -> Validators:
    """The validators from their three columns."""
    return Validators(untext(etag), untext(last_modified), unsigned(fingerprint))


def copy_row(number: int, copy: Copy, packed: Packed) -> Row:
    """What `SET_COPY` takes."""
    return (
        number,
        text(copy.content_type),
        copy.fetched,
        *validators_row(copy.validators),
        *packed,
        meta_text(copy.meta),
    )


def copy_from(row: Row, body: bytes) -> Copy:
    """A copy from a row of `COPY_OF` and its body, unpacked."""
    url, content_type, fetched, checked = row[:4]
    return Copy(url, body, untext(content_type), fetched, checked, validators_from(*row[4:7]), meta_from(row[7]))


def meta_text(meta: Mapping[str, str]) -> str:
    """What a copy keeps besides; JSON in ASCII can hold any text."""
    return json.dumps(dict(meta)) if meta else ""


def meta_from(kept: str) -> dict[str, str]:
    """The same again."""
    return {str(name): str(value) for name, value in json.loads(kept).items()} if kept else {}


def crawl_row(number: int, nth: int, crawl: Crawl, trouble: int, in_batch: int) -> Row:
    """What `ADD_CRAWL` takes; the crawl is the `in_batch`-th of its batch."""
    head = number, nth, crawl.time, crawl.outcome.value, crawl.elapsed, crawl.signals, crawl.took, crawl.status
    return *head, crawl.size, crawl.significance, text(crawl.reason), crawl.fresh_probability, trouble, in_batch


def crawl_from(row: Row) -> Crawl:
    """A crawl from a row of `HISTORY_OF`."""
    url, time, outcome, elapsed, signals, took, status, size, significance, reason, fresh_probability = row
    tail = elapsed, signals, took, status, size, significance, untext(reason), fresh_probability
    return Crawl(url, time, Outcome(outcome), *tail)


def news_from(row: Row) -> News:
    """A crawl of a page that fails or is well again, from a row of `TROUBLES_AFTER`."""
    return News(row[0], crawl_from(row[2:]), row[1])


def version_from(row: Row) -> Version:
    """A version from a row of `CURRENT_VERSION` or `VERSIONS_OF`."""
    number, fetched, content_type, size, replaced_by, replaced, appeared = row
    if min(number, size, replaced_by) < 0:
        raise ValueError("a version that cannot be")
    return Version(number, fetched, untext(content_type), size, replaced_by, replaced, appeared)


def host_row(host: HostState) -> Row:
    """What `SET_HOST` takes."""
    recent = host.asked, host.recent_asks, host.recent_seconds
    return host.host, host.ready, host.failures, text(host.reason), host.since, *recent


def host_from(row: Row) -> HostState:
    """A host's state, from a row of `HOSTS_FROM`."""
    host, ready, failures, reason, *moments = row
    if host is None or failures < 0:
        raise ValueError("a host that cannot be")
    return HostState(host, ready, failures, untext(reason), *moments)


def counted_from(row: Row) -> tuple[str, int, int]:
    """A host and its counts, from a row of `PAGES_BY_HOST`."""
    host, pages, copies = row
    return untext(host), pages, copies


def failing_from(row: Row) -> Failing:
    """How many pages of a host fail alike, from a row of `FAILING`."""
    host, outcome, reason, pages, without_copy = row
    return Failing(untext(host), Outcome(outcome), untext(reason), pages, without_copy)


def totals_from(row: Row) -> Totals:
    """The totals, from a row of `TOTALS`."""
    if min(row) < 0:
        raise ValueError("less than nothing")
    return Totals(*row)


def counts_of(record: Record) -> tuple[int, int]:
    """What a record adds to the totals: crawls and changes."""
    crawl = record.crawl
    return (0, 0) if crawl is None else (1, int(crawl.outcome is Outcome.CHANGED))
