"""Pictures of results, as PNG or SVG; matplotlib is loaded when the first one is asked for."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from afresh.errors import ConfigError
from afresh.lab import urlcache
from afresh.lab.base import Result
from afresh.lab.contest import Line
from afresh.lab.pictures import pyplot as _pyplot
from afresh.sim.replay import Replayed

COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#64473a", "#9b9a97", "#dfab01", "#e03e3e")


def check_picture(path: Path) -> None:
    """Say before the work that a picture cannot be drawn."""
    if path.suffix not in (".png", ".svg"):
        raise ConfigError(f"{path} is neither PNG nor SVG.", hint="Give a file that ends in .png or .svg.")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        missing = "" if path.parent.is_dir() else f": there is no folder {path.parent}"
        raise ConfigError(f"{path} cannot be written{missing}.", hint="Choose another file.")
    _pyplot()


def save(figure: Any, path: Path) -> None:
    """Write a picture, and let go of it."""
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another file.") from None
    finally:
        _pyplot().close(figure)


def draw(result: Result, path: Path) -> None:
    """The picture of an experiment."""
    how: dict[str, Callable[[Any, Result], Any]] = {
        "sizes": _sizes,
        "bars": _bars,
        "lines": _lines,
        "steps": _steps,
        "scatter": _scatter,
        "truth": _scatter,
        "grades": _grades,
        "rounds": _rounds,
        "regret": _regret,
    }
    figure = how[result.experiment.picture](_pyplot(), result)
    figure.suptitle(result.experiment.title, fontsize=11)
    save(figure, path)


def _sizes(pyplot: Any, result: Result) -> Any:
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    sizes = sorted({row.pages for row in result.rows})
    for k, policy in enumerate(dict.fromkeys(row.policy for row in result.rows)):
        rows = {row.pages: row for row in result.rows if row.policy == policy}
        share = [rows[pages].accuracy for pages in sizes]
        error = [np.nan_to_num(rows[pages].stderr) for pages in sizes]
        axes.errorbar(
            range(len(sizes)), share, yerr=error, label=policy, marker="o", markersize=4, capsize=3, color=_colour(k)
        )
    ceilings = {row.pages: row.ceiling for row in result.rows}
    axes.plot(range(len(sizes)), [ceilings[pages] for pages in sizes], "k--", linewidth=1, label="ceiling")
    axes.set_xticks(range(len(sizes)), [f"{pages:,}" for pages in sizes])
    axes.set_xlabel("pages")
    axes.set_ylabel("share of requests served fresh")
    axes.set_ylim(0, 1)
    axes.legend(fontsize=8)
    return figure


def _bars(pyplot: Any, result: Result) -> Any:
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    names = [row.policy for row in result.rows]
    places = range(len(names))
    axes.barh(
        places,
        [row.accuracy for row in result.rows],
        xerr=[np.nan_to_num(row.stderr) for row in result.rows],
        color=COLOURS[0],
    )
    low = min(row.accuracy for row in result.rows)
    axes.set_xlim(max(0.0, low - 0.1), min(1.0, max(row.ceiling for row in result.rows) + 0.02))
    axes.axvline(result.rows[0].ceiling, color="k", linestyle="--", linewidth=1)
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{result.experiment.measure} (dashed: ceiling)")
    return figure


def _lines(pyplot: Any, result: Result) -> Any:
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for k, ((_, policy), kept) in enumerate(result.curves.items()):
        axes.plot(kept[0]["x"], kept[0]["y"], "-" if k == 0 else "--", color=_colour(k), label=policy)
        if "most" in kept[0]:
            axes.axhline(float(kept[0]["most"][0]), color="#e03e3e", linewidth=1)
    axes.set_xlabel("effective age")
    axes.set_ylabel("crawl value")
    axes.legend(fontsize=8)
    return figure


def _rounds(pyplot: Any, result: Result) -> Any:
    """Mean costs over time, with bands of two standard errors of the gap: instances differ more than algorithms do."""
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for k, algorithm in enumerate(dict.fromkeys(row.algorithm for row in result.rounds)):
        rows = [row for row in result.rounds if row.algorithm == algorithm]
        x, y, band = (np.array([getattr(row, name) for row in rows]) for name in ("round", "mean_J", "gap_stderr"))
        if algorithm == "optimum":
            axes.plot(x, y, "k--", linewidth=1, label=algorithm)
            continue
        axes.plot(x, y, color=_colour(k), label=algorithm)
        axes.fill_between(x, y - 2 * np.nan_to_num(band), y + 2 * np.nan_to_num(band), color=_colour(k), alpha=0.25)
    bands = " (bands: two standard errors of the gap to the optimum)" if result.rounds[0].reps > 1 else ""
    axes.set_xlabel(f"rounds{bands}")
    axes.set_ylabel("mean cost J")
    axes.legend(fontsize=8)
    return figure


def _regret(pyplot: Any, result: Result) -> Any:
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for k, algorithm in enumerate(dict.fromkeys(row.algorithm for row in result.rounds)):
        rows = [row for row in result.rounds if row.algorithm == algorithm]
        x = np.array([row.round for row in rows], np.float64)
        regret, error = (x * np.array([getattr(row, name) for row in rows]) for name in ("gap", "gap_stderr"))
        axes.errorbar(x, regret, yerr=np.nan_to_num(error), color=_colour(k), marker="o", capsize=3, label=algorithm)
        axes.plot(x, regret[0] * (x / x[0]) ** (2 / 3), "--", color=_colour(k), linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rounds T")
    axes.set_ylabel("regret (dashed: like T^(2/3))")
    axes.legend(fontsize=8)
    return figure


def _steps(pyplot: Any, result: Result) -> Any:
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    kept = [curves[0] for curves in result.curves.values()]
    axes.plot(kept[0]["x"], kept[0]["y"], color=COLOURS[0], linewidth=1, label="GREEDY")
    for each in kept:
        begin, end, level = each["level"]
        axes.plot([begin, end], [level, level], "k--", linewidth=1)
    axes.set_xlabel("time")
    axes.set_ylabel("share of requests served fresh (dashed: optimum)")
    return figure


def _scatter(pyplot: Any, result: Result) -> Any:
    keys = list(result.curves)
    columns = min(4, len(keys))
    rows = -(-len(keys) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(3.4 * columns, 3.2 * rows), squeeze=False)
    truth = result.experiment.picture == "truth"
    for axes in grid.flat[len(keys) :]:
        axes.axis("off")
    for axes, key in zip(grid.flat, keys, strict=False):
        x = np.concatenate([each["x"] for each in result.curves[key]])
        y = np.concatenate([each["y"] for each in result.curves[key]])
        colour = None if truth else np.concatenate([each["colour"] for each in result.curves[key]])
        shade = {"color": COLOURS[0]} if colour is None else {"c": colour, "cmap": "viridis"}
        dots = axes.scatter(x, y, s=4, **shade)
        most = max(float(x.max()), float(y.max()), 1e-9)
        axes.plot([0, most], [0, most], "k--", linewidth=0.8)
        axes.set_title(key[1] if truth else f"{key[1]}, {key[0]} pages", fontsize=8)
        axes.set_xlabel("truth" if truth else "baseline rate", fontsize=8)
        axes.set_ylabel("estimate" if truth else "empirical rate", fontsize=8)
        if colour is not None:
            figure.colorbar(dots, ax=axes)
    return figure


def _colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def draw_contest(lines: Sequence[Replayed], ceiling: float, path: Path, title: str) -> None:
    """Bars of a comparison, weighted and unweighted."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7.5, 0.8 + 0.32 * len(lines)))
    places = np.arange(len(lines))
    axes.barh(places - 0.2, [line.weighted for line in lines], 0.38, color=COLOURS[0], label="weighted by requests")
    axes.barh(places + 0.2, [line.unweighted for line in lines], 0.38, color=COLOURS[6], label="unweighted")
    axes.axvline(ceiling, color="k", linestyle="--", linewidth=1, label="clairvoyant constant rates")
    axes.set_yticks(places, [line.policy for line in lines], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of time fresh")
    axes.legend(fontsize=7, loc="lower right")
    axes.set_title(title, fontsize=10)
    save(figure, path)


def draw_lines(lines: Sequence[Line], path: Path, title: str) -> None:
    """A panel a history: how far afresh, uniform and past are above the best peer in every setting."""
    pyplot = _pyplot()
    names = list(dict.fromkeys(line.history for line in lines))
    columns = min(2, max(1, len(names)))
    rows = -(-max(1, len(names)) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(6.5 * columns, 3.4 * rows), squeeze=False)
    for axes in grid.flat[len(names) :]:
        axes.axis("off")
    for axes, name in zip(grid.flat, names, strict=False):
        inside = [line for line in lines if line.history == name]
        for k, (label, marker) in enumerate((("afresh", "o"), ("uniform", "x"), ("past", "+"))):
            above = [100 * (getattr(line, label) - line.best) for line in inside]
            axes.plot(range(len(inside)), above, marker, color=_colour(k), label=label, markersize=5)
        axes.axhline(0.0, color="k", linewidth=0.8)
        labels = [f"{line.visits:.3g} {line.weights} {line.signals}" for line in inside]
        axes.set_xticks(range(len(inside)), labels, rotation=90, fontsize=6)
        axes.set_ylabel("points above the best peer", fontsize=8)
        axes.set_title(name, fontsize=9)
        axes.legend(fontsize=7)
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def draw_misses(rows: Sequence[urlcache.Row], path: Path) -> None:
    """A panel a trace: the share of links that miss, by the size of the cache, a line a rule."""
    pyplot = _pyplot()
    panels = list(dict.fromkeys((row.file, row.trace) for row in rows))
    columns = min(2, max(1, len(panels)))
    lines = -(-max(1, len(panels)) // columns)
    figure, grid = pyplot.subplots(lines, columns, figsize=(6.0 * columns, 3.8 * lines), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (file, kind) in zip(grid.flat, panels, strict=False):
        inside = [row for row in rows if (row.file, row.trace) == (file, kind)]
        for k, policy in enumerate(dict.fromkeys(row.policy for row in inside)):
            own = [row for row in inside if row.policy == policy]
            shares = [row.misses / row.requests for row in own]
            axes.plot([row.size for row in own], shares, color=_colour(k), label=policy, marker=".", linewidth=1.2)
        axes.set_xscale("log", base=2)
        axes.set_ylim(0, 1)
        axes.set_xlabel("URLs in a cache", fontsize=8)
        axes.set_ylabel("share of links that miss", fontsize=8)
        axes.set_title(f"{file}, {kind}", fontsize=9)
        axes.legend(fontsize=7)
    save(figure, path)


def _grades(pyplot: Any, result: Result) -> Any:
    """Histograms of what is true and what was graded, weighted by importance."""
    keys = list(result.curves)
    figure, grid = pyplot.subplots(1, len(keys), figsize=(4.2 * len(keys), 3.6), sharey=True, squeeze=False)
    for axes, key in zip(grid.flat, keys, strict=True):
        weight = np.concatenate([each["weight"] for each in result.curves[key]])
        both = [np.concatenate([each[name] for each in result.curves[key]]) for name in ("x", "y")]
        share = weight / weight.sum()
        edges = np.linspace(0.0, 1.0, 11)
        axes.hist(both, bins=edges, weights=[share, share], label=["truth", "graded"], color=COLOURS[:2])
        axes.set_xlabel(f"{key[1]}, {key[0]} pages", fontsize=8)
        axes.legend(fontsize=8)
    grid.flat[0].set_ylabel("share of the importance", fontsize=8)
    return figure


def draw_grades(rows: Sequence[tuple[str, float | None, float | None, float]], path: Path) -> None:
    """Histograms of precision and recall, a colour a sender; a bar is the share of the importance with such a grade.

    `rows`: sender, precision, recall, importance.
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
    senders = list(dict.fromkeys(row[0] for row in rows))[: len(COLOURS)]
    edges = np.linspace(0.0, 1.0, 11)
    for part, (axis, name) in enumerate(zip(axes, ("precision", "recall"), strict=True)):
        known = {each: [(row[1 + part], row[3]) for row in rows if row[0] == each] for each in senders}
        shares = [np.array([share for share, _ in known[each] if share is not None]) for each in senders]
        weights = [np.array([weight for share, weight in known[each] if share is not None]) for each in senders]
        weights = [each / max(float(each.sum()), 1e-300) for each in weights]
        axis.hist(shares, bins=edges, weights=weights, label=senders, color=COLOURS[: len(senders)])
        axis.set_xlabel(name)
        axis.set_xlim(0.0, 1.0)
    axes[0].set_ylabel("share of the importance")
    axes[1].legend(fontsize=8)
    save(figure, path)
