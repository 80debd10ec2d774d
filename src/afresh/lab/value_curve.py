"""Figure 6: the crawl value of a page, and what is left of it when its sums are cut off early."""

import numpy as np

from afresh.lab.base import Sample
from afresh.value.compiled import compiled
from afresh.value.kernels import page_rates, page_value, page_value_in_terms

CHANGE_RATE, RECALL, FALSE_RATE = 0.5, 0.5, 0.3
LONGEST = 12.0
TERMS = (1, 2, 3)


@compiled
def _curve(ages: np.ndarray, terms: int) -> np.ndarray:
    silent_rate, signal_rate, weight = page_rates(CHANGE_RATE, RECALL, FALSE_RATE)
    values = np.empty(ages.size)
    for k in range(ages.size):
        x = silent_rate * ages[k]
        if terms == 0:
            values[k] = page_value(x, silent_rate, signal_rate, weight)
        else:
            values[k] = page_value_in_terms(x, silent_rate, signal_rate, weight, terms)
    return values


def value_curve_trial(pages: int, seed: int) -> dict[str, Sample]:
    """The exact value over the effective age, and 1, 2, 3 terms of it; nothing is random here."""
    ages = np.linspace(0.0, LONGEST, 241)
    exact = _curve(ages, 0)
    most = 1.0 / CHANGE_RATE
    found = {"exact": Sample(1.0, 1.0, 0.0, curves={"x": ages, "y": exact, "most": np.array([most])})}
    for terms in TERMS:
        cut = _curve(ages, terms)
        share = float(np.mean(cut[1:] / exact[1:]))
        name = f"{terms} term{'s' if terms > 1 else ''}"
        found[name] = Sample(share, 1.0, 0.0, curves={"x": ages, "y": cut})
    return found
