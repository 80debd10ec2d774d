"""What databases say of their own accord: that a table has changed. Each way of saying it is a sender, graded like all.

- `notify:DATABASE`: PostgreSQL's NOTIFY on the channel that the settings name. The payload is a table, a query, or a
  key; without one it means everything.
- `tables:DATABASE`: PostgreSQL's counters of changed rows. They come late, and count changes that were taken back.
- `data_version:DATABASE`: SQLite's number of the last change of the file, which says nothing of tables.

A thread for each database waits for this, and nothing that it does can hold anything up.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from afresh.sources.sql.definitions import Database, redacted
from afresh.sources.sql.drivers import QueryFailed, driver_of

LOOK_EVERY = 1.0  # seconds between two looks at counters and versions
FIRST_BACK_OFF, LONGEST_BACK_OFF = 1.0, 300.0
MAX_PAYLOADS = 1000  # different ones that are remembered between two looks; beyond that it means everything
ALL = ""  # a payload that means everything
COUNTERS = """SELECT schemaname || '.' || relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"""

Hear = Callable[[str, frozenset[str]], None]  # (sender, what it says has changed)

_log = logging.getLogger("afresh.sql")


class Notices:
    """Listens to one database until it is stopped. `hear` is called in a thread of its own, at most once a second."""

    def __init__(self, database: Database, hear: Hear) -> None:
        self.database = database
        self._hear = hear
        self._stop = threading.Event()
        self._counters: dict[str, int] = {}  # of each table, at the last look
        self._version = ""
        self._complained = ""
        self._thread = threading.Thread(target=self._run, name=f"afresh-notices-{database.name}", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no longer; the thread ends within seconds."""
        self._stop.set()

    def _run(self) -> None:
        rest = FIRST_BACK_OFF
        while not self._stop.is_set():
            began, url = time.monotonic(), ""
            try:
                url = self.database.address()
                scheme = url.partition(":")[0]
                if scheme in ("postgresql", "postgres"):
                    self._listen(url)
                elif scheme == "sqlite":
                    self._watch(url)
                else:
                    return  # a driver that knows neither
            except Exception as error:  # whatever a driver may raise
                self._complain(error, url)
            rest = FIRST_BACK_OFF if time.monotonic() - began > LONGEST_BACK_OFF else min(2 * rest, LONGEST_BACK_OFF)
            self._stop.wait(rest)

    def _complain(self, error: Exception, url: str) -> None:
        why = error.reason if isinstance(error, QueryFailed) else type(error).__name__
        if why != self._complained:
            self._complained = why
            _log.warning("Changes of the database %s are not heard: %s.", self.database.name, redacted(why, url))

    def _tell(self, way: str, changed: set[str]) -> None:
        self._complained = ""
        if changed and not self._stop.is_set():
            self._hear(f"{way}:{self.database.name}", frozenset([ALL] if len(changed) > MAX_PAYLOADS else changed))

    # --- PostgreSQL ---

    def _listen(self, url: str) -> None:
        import psycopg
        from psycopg import sql

        with psycopg.connect(url, autocommit=True, application_name="afresh notices", connect_timeout=10) as connection:
            connection.execute("SET statement_timeout = '10s'; SET default_transaction_read_only = on")
            if self.database.notify:
                connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self.database.notify)))
            elif not self.database.watch:
                return
            while not self._stop.is_set():
                if self.database.watch:
                    self._count(connection)
                heard: set[str] = set()
                for notice in connection.notifies(timeout=LOOK_EVERY):
                    if len(heard) <= MAX_PAYLOADS:
                        heard.add(notice.payload[:4096])
                self._tell("notify", heard)

    def _count(self, connection: Any) -> None:
        """Which tables have other counters than at the last look; a table that is seen for the first time has not."""
        now = {str(table): int(count) for table, count in connection.execute(COUNTERS)}
        before, self._counters = self._counters, now
        self._tell("tables", {table for table, count in now.items() if table in before and before[table] != count})

    # --- SQLite ---

    def _watch(self, url: str) -> None:
        if not self.database.watch:
            self._stop.wait()
            return
        connection = driver_of(url).connect(url, self.database.limits)
        before = connection.version()
        try:
            while not self._stop.wait(LOOK_EVERY):
                replaced = not connection.usable()
                if replaced:
                    connection.close()
                    connection = driver_of(url).connect(url, self.database.limits)
                version = connection.version()
                self._tell("data_version", {ALL} if replaced or version != before else set())
                before = version
        finally:
            connection.close()


def changed_keys(said: frozenset[str], reading: Callable[[str], list[str]], keys: Mapping[str, object]) -> set[str]:
    """The keys that what was said is about: of tables by the queries that read them, of queries by their names."""
    found: set[str] = set()
    for word in said:
        if word == ALL:
            return set(keys)
        if word in keys:
            found.add(word)
            continue
        tables = reading(word)
        named = [key for key in keys if key.partition("/")[2].partition("?")[0] == word] if not tables else []
        found.update(tables, named)
    return found
