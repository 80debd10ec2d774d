"""What a crawl is worth: freshness, crawl value, the optimum under a budget, refresh probabilities.

The story, in order: a copy grows stale with time and with each signal (`freshness`); a crawl makes it fresh again, and
what that gains grows with its staleness (`crawl_value`); crawling whenever a page is as stale as now would cost one
crawl per `crawl_interval`; under a budget there is one price at which all pages together ask for just that (`optimum`);
so each budget has its freshness and each freshness its budget (`plan`, `budget_for`). Where intervals cannot be chosen,
items are refreshed at random (`refresh_probabilities`).

All functions take numbers or arrays. The compiled scalar functions that the scheduler and the simulator call from their
own compiled code are in `afresh.value.kernels`; nothing is compiled before its first call.
"""

from afresh.value.crawl import crawl_value
from afresh.value.freshness import freshness, staleness
from afresh.value.interval import crawl_interval, crawl_rate, fresh_share, fresh_time, interval_slope, value_slope
from afresh.value.optimum import Optimum, optimum
from afresh.value.plan import Plan, budget_for, plan
from afresh.value.probabilities import expected_freshness, refresh_probabilities

__all__ = [
    "Optimum",
    "Plan",
    "budget_for",
    "crawl_interval",
    "crawl_rate",
    "crawl_value",
    "expected_freshness",
    "fresh_share",
    "fresh_time",
    "freshness",
    "interval_slope",
    "optimum",
    "plan",
    "refresh_probabilities",
    "staleness",
    "value_slope",
]
