"""`afresh show`: all about one page, and why it is due when it is."""

import math
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from afresh.cli.gone import LOOKED_AT, gone_in
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.reasons import counted, words
from afresh.cli.terminal import as_json, console, moment, now, plain
from afresh.cli.wording import why_fresh
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import PageState, Store
from afresh.store.socket_file import ask
from afresh.store.understood import number_kept
from afresh.types import Crawl, Outcome
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
    from afresh.cli.opening import open_store, settings
    from afresh.frontier import canonical

    address, read = canonical(url), settings(config, store)
    with open_store(read, create=False) as kept:
        state, crawls = kept.state(address), kept.history(address, LOOKED_AT)  # of about the same moment
        if state is None:
            raise InputError(f"{address} is not kept.", hint=f"Add it: afresh add {address}")
        if body:
            _write_body(kept, address)
            return
        facts = _facts(kept, state, crawls, now(), read)
        facts["history"] = [asdict(crawl) for crawl in crawls[:history]]
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


def _facts(kept: Store, state: PageState, crawls: list[Crawl], when: float, config: Config) -> dict[str, Any]:
    from afresh.cli.stated import stated_by_runner, stated_of
    from afresh.frontier import Retries, in_trouble

    retries, url = Retries(gone=config.crawl.gone_retry), state.page.url
    copy, said = kept.copy(url), _asked(config, url)
    price = (said or {}).get("price") or number_kept(kept, "price")
    stated = stated_by_runner(said) or stated_of(kept, state, price or 0.0, when, config.importance)
    host = kept.host(state.page.host)
    gone = gone_in(crawls) if state.failures else None
    last = crawls[0] if state.failures and crawls else None
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
            "fresh_probability": 0.0 if gone else stated.fresh,
            "fresh_because": why_fresh(stated.parts, state.signals) if stated.parts and not gone else "",
        },
        "crawls": state.crawls,
        "changes": state.changes,
        "failures": state.failures,
        "gone": None if gone is None else asdict(gone),
        "failing": None if last is None else {"outcome": last.outcome, "reason": last.reason, "time": last.time},
        "signals": state.signals,
        "beliefs": None if stated.beliefs is None else asdict(stated.beliefs),
        "host_ready": host.ready if host and host.ready > when else None,
        "host": None
        if host is None
        else {
            "failures": host.failures,
            "reason": host.reason,
            "since": host.since,
            "rate": host.rate(when),
            "in_trouble": in_trouble(host),
        },
        "noise": _noise(kept, state),
        "failed": _failed(crawls),
        "value": stated.value,
        "price": price,
        "due": stated.due,
        "held_by": stated.held_by,
        "first_crawls": _first_crawls(kept, state) if stated.first_crawls is None else stated.first_crawls,
        "by": "store" if said is None else "runner",
    }
    if last:
        facts["put_off"] = last.time + retries.put_off(last.outcome, state.failures, last.reason)
    budget = number_kept(kept, "budget")
    first = when + facts["first_crawls"] / budget if budget else None
    held = [until for until in (facts["host_ready"], facts.get("put_off"), first) if until and until > when]
    facts["due"] = max([facts["due"], *held])
    facts["why"] = _why(facts, when)
    return facts


def _first_crawls(kept: Store, state: PageState) -> int:
    """Pages without a copy, which go before a page that has one."""
    totals = kept.totals()
    return totals.pages - totals.copies if state.checked is not None else 0


def _failed(crawls: list[Crawl]) -> dict[str, int]:
    """Crawls that did not bring the page, by reason."""
    return dict(Counter(crawl.reason for crawl in crawls if not crawl.outcome.refreshed).most_common())


