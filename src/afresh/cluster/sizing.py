"""What a collection needs, on paper: from unit costs, some of them measured, and prices that anyone may replace."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

DAY = 86400.0
MONTH = 30 * DAY
GIB = float(1 << 30)


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What one page and one crawl take.

    The first five were measured, by benchmarks/bench_cluster.py and for docs/scale.md. What a database holds and takes,
    sizes on disk and of bodies, and all prices are assumptions.
    """

    crawl_seconds: float = 2.5e-3  # CPU of a worker, with network, comparing and learning
    database_seconds: float = 0.9e-3  # CPU of PostgreSQL, for each crawl
    logged_bytes: float = 2_000.0  # of write-ahead log for each crawl, besides new bodies
    rows: float = 5.3  # written for each crawl
    page_bytes: float = 280.0  # of memory in a worker, at ten million pages
    worker_bytes: float = 0.35 * GIB  # of memory in a worker, before the first page
    row_bytes: float = 1_500.0  # on disk for each page: state, indexes and a few crawls
    body_bytes: float = 38_000.0  # of an average page
    packed_share: float = 1 / 6.0  # of that, compressed
    news_share: float = 0.3  # of crawls that bring a new body
    small_bytes: float = 600.0  # of an exchange that brings none
    database_crawls: float = 5_000.0  # a second that one PostgreSQL takes: its log and the order of its commits
    database_bytes: float = 4_000 * GIB  # that one PostgreSQL should hold
    log_bytes: float = 200e6  # a second that one disk takes
    worker_memory: float = 16 * GIB  # that a worker may take
    core_month: float = 15.0  # dollars, a list price: replace it by yours
    memory_month: float = 2.0  # dollars for each GiB
    disk_month: float = 0.10  # dollars for each GiB, replicated
    object_month: float = 0.02  # dollars for each GiB of object storage


MEASURED = UnitCosts()


@dataclass(frozen=True, slots=True)
class Size:
    """What so many pages need, each crawled once in so long on average."""

    pages: float
    every: float
    crawls: float  # a second
    cores: float  # of workers
    workers: int
    memory: float  # bytes, of all workers
    network: float  # bytes a second that come in
    database_cores: float
    logged: float  # bytes of write-ahead log a second
    rows: float  # a second
    state: float  # bytes on disk without bodies
    bodies: float  # bytes of bodies, compressed
    databases: int
    bodies_apart: bool  # in object storage, because they are too much for one database
    cost: float  # dollars a month

    @property
    def loads(self) -> Sequence[tuple[str, float]]:
        """What all workers share, one database with its disk, in shares of what one can do. Workers can be many."""
        return (
            ("its writes", self.crawls / MEASURED.database_crawls),
            ("its size", (self.state + self.bodies) / MEASURED.database_bytes),
            ("its log", self.logged / MEASURED.log_bytes),
        )

    @property
    def saturates(self) -> str:
        """What comes to its limit first, or would."""
        name, load = max(self.loads, key=lambda each: each[1])
        return f"{name} {100 * load:,.0f}%"


def size(pages: float, every: float = 30 * DAY, unit: UnitCosts = MEASURED) -> Size:
    """What a collection needs.

    >>> small, large = size(1e6), size(1e9)
    >>> small.workers, small.databases, small.bodies_apart
    (1, 1, False)
    >>> large.databases, large.bodies_apart, round(large.crawls)
    (1, True, 386)
    """
    crawls = pages / every
    cores = crawls * unit.crawl_seconds
    per_worker = (unit.worker_memory - unit.worker_bytes) / unit.page_bytes
    workers = max(ceil(cores / 0.7), ceil(pages / per_worker), 1)  # one event loop each, with room for bursts
    state, bodies = pages * unit.row_bytes, pages * unit.body_bytes * unit.packed_share
    apart = state + bodies > unit.database_bytes
    held = state if apart else state + bodies
    databases = max(ceil(held / unit.database_bytes), ceil(crawls / unit.database_crawls), 1)
    memory = workers * unit.worker_bytes + pages * unit.page_bytes
    news = crawls * unit.news_share * unit.body_bytes
    logged = crawls * unit.logged_bytes + (0.0 if apart else news * unit.packed_share)
    database_cores = crawls * unit.database_seconds
    disk = state * unit.disk_month + bodies * (unit.object_month if apart else unit.disk_month)
    machines = max(cores / 0.7, workers / 4.0) + max(database_cores / 0.5, 2.0 * databases)
    cost = machines * unit.core_month + memory / GIB * unit.memory_month + disk / GIB
    return Size(
        pages=pages,
        every=every,
        crawls=crawls,
        cores=cores,
        workers=workers,
        memory=memory,
        network=news + crawls * (1 - unit.news_share) * unit.small_bytes,
        database_cores=database_cores,
        logged=logged,
        rows=crawls * unit.rows,
        state=state,
        bodies=bodies,
        databases=databases,
        bodies_apart=apart,
        cost=cost,
    )


def advice(found: Size) -> str:
    """What the design does at this size."""
    if found.databases == 1 and not found.bodies_apart:
        return "one PostgreSQL, bodies in it"
    if found.databases == 1:
        return "one PostgreSQL; bodies in object storage, by their fingerprints"
    return f"{found.databases:,} PostgreSQLs, each with the slices of some workers; bodies in object storage"
