"""Database queries as a source: a key is a query with its parameters, a lane is a database, the content is its rows."""

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from afresh.sources.base import Known, Runner
from afresh.sources.sql.definitions import SCHEME, Database, Definitions, Query, canonical, parts_of
from afresh.sources.sql.drivers import QueryFailed
from afresh.sources.sql.notices import Notices, changed_keys
from afresh.sources.sql.pool import Pool, Ran
from afresh.sources.sql.values import to_json
from afresh.types import Answer, Blame, Fetched, Spent, Validators

CONTENT_TYPE = "application/json"
PLAN_EVERY = 3600.0  # seconds, after which the tables that a query reads are learned again
MAX_SAID = 300  # characters of what a database says of a failure
MAX_PLANS = 50_000  # keys whose tables are remembered; the longest unused go first
KEEP_EVERY = 5.0  # seconds between two times that the tables of queries are kept
FAILED_VALUE = "sql failed "  # before a key: under this a store keeps what its database said last of its failure
MAX_FAILED = 1000  # of these
TABLES_VALUE = "sql tables "  # before a database's name: under this a store keeps them
TIMEOUTS_OF_LANE = 3  # in a row: then it is the database that is slow, and not one query

_log = logging.getLogger("afresh.sql")


class Sql:
    """Gets results of queries. `Definitions` says which there are, and may be changed while it is in use."""

    kind = "sql"

    def __init__(self, definitions: Definitions, *, recall: Callable[[str], str | None] = lambda name: None) -> None:
        """`recall` gives named values that were kept before a restart."""
        self.definitions = definitions
        self._recall = recall
        self._runner: Runner | None = None
        self._notices: dict[str, Notices] = {}
        self._kept_tables: dict[str, str] = {}  # as they were kept last
        self._learned = False  # something about tables since then
        self._keep_next = 0.0
        self._pools: dict[str, Pool] = {}
        self._tables: OrderedDict[str, tuple[float, frozenset[str]]] = OrderedDict()
        self._timeouts: dict[str, int] = {}  # in a row, by database
        self._complaints: OrderedDict[str, str] = OrderedDict()
        self._well: set[str] = set()  # keys of which nothing is kept that their database said of a failure,
        self._failed: set[str] = set()  # those of which it is,
        self._failures: dict[str, str | None] = {}  # and what is to be kept of them, or to be forgotten

    def key(self, text: str) -> str | None:
        """The canonical form of `sql:DATABASE/QUERY?parameters`."""
        return canonical(text) if text.startswith(SCHEME) else None

    def lane(self, key: str) -> str:
        """The database."""
        return key.partition("/")[0]

    def purse(self, key: str) -> str:
        """Each database has its own budget."""
        return self.lane(key)

    @property
    def bounds(self) -> dict[str, int]:
        """How many bytes of results are kept of each database, by its lane."""
        return {f"{SCHEME}{each.name}": each.max_kept for each in self.definitions.databases.values()}

    def tables(self, key: str) -> frozenset[str]:
        """The tables that a query reads, as far as that was learned since the start."""
        return self._tables.get(key, (0.0, frozenset[str]()))[1]

    def told(self, key: str, tables: frozenset[str]) -> None:
        """What tables a query read when its copy was made, before a restart: it is learned anew with time."""
        if tables and key not in self._tables:
            self._note_tables(key, tables, 0.0)

    def keys_reading(self, database: str, table: str) -> list[str]:
        """The keys of a database whose queries read a table, which may be named without its schema."""
        lane, bare = f"{SCHEME}{database}/", table.rpartition(".")[2]
        return [
            key
            for key, (_, tables) in self._tables.items()
            if key.startswith(lane)
            and (table in tables or ("." not in table and any(each.rpartition(".")[2] == bare for each in tables)))
        ]

    def pool(self, database: str) -> Pool | None:
        """What runs queries of a database; None if there is none of this name."""
        known = self.definitions.databases.get(database)
        pool = self._pools.get(database)
        if pool is not None and pool.database != known:
            self._pools.pop(database).close()
            pool = None
        if pool is None and known is not None:
            pool = self._pools[database] = Pool(known)
        return pool

    def forget(self, key: str) -> None:
        """A key is not kept any more."""
        self._tables.pop(key, None)
        self._complaints.pop(key, None)
        self._fares_well(key)

    # --- with a runner ---

    async def begin(self, runner: Runner) -> None:
        """Listen to what databases say themselves."""
        self._runner = runner
        loop = asyncio.get_running_loop()
        for database in list(self.definitions.databases.values()):
            self._begin_with(database, loop)

    def _begin_with(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        runner = self._runner
        if runner is None:
            return
        name = database.name
        # Queries of one database do not run two at a time; the budget says how much they may take, so no rest is due.
        runner.lanes.treat(f"{SCHEME}{name}", replace(runner.lanes.politeness, factor=0.0, shortest_gap=0.0))
        self._recall_tables(name)
        before = self._notices.pop(name, None)
        if before is not None:
            before.stop()

        def hear(sender: str, said: frozenset[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._hear, name, sender, said)

        self._notices[name] = Notices(database, hear)
        self._notices[name].start()

    def _hear(self, database: str, sender: str, said: frozenset[str]) -> None:
        """A database has said that tables of it have changed."""
        lane = f"{SCHEME}{database}/"
        keys = {key: None for key in self._tables if key.startswith(lane)}
        if self._runner is not None:
            for key in changed_keys(said, lambda table: self.keys_reading(database, table), keys):
                self._runner.hint(key, sender)

    def said(self, name: str, text: str | None) -> None:
        """A definition is another now, or is gone: under that name the store keeps it."""
        before = dict(self.definitions.databases)
        self.definitions.take(name, text)
        for gone in before.keys() - self.definitions.databases.keys():
            if (notices := self._notices.pop(gone, None)) is not None:
                notices.stop()
        for new, database in self.definitions.databases.items():
            if self._runner is not None and before.get(new) != database:
                self._begin_with(database, asyncio.get_running_loop())

    def received(self, fetched: Fetched) -> None:
        """Another process ran a query: it has learned which tables that reads."""
        try:
            tables = json.loads(fetched.meta.get("tables", "[]"))
            self.told(fetched.url, frozenset(str(each) for each in tables))
        except (ValueError, TypeError):
            return

    def take(self) -> dict[str, str | None]:
        """Which tables queries read, to be kept: without that, nothing could be heard of them after a restart."""
        now, failures = time.monotonic(), self._failures
        self._failures = {}
        if not self._learned or now < self._keep_next:
            return failures
        self._learned, self._keep_next = False, now + KEEP_EVERY
        by_database: dict[str, dict[str, list[str]]] = {}
        for key, (_, tables) in self._tables.items():
            by_database.setdefault(key[len(SCHEME) :].partition("/")[0], {})[key] = sorted(tables)
        values = {TABLES_VALUE + name: json.dumps(tables) for name, tables in by_database.items()}
        changed = {name: text for name, text in values.items() if self._kept_tables.get(name) != text}
        self._kept_tables = values
        return failures | changed

    def _recall_tables(self, database: str) -> None:
        text = self._recall(TABLES_VALUE + database)
        try:
            kept = {} if text is None else json.loads(text)
            for key, tables in kept.items():
                self.told(str(key), frozenset(str(each) for each in tables))
        except (ValueError, TypeError, AttributeError):
            return  # it is learned anew

    # --- getting ---

    async def get(self, key: str, known: Known) -> Fetched:
        """Run the query in a thread, and wait no longer than its database's limits say."""
        asked = self._asked(key)
        if isinstance(asked, Fetched):
            return asked
        query, values, pool = asked
        unless = known.validators.etag if known.fetched is not None and known.validators.fingerprint else ""
        job = pool.submit(query.statement, values, unless=unless)
        started = time.time()
        try:
            async with asyncio.timeout(pool.patience):
                ran = await asyncio.wrap_future(job.future)
            return await self._answer(key, query, values, pool, ran)
        except TimeoutError:
            pool.stop(job)
            return self.failed(key, started, QueryFailed("hangs", "no answer within the time limit", Blame.LANE))
        except QueryFailed as error:
            return self.failed(key, started, error)
        except asyncio.CancelledError:
            pool.stop(job)
            raise

    def run(self, key: str) -> Fetched:
        """The same for who waits in a thread, and knows nothing of the result."""
        asked = self._asked(key)
        if isinstance(asked, Fetched):
            return asked
        query, values, pool = asked
        started = time.time()
        try:
            ran = pool.run(query.statement, values)
            self._note_tables(key, self._known_tables(key, ran, values, pool, query), time.monotonic())
            return self._content(key, query, pool.database, ran)
        except QueryFailed as error:
            return self.failed(key, started, error)

    def _asked(self, key: str) -> "Fetched | tuple[Query, dict[str, object], Pool]":
        parts = parts_of(key)
        query = None if parts is None else self.definitions.queries.get(parts[1])
        pool = None if parts is None else self.pool(parts[0])
        if parts is None or query is None or query.database != parts[0] or pool is None:
            return Fetched(key, time.time(), 0.0, answer=Answer.GONE, reason="no_such_query", blame=Blame.NOBODY)
        if set(parts[2]) != set(query.statement.parameters):
            return Fetched(key, time.time(), 0.0, answer=Answer.GONE, reason="other_parameters", blame=Blame.NOBODY)
        return query, parts[2], pool

    async def _answer(self, key: str, query: Query, values: dict[str, object], pool: Pool, ran: Ran) -> Fetched:
        if ran.found is not None and ran.found.tables is None and self._plan_is_due(key):
            try:
                planned = await asyncio.wrap_future(pool.submit(query.statement, values, plan=True).future)
            except QueryFailed:
                planned = None  # who may run a query may also see its plan; if not, it has no signals from tables
            found = planned.found if planned is not None else None
            self._note_tables(key, (found and found.tables) or frozenset(), time.monotonic())
        elif ran.found is not None and ran.found.tables is not None:
            self._note_tables(key, ran.found.tables, time.monotonic())
        return await asyncio.to_thread(self._content, key, query, pool.database, ran)

    def _known_tables(self, key: str, ran: Ran, values: dict[str, object], pool: Pool, query: Query) -> frozenset[str]:
        if ran.found is not None and ran.found.tables is not None:
            return ran.found.tables
        if not self._plan_is_due(key):
            return self.tables(key)
        try:
            planned = pool.run(query.statement, values, plan=True).found
        except QueryFailed:
            return frozenset()
        return (planned and planned.tables) or frozenset()

    def _plan_is_due(self, key: str) -> bool:
        planned = self._tables.get(key)
        return planned is None or time.monotonic() - planned[0] > PLAN_EVERY

    def _note_tables(self, key: str, tables: frozenset[str], when: float) -> None:
        self._learned |= self.tables(key) != tables
        self._tables[key] = when, tables
        self._tables.move_to_end(key)
        while len(self._tables) > MAX_PLANS:
            self._tables.popitem(last=False)

    def _content(self, key: str, query: Query, database: Database, ran: Ran) -> Fetched:
        """The result as what is kept."""
        self._timeouts.pop(database.name, None)
        self._complaints.pop(key, None)
        self._fares_well(key)
        if ran.found is None:
            spent = Spent(ran.seconds, 0)
            return Fetched(key, ran.started, ran.seconds, answer=Answer.SAME, blame=Blame.KEY, spent=spent)
        body = to_json(ran.found.columns, ran.found.rows, ordered=query.statement.ordered)
        if len(body) > database.max_bytes:
            too_large = QueryFailed("result_too_large", f"its result has more than {database.max_bytes:,} bytes")
            return self.failed(key, ran.started, too_large, ran.seconds)
        return Fetched(
            key,
            ran.started,
            ran.seconds,
            body=body,
            content_type=CONTENT_TYPE,
            validators=Validators(etag=ran.version),
            answer=Answer.NEW,
            blame=Blame.KEY,
            received=len(body),
            spent=Spent(ran.seconds, len(body)),
            meta=self._meta(key, ran),
        )

    def _fares_well(self, key: str) -> None:
        """What a database said of a failure holds no longer; it may have been said before a restart."""
        if key in self._well:
            return
        if len(self._well) >= MAX_PLANS:
            self._well.clear()
        self._well.add(key)
        if key in self._failed or self._recall(FAILED_VALUE + key) is not None:
            self._failed.discard(key)
            self._failures[FAILED_VALUE + key] = None

    def _meta(self, key: str, ran: Ran) -> dict[str, str]:
        found = ran.found
        if found is None:
            return {}
        tables, columns = json.dumps(sorted(self.tables(key))), json.dumps([list(each) for each in found.columns])
        return {"rows": str(len(found.rows)), "tables": tables[:8192], "columns": columns[:32768]}

    def failed(self, key: str, started: float, error: QueryFailed, seconds: float | None = None) -> Fetched:
        """What a query that brought nothing has answered."""
        took = max(time.time() - started, 0.0) if seconds is None else seconds
        blame, database = error.blame, self.lane(key)
        if error.reason == "timeout":
            row = self._timeouts[database] = self._timeouts.get(database, 0) + 1
            blame = Blame.LANE if row >= TIMEOUTS_OF_LANE else blame
        if error.reason != self._complaints.get(key) and error.reason not in ("cancelled", "closed"):
            self._complaints[key] = error.reason
            if len(self._complaints) > MAX_PLANS:
                self._complaints.popitem(last=False)
            if blame is Blame.KEY and error.message and (key in self._failed or len(self._failed) < MAX_FAILED):
                self._well.discard(key)
                self._failed.add(key)
                self._failures[FAILED_VALUE + key] = " ".join(error.message.split())[:MAX_SAID]
            _log.warning("%s failed: %s%s.", key[:200], error.reason, f" ({error.message})" if error.message else "")
        # A query whose fault it is not is not put off by itself: its lane rests.
        answer = Answer.BUSY if blame is Blame.LANE else Answer.FAILED
        # The database's own words, without passwords: the pool has taken them out.
        said, spent = {"said": " ".join(error.message.split())[:MAX_SAID]} if error.message else {}, Spent(took, 0)
        return Fetched(key, started, took, answer=answer, reason=error.reason, blame=blame, spent=spent, meta=said)

    async def close(self) -> None:
        """Let queries end, and close all connections."""
        self.let_go()

    def let_go(self) -> None:
        """The same for who is not asynchronous."""
        for notices in self._notices.values():
            notices.stop()
        self._notices.clear()
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
