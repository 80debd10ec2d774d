"""`afresh query`: queries whose results are kept; and what the settings say of databases and queries."""

import json as json_form
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.handover import hand_over, said_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors, labelled, now, plain
from afresh.config import Config
from afresh.errors import ConfigError, InputError
from afresh.store import LastingStore
from afresh.types import Page
from afresh.units import budget as read_budget
from afresh.units import show_cost, show_count, show_rate

if TYPE_CHECKING:
    from afresh.sources.sql import Database, Definitions, Query

DatabaseOption = Annotated[
    str, typer.Option("--database", "-d", help="The name of a database, or its URL: sqlite:shop.db, $NAME, @FILE.")
]


def hand_in(config: Config, kept: LastingStore) -> None:
    """Let the store know what the settings say of databases and queries, so that all who share it do."""
    if not config.database and not config.query and not any(_settled(kept)):
        return
    from afresh.cli.build import definitions_for
    from afresh.sources.sql import Definitions
    from afresh.store.messages import of_definitions, of_pages

    known = definitions_for(config, kept)
    for query in config.query:
        if query.database not in known.databases:
            raise ConfigError(
                f"The query {query.name} is of a database {query.database}, which nobody defines.",
                hint=f'Write a [[database]] with name = "{query.database}".',
            )
    ours = Definitions(
        [known.databases[each.name] for each in config.database], [known.queries[each.name] for each in config.query]
    )
    values: dict[str, str | None] = dict(ours.values())
    said = {name: text for name, text in values.items() if kept.get(name) != text}
    said |= {name: None for name in _settled(kept) if name not in values}
    pages = [page for each in config.query for page in _pages(known.queries[each.name], each.keep)]
    new = [page for page in pages if kept.state(page.url) is None]
    entries = [*of_definitions(said, now())] if said else []
    if entries or new:
        hand_over(kept, [*entries, *of_pages(new, now())])


def _settled(kept: LastingStore) -> list[str]:
    """Names of what the store has from earlier settings."""
    from afresh.store.messages import DEFINITIONS

    found = []
    for prefix in DEFINITIONS[:2]:
        for name, _ in kept.names(prefix):
            try:
                settled = json_form.loads(kept.get(name) or "{}").get("settled")
            except (ValueError, AttributeError):
                settled = False
            if settled:
                found.append(name)
    return found


def _pages(query: "Query", keep: tuple[str, ...]) -> list[Page]:
    """The results of a query that are kept from the start."""
    from afresh.sources.sql.definitions import SCHEME, parts_of

    pages = []
    for parameters in keep or (() if query.statement.parameters else ("",)):
        parts = parts_of(f"{SCHEME}{query.database}/{query.name}?{parameters}".rstrip("?"))
        if parts is None:
            raise ConfigError(
                f"{parameters[:80]!r} is no parameters of {query.name}.", hint="Write name=value&name=value."
            )
        pages.append(Page(query.key(parts[2]), f"{SCHEME}{query.database}", added=now()))
    return pages


