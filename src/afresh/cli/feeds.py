"""Commands that pass on what is kept: changes and export."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.gone import Gone, gone_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console
from afresh.errors import ConfigError, InputError, StoreError
from afresh.store import LastingStore, Store
from afresh.types import BACK, Copy, Crawl
from afresh.units import show_count

if TYPE_CHECKING:
    from afresh.detect import Rules

BATCH = 1000


def changes(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more instead of stopping at the end.")
    ] = False,
    after: Annotated[int, typer.Option(help="Begin after this number, the last one you have seen.", min=0)] = 0,
    every: Annotated[float, typer.Option(help="With --follow: look for more this often, in seconds.", min=0.05)] = 1.0,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Always on: this command prints JSON lines.")] = True,
) -> None:
    """Print what was found new, changed or gone, as JSON lines in the order in which it was stored.

    Every line has a growing number. Give the last one you have seen to --after, and nothing is missed or repeated.
    Only the last crawls of each page are kept (setting store.history); older changes are not listed.

    Example: afresh changes --follow --after 1200
    """
    from afresh.cli.opening import open_store, settings

    with open_store(settings(config, store), create=False) as kept:
        if after > (last := kept.totals().crawls):
            raise InputError(
                f"No change has the number {after} yet: the last one that was given is {last}.",
                hint="It is of another store, or this one was begun anew or set back. Begin with --after 0.",
            )
        while True:
            found = kept.changes(after=after, limit=BATCH)
            for line in facts_of_changes(kept, found):
                typer.echo(as_json(line))
                after = line["number"]
            if len(found) < BATCH:
                if not follow:
                    return
                try:
                    time.sleep(every)
                except KeyboardInterrupt:
                    return


def facts_of_changes(kept: LastingStore, changes: Sequence[tuple[int, Crawl]]) -> list[dict[str, Any]]:
    """Changes as programs read them, with the titles that their pages have now."""
    titles = kept.titles([crawl.url for _, crawl in changes])
    return [change_facts(number, crawl, title) for (number, crawl), title in zip(changes, titles, strict=True)]


def change_facts(number: int, crawl: Crawl, title: str) -> dict[str, Any]:
    """A change as programs read it."""
    line: dict[str, Any] = {"number": number, "url": crawl.url, "time": crawl.time, "change": crawl.outcome}
    line |= {"significance": crawl.significance, "size": crawl.size, "back": crawl.reason == BACK}
    return line | {"title": title}


def text_of_change(kept: Store, change: Mapping[str, Any], rules: "Rules") -> dict[str, Any]:
    """What a change was about: the page's title, words that are gone and new, and the text of each block that differs,
    before and after. Of a page that is new or back that is all of it. None where it is not kept, or is no text.
    """
    from afresh.detect.diff import changed_blocks, counted
    from afresh.detect.texts import compared
    from afresh.reading.title import title_in
    from afresh.store.versions import around, copy_before

    url, number, whole = change["url"], change["number"], change["change"] == "new" or change["back"]
    rows = None
    try:
        before, after = around(kept, url, number)
        if after is not None and (before is not None or whole):
            rows = compared(None if whole else before, after, rules)
        shown = after or copy_before(kept, url, number)
    except StoreError:
        return {"title": "", "words": None, "blocks": None}  # damaged
    words = None if rows is None else dict(zip(("removed", "added"), counted(rows), strict=True))
    pairs = None if rows is None else [list(pair) for pair in changed_blocks(rows)]
    return {"title": "" if shown is None else title_in(shown.body, shown.content_type), "words": words, "blocks": pairs}


def export(
    warc: Annotated[
        Path | None, typer.Option(help="Write a WARC file; .gz at the end of its name compresses it.")
    ] = None,
    jsonl: Annotated[Path | None, typer.Option(help="Write JSON lines, one a page, body in base64.")] = None,
    cdx: Annotated[Path | None, typer.Option(help="Write a CDX index: of the WARC file, or of the copies.")] = None,
    current: Annotated[bool, typer.Option("--current", help="Leave out the copies of pages that are gone.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Write all copies to a file for other programs.

    In a WARC file every copy is a response record, and every later check that found the same bytes a revisit record.
    Crawls in the history whose content is not kept are response records without content, marked as truncated.
    Files and results of queries are resource records.
    The last copy of a page that is gone is followed by a response record of its 404 or 410; in JSON lines `gone` says
    since when. With --current such copies are left out. Earlier versions of pages, if kept, are response records, too.

    Example: afresh export --warc copies.warc.gz
    """
    from afresh.cli.opening import open_store, settings

    if ((warc or cdx) and jsonl) or not (warc or cdx or jsonl):
        raise ConfigError("Name one file to write.", hint="Give --warc FILE, --cdx FILE (or both), or --jsonl FILE.")
    target = warc or cdx or jsonl
    with open_store(settings(config, store), create=False) as kept:
        try:
            if jsonl is not None:
                counts = _write_jsonl(kept, jsonl, current)
            else:
                counts = _write_warc(kept, warc, cdx, current)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}.", hint="Choose another file.") from None
    if json:
        typer.echo(as_json({"file": str(target), **counts}))
        return
    gone = f", {counts['gone']} of them of pages that are gone" if counts["gone"] else ""
    left_out = (
        f"; {show_count(counts['left_out'], 'copy', 'copies')} of pages that are gone left out"
        if counts["left_out"]
        else ""
    )
    console.print(f"Wrote {show_count(counts['copies'], 'copy', 'copies')} to {target}{gone}{left_out}.")


