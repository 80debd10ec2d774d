"""Absurd arguments, all through the library: each gets one sentence, or an answer that makes sense."""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from afresh import Engine, Fetched, Outcome, Page, Request, Signal, Verdict
from afresh.errors import AfreshError
from afresh.estimate import Activity, Calibration, Grid, Learner, Senders, typical_rate
from afresh.schedule import Greedy, Pick, Plain, Scheduler
from afresh.types import Importance, Order
from afresh.value import (
    budget_for,
    crawl_interval,
    crawl_rate,
    crawl_value,
    fresh_share,
    fresh_time,
    freshness,
    optimum,
    plan,
    refresh_probabilities,
    staleness,
)

ABSURD = (math.nan, math.inf, -math.inf, -1.0, -1, 0.0, 1e300, -1e300, 1e-300, 10**400, "x", None, True)
URL, OTHER, HOST = "https://example.com/", "https://example.org/", "example.com"
Act = Callable[[Any], object]


def numbers_in(answer: object) -> Iterator[float]:
    """All numbers of an answer."""
    if isinstance(answer, float | np.number):
        yield float(answer)
    elif isinstance(answer, np.ndarray):
        yield from answer.astype(float).ravel().tolist()
    elif is_dataclass(answer) and not isinstance(answer, type):
        for each in fields(answer):
            yield from numbers_in(getattr(answer, each.name))
    elif isinstance(answer, tuple | list):
        for part in answer:
            yield from numbers_in(part)


# --- the engine: whatever one page is told, the next crawls of it and of another one go on ---


def engine(learner: bool, **options: Any) -> Engine:
    estimator: Any = Learner(typical_rate=0.1) if learner else Grid(typical_rate=0.1)
    return Engine(
        scheduler=Scheduler.live(budget=2.0, sweep=0.5), estimator=estimator, activity=Activity(width=1.0), **options
    )


def crawled(made: Engine, now: float, crawls: int = 6) -> list[object]:
    """What the engine says and does for some crawls."""
    said: list[object] = []
    for _ in range(crawls):
        now += 2.0
        order = made.next(now)
        said.append(order)
        if isinstance(order, Order):
            outcome = Outcome.CHANGED if made.current(order.url) is not None else Outcome.NEW
            said.append(made.finish(order, Fetched(order.url, now, 0.1, 200), Verdict(outcome), now + 0.1))
    for page in made.pages():
        said += [made.beliefs(page.url, now), made.explain(page.url, now)]
        said += [made.fresh_probability(page.url, now), made.freshness_parts(page.url, now)]
        assert 0.0 <= made.fresh_probability(page.url, now + 1.0) <= 1.0
    said.append(made.survey(now).carry_out())
    return said


def going(learner: bool) -> tuple[Engine, Order]:
    """An engine with two pages, one of them given out at 5 s."""
    made = engine(learner)
    for url, host in ((URL, HOST), (OTHER, "example.org")):
        made.add(Page(url, host), 0.0, current=-10.0)
    order = made.next(5.0)
    assert isinstance(order, Order)
    return made, order


def adding(learner: bool, **given: Any) -> object:
    made = engine(learner)
    page = replace(Page(URL, HOST), **{name: value for name, value in given.items() if name in PAGE_FIELDS})
    made.add(Page(OTHER, "example.org"), 0.0)
    made.add(page, **{"now": 0.0, **{name: value for name, value in given.items() if name not in PAGE_FIELDS}})
    return crawled(made, given["now"] if isinstance(given.get("now"), float) else 0.0)


def finishing(learner: bool, **given: Any) -> object:
    made, order = going(learner)
    fetched, verdict = Fetched(order.url, 5.0, 0.1, 200), Verdict(Outcome.CHANGED)
    for name in ("started", "took", "status", "retry_after", "body", "reason_of_fetch"):
        if name in given:
            fetched = replace(fetched, **{name: given.pop(name)})
    for name in ("outcome", "significance"):
        if name in given:
            verdict = replace(verdict, **{name: given.pop(name)})
    crawl = made.finish(order, fetched, verdict, **{"now": 5.1, **given})
    return [crawl, *crawled(made, 5.1)]