def add(
    name: Annotated[str, typer.Argument(help="What the query is called from now on.")],
    database: DatabaseOption,
    sql: Annotated[str, typer.Option("--sql", help="One statement that only reads; parameters are written :name.")],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Keep the result for these parameters: day=2026-11-17&n=5. Repeatable."),
    ] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Keep the results of a query fresh; works while `afresh run` is running.

    A query without parameters is run at once. Of one with parameters, results are kept for what --keep names, and for
    what applications ask for (afresh.QueryCache).

    Example: afresh query add newest --database sqlite:shop.db --sql "SELECT max(id) FROM orders"
    """
    from afresh.cli.build import definitions_for
    from afresh.cli.opening import open_store, require_room, settings
    from afresh.sources.sql import Definitions, Query
    from afresh.store.messages import of_definitions, of_pages

    read = settings(config, store)
    with open_store(read, create=True) as kept:
        known = definitions_for(read, kept)
        base = _database(database, known)
        query = Query(name, base.name, sql)
        before = known.queries.get(name)
        if before is not None and before.settled:
            raise InputError(f"The settings define a query {name}.", hint="Change it there, or give another name.")
        if before is not None and before.database != base.name:
            raise InputError(
                f"There is a query {name} of the database {before.database}.",
                hint=f"Remove it: afresh query remove {name}",
            )
        pages = _pages(query, tuple(keep or ()))
        if any(kept.state(page.url) is None for page in pages):
            require_room(kept)
        said = Definitions([] if base.settled else [base], [query]).values()
        handed = hand_over(kept, [*of_definitions(dict(said), now()), *of_pages(pages, now())])
    facts = {"query": name, "database": base.name, "parameters": list(query.statement.parameters), "kept": len(pages)}
    if json:
        typer.echo(as_json(facts))
        return
    if against := _against(base, query):
        errors.print(plain(f"It cannot be run as things are: {against}", 400))
    changed = "changed" if before is not None else "added"
    needs = query.statement.parameters
    waits = (
        f" Its parameters: {', '.join(needs)}; results are kept as they are asked for." if needs and not pages else ""
    )
    typer.echo(
        f"Query {name} of {base.name} {changed}, {show_count(len(pages), 'result')} to keep.{waits}{said_of(handed)}"
    )


def _against(base: "Database", query: "Query") -> str:
    """What speaks against a query, by the word of a database that is a file of this machine; "" if nothing does."""
    from contextlib import closing

    from afresh.sources.sql.drivers import QueryFailed
    from afresh.sources.sql.drivers.sqlite import connect

    if not base.url.startswith("sqlite:"):
        return ""
    try:
        with closing(connect(base.url, base.limits)) as connection:
            connection.check(query.statement)
    except QueryFailed as error:
        return error.message or error.reason
    return ""


def _database(text: str, known: "Definitions") -> "Database":
    """The database that somebody names, or gives the URL of."""
    from afresh.sources.sql import Database

    if text in known.databases:
        return known.databases[text]
    if not re.search(r"[:$@]", text):
        names = ", ".join(sorted(known.databases)) or "none yet"
        raise InputError(
            f"There is no database {plain(text, 60)}; known are {names}.", hint="Give its URL, such as sqlite:shop.db."
        )
    if text.startswith("sqlite:") and not text.startswith(("sqlite:/", "sqlite::")):
        text = f"sqlite:{Path(text.removeprefix('sqlite:')).absolute()}"  # the runner may be started elsewhere
    same = next((each for each in known.databases.values() if _place(each.url) == _place(text)), None)
    if same is not None:
        return same
    last = re.sub(r"[^A-Za-z0-9_-]+", "-", re.split(r"[?#]", text)[0].rstrip("/").rpartition("/")[2].rpartition(":")[2])
    base = last.rpartition("-db")[0] or last.strip("-$@").lower() or "database"
    name, nth = base[:36], 1
    while name in known.databases:
        nth += 1
        name = f"{base[:36]}-{nth}"
    return Database(name, text)


def _place(url: str) -> str:
    """Where a database is: the same for all ways to write the URL of one file."""
    if not url.startswith("sqlite:") or url.startswith("sqlite::"):
        return url
    path = url.removeprefix("sqlite:")
    path = path[2:] if path.startswith("///") else path
    return f"sqlite:{Path(path).expanduser().resolve()}"


def remove(
    name: Annotated[str, typer.Argument(help="A query that is kept.")],
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Forget a query, with all its results; with the last query of a database, the database as well.

    Example: afresh query remove newest
    """
    from afresh.cli.build import definitions_for
    from afresh.cli.opening import open_store, settings
    from afresh.sources.sql.definitions import DATABASE_VALUE, QUERY_VALUE
    from afresh.store.messages import of_definitions

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        known = definitions_for(read, kept)
        query = known.query(name)
        if query.settled:
            raise InputError(f"The settings define the query {name}.", hint="Take its [[query]] out of them.")
        said: dict[str, str | None] = {QUERY_VALUE + name: None}
        base, others = known.databases.get(query.database), (each for each in known.queries.values() if each != query)
        if base is not None and not base.settled and not any(each.database == base.name for each in others):
            said[DATABASE_VALUE + base.name] = None
        handed = hand_over(kept, of_definitions(said, now()))
    typer.echo(as_json({"removed": name}) if json else f"Query {name} removed.{said_of(handed)}")


