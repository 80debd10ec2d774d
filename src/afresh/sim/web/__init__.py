"""A synthetic web over real HTTP: it knows every change, counts every request, and scores every crawler.

`SiteOptions` says what the web is like, `Site` draws it from a seed (pure: hosts, pages, changes, text), `Server`
serves it on loopback under many host names, `Ledger` keeps the truth about who holds which version, and `Readers` are
the people whose requests meet fresh or stale copies.
"""

from afresh.sim.web.changes import Process, Timeline
from afresh.sim.web.ledger import Client, Counts, Ledger, Score
from afresh.sim.web.live import run, serve_forever
from afresh.sim.web.options import ROUGH, SiteOptions
from afresh.sim.web.pings import Pinger
from afresh.sim.web.readers import Readers
from afresh.sim.web.render import Mark, read_mark
from afresh.sim.web.resolve import LoopbackResolver
from afresh.sim.web.server import Server
from afresh.sim.web.site import GONE, Site

__all__ = [
    "GONE",
    "ROUGH",
    "Client",
    "Counts",
    "Ledger",
    "LoopbackResolver",
    "Mark",
    "Pinger",
    "Process",
    "Readers",
    "Score",
    "Server",
    "Site",
    "SiteOptions",
    "Timeline",
    "read_mark",
    "run",
    "serve_forever",
]
