from datetime import UTC, datetime
from email.utils import formatdate

import pytest

from afresh.daemon.dates import ELSEWHERE, IN_PAGE, Dates, Written
from afresh.engine import Engine
from afresh.estimate import Grid, Learner
from afresh.estimate.lifetimes import Lifetimes
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
    again.begin(to, dates.values(to).get)
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


def read(dates: Dates, to: Engine, outcome: Outcome, written: Written, checked: float = NOW - DAY) -> None:
    before = PageState(Page(URL, HOST), checked=checked)
    dates.hear(to, before, Fetched(URL, NOW, 0.1, status=200), Verdict(outcome), NOW, written)


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def test_dates_that_a_page_writes_are_graded_apart_from_those_of_its_answers() -> None:
    dates, to, key = Dates(WEB), engine(Learner(typical_rate=1 / DAY)), IN_PAGE + HOST
    read(dates, to, Outcome.NEW, Written((iso(NOW - 60 * DAY),)))
    for _ in range(12):
        read(dates, to, Outcome.CHANGED, Written((iso(NOW - 0.3 * DAY), "2001-01-01"), (iso(NOW - 9 * DAY),)))
        read(dates, to, Outcome.UNCHANGED, Written())  # the same bytes: it stood still
    assert dates.trust.of(key) > 0.3
    assert dates.trust.graded(HOST) == 0
    for _ in range(12):
        read(dates, to, Outcome.CHANGED, Written((iso(NOW - 9 * DAY),), (iso(NOW - 9 * DAY),)))
    assert dates.trust.of(key) < 0.1


def test_what_no_date_can_be_is_none_and_a_day_is_within_a_day() -> None:
    dates, to, key = Dates(WEB), engine(Learner()), IN_PAGE + HOST
    for text in ("1970-01-01", "2199-01-01", "soon", "9" * 99, "2023-02-31"):
        read(dates, to, Outcome.NEW, Written((text,)))
    assert not dates.trust.knows(key)
    today = iso(NOW)[:10]
    for _ in range(10):
        read(dates, to, Outcome.CHANGED, Written((today,), ("2020-01-01",)), checked=NOW - 3600.0)
    assert dates.trust.graded(key) > 8
    assert to.beliefs(URL, NOW).observations == 0


def given(dates: Dates, to: Engine, outcome: Outcome, lifetime: float, elapsed: float = DAY) -> None:
    meta = {"cache-control": f"max-age={lifetime:.0f}"}
    before = PageState(Page(URL, HOST), checked=None if outcome is Outcome.NEW else NOW - elapsed)
    dates.hear(to, before, Fetched(URL, NOW, 0.1, status=200, meta=meta), Verdict(outcome), NOW)


def test_a_lifetime_moves_what_is_believed_as_far_as_its_host_can_be_trusted() -> None:
    rates = []
    for lifetime in (600.0, 40 * DAY):
        dates, to = Dates(WEB), engine(Learner(typical_rate=1 / DAY))
        for _ in range(30):  # half of its pages have short lives, and need them
            dates.lifetimes.saw(HOST, 600.0, DAY, changed=True)
            dates.lifetimes.saw(HOST, 40 * DAY, DAY, changed=False)
        given(dates, to, Outcome.NEW, lifetime)
        rates.append(to.beliefs(URL, NOW).change_rate)
    assert rates[0] > 2.0 * rates[1]
    silent = engine(Learner(typical_rate=1 / DAY))
    assert rates[0] > silent.beliefs(URL, NOW).change_rate > rates[1]


def test_lifetimes_are_judged_by_the_first_crawls_and_survive_a_restart() -> None:
    dates, to = Dates(WEB), engine(Learner())
    dates.promised(to, URL, 7 * DAY)
    given(dates, to, Outcome.NEW, 3600.0)
    for _ in range(9):
        given(dates, to, Outcome.UNCHANGED, 3600.0)
    for whose in (HOST, ELSEWHERE + HOST):
        assert dates.lifetimes.graded(whose) == 5
    assert dates.lifetimes.factor(HOST) < 0.2  # an hour is said, and days are true
    again = Dates(WEB)
    again.begin(to, dates.values(to).get)
    assert again.lifetimes.factor(HOST) == pytest.approx(dates.lifetimes.factor(HOST), rel=1e-3)
    with pytest.raises(ValueError, match="no counts"):
        Lifetimes.from_text('{"score": 0, "hosts": {"a": [1, 2]}}')


@pytest.mark.parametrize("told", [True, False])
def test_a_change_that_signals_told_of_says_nothing_of_silent_ones(told: bool) -> None:
    dates, to = Dates(WEB), engine(Learner(typical_rate=1 / DAY))
    for _ in range(30):
        dates.trust.grade(HOST, changed=True, moved=True)
        dates.trust.grade(HOST, changed=False, moved=False)
    before = to.beliefs(URL, NOW)
    old, new = (Validators(last_modified=formatdate(NOW - days * DAY, usegmt=True)) for days in (30.0, 0.01))
    state = PageState(Page(URL, HOST), validators=old, checked=NOW - 2 * DAY)
    fetched, verdict = Fetched(URL, NOW, 0.1, status=200), Verdict(Outcome.CHANGED, validators=new)
    dates.hear(to, state, fetched, verdict, NOW, told=told)
    assert (to.beliefs(URL, NOW) == before) is told