def _copies(kept: Store, current: bool, counts: dict[str, int]) -> Iterator[tuple[Copy, Gone | None]]:
    """Every copy, and since when its page is gone; counts them."""
    for _, state in kept.states():
        if state.fetched is None:
            continue
        gone = gone_of(kept, state)
        if gone is not None and current:
            counts["left_out"] += 1
            continue
        copy = kept.copy(state.page.url)
        if copy is not None:
            counts["copies"] += 1
            counts["gone"] += gone is not None
            yield copy, gone


def _write_jsonl(kept: Store, path: Path, current: bool) -> dict[str, int]:
    from base64 import b64encode

    counts = {"copies": 0, "gone": 0, "left_out": 0}
    with path.open("w", encoding="utf-8") as file:
        for copy, gone in _copies(kept, current, counts):
            line = {
                "url": copy.url,
                "fetched": copy.fetched,
                "checked": copy.checked,
                "gone": None if gone is None else gone.facts(),
                "content_type": copy.content_type,
                "etag": copy.validators.etag,
                "last_modified": copy.validators.last_modified,
                "body": b64encode(copy.body).decode(),
            }
            file.write(as_json(line) + "\n")
    return counts


def _write_warc(kept: Store, path: Path | None, index: Path | None, current: bool) -> dict[str, int]:
    """Write a WARC file, an index, or both."""
    import os
    from dataclasses import replace

    from afresh.store.cdx import write
    from afresh.store.warc import WarcFile

    counts = {"copies": 0, "gone": 0, "left_out": 0}
    with WarcFile(os.devnull if path is None else str(path), indexed=index is not None) as file:
        for copy, gone in _copies(kept, current, counts):
            numbers = [version.number for version in reversed(kept.versions(copy.url)[1:])]
            versions = (kept.version(copy.url, number) for number in numbers)
            earlier = (each for each in versions if each is not None)  # one at a time
            file.write(copy, kept.history(copy.url, limit=1000), earlier)
            if gone is not None:
                file.write_gone(copy.url, gone.status, gone.since)
        lines = file.lines
    if index is not None:
        write(index, lines if path is not None else [replace(line, size=-1, offset=-1, file="") for line in lines])
    return counts
