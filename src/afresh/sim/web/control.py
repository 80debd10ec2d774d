"""The control area on the bare host: what the site is like, and what it has counted. Read-only.

It answers only to Host headers that name the machine itself, so that no page of another site can read it by pointing
its own name at this machine.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from aiohttp import web

from afresh.units import show_count

if TYPE_CHECKING:
    from afresh.sim.web.server import Server

LOCAL = ("localhost", "127.0.0.1", "[")  # an IPv6 address starts with a bracket; `partition(":")` leaves just that
AREAS = ("options", "clients", "score", "hosts", "urls")


def answer(server: Server, request: web.BaseRequest, name: str) -> web.Response:
    """Answer a request whose Host is none of the site's."""
    if name not in (*LOCAL, server.host):
        return web.Response(status=421, text="This host name is not served here.\n")
    if request.method not in ("GET", "HEAD"):
        return web.Response(status=405, headers={"Allow": "GET, HEAD"})
    path = request.raw_path.partition("?")[0]
    if path == "/":
        return web.Response(text=_index(server), content_type="text/html", charset="utf-8")
    area = path.removeprefix("/_site/") if path.startswith("/_site/") else None
    if area == "":
        return _json({name: _area(server, name) for name in AREAS if name != "urls"})
    if area in AREAS:
        return _json(_area(server, area))
    return web.Response(status=404, text="There is no such page.\n")


def _json(data: Any) -> web.Response:
    return web.Response(
        text=json.dumps(data, allow_nan=False) + "\n",
        content_type="application/json",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )


def _area(server: Server, area: str) -> Any:
    site, ledger, now = server.site, server.ledger, server.clock()
    if area == "options":
        return asdict(site.options)
    if area == "clients":
        return ledger.report(now)
    if area == "score":
        start, end = ledger.window
        window = [start, end if end < float("inf") else None]
        return {"time": now, "epoch": server.epoch, "window": window, "requests": ledger.asked}
    if area == "hosts":
        return [
            {
                "host": name,
                "kind": kind.name,
                "pages": len(site.pages_of(number)),
                "url": f"http://{name}:{server.port}/",
            }
            for number, (name, kind) in enumerate(zip(site.hosts, site.host_kinds, strict=True))
        ]
    return server.urls()


def _index(server: Server) -> str:
    rows = "\n".join(
        f'<li><a href="{escape(row["url"])}">{escape(row["host"])}</a>, {show_count(row["pages"], "page")}</li>'
        for row in _area(server, "hosts")
    )
    areas = ", ".join(f'<a href="/_site/{area}">{area}</a>' for area in AREAS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>A synthetic web</title></head>\n'
        f"<body><h1>A synthetic web</h1>\n<p>What it counts, as JSON: {areas}.</p>\n<ul>\n{rows}\n</ul></body></html>\n"
    )
