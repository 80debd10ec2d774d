"""What schedulers that look at pages one by one share: a constant rate, and a price that follows what was picked.

A page without a copy gains more than almost any refresh. While such pages are left they are picked, but they say
nothing about the value at which copies are refreshed, before or after: the price does not follow them.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from afresh.checks import number
from afresh.schedule.arguments import host_budget, host_number
from afresh.schedule.pace import Pace

DEFAULT_SWEEP = 0.02  # of the picks
MANY_PICKS = 1 << 40
BURST = 3.0  # a host's budget is met on average; this many crawls may come early if others were late


def picks_between_sweeps(share: float) -> int:
    """Every how many picks one goes to the copy that was left alone longest; 0: none does.

    >>> picks_between_sweeps(0.1), picks_between_sweeps(0.0)
    (10, 0)
    """
    if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise ValueError(f"sweep must lie between 0 and 1, not {share!r:.40}")
    return min(round(1.0 / max(share, 1e-18)), MANY_PICKS) if share > 0.0 else 0


def left_alone_longest(
    slots: NDArray[np.int64],
    current: NDArray[np.floating],
    request_rate: NDArray[np.floating],
    now: float,
    *,
    by_requests: bool,
) -> int:
    """The page that was left alone longest, by the clock or in the interval that its request rate alone would give it.

    Among pages that change equally seldom the best interval goes with one over the square root of the request rate.
    The two measures take turns: by the clock every page has its turn, however many requests another one is said to get.
    A page without a copy goes first. Otherwise it would never be crawled where its host is free only at such moments.
    """
    age = now - current[slots]
    return int(slots[np.argmax(age * np.sqrt(request_rate[slots]) if by_requests else age)])


@dataclass(slots=True)
class _Purse:
    """The budget of one host."""

    budget: float
    spent_until: float = -inf
    price: float = 0.0  # the value at which its pages were lately picked
    picks: int = 0

    def spend(self, cost: float, value: float | None, now: float) -> None:
        """A page of the host was picked, for its value unless that is None."""
        step = cost / self.budget
        # It runs some steps behind, so that a token that came while nothing was due is not lost.
        self.spent_until = max(self.spent_until, now - BURST * step) + step
        if value is not None:
            self.picks += 1
            self.price += (value - self.price) / min(self.picks, 20)


class PricedByPicks:
    """Spends a budget at a constant rate, and calls the value at which pages were lately picked the price."""

    def __init__(self, budget: float, sweep: float = 0.0) -> None:
        self._purses: dict[int, _Purse] = {}  # of hosts that have a budget of their own
        self._pace = Pace(budget)
        self._sweep_every = picks_between_sweeps(sweep)
        self._picks_to_sweep = self._sweep_every
        self._by_requests = False  # whether the last sweep counted requests
        self._price = 0.0
        self._picks = 0

    @property
    def budget(self) -> float:
        """Crawls (or cost) per second; may be set while running."""
        return self._pace.budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._pace.budget = budget

    def spend(self, now: float) -> float | None:
        """Take a token for what somebody fetches beside our orders: see `Pace.spend`."""
        return self._pace.spend(now)

    @property
    def price(self) -> float:
        """The value at which pages have lately been picked: what a crawl must be worth to be chosen."""
        return self._price

    @price.setter
    def price(self, price: float) -> None:
        self._price, self._picks = price, max(self._picks, 1)

    def resume_price(self, price: float) -> None:
        """Go on with the price of before a restart: it was learned from very many picks."""
        price = number("price", price)
        self._price, self._picks = price, MANY_PICKS

    def _after(self, first: int, due: float, now: float) -> float:
        """When a page is due if this many first crawls go before it."""
        return max(due, now + first / self.budget) if first and self.budget > 0 else due

    def host_price(self, host: int) -> float:
        """What a crawl of a host with a budget of its own has lately had to gain; 0: the common price holds."""
        host = host_number(host)
        purse = self._purses.get(host)
        return purse.price if purse is not None and purse.price > self._price else 0.0

    def _set_purse(self, host: int, budget: float) -> None:
        budget = host_budget(budget)
        if budget == inf:
            self._purses.pop(host, None)
        elif host in self._purses:
            self._purses[host].budget = budget
        else:
            self._purses[host] = _Purse(budget)

    def _spent_until(self, host: int) -> float:
        purse = self._purses.get(host)
        return -inf if purse is None else purse.spent_until

    def _purse_budget(self, host: int) -> float:
        """Cost per second that a host has for itself; infinity: it has no budget of its own."""
        purse = self._purses.get(host)
        return inf if purse is None else purse.budget

    def _spend(self, host: int, cost: float, value: float | None, now: float) -> None:
        if (purse := self._purses.get(host)) is not None:
            purse.spend(cost, value, now)

    def _sweeps_now(self) -> bool:
        """Whether this pick goes to the copy that was left alone longest."""
        if not self._sweep_every:
            return False
        self._picks_to_sweep -= 1
        if self._picks_to_sweep > 0:
            return False
        self._picks_to_sweep = self._sweep_every
        self._by_requests = not self._by_requests
        return True

    def _learn_price(self, value: float, pages: int) -> None:
        """Follow the picked values, over about as many picks as a quarter of the pages take."""
        self._picks += 1
        self._price += (value - self._price) / min(self._picks, max(20, pages // 4))


def require_seconds(seconds: float, least: float) -> float:
    """A limit on the time between two crawls, or what is wrong with it."""
    return number("seconds", seconds, least=least, infinite=least > 0.0)
