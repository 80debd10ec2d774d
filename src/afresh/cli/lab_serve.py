"""`afresh lab serve`: what caching is worth, by other caches' rules and by ours, at equal fetches."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.lab import Into, Jobs, JsonFile, Keeper, PlotFile, Seed, progress_bar, slim_table
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import console, plain, working
from afresh.errors import ConfigError
from afresh.units import show_duration

if TYPE_CHECKING:
    from afresh.lab.served import Row

SHOWN = (0.99, 0.95, 0.9, 0.8, 0.5, 0.2)  # thresholds of ours in the table; all are in the JSON
MULTIPLES = (0.03, 0.1, 0.3, 1.0, 3.0)


def serve(
    trace: Annotated[Path, typer.Argument(help="A .npz with what was asked for, in order: item, page or pages.")],
    history: Annotated[Path, typer.Argument(help="A .npz with ts and page, or a CSV of page,timestamp.")],
    requests: Annotated[int, typer.Option(help="So many requests of the trace, from its start.", min=100)] = 50_000,
    lifetimes: Annotated[
        str, typer.Option(help="Lifetimes of the peers, in mean times between two changes; default: 0.03,0.1,0.3,1,3.")
    ] = "",
    ahead: Annotated[bool, typer.Option("--ahead", help="Also ours with refresh ahead, which takes longer.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """Play a trace of requests over a history of changes, by other caches' rules and by ours.

    The requests are spread evenly over the history. Which page is how popular is drawn by the seed. For each rule and
    lifetime: how many fetches it makes a request, how many answers are fresh, how many come without waiting, and the
    same of ours at as many fetches.

    Example: afresh lab serve trace_web12.npz teletext.npz --plot serve.png
    """
    from afresh.lab.files import choose, read_history
    from afresh.lab.served import OURS, compare, join, read_trace
    from afresh.lab.served_plot import draw_served
    from afresh.sim.caches import Knobs

    multiples = _multiples(lifetimes)
    keeper = Keeper("serve", json, plot, into)
    with working("Reading trace and history"):
        items = read_trace(trace, requests)
        recorded = read_history(history)
        chosen = choose(recorded, score_from=float(recorded.time.min()), weights=None, apart=True)
        scene = join(items, chosen.history, seed)
    with stoppable(), progress_bar("serve") as progress:
        rows = compare(
            scene,
            lifetimes=tuple(each * scene.mean_gap for each in multiples),
            knobs=Knobs(),
            seed=seed,
            jobs=jobs or os.cpu_count() or 1,
            ahead=ahead,
            progress=progress,
        )
    title = f"{trace.stem} over {history.stem}"
    table = slim_table(
        f"{plain(title)}: {len(scene.order):,} requests for {len(scene.pages):,} pages, "
        f"{scene.left_out:,} left out; a change every {show_duration(scene.mean_gap)}",
        f"Shares of all requests. {OURS}: at as many fetches; -: at no threshold.",
    )
    for name in ("rule", "lifetime", "fetches", "fresh", "at once", OURS, "at once", "gain"):
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=name != "rule")
    shown = [row for row in rows if not row.rule.startswith(OURS) or row.setting in SHOWN]
    for row, after in zip(shown, [*shown[1:], None], strict=True):
        table.add_row(*_cells(row))
        if after is not None and after.rule != row.rule:
            table.add_section()
    console.print(table)
    gains = sorted((row.our_fresh - row.fresh, row.rule) for row in rows if row.our_fresh is not None)
    if gains:
        mean = sum(gain for gain, _ in gains) / len(gains)
        console.print(f"Gain in fresh answers: mean {mean:+.4f}, least {gains[0][0]:+.4f} ({gains[0][1]}).")
    kept = [asdict(row) | {"trace": trace.stem, "history": history.stem, "seed": seed} for row in rows]
    keeper.keep(
        kept,
        title,
        "at equal fetches more answers are fresh than by any other rule",
        lambda path: draw_served(rows, path, title),
    )


def _multiples(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(",")) if text.strip() else MULTIPLES
    except ValueError:
        found = (0.0,)
    if not found or not all(0 < each <= 1e6 for each in found):
        raise ConfigError(f"{text!r} is not a list of lifetimes.", hint="Give numbers, such as --lifetimes 0.1,1.")
    return found


def _cells(row: "Row") -> list[str]:
    from afresh.lab.served import BY_DATES, OURS

    is_time = not row.rule.startswith((OURS, BY_DATES))
    setting = show_duration(row.setting) if is_time else f"{row.setting:g}"
    cells = [row.rule, setting, f"{row.fetches:.3f}", f"{row.fresh:.3f}", f"{row.unwaited:.3f}"]
    if row.our_fresh is None or row.our_unwaited is None:
        return [*cells, "-", "-", "-"]
    return [*cells, f"{row.our_fresh:.3f}", f"{row.our_unwaited:.3f}", f"{row.our_fresh - row.fresh:+.3f}"]
