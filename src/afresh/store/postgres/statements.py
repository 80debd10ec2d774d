"""Every SQL statement of the store in PostgreSQL; rows have the columns that `afresh.store.rows` reads."""

# ruff: noqa: S608 - no text of others is put into a statement here
from afresh.store.rows import HOST_COLUMNS, STATE_COLUMNS, WISHES

MINE = "(%(slices)s::integer[] IS NULL OR slice = ANY(%(slices)s::integer[]))"  # of a part, or everything

PAGES_LOCK = "SELECT pg_advisory_xact_lock(hashtext('afresh pages'))"  # numbers become visible in their order
INBOX_LOCK = "SELECT pg_advisory_xact_lock(hashtext('afresh inbox'))"
RUN_LOCK = "hashtext('afresh'), hashtext('run')"

PAGE_COLUMNS = f"slice, key, url, host, added, depth, {WISHES}"
STAGE = f"""CREATE TEMPORARY TABLE staged ON COMMIT DROP AS SELECT {PAGE_COLUMNS} FROM pages WITH NO DATA"""
COPY_STAGED = f"COPY staged ({PAGE_COLUMNS}) FROM STDIN (FORMAT binary)"
PAGE_TYPES = [
    *("int4", "bytea", "text", "text", "float8", "int8"),
    *("float8", "float8", "float8", "float8", "text", "int2", "float8"),
]
# Of pages that come twice the first counts.
ADD_STAGED = f"""WITH new AS (INSERT INTO pages ({PAGE_COLUMNS})
    SELECT {PAGE_COLUMNS} FROM staged ON CONFLICT (slice, key) DO NOTHING RETURNING slice)
  SELECT slice, count(*) FROM new GROUP BY slice"""
SET_IMPORTANCE = "UPDATE pages SET importance = %s, importance_factor = %s WHERE slice = %s AND key = %s"
SET_WISHES = f"UPDATE pages SET ({WISHES}) = (%s, %s, %s, %s, %s, %s, %s) WHERE slice = %s AND key = %s"
SET_URGENT = "UPDATE pages SET urgent = 1 WHERE slice = %s AND key = %s"

STATES_AFTER = f"SELECT {STATE_COLUMNS} FROM pages WHERE number > %(after)s AND {MINE} ORDER BY number LIMIT %(limit)s"
STATES_UNDER = f"""SELECT {STATE_COLUMNS} FROM pages WHERE left(url, 400) >= left(%(prefix)s, 400)
  AND left(url, 400) <= left(%(last)s, 400) AND url >= %(prefix)s AND url < %(last)s
  ORDER BY url LIMIT %(limit)s"""
STATES_OF_HOST = f"""SELECT {STATE_COLUMNS} FROM pages WHERE host = %(host)s AND number > %(after)s
  ORDER BY number LIMIT %(limit)s"""
# Lists of pages, as `afresh.store.listing` has them for a file; there is an index for each of these orders alone.
_LISTED = f"SELECT {STATE_COLUMNS} FROM pages WHERE"
LISTED = {
    "url": f"""{_LISTED} left(url, 400) >= left(%(a)s, 400) AND left(url, 400) <= left(%(b)s, 400)
      AND url >= %(a)s AND url < %(b)s ORDER BY left(url, 400), url LIMIT %(c)s""",
    "added": f"{_LISTED} number > %(a)s ORDER BY number LIMIT %(b)s",
    "failures": f"""{_LISTED} failures > 0 AND (failures, number) < (%(a)s, %(b)s)
      ORDER BY failures DESC, number DESC LIMIT %(c)s""",
    "failing": f"""{_LISTED} failures > 0 AND gone IS NULL AND (failures, number) < (%(a)s, %(b)s)
      ORDER BY failures DESC, number DESC LIMIT %(c)s""",
    "gone": f"""{_LISTED} gone IS NOT NULL AND (gone, number) < (%(a)s, %(b)s)
      ORDER BY gone DESC, number DESC LIMIT %(c)s""",
    "paused": f"{_LISTED} paused <> 0 AND number > %(a)s ORDER BY number LIMIT %(b)s",
}
SIZES_OF_HOST = """SELECT url, depth, body_bytes, coalesce(request_rate, 0.0) FROM pages
  WHERE host = %s AND fetched IS NOT NULL ORDER BY number"""
