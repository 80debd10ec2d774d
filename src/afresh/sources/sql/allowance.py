"""What an application may spend on queries that it could do without: a bound of its own, whatever the runner says."""

import threading
import time
from collections.abc import Callable

from afresh.types import Spent
from afresh.units import Budget

SAVED_SECONDS = 10.0  # of the budget that may be saved up
DEBT_SECONDS = 60.0  # of the budget that runs which could not be done without may take in advance


class Allowance:
    """One budget in one process.

    Runs under way count with what they are expected to cost. Who has no result at all runs the query in any case; that
    is paid out of the same budget.

    >>> now = 0.0
    >>> allowance = Allowance(Budget(0.2, "seconds"), lambda: now)
    >>> allowance.begins(1.5), allowance.is_left, allowance.ends(1.5, Spent(2.5)), allowance.is_left
    (None, True, None, False)
    >>> now = 3.0
    >>> allowance.is_left
    True
    """

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._clock, self._lock = clock, threading.Lock()
        self._left, self._seen = SAVED_SECONDS * budget, clock()
        self._under_way = 0.0

    @property
    def is_left(self) -> bool:
        """Whether a query may be run that need not be."""
        with self._lock:
            self._fill()
            return self._left - self._under_way > 0.0

    def begins(self, expected: float) -> None:
        """A run begins, which may cost so much."""
        with self._lock:
            self._under_way += expected

    def ends(self, expected: float, spent: Spent) -> None:
        """The same run has cost this."""
        with self._lock:
            self._fill()
            self._under_way -= expected
            cost = float(getattr(spent, self.budget.unit))
            self._left = max(self._left - cost, -DEBT_SECONDS * self.budget)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._left + max(now - self._seen, 0.0) * self.budget, SAVED_SECONDS * self.budget)
        self._seen = now
