"""What a crawl has found the copy to have cost; and a probe's verdict, which leaves the copy as it is."""

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from afresh.daemon.apart import PATIENCE_SECONDS, Apart, Occupied
from afresh.mirror.costs import COSTS, MOST_COST, Cost, Seen
from afresh.sources import Sources
from afresh.store import PageState
from afresh.store.messages import COSTS_KEPT
from afresh.types import Answer, Copy, Fetched, Order, Outcome, Verdict

_log = logging.getLogger("afresh.costs")

MOST_SECONDS = 10.0  # that an operator's function may take
TELL_AGAIN = 60.0
MAX_HOSTS = 10_000  # that are remembered because their crawls waited for the function
BUSY = "busy"  # the kind of those that the function was not asked about
SPARED = "the function is slow, and this host has just waited for it"
MAX_PROBED = 100_000  # pages
REFRESHED = (Outcome.CHANGED, Outcome.UNCHANGED)


class Costing:
    """Asks a `Cost` about every crawl of a page that has a copy.

    A function of the operator's own runs in a thread, and is given the copy; if it fails, or takes too long, the crawl
    counts as one that could not tell. So does one that comes while the function is at other crawls: a slow function is
    asked about fewer crawls, and slows none but those that it is asked about. A host waits for it at most half of the
    time. A probe and the refresh after it are asked about both or neither, as far as can be: one without the other says
    nothing, and if pairs were lost more often than single refreshes, all gains would look smaller than they are.
    """

    def __init__(
        self,
        cost: Cost,
        *,
        sources: Sources,
        copy: Callable[[str], Copy | None],
        importance: Callable[[str], float],
        tell: Callable[[str, str], None] = lambda kind, why: None,
        name: str = "",
    ) -> None:
        """`tell` hears of costs that are not known, a few times, as (kind, why); `name` is that of the setting."""
        self.cost = cost
        self._name, self._tell = name, tell
        self._sources = sources
        self._copy, self._importance = copy, importance
        self._thread = None if cost in COSTS.values() else Apart("afresh-cost")
        self._complained = ""
        self._unknown = Counter[str]()  # costs that were not found out, by why
        self._told: dict[str, float] = {}  # when the log was told of each kind
        self._known, self._probes = 0, 0
        self._calls, self._seconds, self._slowest = 0, 0.0, 0.0  # of the function, each by itself
        self._probed: dict[str, bool] = {}  # pages whose latest probe was asked about, or not for want of a turn
        self._spared: dict[str, float] = {}  # hosts whose crawls are not to wait for it before these moments

    def summary(self) -> dict[str, Any]:
        """What came of asking since the start, for `afresh status`."""
        crawls = self._known + self._unknown.total()
        own = self._thread is not None and crawls > 0
        return {
            "known": self._known,
            "probes": self._probes,
            "unknown": dict(self._unknown.most_common()),
            "complaint": self._complained,
            "share_asked": 1.0 - self._unknown[BUSY] / crawls if own else None,
            "seconds": self._seconds / self._calls if own and self._calls else None,
            "slowest": self._slowest if own else None,
        }

    def values(self) -> dict[str, str]:
        """The same for the store, once there is something to say: `afresh status` finds it there after the end."""
        said = self.summary()
        return {COSTS_KEPT: json.dumps({**said, "cost": self._name})} if said["known"] or said["unknown"] else {}

    async def judged(
        self, order: Order, before: PageState, fetched: Fetched, verdict: Verdict, query_loss: float | None = None
    ) -> Verdict:
        """The verdict with its cost; that of a probe is `probed`. `query_loss` is what the copy cost the answers."""
        if verdict.outcome not in REFRESHED:
            return verdict
        seen = replace(self._seen(order.url, before, fetched, verdict), query_loss=query_loss)
        cost = self.cost(seen) if self._thread is None else await self._asked(seen, order, self._thread)
        if cost is not None and not 0.0 <= cost <= MOST_COST:
            self._complain("no cost", f"it is {cost!r}, and not a number from 0 to {MOST_COST:g}")
            cost = None
        self._known += cost is not None
        self._probes += cost is not None and order.probe
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

    async def _asked(self, seen: Seen, order: Order, thread: Apart) -> float | None:
        """The cost of a crawl by the operator's function; None if it did not say."""
        probed = None if order.probe else self._probed.pop(order.url, None)
        if probed is False:
            self._complain(BUSY, "the function was not asked about the probe before it")
            return None
        try:
            cost = await self._in_turn(seen, order.host, thread, patiently=probed is True)
        except Occupied as error:
            self._complain(BUSY, str(error))
            cost = None
            self._note_probe(order, asked=False)
        else:
            if cost is not None:
                self._note_probe(order, asked=True)
        return cost

    def _note_probe(self, order: Order, *, asked: bool) -> None:
        if not order.probe:
            return
        if len(self._probed) >= MAX_PROBED:
            del self._probed[next(iter(self._probed))]
        self._probed[order.url] = asked

    async def _in_turn(self, seen: Seen, host: str, thread: Apart, *, patiently: bool) -> float | None:
        def ask() -> float:
            began = time.monotonic()
            try:
                return plainly()
            finally:
                took = time.monotonic() - began
                self._calls, self._seconds = self._calls + 1, self._seconds + took
                self._slowest = max(self._slowest, took)

        def plainly() -> float:
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
            if not patiently and self._spared.get(host, -math.inf) > began:
                raise Occupied(SPARED)
            return await thread.ask(ask, MOST_SECONDS, MOST_SECONDS if patiently else PATIENCE_SECONDS)
        except Occupied:
            raise
        except TimeoutError:
            self._complain("too slow", f"it took more than {MOST_SECONDS:g} s")
        except Exception as error:  # whatever an operator's function may raise
            self._complain("failed", f"{type(error).__name__}: {error}")
        finally:
            self._spare(host, began, time.monotonic())
        return None

    def _spare(self, host: str, began: float, ended: float) -> None:
        """A host that has waited long is not to wait again for as long."""
        if ended - began <= PATIENCE_SECONDS:
            return
        if len(self._spared) >= MAX_HOSTS:
            self._spared = {each: until for each, until in self._spared.items() if until > ended}
        if len(self._spared) < MAX_HOSTS:
            self._spared[host] = 2 * ended - began

    def _complain(self, kind: str, what: str) -> None:
        """Count it, and tell of it; one line a minute in the log for each kind of complaint."""
        self._unknown[kind] += 1
        what, now = what[:300], time.monotonic()
        if kind != BUSY:
            self._complained = what
        if now - self._told.get(kind, -math.inf) >= TELL_AGAIN:
            self._told[kind] = now
            _log.warning("The cost of a crawl is not known: %s.", what)
            self._tell(kind, what)

    def close(self) -> None:
        """End the thread; what hangs in it is not waited for."""
        if self._thread is not None:
            self._thread.close()
