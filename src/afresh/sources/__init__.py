"""Kinds of things that copies are kept of: each source knows one kind, and the loop knows none.

`base` is what every source promises; `scripted` is one for tests and examples.
"""

from afresh.sources.base import PURSE, Known, Later, Source, Sources
from afresh.sources.scripted import Scripted

__all__ = ["PURSE", "Known", "Later", "Scripted", "Source", "Sources"]