def hearing(learner: bool, evidence: Signal | Request) -> object:
    made, _ = going(learner)
    made.observe(evidence, now=6.0)
    return crawled(made, 6.0)


def told(learner: bool, act: Callable[[Engine, Order], object]) -> object:
    made, order = going(learner)
    return [act(made, order), *crawled(made, 6.0)]


PAGE_FIELDS = {each.name for each in fields(Page)}
FIELDS = ("added", "importance", "depth", "shortest", "longest", "hours", "popularity", "url", "host")


def engine_calls(learner: bool) -> dict[str, Act]:
    name = "learner" if learner else "grid"
    calls: dict[str, Act] = {f"page {each}": lambda v, e=each: adding(learner, **{e: v}) for each in FIELDS}
    for each in ("now", "current", "signals", "failures", "learned"):
        calls[f"add {each}"] = lambda v, e=each: adding(learner, **{e: v})
    calls["importance"] = lambda v: adding(learner, importance=Importance(v))
    calls["importance times"] = lambda v: adding(learner, importance=Importance(v, times=True))
    for each in ("started", "took", "status", "retry_after", "body", "outcome", "significance", "now", "rest"):
        calls[f"finish {each}"] = lambda v, e=each: finishing(learner, **{e: v})
    calls["signal time"] = lambda v: hearing(learner, Signal(URL, v))
    calls["signal sender"] = lambda v: hearing(learner, Signal(URL, 5.5, v))
    calls["request time"] = lambda v: hearing(learner, Request(URL, v))
    calls["request count"] = lambda v: hearing(learner, Request(URL, 5.5, v))
    calls["observe now"] = lambda v: told(learner, lambda made, _: made.observe(Signal(URL, 5.5), now=v))
    calls["next"] = lambda v: told(learner, lambda made, _: None if v == 1e300 else made.next(v))
    calls["fresh"] = lambda v: told(learner, lambda made, _: made.fresh_probability(URL, v))
    calls["fresh url"] = lambda v: told(learner, lambda made, _: made.fresh_probability(v, 6.0))
    calls["parts"] = lambda v: told(learner, lambda made, _: made.freshness_parts(URL, v))
    calls["beliefs"] = lambda v: told(learner, lambda made, _: made.beliefs(URL, v))
    calls["explain"] = lambda v: told(learner, lambda made, _: made.explain(URL, v))
    calls["survey"] = lambda v: told(learner, lambda made, _: made.survey(v).carry_out())
    calls["release"] = lambda v: told(learner, lambda made, order: made.release(order, v))
    calls["release gap"] = lambda v: told(learner, lambda made, order: made.release(order, 5.0, v))
    calls["resume"] = lambda v: told(learner, lambda made, _: made.resume(URL, v))
    calls["crawl now"] = lambda v: told(learner, lambda made, _: made.crawl_now(URL, v))
    calls["tell now"] = lambda v: told(learner, lambda made, _: made.tell(Page(URL, HOST, popularity=2.0), v))
    calls["tell popularity"] = lambda v: told(learner, lambda made, _: made.tell(Page(URL, HOST, popularity=v), 6.0))
    calls["tell shortest"] = lambda v: told(learner, lambda made, _: made.tell(Page(URL, HOST, shortest=v), 6.0))
    return {f"{name}: {each}": act for each, act in calls.items()}


# --- schedulers ---

MAKERS: dict[str, Callable[..., Any]] = {
    "Plain": lambda **options: Plain(Greedy(), **options),
    "live": Scheduler.live,
    "Scheduler": lambda **options: Scheduler(**{"lease": 120.0, **options}),
}
ADDING = ("request_rate", "change_rate", "recall", "false_rate", "cost", "host", "now", "age", "signals", "shape")
UPDATING = tuple(name for name in ADDING if name not in ("cost", "host"))


def scheduled(make: Callable[..., Any], first: Callable[[Any], object] = lambda _: None, **options: Any) -> object:
    """What a scheduler says that was told something, and that it goes on for some picks."""
    scheduler = make(**{"budget": 1.0, "sweep": 0.5, **options})
    for host in range(3):
        scheduler.add(request_rate=1.0, change_rate=0.1, host=host, now=0.0, age=3.0)
    said: list[object] = [first(scheduler)]
    for now in range(1, 12):
        pick = scheduler.next(float(now))
        said.append(pick)
        if isinstance(pick, Pick):
            scheduler.finish(pick.slot, float(now), crawled=float(now))
    return [*said, *(scheduler.explain(slot, 12.0) for slot in range(3)), scheduler.price]


