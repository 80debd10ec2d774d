"""`afresh show`: all about one page, and why it is due when it is."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from afresh.cli.evidence import evidence, said_by
from afresh.cli.gone import LOOKED_AT, gone_in
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.reasons import counted, words
from afresh.cli.terminal import as_json, console, labelled, moment, now, plain
from afresh.cli.why import queue_of, told_of_costs, trouble_of, waits_for, waits_for_host, why
from afresh.cli.wishes import bounded, told, wishes_of
from afresh.cli.wording import gain_unit, why_fresh
from afresh.config import Config
from afresh.errors import InputError
from afresh.hours import hours
from afresh.store import PageState, Store
from afresh.store.base import EVERYTHING, NO_NEW_PAGES
from afresh.store.messages import WATCHED
from afresh.store.socket_file import ask
from afresh.store.understood import number_kept, understood
from afresh.types import STORE_FULL, Copy, Crawl, Outcome
from afresh.units import show_cost, show_count, show_duration, show_importance, show_rate, show_size

ON_REQUEST = (
    "it changes faster than it is asked for: it is run for who asks, and refreshed ahead only while the budget has room"
)
# The words of a page's history, for people.
_REASONS = {
    "not_modified": "its source says so",
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
    from afresh.cli.keys import kept_key
    from afresh.cli.opening import open_store, settings

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        address = kept_key(url, kept)
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
    from afresh.cli.allowed import allowed
    from afresh.cli.stated import stated_by_runner, stated_of
    from afresh.estimate.learner import foretold_in
    from afresh.frontier import Retries, in_trouble
    from afresh.sources.sql.cache import runs_on_request

    retries, url = Retries(gone=config.crawl.gone_retry), state.page.url
    copy, said = kept.copy(url), _asked(config, url)
    price = (said or {}).get("price") or number_kept(kept, price_of(url))
    stated = stated_by_runner(said) or stated_of(kept, state, price or 0.0, when, config.importance)
    if stated.first_crawls is None:
        first_crawls, waiting = _first_crawls(kept, state)
    else:
        first_crawls, waiting = stated.first_crawls, (said or {}).get("waiting", 0)
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
            "outdated": stated.outdated,
            "fresh_because": why_fresh(stated.parts, state.signals)
            if stated.parts and not gone and not stated.outdated
            else "",
        },
        "crawls": state.crawls,
        "changes": state.changes,
        "failures": state.failures,
        "gone": None if gone is None else asdict(gone),
        "failing": None if last is None else {"outcome": last.outcome, "reason": last.reason, "time": last.time},
        "kinds": (said or {}).get("kinds") or _kinds(state, config),
        "foretold": foretold_in(state.learned) if said is None else said.get("foretold"),
        "said": said_by(kept, state.page.host, copy),
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
        "keep_matches_nothing": copy is not None and _keeps_nothing(config, state.page.host, copy),
        "failed": _failed(crawls),
        "value": stated.value,
        "price": price,
        "due": stated.due,
        "held_by": stated.held_by,
        "first_crawls": first_crawls,
        "waiting": waiting if state.checked is not None else 0,  # for a first crawl, with half of the orders
        "by": "store" if said is None else "runner",
        "ahead": stated.ahead,  # crawls of its host that go before it
        "host_turn": stated.turn or None,  # seconds from one of them to the next
        "budget_spare": stated.spare,
        "host_allows_every": stated.every or None,  # seconds, if a longest interval is shorter than that
        "host_price": stated.host_price or None,  # where the host has a budget of its own
    }
    facts["learned_rate"] = None
    if config.crawl.policy == "mirror" or (said or {}).get("learned_rate"):
        facts["learned_rate"] = (said or {}).get("learned_rate") or _kept_rate(kept, config, url)
        if said is None and facts["learned_rate"] and facts["copy"]:
            facts["due"] = max(when, facts["copy"]["checked"] + 1.0 / facts["learned_rate"]["rate"])
    # Where nobody said how much any page is wanted, all count as if they had one request a second.
    facts["requests_known"] = stated.beliefs is not None and (
        stated.beliefs.request_rate != 1.0 or kept.get(WATCHED) is not None or state.page.importance is not None
    )
    budget = number_kept(kept, "budget")
    facts["politeness"] = allowed(kept, config).sentence(config.crawl.budget if budget is None else budget)
    facts["wishes"] = wishes_of(kept, config, state.page, when)
    if facts["wishes"]["held_by"]:
        facts["held_by"] = "paused"
    if not stated.ahead:  # the queue of a host counts all intervals
        facts["due"] = bounded(facts["due"], facts["wishes"], facts["copy"] and facts["copy"]["checked"])
    if last and not _has_room_again(kept, last, stated.held_by if said else ""):
        facts["put_off"] = last.time + retries.put_off(last.outcome, state.failures, last.reason)
    first = when + facts["first_crawls"] / budget if budget and said is None else None
    held = [until for until in (facts["host_ready"], facts.get("put_off"), first) if until and until > when]
    facts["due"] = max([facts["due"], *held])
    facts["unit"] = unit_of(url, kept, config)
    facts["costs"] = [state.cost_same, state.cost_new]
    facts["on_request"] = url.startswith("sql:") and runs_on_request(stated.beliefs)
    facts["refresh"] = None
    if state.urgent if said is None else said["urgent"]:
        facts["refresh"] = waits_for(facts)
        facts["due"] = facts["host_ready"] or when
    facts["why"] = why(facts, when)
    return facts


def price_of(url: str) -> str:
    """Under which name the store has what a crawl of this page has to gain."""
    if url.startswith("sql:"):
        return f"price {url.partition('/')[0]}"
    return "price files" if url.startswith("file:") else "price"


def unit_of(url: str, kept: Store, config: Config) -> str:
    """The unit of the budget that pays for a page."""
    from afresh.cli.build import definitions_for, purse_of

    if url.startswith("file:"):
        return config.files.budget.unit
    found = purse_of(config, url.partition("/")[0], definitions_for(config, kept)) if url.startswith("sql:") else None
    return config.crawl.budget.unit if found is None else found[0].unit


def _kept_rate(kept: Store, config: Config, url: str) -> dict[str, float] | None:
    """What a runner learned of a page from its costs; None if none did."""
    from afresh.daemon.keeping import LEARNED_RATES
    from afresh.mirror.kept import mark_of, read_learned

    text = kept.get(LEARNED_RATES)
    if text is None:
        return None
    _, rows = understood(LEARNED_RATES, lambda: read_learned(text))
    mine = rows[rows["mark"] == mark_of(url)]
    if not len(mine):
        return None
    budget = number_kept(kept, "budget") or config.crawl.budget
    if not budget > 0:
        return None
    unit = float(rows["rate"].sum()) * (1.0 + config.crawl.probes) / budget  # seconds an interval of the mean rate
    slope, cost, probe = (float(mine[0][name]) for name in ("slope", "cost", "probe"))
    return {"rate": float(mine[0]["rate"]) / unit, "slope": slope * unit, "cost": cost, "probe": probe}


def _has_room_again(kept: Store, last: Crawl, held_by: str) -> bool:
    """Whether a page that there was no room for comes back at once; `held_by` is what the runner says, if one runs."""
    if last.reason != STORE_FULL or held_by:
        return last.reason == STORE_FULL and held_by != "put off"
    takes = kept.space().takes
    return takes == EVERYTHING or (takes == NO_NEW_PAGES and last.elapsed is not None)


def _first_crawls(kept: Store, state: PageState) -> tuple[int, int]:
    """Pages without a copy: those that go before a page that has one, and those that only share the orders with it."""
    from afresh.frontier import site_of

    totals = kept.totals()
    without = totals.pages - totals.copies if state.checked is not None else 0
    sites: set[str] = set()
    for host, _, _ in kept.pages_by_host() if without else ():
        sites.add(site_of(host))
        if len(sites) > 1:
            return 0, without
    return without, 0


def _failed(crawls: list[Crawl]) -> dict[str, int]:
    """Crawls that did not bring the page, by reason."""
    return dict(
        Counter(
            crawl.reason for crawl in crawls if not (crawl.outcome.refreshed or crawl.outcome is Outcome.PROBED)
        ).most_common()
    )


def _keeps_nothing(config: Config, host: str, copy: Copy) -> bool:
    """Whether a site's rule says what to keep, and the copy has nothing of it."""
    from afresh.cli.build import detector_for

    return detector_for(config).rules_of(host).keeps_nothing_of(copy.body, copy.content_type)


