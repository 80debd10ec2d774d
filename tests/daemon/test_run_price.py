"""What a run for who asks has to gain: it follows the purse that pays for it, within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from afresh.daemon.run_price import LEAST, MOST, RunPrice


@given(st.lists(st.tuples(st.floats(-10.0, 1e6), st.floats(1e-6, 1e6)), max_size=50))
def test_it_stays_within_bounds_whatever_comes(seconds: list[tuple[float, float]]) -> None:
    price = RunPrice()
    for left, of_refreshes in seconds:
        price.pays_again(left)
        assert LEAST * of_refreshes <= price.after(of_refreshes) <= MOST * of_refreshes


def test_a_purse_that_is_overspent_comes_back_into_balance() -> None:
    """Runs are asked for as often as they are worth the price: the price at which the purse holds is found from both
    sides."""
    for start in (0.5, 500.0):
        price, debt, spent = RunPrice(), 0.0, []
        price.after(start)
        for _ in range(400):
            price.pays_again(debt)
            runs = 2.0 * 10.0 / price.after(20.0)  # in what the purse pays a second
            debt = max(debt + runs - 1.0, 0.0)
            spent.append(runs)
        assert 0.8 < sum(spent[200:]) / 200 < 1.2
