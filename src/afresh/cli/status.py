"""`afresh status`: how the collection is."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from afresh.cli.collection import collection_facts
from afresh.cli.learning import learning_lines
from afresh.cli.opening import named, place_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.reasons import counted
from afresh.cli.terminal import as_json, console, errors, labelled, moment, now, plain
from afresh.cli.wording import (
    INDENT,
    calibration_lines,
    found_line,
    freshness_lines,
    held_lines,
    price_lines,
    search_lines,
)
from afresh.config import Config
from afresh.errors import ConfigError
from afresh.store.socket_file import ask
from afresh.units import show_budget, show_count, show_duration, show_size

SELDOM_SECONDS = 600.0  # between two crawls, from which on the budget line says what to expect


def status(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """Show how the collection is: pages, copies, crawls, and how many copies are believed to be fresh.

    Example: afresh status --json
    """
    from afresh.cli.opening import open_store, settings

    wrong = None
    try:
        read = settings(config, store)
    except ConfigError as error:
        wrong, read = error, _of_a_runner(config, store, error)
    with open_store(read, create=False) as kept:
        facts = collection_facts(kept, read, now())
    if wrong is not None:
        errors.print(labelled("Warning:", f"{plain(wrong.message)} The runner goes on with what it read before.", 9))
    if json:
        typer.echo(as_json(facts))
    else:
        _print(facts, known=wrong is None)


def _starting_lines(facts: dict[str, Any]) -> Iterator[str]:
    if facts["compiling"]:
        yield f"starting     it compiles for this machine, since {moment(facts['compiling'])}"
    elif facts["starting"]:
        yield f"starting     since {moment(facts['starting'])}"


def _print(facts: dict[str, Any], *, known: bool) -> None:
    """Print it all for people; without `known` settings, what the runner goes by."""
    from afresh.cli.steered import steered_lines

    copies = show_count(facts["copies"], "copy", "copies")
    workers = f", {show_count(facts['workers'], 'worker')}" if facts["workers"] else ""
    runs = f"running{workers}" if facts["running"] else "not running"
    console.print(f"{show_count(facts['pages'], 'page')}, {copies} ({runs})")
    for line in _starting_lines(facts):
        console.print(line)
    if facts["last_alive"] and not facts["running"]:
        console.print(f"stopped      without a word, after {moment(facts['last_alive'])}")
    console.print(f"crawls       {facts['crawls']:,}, of which {facts['changes']:,} found a change")
    _print_failures(facts)
    console.print(f"bodies       {show_size(facts['body_bytes'])}, stored in {show_size(facts['stored_bytes'])}")
    if facts["max_bytes"]:
        bound = f"{show_size(facts['used_bytes'])} of {show_size(facts['max_bytes'])} used (store.max_bytes)"
        console.print(f"room         {bound},\n             which takes {facts['takes']}")
    if facts["budget"] is not None:
        for line in _budget_lines(facts, known=known):
            console.print(line)
        if facts["politeness"]:
            console.print(labelled("", facts["politeness"], len(INDENT)))
        by = price_lines(facts) if facts["learning"] is None else learning_lines(facts["learning"])
        for line in (*by, *(held_lines(facts["held_without_copy"]) if facts["running"] else ())):
            console.print(line)
    if facts["found"] and facts["found"].get("known"):
        console.print(labelled("found", found_line(facts["found"]), 13))
    for line in (
        *purse_lines(facts),
        *ahead_lines(facts["ahead"]),
        *_receiver_lines(facts["receiver"]),
        *_notified_lines(facts["notify"]),
    ):
        console.print(line)
    for line in (*steered_lines(facts), *freshness_lines(facts)):
        console.print(line)
    calibrated = calibration_lines(facts["calibration"]) if facts["calibration"] is not None else ()
    for line in (*search_lines(facts["searches"]), *calibrated):
        console.print(line)


def _of_a_runner(config: Path | None, store: str | None, error: ConfigError) -> Config:
    """Settings that name the store alone, since the others are wrong; the error if nobody runs on it to be asked."""
    from afresh.config import store_named

    path = named(store) if store else store_named(config)
    if path is not None:
        read = replace(Config(), store=replace(Config().store, path=path))
        if ask(place_of(read), "wake") is not None:
            return read
    raise error


def ahead_lines(ahead: dict[str, float] | None) -> Iterator[str]:
    """What serving caches fetch ahead of their readers, and how that goes."""
    if ahead is None:
        return
    rate, wasted = show_size(round(ahead["bytes_per_second"])), show_size(round(ahead["wasted_bytes"]))
    yield (
        f"ahead        {show_count(round(ahead['fetched']), 'answer')} fetched ahead of readers "
        f"({show_size(round(ahead['fetched_bytes']))}, {rate}/s),"
    )
    yield f"{INDENT}of which they asked for {ahead['used']:,.0f}; {wasted} for nobody so far"
    if ahead["answers"]:
        share = 100 * ahead["at_once"] / ahead["answers"]
        yield f"{INDENT}{share:.1f} % of {ahead['answers']:,.0f} answers without waiting"


def _budget_lines(facts: dict[str, Any], *, known: bool) -> Iterator[str]:
    """What may be crawled: now, or by the next run; and by whose word. Without `known` settings, by the runner's."""
    sweeps = known and facts["learning"] is None
    sweep = f", {100 * facts['sweep']:.3g} % of it for the copies left alone longest" if sweeps else ""
    if facts["running"]:
        yield f"budget       {show_budget(facts['budget'], facts['budget_unit'])}{sweep}"
        if facts["spent"] is not None:
            yield f"{INDENT}{show_budget(facts['spent'], facts['budget_unit'])} spent in the last minute"
        if by := facts["budget_by"]:
            yield f"{INDENT}set by {by}: the budget and hours of the settings do not hold"
        yield from _seldom(facts["budget"], facts["budget_unit"])
        return
    yield f"budget       {show_budget(facts['next_budget'], facts['budget_unit'])}{sweep}"
    yield from _seldom(facts["next_budget"], facts["budget_unit"])
    if facts["budget"] != facts["next_budget"]:
        last = show_budget(facts["budget"], facts["budget_unit"])
        yield f"{INDENT}by the settings, for the next run; the last run had {last}"


