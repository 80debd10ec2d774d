"""Commands that tell what is kept and why: status and show."""

import math
from dataclasses import asdict
from functools import partial
from itertools import islice
from json import loads
from typing import Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, moment, now, plain
from afresh.errors import InputError
from afresh.estimate.base import BY_LEARNER, Estimator
from afresh.store import PageState, Store
from afresh.types import Crawl
from afresh.units import show_duration, show_rate, show_size

SAMPLE = 20_000  # pages of a large store that stand for all of it
STRETCH = 100  # neighbours among them
ALIVE = 5.0  # a runner writes a sign of life several times a second; older ones mean that it is gone


def status(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """How the collection is: pages, copies, crawls, and how many copies are believed to be fresh.

    Example: afresh status --json
    """
    from afresh.cli.opening import open_store, settings

    with open_store(settings(config, store), create=False) as kept:
        facts = _status(kept, now())
    if json:
        typer.echo(as_json(facts))
        return
    running = "running" if facts["running"] else "not running"
    console.print(f"{facts['pages']} pages, {facts['copies']} copies ({running})")
    console.print(f"crawls       {facts['crawls']}, of which {facts['changes']} found a change")
    console.print(f"bodies       {show_size(facts['body_bytes'])}, stored in {show_size(facts['stored_bytes'])}")
    if facts["budget"] is not None:
        console.print(f"budget       {show_rate(facts['budget'])}")
        console.print(f"price        {facts['price']:.4g} (expected fresh requests that a crawl must gain)")
    if facts["expected_freshness"] is not None:
        console.print(f"freshness    {facts['expected_freshness']:.1%} of requests would find a fresh copy (believed)")
    if facts["calibration"] is not None:
        _print_calibration(facts["calibration"])


def _print_calibration(said: dict[str, Any]) -> None:
    count = f"{said['statements']:,.0f} checked statements"
    console.print(f"calibration  Brier score {said['brier']:.3f}, bias {said['bias']:+.3f}, from {count}:")
    console.print("             said to be fresh    was fresh    statements")
    for row in said["rows"]:
        console.print(f"             {row['stated']:16.1%} {row['fresh']:12.1%} {row['statements']:13,.0f}")


def _status(kept: Store, when: float) -> dict[str, Any]:
    alive, totals = _number(kept.get("alive")), kept.totals()
    running = alive is not None and when - alive < ALIVE
    stated = _number(kept.get("freshness")) if running else None  # by the runner, which knows most
    return {
        **asdict(totals),
        "running": running,
        "budget": _number(kept.get("budget")),
        "price": _number(kept.get("price")),
        "expected_freshness": stated_freshness(_some(kept, totals.pages), when) if stated is None else stated,
        "calibration": _calibration(kept.get("calibration")),
    }


def _some(kept: Store, pages: int) -> list[PageState]:
    """All pages of a small store, and of a large one stretches of neighbours, evenly spaced."""
    if pages <= SAMPLE:
        return [state for _, state in kept.states()]
    starts = range(0, pages, max(1, pages * STRETCH // SAMPLE))
    return [state for start in starts for _, state in islice(kept.states(after=start), STRETCH)]


def stated_freshness(states: list[PageState], when: float) -> float | None:
    """The share of requests that would find a fresh copy, over all rates that each page may have.

    This is what calibration checks; freshness at the believed rates alone is more confident than that.
    """
    from afresh.estimate import Grid, kin_of

    estimator: Estimator = Grid()
    if any(state.learned.startswith(BY_LEARNER) for state in states):
        from afresh.estimate import Learner

        estimator = Learner()
    for slot, state in enumerate(states):
        page = state.page
        kin = kin_of(page.url, page.host)
        estimator.add(slot, now=when, importance=page.importance, learned=state.learned, kin=kin)
    weight = fresh = 0.0
    for slot, state in enumerate(states):
        told = state.beliefs if not state.learned else None  # by somebody who keeps nothing else
        request_rate = (told or estimator.beliefs(slot, when)).request_rate
        weight += request_rate
        if state.checked is not None:
            age = max(when - state.checked, 0.0)
            sure = told.freshness if told else partial(estimator.fresh_probability, slot)
            fresh += request_rate * sure(age, state.signals)
    return fresh / weight if weight else None


def _calibration(text: str | None) -> dict[str, Any] | None:
    """How far what was said about copies came true, as the runner wrote it down; None before the first check."""
    summary: dict[str, Any] | None = loads(text)["summary"] if text else None
    return summary


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
    """Everything about one page: copy, history, beliefs, crawl value, price, when it is due and why.

    Example: afresh show https://example.com/
    """
    from afresh.cli.opening import open_store, settings
    from afresh.frontier.url import canonical

    address = canonical(url)
    with open_store(settings(config, store), create=False) as kept:
        state = kept.state(address)
        if state is None:
            raise InputError(f"{address} is not kept.", hint=f"Add it: afresh add {address}")
        if body:
            _write_body(kept, address)
            return
        facts = _facts(kept, state, now(), history)
    typer.echo(as_json(facts)) if json else _print(facts)


def _write_body(kept: Store, url: str) -> None:
    import sys

    copy = kept.copy(url)
    if copy is None:
        raise InputError(f"There is no copy of {url} yet.", hint="Let `afresh run` fetch it first.")
    sys.stdout.buffer.write(copy.body)


def _facts(kept: Store, state: PageState, when: float, history: int) -> dict[str, Any]:
    from afresh.frontier.hosts import put_off

    url = state.page.url
    copy = kept.copy(url)
    host = next((host for host in kept.hosts() if host.host == state.page.host), None)
    facts: dict[str, Any] = {
        "url": url,
        "importance": state.page.importance,
        "copy": None
        if copy is None
        else {
            "size": len(copy.body),
            "content_type": copy.content_type,
            "fetched": copy.fetched,
            "checked": copy.checked,
            "etag": copy.validators.etag,
            "last_modified": copy.validators.last_modified,
            "fresh_probability": _fresh_probability(state, when),
        },
        "crawls": state.crawls,
        "changes": state.changes,
        "failures": state.failures,
        "signals": state.signals,
        "beliefs": None if state.beliefs is None else asdict(state.beliefs),
        "host_ready": host.ready if host and host.ready > when else None,
        "history": [asdict(crawl) for crawl in kept.history(url, history)],
        **_decision(state, _number(kept.get("price")), when),
    }
    last = kept.history(url, 1) if state.failures else []
    if last:
        facts["put_off"] = last[0].time + put_off(last[0].outcome, state.failures)
    held = [until for until in (facts["host_ready"], facts.get("put_off")) if until and until > when]
    facts["due"] = max([facts["due"], *held])
    facts["why"] = _why(facts, when)
    return facts


def _decision(state: PageState, price: float | None, when: float) -> dict[str, Any]:
    """Value, price and due time, by the scheduler's own rule."""
    from afresh.schedule import Greedy, Plain

    believed = state.beliefs
    if believed is None:
        return {"value": None, "price": price, "due": when, "held_by": ""}
    scheduler = Plain(Greedy(), budget=1.0)
    scheduler.price = price or 0.0
    slot = scheduler.add(
        request_rate=believed.request_rate,
        change_rate=believed.change_rate,
        recall=believed.recall,
        false_rate=believed.false_rate,
        now=when,
        age=math.inf if state.checked is None else max(when - state.checked, 0.0),
        signals=state.signals,
    )
    explained = scheduler.explain(slot, when)
    return {"value": explained.value, "price": price, "due": explained.due, "held_by": explained.held_by}


def _why(facts: dict[str, Any], when: float) -> str:
    """The decision in a sentence or two."""
    believed = facts["beliefs"]
    if believed is None:
        return "It was never crawled; it waits for its first turn."
    parts = [
        f"it is believed to change {show_rate(believed['change_rate'])} (from {believed['observations']} checks)",
        f"and to be wanted {show_rate(believed['request_rate'])}",
    ]
    if facts["copy"]:
        parts.append(
            f"the copy is {show_duration(when - facts['copy']['checked'])} old with {facts['signals']} signals"
        )
        parts.append(f"so it is fresh with probability {facts['copy']['fresh_probability']:.2f}")
    else:
        parts.append("there is no copy yet")
    reason = "; ".join(parts)
    if facts["price"] is None:
        return f"No runner has set a price yet; {reason}."
    if facts["failures"]:
        reason += f"; its last {facts['failures']} fetches failed"
    if facts.get("put_off", 0.0) > when:
        return f"It is put off until {moment(facts['put_off'])}: {reason}."
    if facts["value"] >= facts["price"]:
        wait = " It waits until its host is ready." if facts["host_ready"] else ""
        return f"A crawl now gains {facts['value']:.3g}, at least the price {facts['price']:.3g}: {reason}.{wait}"
    if math.isinf(facts["due"]):
        most = believed["request_rate"] / believed["change_rate"]
        return (
            f"A crawl now gains {facts['value']:.3g} and never more than {most:.4g}, below the price "
            f"{facts['price']:.4g}: {reason}."
        )
    return (
        f"A crawl now gains {facts['value']:.3g}, below the price {facts['price']:.3g}, which it reaches in "
        f"{show_duration(facts['due'] - when)}: {reason}."
    )


def _print(facts: dict[str, Any]) -> None:
    when = now()
    console.print(plain(facts["url"], 2100))
    copy = facts["copy"]
    if copy is None:
        console.print("copy        none yet")
    else:
        kind = plain(copy["content_type"], 60) or "of unknown kind"
        console.print(f"copy        {show_size(copy['size'])}, {kind}, fetched {moment(copy['fetched'])}")
        console.print(f"            last known to be current {moment(copy['checked'])}")
        console.print(f"            fresh now with probability {copy['fresh_probability']:.3f}")
        etag, last_modified = plain(copy["etag"], 80) or "none", plain(copy["last_modified"], 40) or "none"
        console.print(f"validators  ETag {etag}, Last-Modified {last_modified}")
    if believed := facts["beliefs"]:
        console.print(
            f"beliefs     changes {show_rate(believed['change_rate'])}, wanted {show_rate(believed['request_rate'])}, "
            f"signals: recall {believed['recall']:.2f}, false {show_rate(believed['false_rate'])}"
        )
        price = "not set yet" if facts["price"] is None else f"{facts['price']:.4g}"
        console.print(f"value       {facts['value']:.4g} (price {price})")
    due = "now" if facts["due"] <= when else "not by itself" if math.isinf(facts["due"]) else moment(facts["due"])
    console.print(f"due         {due}")
    console.print(f"why         {facts['why']}")
    console.print(
        f"history     {facts['crawls']} crawls, {facts['changes']} changes, {facts['failures']} failures in a row"
    )
    for line in facts["history"]:
        crawl = Crawl(**line)
        reason = f" ({plain(crawl.reason, 60)})" if crawl.reason else ""
        size = f", {show_size(crawl.size)}" if crawl.size else ""
        console.print(
            f"            {moment(crawl.time)}  {crawl.outcome}{reason}, status {crawl.status or 'none'}{size}, "
            f"took {show_duration(crawl.took)}"
        )


def _fresh_probability(state: PageState, when: float) -> float:
    """How likely the copy is to be current, from what the store holds; 0 where nothing is known."""
    if state.checked is None or state.beliefs is None:
        return 0.0
    return state.beliefs.freshness(max(when - state.checked, 0.0), state.signals)


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
