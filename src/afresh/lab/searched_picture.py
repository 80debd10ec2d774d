"""The picture of `afresh lab search`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from afresh.lab.pictures import pyplot as drawing
from afresh.lab.plots import COLOURS, save
from afresh.lab.searched import Row


def draw(rows: Sequence[Row], titles: Mapping[str, str], path: Path) -> None:
    """What is wrong with answers, by budget, a line a policy."""
    pyplot = drawing()
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for k, policy in enumerate(dict.fromkeys(row.policy for row in rows)):
        some = sorted((row for row in rows if row.policy == policy), key=lambda row: row.every)
        days = [row.every / 86400 for row in some]
        wrong = [100 * (1 - row.rbo) for row in some]
        error = [100 * row.stderr for row in some]
        axes.errorbar(
            days,
            wrong,
            yerr=error,
            marker="o",
            markersize=4,
            capsize=3,
            color=COLOURS[k % len(COLOURS)],
            label=titles[policy],
        )
    axes.set_xscale("log")
    axes.set_xticks([row.every / 86400 for row in rows], [f"{row.every / 86400:.0f}" for row in rows])
    axes.minorticks_off()
    axes.set_xlabel("days between two crawls of a document, on average")
    axes.set_ylabel("wrong in the first ten results, 1 − RBO (%)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    save(figure, path)