STATE_NUMBERED = f"SELECT {STATE_COLUMNS} FROM pages WHERE number = %s"
STATE_OF = f"SELECT {STATE_COLUMNS} FROM pages WHERE slice = %s AND key = %s"
NUMBERS_OF = """SELECT coalesce(number, 0)
  FROM unnest(%s::integer[], %s::bytea[]) WITH ORDINALITY AS asked (slice, key, nth)
  LEFT JOIN pages USING (slice, key) ORDER BY nth"""
IDENTITY = "SELECT identity FROM cluster"
SET_IDENTITY = "UPDATE cluster SET identity = %s"
TITLES_OF = """SELECT coalesce(title, '')
  FROM unnest(%s::integer[], %s::bytea[]) WITH ORDINALITY AS asked (slice, key, nth)
  LEFT JOIN pages USING (slice, key) ORDER BY nth"""
COLUMNS_AFTER = f"""SELECT number, url, host, checked, crawls, failures, signals, learned,
  importance, importance_factor, popularity, cost_same, cost_new,
  shortest IS NOT NULL OR longest IS NOT NULL OR hours <> '' OR paused <> 0 OR urgent <> 0
  FROM pages WHERE number > %(after)s AND {MINE} ORDER BY number LIMIT %(limit)s"""

FIND_PAGES = """SELECT asked.nth, number, written, fetched IS NOT NULL, body_bytes, stored_bytes, gone, trouble
  FROM unnest(%s::integer[], %s::bytea[]) WITH ORDINALITY AS asked (slice, key, nth) JOIN pages USING (slice, key)"""
SET_STATE = """UPDATE pages SET request_rate = %s, change_rate = %s, recall = %s, false_rate = %s, observations = %s,
  etag = %s, last_modified = %s, fingerprint = %s, checked = %s, signals = %s,
  crawls = %s, changes = %s, failures = %s, learned = %s, noise = %s, urgent = %s, cost_same = %s, cost_new = %s,
  shape = %s, gone = %s, trouble = %s, title = coalesce(%s, title), written = %s,
  fetched = coalesce(%s, fetched), body_bytes = %s, stored_bytes = %s
  WHERE slice = %s AND key = %s"""
SET_HEARD = """UPDATE pages SET request_rate = %s, change_rate = %s, recall = %s, false_rate = %s, observations = %s,
  shape = %s, signals = %s, learned = %s WHERE slice = %s AND key = %s"""
SET_COPY = """INSERT INTO copies
  (slice, page, content_type, fetched, etag, last_modified, fingerprint, size, checksum, body, meta)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT (slice, page) DO UPDATE SET content_type = excluded.content_type, fetched = excluded.fetched,
    etag = excluded.etag, last_modified = excluded.last_modified, fingerprint = excluded.fingerprint,
    size = excluded.size, checksum = excluded.checksum, body = excluded.body, meta = excluded.meta"""
# One statement, so that page and copy are seen at one moment.
COPY_OF = """SELECT url, content_type, copies.fetched, coalesce(checked, copies.fetched), copies.etag,
  copies.last_modified, copies.fingerprint, meta, size, checksum, body
  FROM pages JOIN copies ON copies.slice = pages.slice AND page = number WHERE pages.slice = %s AND key = %s"""
# The copy as it is becomes an earlier version: its frame is moved, and not made anew.
KEEP_VERSIONS = """INSERT INTO versions_of_pages
  (slice, page, number, replaced_by, replaced, fetched, content_type, size, checksum, stored, body)
  SELECT c.slice, c.page, p.version, k.serial, k.time, c.fetched, content_type, size, checksum, octet_length(body), body
  FROM unnest(%(slices)s::integer[], %(pages)s::bigint[], %(serials)s::bigint[], %(times)s::double precision[])
    AS k (slice, page, serial, time)
  JOIN copies AS c USING (slice, page) JOIN pages AS p ON p.slice = c.slice AND p.number = c.page ORDER BY k.serial"""
