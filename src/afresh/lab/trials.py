"""One repetition of each experiment: the worlds that the table names, and what is measured in them."""

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate import Senders, fit_change
from afresh.estimate.counting import naive_quality
from afresh.estimate.likelihood import signal_quality
from afresh.estimate.online import glance, learn_crawl, new_table, observe_many, posterior_of
from afresh.estimate.senders import NOT_EARLY
from afresh.lab.base import Floats, Sample
from afresh.sim.expected import freshness_of_picks
from afresh.sim.field import close
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import Known, replay_learned
from afresh.sim.simulate import Score, simulate
from afresh.sim.world import World, make_world, paper_world
from afresh.value.compiled import compiled
from afresh.value.kernels import page_rates, page_value, page_value_in_terms

BUDGET = 100.0  # the papers' setting
HORIZON = 1000.0
WARM_UP = 100.0  # all copies are fresh at time 0, which is nobody's merit
DAY = 86400.0
ROUND = 3 * DAY  # one crawl a page on average, where senders are learned

Samples = dict[str, Sample]

# --- policies in one and the same world, against its ceiling and its baseline ---


def contest(
    world: World,
    seed: int,
    policies: Iterable[str],
    *,
    budget: float = BUDGET,
    horizon: float = HORIZON,
    warm_up: float = WARM_UP,
    **options: Any,
) -> tuple[Samples, dict[str, Score]]:
    """Every policy over the same changes."""
    ceiling, baseline = world.ceiling(budget).freshness, world.baseline(budget).freshness
    samples, scores = {}, {}
    for policy in policies:
        began = time.perf_counter()
        score = simulate(world, policy, budget=budget, horizon=horizon, warm_up=warm_up, seed=seed, **options)
        samples[policy] = Sample(score.accuracy, ceiling, baseline, time.perf_counter() - began)
        scores[policy] = score
    return samples, scores


def paper(
    pages: int,
    seed: int,
    policies: Iterable[str],
    signals: str,
    signal_delay: float = 0.0,
    dated: Iterable[str] = (),
) -> Samples:
    """The papers' world; the baseline is computed, not run.

    Two things are lost by a delay: a page stays stale until its signal is there, which no policy can help, and crawls
    go to pages whose change was fetched already. Signals that told when they were sent would mend the second
    completely: the `dated` policies are the most that can be won back.
    """
    world = paper_world(np.random.default_rng([seed, pages]), pages, signals=signals, signal_delay=signal_delay)
    samples, _ = contest(world, seed, policies)
    reference = next(iter(samples.values()))
    if dated:
        samples |= {f"{name}, dated": each for name, each in contest(world, seed, dated, dated=True)[0].items()}
    return samples | {"baseline": Sample(reference.baseline, reference.ceiling, reference.baseline)}


def crawl_rates(pages: int, seed: int, policies: Iterable[str], signals: str, colour: str) -> Samples:
    """Each page's empirical crawl rate against its baseline rate, with a colour: a column of the world."""
    world = paper_world(np.random.default_rng([seed, pages]), pages, signals=signals)
    samples, scores = contest(world, seed, policies)
    dots = {"x": world.baseline(BUDGET).rates, "colour": getattr(world, colour)}
    return {name: replace(each, curves={**dots, "y": scores[name].rates}) for name, each in samples.items()}


def heavy_tailed_world(rng: np.random.Generator, pages: int) -> tuple[World, Floats, Floats]:
    """(world, precision, recall) of a stand-in for the paper's data set, which is not public.

    It has what is told of that: few pages (4.5 %) with good signals that carry about a quarter of the weight, bad
    signals elsewhere, and importance and change rates over several orders of magnitude.
    """
    good, good_weight = rng.random(pages) < 0.045, 0.25
    importance = rng.pareto(1.5, pages) + 0.05
    importance[good] *= good_weight / (1 - good_weight) * importance[~good].sum() / max(importance[good].sum(), 1e-300)
    change_rate = np.exp(rng.normal(np.log(0.05), 1.5, pages))
    precision = np.where(good, rng.uniform(0.7, 1.0, pages), rng.uniform(0.02, 0.7, pages))
    recall = np.where(good, rng.uniform(0.6, 1.0, pages), rng.uniform(0.0, 0.6, pages))
    false_rate = recall * change_rate * (1 - precision) / precision
    world = make_world(request_rate=importance, change_rate=change_rate, recall=recall, false_rate=false_rate)
    return world, precision, recall


