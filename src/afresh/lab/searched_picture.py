"""The picture of `afresh lab search`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from afresh.lab.pictures import pyplot as drawing
from afresh.lab.plots import COLOURS, save
from afresh.lab.searched import Row

WRONG = "wrong in the first ten results, 1 − RBO (%)"


def draw(rows: Sequence[Row], titles: Mapping[str, str], path: Path) -> None:
    """What is wrong with answers: a line a policy over budgets, or a bar each where there is one budget."""
    figure, axes = drawing().subplots(figsize=(7, 4.2))
    budgets = sorted({row.every / 86400 for row in rows})
    (_lines if len(budgets) > 1 else _bars)(axes, rows, titles, budgets)
    save(figure, path)


def _lines(axes: Any, rows: Sequence[Row], titles: Mapping[str, str], budgets: Sequence[float]) -> None:
    for k, policy in enumerate(dict.fromkeys(row.policy for row in rows)):
        some = sorted((row for row in rows if row.policy == policy), key=lambda row: row.every)
        axes.errorbar(
            [row.every / 86400 for row in some],
            [_wrong(row) for row in some],
            yerr=_errors(some),
            marker="o",
            markersize=4,
            capsize=3,
            color=COLOURS[k % len(COLOURS)],
            label=titles[policy],
        )
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{days:.0f}" for days in budgets])
    axes.minorticks_off()
    axes.set_xlabel("days between two crawls of a document, on average")
    axes.set_ylabel(WRONG)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)


def _bars(axes: Any, rows: Sequence[Row], titles: Mapping[str, str], budgets: Sequence[float]) -> None:
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(rows))]
    names, wrong = [titles[row.policy] for row in rows], [_wrong(row) for row in rows]
    bars = axes.barh(names, wrong, xerr=_errors(rows), capsize=3, color=colours)
    axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1 * max([*wrong, 1e-9]))
    axes.set_xlabel(f"{WRONG}\neach document crawled every {budgets[0]:.0f} days on average")


def _wrong(row: Row) -> float:
    return 100 * (1 - row.rbo)


def _errors(rows: Sequence[Row]) -> list[float] | None:
    """Standard errors; None where nothing was repeated, which says nothing of the error."""
    return [100 * row.stderr for row in rows] if any(row.stderr > 0 for row in rows) else None