def listed(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """List databases and queries: how many results are kept, what a run takes, and how often they change.

    Example: afresh query list
    """
    from afresh.cli.build import definitions_for
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        known = definitions_for(read, kept)
        units = {each.name: read_budget(each.budget).unit for each in known.databases.values()}
        facts = [
            _facts(kept, query, units.get(query.database, "calls"))
            for query in sorted(known.queries.values(), key=lambda each: each.name)
        ]
        databases = [{"database": each.name, "budget": each.budget} for each in known.databases.values()]
    if json:
        typer.echo(as_json({"queries": facts, "databases": databases}))
        return
    if not facts:
        console.print("There are no queries yet: afresh query add NAME --database URL --sql …")
    for each in facts:
        console.print(plain(f"{each['query']} of {each['database']}", 78))
        if each["database"] not in known.databases:
            lacks = f"There is no database {plain(str(each['database']), 60)}: write a [[database]] with that name."
            errors.print(labelled("    ", lacks, 4))
        console.print(labelled("", str(each["said"]), 4))
    for base in databases:
        console.print(f"database {plain(str(base['database']), 40)}: budget {base['budget']}")


def _facts(kept: LastingStore, query: "Query", unit: str) -> dict[str, object]:
    from afresh.cli.page_facts import failure_said
    from afresh.sources.sql.cache import runs_on_request
    from afresh.sources.sql.definitions import SCHEME

    prefix = f"{SCHEME}{query.database}/{query.name}"
    states = [*([state] if (state := kept.state(prefix)) else []), *kept.states_under(f"{prefix}?", 10_000)]
    held = [state for state in states if state.checked is not None]
    costs = [cost for state in held if (cost := state.cost_new or state.cost_same) is not None]
    rates = [state.beliefs for state in held if state.beliefs is not None]
    failing = [state for state in states if state.failures]
    said_of_it = next((text for state in failing if (text := failure_said(kept, state.page.url))), "")
    asked = [state for state in held if runs_on_request(state.beliefs)]
    parts = [show_count(len(held), "result")]
    if costs:
        parts.append(f"{show_cost(sum(costs) / len(costs), unit)} a run")
    if rates:
        parts.append(f"changes {show_rate(sum(each.change_rate for each in rates) / len(rates))}")
        parts.append(f"wanted {show_rate(sum(each.request_rate for each in rates))}")
    if asked:
        parts.append(
            f"{show_count(len(asked), 'result changes', 'results change')} faster than asked for: run on request"
        )
    if failing:
        what = f": {plain(said_of_it, 300)}" if said_of_it else ""
        parts.append(f"{show_count(len(failing), 'result')} cannot be had{what}")
    return {
        "query": query.name,
        "database": query.database,
        "sql": query.sql,
        "settled": query.settled,
        "results": len(held),
        "on_request": len(asked),
        "failing": len(failing),
        "failure": said_of_it,
        "cost": sum(costs) / len(costs) if costs else None,
        "unit": unit,
        "said": ", ".join(parts),
    }


def suggest(
    database: DatabaseOption,
    limit: Annotated[int, typer.Option(help="At most this many.", min=1, max=100)] = 20,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Propose queries that a PostgreSQL is asked often, from its pg_stat_statements, as lines for the settings.

    Example: afresh query suggest --database '$SHOP_URL'
    """
    from dataclasses import asdict

    from afresh.cli.build import definitions_for
    from afresh.cli.opening import may_be_there, open_store, settings
    from afresh.sources.sql import Definitions
    from afresh.sources.sql.suggest import suggested

    read = settings(config, store)
    known = Definitions()
    if may_be_there(read):
        with open_store(read, create=False) as kept:
            known = definitions_for(read, kept)
    base = _database(database, known)
    found = suggested(base, limit)
    if json:
        typer.echo(as_json([asdict(each) | {"load": each.load} for each in found]))
        return
    if not found:
        console.print("It was asked nothing often enough to be worth keeping.")
    for each in found:
        typer.echo(each.toml(base.name))
