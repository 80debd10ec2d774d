"""Commands that pass on what is kept: changes and export."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from afresh.cli.options import ConfigFile, StoreFile
from afresh.cli.terminal import as_json, console
from afresh.errors import ConfigError
from afresh.store import Store

BATCH = 1000


def changes(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more instead of leaving at the end.")
    ] = False,
    after: Annotated[int, typer.Option(help="Begin behind this number, the last one you have seen.", min=0)] = 0,
    every: Annotated[float, typer.Option(help="With --follow: look for more this often, in seconds.", min=0.05)] = 1.0,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """What was found new, changed or gone, as JSON lines in the order in which it was stored.

    Every line has a number that grows; give the last one you have seen to --after and nothing is missed or told twice.
    The last crawls of each page are kept (setting store.history); what is older is gone from here too.

    Example: afresh changes --follow --after 1200
    """
    from afresh.cli.opening import open_store, settings

    with open_store(settings(config, store), create=False) as kept:
        while True:
            found = kept.changes(after=after, limit=BATCH)
            for number, crawl in found:
                line: dict[str, Any] = {"number": number, "url": crawl.url, "time": crawl.time, "change": crawl.outcome}
                typer.echo(as_json(line | {"significance": crawl.significance, "size": crawl.size}))
                after = number
            if len(found) < BATCH:
                if not follow:
                    return
                try:
                    time.sleep(every)
                except KeyboardInterrupt:
                    return


def export(
    warc: Annotated[
        Path | None, typer.Option(help="Write a WARC file; .gz at the end of its name compresses it.")
    ] = None,
    jsonl: Annotated[Path | None, typer.Option(help="Write JSON lines, one a page, body in base64.")] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """Write all current copies to a file for other programs.

    In a WARC file every copy is a response record, and every later check that found it unchanged a revisit record.

    Example: afresh export --warc copies.warc.gz
    """
    from afresh.cli.opening import open_store, settings

    if (warc is None) == (jsonl is None):
        raise ConfigError("Name one file to write.", hint="Give --warc FILE or --jsonl FILE.")
    target = warc or jsonl
    with open_store(settings(config, store), create=False) as kept:
        try:
            count = _write_warc(kept, warc) if warc else _write_jsonl(kept, jsonl or Path())
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}.", hint="Choose another file.") from None
    console.print(f"Wrote {count} copies to {target}.")


def _write_jsonl(kept: Store, path: Path) -> int:
    from base64 import b64encode

    count = 0
    with path.open("w", encoding="utf-8") as file:
        for _, state in kept.states():
            copy = kept.copy(state.page.url)
            if copy is None:
                continue
            line = {
                "url": copy.url,
                "fetched": copy.fetched,
                "checked": copy.checked,
                "content_type": copy.content_type,
                "etag": copy.validators.etag,
                "last_modified": copy.validators.last_modified,
                "body": b64encode(copy.body).decode(),
            }
            file.write(as_json(line) + "\n")
            count += 1
    return count


def _write_warc(kept: Store, path: Path) -> int:
    from afresh.store.warc import WarcFile

    count = 0
    with WarcFile(str(path)) as file:
        for _, state in kept.states():
            copy = kept.copy(state.page.url)
            if copy is not None:
                file.write(copy, kept.history(state.page.url, limit=1000))
                count += 1
    return count
