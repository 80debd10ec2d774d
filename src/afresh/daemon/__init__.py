"""The loop, live: asyncio and the wall clock around the pure engine.

`loop` takes the pages out of the store, asks the engine for orders at the pace of the budget, and carries each out as a
task of its own; before a host is asked for a page, its robots.txt is asked for permission (`permits`), its address has
its turn, and redirects to other hosts wait for theirs (`asking`); what a new page links to becomes pages too, if
discovery is on (`discovery`), and so does what the site itself lists (`sitemaps`, read when its `agenda` says). What
came of it all is written in batches (`keeping`), and listeners hear of it (`events`).
"""

from afresh.daemon.clock import SteadyClock
from afresh.daemon.discovery import Discovery
from afresh.daemon.events import Event, Filled, Finished, Listed, Listener, Ordered, Released, Started, Stopped, Stored
from afresh.daemon.kinds import KindRule, Kinds
from afresh.daemon.loop import Daemon
from afresh.daemon.permits import Permits

__all__ = [
    "Daemon",
    "Discovery",
    "Event",
    "Filled",
    "Finished",
    "KindRule",
    "Kinds",
    "Listed",
    "Listener",
    "Ordered",
    "Permits",
    "Released",
    "Started",
    "SteadyClock",
    "Stopped",
    "Stored",
]
