"""`afresh senders`: who sends change hints, and what they are worth."""

from typing import Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, plain
from afresh.store import Store, understood
from afresh.store.socket_file import ask
from afresh.units import show_duration

NAME_WIDTH = 36
HEADING = f"{'sender':{NAME_WIDTH}} {'worth':>14} {'checked':>8} {'late by':>9} {'hosts':>7}"
ENOUGH = 20  # checked signals; of fewer, nothing is said


def senders(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """List who sends change hints, and what their signals are worth. The most reliable come first.

    Worth is how much one signal of a sender says, compared with one of the sender that is best so far. It is learned:
    crawls show which signals were true. "Checked" is how many signals it rests on; with few, the range is wide. "Late
    by" is how long after a change its signals still come. The hosts are those where it was learned.

    Example: afresh senders --json
    """
    from afresh.cli.opening import open_store, settings

    with open_store(settings(config, store), create=False) as kept:
        answer = ask(kept.path, "senders")
        found = answer if isinstance(answer, list) else _from_store(kept)
    if json:
        for facts in found:
            typer.echo(as_json(facts))
        return
    if not found:
        console.print("No signals were heard yet. `afresh signal` sends one.")
        return
    console.print(HEADING)
    for facts in found:
        name = plain(facts["sender"], 100)
        if len(name) > NAME_WIDTH:
            console.print(name)
            name = ""
        late = show_duration(facts["late"]) if facts["late"] else "-"
        checked = f"{facts['checked']:,.0f}"
        console.print(f"{name:{NAME_WIDTH}} {_worth(facts, len(found)):>14} {checked:>8} {late:>9} {facts['hosts']:7,}")
    if not any(facts["evidence"] for facts in found):
        console.print("No crawl has checked any of their signals yet: all count alike.")


def _worth(facts: dict[str, Any], senders: int) -> str:
    """What a sender is worth, as far as that can be told."""
    if not facts["evidence"]:
        return "not yet"
    if facts["checked"] < ENOUGH:
        return "too few"
    if senders == 1:
        return "the only one"
    if facts["worth_from"] == facts["worth_to"]:
        return "the best"
    return f"{100 * facts['worth_from']:.0f} to {100 * facts['worth_to']:.0f} %"


def _from_store(kept: Store) -> list[dict[str, Any]]:
    from afresh.estimate import Senders

    return understood("senders", lambda: Senders.recalled(kept.get)).summary()
