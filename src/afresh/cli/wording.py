"""How numbers are put for people: what each of them means stands beside it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from afresh.cli.terminal import labelled
from afresh.units import show_count, show_duration

if TYPE_CHECKING:
    from afresh.engine import FreshnessParts

NOTICED = 0.01  # a probability that differs by less is printed alike, or nearly so
INDENT = " " * 13

# What holds a page without a copy back, in words that follow a number.
HELD = {
    "gone": "gone",
    "forbidden": "forbidden by robots.txt",
    "refused": "refused",
    "moved": "moved",
    "failing": "failing",
    "resting": "on hosts that fail",
    "paused": "paused",
    "never": "never asked (crawl.never)",
}


def freshness_lines(facts: dict[str, Any]) -> Iterator[str]:
    """What share of requests finds a fresh copy: what it is weighted by, of which moment it is, and who says so."""
    if facts["expected_freshness"] is None:
        return
    by_requests = facts["freshness_weighted_by"] == "requests"
    what = "requests" if by_requests else "pages"
    yield f"freshness    {facts['expected_freshness']:.1%} of {what} have a fresh copy now (believed)"
    yield INDENT + (
        "pages count by how much they are wanted: requests, importance, kinds"
        if by_requests
        else "each page counts the same: no requests were reported"
    )
    age = show_duration(max(facts["freshness_age"], 0.0))
    who = "the workers" if facts["workers"] else "the runner"
    yield INDENT + (
        f"as {who} reckoned {'just now' if facts['freshness_age'] < 1 else f'{age} ago'}"
        if facts["freshness_by"] == "runner"
        else "as reckoned now from the store: who runs on it does not answer yet"
        if facts["running"]
        else "as reckoned now from the store, since nothing runs"
    )


def gain_unit(*, by_requests: bool) -> str:
    """What values and prices count. Where no requests were reported each page counts as if it had one a second."""
    return "fresh requests" if by_requests else "seconds of a fresh copy"


def price_lines(facts: dict[str, Any]) -> Iterator[str]:
    """What a crawl must gain, and why that is not so while pages have no copy that a runner may crawl."""
    held = facts["held_without_copy"]
    without = facts["pages"] - facts["copies"] - sum(held.values()) if facts["running"] else 0
    if facts["price"] is None:
        go = f"{show_count(without, 'page')} without a copy {'goes' if without == 1 else 'go'} first"
        said = f"not known yet: {go}" if without > 0 else "not known yet"
        yield f"price        {said}"
        return
    unit = gain_unit(by_requests=facts["freshness_weighted_by"] == "requests")
    if facts["budget_spare"]:
        said = f"{facts['price']:.4g}: {unit} that refreshes gained lately, on average;"
        yield labelled("price", f"{said} less is enough, since hosts take less than the budget", len(INDENT))
    else:
        yield f"price        {facts['price']:.4g}: {unit} that a refresh must gain"
    if without > 0:
        has, goes = ("1 page has", "it goes") if without == 1 else (f"{show_count(without, 'page')} have", "they go")
        first = f"{goes} first where hosts are ready"
        if facts["waiting"]:
            first = f"{facts['waiting']:,} wait for their turns, half of the orders"
        yield labelled("", f"{has} no copy; {first}", len(INDENT))


def held_lines(held: Mapping[str, int]) -> Iterator[str]:
    """Pages without a copy that are not crawled soon, and why."""
    if not held:
        return
    many = sum(held.values())
    has = "1 page without a copy is" if many == 1 else f"{show_count(many, 'page')} without a copy are"
    why = ", ".join(f"{held[kind]:,} {words}" for kind, words in HELD.items() if kind in held)
    yield labelled("", f"{has} not crawled soon: {why}", len(INDENT))


def calibration_lines(said: dict[str, Any]) -> Iterator[str]:
    """How far statements came true, and what the two figures mean."""
    bias = said["bias"]
    tells = "fresher than was said" if bias < 0 else "staler than was said" if bias > 0 else "as fresh as was said"
    yield f"calibration  of {show_count(said['statements'], 'statement')} that crawls have checked:"
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
    'By rate and age alone: 0.50. The rate is uncertain: 0.58. 2 signals came: 0.29. By changes on its site: 0.31.'
    >>> why_fresh(FreshnessParts(0.89, 0.9, 0.9, 0.54, 0.54), 1)
    'By rate and age alone: 0.89. Some changes send a signal, and if none had come: 0.90. 1 signal came: 0.54.'
    """
    none = (
        "Some changes send a signal, and if none had come" if signals else "No signal came, and some changes send one"
    )
    steps = (
        (none, parts.by_silence),
        ("The rate is uncertain", parts.by_all_rates),
        (show_count(signals, "signal came", "signals came"), parts.with_signals),
        ("By changes on its site", parts.with_siblings),
    )
    said, last = [f"By rate and age alone: {parts.by_rate:.2f}."], parts.by_rate
    for reason, probability in steps:
        if abs(probability - last) >= NOTICED:
            said.append(f"{reason}: {probability:.2f}.")
            last = probability
    return " ".join(said) if len(said) > 1 else ""


def search_lines(facts: Mapping[str, Any] | None) -> Iterator[str]:
    """How good answers to searches are; nothing where nobody follows them."""
    if facts is None or not (facts["queries"] or facts["report"]):
        return
    measured = facts["quality"].get("rbo")
    against = "your report" if facts["report"] else f"the first {facts['depth']} results, against fresh copies"
    if measured is None or not facts["judged"]:
        yield "searches     no crawl has shown yet how good the answers are"
    else:
        error = f" ± {100 * measured['error']:.1g}" if measured["error"] else ""
        yield f"searches     {100 * measured['mean']:.2f}{error} % right ({against})"
        names = {"overlap": "overlap", "ndcg": "gain"}
        others = (f"{names[name]} {100 * facts['quality'][name]['mean']:.2f} %" for name in names)
        crawls = show_count(facts["judged"], "crawl")
        yield f"{INDENT}{', '.join(others)}; by {crawls} of the recent past"
    if not facts["report"]:
        steers = ", which decide what is refreshed" if facts["steers"] else ""
        yield f"{INDENT}{show_count(facts['queries'], 'frequent query', 'frequent queries')}{steers}"


def found_line(found: Mapping[str, float], rate: float | None = None) -> str:
    """What a crawl has found, which bounds that has reached, and how many links the cache of addresses answered.

    >>> found_line({"known": 300, "waiting": 9, "known_at_most": 300, "full_at": 50})
    'known: 300 (no more than 300 are), waiting: 9 (at most 50 are held)'
    """
    looked, hits = found.get("looked_up", 0), found.get("cache_hits", 0)
    share = f", {100 * hits / looked:.0f} % of {looked:,.0f} links since the start by the cache" if looked else ""
    speed = f" ({rate:,.0f}/s)" if rate else ""
    if most := found.get("known_at_most"):
        speed = f" (no more than {most:,.0f} are)"
    held = f" (at most {most:,.0f} are held)" if (most := found.get("full_at")) else ""
    return f"known: {found.get('known', 0):,.0f}{speed}, waiting: {found.get('waiting', 0):,.0f}{held}{share}"
