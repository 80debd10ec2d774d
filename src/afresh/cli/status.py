"""`afresh status`: how the collection is."""

from collections import Counter
from dataclasses import asdict
from json import loads
from typing import Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.reasons import counted
from afresh.cli.terminal import as_json, console, moment, now
from afresh.cli.wording import INDENT, calibration_lines, freshness_lines, price_lines
from afresh.config import Config
from afresh.store import Store, understood
from afresh.store.files import is_run
from afresh.store.socket_file import ask
from afresh.store.understood import number_kept
from afresh.types import Outcome
from afresh.units import show_rate, show_size


def status(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """Show how the collection is: pages, copies, crawls, and how many copies are believed to be fresh.

    Example: afresh status --json
    """
    from afresh.cli.opening import open_store, settings
    from afresh.cli.steered import steered, steered_lines

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        facts = _status(kept, now(), read) | {"sweep": read.crawl.sweep} | steered(kept, read)
    if json:
        typer.echo(as_json(facts))
        return
    running = "running" if facts["running"] else "not running"
    if facts["last_alive"] and not facts["running"]:
        running += f"; ended without a word after {moment(facts['last_alive'])}"
    console.print(f"{facts['pages']} pages, {facts['copies']} copies ({running})")
    console.print(f"crawls       {facts['crawls']}, of which {facts['changes']} found a change")
    _print_failures(facts)
    console.print(f"bodies       {show_size(facts['body_bytes'])}, stored in {show_size(facts['stored_bytes'])}")
    if facts["max_bytes"]:
        bound = f"{show_size(facts['used_bytes'])} of {show_size(facts['max_bytes'])} used (store.max_bytes)"
        console.print(f"room         {bound},\n             which takes {facts['takes']}")
    if facts["budget"] is not None:
        sweep = f"{100 * facts['sweep']:.3g} % of it for the copies left alone longest"
        console.print(f"budget       {show_rate(facts['budget'])}, {sweep}")
        if facts["politeness"]:
            console.print(f"{INDENT}{facts['politeness']}")
        for line in price_lines(facts):
            console.print(line)
    for line in (*steered_lines(facts), *freshness_lines(facts)):
        console.print(line)
    if facts["calibration"] is not None:
        for line in calibration_lines(facts["calibration"]):
            console.print(line)


def _print_failures(facts: dict[str, Any]) -> None:
    if facts["gone"]:
        console.print(f"gone         {facts['gone']:,} pages (404 or 410)")
    if failing := facts["failing"]:
        pages = sum(failing.values())
        console.print(f"failing      {pages:,} pages: {counted(failing, 54)}")
    if hosts := facts["failing_hosts"]:
        several = f"{hosts['hosts']:,} fail" if hosts["hosts"] > 1 else "1 fails"
        console.print(f"hosts        {several}: {counted(hosts['reasons'], 56)}")
        console.print("             (afresh hosts lists them)")


def _failures(kept: Store) -> dict[str, Any]:
    """Pages that are gone, pages that fail, and hosts that fail, by reason."""
    from afresh.frontier import in_trouble

    gone, failing, hosts = 0, Counter[str](), Counter[str]()
    for each in kept.failing():
        if each.outcome is Outcome.GONE:
            gone += each.pages
        else:
            failing[each.reason] += each.pages
    for host in kept.hosts():
        if in_trouble(host):
            hosts[host.reason] += 1
    together = {"hosts": hosts.total(), "reasons": dict(hosts.most_common())} if hosts else None
    return {"gone": gone, "failing": dict(failing.most_common()), "failing_hosts": together}


def _status(kept: Store, when: float, config: Config) -> dict[str, Any]:
    from afresh.cli.allowed import allowed
    from afresh.frontier import Allowance

    said = ask(config.store.path, "status") or {}  # by the runner, which knows most, and as of now
    alive, totals, space = number_kept(kept, "alive"), kept.totals(), kept.space()
    budget, price = (said.get(name) or number_kept(kept, name) for name in ("budget", "price"))
    polite = Allowance.from_text(said.get("allowance")) or allowed(kept, config)
    return {
        **asdict(totals),
        "pages": max(totals.pages, said.get("pages") or 0),  # those that are not durable yet included
        **_failures(kept),
        "used_bytes": space.used,
        "max_bytes": space.bound or None,
        "takes": space.takes,
        "running": bool(said) or is_run(config.store.path),
        "last_alive": alive or None,  # 0 once it was stopped in order
        "budget": budget,
        "politeness": polite.sentence(config.crawl.budget if budget is None else budget),
        "price": price,
        **(_said_by_runner(said, when) or _freshness(kept, when, config)),
        "calibration": said.get("calibration") or _calibration(kept.get("calibration")),
    }


def _said_by_runner(said: dict[str, Any], when: float) -> dict[str, Any] | None:
    stated = said.get("freshness")
    return stated and {
        "expected_freshness": stated["share"],
        "freshness_weighted_by": "requests" if stated["by_requests"] else "pages",
        "freshness_by": "runner",
        "freshness_age": max(when - stated["time"], 0.0),
    }


def _freshness(kept: Store, when: float, config: Config) -> dict[str, Any]:
    """How fresh copies are according to the store, what that is weighted by, and how old the figure is."""
    from afresh.cli.stated import stated_freshness

    stated, by_requests = stated_freshness(kept, when, config.importance) or (None, False)
    return {
        "expected_freshness": stated,
        "freshness_weighted_by": "requests" if by_requests else "pages",
        "freshness_by": "store",
        "freshness_age": 0.0,
    }


def _calibration(text: str | None) -> dict[str, Any] | None:
    """How far statements about copies came true, as the runner recorded it; None before the first check."""
    return understood("calibration", lambda: _summary(loads(text))) if text else None


def _summary(kept: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = kept["summary"]
    numbers = [summary[name] for name in ("statements", "brier", "bias")]
    numbers += [row[name] for row in summary["rows"] for name in ("stated", "fresh", "statements")]
    for number in numbers:
        float(number)
    return summary