def heavy_tailed(pages: int, seed: int, corruption: Iterable[float]) -> Samples:
    """A large collection, and beliefs about its signals that are more and more wrong; 5,000 crawls a step of 100,000
    pages."""
    rng = np.random.default_rng([seed, pages])
    world, precision, recall = heavy_tailed_world(rng, pages)
    found: Samples = {}
    for share in corruption:
        seen_precision = (1 - share) * precision + share * rng.random(pages)
        seen_recall = (1 - share) * recall + share * rng.random(pages)
        believed = world.believed(
            recall=seen_recall,
            false_rate=seen_recall * world.change_rate * (1 - seen_precision) / np.maximum(seen_precision, 1e-3),
        )
        policies = ("greedy-ncis", "greedy-cis+", "greedy") if share == 0 else ("greedy-ncis", "greedy-cis+")
        samples, _ = contest(world, seed, policies, budget=0.05 * pages, horizon=200.0, warm_up=20.0, believed=believed)
        found |= {f"{policy} p={share:g}" if policy != "greedy" else policy: each for policy, each in samples.items()}
    return found


# --- the bandwidth rises by half and falls back, and nobody computes anything anew ---

PHASES = (("before", 100.0), ("more", 150.0), ("after", 100.0))
THIRD = 400.0 / 3  # of the time
BINS = 2000  # of time, 20 or 30 crawls each
WINDOW = 1000  # crawls over which the accuracy is averaged, as in the paper


def bandwidth_steps(pages: int, seed: int) -> Samples:
    """The accuracy of GREEDY over the last crawls, at every moment; each phase is scored in its second half."""
    world = paper_world(np.random.default_rng([seed, pages]), pages)
    steps = [(THIRD * (k + 1), budget) for k, (_, budget) in enumerate(PHASES)]
    score = simulate(world, "greedy", horizon=400.0, seed=seed, requests=True, bins=BINS, steps=steps)
    moments = np.arange(1, BINS + 1) * 400.0 / BINS
    accuracy = over_last_crawls(moments, score.asked, np.nan_to_num(score.curve) * score.asked)
    found = {}
    for k, (name, budget) in enumerate(PHASES):
        scored = (moments > THIRD * (k + 0.5)) & (moments <= THIRD * (k + 1))
        best = world.baseline(budget).freshness
        curves = {"x": moments, "y": accuracy, "level": np.array([THIRD * k, THIRD * (k + 1), best])}
        found[f"greedy {name} (R={budget:g})"] = Sample(float(accuracy[scored].mean()), best, best, curves=curves)
    return found


def over_last_crawls(moments: Floats, asked: Floats, hits: Floats) -> Floats:
    """At each moment, the share of hits among the requests since the 1,000th last crawl."""
    edges = np.concatenate([[0.0], moments])
    rates = np.array([budget for _, budget in PHASES])
    inside = np.clip(edges[:, None] - THIRD * np.arange(len(PHASES)), 0.0, THIRD)  # of each phase, passed by each edge
    crawls = inside @ rates
    since = np.interp(crawls[1:] - WINDOW, crawls, edges)
    all_asked, all_hits = (np.concatenate([[0.0], np.cumsum(each)]) for each in (asked, hits))
    requests = all_asked[1:] - np.interp(since, edges, all_asked)
    return np.asarray((all_hits[1:] - np.interp(since, edges, all_hits)) / np.maximum(requests, 1e-300))


# --- the crawl value of a page, and what is left of it when its sums are cut off early ---


@compiled
def _curve(ages: Floats, rates: tuple[float, float, float], terms: int) -> Floats:
    values = np.empty(ages.size)
    for k in range(ages.size):
        x = rates[0] * ages[k]
        values[k] = page_value(x, *rates) if terms == 0 else page_value_in_terms(x, *rates, terms)
    return values


def value_curve(
    pages: int, seed: int, change_rate: float, recall: float, false_rate: float, terms: Iterable[int]
) -> Samples:
    """The exact value over the effective age, and some terms of it; nothing is random here."""
    ages, rates = np.linspace(0.0, 12.0, 241), page_rates(change_rate, recall, false_rate)
    exact = _curve(ages, rates, 0)
    curves = {"x": ages, "y": exact, "most": np.array([1.0 / change_rate])}
    found = {"exact": Sample(1.0, 1.0, 0.0, curves=curves)}
    for count in terms:
        cut = _curve(ages, rates, count)
        share = float(np.mean(cut[1:] / exact[1:]))
        found[f"{count} term{'s' if count > 1 else ''}"] = Sample(share, 1.0, 0.0, curves={"x": ages, "y": cut})
    return found