def schedule_calls(name: str) -> dict[str, Act]:
    make = MAKERS[name]
    add = {"request_rate": 1.0, "change_rate": 0.1, "host": 5, "now": 0.0}
    calls: dict[str, Act] = {each: lambda v, e=each: scheduled(make, **{e: v}) for each in ("budget", "lease", "sweep")}
    if name == "Scheduler":
        calls["lease"] = lambda v: scheduled(make, **({"lease": v} if v is not None else {}))
        calls["delay"] = lambda v: scheduled(make, delay=v)
        calls["floor"] = lambda v: scheduled(make, floor=v)
    for each in ADDING:
        calls[f"add {each}"] = lambda v, e=each: scheduled(make, lambda made: made.add(**{**add, e: v}))
    for each in UPDATING:
        calls[f"update {each}"] = lambda v, e=each: scheduled(make, lambda made: made.update(1, **{"now": 0.0, e: v}))
    acts: dict[str, Callable[[Any, Any], object]] = {
        "update slot": lambda made, v: made.update(v, now=0.0, signals=1.0),
        "signal slot": lambda made, v: made.signal(v, 0.0),
        "signal count": lambda made, v: made.signal(1, 0.0, v),
        "signal now": lambda made, v: made.signal(1, v),
        "explain now": lambda made, v: made.explain(1, v),
        "explain slot": lambda made, v: made.explain(v, 0.0),
        "put off": lambda made, v: made.put_off(1, v, 0.0),
        "put off now": lambda made, v: made.put_off(1, 3.0, v),
        "host rests": lambda made, v: made.host_rests(1, v),
        "rests host": lambda made, v: made.host_rests(v, 3.0),
        "shortest": lambda made, v: made.not_more_often_than(1, v, 0.0),
        "longest": lambda made, v: made.at_least_every(1, v, 0.0),
        "host gap": lambda made, v: made.set_host(1, gap=v),
        "host budget": lambda made, v: made.set_host(1, budget=v),
        "host": lambda made, v: made.set_host(v, budget=1.0),
        "host price": lambda made, v: made.host_price(v),
        "price": lambda made, v: made.resume_price(v),
        "pause": lambda made, v: made.pause(v),
        "resume": lambda made, v: made.resume(v, 0.0),
        "resume now": lambda made, v: made.resume(1, v),
        "crawl now": lambda made, v: made.crawl_now(v, 0.0),
        "crawl now at": lambda made, v: made.crawl_now(1, v),
        "remove": lambda made, v: None if v == 0 or v is True else made.remove(v),
        "set budget": lambda made, v: setattr(made, "budget", v),
        "finish now": lambda made, v: made.finish(made.next(0.5).slot, v, crawled=0.5),
        "finish crawled": lambda made, v: made.finish(made.next(0.5).slot, 0.5, crawled=v),
        "finish gap": lambda made, v: made.finish(made.next(0.5).slot, 0.5, crawled=0.5, gap=v),
        "finish put off": lambda made, v: made.finish(made.next(0.5).slot, 0.5, crawled=0.5, put_off=v),
        "finish slot": lambda made, v: made.finish(v, 0.5, crawled=0.5),
        "give back": lambda made, v: made.give_back(made.next(0.5).slot, v, 0.5),
    }
    calls |= {each: lambda v, act=act: scheduled(make, lambda made: act(made, v)) for each, act in acts.items()}
    calls["next"] = lambda v: scheduled(make, lambda made: None if v == 1e300 else made.next(v))
    return {f"{name}: {each}": act for each, act in calls.items()}


# --- estimators ---


