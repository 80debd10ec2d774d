"""A stranger's bytes as text: which encoding they are in, and what stands where in them. Everything here is linear."""

from afresh.reading.decode import encoding, utf8
from afresh.reading.page import Document, Wanted, read, read_both
from afresh.reading.select import compile_selectors

__all__ = ["Document", "Wanted", "compile_selectors", "encoding", "read", "read_both", "utf8"]
