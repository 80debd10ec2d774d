"""The whole contest on the command line: many histories, three budgets, two weightings, four kinds of signals."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.compiling import shown_compiling
from afresh.cli.lab import Into, Jobs, JsonFile, Keeper, PlotFile, Seed, progress_bar, slim_table
from afresh.cli.replay import FromStart, interval_of, recorded_in, scored_from
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import console, plain
from afresh.errors import ConfigError, InputError
from afresh.units import show_count, show_duration

if TYPE_CHECKING:
    from afresh.lab.contest import Line, Row, Subject, Summary

_MAX_NAME = 300


def contest(
    files: Annotated[
        list[Path], typer.Argument(help="Histories as for `lab replay`; for a folder, all its .npz files.")
    ],
    visits: Annotated[str, typer.Option(help="Visits a page in the scored time, comma-separated.")] = "5,20,80",
    every: Annotated[str, typer.Option(help="Instead: time between two visits to a page, such as 6h,24h.")] = "",
    weights: Annotated[list[str] | None, typer.Option(help="equal, zipf; default: both.")] = None,
    signals: Annotated[list[str] | None, typer.Option(help="none, weak, good, late; default: all.")] = None,
    policy: Annotated[list[str] | None, typer.Option(help="Comma-separated names; default: all.")] = None,
    train: Annotated[float, typer.Option(help="Share of the time, at the start, that is not scored.")] = 0.25,
    from_start: FromStart = False,
    names: Annotated[
        bool, typer.Option("--names", help="Take addresses from NAME.items.txt.gz or NAME.pages.txt.gz beside a file.")
    ] = False,
    apart: Annotated[bool, typer.Option("--apart", help="Treat pages as independent of each other.")] = False,
    by_changes: Annotated[
        bool, typer.Option("--by-changes", help="Also show our visits by the number of true changes of a page.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """Compare our schedule with every peer over all given histories, budgets, weights and signals, with a summary.

    Signals: weak has recall 0.5 and precision 0.2, good has 0.8 and 0.8. Late signals are good ones, delayed by 1 % of
    the time between two visits. Peers hear no signals, and most do not know the weights: each runs once and is scored
    under all weights.

    Example: afresh lab contest histories/ --visits 20 --signals none --by-changes --json rows.json --plot picture.png
    """
    from afresh.lab.compare import compile_ahead
    from afresh.lab.contest import ENTRANTS, SIGNALS, WEIGHTS, check_names, hold_all, lines_of, runs_of, visits_of
    from afresh.lab.work import check_visits
    from afresh.sim.replay import POLICIES

    chosen_weights = check_names(weights or [], WEIGHTS, "weighting")
    chosen_signals = check_names(signals or [], tuple(SIGNALS), "kind of signals")
    policies = check_names(policy, POLICIES, "policy") if policy else ENTRANTS
    keeper = Keeper("contest", json, plot, into)
    runs = []
    for path in _files(files):
        subject = _subject(path, train, from_start=from_start, names=names, apart=apart)
        runs += runs_of(
            subject,
            everies=_everies(visits, every, subject.span),
            weights=chosen_weights,
            signals=chosen_signals,
            policies=policies,
            seed=seed,
        )
    total = sum(visits_of(run) for run in runs)
    for run in runs:
        check_visits(visits_of(run), "Give a larger --every, or fewer --visits.")
    console.print(f"{show_count(len(runs), 'run')} with {total:,.0f} visits.")
    with stoppable(), shown_compiling():
        compile_ahead(policies, signals=chosen_signals != ("none",))
    with stoppable(), progress_bar("contest") as progress:
        rows = hold_all(runs, jobs=jobs or os.cpu_count() or 1, progress=progress)
    lines = lines_of(rows)
    _show(lines) if lines else _show_rows(rows)
    if by_changes:
        _show_groups(rows)
    title = f"{len({run.subject.name for run in runs})} histories, {len(rows)} results"

    def draw(path: Path) -> None:
        from afresh.lab.plots import draw_lines

        draw_lines(lines, path, title)

    keeper.keep([_row(row) for row in rows], title, "share of time that copies were fresh", draw)


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = sorted(path.glob("*.npz")) or sorted(path.glob("*.csv"))
        if not inside:
            raise InputError(f"{path} holds no .npz and no .csv.", hint="Name the histories one by one.")
        found += inside
    return list(dict.fromkeys(found))


def _subject(path: Path, train: float, *, from_start: bool, names: bool, apart: bool) -> "Subject":
    from afresh.lab.contest import Subject
    from afresh.lab.files import choose, read_names

    recorded = recorded_in(path)
    begin = scored_from(recorded, train, None)
    addresses = read_names(path) if names else None
    chosen = choose(recorded, score_from=begin, weights=None, addresses=addresses, apart=apart, from_start=from_start)
    for note in recorded.notes:
        console.print(plain(note))
    if chosen.left_out:
        console.print(plain(f"{path.name}: {show_count(chosen.left_out, 'page')} gone when the scored time begins."))
    return Subject(path.name.split(".")[0], chosen.history, begin)


def _everies(visits: str, every: str, span: float) -> list[float]:
    if every.strip():
        return [interval_of(part.strip()) for part in every.split(",")]
    try:
        wanted = [float(part) for part in visits.split(",")]
    except ValueError:
        wanted = [math.nan]
    if not all(0 < each <= 1e6 for each in wanted):
        raise ConfigError(
            f"{visits!r} is not a list of visits.", hint="Give numbers above 0, such as --visits 5,20,80."
        )
    return [span / each for each in wanted]


def _row(row: "Row") -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _show(lines: list["Line"]) -> None:
    from afresh.lab.contest import summary_of

    for history in dict.fromkeys(line.history for line in lines):
        table = slim_table(plain(history, _MAX_NAME), "Shares of time fresh; diff: afresh above the best peer, points.")
        table.show_edge = False  # so that the longest names fit on 80 columns
        table.add_column("visits, setting", no_wrap=True)
        for name in ("afresh", "stated", "uniform", "past", "best peer", "", "diff"):
            table.add_column(name, justify="left" if name == "best peer" else "right", no_wrap=True)
        for line in (each for each in lines if each.history == history):
            table.add_row(
                f"{line.visits:>4.4g} {line.weights:<5} {line.signals}",
                *(_share(value) for value in (line.afresh, line.stated, line.uniform, line.past)),
                line.peer,
                _share(line.best),
                "-" if math.isnan(line.margin) else f"{100 * line.margin:+.2f}",
            )
        console.print(table)
    if lines:
        _show_summary(summary_of(lines))


def _show_rows(rows: list["Row"]) -> None:
    """What ran, where our schedule is not among it."""
    for history in dict.fromkeys(row.history for row in rows):
        table = slim_table(plain(history, _MAX_NAME), "Shares of time fresh; afresh did not run.")
        table.show_edge = False
        for name in ("visits", "weights", "signals", "policy", "fresh", "crawls"):
            right = name in ("visits", "fresh", "crawls")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for row in (each for each in rows if each.history == history):
            table.add_row(
                f"{row.visits:.4g}", row.weights, row.signals, row.policy, _share(row.fresh), f"{row.crawls:,}"
            )
        console.print(table)


def _show_summary(summary: "Summary") -> None:
    if not math.isnan(summary.above):
        console.print(f"Above every peer in {100 * summary.above:.1f} % of {show_count(summary.settings, 'setting')}.")
    if not math.isnan(summary.above_plain):
        settings = show_count(summary.plain, "setting")
        console.print(f"With equal weights and no signals: in {100 * summary.above_plain:.1f} % of {settings}.")
    if not math.isnan(summary.least_over_uniform):
        console.print(f"Least difference to uniform: {100 * summary.least_over_uniform:+.2f} points.")
    console.print(f"Stated freshness: mean absolute error {100 * summary.stated_error:.2f} points.")


def _show_groups(rows: list["Row"]) -> None:
    for row in rows:
        if not row.groups:
            continue
        title = f"{plain(row.history, _MAX_NAME)}, {row.policy}, weights {row.weights}, signals {row.signals}"
        table = slim_table(
            f"{title}\na visit a page every {show_duration(row.every)}",
            "By true changes in the scored time; no late visit: share of the pages there in\n"
            "all of its last half that got no visit in it, -: there are none.",
        )
        for name in ("true changes", "pages", "visits a page", "no late visit", "fresh"):
            table.add_column(name, justify="right")
        for group in row.groups:
            if not group.pages:
                continue
            changes = f"> {group.least - 1}" if group.most is None else f"{group.least}–{group.most}"
            table.add_row(
                str(group.least) if group.least == group.most else changes,
                f"{group.pages:,}",
                f"{group.visits:.2f}",
                "-" if math.isnan(group.unvisited) else f"{100 * group.unvisited:.1f} %",
                _share(group.fresh),
            )
        console.print(table)