SET_VERSIONS = """UPDATE pages SET version = k.serial
  FROM unnest(%(slices)s::integer[], %(pages)s::bigint[], %(serials)s::bigint[]) AS k (slice, page, serial)
  WHERE pages.slice = k.slice AND pages.number = k.page"""
TRIM_VERSIONS = """DELETE FROM versions_of_pages USING (
    SELECT id, row_number() OVER newest AS nth, sum(stored) OVER newest AS total, replaced < k.time - %(seconds)s AS old
    FROM unnest(%(slices)s::integer[], %(pages)s::bigint[], %(times)s::double precision[]) AS k (slice, page, time)
    JOIN versions_of_pages USING (slice, page) WINDOW newest AS (PARTITION BY slice, page ORDER BY id DESC)) AS v
  WHERE versions_of_pages.id = v.id
  AND (nth > %(count)s OR (%(seconds)s > 0 AND old) OR (%(bytes)s > 0 AND total > %(bytes)s))"""
DROP_OLDEST_VERSIONS = """DELETE FROM versions_of_pages
  WHERE id IN (SELECT id FROM versions_of_pages ORDER BY id LIMIT %s) AND replaced < %s"""
_OF_PAGE = (
    "FROM pages JOIN {} AS v ON v.slice = pages.slice AND page = pages.number WHERE pages.slice = %s AND key = %s"
)
_APPEARED = """(SELECT min(time) FROM crawls WHERE crawls.slice = pages.slice AND crawls.page = pages.number
  AND {0} > 0 AND serial >= {0}"""
CURRENT_VERSION = f"""SELECT pages.version, v.fetched, content_type, size, 0, NULL::float8,
  {_APPEARED.format("pages.version")}) {_OF_PAGE.format("copies")}"""
VERSIONS_OF = f"""SELECT v.number, v.fetched, content_type, size, replaced_by, replaced,
  {_APPEARED.format("v.number")} AND serial < replaced_by)
  {_OF_PAGE.format("versions_of_pages")} ORDER BY id DESC"""
VERSION_OF = f"""SELECT v.fetched, content_type, replaced, size, checksum, body
  {_OF_PAGE.format("versions_of_pages")} AND v.number = %s ORDER BY id DESC LIMIT 1"""
ALL_VERSIONS = """SELECT id, url, v.number FROM versions_of_pages AS v
  JOIN pages ON pages.slice = v.slice AND pages.number = page WHERE id > %s ORDER BY id LIMIT 1000"""
COPIES_AFTER = """SELECT number, url FROM pages WHERE number > %s AND fetched IS NOT NULL ORDER BY number LIMIT 1000"""

TAKE_SERIALS = "UPDATE serials SET crawls = crawls + %s RETURNING crawls - %s"
COPY_CRAWLS = """COPY crawls (slice, page, nth, time, outcome, elapsed, signals, took, status, size, significance,
  reason, fresh_probability, trouble, serial) FROM STDIN (FORMAT binary)"""
CRAWL_TYPES = [
    *("int4", "int8", "int8", "float8", "text", "float8", "int8", "float8", "int8", "int8", "float8"),
    *("text", "float8", "int8", "int8"),
]
_KEYS = "unnest(%(slices)s::integer[], %(pages)s::bigint[]) AS k (slice, page)"
_LATEST = """SELECT nth, outcome, reason FROM crawls AS c WHERE c.slice = k.slice AND c.page = k.page
  ORDER BY nth DESC LIMIT %(alike)s + 1"""
# Of failures in a row that are all alike, the last but one in time goes: see `MAX_ALIKE`.
SHORTEN_RUNS = f"""DELETE FROM crawls USING (
    SELECT k.slice, k.page, (array_agg(l.nth ORDER BY l.nth))[2] AS nth FROM {_KEYS} CROSS JOIN LATERAL ({_LATEST}) AS l
    GROUP BY k.slice, k.page HAVING count(*) = %(alike)s + 1 AND count(DISTINCT (l.outcome, l.reason)) = 1) AS old
  WHERE crawls.slice = old.slice AND crawls.page = old.page AND crawls.nth = old.nth"""
TRIM_CRAWLS = f"""DELETE FROM crawls USING (
    SELECT k.slice, k.page, (SELECT nth FROM crawls AS c WHERE c.slice = k.slice AND c.page = k.page
      ORDER BY nth DESC LIMIT 1 OFFSET %(keep)s) AS nth FROM {_KEYS}) AS old
  WHERE crawls.slice = old.slice AND crawls.page = old.page AND crawls.nth <= old.nth"""
