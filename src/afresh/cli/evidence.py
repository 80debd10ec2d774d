"""What the belief about a page rests on: its own crawls, pages alike, and what it says itself."""

from typing import Any

from afresh.store import Store, understood
from afresh.types import Copy
from afresh.units import show_count, show_duration

ENOUGH_CRAWLS = 5  # of a page: then it rests on them


def said_by(kept: Store, host: str, copy: Copy | None) -> list[dict[str, Any]]:
    """The dates and lifetimes that a copy came with, and how much each weighs on this host, from 0 to 1."""
    from afresh.daemon.dates import IN_PAGE, KEPT
    from afresh.estimate.dates import DateTrust
    from afresh.estimate.lifetimes import KEPT as KEPT_LIFETIMES
    from afresh.estimate.lifetimes import Lifetimes
    from afresh.fetch.headers import lifetime
    from afresh.kinds.dates import page_dates

    if copy is None:
        return []
    trust = understood(KEPT, lambda: DateTrust.from_text(kept.get(KEPT)))
    lifetimes = understood(KEPT_LIFETIMES, lambda: Lifetimes.from_text(kept.get(KEPT_LIFETIMES)))
    found: list[dict[str, Any]] = []
    if copy.validators.last_modified:
        found.append({"what": "its Last-Modified", "said": copy.validators.last_modified, "weight": trust.of(host)})
    if "html" in copy.content_type.lower() and (dates := page_dates(copy.body)):
        found.append({"what": "the date that it writes", "said": dates[0], "weight": trust.of(IN_PAGE + host)})
    if (lasts := lifetime(copy.meta)) is not None:
        found.append({"what": "its lifetime", "said": show_duration(lasts), "weight": lifetimes.trust(host)})
    return found


def evidence(facts: dict[str, Any]) -> str:
    """What the belief about a page rests on, for people."""
    checked = facts["beliefs"]["observations"]
    if checked >= ENOUGH_CRAWLS:
        return f"{show_count(checked, 'checked interval')} of its own"
    others = "pages alike on its host" + (" and of its kind" if facts["kinds"] else "")
    text = f"{show_count(checked, 'checked interval')} of its own, so mostly what {others} are like"
    said = [f"{each['what']} (weight {each['weight']:.2f})" for each in facts["said"]]
    return text + (f"; it says: {', '.join(said)}" if said else "")