def _noise(kept: Store, state: PageState) -> list[dict[str, Any]]:
    """What counts as noise on a page, learned on the page and on its whole host, the earliest first."""
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
    believed, trouble = facts["beliefs"], _trouble(facts)
    if facts["held_by"] == "paused":
        return "It is paused, alone, with its host or with everything: `afresh resume` continues."
    if facts["gone"]:
        times = "once" if facts["failures"] == 1 else f"{facts['failures']:,} times in a row"
        later = f", and is asked again {moment(facts['put_off'])}" if facts.get("put_off", 0.0) > when else ""
        return f"Its server says that it is gone: {times}{later}."
    if trouble and facts["copy"] is None:
        return f"It was never fetched: {trouble}."
    if believed is None:
        return "It was never crawled; it waits for its first turn."
    parts = [
        f"it is believed to change {show_rate(believed['change_rate'])}",
        f"as {believed['observations']} checks tell to within a factor of {math.exp(believed['shape'] ** -0.5):.2g}",
        f"and to be wanted {show_rate(believed['request_rate'])}",
    ]
    if facts["copy"]:
        age = max(when - facts["copy"]["checked"], 0.0)
        parts.append(f"the copy is {show_duration(age)} old with {facts['signals']} signals")
        parts.append(f"so it is fresh with probability {facts['copy']['fresh_probability']:.2f}")
    else:
        parts.append("there is no copy yet")
    reason = "; ".join(parts)
    if facts["price"] is None:
        return f"No runner has set a price yet; {reason}."
    if facts["first_crawls"]:
        reason += f"; {facts['first_crawls']} pages have no copy yet, and their first crawls go before"
    if trouble:
        reason += f"; {trouble}"
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


def _trouble(facts: dict[str, Any]) -> str:
    """What is wrong with a page or its host, as a part of a sentence; "" if nothing is."""
    failures, failing, host = facts["failures"], facts["failing"], facts["host"]
    parts = []
    if facts["gone"]:
        parts.append(f"gone ({facts['gone']['status']} since {moment(facts['gone']['since'])})")
    if failing and failing["outcome"] != Outcome.GONE:
        many = "last attempt" if failures == 1 else f"last {failures:,} attempts"
        parts.append(f"its {many} failed ({words(failing['reason'])})")
    if host and host["in_trouble"]:
        times = f" ({host['failures']:,} in a row)" if host["failures"] > 1 else ""
        parts.append(f"its host fails: {words(host['reason'])} since {moment(host['since'])}{times}")
    return "; ".join(parts)


def _print_state(facts: dict[str, Any], when: float) -> None:
    """How the page is doing."""
    trouble = _trouble(facts) or ("well" if facts["copy"] else "not crawled yet")
    if facts["held_by"] == "paused":
        trouble = f"paused; {trouble}"
    for nth, part in enumerate(trouble.split("; ")):
        console.print(f"{'' if nth else 'state':12}{part}")
    again = max(facts.get("put_off") or 0.0, facts["host_ready"] or 0.0)
    if trouble != "well" and again > when + 1:
        console.print(f"            asked again {moment(again)}")


def _due(facts: dict[str, Any], when: float) -> str:
    """When the next crawl is due, for people."""
    if facts["held_by"] == "paused":
        return "not while it is paused"
    if facts["due"] <= when:
        return "now"
    return "not by itself" if math.isinf(facts["due"]) else moment(facts["due"])


def _print(facts: dict[str, Any]) -> None:
    when = now()
    console.print(plain(facts["url"], 2100))
    copy = facts["copy"]
    _print_state(facts, when)
    if copy is None:
        console.print("copy        none yet")
    else:
        kind = plain(copy["content_type"], 60) or "of unknown kind"
        console.print(f"copy        {show_size(copy['size'])}, {kind}, fetched {moment(copy['fetched'])}")
        console.print(f"            last known to be current {moment(copy['checked'])}")
        fresh = f"fresh now with probability {copy['fresh_probability']:.2f}"
        console.print(f"            {'the last copy of a page that is gone' if facts['gone'] else fresh}")
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
    console.print(f"due         {_due(facts, when)}")
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
    if failed := facts["failed"]:
        console.print(f"failed      {counted(failed)} (of the crawls in its history)")
    for line in facts["history"]:
        crawl = Crawl(**line)
        reason = f" ({_REASONS.get(crawl.reason) or words(crawl.reason)})" if crawl.reason else ""
        size = f", {show_size(crawl.size)}" if crawl.size else ""
        console.print(
            f"            {moment(crawl.time)}  {crawl.outcome}{reason}, status {crawl.status or 'none'}{size}, "
            f"took {show_duration(crawl.took)}"
        )
