"""Facts about the whole collection: by the runner where one runs, else from the store and the settings."""

from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from json import loads
from math import inf
from typing import Any

from afresh.cli.learning import learning_of
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import LastingStore, Sqlite, Store, understood
from afresh.store.listing import Wanted
from afresh.store.messages import FOUND_SO_FAR, Pauses, searches_kept
from afresh.store.socket_file import ask
from afresh.store.understood import number_kept
from afresh.types import Outcome

STARTING = "starting"  # the named value that says since when a runner starts
MAX_LOOKUPS = 1_000  # hosts that are looked up one by one; of more, all pages are counted
COMPILING = "compiling"  # the named value that says since when a runner compiles


def collection_facts(kept: LastingStore, config: Config, when: float) -> dict[str, Any]:
    """All that is known of the collection as a whole."""
    from afresh.cli.steered import steered

    said = ask(kept.path, "status") or _said_by_cluster(kept) or {}  # by who runs, knows most, and as of now
    wishes = steered(kept, config, said, when)
    facts = _facts(kept, when, config, said, wishes["paused"]) | wishes
    facts["notify"] = _notified(kept, config)
    facts["receiver"] = None
    with suppress(InputError):  # it receives nothing
        facts["receiver"] = ask(kept.path, "receiver") if said else None
    return facts


def _said_by_cluster(kept: LastingStore) -> dict[str, Any] | None:
    if isinstance(kept, Sqlite):
        return None
    from afresh.cli.cluster_facts import said_by_cluster

    return said_by_cluster(kept)


def _notified(kept: LastingStore, config: Config) -> list[dict[str, Any]]:
    """How it stands with those who are told of changes."""
    from afresh.store.outbox import Outbox

    if not config.notify and not Outbox(kept).all():
        return []
    from afresh.cli.notifying import notified

    return notified(kept, config)


def _failures(kept: LastingStore) -> dict[str, Any]:
    """Pages that are gone, pages that fail, and hosts that fail, of those with pages, by reason."""
    from afresh.frontier import in_trouble

    gone, failing, with_pages = 0, Counter[str](), set[str]()
    for each in kept.failing():
        with_pages.add(each.host)
        if each.outcome is Outcome.GONE:
            gone += each.pages
        else:
            failing[each.reason] += each.pages
    # What is known of a host stays when its pages are removed: nobody waits for it any more.
    troubled = [host for host in kept.hosts() if in_trouble(host)]
    doubtful = [host.host for host in troubled if host.host not in with_pages]
    if len(doubtful) > MAX_LOOKUPS:
        with_pages.update(host for host, _, _ in kept.pages_by_host())
    else:
        with_pages.update(host for host in doubtful if kept.listed(Wanted(host=host, limit=1)).pages)
    hosts = Counter(host.reason for host in troubled if host.host in with_pages)
    together = {"hosts": hosts.total(), "reasons": dict(hosts.most_common())} if hosts else None
    return {"gone": gone, "failing": dict(failing.most_common()), "failing_hosts": together}


