"""Drivers: PostgreSQL and SQLite are known; any other is named by its import path."""

from afresh.sources.sql.drivers.base import Connection, Driver, Found, Limits, QueryFailed
from afresh.types import Blame

__all__ = ["Connection", "Driver", "Found", "Limits", "QueryFailed", "driver_of"]


def driver_of(url: str) -> Driver:
    """The driver for a URL; QueryFailed if it cannot be imported."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from afresh.sources.sql.drivers import sqlite

        return sqlite.DRIVER
    if scheme in ("postgresql", "postgres"):
        try:
            from afresh.sources.sql.drivers import postgres
        except ImportError:
            raise QueryFailed("no_driver", "psycopg is missing: pip install 'afresh[postgres]'", Blame.LANE) from None
        return postgres.DRIVER
    from afresh.sources.sql.drivers import pep249

    return pep249.DRIVER
