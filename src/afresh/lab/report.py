"""One HTML page from a folder of results: figures, tables, and the command that made each."""

import base64
import html
import json
from pathlib import Path
from typing import Any

from afresh.errors import InputError

NAME = "report.html"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child, .left { text-align: left }
code { background: #f3f3f3; padding: 0.15rem 0.35rem; border-radius: 3px; overflow-wrap: anywhere }
img { max-width: 100% }
"""


def record(rows: list[dict[str, Any]], *, title: str, command: str, claim: str = "") -> dict[str, Any]:
    """What is kept beside a result so that a report can be made of it later."""
    return {"title": title, "command": command, "claim": claim, "rows": rows}


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
    body = "".join("<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in head) + "</tr>" for row in rows)
    return (
        f"<h2>{html.escape(kept['title'])}</h2><p>{html.escape(kept['claim'])}</p>"
        f"<p><code>{html.escape(kept['command'])}</code></p>"
        f"{_picture(path.parent, stem)}<table><tr>{table}</tr>{body}</table>"
    )


def _cell(value: Any) -> str:
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
