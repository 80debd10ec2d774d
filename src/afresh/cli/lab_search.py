"""`afresh lab search`: how right answers to searches stay under several schedules, at the same budget."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.compiling import shown_compiling
from afresh.cli.lab import Into, JsonFile, Keeper, PlotFile, Seed, progress_bar, slim_table
from afresh.cli.replay import interval_of
from afresh.cli.stopping import stoppable
from afresh.cli.terminal import console
from afresh.errors import ConfigError
from afresh.units import show_duration

if TYPE_CHECKING:
    from afresh.lab.searched import Row

CLAIM = "what is wrong with the answers, at equal budget; quality-driven below freshness-driven"


def search(
    history: Annotated[Path, typer.Argument(help="Versions of documents: JSON lines of path and versions; .xz works.")],
    every: Annotated[
        str, typer.Option(help="Mean time between two crawls of a document; several, separated by commas.")
    ] = "365d,180d,90d",
    queries: Annotated[int, typer.Option(help="How many, made of titles and headings.", min=1, max=5000)] = 500,
    policy: Annotated[str, typer.Option(help="Comma-separated names; default: all.")] = "",
    train: Annotated[float, typer.Option(help="Share of the time, at the start, that is not scored.")] = 0.25,
    reps: Annotated[int, typer.Option(help="Repetitions, each with the next seed.", min=1, max=100)] = 1,
    seed: Seed = 0,
    json: JsonFile = None,
    plot: PlotFile = None,
    into: Into = None,
) -> None:
    """Search documents that change while they are crawled: how right the first ten results stay, by schedule.

    Changes fall at random moments of the stretch in which they were recorded. Queries have Zipf frequencies.

    Example: afresh lab search docs_versions.jsonl.xz --every 180d --plot search.png
    """
    from afresh.lab.searched import POLICIES, contest, documents_in

    intervals = [interval_of(part.strip()) for part in every.split(",")]
    chosen = [name.strip() for name in policy.split(",") if name.strip()] or list(POLICIES)
    if wrong := [name for name in chosen if name not in POLICIES]:
        raise ConfigError(f"There is no policy {wrong[0][:40]!r} here.", hint=f"Known are {', '.join(POLICIES)}.")
    if not 0.0 <= train < 0.95:
        raise ConfigError(f"{train} is no share to train on.", hint="Write 0.25 for a quarter.")
    keeper = Keeper("search", json, plot, into)
    documents = documents_in(history)
    with stoppable(), shown_compiling(), progress_bar("search") as progress:
        rows = contest(
            documents,
            every=intervals,
            queries=queries,
            policies=chosen,
            train=train,
            seed=seed,
            reps=reps,
            progress=progress,
        )
    if str(json) != "-":
        _show(
            rows, f"{len(documents.all):,} documents, {documents.versions:,} versions, {queries} queries, seed {seed}"
        )
    keeper.keep([asdict(row) for row in rows], "quality of searches", CLAIM, lambda path: _draw(rows, path), "rbo")


def _show(rows: "list[Row]", title: str) -> None:
    from afresh.lab.searched import TITLES

    table = slim_table(f"Answers on copies against answers on fresh copies: {title}", f"Claim: {CLAIM}.")
    for name in ("every", "policy", "RBO", "± s.e.", "wrong", "overlap", "nDCG", "fresh", "crawls"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=name != "policy")
    last = None
    for row in rows:
        if last not in (None, row.every):
            table.add_section()
        last = row.every
        table.add_row(
            show_duration(row.every),
            TITLES[row.policy],
            f"{row.rbo:.4f}",
            f"{row.stderr:.4f}" if row.reps > 1 else "-",
            f"{100 * row.below_uniform:.0f} %",
            f"{row.overlap:.4f}",
            f"{row.ndcg:.4f}",
            f"{row.fresh:.3f}",
            f"{row.crawls:,}",
        )
    console.print(table)
    console.print("wrong: 1 − RBO as a share of that of the uniform schedule; RBO over the first 10 results")


def _draw(rows: "list[Row]", path: Path) -> None:
    from afresh.lab.searched import TITLES
    from afresh.lab.searched_picture import draw

    draw(rows, TITLES, path)
