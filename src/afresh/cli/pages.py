"""Commands that say what to keep: init and add."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from afresh.cli.handover import hand_over, said_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, errors, labelled, now, plain
from afresh.errors import ConfigError, InputError
from afresh.hours import hours as hours_in
from afresh.store.messages import FOLLOWED, TREES, of_definitions, of_pages
from afresh.types import Page
from afresh.units import importance as importance_in
from afresh.units import show_count, show_duration, show_importance, with_unit

MAX_NAMED = 20  # lines that are skipped


def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("afresh.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a settings file with every setting, commented out, at its default.

    Example: afresh init
    """
    from afresh.config import template

    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError:
        raise ConfigError(f"{path} is there already.", hint="Use --force to write over it.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another place.") from None
    typer.echo(f"Wrote {path}. Next: afresh add https://example.com/ and afresh run")


def add(
    urls: Annotated[list[str] | None, typer.Argument(help="URLs to keep fresh.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="A file of URLs, one a line, importance after a space; - for standard input."
        ),
    ] = None,
    sitemap: Annotated[
        list[str] | None, typer.Option(help="Follow a whole site: keep all pages that this sitemap names; repeatable.")
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(help="Importance in requests per second, or x5: five times what is learned."),
    ] = None,
    shortest: Annotated[str | None, typer.Option(help='Crawl each at most once in this time, such as "10min".')] = None,
    longest: Annotated[str | None, typer.Option(help='Crawl each at least once in this time, such as "1d".')] = None,
    hours: Annotated[str | None, typer.Option(help='Crawl them within these hours, such as "08:00-18:00".')] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="With a folder: keep all that is in it, now and later.")
    ] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip bad lines instead of stopping.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Keep pages fresh from now on; works while `afresh run` is running.

    For pages that are already known, it sets the given options: importance, intervals, hours. A running `afresh run`
    acts on them within a second.

    A path of a file, or with --recursive of a folder, is kept as well: /srv/docs, ./notes.txt, file:///srv/docs.

    Nothing is added unless every line can be used. With --skip-bad, bad lines are left out.

    Example: afresh add https://example.com/ --importance x2
    """
    from afresh.cli.opening import open_store, require_room, settings
    from afresh.frontier import canonical
    from afresh.frontier.url import front_page

    wanted = wishes_in(importance, shortest, longest, hours)
    if not urls and file is None and not sitemap:
        raise InputError("There is nothing to add.", hint="Give URLs, --file with a file of URLs, or --sitemap.")
    lines = [("the command line", url) for url in urls or []]
    followed = [canonical(url) for url in sitemap or []]
    lines += [("--sitemap", front_page(url)) for url in followed]  # whose host is asked what it permits
    if file is not None:
        lines += lines_of(file)
    read = settings(config, store)
    pages, bad = pages_of(lines, wanted, read.crawl.never, recursive=recursive)
    if bad and not skip_bad:
        more = f" ({show_count(len(bad) - 1, 'more bad line')})" if len(bad) > 1 else ""
        first = bad[0]
        raise InputError(f"{first.message}{more}", hint=f"{first.hint} Nothing was added; --skip-bad leaves it out.")
    with open_store(read, create=True) as kept:
        new = sum(kept.state(page.url) is None for page in pages)
        if new:
            require_room(kept)
        trees = {TREES + page.url: "{}" for page in pages if page.url.startswith("file:") and page.url.endswith("/")}
        trees |= {FOLLOWED + url: "{}" for url in followed}
        handed = hand_over(kept, [*of_definitions(dict(trees), now()), *of_pages(pages, now())])
    counts = {
        "new": new,
        "known": len(pages) - new,
        "skipped": len(bad),
        "skipped_lines": [error.message for error in bad],
    }
    for error in bad[:MAX_NAMED]:
        errors.print(f"Skipped {plain(error.message)}")
    if len(bad) > MAX_NAMED:
        errors.print(f"Skipped {len(bad) - MAX_NAMED} more (--json names all)")
    if json:
        typer.echo(as_json(counts))
    else:
        skipped = f", {len(bad):,} skipped" if bad else ""
        typer.echo(f"{new:,} new, {len(pages) - new:,} known already{skipped}.{said_of(handed)}")
        if new < len(pages) and not followed:
            typer.echo(_set_of_known(pages, wanted))
        if followed:
            many = show_count(len(followed), "sitemap")
            typer.echo(
                f"{many} followed: `afresh run` keeps all pages that {'it' if len(followed) == 1 else 'they'} name"
                f"{'s' if len(followed) == 1 else ''}."
            )


def _set_of_known(pages: list[Page], wanted: dict[str, Any]) -> str:
    """What a command set for pages that were known before."""
    said = dict(wanted)
    if "importance" not in said and any(page.importance is not None for page in pages):
        said["importance"] = None  # each line its own
    if not said:
        return "Those that were known stay as they are."
    words = {
        "importance": lambda value: "importance as their lines say" if value is None else show_importance(value),
        "shortest": lambda value: f"crawled at most once in {show_duration(value)}",
        "longest": lambda value: f"crawled at least every {show_duration(value)}",
        "hours": lambda value: f"crawled only {value}",
    }
    parts = [words[name](value) for name, value in said.items()]
    if said.get("importance") is not None:
        parts[0] = f"importance {parts[0]}"
    return labelled("Set for all:", f"{'; '.join(parts)}.", 13)


def wishes_in(importance: str | None, shortest: str | None, longest: str | None, hours: str | None) -> dict[str, Any]:
    """The options that apply to all pages of a command."""
    said: dict[str, Any] = {}
    if importance is not None:
        said["importance"] = importance_in(importance)
    for name, text in (("shortest", shortest), ("longest", longest)):
        if text is not None:
            said[name] = with_unit(text)
            if not said[name] > 0:
                raise ConfigError(f"--{name} must be more than 0.", hint='Give a time such as "10min".')
    if shortest and longest and said["shortest"] > said["longest"]:
        raise ConfigError("--shortest is longer than --longest.", hint="Exchange them.")
    if hours is not None:
        said["hours"] = hours_in(hours).text
    return said


def lines_of(file: Path) -> Iterator[tuple[str, str]]:
    """Lines of a file that are not empty, each with where it stands."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file {file}.", hint="Check its name.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text.", hint="Save it as UTF-8, one URL a line.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint="Check its name and rights.") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"{file}, line {number}", line


