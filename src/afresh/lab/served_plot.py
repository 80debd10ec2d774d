"""The picture of other caches' rules and ours at equal fetches."""

from collections.abc import Sequence
from pathlib import Path

from afresh.lab.pictures import pyplot as _pyplot
from afresh.lab.plots import COLOURS, save
from afresh.lab.served import Row


def draw_served(rows: Sequence[Row], path: Path, title: str) -> None:
    """Fresh answers, and answers without waiting, by fetches: a curve a rule."""
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(11, 4.4))
    for k, rule in enumerate(dict.fromkeys(row.rule for row in rows)):
        some = sorted((row.fetches, row.fresh, row.unwaited) for row in rows if row.rule == rule)
        fetches, fresh, unwaited = zip(*some, strict=True)
        ours = rule.startswith("afresh")
        style = {"linewidth": 2.2, "linestyle": "-"} if ours else {"linewidth": 1.0, "linestyle": "--", "marker": "o"}
        for axes, shares in ((left, fresh), (right, unwaited)):
            axes.plot(fetches, shares, color=COLOURS[k % len(COLOURS)], markersize=3, label=rule, **style)
    for axes, name in ((left, "fresh answers"), (right, "answers without waiting")):
        axes.set_xlabel("fetches a request")
        axes.set_ylabel(f"share of {name}")
        axes.grid(alpha=0.3)
    left.legend(fontsize=7)
    figure.suptitle(title, fontsize=11)
    save(figure, path)
