"""Commands to try things out: demo and web."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.table import Table

from afresh.cli.terminal import as_json, console, labelled, outlive_pipes, prepare_json, write_file
from afresh.errors import ConfigError
from afresh.units import duration, rate, show_count, show_rate, with_unit

if TYPE_CHECKING:
    from afresh.demo import DemoOptions, Result, Standing

KEPT_PACE = 0.95  # of the budget
NAMES = {"afresh": "afresh", "uniform": "uniform", "nutch": "Nutch adaptive"}


def demo(
    seconds: Annotated[str, typer.Option(help="How long to crawl.")] = "60s",
    pages: Annotated[int, typer.Option(help="Size of the web site.")] = 1000,
    budget: Annotated[str, typer.Option(help="Crawl rate of each schedule.")] = "50/s",
    seed: Annotated[int, typer.Option(help="The site's seed: another seed, another site.")] = 1,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file as well; - prints nothing else.")
    ] = None,
) -> None:
    """Keep copies of a changing web site fresh for a minute, beside two other schedules, and show which did best.

    The site is synthetic, served over real HTTP on loopback, and a day of its life passes every second. It knows every
    change it makes and counts for every reader whether the copy that each crawler holds is current.

    Example: afresh demo --pages 500 --budget 20/s --seed 7
    """
    prepare_json(json)
    console.print("Setting up a synthetic web site and three crawlers ...")
    from afresh.cli.build import compile_all
    from afresh.demo import Demo, DemoOptions

    options = DemoOptions(seconds=duration(seconds), pages=pages, budget=rate(budget), seed=seed)
    console.print(
        f"{options.pages:,} pages, 2,000 readers a second, {show_rate(options.budget)} crawls for every schedule.\n"
        f"A second here is a day of the site's life. The first {options.learning:.0f} s are not scored.\n"
    )
    compile_all()
    with _progress(options) as show:
        contest = Demo(options, show)
        outlive_pipes()
        result = asyncio.run(contest.run())
    _print_result(result, options)
    if json is not None:
        write_file(json, as_json(result) + "\n")


@contextmanager
def _progress(options: "DemoOptions") -> Iterator[Callable[["Standing"], None]]:
    """Show how they stand: a table that renews itself, or in a file or pipe a line every five seconds."""
    if console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield lambda standing: live.update(_table(standing, options), refresh=True)
        return
    last = -5.0

    def lines(standing: "Standing") -> None:
        nonlocal last
        if standing.elapsed - last >= 5:
            last = standing.elapsed
            console.print(_line(standing))

    yield lines


def _line(standing: "Standing") -> str:
    parts = [
        f"{line.name}: {show_count(line.crawls, 'crawl')}, {line.not_modified} not modified, "
        f"{show_count(line.changes, 'change')}, "
        f"fresh {_percent(line.fresh) if line.fresh is not None else _percent(line.fresh_now) + ' (not scored)'}"
        for line in standing.lines
    ]
    return f"{standing.elapsed:4.0f} s  " + " | ".join(parts)


def _table(standing: "Standing", options: "DemoOptions") -> Table:
    phase = "learning" if standing.elapsed < options.learning else "scoring"
    table = Table(title=f"{standing.elapsed:.0f} of {options.seconds:.0f} s ({phase})", title_justify="left")
    for name in ("schedule", "budget", "crawls", "304s", "changes", "fresh now", "served fresh"):
        table.add_column(name, justify="left" if name == "schedule" else "right")
    for line in standing.lines:
        table.add_row(
            NAMES[line.name],
            show_rate(options.budget),
            f"{line.crawls:,}",
            f"{line.not_modified:,}",
            f"{line.changes:,}",
            _percent(line.fresh_now),
            "-" if line.fresh is None else _percent(line.fresh),
        )
    return table


def _print_result(result: "Result", options: "DemoOptions") -> None:
    table = Table(title="Share of requests served fresh, counted by the site", title_justify="left")
    for name in ("schedule", "served fresh", "of ceiling", "crawls", "304s", "changes"):
        table.add_column(name, justify="left" if name == "schedule" else "right")
    for name, label in NAMES.items():
        share, counts = getattr(result, name), result.counts[name]
        table.add_row(
            label,
            _percent(share),
            _percent(share / result.ceiling),
            f"{counts.get('requests', 0):,}",
            f"{counts.get('not_modified', 0):,}",
            f"{counts['changes_found']:,}",
        )
    table.add_section()
    table.add_row("ceiling", _percent(result.ceiling), "100.0 %", "", "", "")
    console.print(table)
    if slowest := _too_slow(result, options):
        console.print(slowest)
    console.print(
        f"Counted over {result.requests:,} readers' requests in the last {options.seconds - options.learning:.0f} s.\n"
        "The ceiling is what the best schedule that knows every rate serves fresh in the long run: none can beat it."
    )


def _too_slow(result: "Result", options: "DemoOptions") -> str:
    """A sentence if the machine could not make as many crawls as the budget allowed; "" if it could."""
    made = {name: counts.get("requests", 0) / options.seconds for name, counts in result.counts.items()}
    name = min(made, key=lambda each: made[each])
    if made[name] >= KEPT_PACE * options.budget:
        return ""
    return (
        f"This machine could not keep the pace: {NAMES[name]} made {show_rate(made[name])} of "
        f"{show_rate(options.budget)}.\nThe shares above are of what it managed; the ceiling is for the whole budget. "
        "Try a smaller --budget."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def web(
    pages: Annotated[int, typer.Option(help="Number of pages.")] = 1000,
    hosts: Annotated[int, typer.Option(help="Number of host names.")] = 20,
    port: Annotated[int, typer.Option(help="Port on loopback.")] = 8700,
    seed: Annotated[int, typer.Option(help="The site's seed: the same seed gives the same site.")] = 0,
    day: Annotated[str, typer.Option(help="How long a day of the site's life lasts.")] = "1d",
    rough: Annotated[bool, typer.Option("--rough", help="With latency, errors, broken answers and lies.")] = False,
    dressed: Annotated[
        bool, typer.Option("--dressed", help="Pages with a stylesheet, a picture and a script.")
    ] = False,
    ping: Annotated[str | None, typer.Option(help="Send pings about changes to this URL.", show_default=False)] = None,
    urls: Annotated[Path | None, typer.Option(help="Write the URLs of all pages to this file.")] = None,
) -> None:
    """Serve a synthetic web on loopback, to try afresh or to size a machine before you crawl the real web.

    Set `allow_private = true` under [fetch] for the crawler; then add the URLs and run. The site counts what every
    client requests and how fresh its copies are: see http://localhost:8700/_site/ while it runs. Ends with Ctrl-C.

    Example: afresh web --pages 5000 --hosts 100 --day 60s --urls urls.txt
    """
    from afresh.sim.web import ROUGH, Site, SiteOptions
    from afresh.sim.web.live import run

    if not 1 <= port <= 65535:
        raise ConfigError(f"There is no port {port}.", hint="Give --port between 1 and 65535.")
    options = SiteOptions(pages=pages, hosts=hosts, seed=seed, day=with_unit(day), dressed=dressed)
    if rough:
        options = replace(options, **ROUGH)  # type: ignore[arg-type]
    if urls is not None:
        site = Site(options)
        write_file(urls, "".join(f"{site.url(page, port)}\n" for page in range(pages)))
    outlive_pipes()
    run(options, port=port, ping_url=ping or "", status=lambda line: console.print(labelled("", line, 0)))
