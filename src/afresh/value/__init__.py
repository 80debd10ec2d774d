"""What a crawl is worth: freshness, crawl value, the optimum under a budget, refresh probabilities.

The story, in order: a copy grows stale with time and with each signal (`freshness`); a crawl makes it fresh again, and
what that gains grows with its staleness (`crawl_value`); crawling whenever a page is as stale as now would cost one
crawl per `crawl_interval`; under a budget there is one price at which all pages together ask for just that (`optimum`).

The compiled scalar functions that the scheduler and the simulator call are in `afresh.value.kernels`.
"""

from afresh.value.crawl import crawl_value
from afresh.value.freshness import freshness, staleness
from afresh.value.optimum import Optimum, optimum

__all__ = ["Optimum", "crawl_value", "freshness", "optimum", "staleness"]
