"""`afresh show`: all about one page, and why it is due when it is."""

import math
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from afresh.cli.evidence import evidence
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.page_facts import page_facts
from afresh.cli.reasons import counted, words
from afresh.cli.terminal import as_json, console, labelled, moment, now, plain
from afresh.cli.why import queue_of, told_of_costs, trouble_of, waits_for_host
from afresh.cli.wishes import told
from afresh.cli.wording import gain_unit
from afresh.errors import InputError
from afresh.hours import hours
from afresh.store import Store
from afresh.types import Crawl
from afresh.units import show_cost, show_count, show_duration, show_rate, show_size

ON_REQUEST = (
    "it changes faster than it is asked for: it is run for who asks, and refreshed ahead only while the budget has room"
)


def show(
    url: Annotated[str, typer.Argument(help="A page that is kept.")],
    body: Annotated[
        bool, typer.Option("--body", help="Write the copy's body to standard output, nothing else.")
    ] = False,
    history: Annotated[int, typer.Option(help="How many of its latest crawls to list.", min=0, max=1000)] = 10,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Show everything about one page: copy, history, beliefs, crawl value, price, when it is due and why.

    Example: afresh show https://example.com/
    """
    from afresh.cli.keys import kept_key
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        address = kept_key(url, kept)
        if body and kept.state(address) is not None:
            _write_body(kept, address)
            return
        facts = page_facts(kept, read, address, now(), history)
        if facts is None:
            raise InputError(f"{address} is not kept.", hint=f"Add it: afresh add {address}")
    typer.echo(as_json(facts)) if json else _print(facts)


def _write_body(kept: Store, url: str) -> None:
    import sys

    copy = kept.copy(url)
    if copy is None:
        raise InputError(f"There is no copy of {url} yet.", hint="Let `afresh run` fetch it first.")
    sys.stdout.buffer.write(copy.body)


def _print_state(facts: dict[str, Any], when: float) -> None:
    """How the page is doing."""
    none = "no copy yet" if facts["crawls"] else "not crawled yet"
    trouble = trouble_of(facts) or ("well" if facts["copy"] else none)
    if facts["held_by"] == "paused":
        outside = facts["wishes"]["held_by"] == ["hours"]
        trouble = f"{'outside of its hours' if outside else 'paused'}; {trouble}"
    for nth, part in enumerate(trouble.split("; ")):
        console.print(labelled("" if nth else "state", part))
    again = max(facts.get("put_off") or 0.0, facts["host_ready"] or 0.0)
    if trouble != "well" and again > when + 1:
        console.print(f"            asked again {moment(again)}")


def _due(facts: dict[str, Any], when: float) -> str:
    """When the next crawl is due, for people."""
    if facts["held_by"] == "paused":
        if facts["wishes"]["held_by"] != ["hours"]:
            return "not while it is paused"
        return f"not before its hours, from {moment(hours(facts['wishes']['hours']).opens(when))} on"
    if not facts["refresh"]:
        if facts["held_by"] == "first turn":
            return "in its turn for a first crawl"
        if (put_off := facts.get("put_off", 0.0)) > when and not put_off + 1 < facts["due"] < math.inf:
            return f"not before {moment(put_off)}"
        if facts["by"] == "store" and facts["politeness"]:
            return f"cannot be foretold while nothing runs: {facts['politeness']}"
        if math.isinf(facts["due"]) and facts["ahead"]:
            return f"cannot be foretold: {queue_of(facts)}"
        if waits_for_host(facts, when):
            return f"about {moment(facts['due'])}: {queue_of(facts)}"
    if facts["due"] <= when:
        return "now"
    about = "about " if facts["host_turn"] and facts["held_by"] != "put off" and not facts["refresh"] else ""
    return "not by itself" if math.isinf(facts["due"]) else about + moment(facts["due"])


def _price(facts: dict[str, Any]) -> str:
    """What a crawl has to gain, for people."""
    if facts["price"] is None:
        return "not known yet: what it must gain to be worth a crawl, at this budget"
    if facts["host_price"]:
        return (
            f"{facts['host_price']:.4g}: what pages of its host must gain, at the host's own budget; "
            f"{facts['price']:.4g} elsewhere"
        )
    if facts["budget_spare"]:
        return (
            f"{facts['price']:.4g}: what refreshes gained lately, on average; less is enough, since hosts take less "
            "than the budget"
        )
    return f"{facts['price']:.4g}: what it must gain to be worth a crawl, at this budget"


def _print_gain(facts: dict[str, Any]) -> None:
    """What is believed of the page, and what a crawl of it gains; or what its costs have taught."""
    if facts["copy"] is not None and (believed := facts["beliefs"]):
        wanted = show_rate(believed["request_rate"]) if facts["requests_known"] else "as all pages are"
        rates = f"changes {show_rate(believed['change_rate'])}, wanted {wanted}"
        signals = f"signals: recall {believed['recall']:.2f}, false {show_rate(believed['false_rate'])}"
        console.print(labelled("beliefs", f"{rates}, {signals}"))
        if facts["kinds"]:
            shares = ", ".join(f"{plain(name, 40)} {share:.0%}" for name, share in facts["kinds"])
            console.print(labelled("kind", shares))
        console.print(labelled("evidence", evidence(facts)))
        unit = gain_unit(by_requests=facts["requests_known"])
        if facts["learned_rate"] is None:
            console.print(labelled("value", f"{facts['value']:.4g}: {unit} that a crawl now is expected to gain"))
            console.print(labelled("price", _price(facts)))
    if facts["learned_rate"] is not None:
        for name, line in told_of_costs(facts["learned_rate"]):
            console.print(labelled(name, line))


def _costs(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a refresh costs where that differs, and whether one ahead of requests is worth anything."""
    same, new = facts["costs"]
    unit = facts["unit"]
    parts = [f"{show_cost(same, unit)} if nothing is new"] if same is not None else []
    parts += [f"{show_cost(new, unit)} if something is"] if new is not None else []
    if parts and unit != "calls":
        yield "cost", f"a refresh takes {', '.join(parts)}"
    if facts["on_request"]:
        yield "on request", ON_REQUEST


def _print_heard(lines: list[dict[str, Any]]) -> None:
    """Who said that the page changed, and what became of that."""
    for nth, heard in enumerate(lines):
        times = f", {heard['count']:,} times" if heard["count"] > 1 else ""
        line = f"{moment(heard['last'])}  {plain(heard['sender'], 40)}{times}, {heard['became']}"
        console.print(labelled("" if nth else "signalled", line))


def _print(facts: dict[str, Any]) -> None:
    when = now()
    console.print(plain(facts["url"], 2100))
    copy = facts["copy"]
    _print_state(facts, when)
    if copy is None:
        console.print("copy        none yet")
    else:
        kind = plain(copy["content_type"], 60) or "of unknown kind"
        console.print(labelled("copy", f"{show_size(copy['size'])}, {kind}, fetched {moment(copy['fetched'])}"))
        console.print(f"            last known to be current {moment(copy['checked'])}")
        fresh = f"fresh now with probability {copy['fresh_probability']:.2f}"
        if copy["outdated"]:
            fresh = "outdated: the page has changed, and the store had no room for its new content"
        console.print(labelled("", "the last copy of a page that is gone" if facts["gone"] else fresh))
        if copy["fresh_because"]:
            console.print(labelled("", f"({copy['fresh_because']})"))
        etag, last_modified = plain(copy["etag"], 80) or "none", plain(copy["last_modified"], 40) or "none"
        console.print(labelled("validators", f"ETag {etag}, Last-Modified {last_modified}"))
    _print_gain(facts)
    if facts["foretold"] is not None:
        alike = f"{facts['foretold']:.2g} times what pages alike are"
        console.print(labelled("requests", f"none yet; it is foretold to be asked for {alike}"))
    for label, line in _costs(facts):
        console.print(labelled(label, line))
    if wanted := told(facts["wishes"]):
        console.print(labelled("wanted", plain(wanted, 300)))
    console.print(labelled("due", _due(facts, when)))
    if facts["refresh"]:
        console.print(labelled("refresh", f"asked for; {facts['refresh']}"))
    console.print(labelled("why", facts["why"]))
    if facts["keep_matches_nothing"]:
        console.print(labelled("keep", "matches nothing on the copy: all of the page counts ([[site]] keep)"))
    for line in facts["noise"]:
        what = "its numbers" if line["differs"] == "numbers" else "its text"
        place = f"{what} at {plain(line['place'], 130)}, of the {line['of']}, since {moment(line['since'])}"
        console.print(labelled("noise", f"{place}: {plain(line['sample'], 60)}"))
    _print_heard(facts["heard"])
    console.print(
        f"history     {show_count(facts['crawls'], 'crawl')}, {show_count(facts['changes'], 'change')}, "
        f"{show_count(facts['failures'], 'failure')} in a row"
    )
    if failed := facts["failed"]:
        console.print(labelled("failed", f"{counted(failed)} (of the crawls in its history)"))
    for line in facts["history"]:
        crawl = Crawl(**line)
        reason = f" ({words(crawl.reason)})" if crawl.reason else ""
        size = f", {show_size(crawl.size)}" if crawl.size else ""
        what = f"{crawl.outcome}{reason}, status {crawl.status or 'none'}{size}, took {show_duration(crawl.took)}"
        console.print(labelled("", f"{moment(crawl.time)}  {what}"))
