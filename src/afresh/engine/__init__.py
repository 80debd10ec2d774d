"""The pure engine: `loop` takes evidence and gives orders, `statements` says what is known of pages."""

from afresh.engine.loop import Engine
from afresh.engine.statements import PIECE, FreshnessParts, Stated, Survey

__all__ = ["PIECE", "Engine", "FreshnessParts", "Stated", "Survey"]
