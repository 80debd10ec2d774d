"""One HTML page from a folder of results: figures, tables, and the command that made each."""

import base64
import html
import json
from pathlib import Path
from typing import Any

from afresh.errors import InputError
from afresh.units import show_duration, show_rate

NAME = "report.html"
MEASURES = ("weighted", "fresh", "accuracy")  # what policies are compared by
SHARES = ("weighted", "unweighted", "fresh", "stated", "expected", "finds")
RATES = ("budget",)
DURATIONS = ("stale_age", "every", "seconds")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child, .left { text-align: left }
code { background: #f3f3f3; padding: 0.15rem 0.35rem; border-radius: 3px; overflow-wrap: anywhere }
img { max-width: 100% }
"""


def record(
    rows: list[dict[str, Any]], *, title: str, command: str, claim: str = "", measure: str = ""
) -> dict[str, Any]:
    """What is kept beside a result so that a report can be made of it later."""
    return {"title": title, "command": command, "claim": claim, "measure": measure, "rows": rows}


def write_report(folder: Path) -> Path:
    """Gather every result in a folder (NAME.json with NAME.record.json, and NAME.png or NAME.svg) into one page."""
    records = sorted(folder.glob("*.record.json")) if folder.is_dir() else []
    if not records:
        raise InputError(
            f"{folder} holds no results.",
            hint="Make some first: afresh lab run fig4 --into DIR, or lab compare --into DIR.",
        )
    parts = [_part(path) for path in records]
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>afresh lab report</title>"
        f"<style>{_STYLE}</style></head><body><h1>Lab report</h1>{''.join(parts)}</body></html>\n"
    )
    target = folder / NAME
    target.write_text(page, encoding="utf-8")
    return target


def _part(path: Path) -> str:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows = kept["rows"]
        head = list(rows[0])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not a result of the lab: {error}.", hint="Make it again.") from None
    stem = path.name.removesuffix(".record.json")
    table = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(name, row.get(name))}</td>" for name in head) + "</tr>" for row in rows
    )
    tells = what_it_tells(rows, kept.get("measure", ""))
    return (
        f"<h2>{html.escape(kept['title'])}</h2><p>{html.escape(kept['claim'])}</p>"
        f"<p><code>{html.escape(kept['command'])}</code></p>"
        f"{_picture(path.parent, stem)}<p>{html.escape(tells)}</p><table><tr>{table}</tr>{body}</table>"
    )


def what_it_tells(rows: list[dict[str, Any]], said: str = "") -> str:
    """One sentence on a result: who did best, in the largest collection, and how far from the others and the ceiling.

    >>> what_it_tells([{"policy": "ours", "pages": 9, "weighted": 0.8, "ceiling": 0.9},
    ...                {"policy": "theirs", "pages": 9, "weighted": 0.6, "ceiling": 0.9}])
    'ours comes first with 80.0 %, 88.9 % of the ceiling; the last, theirs, has 60.0 %.'
    >>> what_it_tells([{"policy": "ours", "accuracy": 0.012}, {"policy": "b", "accuracy": 0.02}], "mean error")
    'ours comes first with a mean error of 0.012; the last, b, has 0.02.'
    """
    measure = next((name for name in MEASURES if name in rows[0]), None)
    if measure is None or "policy" not in rows[0]:
        return ""
    largest = max(row.get("pages") or 0 for row in rows)
    scores: dict[str, list[float]] = {}
    for row in rows:
        if (row.get("pages") or 0) == largest and isinstance(row[measure], float):
            scores.setdefault(str(row["policy"]), []).append(row[measure])
    if not scores:
        return ""
    means = {policy: sum(found) / len(found) for policy, found in scores.items()}
    order = sorted(means, key=lambda each: means[each])
    if said.endswith("error"):
        others = f"; the last, {order[-1]}, has {means[order[-1]]:.3g}" if len(order) > 1 else ""
        return f"{order[0]} comes first with a {said} of {means[order[0]]:.3g}{others}."
    best, last = order[-1], order[0]
    ceiling = next((row.get("ceiling") for row in rows if (row.get("pages") or 0) == largest), None)
    of_ceiling = f", {100 * means[best] / ceiling:.1f} % of the ceiling" if ceiling else ""
    others = f"; the last, {last}, has {_share(means[last])}" if last != best else ""
    return f"{best} comes first with {_share(means[best])}{of_ceiling}{others}."


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _cell(name: str, value: Any) -> str:
    """A value in people's units, by the name of its column."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = {**dict.fromkeys(SHARES, _share), **dict.fromkeys(RATES, show_rate)}
        shown |= dict.fromkeys(DURATIONS, show_duration)
        if name in shown:
            return shown[name](value)
        if isinstance(value, int):
            return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return html.escape("" if value is None else str(value))


def _picture(folder: Path, stem: str) -> str:
    for suffix, kind in ((".png", "image/png"), (".svg", "image/svg+xml")):
        file = folder / f"{stem}{suffix}"
        if file.is_file():
            data = base64.b64encode(file.read_bytes()).decode()
            return f"<p><img alt='{html.escape(stem)}' src='data:{kind};base64,{data}'></p>"
    return ""
