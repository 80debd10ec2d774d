"""Compile the heart before anything waits for it."""

from afresh.engine.loop import Engine
from afresh.engine.names import FIRST_PLACES
from afresh.estimate import Activity, Learner
from afresh.schedule import Scheduler
from afresh.types import Fetched, Order, Outcome, Page, Request, Signal, Verdict


def compile_ahead() -> None:
    """Lead some pages through all that a live engine does: seconds once on a machine, then hardly any."""
    activity = Activity(width=1.0)
    engine = Engine(scheduler=Scheduler(budget=1.0, lease=60.0), estimator=Learner(), activity=activity)
    pages = [Page(f"https://a.example/{name}", "a.example") for name in ("b/c", "d/e")]
    for page in pages:
        engine.add(page, 0.0)
    some = [Page(f"https://b.example/{nth}", "b.example") for nth in range(FIRST_PLACES)]  # the table of names grows
    engine.add_many(some, 0.0)
    kept = b""
    for now in (2.0, 4.0, 6.0, 8.0):
        for page in pages:
            engine.observe(Signal(page.url, now, "sender"), now)
            engine.observe(Request(page.url, now), now)
        engine.observe_many([Signal(some[0].url, now, "sender"), Request(some[0].url, now)], now)
        order = engine.next(now)
        if isinstance(order, Order):
            outcome = Outcome.NEW if engine.current(order.url) is None else Outcome.CHANGED
            fetched = Fetched(order.url, now, 0.1, status=200)
            engine.finish(order, fetched, Verdict(outcome, significance=1.0), now)
            kept = engine.learned(order.url)
    engine.survey(9.0).carry_out()
    engine.survey(9.0, 1).carry_out()
    engine.explain(pages[0].url, 9.0)
    engine.remove(pages[0].url)
    engine.add(pages[0], 9.0, current=8.0, signals=1, learned=kept)
    engine.beliefs(pages[0].url, 9.0)
    engine.fresh_probability(pages[0].url, 9.0)
    engine.freshness_parts(pages[0].url, 9.0)
    engine.believe(pages[0].url, 9.0)
    engine.pause(pages[0].url)
    engine.resume(pages[0].url, 9.0)
    engine.remove_many([page.url for page in some])
