"""`afresh watch`: a few pages, looked at every so often, and who is told when one changes, in one command."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.console import DEFAULT, with_console
from afresh.cli.options import ConfigFile, LogFormat, LogTarget, StoreFile
from afresh.cli.terminal import console as terminal
from afresh.cli.terminal import errors, now
from afresh.config import Config, NotifySettings
from afresh.errors import ConfigError, InputError
from afresh.store import LastingStore
from afresh.store.messages import of_pages
from afresh.units import duration, show_count, show_duration, with_unit

if TYPE_CHECKING:
    from afresh.daemon.events import Listener

VERSIONS = 10  # of each page, if the settings do not say more
SHORTEST = 1.0  # seconds between two looks
OFF = "off"


def watch(
    urls: Annotated[
        list[str] | None, typer.Argument(help="Pages to watch; none: those that were watched before.")
    ] = None,
    every: Annotated[str, typer.Option(help='How often to look at each, such as "10m" or "1d".')] = "10m",
    notify: Annotated[
        list[str] | None,
        typer.Option(help='Who is told: "https://…", "mailto:me@example.com", "command:PROGRAM"; repeatable.'),
    ] = None,
    listen: Annotated[str, typer.Option("--console", help=f"Address and port of the console, or {OFF}.")] = DEFAULT,
    seconds: Annotated[str | None, typer.Option(help='Stop by itself after this long, such as "90s".')] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    log: LogTarget = None,
    log_format: LogFormat = "plain",
) -> None:
    """Watch a few pages: look at each every so often, keep its last versions, and say what changed, word by word.

    What changed is printed, sent to whoever --notify names, and kept for `afresh diff` and the console. Stop it with
    Ctrl-C; the next `afresh watch` goes on with the same pages.

    Example: afresh watch https://example.com/ --every 10m --notify mailto:me@example.com
    """
    from afresh.cli.notifying import rules_for
    from afresh.cli.opening import may_be_there, open_store, settings
    from afresh.cli.run import Progress, keep_fresh, open_log

    pause = with_unit(every)
    if pause < SHORTEST:
        raise ConfigError(f"--every {every} is less than a second.", hint='Write "10m", or "1h".')
    limit = duration(seconds) if seconds is not None else None

    def again() -> Config:
        return watching(settings(config, store), pause, notify or [], listen)

    read = again()
    rules_for(read)  # says what is wrong with a target before anything is kept
    if not urls and not may_be_there(read):
        raise InputError("There is nothing to watch yet.", hint="Name pages: afresh watch https://example.com/")
    logging_to = open_log(log, log_format, as_json_lines=False)
    with open_store(read, create=bool(urls)) as kept:
        if urls:
            _add(kept, urls, pause, read)
        progress = Progress(read, as_json_lines=False)
        progress.quiet = not terminal.is_terminal  # what changed is all that a program wants to read
        progress.listeners.append(_troubles(kept))
        keep_fresh(read, kept, progress, limit, again=again, log=logging_to, config_file=config)


def _troubles(kept: LastingStore) -> "Listener":
    """Who says that a page fails, beside what changed."""
    from afresh.cli.troubles import Troubles

    def tell(line: str) -> None:
        shown = terminal if terminal.is_terminal else errors  # above what goes on living there
        with suppress(OSError):  # nobody looks on any more
            shown.print(f"{datetime.fromtimestamp(now(), UTC):%H:%M:%S UTC}  {line}", soft_wrap=True)

    def has_copy(url: str) -> bool:
        state = kept.state(url)
        return state is not None and state.fetched is not None

    return Troubles(tell, has_copy).hear


def watching(config: Config, pause: float, targets: list[str], listen: str) -> Config:
    """The settings, with what watching needs: versions, who is told, the console, and budget enough."""
    from afresh.cli.notifying import WATCHING
    from afresh.notify.rules import identifier

    names = [f"{WATCHING}{identifier('watch', target)[:8]}" for target in targets]
    told = [NotifySettings(name=name, to=target) for name, target in zip(names, targets, strict=True)]
    screen = NotifySettings(name=f"{WATCHING}screen", to="screen:", on=("new", "changed", "gone"))
    store = replace(config.store, versions=max(config.store.versions, VERSIONS))
    read = replace(config, store=store, notify=(*config.notify, screen, *told))
    return read if listen == OFF else with_console(read, listen)


def _add(kept: LastingStore, urls: list[str], pause: float, config: Config) -> None:
    """Keep these pages, each looked at once in `pause`; InputError if one cannot be used, and then none is kept."""
    from afresh.cli.handover import hand_over
    from afresh.cli.pages import pages_of

    kept.claim()  # another process may be running on it
    wanted = {"shortest": pause, "longest": pause}
    pages, bad = pages_of([("the command line", url) for url in urls], wanted, config.crawl.never)
    if bad:
        raise InputError(bad[0].message, hint=f"{bad[0].hint} Nothing was added.")
    hand_over(kept, of_pages(pages, now()))
    said = f"Watching {show_count(len(pages), 'page')}, each every {show_duration(pause)}."
    errors.print(said, soft_wrap=True)
    needed, budget = kept.totals().pages / pause, config.crawl.budget
    if budget.unit == "calls" and needed > budget:
        errors.print(f"Note: that is {needed:.3g} crawls a second, and the budget is {float(budget):.3g}: raise it.")
