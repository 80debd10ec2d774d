"""Which databases and queries there are: from the settings, from code, or from the store, which all processes share.

How to reach a database is said by a URL without a password, or by where the URL is found: `$NAME` in the environment,
`@PATH` in a file. So no password is in the settings, in the store, or in anything that is printed.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from afresh.errors import ConfigError
from afresh.sources.base import MAX_KEY
from afresh.sources.sql.drivers import Limits, QueryFailed
from afresh.sources.sql.statement import Statement
from afresh.sources.sql.values import from_query, to_query
from afresh.store.messages import DATABASES, QUERIES
from afresh.types import Blame
from afresh.units import budget

SCHEME = "sql:"
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
MAX_URL_BYTES = 4096
QUERY_VALUE, DATABASE_VALUE = QUERIES, DATABASES
_KEY = re.compile(r"sql:([A-Za-z0-9_-]{1,40})/([A-Za-z0-9_-]{1,40})(?:\?(.*))?", re.DOTALL)
_PASSWORD = re.compile(r"(?i)(password|passwd|pwd|secret|token)(\"?\s*[=:]\s*\"?)([^\s\"&;,}]+)")


@dataclass(frozen=True, slots=True)
class Database:
    """A database, and what one query there may take."""

    name: str
    url: str = field(repr=False)  # as it was given: it may say only where the URL is
    timeout: float = 30.0
    max_rows: int = 100_000
    max_bytes: int = 16 << 20
    connections: int = 2
    notify: str = ""  # the channel on which PostgreSQL says which table or key has changed
    watch: bool = True  # whether the tables' own counters are looked at
    budget: str = "0.2 s/s"  # for refreshes: of the database's time, or queries, "10/s"
    penalty: float = 0.0  # what a refresh that finds nothing new counts for besides, in units of the budget
    max_kept: int = 256 << 20  # bytes of results that nobody but applications asked for
    settled: bool = False  # the settings say so, so that only they can change it

    def __post_init__(self) -> None:
        _check_name("database", self.name)
        budget(self.budget)
        if self.url[:1] not in ("$", "@") and passwords_in(self.url):
            raise ConfigError(
                f"The URL of the database {self.name} holds a password.",
                hint='Put it into the environment (url = "$SHOP_URL") or into a file (url = "@/run/secrets/shop").',
            )
        if not self.url or not self.url.isprintable() or len(self.url) > MAX_URL_BYTES:
            raise ConfigError(f"The database {self.name} has no URL.", hint='Write url = "sqlite:shop.db", or "$NAME".')

    @property
    def limits(self) -> Limits:
        """What one query may take."""
        return Limits(self.timeout, self.max_rows, self.max_bytes)

    def address(self) -> str:
        """How to reach it, with all secrets; QueryFailed if that is nowhere to be found."""
        if self.url.startswith("$"):
            found = os.environ.get(self.url[1:])
            if not found:
                raise QueryFailed("no_url", f"there is no {self.url} in the environment", Blame.LANE)
            return found
        if self.url.startswith("@"):
            try:
                with Path(self.url[1:]).expanduser().open(encoding="utf-8") as file:
                    return file.read(MAX_URL_BYTES).strip()
            except (OSError, UnicodeDecodeError) as error:
                raise QueryFailed("no_url", f"{self.url[1:]}: {type(error).__name__}", Blame.LANE) from None
        return self.url


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a database, by its name; its parameters are written `:name`."""

    name: str
    database: str
    sql: str
    settled: bool = False
    statement: Statement = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_name("query", self.name)
        _check_name("database", self.database)
        object.__setattr__(self, "statement", Statement.of(self.sql))

    def key(self, values: Mapping[str, object]) -> str:
        """The key of this query with these parameters; ConfigError if they are not the ones that it has."""
        if set(values) != set(self.statement.parameters):
            named = ", ".join(self.statement.parameters) or "none"
            raise ConfigError(
                f"The parameters that the query {self.name} needs: {named}.",
                hint="Give each of them by its name, and no other.",
            )
        text = to_query(dict(values))
        key = None if text is None else f"{SCHEME}{self.database}/{self.name}" + (f"?{text}" if text else "")
        if key is None or len(key) > MAX_KEY:
            raise ConfigError(
                f"A parameter of the query {self.name} is too long, or of a kind that cannot be one.",
                hint="Text, numbers, dates, true, false and None can.",
            )
        return key


