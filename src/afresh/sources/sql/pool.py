"""Queries of one database, carried out by threads of its own: each owns one connection, so that any driver will do.

Whoever waits for a query may give up; then the query is told to stop. A thread that does not come back is left behind
and counts until it does: a database that hangs holds a bounded number of threads, and the program can still end.
"""

import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from afresh.sources.sql.definitions import Database, redacted
from afresh.sources.sql.drivers import Connection, Found, Limits, QueryFailed, driver_of
from afresh.sources.sql.statement import Statement
from afresh.types import Blame

IDLE_SECONDS = 60.0  # until an unused connection is closed
GRACE_SECONDS = 3.0  # for a query to end after it was told to


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of running a query."""

    found: Found | None  # None: the database is as it was at `unless`
    started: float  # of the system's clock
    seconds: float  # that the database worked for us
    version: str = ""


@dataclass(eq=False)
class Job:
    """One query that waits or runs."""

    statement: Statement
    values: dict[str, object]
    unless: str  # the version of the database at which nothing need be run
    plan: bool  # whether the tables are wanted alone
    future: "Future[Ran]" = field(default_factory=Future)
    connection: Connection | None = None  # that carries it out
    stopped: bool = False


class Pool:
    """Runs queries of one database.

    Invariants: at most `connections` threads wait for the database, hanging ones included; every job's future ends.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.limits: Limits = database.limits
        self._jobs: deque[Job] = deque()  # that no thread has begun
        self._lock = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, statement: Statement, values: dict[str, object], *, unless: str = "", plan: bool = False) -> Job:
        """Run a query as soon as a thread is free."""
        job = Job(statement, values, unless, plan)
        with self._lock:
            if self._closed:
                job.future.set_exception(QueryFailed("closed", blame=Blame.NOBODY))
                return job
            self._jobs.append(job)
            self._lock.notify()
            if self._idle < len(self._jobs) and self._threads < max(1, self.database.connections):
                self._threads += 1
                threading.Thread(target=self._work, name=f"afresh-sql-{self.database.name}", daemon=True).start()
        return job

    @property
    def patience(self) -> float:
        """Seconds after which nobody should wait any more for what was submitted."""
        return 2 * self.limits.seconds + self.limits.connect + GRACE_SECONDS

    def run(self, statement: Statement, values: dict[str, object], *, unless: str = "", plan: bool = False) -> Ran:
        """Run a query and wait for it; QueryFailed says what went wrong."""
        job = self.submit(statement, values, unless=unless, plan=plan)
        try:
            return job.future.result(self.patience)
        except TimeoutError:
            self.stop(job)
            raise QueryFailed("hangs", "the driver did not keep the time limit", Blame.LANE) from None
        except BaseException:
            self.stop(job)
            raise

    def stop(self, job: Job) -> None:
        """Nobody waits for a job any more: it ends soon, whether it has begun or not. Returns at once."""
        job.stopped = True
        job.future.cancel()
        connection = job.connection
        if connection is not None and not job.future.done():
            threading.Thread(target=connection.cancel, name="afresh-sql-stop", daemon=True).start()

    def close(self) -> None:
        """Begin nothing more; what runs is told to stop. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _work(self) -> None:
        """What a thread does: it owns one connection."""
        connection: Connection | None = None
        try:
            while (job := self._next()) is not None:
                connection = self._carry_out(job, connection)
        finally:
            if connection is not None:
                connection.close()

    def _next(self) -> Job | None:
        """The next job for a thread; None: it is to end, and counts no more. What comes later begins another thread."""
        with self._lock:
            self._idle += 1
            while not self._jobs and not self._closed and self._lock.wait(IDLE_SECONDS):
                pass  # another thread was quicker
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._threads -= 1
            return None

    def _carry_out(self, job: Job, connection: Connection | None) -> Connection | None:
        """Carry a job out; the connection for the next one."""
        if not job.future.set_running_or_notify_cancel():
            return connection
        url = ""
        try:
            url = self.database.address()
            for again in (True, False):
                old = connection is not None
                if connection is not None and not connection.usable():
                    connection.close()
                    connection, old = None, False
                if connection is None:
                    connection = driver_of(url).connect(url, self.limits)
                try:
                    ran = self._run(job, connection)
                    break
                except QueryFailed as error:
                    if again and error.reason == "cancelled" and not job.stopped:
                        continue  # that was meant for the query before this one
                    if connection.usable() or error.blame is not Blame.LANE:
                        raise
                    connection.close()
                    connection = None
                    if not (old and again):  # the connection may have been ended long ago: that is no failure
                        raise
            job.future.set_result(ran)
        except QueryFailed as error:
            message = redacted(error.message, url)
            job.future.set_exception(QueryFailed(error.reason, message, error.blame))
        except BaseException as error:  # whatever a driver may raise: its text may hold a secret
            job.future.set_exception(QueryFailed("fault", type(error).__name__))
            if connection is not None:
                connection.close()
                connection = None
        finally:
            job.connection = None
        return connection

    def _run(self, job: Job, connection: Connection) -> Ran:
        job.connection = connection
        if job.stopped:
            raise QueryFailed("cancelled", blame=Blame.NOBODY)
        started, began = time.time(), time.monotonic()
        if job.plan:
            tables = connection.tables(job.statement, job.values)
            return Ran(Found([], [], tables), started, time.monotonic() - began)
        version = connection.version()
        if version and version == job.unless:
            return Ran(None, started, time.monotonic() - began, version)
        found = connection.run(job.statement, job.values, self.limits)
        return Ran(found, started, time.monotonic() - began, version if found.steady else "")
