"""The pictures of the overview and of the plan: rows of figures into lines and bars."""

import math
from typing import Any

from markupsafe import Markup

from afresh.serve.console import pictures
from afresh.serve.console.facts import Object
from afresh.serve.console.wording import clock
from afresh.store.figures import Figures

SHORTEST_BAR = 5.0  # seconds: the rate of a row that has just begun says little


def curve_of(budgets: list[dict[str, Any]]) -> Markup | None:
    """What budgets buy, as a line; each step to the right is the same factor. None: they are too few."""
    rows = [(math.log(row["budget"]), row["freshness"]) for row in budgets if row["budget"] > 0]
    if len(rows) < 3:
        return None
    return pictures.lines([("main", rows)], begin=rows[0][0], end=rows[-1][0], top=1.0)


def charts_of(figures: list[Figures], begin: float, end: float) -> Object:
    """The pictures of the overview, and what stands beside their axes."""
    if figures:
        begin = max(begin, min(figures[0].time - figures[0].seconds, end - 60.0))
    fresh = [(row.time, row.freshness) for row in figures if row.freshness is not None]
    checked = [row for row in figures if row.found is not None and row.said is not None]
    found = _smooth([(row.time, row.found or 0.0, row.crawls) for row in checked])
    said = _smooth([(row.time, row.said or 0.0, row.crawls) for row in checked])
    rates = [
        (
            row.time - row.seconds,
            row.time,
            [
                (row.crawls - row.changes - row.failures) / row.seconds,
                row.changes / row.seconds,
                row.failures / row.seconds,
            ],
        )
        for row in figures
        if row.seconds >= SHORTEST_BAR
    ]
    top = pictures.nice_top(max((sum(parts) for _, _, parts in rates), default=0.0))
    priced = [(row.time, row.price) for row in figures if row.price > 0]  # it is not known at first
    price_top = pictures.nice_top(max((price for _, price in priced), default=0.0))
    budgets = [(row.time, row.budget) for row in figures]
    return {
        "figures": len(figures),
        "axis": [clock(begin + (end - begin) * part, end - begin) for part in (0.0, 0.5, 1.0)],
        "fresh_chart": pictures.lines([("main", fresh)], begin=begin, end=end, top=1.0),
        "checked_chart": pictures.lines([("said", said), ("found", found)], begin=begin, end=end, top=1.0),
        "crawl_chart": pictures.bars(_binned(rates), begin=begin, end=end, top=top),
        "crawl_top": top,
        "price_chart": pictures.lines([("main", priced)], begin=begin, end=end, top=price_top),
        "price_top": price_top,
        "budget_from": min((budget for _, budget in budgets), default=None),
        "budget_to": max((budget for _, budget in budgets), default=None),
    }


def _smooth(points: list[tuple[float, float, int]]) -> list[tuple[float, float]]:
    """Shares that rest on few crawls jump: each counts with those before it, which fade."""
    made, amount, total = [], 0.0, 0.0
    for at, share, weight in points:
        amount, total = 0.8 * amount + weight * share, 0.8 * total + weight
        made.append((at, amount / total if total else share))
    return made


def _binned(rates: list[tuple[float, float, list[float]]], most: int = 150) -> list[tuple[float, float, list[float]]]:
    """As many bars as can be seen."""
    step = -(-len(rates) // most) or 1
    made = []
    for at in range(0, len(rates), step):
        part = rates[at : at + step]
        means = [sum(parts[nth] for _, _, parts in part) / len(part) for nth in range(3)]
        made.append((part[0][0], part[-1][1], means))
    return made
