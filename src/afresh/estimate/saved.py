"""How many crawls a sender saves: how many more would keep the same pages as fresh if nobody were heard.

Both are reckoned for the best schedule there is (`value.interval`), of a page that changes as often between two crawls
as those of the host do on average. So it is what the sender alone gains, whatever others say.
"""

import numpy as np

from afresh.value import crawl_rate, fresh_share

MAX_RECALL = 0.98  # where every change is told, time alone never makes a copy stale
MAX_FACTOR = 100.0  # more crawls than that are not promised to be saved
_AGES = np.geomspace(1e-3, 1e3, 241)  # in mean times between changes


def crawls_saved(crawls: float, changes: float, precision: float, recall: float) -> float:
    """Of so many crawls, with so many changes of their pages between two of them on average.

    >>> round(crawls_saved(100, 1.0, 0.9, 0.6))
    88
    >>> round(crawls_saved(100, 1.0, 0.05, 0.02))
    0
    """
    if not (crawls > 0 and changes > 0 and recall > 0):
        return 0.0
    recall, pace = min(recall, MAX_RECALL), 1.0 / changes
    false = recall * (1.0 - precision) / max(precision, 1e-6)
    rates = crawl_rate(_AGES, change_rate=1.0, recall=recall, false_rate=false)
    fresh = fresh_share(_AGES, change_rate=1.0, recall=recall, false_rate=false)
    with_it = float(np.interp(-np.log(pace), -np.log(rates), fresh))  # rates fall with the age
    needed = np.geomspace(1e-3, 1.0, 400) * max(pace, 1.0) * MAX_FACTOR
    without = needed * -np.expm1(-1.0 / needed)
    factor = float(np.interp(with_it, without, needed)) / pace
    return float(crawls * min(max(factor - 1.0, 0.0), MAX_FACTOR))
