"""Keep copies and history: what was acknowledged survives, and a copy is whole or absent.

A store is opened, claimed by the one runner, and read for its pages' states. From then on the runner writes what each
finished crawl leaves (the crawl, the page's new state, the copy if there is a new one, the host's state), in batches.
Others read meanwhile, and hand over what they want and know through the inbox. `Sqlite` keeps it all in one file,
`Memory` until the program ends. `SeenOnDisk` remembers which URLs a crawl has met, when they are too many for memory.

>>> from afresh.types import Page
>>> with Memory() as kept:
...     kept.add([Page("https://example.org/", "example.org")])
...     [number for number, state in kept.states()]
1
[1]
"""

from typing import TYPE_CHECKING

from afresh.store.base import (
    Entry,
    Failing,
    Heard,
    KeepVersions,
    LastingStore,
    PageColumns,
    PageState,
    Record,
    Space,
    Store,
    Totals,
    Version,
)
from afresh.store.memory import Memory
from afresh.store.sqlite import Sqlite
from afresh.store.understood import understood

if TYPE_CHECKING:
    from afresh.store.seen import SeenOnDisk

__all__ = [
    "Entry",
    "Failing",
    "Heard",
    "KeepVersions",
    "LastingStore",
    "Memory",
    "PageColumns",
    "PageState",
    "Record",
    "SeenOnDisk",
    "Space",
    "Sqlite",
    "Store",
    "Totals",
    "Version",
    "understood",
]


def __getattr__(name: str) -> object:
    """Load what needs arrays when it is asked for: most commands do without."""
    if name == "SeenOnDisk":
        from afresh.store.seen import SeenOnDisk

        return SeenOnDisk
    raise AttributeError(f"module 'afresh.store' has no attribute {name!r}")