def pages_of(
    lines: list[tuple[str, str]], wanted: dict[str, Any], never: Iterable[str], *, recursive: bool = False
) -> tuple[list[Page], list[InputError]]:
    """Pages from lines of text, and what is wrong with the others."""
    from afresh.cli.opening import require_wanted
    from afresh.frontier import HostPatterns

    unwanted = HostPatterns(never)
    pages: dict[str, Page] = {}
    bad: list[InputError] = []
    for where, line in lines:
        try:
            page = _page(line, wanted, recursive=recursive)
            require_wanted(page.host, unwanted)
            pages[page.url] = page
        except InputError as error:
            bad.append(InputError(f"{where}: {error.message}", hint=error.hint))
    return list(pages.values()), bad


def _page(line: str, wanted: dict[str, Any], *, recursive: bool = False) -> Page:
    from afresh.cli.keys import file_key, is_path, key_of
    from afresh.frontier import canonical_or_none

    if is_path(line) or (recursive and Path(line.strip()).exists()):
        key, lane = file_key(line)
        if key.endswith("/") and not recursive:
            raise InputError(f"{line[:300]} is a folder.", hint="Give --recursive to keep all that is in it.")
        if not Path(os.fsdecode(path_of_key(key))).exists():
            raise InputError(f"There is no file {line[:300]}.", hint="Check its name.")
        return Page(key, lane, added=now(), **wanted)
    if recursive:
        raise InputError(
            f"There is no folder {line[:300]}.", hint="--recursive is for folders; for a site: afresh crawl URL"
        )
    address, *rest = line.split() or [""]
    if line.strip() and canonical_or_none(address) is None and Path(line.strip()).exists():
        hint = f"A path begins with a slash or a dot: ./{line.strip()[:200]}"
        raise InputError(f"{line.strip()[:200]!r} is a path, and is not written as one.", hint=hint)
    if not line.startswith("sql:") and canonical_or_none(address) is None:
        # What stands behind it may be no importance, but part of a mistake.
        address, rest = line.strip(), []
    url, lane = key_of(address)
    if rest:
        try:
            wanted = wanted | {"importance": importance_in(" ".join(rest))}
        except ConfigError as error:
            raise InputError(error.message, hint=f"Write a URL, a blank, and its importance. {error.hint}") from None
    return Page(url, lane, added=now(), **wanted)


def path_of_key(key: str) -> bytes:
    """The path of a file's key."""
    from afresh.sources.files import path_of

    return path_of(key)[0]