def _check_name(what: str, name: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(f"{name!r:.80} is no name of a {what}.", hint="Write letters, digits, - and _, at most 40.")


def parts_of(text: str) -> tuple[str, str, dict[str, object]] | None:
    """(database, query, parameters) of a key in whatever form; None if it is none.

    >>> parts_of("sql:shop/top?day=2026-11-17&n=5")
    ('shop', 'top', {'day': '2026-11-17', 'n': 5})
    """
    found = _KEY.fullmatch(text) if len(text) <= MAX_KEY else None
    if found is None:
        return None
    values = from_query(found[3] or "")
    return None if values is None else (found[1], found[2], values)


def canonical(text: str) -> str | None:
    """The one form of a key; None if it is none.

    >>> canonical("sql:shop/top?n=5&day=2026%2D11-17")
    'sql:shop/top?day=2026-11-17&n=5'
    """
    parts = parts_of(text)
    if parts is None:
        return None
    database, name, values = parts
    query = to_query(values)
    if query is None:
        return None
    made = f"{SCHEME}{database}/{name}" + (f"?{query}" if query else "")
    return made if len(made) <= MAX_KEY else None


def passwords_in(url: str) -> list[str]:
    """What is secret in a URL, in every form in which it may be printed."""
    found = [match[3] for match in _PASSWORD.finditer(url)]
    try:
        password = urlsplit(url).password
    except ValueError:
        password = None
    if password:
        found += [password, unquote(password)]
    return [each for each in found if each]


def redacted(text: str, *urls: str) -> str:
    """A text without the secrets of these URLs, and without anything that calls itself a password.

    >>> redacted("connection to postgresql://me:hush@db/shop failed", "postgresql://me:hush@db/shop")
    'connection to *** failed'
    """
    for url in urls:
        for secret in (url, *sorted(passwords_in(url), key=len, reverse=True)):
            text = text.replace(secret, "***") if secret else text
    text = re.sub(r"(\w://[^\s:/@]*):[^\s@]*@", r"\1:***@", text)
    return _PASSWORD.sub(r"\1\2***", text)


class Definitions:
    """All databases and queries that are known, by their names. What the settings say goes first.

    >>> known = Definitions([Database("shop", "sqlite:shop.db")], [Query("top", "shop", "select 1")])
    >>> known.query("top").key({})
    'sql:shop/top'
    """

    def __init__(self, databases: "list[Database] | None" = None, queries: "list[Query] | None" = None) -> None:
        self.databases = {each.name: each for each in databases or ()}
        self.queries = {each.name: each for each in queries or ()}

    def query(self, name: str) -> Query:
        """A query; ConfigError if there is none of this name."""
        found = self.queries.get(name)
        if found is None:
            known = ", ".join(sorted(self.queries)[:10]) or "none yet"
            raise ConfigError(
                f"There is no query {str(name)[:40]!r}; known are {known}.", hint="Define it: afresh query add."
            )
        return found

    def values(self) -> dict[str, str]:
        """As a store keeps them."""
        databases = {DATABASE_VALUE + each.name: to_text(each) for each in self.databases.values()}
        return databases | {QUERY_VALUE + each.name: to_text(each) for each in self.queries.values()}

    def take(self, name: str, text: str | None) -> None:
        """Something that a store keeps under a name is this now, or is gone; what makes no sense is left out."""
        for prefix, kind, into in (
            (DATABASE_VALUE, Database, self.databases),
            (QUERY_VALUE, Query, self.queries),
        ):
            if not name.startswith(prefix):
                continue
            known: dict[str, Any] = into
            own = name.removeprefix(prefix)
            before = known.get(own)
            if text is None:
                known.pop(own, None)
            elif before is None or not before.settled:
                try:
                    known[own] = from_text(kind, text)
                except (ValueError, TypeError, KeyError, ConfigError):
                    known.pop(own, None)

    def recall(self, store: Any) -> None:
        """Take in what a store knows besides."""
        for prefix in (DATABASE_VALUE, QUERY_VALUE):
            for name, _ in store.names(prefix):
                self.take(name, store.get(name))


def to_text(definition: Database | Query) -> str:
    """A definition as a store keeps it; it holds no secret."""
    kept = asdict(definition)
    kept.pop("statement", None)
    return json.dumps(kept)


def from_text(kind: type, text: str) -> Any:
    """A definition again."""
    kept = json.loads(text)
    names = {each.name for each in fields(kind) if each.init}
    made = kind(**{name: value for name, value in kept.items() if name in names})
    return replace(made, settled=False)
