"""What an application uses in place of running a query: `QueryCache`."""

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from afresh.detect.fingerprint import mark
from afresh.errors import AfreshError, ConfigError, FetchError, StoreError
from afresh.sources.sql.allowance import Allowance
from afresh.sources.sql.definitions import Database, Definitions, Query, to_text
from afresh.sources.sql.rows import Rows
from afresh.sources.sql.shared import LOOK_EVERY, Shared
from afresh.sources.sql.source import Sql
from afresh.sources.sql.stated import stated
from afresh.sources.sql.unseen import Unseen
from afresh.store import PageState, Sqlite
from afresh.store.messages import drain, of_definitions
from afresh.store.socket_file import ask, wake
from afresh.types import Answer, Beliefs, Fetched, Page, Spent
from afresh.units import budget

RECENT_BYTES = 64 << 20  # of results that were read lately and are in memory
LOOK_AGAIN = 1.0  # seconds, after which what the store knows of prices is looked at again
UNKNOWN_SECONDS = 10.0  # that a result is kept of which nothing is known
NAMED_BY_A_READER = 1  # the depth of a page that nobody added by name: it may be evicted
NOTHING = Spent(calls=0.0)
MIN_OBSERVATIONS = 3  # checked intervals, before a query counts as one that changes too fast to be kept


def worth_a_run(fresh: float, seconds: float, price: float, beliefs: Beliefs | None = None) -> bool:
    """Whether to run a query for who asks now, though there is a kept result: right answers more, for what it costs.

    One is that to who asks now; others are those to who asks later, as from any refresh. `price` is what a second of
    the database has to gain, in right answers.

    >>> worth_a_run(0.5, 0.01, 20.0), worth_a_run(0.5, 0.1, 20.0)
    (True, False)
    >>> worth_a_run(0.5, 0.1, 20.0, Beliefs(request_rate=10.0, change_rate=0.1))
    True
    """
    later = 0.0 if beliefs is None else beliefs.request_rate * seconds_gained(fresh, beliefs)
    return 1.0 - fresh + later > price * seconds


def seconds_gained(fresh: float, beliefs: Beliefs) -> float:
    """How much longer a result is fresh if it is refreshed now, while it is with this probability: the crawl value.

    The rate of changes is taken to be as believed. Over all rates that it may have, a result that is surely outdated
    would gain without end, and be run for everybody who asks.

    >>> round(seconds_gained(0.5, Beliefs(change_rate=0.1)), 3), seconds_gained(1.0, Beliefs(change_rate=0.1))
    (1.534, 0.0)
    """
    rate, fresh = beliefs.change_rate, max(fresh, 1e-9)
    return (1.0 - fresh + fresh * math.log(fresh)) / rate if rate > 0.0 else 0.0


def runs_on_request(beliefs: Beliefs | None) -> bool:
    """Whether a result changes faster than it is asked for, so that refreshing it ahead would mostly be in vain.

    >>> runs_on_request(Beliefs(request_rate=0.1, change_rate=1.0, observations=10))
    True
    """
    return (
        beliefs is not None and beliefs.observations >= MIN_OBSERVATIONS and beliefs.change_rate > beliefs.request_rate
    )


