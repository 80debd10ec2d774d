"""The command that tells what is known of hosts: `afresh hosts`."""

from collections.abc import Iterator
from functools import partial
from json import loads
from typing import Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, now, plain
from afresh.store import Store, understood
from afresh.types import HostState
from afresh.units import show_duration

SCHEMES = ("https", "http")


def hosts(
    name: Annotated[str, typer.Argument(help="Only hosts whose name holds this.", show_default=False)] = "",
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Hosts with pages in the store: how many, what robots.txt says, how long they rest, and which are never asked.

    Hosts that crawl.never names without having pages here are listed too, with 0 pages, as they stand in the settings.

    Example: afresh hosts example.org --json
    """
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        for facts in _hosts(kept, read.crawl.never, now()):
            if name in facts["host"]:
                typer.echo(as_json(facts)) if json else _print(facts)


def _hosts(kept: Store, never: tuple[str, ...], when: float) -> Iterator[dict[str, Any]]:
    """One after the other: a store may have very many."""
    from afresh.frontier import HostPatterns

    unwanted, states = HostPatterns(never), {state.host: state for state in kept.hosts()}
    met = set()
    for host, pages, copies in kept.pages_by_host():
        state = states.get(host) or HostState(host)
        if host in unwanted:
            met.add(host)
        yield {
            "host": host,
            "pages": pages,
            "copies": copies,
            "never": host in unwanted,
            "rests": max(state.ready - when, 0.0),
            "failures": state.failures,
            "robots": _robots(kept, host),
        }
    for pattern in never:
        if pattern not in met:
            nothing = {"pages": 0, "copies": 0, "never": True, "rests": 0.0, "failures": 0, "robots": None}
            yield {"host": pattern, **nothing}


def _robots(kept: Store, host: str) -> dict[str, Any] | None:
    """What is known of a host's robots.txt; None if it was not asked for, or is not known any more."""
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
    said = [f"{facts['pages']} pages, {facts['copies']} copies"]
    if facts["never"]:
        said.append("never asked (crawl.never)")
    if facts["rests"]:
        said.append(f"rests {show_duration(facts['rests'])}")
    if facts["failures"]:
        said.append(f"{facts['failures']} failures in a row")
    robots = facts["robots"]
    if robots is None:
        said.append("robots.txt not known")
    elif robots["failures"]:
        said.append(f"robots.txt failed {robots['failures']} times in a row")
    else:
        delay = f", asks for {show_duration(robots['delay'])} between requests" if robots["delay"] else ""
        said.append(f"robots.txt {_ago(robots['read'])}{delay}")
    console.print(f"{plain(facts['host'], 80):40}  {'; '.join(said)}")


def _ago(moment: float | None) -> str:
    return "not known" if moment is None else f"read {show_duration(max(now() - moment, 0.0))} ago"
