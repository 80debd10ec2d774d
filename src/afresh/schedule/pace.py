"""The constant rate: when the budget has a token, and that no second ever holds more than its share."""

from collections import deque
from math import ceil, inf, ulp

from afresh.checks import number
from afresh.errors import ConfigError
from afresh.types import Wait

MAX_BUDGET, MIN_BUDGET = 1e9, 1e-12  # crawls a second
# Ticks missed by less than this (a timer that fires late) are caught up; longer gaps are lost, not saved up.
CATCH_UP = 0.2
MAX_DEBT_SECONDS = 600.0  # of the budget that may have been overspent, and is made up for


class Pace:
    """Hands out one token every 1/budget seconds, and never a burst.

    Two rules together. Tokens fall due on a grid with steps of cost/budget, and one that could not be taken is lost
    rather than saved, but for the little lateness of a timer. And of any n = ⌈budget⌉ + 1 tokens, the first and the
    last are at least n − 1 steps apart, so that no window of one second ever holds more than ⌈budget⌉ crawls.

    >>> pace = Pace(2.0)
    >>> pace.take(0.0)
    >>> pace.wait(0.1), pace.wait(0.5)
    (Wait(until=0.5, reason='budget'), None)

    Where crawls are not `counted`, because the budget is of something else that each costs (seconds, bytes), the first
    rule alone holds.
    """

    def __init__(self, budget: float, *, counted: bool = True) -> None:
        self.counted = counted
        self._due = -inf
        self._taken: deque[float] = deque()
        self._reckoned_by = 0.0  # the budget that `_due` follows from
        self.budget = budget

    @property
    def budget(self) -> float:
        """Tokens (or cost) per second."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._budget = budget = number("budget", budget, most=MAX_BUDGET)
        if 0.0 < budget < MIN_BUDGET:
            raise ConfigError(
                f"budget must be 0 or at least {MIN_BUDGET:g} a second, not {budget!r}.", hint="0 crawls nothing."
            )
        if budget > 0:
            before, self._reckoned_by = self._reckoned_by, budget
            if before > 0 and self._taken and self._due > self._taken[-1]:
                # What is left of a step that began at a small budget would take long at a large one.
                self._due = self._taken[-1] + (self._due - self._taken[-1]) * (before / budget)
        self._window = max(1, ceil(budget))
        while len(self._taken) > self._window:
            self._taken.popleft()

    def ready_at(self) -> float:
        """The earliest moment at which a token can be taken."""
        if self._budget == 0:
            return inf
        if not self.counted or len(self._taken) < self._window:
            return self._due
        return max(self._due, self._taken[0] + self._window / self._budget)

    def wait(self, now: float) -> Wait | None:
        """None if a token can be taken now, else when to come back."""
        ready = self.ready_at()
        # A caller that slept exactly until `ready` must not fail for the rounding of a sum of floats: forgive a few
        # units in the last place of the clock, and a millionth of a step.
        if ready == inf or now + 4 * ulp(now) + 1e-6 / self._budget < ready:
            return Wait(ready, "budget")
        return None

    def take(self, now: float, cost: float = 1.0) -> None:
        """Take the token that `wait` said is there."""
        now = max(now, self.ready_at())
        on_grid = now - self._due <= CATCH_UP
        self._due = (self._due if on_grid else now) + cost / self._budget
        self._taken.append(now)
        if len(self._taken) > self._window:
            self._taken.popleft()

    def settle(self, more: float, now: float, most: float = MAX_DEBT_SECONDS) -> None:
        """What was taken has cost so much more than was reckoned, or so much less if it is below 0.

        Nobody waits for longer than `most` seconds because of it.
        """
        if self._budget > 0 and (more > 0 or self._due > -inf):
            begins = max(self._due, now) if more > 0 else self._due
            self._due = min(begins + more / self._budget, max(self._due, now + most))

    def spend(self, now: float) -> float | None:
        """Take a token for what somebody fetches beside our orders; in how many seconds it is due.

        None if that is more than a step away: then others have spent before.
        """
        wait = self.ready_at() - now
        if not self._budget or wait > 1.0 / self._budget:
            return None
        self.take(now)
        return max(wait, 0.0)

    def give_back(self, cost: float = 1.0) -> None:
        """The token that was taken last was not spent: somebody else may have it."""
        self._due -= cost / self._budget
        self._taken.pop()

    def state(self) -> list[float]:
        """Everything that is to be remembered, as numbers."""
        return [self._budget, self._due, *self._taken]

    @classmethod
    def restore(cls, state: list[float]) -> "Pace":
        """The pace with that state."""
        pace = cls(state[0])
        pace._due = state[1]
        pace._taken.extend(state[2:])
        return pace
