"""`afresh lab urlcache`: how often caches of URLs miss, by rule and size, over traces of links."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.compiling import shown_compiling
from afresh.cli.lab import Into, JsonFile, Keeper, PlotFile, print_whole, progress_bar, slim_table
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import plain, working
from afresh.errors import ConfigError

if TYPE_CHECKING:
    from afresh.lab.urlcache import Row

_MAX_SIZE = 1 << 26
_TITLES = {"full": "every link", "cross": "links to hosts of other owners"}


def urlcache(
    files: Annotated[
        list[Path],
        typer.Argument(help="Of `afresh crawl --trace`, or text with '# PAGE' before its links; .xz, .gz work."),
    ],
    owners: Annotated[
        int, typer.Option(help="Owners of hosts in the cross-host trace; 1 leaves it out.", min=1, max=1_000)
    ] = 4,
    sizes: Annotated[str, typer.Option(help="Cache sizes such as 1024,65536; default: all powers of two.")] = "",
    policy: Annotated[str, typer.Option(help="Comma-separated rules; default: all.")] = "",
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """Compare how often caches of URLs miss, by the rule they forget by and by their size.

    infinite forgets nothing, and min knows the future. static holds the most popular URLs of the whole trace,
    static-online those of its first tenth.

    Example: afresh lab urlcache trace.urls --owners 4 --json rows.json --plot misses.png
    """
    from afresh.lab.contest import check_names
    from afresh.lab.urlcache import POLICIES, read_trace, study

    policies = check_names([policy], POLICIES, "rule") if policy else POLICIES
    chosen = _sizes(sizes)
    keeper = Keeper("urlcache", json, plot, into)
    with working("Reading the links"):
        traces = {path.name: read_trace(path) for path in dict.fromkeys(files)}
    with stoppable(), shown_compiling(), progress_bar("urlcache") as progress:
        rows = study(traces, owners=owners, sizes=chosen, policies=policies, progress=progress)
    if str(json) != "-":
        _show(rows)

    def draw(path: Path) -> None:
        from afresh.lab.plots import draw_misses

        draw_misses(rows, path)

    keeper.keep([asdict(row) for row in rows], "misses of URL caches", "share of links that miss", draw)


def _sizes(text: str) -> tuple[int, ...]:
    if not text.strip():
        return ()
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = (0,)
    if found[0] < 1 or found[-1] > _MAX_SIZE:
        raise ConfigError(f"{plain(text, 40)!r} is not a list of cache sizes.", hint="Give --sizes 1024,65536.")
    return found


def _show(rows: "list[Row]") -> None:
    for file, kind in dict.fromkeys((row.file, row.trace) for row in rows):
        inside = [row for row in rows if (row.file, row.trace) == (file, kind)]
        caches = f" in {inside[0].caches} caches" if kind == "cross" else ""
        table = slim_table(
            f"{plain(file, 40)}, {kind}: {_TITLES[kind]}",
            f"Misses in % of {inside[0].requests:,} links{caches}.",
        )
        policies = list(dict.fromkeys(row.policy for row in inside))
        for name in ("size", *policies):
            table.add_column(name, justify="right", no_wrap=name == "size")
        for size in dict.fromkeys(row.size for row in inside):
            found = {row.policy: row for row in inside if row.size == size}
            table.add_row(f"{size:,}", *(f"{100 * found[name].misses / found[name].requests:.1f}" for name in policies))
        print_whole(table)
