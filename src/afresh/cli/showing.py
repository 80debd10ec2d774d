"""Commands that tell what is kept and why: status and show."""

import math
from contextlib import suppress
from dataclasses import asdict
from json import loads
from typing import Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, moment, now, plain
from afresh.cli.wording import INDENT, calibration_lines, freshness_lines, price_lines, why_fresh
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import PageState, Store, understood
from afresh.store.socket_file import ask
from afresh.types import Crawl
from afresh.units import show_duration, show_importance, show_rate, show_size

OLDEST = 1e100  # seconds; an age at which all is gained that time brings
# The words of a page's history, for people.
_REASONS = {
    "not_modified": "the server says so",
    "same_bytes": "same bytes",
    "same_text": "only markup differs",
    "noise": "only noise differs",
    "too_complex": "too complex to be read, compared by its bytes",
}
ALIVE = 5.0  # a runner writes a sign of life several times a second; older ones mean that it is gone


def status(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """How the collection is: pages, copies, crawls, and how many copies are believed to be fresh.

    Example: afresh status --json
    """
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        facts = _status(kept, now(), read) | {"sweep": read.crawl.sweep}
    if json:
        typer.echo(as_json(facts))
        return
    running = "running" if facts["running"] else "not running"
    console.print(f"{facts['pages']} pages, {facts['copies']} copies ({running})")
    console.print(f"crawls       {facts['crawls']}, of which {facts['changes']} found a change")
    console.print(f"bodies       {show_size(facts['body_bytes'])}, stored in {show_size(facts['stored_bytes'])}")
    if facts["budget"] is not None:
        sweep = f"{100 * facts['sweep']:.3g} % of it for the copies left alone longest"
        console.print(f"budget       {show_rate(facts['budget'])}, {sweep}")
        if facts["politeness"]:
            console.print(f"{INDENT}{facts['politeness']}")
        for line in price_lines(facts):
            console.print(line)
    for line in freshness_lines(facts):
        console.print(line)
    if facts["calibration"] is not None:
        for line in calibration_lines(facts["calibration"]):
            console.print(line)


def _status(kept: Store, when: float, config: Config) -> dict[str, Any]:
    from afresh.cli.allowed import allowed
    from afresh.frontier import Allowance

    said = ask(config.store.path, "status") or {}  # by the runner, which knows most, and as of now
    alive, totals = _number(kept, "alive"), kept.totals()
    budget, price = (said.get(name) or _number(kept, name) for name in ("budget", "price"))
    polite = Allowance.from_text(said.get("allowance")) or allowed(kept, config)
    return {
        **asdict(totals),
        "pages": max(totals.pages, said.get("pages") or 0),  # those that are not durable yet included
        "running": bool(said) or (alive is not None and when - alive < ALIVE),
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
    """How fresh copies are by what the store says, weighted by what, and how long ago."""
    from afresh.cli.stating import stated_freshness

    stated, by_requests = stated_freshness(kept, when, config.importance) or (None, False)
    return {
        "expected_freshness": stated,
        "freshness_weighted_by": "requests" if by_requests else "pages",
        "freshness_by": "store",
        "freshness_age": 0.0,
    }


def _calibration(text: str | None) -> dict[str, Any] | None:
    """How far what was said about copies came true, as the runner wrote it down; None before the first check."""
    return understood("calibration", lambda: _summary(loads(text))) if text else None


def _summary(kept: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = kept["summary"]
    numbers = [summary[name] for name in ("statements", "brier", "bias")]
    numbers += [row[name] for row in summary["rows"] for name in ("stated", "fresh", "statements")]
    for number in numbers:
        float(number)
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

    address, read = canonical(url), settings(config, store)
    with open_store(read, create=False) as kept:
        state = kept.state(address)
        if state is None:
            raise InputError(f"{address} is not kept.", hint=f"Add it: afresh add {address}")
        if body:
            _write_body(kept, address)
            return
        facts = _facts(kept, state, now(), history, read)
    typer.echo(as_json(facts)) if json else _print(facts)


def _write_body(kept: Store, url: str) -> None:
    import sys

    copy = kept.copy(url)
    if copy is None:
        raise InputError(f"There is no copy of {url} yet.", hint="Let `afresh run` fetch it first.")
    sys.stdout.buffer.write(copy.body)


def _asked(config: Config, url: str) -> dict[str, Any] | None:
    """What the runner says of a page; None if there is none, or it does not know the page."""
    with suppress(InputError):
        answer: dict[str, Any] | None = ask(config.store.path, "page", {"url": url})
        return answer
    return None


def _facts(kept: Store, state: PageState, when: float, history: int, config: Config) -> dict[str, Any]:
    from afresh.cli.stating import stated_by_runner, stated_of
    from afresh.frontier.hosts import put_off

    url = state.page.url
    copy, said = kept.copy(url), _asked(config, url)
    price = (said or {}).get("price") or _number(kept, "price")
    stated = stated_by_runner(said) or stated_of(kept, state, price or 0.0, when, config.importance)
    host = next((host for host in kept.hosts() if host.host == state.page.host), None)
    facts: dict[str, Any] = {
        "url": url,
        "importance": show_importance(state.page.importance) if state.page.importance else None,
        "copy": None
        if copy is None
        else {
            "size": len(copy.body),
            "content_type": copy.content_type,
            "fetched": copy.fetched,
            "checked": stated.current or copy.checked,
            "etag": copy.validators.etag,
            "last_modified": copy.validators.last_modified,
            "fresh_probability": stated.fresh,
            "fresh_because": why_fresh(stated.parts, state.signals) if stated.parts else "",
        },
        "crawls": state.crawls,
        "changes": state.changes,
        "failures": state.failures,
        "signals": state.signals,
        "beliefs": None if stated.beliefs is None else asdict(stated.beliefs),
        "host_ready": host.ready if host and host.ready > when else None,
        "noise": _noise(kept, state),
        "history": [asdict(crawl) for crawl in kept.history(url, history)],
        "value": stated.value,
        "price": price,
        "due": stated.due,
        "held_by": stated.held_by,
        "first_crawls": _first_crawls(kept, state) if stated.first_crawls is None else stated.first_crawls,
        "by": "store" if said is None else "runner",
    }
    last = kept.history(url, 1) if state.failures else []
    if last:
        facts["put_off"] = last[0].time + put_off(last[0].outcome, state.failures)
    budget = _number(kept, "budget")
    first = when + facts["first_crawls"] / budget if budget else None
    held = [until for until in (facts["host_ready"], facts.get("put_off"), first) if until and until > when]
    facts["due"] = max([facts["due"], *held])
    facts["why"] = _why(facts, when)
    return facts


def _first_crawls(kept: Store, state: PageState) -> int:
    """Pages without a copy, which go before a page that has one."""
    totals = kept.totals()
    return totals.pages - totals.copies if state.checked is not None else 0


def _noise(kept: Store, state: PageState) -> list[dict[str, Any]]:
    """What is held to be noise on a page, from the page itself and from all of its host, the earliest first."""
    from afresh.daemon.reader import NAME
    from afresh.detect import Habits

    known = {"page": Habits.from_text(state.noise), "host": Habits.from_text(kept.get(NAME + state.page.host))}
    found = [
        {"since": habit.since, "of": of, "differs": habit.sort, "place": habit.place, "sample": habit.sample}
        for of, habits in known.items()
        for habit in habits.spots.values()
        if habit.since is not None
    ]
    return sorted(found, key=lambda each: float(each["since"] or 0.0))


def _why(facts: dict[str, Any], when: float) -> str:
    """The decision in a sentence or two."""
    believed = facts["beliefs"]
    if believed is None:
        return "It was never crawled; it waits for its first turn."
    parts = [
        f"it is believed to change {show_rate(believed['change_rate'])}",
        f"as {believed['observations']} checks tell to within a factor of {math.exp(believed['shape'] ** -0.5):.2g}",
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
    if facts["first_crawls"]:
        reason += f"; {facts['first_crawls']} pages have no copy yet, and their first crawls go before"
    if facts["failures"]:
        reason += f"; its last {facts['failures']} fetches failed"
    if facts.get("put_off", 0.0) > when:
        return f"It is put off until {moment(facts['put_off'])}: {reason}."
    if facts["value"] >= facts["price"]:
        wait = " It waits until its host is ready." if facts["host_ready"] else ""
        return f"A crawl now gains {facts['value']:.3g}, at least the price {facts['price']:.3g}: {reason}.{wait}"
    if math.isinf(facts["due"]):
        rates = {name: believed[name] for name in ("change_rate", "recall", "false_rate", "shape", "request_rate")}
        from afresh.value import crawl_value

        most = crawl_value(OLDEST, **rates)
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
        console.print(f"            fresh now with probability {copy['fresh_probability']:.2f}")
        if copy["fresh_because"]:
            console.print(f"            ({copy['fresh_because']})")
        etag, last_modified = plain(copy["etag"], 80) or "none", plain(copy["last_modified"], 40) or "none"
        console.print(f"validators  ETag {etag}, Last-Modified {last_modified}")
    if believed := facts["beliefs"]:
        console.print(
            f"beliefs     changes {show_rate(believed['change_rate'])}, wanted {show_rate(believed['request_rate'])}, "
            f"signals: recall {believed['recall']:.2f}, false {show_rate(believed['false_rate'])}"
        )
        price = "not known yet" if facts["price"] is None else f"{facts['price']:.4g}"
        console.print(f"value       {facts['value']:.4g}: fresh requests that a crawl now is expected to gain")
        console.print(f"price       {price}: what it must gain to be worth a crawl, at this budget")
    due = "now" if facts["due"] <= when else "not by itself" if math.isinf(facts["due"]) else moment(facts["due"])
    console.print(f"due         {due}")
    console.print(f"why         {facts['why']}")
    for line in facts["noise"]:
        what = "its numbers" if line["differs"] == "numbers" else "its text"
        console.print(
            f"noise       {what} at {plain(line['place'], 130)}, of the {line['of']}, since {moment(line['since'])}: "
            f"{plain(line['sample'], 60)}"
        )
    console.print(
        f"history     {facts['crawls']} crawls, {facts['changes']} changes, {facts['failures']} failures in a row"
    )
    for line in facts["history"]:
        crawl = Crawl(**line)
        reason = f" ({_REASONS.get(crawl.reason) or plain(crawl.reason, 60)})" if crawl.reason else ""
        size = f", {show_size(crawl.size)}" if crawl.size else ""
        console.print(
            f"            {moment(crawl.time)}  {crawl.outcome}{reason}, status {crawl.status or 'none'}{size}, "
            f"took {show_duration(crawl.took)}"
        )


def _number(kept: Store, name: str) -> float | None:
    text = kept.get(name)
    return None if text is None else understood(name, lambda: float(text))
