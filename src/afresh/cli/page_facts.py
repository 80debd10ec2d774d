"""Facts about one page: by the runner where one runs, else from the store and the settings."""

from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from afresh.cli.evidence import said_by
from afresh.cli.gone import LOOKED_AT, gone_in
from afresh.cli.opening import place_of
from afresh.cli.why import waits_for, why
from afresh.cli.wishes import bounded, wishes_of
from afresh.cli.wording import why_fresh
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import PageState, Store
from afresh.store.base import EVERYTHING, NO_NEW_PAGES
from afresh.store.messages import WATCHED
from afresh.store.socket_file import ask
from afresh.store.understood import number_kept, understood
from afresh.types import STORE_FULL, Address, Copy, Crawl, Outcome
from afresh.units import show_importance


def page_facts(kept: Store, config: Config, url: str, when: float, history: int) -> dict[str, Any] | None:
    """All that is known of a page, with so many of its latest crawls; None if it is not kept."""
    state, crawls = kept.state(url), kept.history(url, LOOKED_AT)  # of about the same moment
    if state is None:
        return None
    if isinstance(config.store.path, Address):
        from afresh.cli.cluster_facts import as_its_owner

        kept = as_its_owner(kept, url)
    facts = _facts(kept, state, crawls, when, config)
    facts["history"] = [asdict(crawl) for crawl in crawls[:history]]
    return facts


def _asked(config: Config, url: str) -> dict[str, Any] | None:
    """What the runner says of a page; None if there is none, or it does not know the page."""
    with suppress(InputError):
        answer: dict[str, Any] | None = ask(place_of(config), "page", {"url": url})
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
    ready = max((said or {}).get("host_ready") or 0.0, host.ready if host else 0.0)
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
        "gone": None if gone is None else gone.facts(),
        "failing": None
        if last is None
        else {"outcome": last.outcome, "reason": last.reason, "time": last.time, "said": failure_said(kept, url)},
        "kinds": (said or {}).get("kinds") or _kinds(state, config),
        "foretold": foretold_in(state.learned) if said is None else said.get("foretold"),
        "said": said_by(kept, state.page.host, copy),
        "signals": state.signals,
        "heard": _heard(kept, url) if said is None else said.get("heard", []),
        "beliefs": None if stated.beliefs is None else asdict(stated.beliefs),
        "host_ready": ready if ready > when else None,
        "host_rest": (said or {}).get("host_rest"),
        "host_lent": (said or {}).get("host_lent") or 0.0,  # turns in the last minute, to a serving cache
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
        # For a first crawl, with half of the orders.
        "waiting": waiting if state.checked is not None or stated.held_by == "first turn" else 0,
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


def failure_said(kept: Store, url: str) -> str:
    """What a database said last of a query that fails; "" if nothing is known."""
    from afresh.sources.sql.source import FAILED_VALUE

    return (kept.get(FAILED_VALUE + url) or "") if url.startswith("sql:") else ""


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


def _heard(kept: Store, url: str) -> list[dict[str, Any]]:
    """Who said of a page that it changed, as the last runner kept it."""
    from afresh.daemon.heard import KEPT, HeardOf

    return understood(KEPT, lambda: HeardOf.from_text(kept.get(KEPT))).of(url)


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