def believed(made: Any, act: Callable[[Any], object] = lambda _: None) -> object:
    """What an estimator says after it was told something, and after some more crawls."""
    for slot in range(2):
        made.add(slot, now=0.0, kin=("a",))
    said = [act(made)]
    for now in (10.0, 20.0):
        made.crawled(0, elapsed=10.0, signals=1.0, changed=True)
        made.signalled(0, 1.0, now)
        made.requested(0, 1.0, now)
        for slot in range(2):
            said += [made.beliefs(slot, now), made.fresh_probability(slot, 5.0, 1.0)]
            assert 0.0 <= made.fresh_probability(slot, 5.0, 1.0) <= 1.0
    return said


def estimator_calls(name: str, make: Callable[..., Any]) -> dict[str, Act]:
    acts: dict[str, Callable[[Any, Any], object]] = {
        "add now": lambda made, v: made.add(2, now=v),
        "add popularity": lambda made, v: made.add(2, now=0.0, popularity=v),
        "add importance": lambda made, v: made.add(0, now=0.0, importance=Importance(v)),
        "add learned": lambda made, v: made.add(0, now=0.0, learned=v),
        "crawled elapsed": lambda made, v: made.crawled(0, elapsed=v, signals=0.0, changed=True),
        "crawled signals": lambda made, v: made.crawled(0, elapsed=1.0, signals=v, changed=True),
        "crawled unchanged": lambda made, v: made.crawled(0, elapsed=v, signals=v, changed=False),
        "crawled slot": lambda made, v: made.crawled(v, elapsed=1.0, signals=0.0, changed=True),
        "signalled": lambda made, v: made.signalled(0, v, 1.0),
        "signalled now": lambda made, v: made.signalled(0, 1.0, v),
        "requested": lambda made, v: made.requested(0, v, 1.0),
        "requested now": lambda made, v: made.requested(0, 1.0, v),
        "requests since": lambda made, v: made.requests_since(v),
        "beliefs": lambda made, v: made.beliefs(0, v),
        "beliefs slot": lambda made, v: made.beliefs(v, 1.0),
        "fresh elapsed": lambda made, v: made.fresh_probability(0, v, 0.0),
        "fresh signals": lambda made, v: made.fresh_probability(0, 1.0, v),
        "fresh slot": lambda made, v: made.fresh_probability(v, 1.0, 0.0),
    }
    calls: dict[str, Act] = {"typical rate": lambda v: believed(make(typical_rate=v))}
    if name == "Learner":
        calls["memory"] = lambda v: believed(make(memory=v))
    calls |= {each: lambda v, act=act: believed(make(), lambda made: act(made, v)) for each, act in acts.items()}
    return {f"{name}: {each}": act for each, act in calls.items()}


def active(act: Callable[[Activity, tuple[int, ...]], object]) -> object:
    made = Activity(width=1.0)
    branches = made.branches(("a", "a/b"))
    said = [act(made, branches)]
    made.learn(branches, 0.0, 3.0, expected=0.5, told=0.1, changed=True)
    fresh = made.fresh(branches, 1.0, 4.0, 0.5)
    assert 0.0 <= fresh <= 1.0
    return [*said, fresh, made.stretched(branches, 1.0, 4.0)]


def other_calls() -> dict[str, Act]:
    def by_width(v: Any) -> object:
        made = Activity(width=v)
        branches = made.branches(("a", "a/b"))
        made.learn(branches, 0.0, 3.0, expected=0.5, told=0.1, changed=True)
        return [made.fresh(branches, 1.0, 4.0, 0.5), made.stretched(branches, 1.0, 4.0)]

    def learning(**given: Any) -> Callable[[Activity, tuple[int, ...]], object]:
        crawl = {"since": 0.0, "now": 3.0, "expected": 0.5, "told": 0.1, **given}
        return lambda made, branches: made.learn(branches, changed=True, **crawl)

    def calibrated(probability: Any, memory: Any = 100.0) -> object:
        made = Calibration(memory=memory)
        made.add(probability, True)
        return [made.statements, made.rows(), made.brier]

    def sent(**given: Any) -> object:
        made = Senders()
        heard = {(made.number("a"), -1): given.pop("count", 1)}
        made.learn(HOST, heard, **{"by_time": 0.1, "weight": 1.0, "changed": True, **given})
        return [made.weight(HOST, 0), made.delay_of("a"), made.count(HOST, {(0, -1): 2})]

    calls: dict[str, Act] = {
        "typical_rate budget": lambda v: typical_rate(v, 10),
        "typical_rate pages": lambda v: typical_rate(1.0, v),
        "Activity width": by_width,
        "Activity follow": lambda v: active(lambda made, _: made.follow(v)),
        "Activity stretched": lambda v: active(lambda made, branches: made.stretched(branches, 0.0, v)),
        "Activity stretched since": lambda v: active(lambda made, branches: made.stretched(branches, v, 3.0)),
        "Activity fresh": lambda v: active(lambda made, branches: made.fresh(branches, 0.0, v, 0.5)),
        "Activity fresh expected": lambda v: active(lambda made, branches: made.fresh(branches, 0.0, 1.0, v)),
        "Calibration": calibrated,
        "Calibration memory": lambda v: calibrated(0.5, v),
        "Senders count": lambda v: sent(count=v),
        "Senders by time": lambda v: sent(by_time=v),
        "Senders weight": lambda v: sent(weight=v),
    }
    for name in ("since", "now", "expected", "told"):
        calls[f"Activity learn {name}"] = lambda v, n=name: active(learning(**{n: v}))
    return calls


