"""Readers: people who ask for pages by popularity, and meet what each crawler holds.

Each step draws the readers of one moment, judges for every client whether the copy it holds is current, and hands the
requested pages to the listeners, as a proxy in front of a crawler would.
"""

import asyncio
from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web.ledger import Ledger

Listener = Callable[[NDArray[np.int64], float], None]


class Readers:
    """A stream of requests, Poisson in time and by popularity among pages. Repeatable from its seed and its steps.

    `rate` is requests per second (the site's own if not given). Listeners are called with (pages, time), where a page
    is repeated as often as it was asked for.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        rate: float | None = None,
        seed: int | None = None,
        start: float = 0.0,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        site = ledger.site
        self.ledger = ledger
        self.rate = site.options.requests if rate is None else rate
        if not 0 <= self.rate < inf:
            raise ValueError(f"rate is {self.rate}; it must be finite and not negative")
        self.listeners = list(listeners)
        self.time = start
        self.total = 0  # requests drawn so far, in the window or not
        self._rng = np.random.default_rng([site.options.seed if seed is None else seed, 0x5EAD])
        self._steps = np.cumsum(site.request_rate)
        self._steps /= self._steps[-1]

    def step(self, t: float) -> NDArray[np.int64]:
        """Draw the readers since the last step, all asking at `t`; the pages they ask for."""
        count = int(self._rng.poisson(self.rate * max(0.0, t - self.time)))
        self.time = max(t, self.time)
        # The draws are below 1 and the last step is 1, so the index stays in range.
        pages = np.searchsorted(self._steps, self._rng.random(count), side="right").astype(np.int64)
        self.total += count
        start, end = self.ledger.window
        if start <= t <= end and count:
            self.ledger.asked += count
            for client in self.ledger.clients.values():
                client.served += int(np.count_nonzero(client.fresh(t, pages)))
        for listener in self.listeners:
            listener(pages, t)
        return pages

    async def run(self, clock: Callable[[], float], *, every: float = 0.05, until: float = inf) -> None:
        """Step at intervals of the wall clock, until the site's clock shows `until` (or for ever)."""
        while self.time < until:
            await asyncio.sleep(every)
            self.step(min(clock(), until))
