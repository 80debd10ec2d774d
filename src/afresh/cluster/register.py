"""The cluster's truth, in PostgreSQL: leases, who holds which slices, budgets. Its clock is the server's alone."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from afresh.cluster.budget import Share, allot
from afresh.cluster.gate import now
from afresh.cluster.ownership import owners
from afresh.errors import ClusterError, StoreError
from afresh.store.postgres.link import Connection, Link, explain, is_lost
from afresh.store.slices import SLICES
from afresh.types import Address

LEASE_SECONDS = 10.0  # that a worker may go on without a word from the database
MARGIN_SECONDS = 2.0  # before the end of its lease a worker stops asking hosts
STALE_SECONDS = 60.0  # after which a price says nothing any more

_LEASED = "until > clock_timestamp()"
_TAKE = """INSERT INTO runners (part, token, holder, until, price)
  VALUES (%(part)s, 1, %(holder)s, clock_timestamp() + %(lease)s * interval '1 s', -1)
  ON CONFLICT (part) DO UPDATE SET token = runners.token + 1, holder = excluded.holder, until = excluded.until,
    spending = 0, budget = 0, price = -1 WHERE runners.until < clock_timestamp() RETURNING token"""
# What it is told with this beat it may go by from now on, though it has not said so yet.
_BEAT = f"""UPDATE runners SET until = clock_timestamp() + %(lease)s * interval '1 s',
  spending = greatest(%(spending)s, budget),
  price = %(price)s, said = %(said)s WHERE part = %(part)s AND token = %(token)s AND {_LEASED} RETURNING budget"""  # noqa: S608
_GIVE_UP = "UPDATE runners SET until = '-infinity', budget = 0, spending = 0 WHERE part = %s AND token = %s"
_MINE = f"SELECT 1 FROM runners WHERE part = %(part)s AND token = %(token)s AND {_LEASED} FOR UPDATE"  # noqa: S608
# Free slices, those that are held by a part whose lease is over, and what a former incarnation of this one held. The
# row of a part is locked while it writes a batch: one that was begun under the lease may end after it, and counts.
_TAKE_SLICES = f"""WITH others AS (SELECT part FROM runners WHERE part <> %(part)s),
    over AS (SELECT part FROM runners WHERE part <> %(part)s AND NOT {_LEASED} FOR UPDATE SKIP LOCKED)
  UPDATE slices SET part = %(part)s, token = token + 1 WHERE wanted = %(part)s AND part IS DISTINCT FROM %(part)s
  AND (part IS NULL OR part IN (SELECT part FROM over) OR part NOT IN (SELECT part FROM others))"""  # noqa: S608
_HELD = "SELECT slice FROM slices WHERE part = %s AND wanted = %s"
_LET_GO = "UPDATE slices SET part = NULL, token = token + 1 WHERE part = %s AND wanted IS DISTINCT FROM %s"
# What a worker should do: whether the cluster runs, and how many slices wait to be given up, or to be taken.
_SEEN = f"""SELECT running, parts, settings,
  (SELECT count(*) FROM slices WHERE part = %(part)s AND wanted IS DISTINCT FROM %(part)s),
  (SELECT count(*) FROM slices WHERE wanted = %(part)s AND part IS DISTINCT FROM %(part)s
    AND (part IS NULL OR part NOT IN (SELECT part FROM runners WHERE {_LEASED}))) FROM cluster"""  # noqa: S608
_SHARES = f"""SELECT part, budget, spending, price, {_LEASED},
  greatest(extract(epoch FROM clock_timestamp() - until)::float8 + {LEASE_SECONDS} - 1.5, 0),
  (nullif(said, '')::json ->> 'pages')::float8, (nullif(said, '')::json ->> 'capacity')::float8 FROM runners
  WHERE part >= 0 ORDER BY part FOR UPDATE"""  # noqa: S608
_STATUS = f"""SELECT part, holder, {_LEASED}, budget, spending, price, said, t.pages, t.copies, t.slices,
  CASE WHEN {_LEASED} THEN greatest(extract(epoch FROM clock_timestamp() - until)::float8 + {LEASE_SECONDS}, 0)
    ELSE 0 END
  FROM runners LEFT JOIN (SELECT s.part, sum(pages)::bigint AS pages, sum(copies)::bigint AS copies, count(*) AS slices
    FROM slices AS s JOIN totals USING (slice) GROUP BY s.part) AS t USING (part) WHERE part >= 0 ORDER BY part"""  # noqa: S608


def require_workers(parts: int) -> None:
    """ClusterError if there cannot be so many."""
    if not 1 <= parts <= SLICES:
        raise ClusterError(f"There cannot be {parts} workers.", hint=f"Give a number from 1 to {SLICES}.")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker reads with every beat."""

    running: bool
    parts: int
    settings: Mapping[str, Any]
    to_give: int  # slices that it is to hand over
    to_take: int  # and that it may take

    @property
    def changes(self) -> bool:
        """Whether it is to hold other slices than it does."""
        return self.to_give > 0 or self.to_take > 0


