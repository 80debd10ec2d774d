"""What `afresh status` says about an operator's wishes: pauses, budgets of hosts and hours, what waits in the inbox."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from afresh.cli.terminal import labelled, plain
from afresh.config import Config
from afresh.store import LastingStore, understood
from afresh.store.messages import PAUSED, Pauses
from afresh.units import show_count, show_rate, show_size

SHOWN = 5  # hosts
MAX_LOOKED_AT = 100_000  # pages that are looked at one by one, which takes a second


def paused_pages(kept: LastingStore) -> int | None:
    """How many pages are paused by their own URLs; None if there are too many pages to look at each."""
    if kept.totals().pages > MAX_LOOKED_AT:
        return None
    return sum(state.page.paused for _, state in kept.states())


def outside_hours(kept: LastingStore, config: Config, when: float) -> int | None:
    """How many pages wait for their hours; None if there are too many pages to look at each."""
    if kept.totals().pages > MAX_LOOKED_AT:
        return None
    from afresh.cli.build import rules_for
    from afresh.hours import hours

    rules = rules_for(config)
    texts = Counter(rules.applied(state.page).hours for _, state in kept.states())
    return sum(pages for text, pages in texts.items() if text and not hours(text).are_open(when))


def steered(kept: LastingStore, config: Config, said: Mapping[str, Any], when: float) -> dict[str, Any]:
    """Facts that the runner said, or from the store and the settings if none runs."""
    pauses = understood(PAUSED, lambda: Pauses.from_text(kept.get(PAUSED)))
    given = [site for site in config.site if site.budget is not None]
    facts: dict[str, Any] = {
        "paused": {
            "everything": pauses.everything,
            "hosts": sorted(pauses.hosts),
            "pages": paused_pages(kept) if not said else None,
        },
        "outside_hours": outside_hours(kept, config, when) if not said else None,
        "host_budgets": [
            {"host": site.host, "path": site.path, "budget": site.budget, "price": None} for site in given
        ],
        "budget_hours": [{"hours": hours.text, "budget": budget} for hours, budget in config.crawl.budget_hours],
    }
    return facts | {name: said[name] for name in facts if name in said}


def steered_lines(facts: dict[str, Any]) -> list[str]:
    """The same for people; no line where there is nothing to say."""
    lines = []
    if facts["paused"]["everything"]:
        lines.append("paused       everything: `afresh resume` goes on")
    if hosts := facts["paused"]["hosts"]:
        lines.append(labelled("paused", _some([plain(host, 60) for host in hosts]), 13))
    if pages := facts["paused"]["pages"]:
        lines.append(f"paused       {show_count(pages, 'page')} by URL: `afresh resume URL` goes on")
    if pages := facts["outside_hours"]:
        lines.append(
            f"hours        {show_count(pages, 'page is', 'pages are')} outside {'its' if pages == 1 else 'their'} hours"
        )
    lines += [f"at hours     {each['hours']}: {show_rate(each['budget'])}" for each in facts["budget_hours"]]
    for each in facts["host_budgets"][:SHOWN]:
        price = f", price {each['price']:.4g}" if each["price"] else ""
        waiting = f", {show_count(each['waiting'], 'page')} wait" if each.get("waiting") else ""
        label = "path budget" if each["path"] else "host budget"
        where = plain(each["host"] + each["path"], 60)
        lines.append(f"{label}  {where}: {show_rate(each['budget'])}{price}{waiting}")
    if len(facts["host_budgets"]) > SHOWN:
        lines.append(f"             and {len(facts['host_budgets']) - SHOWN} more")
    if facts["inbox_entries"]:
        entries = show_count(facts["inbox_entries"], "entry", "entries")
        wait = "waits" if facts["inbox_entries"] == 1 else "wait"
        waits = f"{entries} ({show_size(facts['inbox_bytes'])}) {wait} for `afresh run`"
        lines.append(f"inbox        {waits}")
    return lines


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
