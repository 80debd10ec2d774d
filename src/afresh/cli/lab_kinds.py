"""`afresh lab kinds`: train the model that tells kinds of pages, and score it on a labelled file."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from afresh.cli.lab import JsonFile, Seed, progress_bar
from afresh.cli.terminal import as_json, prepare_json, working, write_file
from afresh.errors import ConfigError

LabelledFile = Annotated[
    Path, typer.Argument(help="Labelled pages: a JSON object with url, type and html in each line; .xz and .gz work.")
]


def train(
    file: LabelledFile,
    out: Annotated[Path | None, typer.Option(help="Write the weights to this file.", show_default=False)] = None,
    folds: Annotated[
        int, typer.Option(help="Parts of a cross-validation split by domain; 0 leaves it out.", min=0, max=50)
    ] = 5,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Train the model of kinds on labelled pages, and say by cross-validation how good it is.

    The same file and seed give the same weights. The package's own are in afresh/kinds/weights.npz.

    Example: afresh lab kinds train pages.jsonl.xz --out weights.npz
    """
    # The arithmetic in one thread: how sums are split among threads shows in their last digits, and so in the weights.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from afresh.kinds.model import MAX_BYTES, Model
    from afresh.kinds.training import train as carry_out
    from afresh.lab.labelled import cross_validated, examples_of

    if folds == 1:
        raise ConfigError("One part cannot be tested on another.", hint="Give --folds 5, or 0 for none.")
    prepare_json(json)
    prepare_json(out)
    with working("Reading the pages"):
        pages = examples_of(file)
    report: dict[str, object] = {"pages": len(pages.kinds), "domains": len(set(pages.owners)), "seed": seed}
    if folds:
        with progress_bar("kinds") as progress:
            report |= {"folds": folds, **asdict(cross_validated(pages, folds, seed, progress)[0])}
    if out is not None:
        with working("Training on all pages"):
            kept = Model(*carry_out(pages, seed)).to_bytes()
        if len(kept) > MAX_BYTES:
            raise ConfigError(f"The weights take {len(kept):,} bytes, more than {MAX_BYTES:,}.", hint="Train on fewer.")
        try:
            out.write_bytes(kept)
        except OSError as error:
            raise ConfigError(f"{out} cannot be written: {error.strerror}.", hint="Choose another file.") from None
        report |= {"bytes": len(kept)}
    _tell(report, json)


def score(
    file: LabelledFile,
    weights: Annotated[
        Path | None, typer.Option(help="Test these weights; default: those of the package.", show_default=False)
    ] = None,
    json: JsonFile = None,
) -> None:
    """Score the model of kinds on a labelled file: accuracy, macro-F1, and CPU time a page.

    Example: afresh lab kinds test pages.jsonl.xz --json kinds.json
    """
    from afresh.kinds.model import Model, shipped
    from afresh.lab.labelled import score_model

    prepare_json(json)
    if weights is not None and not weights.is_file():
        raise ConfigError(f"There is no file {weights}.", hint="Make one with afresh lab kinds train --out.")
    model = Model.from_bytes(weights.read_bytes()) if weights is not None else shipped()
    with working("Reading the pages"):
        tested = score_model(model, file)
    report = {**asdict(tested.scores), "pages": tested.pages, "left_out": tested.left_out}
    _tell(report | {"ms_per_page": tested.ms_per_page}, json)


def _tell(report: dict[str, Any], json: Path | None) -> None:
    """Print what came out, or write it."""
    if json is not None:
        write_file(json, as_json(report) + "\n")
    if str(json) == "-":
        return
    for name, value in report.items():
        shown = f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
        typer.echo(f"{name.replace('_', ' '):14}{shown}")
