"""What a runner can be asked: answers from the engine's own memory, as it is at that moment."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from afresh.daemon.answers import Question
from afresh.daemon.control import Control
from afresh.daemon.costing import Costing
from afresh.daemon.keeping import Keeper
from afresh.daemon.kinds import Kinds
from afresh.daemon.overview import Overview
from afresh.daemon.searching import Searching
from afresh.engine import AnyEngine
from afresh.errors import InputError

MAX_URLS = 200  # in one question


def questions(
    *,
    engine: AnyEngine,
    keeper: Keeper,
    overview: Overview,
    clock: Callable[[], float],
    wake: Callable[[], None],
    control: Control,
    kinds: Kinds | None = None,
    costing: Costing | None = None,
    grades: Callable[[], list[dict[str, Any]]] = list,
    searching: Searching | None = None,
    heard: Callable[[str], list[dict[str, Any]]] = lambda url: [],
    lent: Callable[[str], float] = lambda lane: 0.0,
    ahead: Callable[[], dict[str, float] | None] = lambda: None,
) -> dict[str, Question]:
    """The questions by name; a caller may put in others, and better ones."""

    by_costs = engine.first.by_costs

    def woken(_: Mapping[str, Any]) -> dict[str, Any]:
        wake()
        return {}

    async def status(_: Mapping[str, Any]) -> dict[str, Any]:
        await overview.renew_unless_new()
        return {
            "time": clock(),
            "pages": len(engine),
            "waiting": keeper.waiting,
            "found": keeper.sources.found() or None,
            "budget": engine.first.budget,
            "price": engine.first.price,
            "budget_spare": getattr(engine.first.scheduler, "spare", False),
            "purses": overview.purses(),
            "ahead": ahead(),
            "freshness": None if overview.stated is None else asdict(overview.stated),
            "allowance": None if overview.allowance is None else overview.allowance.to_text(),
            "budget_hours": [{"hours": hours.text, "budget": budget} for hours, budget in control.budget_hours],
            "budget_by": control.budget_by,
            "host_budgets": control.budgets(),
            "outside_hours": control.outside_hours(),
            "paused": {
                "everything": control.pauses.everything,
                "hosts": sorted(control.pauses.hosts),
                "pages": len(control.paused_pages),
            },
            "searches": None if searching is None else searching.summary(),
            "calibration": engine.calibration.summary() if engine.calibration.statements else None,
            "learning": None if by_costs is None else asdict(by_costs.costs_learned()),
            "costs": None if costing is None else costing.summary(),
        }

    def senders(_: Mapping[str, Any]) -> list[dict[str, Any]]:
        return engine.senders.summary()

    def graded(_: Mapping[str, Any]) -> list[dict[str, Any]]:
        return grades()

    def of_kinds(_: Mapping[str, Any]) -> dict[str, Any] | None:
        return None if kinds is None else kinds.summary(engine.first)

    def fresh(arguments: Mapping[str, Any]) -> list[float | None]:
        """How likely each of some pages has a fresh copy: 0 if it is gone; None for what is not crawled."""
        urls, now = arguments.get("urls"), clock()
        if not isinstance(urls, list) or len(urls) > MAX_URLS:
            raise InputError(f"Name up to {MAX_URLS} pages.", hint="Ask again for the others.")

        def said(url: str) -> float | None:
            if url not in engine:
                return None
            return 0.0 if engine.is_gone(url) else engine.fresh_probability(url, now)

        return [said(url) for url in map(str, urls)]

    def page(arguments: Mapping[str, Any]) -> dict[str, Any]:
        url, now = str(arguments.get("url", "")), clock()
        if url not in engine:
            raise InputError(f"{url[:300]} is not among the pages that are crawled.", hint="Add it: afresh add URL")
        why, learned = engine.explain(url, now), engine.learned_rate(url)
        part, host = engine.part_of(url), engine.host_of(url)
        rest = engine.lanes.rest(host)
        unit = 1.0 if part.costs is None else part.costs.typical  # of the schedule, in that of the budget
        return {
            "time": now,
            "url": url,
            "beliefs": asdict(engine.beliefs(url, now)),
            "current": engine.current(url),
            "outdated": engine.is_outdated(url),
            "urgent": keeper.state(url).urgent,
            "fresh_probability": engine.fresh_probability(url, now),
            "kinds": [] if kinds is None else kinds.said(engine.kind(url)),
            "foretold": engine.foretold(url),
            "signals": engine.signals(url),
            "heard": heard(url),
            "failures": engine.failures(url),
            "value": why.value / unit,
            "price": why.price / unit,
            "due": why.due,
            "held_by": why.held_by,
            "first_crawls": why.first_crawls,
            "waiting": keeper.waiting,
            "purse": part.purse,
            "costs": engine.costs_of(url),
            "ahead": why.ahead,
            "turn": why.turn,
            "spare": why.spare,
            "every": why.every,
            "host_price": engine.lanes.price(host),
            "host_ready": engine.lanes.state(host).ready,
            "host_rest": {"seconds": rest.seconds, "because": rest.because},
            "host_lent": lent(host),
            "learned_rate": None if learned is None else asdict(learned),
            "parts": None if engine.current(url) is None else asdict(engine.freshness_parts(url, now)),
        }

    of_pages: dict[str, Question] = {"page": page, "fresh": fresh}
    return of_pages | {"wake": woken, "status": status, "senders": senders, "grades": graded, "kinds": of_kinds}
