"""`afresh lab prefetch`: how well each model foretells the next page of readers, on a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.compiling import shown_compiling
from afresh.cli.lab import Into, JsonFile, Keeper, PlotFile, Seed, progress_bar, slim_table
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import console, errors, plain, working
from afresh.errors import ConfigError
from afresh.units import show_count
from afresh.units import size as bytes_in

if TYPE_CHECKING:
    from afresh.lab.prefetch import Row

TITLE = "the next page among those prefetched"
CLAIM = "about 15 documents prefetched give the next one with probability 0.5; all models together beat each alone"


def prefetch(
    log: Annotated[
        Path,
        typer.Argument(
            help="An access log, session<TAB>page lines, a .seq file, or an .npz with pages and offsets; .xz, .gz work."
        ),
    ],
    train: Annotated[float, typer.Option(help="Share of the sessions, the first ones, that is learned from.")] = 0.9,
    memory: Annotated[str, typer.Option(help="Bound on the memory of the models.")] = "256MiB",
    latency: Annotated[float, typer.Option(help="Seconds until the first byte of a page that is not there.")] = 0.2,
    rate: Annotated[str, typer.Option(help="Bytes a second of its download.")] = "1MB",
    page_size: Annotated[str, typer.Option(help="Bytes of a page, where the log does not say.")] = "30kB",
    seed: Seed = 0,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """How probably the next page of a reader is there, by how many were prefetched and by which model.

    Learns from the first sessions and is tested on the others.

    Example: afresh lab prefetch access.log --json curves.json --plot curves.png
    """
    from afresh.lab.prefetch import Costs, compare_orders, draw_curves, measure, rows_as_json
    from afresh.lab.sessions import read_sessions

    if not 0.0 < train < 1.0:
        raise ConfigError(f"--train must be between 0 and 1, not {train}.", hint="0.9 learns from the first 90 %.")
    costs = Costs(latency, float(bytes_in(rate)), float(bytes_in(page_size)))
    if not (0.0 <= latency < 1e6 and costs.rate > 0 and costs.size > 0):
        raise ConfigError("--latency, --rate and --page-size must be more than 0.", hint="Such as 0.2, 1MB and 30kB.")
    keeper = Keeper("prefetch", json, plot, into)
    with working("Reading the sessions"):
        sessions = read_sessions(log)
    if sessions.unread:
        lines = show_count(sessions.unread, "line")
        errors.print(
            f"{lines} of {plain(log.name)} left out that cannot be read; {sessions.first_unread}.", soft_wrap=True
        )
    with stoppable(), shown_compiling(), progress_bar("prefetch") as progress:
        rows = measure(sessions, train=train, memory=bytes_in(memory), costs=costs, progress=progress)
    if str(json) != "-":
        _show(rows, log.name, f"{len(sessions):,} sessions, {sessions.moves:,} moves, {sessions.count:,} pages")
        orders = compare_orders(sessions, seed=seed)
        if orders is not None:
            console.print(
                f"Order of downloads, of the best for these idle times: greedy slices {orders.slices:.1%}, envelope "
                f"{orders.envelope:.1%}\n(value that comes late in half of the documents; worst of {orders.drawn} "
                f"draws: slices {orders.worst_slices:.1%})"
            )
    keeper.keep(rows_as_json(rows), TITLE, CLAIM, lambda path: draw_curves(rows, log.name, path), "hit")


def _show(rows: "list[Row]", name: str, of_what: str) -> None:
    counts = list(dict.fromkeys(row.prefetched for row in rows))
    tested = f"{of_what}; tested on the last {rows[0].sessions:,} sessions, {rows[0].transitions:,} moves"
    table = slim_table(f"{name}: {TITLE}", tested)
    table.add_column("model")
    for count in counts:
        table.add_column(str(count), justify="right")
    models = list(dict.fromkeys(row.model for row in rows))
    for model in models:
        table.add_row(model, *(f"{row.hit:.3f}" for row in rows if row.model == model))
    table.add_section()
    for model in models:
        saved = [row.saved_ms_per_kb for row in rows if row.model == model]
        table.add_row(f"{model}, ms/kB", *(f"{each:.2f}" for each in saved))
    console.print(table)
