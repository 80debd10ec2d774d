"""afresh keeps copies of things that change elsewhere as fresh as a limited budget allows.

This is the public door: everything here is promised, everything else may move. Names are loaded when they are first
used, so that importing afresh is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from afresh.errors import (
    AfreshError,
    ClusterError,
    ConfigError,
    FetchError,
    InputError,
    SignalError,
    SolverError,
    StoreError,
    StoreLocked,
)
from afresh.types import (
    Beliefs,
    Copy,
    Crawl,
    Fetched,
    Order,
    Outcome,
    Page,
    Request,
    Signal,
    Validators,
    Verdict,
    Wait,
)

if TYPE_CHECKING:
    from afresh.daemon import Daemon
    from afresh.engine import Engine
    from afresh.index import Search
    from afresh.sources.sql import Database, Query, QueryCache

__version__ = "0.1.0"

_LATER = {
    "Daemon": "afresh.daemon",
    "Database": "afresh.sources.sql",
    "Engine": "afresh.engine",
    "Query": "afresh.sources.sql",
    "QueryCache": "afresh.sources.sql",
    "Search": "afresh.index",
}

__all__ = [
    "AfreshError",
    "Beliefs",
    "ClusterError",
    "ConfigError",
    "Copy",
    "Crawl",
    "Daemon",
    "Database",
    "Engine",
    "FetchError",
    "Fetched",
    "InputError",
    "Order",
    "Outcome",
    "Page",
    "Query",
    "QueryCache",
    "Request",
    "Search",
    "Signal",
    "SignalError",
    "SolverError",
    "StoreError",
    "StoreLocked",
    "Validators",
    "Verdict",
    "Wait",
]


def __getattr__(name: str) -> object:
    """Load what is heavy when it is asked for."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'afresh' has no attribute {name!r}")
