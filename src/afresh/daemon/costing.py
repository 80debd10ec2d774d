"""What a crawl has found the copy to have cost; and a probe's verdict, which leaves the copy as it is."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from afresh.daemon.apart import Apart
from afresh.mirror.costs import COSTS, MOST_COST, Cost, Seen
from afresh.sources import Sources
from afresh.store import PageState
from afresh.types import Answer, Copy, Fetched, Order, Outcome, Verdict

_log = logging.getLogger("afresh.costs")

MOST_SECONDS = 10.0  # that an operator's function may take
TELL_AGAIN = 60.0
REFRESHED = (Outcome.CHANGED, Outcome.UNCHANGED)


class Costing:
    """Asks a `Cost` about every crawl of a page that has a copy.

    A function of the operator's own runs in a thread, and is given the copy; if it fails, or takes too long, the crawl
    counts as one that could not tell. While it hangs it is not asked: that would only hold the crawl up.
    """

    def __init__(
        self, cost: Cost, *, sources: Sources, copy: Callable[[str], Copy | None], importance: Callable[[str], float]
    ) -> None:
        self.cost = cost
        self._sources = sources
        self._copy, self._importance = copy, importance
        self._thread = None if cost in COSTS.values() else Apart("afresh-cost")
        self._complained = ""
        self._unknown = Counter[str]()  # costs that were not found out, by why
        self._told: dict[str, float] = {}  # when the log was told of each kind
        self._known, self._seconds, self._slowest = 0, 0.0, 0.0

    def summary(self) -> dict[str, Any]:
        """What came of asking since the start, for `afresh status`."""
        asked = self._known + self._unknown.total()
        return {
            "known": self._known,
            "unknown": dict(self._unknown.most_common()),
            "complaint": self._complained,
            "seconds": self._seconds / asked if asked and self._thread is not None else None,
            "slowest": self._slowest if self._thread is not None else None,
        }

    async def judged(
        self, order: Order, before: PageState, fetched: Fetched, verdict: Verdict, query_loss: float | None = None
    ) -> Verdict:
        """The verdict with its cost; that of a probe is `probed`. `query_loss` is what the copy cost the answers."""
        if verdict.outcome not in REFRESHED:
            return verdict
        seen = replace(self._seen(order.url, before, fetched, verdict), query_loss=query_loss)
        cost = self.cost(seen) if self._thread is None else await self._asked(seen, self._thread)
        if cost is not None and not 0.0 <= cost <= MOST_COST:
            self._complain("no cost", f"it is {cost!r}, and not a number from 0 to {MOST_COST:g}")
            cost = None
        self._known += cost is not None
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

    async def _asked(self, seen: Seen, thread: Apart) -> float | None:
        def ask() -> float:
            copy, fetched = self._copy(seen.url), seen.fetched
            if fetched.answered is Answer.SAME and copy is not None:
                fetched = replace(fetched, body=copy.body)  # which need not come again
            cost = self.cost(replace(seen, copy=copy, fetched=fetched))
            if isinstance(cost, str | bytes):
                raise TypeError(f"it gave text, {cost!r:.40}, and not a number")
            if cost is None:
                raise TypeError("it gave None, and not a number")
            return float(cost)

        began = time.monotonic()
        try:
            if thread.busy > MOST_SECONDS:
                self._complain("too slow", f"it has been at one crawl for more than {MOST_SECONDS:g} s")
                return None
            return await thread.ask(ask, MOST_SECONDS)
        except TimeoutError:
            self._complain("too slow", f"it took more than {MOST_SECONDS:g} s")
        except Exception as error:  # whatever an operator's function may raise
            self._complain("failed", f"{type(error).__name__}: {error}")
        finally:
            took = time.monotonic() - began
            self._seconds, self._slowest = self._seconds + took, max(self._slowest, took)
        return None

    def _complain(self, kind: str, what: str) -> None:
        """Count it; one line a minute in the log for each kind of complaint."""
        self._unknown[kind] += 1
        self._complained, now = what[:300], time.monotonic()
        if now - self._told.get(kind, -math.inf) >= TELL_AGAIN:
            self._told[kind] = now
            _log.warning("The cost of a crawl is not known: %s.", self._complained)

    def close(self) -> None:
        """End the thread; what hangs in it is not waited for."""
        if self._thread is not None:
            self._thread.close()
