"""A stranger's bytes as text: which encoding they are in, and what stands where in them. Everything here is linear."""

from afresh.reading.decode import encoding, utf8

__all__ = ["encoding", "utf8"]
