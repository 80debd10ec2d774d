"""The lab on the command line: the published figures, and a report of what was made."""

import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from afresh.cli.compiling import shown_compiling
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import as_json, console, errors, prepare_json, write_file
from afresh.errors import ConfigError
from afresh.units import show_duration

if TYPE_CHECKING:
    from afresh.lab import Experiment, Result

Seed = Annotated[int, typer.Option(help="Seed of all random numbers.", min=0)]
Jobs = Annotated[int | None, typer.Option(help="Processes; default: one for each core.", min=1, show_default=False)]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the rows to this file as well; - prints nothing else.")
]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Draw a picture, .png or .svg.")]
Into = Annotated[
    Path | None, typer.Option("--into", help="Keep rows, picture and command in this folder, for `afresh lab report`.")
]
WIDEST = 120  # columns, of a table with all of them
LINE_EVERY = 5.0  # seconds, where there is no terminal


def list_experiments(json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False) -> None:
    """List the published figures that can be reproduced.

    Example: afresh lab list
    """
    from afresh.lab import EXPERIMENTS

    found = list(EXPERIMENTS.values())
    if json:
        typer.echo(
            as_json(
                [{"name": each.name, "title": each.title, "claim": each.claim, "pages": each.sizes} for each in found]
            )
        )
        return
    table = Table(title="Experiments: afresh lab run NAME", title_justify="left")
    for name in ("name", "what it shows", "pages"):
        table.add_column(name)
    for each in found:
        sizes = ", ".join(f"{pages:,}" for pages in each.sizes)
        table.add_row(each.name, f"{each.title}: {each.claim}", sizes)
    console.print(table)


