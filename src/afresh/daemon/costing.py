"""What a crawl has found the copy to have cost; and a probe's verdict, which leaves the copy as it is."""

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from afresh.mirror.costs import COSTS, Cost, Seen
from afresh.sources import Sources
from afresh.store import PageState
from afresh.types import Answer, Copy, Fetched, Order, Outcome, Verdict

_log = logging.getLogger("afresh.costs")

MOST_SECONDS = 10.0  # that an operator's function may take
REFRESHED = (Outcome.CHANGED, Outcome.UNCHANGED)


class Costing:
    """Asks a `Cost` about every crawl of a page that has a copy.

    A function of the operator's own runs in a thread, and is given the copy; if it fails, or takes too long, the crawl
    counts as one that could not tell.
    """

    def __init__(
        self, cost: Cost, *, sources: Sources, copy: Callable[[str], Copy | None], importance: Callable[[str], float]
    ) -> None:
        self.cost = cost
        self._sources = sources
        self._copy, self._importance = copy, importance
        self._threads = None if cost in COSTS.values() else ThreadPoolExecutor(1, "afresh-cost")
        self._complained = ""

    async def judged(self, order: Order, before: PageState, fetched: Fetched, verdict: Verdict) -> Verdict:
        """The verdict with its cost; that of a probe is `probed`."""
        if verdict.outcome not in REFRESHED:
            return verdict
        seen = self._seen(order.url, before, fetched, verdict)
        cost = self.cost(seen) if self._threads is None else await self._asked(seen)
        if cost is not None and not 0.0 <= cost < math.inf:
            self._complain(f"it is {cost!r}, and not a finite number of at least 0")
            cost = None
        verdict = replace(verdict, cost=cost)
        if not order.probe:
            return verdict
        reason = "changed" if verdict.outcome is Outcome.CHANGED else verdict.reason or "unchanged"
        return replace(verdict, outcome=Outcome.PROBED, reason=reason)

    def _seen(self, url: str, before: PageState, fetched: Fetched, verdict: Verdict) -> Seen:
        checked = fetched.started if before.checked is None else before.checked
        elapsed = max(fetched.started - checked, 0.0)
        modified = self._sources.dated(url, fetched.validators, fetched.ended)
        return Seen(
            url=url,
            changed=verdict.outcome is Outcome.CHANGED,
            significance=verdict.significance,
            importance=self._importance(url),
            elapsed=elapsed,
            stale_for=None if modified is None else min(max(fetched.started - modified, 0.0), elapsed),
            fetched=fetched,
        )

    async def _asked(self, seen: Seen) -> float | None:
        def ask() -> float:
            copy, fetched = self._copy(seen.url), seen.fetched
            if fetched.answered is Answer.SAME and copy is not None:
                fetched = replace(fetched, body=copy.body)  # which need not come again
            try:
                cost = self.cost(replace(seen, copy=copy, fetched=fetched))
            except SystemExit as error:
                raise RuntimeError(f"it wanted to end the program ({error!r})") from None
            if isinstance(cost, str | bytes):
                raise TypeError(f"it gave text, {cost!r:.40}, and not a number")
            return float(cost)

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(MOST_SECONDS):
                return await loop.run_in_executor(self._threads, ask)
        except TimeoutError:
            self._complain(f"it took more than {MOST_SECONDS:g} s")
        except Exception as error:  # whatever an operator's function may raise
            self._complain(f"{type(error).__name__}: {error}")
        return None

    def _complain(self, what: str) -> None:
        """One line in the log for each kind of complaint in a row."""
        if what != self._complained:
            self._complained = what
            _log.warning("The cost of a crawl is not known: %s.", what[:300])

    def close(self) -> None:
        """End the thread; what hangs in it is not waited for."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