# --- watching one page at a time: what its crawls say about its signals ---

Seen = tuple[Floats, Floats, NDArray[np.bool_]]  # elapsed, signals, changed, of each crawl
ESTIMATORS = {"naive": naive_quality, "likelihood": signal_quality}


def watch(rng: np.random.Generator, change_rate: float, quality: Floats, *, crawl_rate: float, crawls: int) -> Seen:
    """Many crawls of one page, at random moments; `quality` is its signals' precision and recall."""
    precision, recall = quality
    elapsed = rng.exponential(1.0 / crawl_rate, crawls)
    told = rng.poisson(recall * change_rate * elapsed)
    untold = rng.poisson((1 - recall) * change_rate * elapsed)
    false = rng.poisson(recall * change_rate * (1 - precision) / precision * elapsed)
    return elapsed, (told + false).astype(float), (told + untold) > 0


def _estimated(estimator: str, seen: Iterable[Seen]) -> Floats:
    """(precision, recall) of each page, by itself."""
    return np.array([(each.precision, each.recall) for each in (ESTIMATORS[estimator](*one) for one in seen)]).T


def signal_quality_of(pages: int, seed: int, estimator: str) -> Samples:
    """Precision and recall of some pages, true and estimated, for several numbers of crawls a change."""
    rng = np.random.default_rng([seed, pages])
    found = {}
    for relative in (0.25, 0.5, 1.0, 2.0, 4.0):
        began = time.perf_counter()
        truth, guess = np.empty((2, pages)), np.empty((2, pages))
        for k in range(pages):
            truth[:, k] = rng.uniform(0.2, 0.95, 2)
            change_rate = 1.0 / rng.uniform(2.0, 20.0)
            seen = watch(rng, change_rate, truth[:, k], crawl_rate=relative * change_rate, crawls=5_000)
            guess[:, k] = _estimated(estimator, [seen])[:, 0]
        seconds = time.perf_counter() - began
        for row, name in enumerate(("precision", "recall")):
            error = float(np.mean(guess[row] - truth[row]))
            curves = {"x": truth[row], "y": guess[row]}
            found[f"{name}, {relative:g} crawls"] = Sample(1 - abs(error), 1.0, 0.0, seconds / 2, curves)
    return found


def errors(pages: int, seed: int, crawls_a_page: Iterable[int]) -> Samples:
    """Root mean square error of precision and recall after some crawls a page, one crawl a change on average."""
    rng = np.random.default_rng([seed, pages, 7])
    found = {}
    for crawls in crawls_a_page:
        began = time.perf_counter()
        truth = rng.uniform(0.2, 0.95, (2, pages))
        rates = 1.0 / rng.uniform(2.0, 20.0, pages)
        seen = [watch(rng, rates[k], truth[:, k], crawl_rate=rates[k], crawls=crawls) for k in range(pages)]
        guesses = {name: _estimated(name, seen) for name in ESTIMATORS} | {"online": _online_quality(seen)}
        seconds = (time.perf_counter() - began) / 3
        for name, guess in guesses.items():
            found[f"{name}, {crawls} crawls"] = Sample(_off(guess, truth), 0.0, 0.0, seconds)
    return found


def _off(guess: Floats, truth: Floats) -> float:
    return float(np.sqrt(np.mean((guess - truth) ** 2)))


def _online_quality(seen: list[Seen]) -> Floats:
    """(precision, recall) of pages that are learned together, crawl by crawl."""
    pages, crawls = len(seen), len(seen[0][0])
    table = new_table(pages, typical_rate=0.1, now=0.0, memory=np.inf, crawl_memory=1.0)
    table.pages["heard"] = [each[1].sum() for each in seen]
    columns = [np.stack([each[k] for each in seen], axis=1).ravel() for k in range(3)]
    observe_many(table, np.tile(np.arange(pages), crawls), *columns)
    found = np.array([posterior_of(table, page)[::2] for page in range(pages)])
    signal_rate = np.array([each[1].sum() / each[0].sum() for each in seen])
    told = -signal_rate * np.expm1(-found[:, 1])
    return np.array([told / np.maximum(signal_rate, 1e-12), told / (found[:, 0] + told)])


