"""How numbers are put for people: what each of them means stands beside it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from afresh.units import show_duration

if TYPE_CHECKING:
    from afresh.engine import FreshnessParts

NOTICED = 0.01  # a probability that differs by less is printed alike, or nearly so
INDENT = " " * 13


def freshness_lines(facts: dict[str, Any]) -> Iterator[str]:
    """What share of requests finds a fresh copy: what it is weighted by, of which moment it is, and who says so."""
    if facts["expected_freshness"] is None:
        return
    by_requests = facts["freshness_weighted_by"] == "requests"
    what = "requests" if by_requests else "pages"
    yield f"freshness    {facts['expected_freshness']:.1%} of {what} have a fresh copy now (believed)"
    yield INDENT + (
        "pages count by how often they are requested"
        if by_requests
        else "each page counts the same: no requests were reported"
    )
    age = show_duration(max(facts["freshness_age"], 0.0))
    yield INDENT + (
        f"as the runner reckoned {'just now' if facts['freshness_age'] < 1 else f'{age} ago'}"
        if facts["freshness_by"] == "runner"
        else "as reckoned now from the store; the runner does not answer, or not yet"
        if facts["running"]
        else "as reckoned now from the store, since nothing runs"
    )


def price_lines(facts: dict[str, Any]) -> Iterator[str]:
    """What a crawl must gain, and why that is not so while pages have no copy."""
    without = facts["pages"] - facts["copies"]
    if facts["price"] is None:
        said = f"not known yet: {without} pages without a copy go first" if without else "not known yet"
        yield f"price        {said}"
        return
    yield f"price        {facts['price']:.4g}: fresh requests that a refresh must gain"
    if without:
        yield f"{INDENT}{without} pages have no copy; their first crawls go before refreshes"


def calibration_lines(said: dict[str, Any]) -> Iterator[str]:
    """How far statements came true, and what the two figures mean."""
    bias = said["bias"]
    tells = "fresher than was said" if bias < 0 else "staler than was said" if bias > 0 else "as fresh as was said"
    yield f"calibration  of {said['statements']:,.0f} statements that crawls have checked:"
    yield f"{INDENT}bias {bias:+.3f}: copies turned out {tells}, by {100 * abs(bias):.1f} pts"
    yield f"{INDENT}Brier score {said['brier']:.3f}: mean squared error; 0 is perfect, 0.25 chance"
    yield f"{INDENT}said to be fresh    was fresh    statements"
    for row in said["rows"]:
        yield f"{INDENT}{row['stated']:16.1%} {row['fresh']:12.1%} {row['statements']:13,.0f}"


def why_fresh(parts: "FreshnessParts", signals: int) -> str:
    """What a probability follows from besides rate and age; "" if from these alone.

    >>> from afresh.engine import FreshnessParts
    >>> why_fresh(FreshnessParts(0.5, 0.5, 0.5, 0.5, 0.5), 0)
    ''
    >>> why_fresh(FreshnessParts(0.5, 0.5, 0.58, 0.29, 0.31), 2)
    'by rate and age alone 0.50; the rate is uncertain: 0.58; 2 signals: 0.29; changes of other pages of its site: 0.31'
    """
    steps = (
        ("no signal came, and changes send some", parts.by_silence),
        ("the rate is uncertain", parts.by_all_rates),
        (f"{signals} signal{'s' if signals != 1 else ''}", parts.with_signals),
        ("changes of other pages of its site", parts.with_siblings),
    )
    said, last = [f"by rate and age alone {parts.by_rate:.2f}"], parts.by_rate
    for reason, probability in steps:
        if abs(probability - last) >= NOTICED:
            said.append(f"{reason}: {probability:.2f}")
            last = probability
    return "; ".join(said) if len(said) > 1 else ""
