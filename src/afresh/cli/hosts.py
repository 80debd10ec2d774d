"""The command that tells what is known of hosts: `afresh hosts`."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from json import loads
from typing import Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.reasons import counted, words
from afresh.cli.terminal import as_json, console, moment, now, plain
from afresh.store import Store, understood
from afresh.store.messages import PAUSED, Pauses
from afresh.types import HostState, Outcome
from afresh.units import show_duration, show_rate

SCHEMES = ("https", "http")
HOST_WIDTH = 28  # columns; a longer name has a line of its own
HEADING = f"{'host':{HOST_WIDTH}}   pages  copies       rate   rests  robots.txt read"


def hosts(
    name: Annotated[str, typer.Argument(help="Only hosts whose name contains this.", show_default=False)] = "",
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """List hosts with pages in the store: pages, copies, rate, rest, robots.txt, failures. Most failures come first.

    The rate is how often a host was asked recently, over about an hour. Hosts in crawl.never that have no pages here
    are listed too, with 0 pages, as they are written in the settings.

    Example: afresh hosts example.org --json
    """
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        found = (facts for facts in host_facts(kept, read.crawl.never, now()) if name in facts["host"])
        matched = False
        for facts in found:
            if not json and not matched:
                console.print(HEADING)
            matched = True
            typer.echo(as_json(facts)) if json else _print(facts)
        if not matched and not json:
            console.print(f"No host's name contains {plain(name, 50)!r}." if name else "There are no pages yet.")


def host_facts(kept: Store, never: tuple[str, ...], when: float) -> Iterator[dict[str, Any]]:
    """Hosts with most failing pages first; facts that need a lookup for each host are read one by one."""
    from afresh.frontier import HostPatterns, in_trouble

    unwanted, states = HostPatterns(never), {state.host: state for state in kept.hosts()}
    failing, gone = _failing(kept)
    pauses = understood(PAUSED, lambda: Pauses.from_text(kept.get(PAUSED)))
    listed = list(kept.pages_by_host())

    def trouble(row: tuple[str, int, int]) -> tuple[bool, int, str]:
        host, pages, _ = row
        fails = in_trouble(states.get(host) or HostState(host))
        return host in unwanted, -(pages if fails else failing.get(host, Counter()).total()), host

    for host, pages, copies in sorted(listed, key=trouble):
        state = states.get(host) or HostState(host)
        yield {
            "host": host,
            "pages": pages,
            "copies": copies,
            "never": host in unwanted,
            "paused": "everything" if pauses.everything else "host" if host in pauses.hosts else None,
            "rate": state.rate(when),
            "rests": max(state.ready - when, 0.0),
            "failures": state.failures,
            "reason": state.reason,
            "since": state.since,
            "in_trouble": in_trouble(state),
            "failing": dict(failing.get(host, Counter()).most_common()),
            "gone": gone.get(host, 0),
            "robots": _robots(kept, host),
        }
    met = {host for host, _, _ in listed}
    for pattern in never:
        if pattern not in met:
            nothing = {"pages": 0, "copies": 0, "never": True, "rate": 0.0, "rests": 0.0, "failures": 0}
            yield {
                "host": pattern,
                **nothing,
                "reason": "",
                "since": None,
                "in_trouble": False,
                "failing": {},
                "gone": 0,
                "paused": None,
                "robots": None,
            }


def _failing(kept: Store) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """How many pages of each host fail, by reason; and how many are gone."""
    failing: dict[str, Counter[str]] = {}
    gone: Counter[str] = Counter()
    for each in kept.failing():
        if each.outcome is Outcome.GONE:
            gone[each.host] += each.pages
        else:
            failing.setdefault(each.host, Counter())[each.reason] += each.pages
    return failing, gone


def _robots(kept: Store, host: str) -> dict[str, Any] | None:
    """What is known of a host's robots.txt; None if it was not requested, or is no longer known."""
    for scheme in SCHEMES:
        name = f"robots {scheme}://{host}"
        if (text := kept.get(name)) is not None:
            return understood(name, partial(_answer, text))
    return None


def _answer(text: str) -> dict[str, Any]:
    answer = loads(text)
    robots = answer.get("robots") or {}
    return {
        "read": answer.get("confirmed"),
        "failures": answer.get("failures", 0),
        "delay": robots.get("delay"),
        "sitemaps": len(robots.get("sitemaps", ())),
    }


def _print(facts: dict[str, Any]) -> None:
    host = plain(facts["host"], 260)
    if len(host) > HOST_WIDTH:
        console.print(host)
        host = ""
    rate = show_rate(facts["rate"]) if facts["rate"] else "-"
    rests = show_duration(facts["rests"]) if facts["rests"] else "-"
    robots = "never asked (crawl.never)" if facts["never"] else _robots_words(facts["robots"])
    console.print(f"{host:{HOST_WIDTH}} {facts['pages']:7,} {facts['copies']:7,} {rate:>10} {rests:>7}  {robots}")
    if facts["paused"]:
        how = f" --host {host or plain(facts['host'], 260)}" if facts["paused"] == "host" else ""
        console.print(f"    paused: `afresh resume{how}` continues")
    if facts["in_trouble"]:
        times = f" ({facts['failures']:,} in a row)" if facts["failures"] > 1 else ""
        console.print(f"    fails since {moment(facts['since'])}: {words(facts['reason'])}{times}")
    if facts["failing"]:
        console.print(f"    pages that fail: {counted(facts['failing'], 58)}")
    if facts["gone"]:
        console.print(f"    pages that are gone: {facts['gone']:,}")


def _robots_words(robots: dict[str, Any] | None) -> str:
    if robots is None:
        return "not known"
    if robots["failures"]:
        return f"failed {robots['failures']}x"
    delay = f", wants {show_duration(robots['delay'])}" if robots["delay"] else ""
    return f"{_ago(robots['read'])}{delay}"


def _ago(when: float | None) -> str:
    return "not known" if when is None else f"{show_duration(max(now() - when, 0.0))} ago"
