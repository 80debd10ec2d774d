"""Charts as SVG of our own: shapes alone, stretched to the width there is; the words stand beside them as HTML."""

import math
from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 600.0, 160.0
MAX_POINTS = 600
Point = tuple[float, float]


def thinned(points: Sequence[Point], most: int = MAX_POINTS) -> list[Point]:
    """As many points as can be seen: of neighbours, their mean.

    >>> thinned([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 5.0)], 2)
    [(0.5, 2.0), (2.5, 5.0)]
    """
    step = math.ceil(len(points) / most) if len(points) > most else 1
    if step == 1:
        return list(points)
    parts = [points[at : at + step] for at in range(0, len(points), step)]
    return [(_mean([x for x, _ in part]), _mean([y for _, y in part])) for part in parts]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def nice_top(highest: float) -> float:
    """A round number that is not below.

    >>> nice_top(0.0), nice_top(7.2), nice_top(130.0)
    (1.0, 8.0, 200.0)
    """
    if not 0 < highest < math.inf:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(highest))
    return next(step * unit for step in (1, 2, 4, 5, 8, 10) if step * unit >= highest * (1 - 1e-9))


def lines(series: Sequence[tuple[str, Sequence[Point]]], *, begin: float, end: float, top: float) -> Markup:
    """Lines over time, each with the class that styles it, from 0 at the bottom to `top`."""
    shapes = [_grid()]
    for name, points in series:
        placed = [_placed(point, begin, end, top) for point in thinned(points)]
        if not placed:
            continue
        if len(placed) == 1:
            x, y = placed[0]
            placed = [(max(x - 3, 0.0), y), (min(x + 3, WIDTH), y)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        if name == "main":
            down = f"L{placed[-1][0]:.1f} {HEIGHT:.0f}L{placed[0][0]:.1f} {HEIGHT:.0f}Z"
            shapes.append(f'<path class="fill" d="{path}{down}"/>')
        shapes.append(f'<path class="line {name}" d="{path}"/>')
    return _svg(shapes)


def bars(points: Sequence[tuple[float, float, Sequence[float]]], *, begin: float, end: float, top: float) -> Markup:
    """Stacked bars: (begin, end, parts from the bottom up); the n-th part has the class `part{n}`."""
    shapes = [_grid()]
    for since, until, parts in points[-MAX_POINTS:]:
        left, right = (_placed((time, 0.0), begin, end, top)[0] for time in (since, until))
        low = 0.0
        for nth, part in enumerate(parts):
            if part > 0:
                upper, lower = (_placed((begin, each), begin, end, top)[1] for each in (low + part, low))
                width, height = max(right - left - 0.6, 0.8), max(lower - upper, 0.6)
                place = f'x="{left:.1f}" y="{upper:.1f}" width="{width:.1f}" height="{height:.1f}"'
                shapes.append(f'<rect class="part{nth}" {place}/>')
            low += part
    return _svg(shapes)


def timeline(crawls: Sequence[tuple[float, str]], *, begin: float, end: float) -> Markup:
    """The crawls of a page over time: what came of each shows in the height and the class of its mark."""
    heights = {"unchanged": 24.0, "changed": 64.0, "new": 64.0, "failed": 44.0, "gone": 44.0, "other": 34.0}
    shapes = ['<path class="axis" d="M0 79.5H600"/>']
    for time, outcome in crawls:
        x = _placed((time, 0.0), begin, end, 1.0)[0]
        kind = outcome if outcome in heights else "failed" if outcome in ("busy", "refused") else "other"
        shapes.append(f'<path class="mark {kind}" d="M{x:.1f} 80V{80 - heights[kind]:.0f}"/>')
    return _svg(shapes, height=80)


def _grid() -> str:
    return "".join(f'<path class="grid" d="M0 {HEIGHT * part:.1f}H600"/>' for part in (0.0, 0.25, 0.5, 0.75, 1.0))


def _placed(point: Point, begin: float, end: float, top: float) -> Point:
    x = (point[0] - begin) / (end - begin) if end > begin else 0.5
    y = point[1] / top if top > 0 else 0.0
    return min(max(x, 0.0), 1.0) * WIDTH, HEIGHT * (1.0 - min(max(y, 0.0), 1.0))


def _svg(shapes: Sequence[str], height: float = HEIGHT) -> Markup:
    # Numbers and names of our own alone go in here: nothing from outside needs to be escaped.
    inside = "".join(shapes)
    size = f'viewBox="0 0 {WIDTH:.0f} {height:.0f}" preserveAspectRatio="none"'
    return Markup(f'<svg {size} aria-hidden="true" focusable="false">{inside}</svg>')  # noqa: S704
