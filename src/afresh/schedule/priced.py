"""What schedulers that look at pages one by one share: a constant rate, and a price that follows what was picked."""

from afresh.schedule.pace import Pace


class PricedByPicks:
    """Spends a budget at a constant rate, and calls the value at which pages were lately picked the price."""

    def __init__(self, budget: float) -> None:
        self._pace = Pace(budget)
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

    def _learn_price(self, value: float, pages: int) -> None:
        """Follow the picked values, over about as many picks as a quarter of the pages take."""
        self._picks += 1
        self._price += (value - self._price) / min(self._picks, max(20, pages // 4))
