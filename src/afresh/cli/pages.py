"""Commands that say what to keep: init and add."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, errors, now, plain
from afresh.errors import ConfigError, InputError
from afresh.types import Importance, Page
from afresh.units import importance as importance_in

MAX_NAMED = 20  # lines that are skipped


def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("afresh.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a settings file in which every setting stands, commented out, at its default.

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
            "--file", "-f", help="A file of URLs, one a line, importance behind a blank; - for standard input."
        ),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(help="Requests per second that the pages are worth, or x5: five times what is learned."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out instead of stopping.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Keep pages fresh from now on; works while `afresh run` is running.

    Of pages that are known already only the importance is set, if one is given; a running `afresh run` takes it up
    when it starts again.

    Nothing is added unless every line can be used (or --skip-bad says to leave the others out).

    Example: afresh add https://example.com/ --importance x2
    """
    from afresh.cli.opening import open_store, settings

    wanted = None if importance is None else importance_in(importance)
    if not urls and file is None:
        raise InputError("There is nothing to add.", hint="Give URLs, or --file with a file of URLs.")
    lines = [("the command line", url) for url in urls or []]
    if file is not None:
        lines += _lines_of(file)
    read = settings(config, store)
    pages, bad = _read(lines, wanted, read.crawl.never)
    if bad and not skip_bad:
        more = f" ({len(bad) - 1} more bad lines)" if len(bad) > 1 else ""
        first = bad[0]
        raise InputError(f"{first.message}{more}", hint=f"{first.hint} Nothing was added; --skip-bad leaves it out.")
    with open_store(read, create=True) as kept:
        new = kept.add(pages)
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
        skipped = f", {len(bad)} skipped" if bad else ""
        typer.echo(f"{new} new, {len(pages) - new} known already{skipped}.")


def _lines_of(file: Path) -> Iterator[tuple[str, str]]:
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


def _read(
    lines: list[tuple[str, str]], importance: Importance | None, never: Iterable[str]
) -> tuple[list[Page], list[InputError]]:
    """Pages from lines of text, and what is wrong with the others."""
    from afresh.cli.opening import require_wanted
    from afresh.frontier import HostPatterns

    unwanted = HostPatterns(never)
    pages: dict[str, Page] = {}
    bad: list[InputError] = []
    for where, line in lines:
        try:
            page = _page(line, importance)
            require_wanted(page.host, unwanted)
            pages[page.url] = page
        except InputError as error:
            bad.append(InputError(f"{where}: {error.message}", hint=error.hint))
    return list(pages.values()), bad


def _page(line: str, importance: Importance | None) -> Page:
    from afresh.frontier import canonical, canonical_or_none, host_of

    address, *rest = line.split() or [""]
    if canonical_or_none(address) is None:  # what stands behind it may be no importance, but part of a mistake
        address, rest = line.strip(), []
    url = canonical(address)
    if rest:
        try:
            importance = importance_in(" ".join(rest))
        except ConfigError as error:
            raise InputError(error.message, hint=f"Write a URL, a blank, and its importance. {error.hint}") from None
    return Page(url, host_of(url), added=now(), importance=importance)
