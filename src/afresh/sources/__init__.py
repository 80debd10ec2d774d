"""Kinds of things that copies are kept of: each source knows one kind, and the loop knows none.

`base` is what every source promises; `web` is the web; `scripted` is one for tests and examples.
"""

from collections.abc import Sequence

from afresh.fetch import Fetcher
from afresh.sources.base import PURSE, Begins, Finder, Known, Later, Listed, Runner, Source, Sources
from afresh.sources.scripted import Scripted
from afresh.sources.web import Web


def gathered(sources: Sources | Source | Sequence[Source] | None, fetcher: Fetcher | None = None) -> Sources:
    """What somebody calls his sources; a fetcher alone is the web."""
    if isinstance(sources, Sources):
        return sources
    if sources is None:
        return Sources([Web(fetcher)] if fetcher is not None else [])
    return Sources(sources if isinstance(sources, Sequence) else [sources])


__all__ = [
    "PURSE",
    "Begins",
    "Finder",
    "Known",
    "Later",
    "Listed",
    "Runner",
    "Scripted",
    "Source",
    "Sources",
    "Web",
    "gathered",
]