# --- from nothing to good: figure 4's pages, against a schedule that knows all their rates ---


def drawn_world(pages: int, seed: int, rounds: float, signals: str) -> tuple[World, History, Heard]:
    """A world of noisy signals, or of none, and what happens in it in the time of this many crawls a page."""
    rng = np.random.default_rng([seed, pages])
    world, end = paper_world(rng, pages, signals=signals), rounds * pages / BUDGET
    told, silent, false = (
        _drawn(rng, rate, end)
        for rate in (world.recall * world.change_rate, (1 - world.recall) * world.change_rate, world.false_rate)
    )
    history = make_history(*_joined(told, silent), weight=world.request_rate, start=0.0, end=end)
    page, moment = _joined(told, false)
    order = np.argsort(moment, kind="stable")
    return world, history, Heard(moment[order], page[order])


def _drawn(rng: np.random.Generator, rate: Floats, end: float) -> tuple[NDArray[np.int64], Floats]:
    """(page, moment) of events at random, at these rates."""
    page = np.repeat(np.arange(len(rate)), rng.poisson(rate * end))
    return page, end * rng.random(len(page))


def _joined(*parts: tuple[NDArray[np.int64], Floats]) -> tuple[NDArray[np.int64], Floats]:
    return np.concatenate([page for page, _ in parts]), np.concatenate([moment for _, moment in parts])


def _picked(history: History, heard: Heard, known: Known | None = None, certain: bool = False) -> NDArray[np.int64]:
    """The page that our schedule went to at every tick."""
    picks = np.full(round(history.end * BUDGET), -1)
    replay_learned(history, budget=BUDGET, score_from=0.0, heard=heard, known=known, certain=certain, picks=picks)
    return picks


def _scored(world: World, heard: Heard, picks: NDArray[np.int64], edges: Floats) -> Floats:
    """Expected freshness of these picks from the start to each edge, in crawls a page."""
    moments = tuple((edges * world.pages / BUDGET).tolist())
    scores = freshness_of_picks(world, heard, picks, step=1 / BUDGET, edges=moments)
    return np.asarray(np.cumsum(scores * np.diff(edges, prepend=0.0)) / edges)


def learn(pages: int, seed: int, lengths: tuple[float, ...]) -> Samples:
    """The learner, visits to all pages alike, and the learner without exploring, from the start up to some crawls a
    page, with signals and without, as shares of what knowing all rates scores in the same time.

    Without exploring, the believed mean rate is used as if it were known: the value over all rates that a page may have
    is what makes the learner look where little is known. All is scored by expected freshness: what changes there
    happened to be hides small differences.
    """
    edges, found = np.array(lengths), {}
    for kind, label in (("noisy", "with signals"), ("none", "without signals")):
        world, history, heard = drawn_world(pages, seed, lengths[-1], kind)
        began = time.perf_counter()
        learned = _scored(world, heard, _picked(history, heard), edges)
        seconds = (time.perf_counter() - began) / len(lengths)
        order = np.random.default_rng([seed, pages, 1]).permutation(pages)
        ways = {
            "learns": learned,
            "without exploring": _scored(world, heard, _picked(history, heard, certain=True), edges),
            "uniform": _scored(world, heard, np.tile(order, math.ceil(lengths[-1])), edges),
        }
        known = world.change_rate, world.recall, world.false_rate
        best = _scored(world, heard, _picked(history, heard, known), edges)
        for name, scores in ways.items():
            for length, share in zip(lengths, scores / best, strict=True):
                found[f"{name}, {label}, {length:g} crawls"] = Sample(float(share), 1.0, 0.0, seconds)
    return found


# --- several senders of signals, and late ones: what it is worth to learn which signals mean something ---