def run(
    name: Annotated[str, typer.Argument(help="Which one: see `afresh lab list`.")],
    reps: Annotated[int | None, typer.Option(help="Repetitions; default: about a minute's worth.", min=1)] = None,
    full: Annotated[bool, typer.Option("--full", help="As many repetitions as in the paper.")] = False,
    pages: Annotated[str, typer.Option(help="Only these sizes, such as 100,500; default: all.")] = "",
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """Reproduce a published figure: every policy in the same worlds, with standard errors and the ceiling.

    Example: afresh lab run fig4 --pages 100 --reps 20 --json fig4.json --plot fig4.png
    """
    from afresh.lab import experiment
    from afresh.lab import run as carry_out

    chosen = experiment(name)
    sizes = _sizes(pages, chosen)
    count = reps or (chosen.full_reps if full else chosen.reps)
    keeper = Keeper(name, json, plot, into)
    with stoppable(), shown_compiling(), progress_bar(name) as progress:
        result = carry_out(
            chosen, sizes=sizes, reps=count, seed=seed, jobs=jobs or os.cpu_count() or 1, progress=progress
        )
    if result.experiment.picture == "regret":
        _show_regret(result)
    elif result.rounds:
        _show_rounds(result)
    else:
        _show(result)
    keeper.keep(
        [_row(row) for row in result.rounds or result.rows],
        chosen.title,
        chosen.claim,
        lambda path: _draw(result, path),
        chosen.measure,
    )


def report(folder: Annotated[Path, typer.Argument(help="The folder that --into named.")]) -> None:
    """Gather the results in a folder into one HTML page, each with the command that made it.

    Example: afresh lab report results
    """
    from afresh.lab.report import write_report

    typer.echo(f"Wrote {write_report(folder)}.")


def _draw(result: "Result", path: Path) -> None:
    from afresh.lab.plots import draw

    draw(result, path)


def _row(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def _sizes(text: str, chosen: "Experiment") -> tuple[int, ...]:
    if not text.strip():
        return chosen.sizes
    try:
        sizes = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        sizes = (0,)
    if not sizes or min(sizes) < 1 or max(sizes) > 10_000_000:
        raise ConfigError(f"{text!r} is not a list of sizes.", hint="Give whole numbers, such as --pages 100,500.")
    return sizes


def _show(result: "Result") -> None:
    chosen = result.experiment
    table = slim_table(f"{chosen.name}: {chosen.title}", f"Claim: {chosen.claim}.")
    for name in ("pages", "policy", chosen.measure, "± s.e.", "of ceiling", "reps", "s"):
        wraps = name in ("policy", chosen.measure)  # their words may be long: nothing is cut
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=not wraps, overflow="fold")
    last = None
    for row in result.rows:
        if last not in (None, row.pages):
            table.add_section()
        last = row.pages
        table.add_row(
            f"{row.pages:,}",
            row.policy,
            f"{row.accuracy:.4f}",
            f"{row.stderr:.4f}" if row.reps > 1 else "-",
            f"{100 * row.accuracy / row.ceiling:.1f} %" if row.ceiling > 0 else "-",
            str(row.reps),
            f"{row.seconds:.1f}",
        )
    console.print(table)


def _show_rounds(result: "Result") -> None:
    chosen = result.experiment
    table = slim_table(f"{chosen.name}: {chosen.title}", f"Claim: {chosen.claim}.")
    for name in ("algorithm", "round", chosen.measure, "± s.e.", "gap", "± s.e.", "reps"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", overflow="fold")
    shown = [row for row in result.rounds if row.round in chosen.told]
    for row, after in zip(shown, [*shown[1:], None], strict=True):
        errors = ["-" if row.reps == 1 else f"{error:.5f}" for error in (row.stderr, row.gap_stderr)]
        table.add_row(
            row.algorithm, f"{row.round:,}", f"{row.mean_J:.5f}", errors[0], f"{row.gap:.5f}", errors[1], str(row.reps)
        )
        if after is not None and after.algorithm != row.algorithm:
            table.add_section()
    console.print(table)


def _show_regret(result: "Result") -> None:
    from afresh.lab import RegretRow

    chosen = result.experiment
    table = slim_table(f"{chosen.name}: {chosen.title}", f"Claim: {chosen.claim}.")
    for name in ("algorithm", "T", "optimum", "gap", "regret", "± s.e.", "exponent", "reps"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", overflow="fold")
    rows = [row for row in result.rounds if isinstance(row, RegretRow)]
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        last = after is None or after.algorithm != row.algorithm
        table.add_row(
            *(row.algorithm, f"{row.round:,}", f"{row.optimum:.5f}", f"{row.gap:.5f}"),
            *(f"{row.regret:.1f}", "-" if row.reps == 1 else f"{row.regret_stderr:.1f}"),
            *(f"{row.exponent:.3f}" if last and not math.isnan(row.exponent) else "", str(row.reps)),
        )
        if last and after is not None:
            table.add_section()
    console.print(table)


Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, whatever the width of the terminal.")]


def print_whole(table: Table) -> None:
    """Print a table in full even if it is wider than the terminal."""
    Console(file=console.file, width=max(console.width, WIDEST), highlight=False, markup=False).print(table)


def slim_table(title: str, caption: str) -> Table:
    """A table without a frame: all columns of a result fit on 80 characters."""
    return Table(title=title, title_justify="left", caption=caption, caption_justify="left", box=SIMPLE, padding=0)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while it is a terminal; otherwise a line now and then."""
    if not errors.is_terminal:
        lines = _Lines(label)
        try:
            yield lines.show
        finally:
            lines.over.set()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())  # the first moves before anything is done
    with Progress(*columns, *times, console=errors, transient=True) as bar:
        task = bar.add_task(label)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Says every few seconds how far it is, from a thread of its own: the first part may take long."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.began = time.monotonic()
        self.done, self.total = 0, 0
        self.over = Event()
        Thread(target=self._tell, daemon=True).start()

    def show(self, done: int, total: int) -> None:
        """Report how many of all are done."""
        self.done, self.total = done, total

    def _tell(self) -> None:
        while not self.over.wait(LINE_EVERY):
            lasted = show_duration(time.monotonic() - self.began)
            errors.print(f"{self.label}: {self.done} of {self.total} done in {lasted}")


class Keeper:
    """Where results go besides the screen; reports before the work starts that a file cannot be written."""

    def __init__(self, name: str, json: Path | None, plot: Path | None, into: Path | None) -> None:
        self.name, self.json, self.plot, self.into = name, json, plot, into
        if into is not None:
            try:
                into.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(f"{into} cannot be made: {error.strerror}.", hint="Choose another folder.") from None
        prepare_json(json)
        for picture in (plot, None if into is None else into / f"{name}.png"):
            if picture is not None:
                from afresh.lab.plots import check_picture

                check_picture(picture)

    def keep(
        self, rows: list[dict[str, Any]], title: str, claim: str, draw: Callable[[Path], None], measure: str = ""
    ) -> None:
        """Write what was asked for."""
        if self.json is not None:
            write_file(self.json, as_json(rows) + "\n")
        if self.plot is not None:
            draw(self.plot)
        if self.into is not None:
            from afresh.lab.report import record

            command = shlex.join(["afresh", *sys.argv[1:]])
            write_file(self.into / f"{self.name}.json", as_json(rows) + "\n")
            kept = record(rows, title=f"{self.name}: {title}", command=command, claim=claim, measure=measure)
            write_file(self.into / f"{self.name}.record.json", as_json(kept) + "\n")
            draw(self.into / f"{self.name}.png")
