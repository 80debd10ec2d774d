"""The pure engine: `loop` takes evidence and gives orders, `members` knows pages, `statements` says what is known."""

from afresh.engine.arrivals import Arrivals
from afresh.engine.costs import Costs
from afresh.engine.kind_costs import KindCosts
from afresh.engine.loop import Engine
from afresh.engine.names import Names
from afresh.engine.several import AnyEngine, Engines
from afresh.engine.statements import FreshnessParts, Stated, Survey

__all__ = [
    "AnyEngine",
    "Arrivals",
    "Costs",
    "Engine",
    "Engines",
    "FreshnessParts",
    "KindCosts",
    "Names",
    "Stated",
    "Survey",
]