def two_senders(
    pages: int, seed: int, *, rounds: float = 60.0, delay: float = 0.0, useless: bool = True
) -> tuple[History, Heard]:
    """Changes, and signals of a good sender (recall 0.8, few false ones), late by `delay` on average, and a useless
    one, which sends as many at random."""
    rng = np.random.default_rng([seed, pages, 11])
    end = rounds * ROUND
    change = (0.9 * rng.random(pages) + 0.02) / DAY
    silent, told, false, noise = (_drawn(rng, share * change, end) for share in (0.2, 0.8, 0.1, 0.9))
    history = make_history(*_joined(silent, told), weight=rng.random(pages), start=0.0, end=end)
    good = told[0], told[1] + delay * rng.standard_exponential(len(told[1]))
    parts = [(good, 0), (false, 0)] + ([(noise, 1)] if useless else [])
    sender = np.concatenate([np.full(len(part[0]), number) for part, number in parts])
    page, moment = _joined(*(part for part, _ in parts))
    order = np.argsort(moment, kind="stable")
    return history, Heard(moment[order], page[order], sender[order])


def share_fresh(history: History, heard: Heard, *, from_share: float = 0.5) -> float:
    """The request-weighted share of time fresh of our schedule, after it has learned for a while."""
    begin = from_share * history.end
    field, _ = replay_learned(history, budget=history.pages / ROUND, score_from=begin, heard=heard)
    close(field)
    return float(history.weight @ field.fresh_time / history.weight.sum() / (history.end - begin))


def _timed(history: History, heard: Heard) -> Sample:
    began = time.perf_counter()
    return Sample(share_fresh(history, heard), 1.0, 0.0, time.perf_counter() - began)


def senders(pages: int, seed: int) -> Samples:
    """Senders told apart, taken as one, and the good one alone."""
    history, heard = two_senders(pages, seed)
    good = heard.sender == 0
    return {
        "told apart": _timed(history, heard),
        "one count": _timed(history, Heard(heard.time, heard.page)),
        "the good one alone": _timed(history, Heard(heard.time[good], heard.page[good])),
    }


def late_sender(pages: int, seed: int, days: Iterable[float]) -> Samples:
    """Late signals, with the delay learned and with all signals alike."""
    found = {}
    for delay in days:
        history, heard = two_senders(pages, seed, delay=delay * DAY, useless=False)
        found[f"learned, {delay:g} days late"] = _timed(history, heard)
        found[f"all alike, {delay:g} days late"] = _timed(history, Heard(heard.time, heard.page))
    return found


def weights(pages: int, seed: int, crawls_a_page: Iterable[int]) -> Samples:
    """Root mean square error of both senders' weights, over pages that differ, after some crawls of each."""
    rng = np.random.default_rng([seed, pages, 13])
    found = {}
    for crawls in crawls_a_page:
        truth = np.stack([rng.uniform(1.0, 3.0, pages), np.zeros(pages)], axis=1)
        silent = rng.uniform(0.1, 0.6, pages)
        heard = rng.poisson(0.5, (crawls, pages, 2))
        changed = rng.random((crawls, pages)) < -np.expm1(-(silent + (heard * truth).sum(axis=2)))
        ones = np.ones(crawls)
        batch = [fit_change(ones, heard[:, k].astype(float), changed[:, k]).signal_weight for k in range(pages)]
        guesses = {
            "told apart online": _online_weights(heard, changed, apart=True),
            "one count online": _online_weights(heard, changed, apart=False),
            "page by page, whole history": np.minimum(np.array(batch), 6.0),
        }
        for name, guess in guesses.items():
            found[f"{name}, {crawls} crawls"] = Sample(_off(guess, truth), 0.0, 0.0)
    return found


def _online_weights(heard: NDArray[np.int64], changed: NDArray[np.bool_], *, apart: bool) -> Floats:
    """The weight of each sender on each page, learned crawl by crawl."""
    crawls, pages, count = heard.shape
    table, known = new_table(pages, typical_rate=0.3, now=0.0, memory=np.inf, crawl_memory=1.0), Senders()
    numbers = [known.number(str(number)) for number in range(count)]
    for k in range(crawls):
        for page in range(pages):
            kinds = {(number, NOT_EARLY): int(n) for number, n in zip(numbers, heard[k, page], strict=True) if n}
            signals = known.count("host", kinds) if apart else float(heard[k, page].sum())
            if apart and kinds:
                alpha, _, weight = posterior_of(table, page)
                known.learn("host", kinds, by_time=alpha, weight=weight, changed=bool(changed[k, page]))
            table.pages["heard"][page] += signals
            learn_crawl(table, page, 1.0, signals, bool(changed[k, page]))
            glance(table)
            glance(table)
    worth = [known.weight("host", number) if apart else 1.0 for number in numbers]
    return np.array([[posterior_of(table, page)[2] * each for each in worth] for page in range(pages)])
