"""`afresh kinds`: kinds of pages, how many there are, how often they change, and what knowing them is worth."""

import json as text
from typing import Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, plain
from afresh.store import LastingStore, Store, understood
from afresh.store.socket_file import ask
from afresh.units import show_duration, show_rate, show_size

HEADING = f"{'kind':14} {'pages':>9} {'changes':>10} {'most pages within':>23} {'value':>5} {'a crawl costs':>14}"
ENOUGH = 100  # judged crawls; of fewer, nothing is said


def kinds(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """List the kinds of pages: how many, how often a typical one changes, what a crawl costs, what kinds are worth.

    A page may be of two kinds in part, and counts for each by its share. Kinds help only where crawls have proved that
    they foretell new pages better than pages alike on the same host do: elsewhere they are switched off.

    Example: afresh kinds --json
    """
    from afresh.cli.opening import open_store, settings

    with open_store(settings(config, store), create=False) as kept:
        found = kind_facts(kept)
    if json:
        typer.echo(as_json(found))
        return
    if not found or not any(each["pages"] for each in found["kinds"]):
        console.print("No kinds of pages are known yet: they are told at the first crawl.")
        return
    console.print(HEADING)
    for facts in sorted(found["kinds"], key=lambda each: -float(each["pages"])):
        _line(plain(facts["kind"], 14), facts)
    _line("all pages", found["all"])
    console.print(f"{found['unknown']:,.0f} pages are of unknown kind.")
    for worth in found["worth"]:
        console.print(f"worth, {worth['level']}: {_worth(worth)}")


def _line(name: str, facts: dict[str, Any]) -> None:
    rate, factor = float(facts["change_rate"]), 2.718281828 ** float(facts["spread"])
    within = f"{show_rate(rate / factor)} to {show_rate(rate * factor)}"
    cost = "-"
    if facts.get("seconds") is not None:
        cost = f"{show_duration(facts['seconds'])} {show_size(round(facts['bytes'] or 0))}"
    console.print(f"{name:14} {facts['pages']:9,.0f} {show_rate(rate):>10} {within:>23} {facts['value']:5g} {cost:>14}")


def _worth(worth: dict[str, Any]) -> str:
    """What knowing kinds is worth, in words."""
    if worth["judged"] < ENOUGH:
        return f"too few crawls have judged it ({worth['judged']:,})"
    if worth["power"] < 0.1:
        return f"nothing, switched off ({worth['judged']:,} crawls judged it)"
    gained = f"{worth['gained']:.4f} nats a crawl"
    return f"power {worth['power']:.2f}, {gained} in the first five ({worth['judged']:,} crawls judged it)"


def kind_facts(kept: LastingStore) -> dict[str, Any]:
    """Every kind of pages, and what knowing kinds is worth; empty if none are known yet."""
    answer = ask(kept.path, "kinds")
    return answer if isinstance(answer, dict) else _from_store(kept)


def _from_store(kept: Store) -> dict[str, Any]:
    from afresh.daemon.kinds import KEPT

    def read() -> dict[str, Any]:
        found: dict[str, Any] = text.loads(kept.get(KEPT) or "{}")
        for name in ("scores", "costs_of"):
            found.pop(name, None)
        return found

    return understood(KEPT, read)
