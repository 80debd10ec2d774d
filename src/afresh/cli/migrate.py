"""The command that carries a store over to another kind of store."""

from typing import Annotated

import typer

from afresh.cli.options import Json
from afresh.cli.terminal import as_json, console, plain
from afresh.units import show_count


def migrate(
    source: Annotated[str, typer.Option("--from", help="The store as it is: a file, or postgresql://…")],
    target: Annotated[str, typer.Option("--to", help="Where it is to be: no store, or an empty one.")],
    json: Json = False,
) -> None:
    """Carry a store over: from a file into PostgreSQL, or back.

    Pages, copies, history, beliefs, hosts and the inbox keep their numbers. Every row is compared afterwards. Nobody
    may run on either meanwhile. A kill leaves the target empty, or, while rows are compared, whole: then the same
    command compares again. The source is only read.

    Example: afresh migrate --from afresh.db --to postgresql://me@db.example/afresh
    """
    from dataclasses import replace

    from afresh.cli.lab import progress_bar
    from afresh.cli.opening import named, open_store
    from afresh.config import Config
    from afresh.store import Sqlite
    from afresh.store.carry import carry_over
    from afresh.store.postgres import Postgres

    def config(store: str) -> Config:
        return replace(Config(), store=replace(Config().store, path=named(store)))

    with open_store(config(source), create=False) as before:
        before.claim(brief=True)  # before anything is made: a cluster may run there
    with open_store(config(source), create=False) as before, open_store(config(target), create=True) as after:
        assert isinstance(before, Sqlite | Postgres)  # noqa: S101 - there are no others
        assert isinstance(after, Sqlite | Postgres)  # noqa: S101
        with progress_bar("Carrying over") as told:
            carried = carry_over(before, after, told)
        totals = after.totals()
    if json:
        typer.echo(as_json({"rows": carried, "pages": totals.pages, "copies": totals.copies}))
        return
    pages, copies = show_count(totals.pages, "page"), show_count(totals.copies, "copy", "copies")
    console.print(f"{pages} and {copies} are in {plain(str(named(target)))} now; all {carried:,} rows were compared.")
