"""`afresh diff`: what changed on a page, word by word."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import WIDTH, as_json, console, moment, now, plain
from afresh.errors import ConfigError, InputError
from afresh.store import Version
from afresh.store.versions import at
from afresh.units import duration, show_count, show_size

if TYPE_CHECKING:
    from afresh.detect.diff import Gap, Piece, Row

LONGEST = 2_000  # characters of a block that are shown
CONTEXT = 240  # the same of one that stays
_SIGNS = {"same": "  ", "removed": "- ", "added": "+ ", "changed": "~ "}
_STYLES = {"same": "", "old": "red", "new": "green"}
_BRACKETS = {"same": ("", ""), "old": ("[-", "-]"), "new": ("{+", "+}")}


def diff(
    url: Annotated[str, typer.Argument(help="A page that is kept.")],
    since: Annotated[
        str | None, typer.Option("--from", help="The older version: its number, or how long ago, such as 2d.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="The newer version; default: the current copy.")] = None,
    versions: Annotated[bool, typer.Option("--list", help="List the versions that are kept.")] = False,
    context: Annotated[int, typer.Option(help="Unchanged blocks to show round each change.", min=0)] = 2,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Show what changed on a page, word by word; without options, at its last change.

    Earlier versions are kept once `versions` is set below [store]; `afresh watch` does that.

    Example: afresh diff https://example.com/ --from 2d
    """
    from afresh.cli.keys import kept_key
    from afresh.cli.opening import open_store, settings, site_rules

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        address = kept_key(url, kept)
        state, found = kept.state(address), kept.versions(address)
        if state is None:
            raise InputError(f"{address} is not kept.", hint=f"Add it: afresh add {address}")
        if versions:
            _list(address, found, json)
            return
        if len(found) == 1 and not state.changes and since is None:
            raise InputError(
                f"{address} has not changed yet: there is one version of it.", hint="See when: afresh diff URL --list"
            )
        old, new = chosen(address, found, since, until)
        before, after = kept.version(address, old.number), kept.version(address, new.number)
        if before is None or after is None:
            raise InputError("A version has just left the store.", hint="Try again: afresh diff URL --list")
    from afresh.cli.compiling import shown_compiling
    from afresh.detect import Detector
    from afresh.detect.diff import counted, inline
    from afresh.detect.texts import compared

    with shown_compiling():
        rows = compared(before, after, Detector(site_rules(read)).rules_of(state.page.host))
    removed, added = counted(rows or [])
    if json:
        facts: dict[str, Any] = {"url": address, "from": asdict(old), "to": asdict(new)}
        facts["words"] = {"removed": removed, "added": added}
        facts["rows"] = None if rows is None else [as_row(row) for row in rows if row.kind != "same"]
        typer.echo(as_json(facts))
        return
    console.print(plain(address))
    for word, each in (("from", old), ("to", new)):
        console.print(f"{word:5}{_said(each)}")
    if rows is None:
        console.print("It holds no text that could be compared.")
        return
    if all(row.kind == "same" for row in rows):
        console.print("No text differs.")
        return
    console.print(f"     {show_count(removed, 'word')} gone, {show_count(added, 'word')} new\n")
    for row in inline(rows, context):
        _print(row)


def chosen(url: str, found: Sequence[Version], since: str | None, until: str | None) -> tuple[Version, Version]:
    """The older and the newer of the versions that are meant; InputError if they are not kept."""
    if not found:
        raise InputError(f"There is no copy of {url} yet.", hint="Let `afresh run` fetch it first.")
    new = found[0] if until is None else _meant(found, until)
    if since is not None:
        return _meant(found, since), new
    older = found[found.index(new) + 1 :]
    if not older:
        hint = "Write versions = 10 below [store]; they are kept from then on."
        raise InputError(f"No version of {url} before that is kept.", hint=hint if len(found) == 1 else "See --list.")
    return older[0], new


def _meant(found: Sequence[Version], text: str) -> Version:
    """A version by its number, or by how long ago it was the copy."""
    if text.isascii() and text.isdecimal():
        version = next((each for each in found if each.number == int(text[:18])), None)
    else:
        try:
            version = at(found, now() - duration(text))
        except ConfigError:
            raise InputError(
                f"{text[:80]!r} is neither a number nor a time.", hint="Give a number of --list, or 2d."
            ) from None
    if version is None:
        raise InputError(f"No version {text[:80]} is kept.", hint="afresh diff URL --list shows those that are.")
    return version


def as_row(row: "Row") -> dict[str, Any]:
    """A row for programs."""
    words = [[piece.kind, piece.text] for piece in row.pieces]
    return {"kind": row.kind, "before": row.before, "after": row.after, "pieces": words}


def _said(version: Version) -> str:
    return f"number {version.number}, {moment(version.since)}, {show_size(version.size)}"


def _list(url: str, found: Sequence[Version], json: bool) -> None:
    if json:
        typer.echo(as_json({"url": url, "versions": [asdict(each) for each in found]}))
        return
    console.print(f"{'number':>12}  {'appeared':24} {'replaced':24} size")
    for each in found:
        replaced = moment(each.replaced) if each.replaced_by else "the current copy"
        console.print(f"{each.number:>12}  {moment(each.since):24} {replaced:24} {show_size(each.size)}")


def _print(row: "Row | Gap") -> None:
    """A block, in lines of at most 80 columns; what differs is in brackets, and coloured at a terminal."""
    from afresh.detect.diff import Gap

    if isinstance(row, Gap):
        console.print(f"  … {show_count(row.rows, 'block')} unchanged")
        return
    shown, longest = Text(), CONTEXT if row.kind == "same" else LONGEST
    for piece in row.pieces:
        first, last = _BRACKETS[piece.kind] if row.kind == "changed" else ("", "")
        shown.append(f"{first}{_safe(piece, longest)}{last}", _STYLES[piece.kind])
    for nth, line in enumerate(shown.wrap(console, WIDTH - 2)):
        line.rstrip()
        console.print(Text(_SIGNS[row.kind] if not nth else "  ").append_text(line))


def _safe(piece: "Piece", longest: int) -> str:
    return plain(piece.text.replace("\t", "    "), longest)
