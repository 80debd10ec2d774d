from email.utils import formatdate

import pytest

from afresh.daemon.dates import Dates
from afresh.engine import Engine
from afresh.estimate import Grid, Learner
from afresh.fetch import Scripted
from afresh.schedule import Scheduler
from afresh.sources import Sources, Web
from afresh.store import PageState
from afresh.types import Fetched, Outcome, Page, Validators, Verdict

WEB = Sources([Web(Scripted({}))])
URL, HOST, NOW, DAY = "http://a.example/", "a.example", 1.7e9, 86400.0


def engine(estimator: object) -> Engine:
    made = Engine(scheduler=Scheduler.live(budget=1.0), estimator=estimator)  # type: ignore[arg-type]
    made.add(Page(URL, HOST), NOW)
    return made


def hear(dates: Dates, to: Engine, outcome: Outcome, old: float | None, new: float | None, checked: float) -> None:
    named = [Validators(last_modified="" if each is None else formatdate(each, usegmt=True)) for each in (old, new)]
    before = PageState(Page(URL, HOST), validators=named[0], checked=checked)
    dates.hear(to, before, Fetched(URL, NOW, 0.1, status=200), Verdict(outcome, validators=named[1]), NOW)


@pytest.mark.parametrize("old_content", [True, False])
def test_old_content_is_believed_to_change_slowly(old_content: bool) -> None:
    dates, silent, told = Dates(WEB), engine(Learner(typical_rate=1 / DAY)), engine(Learner(typical_rate=1 / DAY))
    for _ in range(20):
        dates.trust.grade(HOST, changed=True, moved=True)
        dates.trust.grade(HOST, changed=False, moved=False)
    hear(dates, told, Outcome.NEW, None, NOW - (60 * DAY if old_content else 60.0), NOW)
    slower = told.beliefs(URL, NOW).change_rate < silent.beliefs(URL, NOW).change_rate
    assert slower is old_content


def test_dates_are_graded_by_what_crawls_find() -> None:
    dates, to = Dates(WEB), engine(Learner())
    for outcome, old, new in (
        (Outcome.CHANGED, NOW - 9 * DAY, NOW - 0.5 * DAY),  # moved, within the interval
        (Outcome.UNCHANGED, NOW - 9 * DAY, NOW - 9 * DAY),
    ):
        for _ in range(10):
            hear(dates, to, outcome, old, new, NOW - DAY)
    assert 17 <= dates.trust.graded(HOST) <= 20  # older ones fade
    assert dates.trust.of(HOST) > 0.2
    again = Dates(WEB)
    again.begin({"dates": dates.values()["dates"]}.get)
    assert again.trust.of(HOST) == pytest.approx(dates.trust.of(HOST), abs=1e-3)


@pytest.mark.parametrize(
    ("outcome", "old", "new"),
    [
        (Outcome.CHANGED, NOW - 9 * DAY, NOW - 9 * DAY),  # stuck
        (Outcome.CHANGED, NOW - 9 * DAY, NOW - 5 * DAY),  # moved to before the last visit
        (Outcome.UNCHANGED, NOW - DAY, NOW - 1.0),  # always now
    ],
)
def test_dates_that_lie_lose_their_weight(outcome: Outcome, old: float, new: float) -> None:
    dates, to = Dates(WEB), engine(Learner())
    before = dates.trust.of(HOST)
    for _ in range(10):
        hear(dates, to, outcome, old, new, NOW - DAY)
    assert dates.trust.of(HOST) < 0.5 * before


def test_no_date_no_evidence_and_no_estimator_for_it_no_fault() -> None:
    dates, to = Dates(WEB), engine(Grid())
    hear(dates, to, Outcome.NEW, None, NOW - DAY, NOW)
    hear(dates, to, Outcome.CHANGED, None, NOW - DAY, NOW - 2 * DAY)
    hear(dates, to, Outcome.UNCHANGED, NOW - DAY, None, NOW - 2 * DAY)
    assert dates.trust.graded(HOST) == 0