class QueryCache:
    """Answers queries from kept results, and runs those that are not kept, or not fresh enough.

    All processes that name one store share its results, its definitions and its runner (`afresh run`). Without a runner
    results are kept as well, and nothing refreshes them ahead. Many threads and event loops may use it at once.

    Invariants: in one process a key is run once at a time, and in others not while it is (as far as they share a disk);
    every request is told to the store; a result is whole, of one run, and never older than its `age`.
    """

    def __init__(
        self,
        store: str | PathLike[str] = "afresh.db",
        *,
        databases: Iterable[Database] = (),
        queries: Iterable[Query] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Share the store at `store`, which is made if it is not there and something is defined here.

        `databases` and `queries` are told to all who share it; others may come from its settings (`[[query]]`), or from
        `afresh query add`.
        """
        said: tuple[Database | Query, ...] = (*databases, *queries)
        if not said and not Path(store).exists():  # a slip of the pen makes no store
            raise ConfigError(
                f"There is no store {str(store)[:300]}.", hint="Check its name, or give databases and queries."
            )
        self._store = Sqlite(store)
        self._clock = clock
        self.definitions = Definitions()
        self.definitions.recall(self._store)
        self.source = Sql(self.definitions)
        self._shared = Shared(self._store, clock)
        self._flights: dict[str, Future[Rows]] = {}
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, tuple[int, Rows]] = OrderedDict()
        self._recent_bytes = 0
        self._price: tuple[float, dict[str, float]] = (-LOOK_AGAIN, {})
        self._listened = (-LOOK_AGAIN, False)  # when we looked whether a runner is there, and whether it was
        self._unseen = Unseen()
        self._allowances: dict[str, Allowance] = {}
        self.define(*said)

    def define(self, *definitions: Database | Query) -> None:
        """Tell all who share the store of databases and queries."""
        said: dict[str, str | None] = {}
        for each in definitions:
            values = Definitions(*([[each]] if isinstance(each, Database) else [[], [each]])).values()
            for name, text in values.items():
                if self._store.get(name) != text:
                    said[name] = text
                self.definitions.take(name, to_text(each))
        if not said:
            return
        self._store.post(of_definitions(said, self._clock()))
        if not wake(self._store.path):
            with suppress(StoreError), Sqlite(self._store.path, create=False) as kept:  # somebody else may, by now
                kept.claim(brief=True)
                drain(kept)

    # --- asking ---

    def get(
        self,
        name: str,
        parameters: Mapping[str, object] | None = None,
        /,
        *,
        fresh: float | None = None,
        **named: object,
    ) -> Rows:
        """The rows of a query with these parameters, kept or run.

        It is run if there is none, or if the kept result is fresh with a lower probability than `fresh`. Where that is
        not given, it is run only if a right answer is worth what the run costs, at the price of its database's budget.
        FetchError if it must be run and cannot.
        """
        _check_fresh(fresh)
        key, query = self._named(name, {**(parameters or {}), **named})
        self._shared.requested(key)
        kept, state = self._kept(key, fresh)
        if kept is not None:
            return kept
        flight, ours = self._flight(key)
        if ours:
            self._fly(key, query, flight, state)
        return flight.result()

    async def aget(
        self,
        name: str,
        parameters: Mapping[str, object] | None = None,
        /,
        *,
        fresh: float | None = None,
        **named: object,
    ) -> Rows:
        """As `get`, for who must not block an event loop. Who is cancelled leaves the query to the others who wait."""
        _check_fresh(fresh)
        key, query = self._named(name, {**(parameters or {}), **named})
        self._shared.requested(key)
        kept, state = await asyncio.to_thread(self._kept, key, fresh)
        if kept is not None:
            return kept
        flight, ours = self._flight(key)
        if ours:
            threading.Thread(target=self._fly, args=(key, query, flight, state), daemon=True).start()
        return await asyncio.shield(asyncio.wrap_future(flight))

    def _named(self, name: str, values: dict[str, object]) -> tuple[str, Query]:
        query = self.definitions.queries.get(name)
        if query is None or query.database not in self.definitions.databases:
            self.definitions.recall(self._store)  # somebody may have defined it meanwhile
            query = self.definitions.query(name)
            if query.database not in self.definitions.databases:
                raise ConfigError(
                    f"There is no database {query.database}, which the query {name} asks.",
                    hint="Define it with [[database]] in the settings.",
                )
        return query.key(values), query

    def _kept(self, key: str, least: float | None) -> tuple[Rows | None, PageState | None]:
        """The kept result, if it will do."""
        state, now = self._store.state(key), self._clock()
        ours = self._unseen.newer(key, None if state is None else state.checked)
        if ours is not None:
            made, signals = ours[0], 0  # the store has counted none of them yet
        elif state is not None and state.checked is not None and state.validators.fingerprint:
            made, signals = state.checked, state.signals
        else:
            return None, state
        age = max(now - made, 0.0)
        beliefs = None if state is None else state.beliefs
        told = 0.0 if beliefs is None else stated(beliefs, age, signals, hears=self._hears())
        if (told < least) if least is not None else self._rather_run(key, state, told, age):
            return None, state
        rows = ours[1] if ours is not None else self._read(key, state) if state is not None else None
        return (None if rows is None else rows.at(age, told)), state

    def _hears(self) -> bool:
        """Whether a runner is there, which listens to the database: silence is no evidence otherwise."""
        looked, hears = self._listened
        now = time.monotonic()
        if now - looked > LOOK_AGAIN:
            hears = ask(self._store.path, "wake", seconds=0.1) is not None
            self._listened = now, hears
        return hears

    def _rather_run(self, key: str, state: PageState | None, told: float, age: float) -> bool:
        allowance = self._allowance(key)
        if not allowance.is_left:
            return False
        if state is None or state.beliefs is None:  # nobody learns, or nothing is learned yet
            return age > UNKNOWN_SECONDS
        price = self._prices(state.page.host)
        seconds = state.cost_new if state.cost_new is not None else state.cost_same
        if allowance.budget.unit == "calls":
            seconds = 1.0
        if price is None or seconds is None:
            return runs_on_request(state.beliefs) and told < 0.5
        return worth_a_run(told, seconds, price, state.beliefs)

    def _prices(self, lane: str) -> float | None:
        """What a second of a database has to gain now; None: nobody runs on the store, or nothing is short."""
        looked, prices = self._price
        now = time.monotonic()
        if now - looked > LOOK_AGAIN:
            prices = {}
            self._price = now, prices
        if lane not in prices:
            text = self._store.get(f"run price {lane}") or self._store.get(f"price {lane}")
            with suppress(ValueError):
                prices[lane] = float(text) if text is not None else -1.0
        return prices[lane] if prices.get(lane, -1.0) > 0 else None

    def _read(self, key: str, state: PageState) -> Rows | None:
        """The kept rows; those read lately are in memory."""
        fingerprint = state.validators.fingerprint
        with self._lock:
            if (found := self._recent.get(key)) is not None and found[0] == fingerprint:
                self._recent.move_to_end(key)
                return found[1]
        copy = self._store.copy(key)
        if copy is None:
            return None
        rows = Rows(copy.body)
        with self._lock:
            before = self._recent.pop(key, None)
            self._recent[key] = copy.validators.fingerprint, rows
            self._recent_bytes += len(copy.body) - (len(before[1].body) if before else 0)
            while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
                _, (_, oldest) = self._recent.popitem(last=False)
                self._recent_bytes -= len(oldest.body)
        return rows

    # --- running ---

    def _flight(self, key: str) -> tuple["Future[Rows]", bool]:
        """What comes of the run of a key that is under way, and whether it is ours to begin it."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            self._flights[key] = flight = Future()
            return flight, True

    def _allowance(self, key: str) -> Allowance:
        database = self.definitions.databases[key.partition("/")[0].partition(":")[2]]
        given = budget(database.budget)
        with self._lock:
            found = self._allowances.get(database.name)
            if found is None or (found.budget, found.budget.unit) != (given, given.unit):
                found = self._allowances[database.name] = Allowance(given)
        return found

    def _fly(self, key: str, query: Query, flight: "Future[Rows]", state: PageState | None) -> None:
        allowance = self._allowance(key)
        expected = (None if state is None else state.cost_new or state.cost_same) or 0.0
        if allowance.budget.unit == "calls":
            expected = 1.0
        allowance.begins(expected)
        spent = NOTHING
        try:
            rows, spent = self._run(key, query)
        except BaseException as error:
            self._land(key)
            flight.set_exception(error)
            return
        finally:
            allowance.ends(expected, spent)
        self._land(key)
        flight.set_result(rows)

    def _land(self, key: str) -> None:
        with self._lock:
            self._flights.pop(key, None)

    def _run(self, key: str, query: Query) -> tuple[Rows, Spent]:
        """Run a key in its turn, or take what another process has just got; and what that cost."""
        began, pool = self._clock(), self.source.pool(query.database)
        deadline = time.monotonic() + (0.0 if pool is None else pool.limits.seconds)
        while not self._shared.turns.take(key):
            if (rows := self._just_got(key, began)) is not None:
                return rows, NOTHING
            if time.monotonic() > deadline:
                break  # who has the turn hangs
            time.sleep(LOOK_EVERY)
        if (rows := self._just_got(key, began)) is not None:
            self._shared.turns.end(key)
            return rows, NOTHING
        try:
            fetched = self.source.run(key)
        except BaseException:
            self._shared.turns.end(key)
            raise
        page = Page(key, self.source.lane(key), began, depth=NAMED_BY_A_READER)
        if fetched.answered is not Answer.NEW:
            self._shared.turns.end(key)
            self._allowance(key).ends(0.0, fetched.cost)
            self._shared.spent_in_vain(page, fetched)
            raise _failed(key, fetched)
        fetched = replace(fetched, validators=replace(fetched.validators, fingerprint=mark(fetched.body)))
        rows = Rows(fetched.body, age=max(self._clock() - fetched.started, 0.0))
        self._unseen.put(key, fetched.started, rows)
        self._shared.hand_over(page, fetched)
        return rows, fetched.cost

    def _just_got(self, key: str, began: float) -> Rows | None:
        """A result that was got since then, by somebody else."""
        state = self._store.state(key)
        if state is None or state.checked is None or state.checked < began:
            return None
        rows = self._read(key, state)
        return None if rows is None else rows.at(max(self._clock() - state.checked, 0.0), 1.0, kept=False)

    # --- the end ---

    def close(self) -> None:
        """Tell the store what is not told yet, and let go of everything. A second call does nothing."""
        self._shared.close()
        self.source.let_go()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_fresh(fresh: float | None) -> None:
    if fresh is not None and not 0.0 <= fresh <= 1.0:
        raise ConfigError(f"fresh = {fresh!r:.40} is no probability.", hint="Give a number from 0 to 1.")


def _failed(key: str, fetched: Fetched) -> AfreshError:
    hints: dict[str, Any] = {
        "unreachable": "Is the database running, and the URL right?",
        "denied": "Check user and password where the URL comes from.",
        "no_url": "Set the variable, or write the file, that the database's url names.",
        "timeout": "Raise the database's timeout, or make the query quicker.",
    }
    said = f" ({fetched.meta['said']})" if fetched.meta.get("said") else ""
    return FetchError(
        f"{key[:300]} could not be run: {fetched.reason}{said}.", hint=hints.get(fetched.reason, "The log says more.")
    )