def _kinds(state: PageState, config: Config) -> list[tuple[str, float]]:
    """The kinds of a page, by what was learned of it."""
    from afresh.cli.build import kinds_for
    from afresh.estimate.learner import kind_in

    kinds = kinds_for(config)
    return [] if kinds is None else kinds.said(kind_in(state.learned))


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


def _print_state(facts: dict[str, Any], when: float) -> None:
    """How the page is doing."""
    trouble = trouble_of(facts) or ("well" if facts["copy"] else "not crawled yet")
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
    console.print(
        f"history     {show_count(facts['crawls'], 'crawl')}, {show_count(facts['changes'], 'change')}, "
        f"{show_count(facts['failures'], 'failure')} in a row"
    )
    if failed := facts["failed"]:
        console.print(labelled("failed", f"{counted(failed)} (of the crawls in its history)"))
    for line in facts["history"]:
        crawl = Crawl(**line)
        reason = f" ({_REASONS.get(crawl.reason) or words(crawl.reason)})" if crawl.reason else ""
        size = f", {show_size(crawl.size)}" if crawl.size else ""
        what = f"{crawl.outcome}{reason}, status {crawl.status or 'none'}{size}, took {show_duration(crawl.took)}"
        console.print(labelled("", f"{moment(crawl.time)}  {what}"))
