"""A store in a PostgreSQL database: for many processes and machines (the optional extra `afresh[cluster]`)."""

from afresh.store.postgres.store import Part, Postgres

__all__ = ["Part", "Postgres"]