def _facts(
    kept: LastingStore, when: float, config: Config, said: dict[str, Any], paused: dict[str, Any]
) -> dict[str, Any]:
    from afresh.cli.allowed import allowed
    from afresh.cli.without_copy import held_without_copy
    from afresh.frontier import Allowance, HostPatterns

    pauses = Pauses(paused["everything"], frozenset(paused["hosts"]))
    alive, totals, space = number_kept(kept, "alive"), kept.totals(), kept.space()
    budget, price = (said.get(name) or number_kept(kept, name) for name in ("budget", "price"))
    learning = learning_of(kept, config, said)
    polite = Allowance.from_text(said.get("allowance")) or allowed(kept, config)
    return {
        **asdict(totals),
        "pages": max(totals.pages, said.get("pages") or 0),  # those that are not durable yet included
        **_failures(kept),
        "used_bytes": space.used,
        "max_bytes": space.bound or None,
        "takes": space.takes,
        "running": (runs := bool(said) or kept.is_run()),
        "starting": number_kept(kept, STARTING) if runs and not said else None,
        "compiling": (compiling := number_kept(kept, COMPILING) if runs and not said else None),
        "last_alive": alive or None,  # 0 once it was stopped in order
        "budget": budget,
        "budget_unit": config.crawl.budget.unit,
        "purses": [each for each in said.get("purses") or [] if each["purse"] != "crawl"],
        "spent": next((each.get("spent") for each in said.get("purses") or [] if each["purse"] == "crawl"), None),
        "ahead": said.get("ahead"),
        "budget_by": said.get("budget_by", ""),
        "workers": said.get("workers"),  # of a cluster
        "next_budget": (following := _budget_at(config, when)),
        "sweep": config.crawl.sweep,
        "politeness_rate": polite.rate if polite.rate < inf else None,
        "politeness": polite.sentence(budget if runs and budget is not None else following),
        "held_without_copy": held_without_copy(kept, HostPatterns(config.crawl.never), pauses, when),
        "learning": learning,
        "price": price if learning is None else None,  # where rates are learned from costs there is none
        "budget_spare": bool(said.get("budget_spare")),
        "waiting": said.get("waiting") or 0,  # for a first crawl, while copies are refreshed
        # What says how fresh copies are is compiled just now: nobody compiles it a second time.
        **(_said_by_runner(said, when) or (_unsaid() if compiling else _freshness(kept, when, config))),
        "found": said.get("found") or understood(FOUND_SO_FAR, lambda: _found(kept.get(FOUND_SO_FAR))),
        "searches": said.get("searches") or searches_kept(kept.get),
        "calibration": _whole(said.get("calibration") or _calibration_kept(kept)),
    }


def _budget_at(config: Config, when: float) -> float:
    """What a run by the settings alone may crawl at a moment."""
    crawl = config.crawl
    return next((budget for hours, budget in crawl.budget_hours if hours.are_open(when)), crawl.budget)


def _said_by_runner(said: dict[str, Any], when: float) -> dict[str, Any] | None:
    stated = said.get("freshness")
    return stated and {
        "expected_freshness": stated["share"],
        "freshness_weighted_by": "requests" if stated["by_requests"] else "pages",
        "freshness_by": "runner",
        "freshness_age": max(when - stated["time"], 0.0),
    }


def _freshness(kept: Store, when: float, config: Config) -> dict[str, Any]:
    """How fresh copies are according to the store, what that is weighted by, and how old the figure is."""
    from afresh.cli.stated import stated_freshness

    stated, by_requests = stated_freshness(kept, when, config.importance) or (None, False)
    return _unsaid() | {
        "expected_freshness": stated,
        "freshness_weighted_by": "requests" if by_requests else "pages",
    }


def _unsaid() -> dict[str, Any]:
    return {
        "expected_freshness": None,
        "freshness_weighted_by": "pages",
        "freshness_by": "store",
        "freshness_age": 0.0,
    }


def _calibration_kept(kept: LastingStore) -> dict[str, Any] | None:
    """The same as the store has it: of one process, or of the workers of a cluster together."""
    if not isinstance(kept, Sqlite):
        from afresh.cli.cluster_learned import calibration_of_all

        if (of_all := calibration_of_all(kept)) is not None:
            return of_all
    return _calibration(kept.get("calibration"))


def _calibration(text: str | None) -> dict[str, Any] | None:
    """How far statements about copies came true, as the runner recorded it; None before the first check."""
    return understood("calibration", lambda: _summary(loads(text))) if text else None


def _whole(summary: dict[str, Any] | None) -> dict[str, Any] | None:
    """Old statements fade, so that the sums are not whole; for people and programs they are counts."""
    if summary is None:
        return None
    rows = [row | {"statements": round(row["statements"])} for row in summary["rows"]]
    return summary | {"statements": round(summary["statements"]), "rows": rows}


def _summary(kept: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = kept["summary"]
    numbers = [summary[name] for name in ("statements", "brier", "bias")]
    numbers += [row[name] for row in summary["rows"] for name in ("stated", "fresh", "statements")]
    for number in numbers:
        float(number)
    return summary


def _found(text: str | None) -> dict[str, float] | None:
    """How much the last run knew, and how much of that waited; None if it found nothing."""
    return None if text is None else {str(name): float(count) for name, count in loads(text).items()}