DROP_OLDEST = f"""DELETE FROM crawls USING (
    SELECT k.slice, k.page, min(c.nth) AS nth FROM {_KEYS} JOIN crawls AS c USING (slice, page)
    GROUP BY k.slice, k.page HAVING count(*) > 1) AS old
  WHERE crawls.slice = old.slice AND crawls.page = old.page AND crawls.nth = old.nth"""
_HISTORY = """url, time, outcome, elapsed, crawls.signals, took, status, size, significance, reason, fresh_probability
  FROM pages JOIN crawls ON crawls.slice = pages.slice AND page = number"""
HISTORY_OF = f"SELECT {_HISTORY} WHERE pages.slice = %s AND key = %s ORDER BY nth DESC LIMIT %s"
CHANGES_AFTER = """SELECT serial, url, time, outcome, elapsed, crawls.signals, took, status, size, significance,
  reason, fresh_probability FROM crawls JOIN pages ON pages.slice = crawls.slice AND page = number
  WHERE outcome IN ('new', 'changed', 'gone') AND serial > %s
  AND (outcome <> 'gone' OR coalesce((SELECT earlier.outcome FROM crawls AS earlier
    WHERE earlier.slice = crawls.slice AND earlier.page = crawls.page AND earlier.nth < crawls.nth
    ORDER BY earlier.nth DESC LIMIT 1), '') <> 'gone')
  ORDER BY serial LIMIT %s"""

TROUBLES_AFTER = """SELECT serial, crawls.trouble, url, time, outcome, elapsed, crawls.signals, took, status, size,
  significance, reason, fresh_probability FROM crawls JOIN pages ON pages.slice = crawls.slice AND page = number
  WHERE crawls.trouble <> 0 AND serial > %s ORDER BY serial LIMIT %s"""

SET_HOST = f"""INSERT INTO hosts ({HOST_COLUMNS}, slice) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT (host) DO UPDATE SET ready = excluded.ready, failures = excluded.failures, reason = excluded.reason,
    since = excluded.since, asked = excluded.asked, recent_asks = excluded.recent_asks,
    recent_seconds = excluded.recent_seconds"""
PAGES_BY_HOST = f"""SELECT host, count(*), count(fetched) FROM pages WHERE {MINE} GROUP BY host ORDER BY host"""
HOSTS_AFTER = f"""SELECT {HOST_COLUMNS} FROM hosts WHERE (%(after)s::text IS NULL OR host > %(after)s::text) AND {MINE}
  ORDER BY host LIMIT %(limit)s"""
HOST_OF = f"SELECT {HOST_COLUMNS} FROM hosts WHERE host = %s"
FAILING = """SELECT host, outcome, reason COLLATE "C" AS reason, count(*), count(*) - count(pages.fetched)
  FROM pages JOIN crawls ON crawls.slice = pages.slice AND page = number AND nth = written
  WHERE failures > 0 AND (%(slices)s::integer[] IS NULL OR pages.slice = ANY(%(slices)s::integer[]))
  GROUP BY host, outcome, 3 ORDER BY host, outcome, 3"""

SET_NAMED = """INSERT INTO named (part, name, value) VALUES (%s, %s, %s)
  ON CONFLICT (part, name) DO UPDATE SET value = excluded.value"""
# What a part says itself comes before what holds for all.
GET_NAMED = "SELECT value FROM named WHERE name = %s AND part IN (-1, %s) ORDER BY part DESC LIMIT 1"
GET_OWN = "SELECT value FROM named WHERE name = %s AND part = %s"
FORGET_NAMED = "DELETE FROM named WHERE part = %s AND name = %s"
NAMES_UNDER = """SELECT name, max(octet_length(value)) FROM named
  WHERE name >= %s AND name < %s AND part IN (-1, %s) GROUP BY name ORDER BY name"""
OWNER = """SELECT slices.part FROM slices JOIN runners ON runners.part = slices.part
  WHERE slice = %s AND until > clock_timestamp()"""
