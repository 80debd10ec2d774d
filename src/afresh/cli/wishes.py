"""What an operator wants of one page, by itself or by the rules of its site, and what that means for its next crawl."""

from typing import Any

from afresh.config import Config
from afresh.store import Store, understood
from afresh.store.messages import PAUSED, Pauses
from afresh.types import Page
from afresh.units import show_duration, show_importance

# What holds a page back, and how that ends.
_ENDS = {
    "everything": "Everything is paused: `afresh resume` continues.",
    "host": "Its host is paused: `afresh resume --host {host}` continues.",
    "page": "It is paused by itself: `afresh resume {url}` continues.",
    "hours": "It is outside of its hours ({hours}), and waits for them.",
}


def wishes_of(kept: Store, config: Config, page: Page, when: float) -> dict[str, Any]:
    """What is said of a page, and what holds it back now."""
    from afresh.cli.build import rules_for
    from afresh.hours import hours

    page = rules_for(config).applied(page)
    pauses = understood(PAUSED, lambda: Pauses.from_text(kept.get(PAUSED)))
    holds = {
        "everything": pauses.everything,
        "host": page.host in pauses.hosts,
        "page": page.paused,
        "hours": bool(page.hours) and not hours(page.hours).are_open(when),
    }
    return {
        "importance": show_importance(page.importance) if page.importance else None,
        "shortest": page.shortest,
        "longest": page.longest,
        "hours": page.hours or None,
        "held_by": [name for name, holds_it in holds.items() if holds_it],
    }


def held(facts: dict[str, Any]) -> str:
    """Why a page is not crawled whatever it is worth, and what ends that; "" if nothing holds it back."""
    wishes = facts["wishes"]
    said = {"host": facts["url"].split("/")[2], "url": facts["url"], "hours": wishes["hours"]}
    return " ".join(_ENDS[name].format(**said) for name in wishes["held_by"])


def bounded(due: float, wishes: dict[str, Any], checked: float | None) -> float:
    """When a page is due, within the intervals that are wanted."""
    if checked is None:
        return due
    if wishes["longest"] is not None:
        due = min(due, checked + wishes["longest"])
    if wishes["shortest"] is not None:
        due = max(due, checked + wishes["shortest"])
    return due


def told(wishes: dict[str, Any]) -> str:
    """All of it in a line; "" if nothing is said."""
    parts = []
    if wishes["importance"]:
        parts.append(f"importance {wishes['importance']}")
    if wishes["shortest"]:
        parts.append(f"not crawled again within {show_duration(wishes['shortest'])}")
    if wishes["longest"]:
        parts.append(f"crawled at least every {show_duration(wishes['longest'])}")
    if wishes["hours"]:
        parts.append(f"crawled only {wishes['hours']}")
    return "; ".join(parts)
