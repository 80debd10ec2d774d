"""The loop, live: asyncio and the wall clock around the pure engine.

`loop` takes the pages out of the store, asks the engine for orders at the pace of the budget, and has each carried out
by the source of its page (`afresh.sources`), as a task of its own; sources turn to the `desk` with what they have to
say unasked. What came of it all is read (`reader`) and written in batches (`keeping`), and listeners hear of it
(`events`). Nothing here knows what kinds of sources there are.
"""

from afresh.daemon.clock import SteadyClock
from afresh.daemon.events import Event, Filled, Finished, Listed, Listener, Ordered, Released, Started, Stopped, Stored
from afresh.daemon.kinds import KindRule, Kinds
from afresh.daemon.loop import Daemon

__all__ = [
    "Daemon",
    "Event",
    "Filled",
    "Finished",
    "KindRule",
    "Kinds",
    "Listed",
    "Listener",
    "Ordered",
    "Released",
    "Started",
    "SteadyClock",
    "Stopped",
    "Stored",
]
