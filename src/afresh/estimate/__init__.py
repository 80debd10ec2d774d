"""What is believed of each page: change rate, signal quality and request rate, learned from evidence.

Every finished crawl says of one interval whether the page changed in it; every signal and every request is counted.
From these an estimator states beliefs, which the scheduler turns into crawl values. `grid` is the plain one: the whole
posterior of every page, and the reference for faster ones. `online` is for many pages: compiled, 72 bytes a page,
priors shared by kin; `Learner` puts it behind the engine's interface. `activity` tells of pages that change together,
`senders` what a signal of each sender is worth. `likelihood` fits a whole history at once, and `counting` holds what is
done elsewhere, for comparison.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from afresh.estimate.activity import Activity
from afresh.estimate.base import Estimator, typical_rate
from afresh.estimate.calibration import Calibration, Reliability
from afresh.estimate.kin import branches_of, kin_of
from afresh.estimate.likelihood import Fit, fit_change

if TYPE_CHECKING:
    from afresh.estimate.grid import Grid
    from afresh.estimate.learner import Learner
    from afresh.estimate.senders import Senders

__all__ = [
    "Activity",
    "Calibration",
    "Estimator",
    "Fit",
    "Grid",
    "Learner",
    "Reliability",
    "Senders",
    "branches_of",
    "fit_change",
    "kin_of",
    "typical_rate",
]


_COMPILED = {"Grid": "grid", "Learner": "learner", "Senders": "senders"}


def __getattr__(name: str) -> Any:
    # Compiled code takes a while to load: only who learns with it should wait for it.
    if name in _COMPILED:
        return getattr(import_module(f"{__name__}.{_COMPILED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
