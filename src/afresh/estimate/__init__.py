"""What is believed of each page: change rate, signal quality and request rate, learned from evidence.

Every finished crawl says of one interval whether the page changed in it; every signal and every request is counted.
From these an estimator states beliefs, which the scheduler turns into crawl values. `grid` is the plain one: the whole
posterior of every page, and the reference for faster ones.
"""

from afresh.estimate.base import Estimator
from afresh.estimate.calibration import Calibration, Reliability
from afresh.estimate.grid import Grid

__all__ = ["Calibration", "Estimator", "Grid", "Reliability"]
