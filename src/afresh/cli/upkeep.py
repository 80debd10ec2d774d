"""Commands that look after a store: backup and compact."""

from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors
from afresh.errors import StoreLocked
from afresh.units import show_size


def backup(
    file: Annotated[Path, typer.Argument(help="A file that does not exist yet.")],
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Copy the whole store, as it is at this moment, to a new file; works while `afresh run` is running.

    The file appears when it is complete and checked; an existing file is never overwritten. To restore, stop
    `afresh run`, move the store and its -wal and -shm files away, and put the backup in the store's place.

    Example: afresh backup afresh-monday.db
    """
    from afresh.cli.opening import file_of, settings
    from afresh.store.upkeep import back_up

    path = file_of(settings(config, store), "A backup copies").expanduser().resolve()
    require_file(path)
    with errors.status("Copying ...") as status:
        bytes_written = back_up(path, file, lambda done, of: status.update(f"Copying: {100 * done / max(of, 1):.0f} %"))
    if json:
        typer.echo(as_json({"file": str(file), "bytes": bytes_written}))
    else:
        console.print(f"Wrote {show_size(bytes_written)} to {file}.")


def compact(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """Give back the space that the store no longer uses; `afresh run` must not be running.

    It takes up to twice the store's size on the same disk while it works. A kill at any moment loses nothing.

    Example: afresh compact
    """
    from afresh.cli.opening import file_of, settings
    from afresh.store.upkeep import compact as compact_store

    path = file_of(settings(config, store), "It compacts").expanduser().resolve()
    require_file(path)
    try:
        with errors.status("Writing the store anew ..."):
            before, after = compact_store(path)
    except StoreLocked as error:
        raise StoreLocked(error.message, hint="Stop it first, and start it again afterwards.") from None
    if json:
        typer.echo(as_json({"before": before, "after": after}))
    else:
        console.print(f"The store takes {show_size(after)}, {show_size(max(before - after, 0))} less than before.")


def require_file(path: Path) -> None:
    """StoreError if there is no store at all."""
    from afresh.errors import StoreError

    if not path.exists():
        raise StoreError(f"There is no store at {path}.", hint="Check the path, or add a first page: afresh add URL")