# --- the maths ---


def value_calls() -> dict[str, Act]:
    page = {"elapsed": 5.0, "signals": 1.0, "change_rate": 0.5, "recall": 0.5, "false_rate": 0.1}
    calls: dict[str, Act] = {}
    for name in page:
        for function in (freshness, staleness, crawl_value, crawl_interval, crawl_rate, fresh_share, fresh_time):
            calls[f"{function.__name__} {name}"] = lambda v, f=function, n=name: f(**{**page, n: v})
        calls[f"predictive {name}"] = lambda v, n=name: crawl_value(**{**page, n: v}, shape=0.5)
        calls[f"array {name}"] = lambda v, n=name: crawl_value(**{**page, n: [1.0, v]})
    for name in ("shape", "request_rate", "terms", "assume"):
        calls[f"crawl_value {name}"] = lambda v, n=name: crawl_value(**page, **{n: v})
    silent = {"request_rate": [1.0, 2.0], "change_rate": [0.1, 0.2]}
    for name in (*silent, "recall", "false_rate", "cost"):
        calls[f"optimum {name}"] = lambda v, n=name: optimum(budget=1.0, **{**silent, n: [v, 0.5]})
        calls[f"plan {name}"] = lambda v, n=name: plan([1.0], **{**silent, n: [v, 0.5]})
        calls[f"budget_for {name}"] = lambda v, n=name: budget_for(0.5, **{**silent, n: [v, 0.5]})
    calls["optimum budget"] = lambda v: optimum(budget=v, **silent)
    calls["plan budgets"] = lambda v: plan([v], **silent)
    calls["budget_for"] = lambda v: budget_for(v, **silent)
    calls["refresh_probabilities weight"] = lambda v: refresh_probabilities([v, 1.0], [0.1, 0.2])
    calls["refresh_probabilities change"] = lambda v: refresh_probabilities([1.0, 1.0], [v, 0.2])
    calls["refresh_probabilities budget"] = lambda v: refresh_probabilities([1.0, 1.0], [0.1, 0.2], v)
    return calls


CALLS: dict[str, Act] = {
    **engine_calls(learner=False),
    **engine_calls(learner=True),
    **{name: act for each in MAKERS for name, act in schedule_calls(each).items()},
    **estimator_calls("Grid", Grid),
    **estimator_calls("Learner", Learner),
    **other_calls(),
    **value_calls(),
}


def verdict_on(act: Act, value: object) -> str:
    """ "" if the answer makes sense or was a sentence, else what is wrong."""
    try:
        answer = act(value)
    except (AfreshError, ValueError) as error:
        sentence = str(error)
        plain = isinstance(error, AfreshError) or " must " in sentence
        return "" if plain and len(sentence) < 300 else f"{type(error).__name__}: {sentence}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "NaN" if any(math.isnan(each) for each in numbers_in(answer)) else ""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CALLS)
def test_absurd_arguments_get_a_sentence_or_a_sensible_answer(name: str) -> None:
    wrong = {repr(value)[:12]: said for value in ABSURD if (said := verdict_on(CALLS[name], value))}
    assert not wrong
