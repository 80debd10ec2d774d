"""What `afresh status` says about an operator's wishes: pauses, budgets of hosts and hours, what waits in the inbox."""

from typing import Any

from afresh.cli.terminal import plain
from afresh.config import Config
from afresh.store import Sqlite, understood
from afresh.store.messages import PAUSED, Pauses
from afresh.store.socket_file import ask
from afresh.units import show_rate, show_size

SHOWN = 5  # hosts


def steered(kept: Sqlite, config: Config) -> dict[str, Any]:
    """Facts from the runner, or from the store and the settings if none runs."""
    pauses = understood(PAUSED, lambda: Pauses.from_text(kept.get(PAUSED)))
    given = [site for site in config.site if site.budget is not None]
    facts: dict[str, Any] = {
        "paused": {"everything": pauses.everything, "hosts": sorted(pauses.hosts)},
        "host_budgets": [{"host": site.host, "budget": site.budget, "price": None} for site in given],
        "budget_hours": [{"hours": hours.text, "budget": budget} for hours, budget in config.crawl.budget_hours],
    }
    answer = ask(kept.path, "status", seconds=1.0)
    return facts | {name: answer[name] for name in facts if name in answer} if isinstance(answer, dict) else facts


def steered_lines(facts: dict[str, Any]) -> list[str]:
    """The same for people; no line where there is nothing to say."""
    lines = []
    if facts["paused"]["everything"]:
        lines.append("paused       everything: `afresh resume` goes on")
    if hosts := facts["paused"]["hosts"]:
        lines.append(f"paused       {_some([plain(host, 60) for host in hosts])}")
    lines += [f"at hours     {each['hours']}: {show_rate(each['budget'])}" for each in facts["budget_hours"]]
    for each in facts["host_budgets"][:SHOWN]:
        price = f", price {each['price']:.4g}" if each["price"] else ""
        lines.append(f"host budget  {plain(each['host'], 60)}: {show_rate(each['budget'])}{price}")
    if len(facts["host_budgets"]) > SHOWN:
        lines.append(f"             and {len(facts['host_budgets']) - SHOWN} more hosts")
    if facts["inbox_entries"]:
        waits = f"{facts['inbox_entries']:,} entries ({show_size(facts['inbox_bytes'])}) wait for `afresh run`"
        lines.append(f"inbox        {waits}")
    return lines


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
