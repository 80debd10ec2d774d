"""Which queries of a database are worth keeping: those that it says it is asked often, by pg_stat_statements."""

import re
from dataclasses import dataclass
from typing import Any

from afresh.errors import ConfigError, InputError
from afresh.sources.sql.definitions import Database, redacted
from afresh.sources.sql.drivers import QueryFailed
from afresh.sources.sql.statement import Statement
from afresh.units import show_rate

MIN_CALLS = 10
MAX_SUGGESTED = 100
STATEMENTS = """
SELECT s.query, s.calls, s.total_exec_time / 1000.0, s.rows,
  extract(epoch FROM now() - coalesce((SELECT stats_reset FROM pg_stat_statements_info), pg_postmaster_start_time()))
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.calls >= $1 AND s.query ~* '^\\s*(select|with|values|table)\\M'
ORDER BY s.total_exec_time DESC LIMIT $2
"""
_PLACE = re.compile(r"\$(\d{1,3})(?!\d)")
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*(?:=|<>|!=|<=|>=|<|>|\bi?like\b)\s*\$(\d{1,3})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A query that is asked often."""

    name: str
    sql: str  # with its parameters named
    rate: float  # how often a second it is asked
    seconds: float  # that one run takes, on average
    rows: float  # that one run brings

    @property
    def load(self) -> float:
        """Seconds a second that the database spends on it."""
        return self.rate * self.seconds

    def toml(self, database: str) -> str:
        """As it would stand in the settings."""
        text = re.sub(r"\s+", " ", self.sql).replace("\\", "\\\\").replace('"', '\\"')
        asked = f"# asked {show_rate(self.rate)}, {self.seconds * 1000:.3g} ms each: {self.load:.2g} s of every second"
        return f'{asked}\n[[query]]\nname = "{self.name}"\ndatabase = "{database}"\nsql = "{text}"\n'


def suggested(database: Database, limit: int = 20) -> list[Suggestion]:
    """Queries of a PostgreSQL, those first on which it spends most; InputError if it keeps no such statistics."""
    try:
        import psycopg
    except ImportError:
        raise InputError("psycopg is missing.", hint="pip install 'afresh[postgres]'") from None

    url = ""
    try:
        url = database.address()
        if url.partition(":")[0] not in ("postgresql", "postgres"):
            raise InputError(
                f"The database {database.name} is no PostgreSQL.", hint="Only that counts what it is asked."
            )
        with psycopg.connect(
            url, connect_timeout=10, cursor_factory=psycopg.RawCursor, application_name="afresh"
        ) as connection:
            connection.read_only = True
            rows: list[Any] = connection.execute(STATEMENTS, [MIN_CALLS, min(limit, MAX_SUGGESTED)]).fetchall()
    except psycopg.errors.UndefinedTable:
        raise InputError(
            f"The database {database.name} does not count what it is asked.",
            hint="Load pg_stat_statements (shared_preload_libraries), then CREATE EXTENSION pg_stat_statements.",
        ) from None
    except (psycopg.Error, QueryFailed) as error:
        why = error.message if isinstance(error, QueryFailed) else (error.diag.message_primary or type(error).__name__)
        raise InputError(
            f"The database {database.name} cannot be asked: {redacted(why, url)[:200]}.", hint="Check its url."
        ) from None
    found, names = [], set[str]()
    for sql, calls, total, returned, since in rows:
        try:
            text = named(str(sql))
            Statement.of(text)
        except ConfigError:
            continue
        found.append(
            Suggestion(_name(text, names), text, float(calls) / max(float(since), 1.0), total / calls, returned / calls)
        )
    return found


def named(sql: str) -> str:
    """A query with names in place of numbers: that of the column a parameter is compared with, where there is one.

    >>> named("SELECT * FROM t WHERE day = $1 AND day < $2 LIMIT $3")
    'SELECT * FROM t WHERE day = :day AND day < :day_2 LIMIT :p3'
    """
    names: dict[str, str] = {}
    for column, number in _NAMED.findall(sql):
        if number not in names:
            base = column.lower()[:50]
            names[number] = base if base not in names.values() else f"{base}_{number}"
    return _PLACE.sub(lambda match: f":{names.get(match[1], f'p{match[1]}')}", sql)


def _name(sql: str, taken: set[str]) -> str:
    """A name for a query, by the first table that it reads."""
    table = re.search(r"\bfrom\s+(?:\w+\.)?(\w{1,30})", sql, re.IGNORECASE)
    base = table[1].lower() if table and table[1].isascii() else "query"
    name, nth = base, 1
    while name in taken:
        nth += 1
        name = f"{base}_{nth}"
    taken.add(name)
    return name
