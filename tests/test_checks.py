"""What the library says to wrong arguments: a sentence and a hint, never an error from far inside."""

from collections.abc import Callable

import pytest

from afresh import Engine, Fetched, Outcome, Page, Request, Verdict
from afresh.errors import AfreshError
from afresh.estimate import Grid, Learner, typical_rate
from afresh.schedule import Scheduler
from afresh.types import Order
from afresh.value import crawl_value, optimum

URL = "https://example.com/"


def engine() -> Engine:
    made = Engine(scheduler=Scheduler.live(budget=2.0), estimator=Grid(typical_rate=0.1))
    made.add(Page(URL, "example.com"), now=0.0)
    return made


def ordered(made: Engine) -> Order:
    order = made.next(5.0)
    assert isinstance(order, Order)
    return order


def backwards() -> object:
    made = engine()
    made.next(5.0)
    return made.next(4.0)


FETCHED = Fetched(URL, 5.0, 0.1, 200)
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "now": (backwards, "now went backwards, from 5.0 to 4.0."),
    "text for now": (lambda: engine().next("soon"), "now must be a moment in seconds, not 'soon'."),  # type: ignore[arg-type]
    "scheduler": (
        lambda: Engine(scheduler="live", estimator=Grid()),
        "scheduler must be such as Scheduler.live(budget=2.0)",
    ),  # type: ignore[arg-type]
    "estimator": (
        lambda: Engine(scheduler=Scheduler.live(budget=1.0), estimator=3),
        "estimator must be such as Learner()",
    ),  # type: ignore[arg-type]
    "verdict": (
        lambda: (made := engine()).finish(ordered(made), FETCHED, Outcome.NEW, 5.0),  # type: ignore[arg-type]
        "verdict must be a Verdict, not",
    ),
    "order": (lambda: engine().finish(None, FETCHED, Verdict(Outcome.NEW), 5.0), "order must be a Order, not None"),  # type: ignore[arg-type]
    "page": (lambda: engine().add(URL, 0.0), "page must be a Page, not 'https://example.com/'."),  # type: ignore[arg-type]
    "evidence": (lambda: engine().observe(URL), "evidence must be a Signal or Request"),  # type: ignore[arg-type]
    "count": (lambda: engine().observe(Request(URL, 1.0, "3")), "count must be a number, not '3'."),  # type: ignore[arg-type]
    "unknown": (
        lambda: engine().fresh_probability("http://other/", 1.0),
        "'http://other/' is not a page of this engine.",
    ),
    "removed": (lambda: engine().remove("http://other/"), "'http://other/' is not a page of this engine."),
    "budget": (lambda: Scheduler.live(budget="2/s"), "budget must be a number, not '2/s'."),  # type: ignore[arg-type]
    "many": (lambda: Scheduler(budget="2/s"), "budget must be a number, not '2/s'."),  # type: ignore[arg-type]
    "negative": (
        lambda: Scheduler.live(budget=-1.0),
        "budget must be a finite number of at least 0 and at most 1e+09, not -1.0.",
    ),
    "typical": (lambda: Learner(typical_rate="1/d"), "typical_rate must be a number, not '1/d'."),  # type: ignore[arg-type]
    "typical budget": (lambda: typical_rate("2/s", 10), "budget must be a number, not '2/s'."),  # type: ignore[arg-type]
    "rate": (lambda: crawl_value(5.0, change_rate="2/s"), "change_rate must be numbers, not '2/s'."),
    "rates": (
        lambda: optimum(budget=1.0, request_rate=["1", "x"], change_rate=0.1),
        "request_rate must be numbers, not ['1', 'x'].",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_gets_a_sentence(name: str) -> None:
    act, said = WRONG[name]
    with pytest.raises(AfreshError) as refused:
        act()
    assert refused.value.message.startswith(said)
    assert refused.value.hint


def test_the_same_moment_twice_is_no_step_backwards() -> None:
    made = engine()
    made.next(5.0)
    made.next(5.0)