@dataclass(frozen=True, slots=True)
class Member:
    """One worker, as the database knows it."""

    part: int
    holder: str
    alive: bool
    budget: float
    spending: float
    price: float
    said: Mapping[str, Any] = field(default_factory=dict)
    pages: int = 0
    copies: int = 0
    slices: int = 0
    lag: float = 0.0  # seconds since it was last heard

    @property
    def node(self) -> str:
        """Where it runs; "" if it has not said so."""
        return str(self.said.get("node", ""))

    @property
    def is_placed_by_ray(self) -> bool:
        """Whether it runs on a node of Ray, whose name is an address and a number."""
        return "/" in self.node


class Register:
    """Reads and writes it; each call is one transaction. A call fails rather than waits: who calls tries again."""

    def __init__(self, address: Address | str, *, patience: float = 3.0) -> None:
        self.address = Address(address) if isinstance(address, str) else address
        self._link = Link(self.address, patience=patience)
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
        self._link.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One at a time: a worker's beats and its hand-overs share the connection."""
        with self._lock:
            try:
                if self._connection is None or self._connection.closed or self._connection.broken:
                    self._connection = self._link.connect()
                    self._connection.execute("SET statement_timeout = '5s'; SET lock_timeout = '5s'")
                with self._connection.transaction():
                    yield self._connection
            except StoreError:
                raise
            except psycopg.Error as error:
                if is_lost(error) and self._connection is not None:
                    self._connection.close()
                raise explain(self.address, error) from None

    def _rows(self, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement; asked again, once, where the connection had been lost since the last one."""
        for last in (self._connection is None, True):
            try:
                with self._transaction() as connection:
                    return connection.execute(statement.encode(), values).fetchall()
            except StoreError:
                if last or (self._connection is not None and not self._connection.closed):
                    raise
        return []

    # --- workers ---

    def take(self, part: int, holder: str, *, lease: float = LEASE_SECONDS) -> tuple[int, float] | None:
        """(token of a new lease, until when by our own clock); None while an older one runs."""
        asked = now()
        found = self._rows(_TAKE, {"part": part, "holder": holder, "lease": lease})
        return (int(found[0][0]), asked + lease) if found else None

    def ahead(self) -> float:
        """Seconds that the server's clock is ahead of this machine's: all workers go by the server's."""
        asked = time.time()
        found = self._rows("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
        return float(found) - (asked + time.time()) / 2.0

    def beat(
        self,
        part: int,
        token: int,
        *,
        spending: float,
        price: float,
        said: Mapping[str, Any],
        lease: float = LEASE_SECONDS,
    ) -> tuple[float, float, Wanted] | None:
        """(budget, until when the lease runs now, what is wanted); None if it is lost."""
        asked = now()
        values = {"part": part, "token": token, "spending": spending, "price": price, "lease": lease}
        with self._transaction() as connection:
            found = connection.execute(_BEAT, {**values, "said": json.dumps(dict(said))}).fetchone()
            if found is None:
                return None
            seen: Any = connection.execute(_SEEN, {"part": part}).fetchone()
        return float(found[0]), asked + lease, Wanted(seen[0], seen[1], json.loads(seen[2] or "{}"), seen[3], seen[4])

    def slices(self, part: int, token: int) -> frozenset[int]:
        """Take what is to be taken; all that is held and not to be handed over. Nothing, if the lease is over."""
        with self._transaction() as connection:
            if connection.execute(_MINE, {"part": part, "token": token}).fetchone() is None:
                return frozenset()
            connection.execute(_TAKE_SLICES, {"part": part})
            found = connection.execute(_HELD, (part, part)).fetchall()
        return frozenset(int(row[0]) for row in found)

    def hand_over(self, part: int, token: int) -> None:
        """Let go of slices that others are to have. Nothing may be under way for them any more."""
        with self._transaction() as connection:
            held = connection.execute(
                "SELECT 1 FROM runners WHERE part = %s AND token = %s FOR UPDATE", (part, token)
            ).fetchone()
            if held is not None:
                connection.execute(_LET_GO, (part, part))

    def give_up(self, part: int, token: int) -> None:
        """End a lease in order: nothing is under way any more."""
        with self._transaction() as connection:
            connection.execute(_GIVE_UP, (part, token))

    # --- the coordinator and the commands ---

    def spread(self, budget: float | None = None, *, gain: float | None = None) -> list[Share]:
        """Move budget by price, once; what all workers were told. It is the same whoever calls it, and how often."""
        with self._transaction() as connection:
            # Who waits for the row of a worker that stands still in the midst of a batch keeps the others from theirs.
            connection.execute("SET LOCAL lock_timeout = '1s'")
            total: Any = connection.execute("SELECT budget, running FROM cluster").fetchone()
            rows = connection.execute(_SHARES).fetchall()
            shares = [
                Share(
                    row[1] if row[4] else 0.0,
                    row[2] if row[4] else 0.0,
                    row[3] if row[3] >= 0 and row[5] < STALE_SECONDS else None,
                    row[5],
                    bool(row[4]),
                    row[6] if row[4] else None,
                    row[7] if row[4] else None,
                )
                for row in rows
            ]
            granted = allot(total[0] if budget is None else budget, shares, **({} if gain is None else {"gain": gain}))
            changed = [
                (given, row[0]) for given, row in zip(granted, rows, strict=True) if abs(given - row[1]) > 1e-9 * given
            ]
            with connection.cursor() as cursor:
                cursor.executemany("UPDATE runners SET budget = %s WHERE part = %s", changed)
        return [replace(share, granted=given) for given, share in zip(granted, shares, strict=True)]

    def scale(self, parts: int, *, budget: float | None = None, running: bool = True) -> int:
        """Have so many workers from now on; how many slices are to move."""
        require_workers(parts)
        with self._transaction() as connection:
            connection.execute(
                "UPDATE cluster SET parts = %s, running = %s, budget = coalesce(%s, budget)", (parts, running, budget)
            )
            with connection.cursor() as cursor:
                cursor.execute(
                    """UPDATE slices SET wanted = k.part FROM unnest(%s::integer[]) WITH ORDINALITY AS k (part, nth)
                      WHERE slice = nth - 1 AND wanted IS DISTINCT FROM k.part""",
                    (list(owners(parts)),),
                )
                return cursor.rowcount

    def stop(self) -> None:
        """Have all workers end in order."""
        self._rows("UPDATE cluster SET running = false RETURNING 1")

    def set(self, **settings: Any) -> None:
        """Change some of the cluster's settings."""
        with self._transaction() as connection:
            row: Any = connection.execute("SELECT settings FROM cluster FOR UPDATE").fetchone()
            connection.execute("UPDATE cluster SET settings = %s", (json.dumps(json.loads(row[0] or "{}") | settings),))

    def wanted(self) -> tuple[bool, int, float, Mapping[str, Any]]:
        """(whether the cluster is to run, how many workers, their budget, its settings)."""
        running, parts, budget, settings = self._rows("SELECT running, parts, budget, settings FROM cluster")[0]
        return bool(running), int(parts), float(budget), json.loads(settings or "{}")

    def members(self) -> list[Member]:
        """All workers that there are or were."""
        made = []
        for part, holder, alive, budget, spending, price, said, pages, copies, slices, lag in self._rows(_STATUS):
            counts = pages or 0, copies or 0, slices or 0
            made.append(Member(part, holder, alive, budget, spending, price, json.loads(said or "{}"), *counts, lag))
        return made

    def counts(self) -> tuple[int, int]:
        """(pages, copies), also those that nobody holds just now."""
        found = self._rows("SELECT sum(pages)::bigint, sum(copies)::bigint FROM totals")[0]
        return int(found[0] or 0), int(found[1] or 0)

    def slices_of(self, part: int) -> frozenset[int]:
        """The slices that a worker holds."""
        return frozenset(int(row[0]) for row in self._rows("SELECT slice FROM slices WHERE part = %s", (part,)))

    def in_transit(self) -> int:
        """Slices that are not yet with the worker that is to have them."""
        return int(self._rows("SELECT count(*) FROM slices WHERE wanted IS DISTINCT FROM part")[0][0])
