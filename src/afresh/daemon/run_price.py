"""What a run of a thing for who asks has to gain, where applications pay from the same purse as refreshes ahead.

The price of refreshes is what the best of them gained lately. A run for who asks brings a right answer more, for sure,
so it may gain less than that: this price falls while the purse has room, and rises while it is overspent.
"""

from afresh.engine import Engine

ROOM_SECONDS, DEBT_SECONDS = 1.5, 3.0  # until the purse pays again: less is room, more is debt
FALLS, RISES = 0.93, 1.3  # a second, at most
LEAST, MOST = 1e-3, 10.0  # of the price of refreshes


def run_price_name(purse: str) -> str:
    """Under this name the store keeps it."""
    return f"run price {purse}"


class RunPrice:
    """Follows one purse; told when it pays again, and asked once a second.

    >>> price = RunPrice()
    >>> price.pays_again(5.0), round(price.after(10.0), 2), price.pays_again(0.0), round(price.after(10.0), 2)
    (None, 12.5, None, 11.62)
    """

    def __init__(self) -> None:
        self._price = 0.0
        self._left = 0.0
        self._moved = 0.0

    def pays_again(self, seconds: float) -> None:
        """The purse pays for the next refresh in so many seconds."""
        self._left = max(seconds, 0.0)

    def after(self, price: float) -> float:
        """The price for another second, while refreshes have this one."""
        now = self._price or price
        if self._left > DEBT_SECONDS:
            now *= min(1.0 + 0.05 * self._left, RISES)
        elif self._left < ROOM_SECONDS:
            now *= FALLS
        self._price = min(max(now, LEAST * price), MOST * price)
        return self._price

    def of(self, part: Engine, now: float) -> float:
        """The price of a purse now; it moves once a second."""
        if part.price > 0 and now - self._moved >= 1.0:
            self._moved = now
            self.after(part.price)
        return self._price
