"""What a runner can be asked: first answers from the engine's own memory."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from afresh.daemon.answers import Question
from afresh.daemon.control import Control
from afresh.daemon.keeping import Keeper
from afresh.engine import Engine
from afresh.errors import InputError


def questions(
    *, engine: Engine, keeper: Keeper, clock: Callable[[], float], wake: Callable[[], None], control: Control
) -> dict[str, Question]:
    """The questions by name; a caller may put in others, and better ones."""

    def woken(_: Mapping[str, Any]) -> dict[str, Any]:
        wake()
        return {}

    def status(_: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "time": clock(),
            "pages": len(engine) + len(keeper.newcomers),
            "waiting": len(keeper.newcomers),
            "budget": engine.scheduler.budget,
            "price": engine.scheduler.price,
            "host_budgets": control.budgets(),
            "paused": {"everything": control.pauses.everything, "hosts": sorted(control.pauses.hosts)},
            "expected_freshness": engine.expected_freshness,
            "freshness_time": engine.freshness_time,
            "calibration": engine.calibration.summary() if engine.calibration.statements else None,
        }

    def page(arguments: Mapping[str, Any]) -> dict[str, Any]:
        url, now = str(arguments.get("url", "")), clock()
        if url not in engine:
            raise InputError(f"{url[:300]} is not among the pages that are crawled.", hint="Add it: afresh add URL")
        why = engine.explain(url, now)
        return {
            "time": now,
            "url": url,
            "beliefs": asdict(engine.beliefs(url, now)),
            "current": engine.current(url),
            "fresh_probability": engine.fresh_probability(url, now),
            "signals": engine.signals(url),
            "failures": engine.failures(url),
            "value": why.value,
            "price": why.price,
            "due": why.due,
            "held_by": why.held_by,
        }

    return {"wake": woken, "status": status, "page": page}
