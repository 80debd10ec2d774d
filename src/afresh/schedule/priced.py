"""What schedulers that look at pages one by one share: a constant rate, and a price that follows what was picked.

A page without a copy gains more than almost any refresh. While such pages are left they are picked, but they say
nothing about the value at which copies are refreshed, before or after: the price does not follow them.
"""

from afresh.schedule.pace import Pace

DEFAULT_SWEEP = 0.02  # of the picks
MANY_PICKS = 1 << 40


def picks_between_sweeps(share: float) -> int:
    """Every how many picks one goes to the copy that was left alone longest; 0: none does.

    >>> picks_between_sweeps(0.02), picks_between_sweeps(0.0)
    (50, 0)
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"sweep must lie between 0 and 1, not {share}")
    return round(1.0 / share) if share > 0.0 else 0


class PricedByPicks:
    """Spends a budget at a constant rate, and calls the value at which pages were lately picked the price."""

    def __init__(self, budget: float, sweep: float = 0.0) -> None:
        self._pace = Pace(budget)
        self._sweep_every = picks_between_sweeps(sweep)
        self._picks_to_sweep = self._sweep_every
        self._price = 0.0
        self._picks = 0

    @property
    def budget(self) -> float:
        """Crawls (or cost) per second; may be set while running."""
        return self._pace.budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._pace.budget = budget

    @property
    def price(self) -> float:
        """The value at which pages have lately been picked: what a crawl must be worth to be chosen."""
        return self._price

    @price.setter
    def price(self, price: float) -> None:
        self._price, self._picks = price, max(self._picks, 1)

    def resume_price(self, price: float) -> None:
        """Go on with the price of before a restart: it was learned from very many picks."""
        self._price, self._picks = price, MANY_PICKS

    def _after(self, first: int, due: float, now: float) -> float:
        """When a page is due that so many first crawls go before."""
        return max(due, now + first / self.budget) if first and self.budget > 0 else due

    def _sweeps_now(self) -> bool:
        """Whether this pick goes to the copy that was left alone longest."""
        if not self._sweep_every:
            return False
        self._picks_to_sweep -= 1
        if self._picks_to_sweep > 0:
            return False
        self._picks_to_sweep = self._sweep_every
        return True

    def _learn_price(self, value: float, pages: int) -> None:
        """Follow the picked values, over about as many picks as a quarter of the pages take."""
        self._picks += 1
        self._price += (value - self._price) / min(self._picks, max(20, pages // 4))