def _seldom(budget: float, unit: str) -> Iterator[str]:
    """What a budget of very few crawls means for who waits for the first."""
    if unit == "calls" and 0.0 < budget < 1.0 / SELDOM_SECONDS:
        yield f"{INDENT}one crawl every {show_duration(1.0 / budget)}, the first of them as soon as a run begins"


def purse_lines(facts: dict[str, Any]) -> Iterator[str]:
    """The budgets of files and databases, each with what it pays for."""
    for each in facts["purses"]:
        fresh = f", {100 * each['freshness']:.1f} % fresh" if each["freshness"] is not None else ""
        of = f"{show_budget(each['budget'], each['unit'])} for {show_count(each['pages'], 'item')}"
        spent = f", {show_budget(each['spent'], each['unit'])} spent in the last minute" if "spent" in each else ""
        said = f"{of}{spent}{fresh}, price {each['price']:.4g}"
        yield labelled(plain(each["purse"].removeprefix("sql:"), 12), said, 13)


def _receiver_lines(receiver: dict[str, Any] | None) -> Iterator[str]:
    """What became of what others sent, since the run began."""
    if receiver is not None:
        accepted = show_count(receiver["accepted"], "delivery", "deliveries")
        yield f"receiving    at {receiver['address']}: {accepted} accepted, {receiver['refused']:,} refused"
        if hosts := receiver["key_files_awaited"]:
            more = f" and {len(hosts) - 1:,} more" if len(hosts) > 1 else ""
            yield labelled("", f"submissions wait for the key file of {plain(hosts[0], 80)}{more}", len(INDENT))


def _notified_lines(told: list[dict[str, Any]]) -> Iterator[str]:
    """How it stands with those who are told of changes."""
    if told:
        from afresh.cli.notifying import notified_lines

        yield from notified_lines(told)


def _print_failures(facts: dict[str, Any]) -> None:
    if facts["gone"]:
        console.print(f"gone         {show_count(facts['gone'], 'page')} (404, 410 or deleted)")
    if failing := facts["failing"]:
        pages = sum(failing.values())
        console.print(f"failing      {show_count(pages, 'page')}: {counted(failing, 54)}")
    if hosts := facts["failing_hosts"]:
        several = f"{hosts['hosts']:,} fail" if hosts["hosts"] > 1 else "1 fails"
        console.print(f"hosts        {several}: {counted(hosts['reasons'], 56)}")
        console.print("             (afresh hosts lists them)")
