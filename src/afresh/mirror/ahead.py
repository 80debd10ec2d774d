"""Compiles ahead what `policy = "mirror"` calls, so that no crawl waits for it."""

import numpy as np

from afresh.mirror.scheduler import ByCosts
from afresh.schedule.base import Pick


def compile_ahead() -> None:
    """Do everything once: pages come in, are picked, cost something, get other rates, and go."""
    scheduler = ByCosts(budget=1.0, rng=np.random.default_rng(1), update_every=1.0)
    for host in range(2):
        scheduler.add(request_rate=1.0, change_rate=0.0, host=host, now=0.0, age=5.0)
    for tick in range(8):
        now = 2.0 + 2.0 * tick
        pick = scheduler.next(now)
        if isinstance(pick, Pick):
            scheduler.saw(pick.slot, 1.0 + pick.slot, now, probe=pick.probe)
            scheduler.finish(pick.slot, now, crawled=None if pick.probe else now)
    scheduler.explain(0, 20.0)
    scheduler.remove(0)