OWNERS = "SELECT slice, part FROM slices WHERE part >= 0"
# What the workers of a cluster knew is old once a single process has run; how it went stays.
FORGET_WORKERS = "DELETE FROM named WHERE part >= 0 AND name NOT LIKE 'figures %'"
VALUES_UNDER = "SELECT part, name, value FROM named WHERE name >= %s AND name < %s"

TOTALS = f"""SELECT sum(pages)::bigint, sum(copies)::bigint, sum(crawls)::bigint, sum(changes)::bigint,
  sum(body_bytes)::bigint, sum(stored_bytes)::bigint FROM totals WHERE {MINE}"""
INBOX_TOTALS = """SELECT count(*), coalesce(sum(octet_length(body)) + 100 * count(*), 0)::bigint FROM inbox
  WHERE %(part)s::integer = -1 OR part IN (%(part)s::integer, -1)"""
# In the order of the slices, so that no two wait for each other.
LOCK_TOTALS = "SELECT 1 FROM totals WHERE slice = ANY(%s::integer[]) ORDER BY slice FOR NO KEY UPDATE"
ADD_TOTALS = """UPDATE totals SET pages = pages + %s, copies = copies + %s, crawls = crawls + %s,
  changes = changes + %s, body_bytes = body_bytes + %s, stored_bytes = stored_bytes + %s,
  removed_crawls = removed_crawls + %s
  WHERE slice = %s"""
COUNTED = """SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM copies),
  (SELECT coalesce(sum(written), 0) FROM pages)::bigint + (SELECT sum(removed_crawls) FROM totals)::bigint,
  (SELECT coalesce(sum(size), 0) FROM copies)::bigint,
  (SELECT coalesce(sum(octet_length(body)), 0) FROM copies)::bigint"""
USED = "SELECT pg_database_size(current_database())"

FORGET_CRAWLS = "DELETE FROM crawls WHERE slice = %s AND page = %s"
FORGET_COPY = "DELETE FROM copies WHERE slice = %s AND page = %s"
FORGET_VERSIONS = "DELETE FROM versions_of_pages WHERE slice = %s AND page = %s"
FORGET_PAGE = "DELETE FROM pages WHERE slice = %s AND number = %s"

NOTE_KEY = "INSERT INTO inbox_keys (key, number) VALUES (%s, 0) ON CONFLICT (key) DO NOTHING"
NUMBER_KEYS = "UPDATE inbox_keys SET number = %s WHERE number = 0"
ADD_ENTRY = "INSERT INTO inbox (part, received, kind, body) VALUES (%s, %s, %s, %s) RETURNING number"
FORGET_KEYS = "DELETE FROM inbox_keys WHERE number <= %s AND number > 0"
ENTRIES_AFTER = """SELECT number, received, kind, body FROM inbox
  WHERE number > %(after)s AND (%(part)s::integer = -1 OR part IN (%(part)s::integer, -1))
  ORDER BY number LIMIT %(limit)s"""
TAKE_ENTRIES = "DELETE FROM inbox WHERE number = ANY(%s::bigint[])"

TAKE_RUN = f"SELECT pg_try_advisory_lock({RUN_LOCK})"
SHARE_RUN = f"SELECT pg_try_advisory_lock_shared({RUN_LOCK})"
LET_GO = f"SELECT pg_advisory_unlock({RUN_LOCK})"
# Asked in one session: whether another one holds the lock for longer than a moment.
RUN = f"""SELECT CASE WHEN pg_try_advisory_xact_lock_shared({RUN_LOCK}) THEN '' ELSE holder END
  FROM runners WHERE part = -1"""
LEASED = "SELECT count(*) FROM runners WHERE part >= 0 AND until > clock_timestamp()"
HOLDER = "SELECT holder FROM runners WHERE part = -1"
CLAIM = "UPDATE runners SET token = token + 1, holder = %s WHERE part = -1 RETURNING token"
TOKEN = "SELECT token FROM runners WHERE part = %s"  # noqa: S105
PROVE = "UPDATE runners SET batch = %s WHERE part = %s AND token = %s AND (part = -1 OR until > clock_timestamp())"
WRITTEN = "SELECT 1 FROM runners WHERE part = %s AND batch = %s"
