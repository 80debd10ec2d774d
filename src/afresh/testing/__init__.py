"""Batteries that every implementation of an interface must pass, yours included.

A battery raises AssertionError with a sentence that says which promise was broken.
"""

from afresh.testing.engine import check_engine
from afresh.testing.estimator import check_estimator
from afresh.testing.seen import check_seen
from afresh.testing.source import SourceWorld, check_source
from afresh.testing.store import check_store

__all__ = ["SourceWorld", "check_engine", "check_estimator", "check_seen", "check_source", "check_store"]
