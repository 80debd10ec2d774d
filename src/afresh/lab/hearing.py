"""Several senders of signals, and late ones: what it is worth to learn which signals mean something.

`senders` schedules a world with a good and a useless sender, as busy as each other; `weights` follows the error of the
learned weights; `delay` schedules a world whose one good sender is late.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate import Senders, fit_change
from afresh.estimate.online import glance, learn_crawl, new_table, posterior_of
from afresh.estimate.senders import NOT_EARLY
from afresh.lab.base import Experiment, Floats, Sample
from afresh.sim.field import close
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import replay_learned

DAY = 86400.0
ROUND = 3 * DAY  # one crawl a page on average
WEIGHT_CRAWLS = (10, 30, 100, 300)
DELAYS = (0.0, 0.06, 0.3, 1.0)  # days


def two_senders(
    pages: int, seed: int, *, rounds: float = 60.0, delay: float = 0.0, useless: bool = True
) -> tuple[History, Heard]:
    """Changes, and signals of a good sender (recall 0.8, few false ones), late by `delay` on average, and a useless
    one, which sends as many at random."""
    rng = np.random.default_rng([seed, pages, 11])
    end = rounds * ROUND
    change = (0.9 * rng.random(pages) + 0.02) / DAY

    def draw(rate: Floats) -> tuple[NDArray[Any], Floats]:
        page = np.repeat(np.arange(pages), rng.poisson(rate * end))
        return page, end * rng.random(len(page))

    silent, told, false, noise = draw(0.2 * change), draw(0.8 * change), draw(0.1 * change), draw(0.9 * change)
    page, moment = np.concatenate([silent[0], told[0]]), np.concatenate([silent[1], told[1]])
    history = make_history(page.astype(np.int64), moment, weight=rng.random(pages), start=0.0, end=end)
    good = told[0], told[1] + delay * rng.standard_exponential(len(told[1]))
    parts = [(good, 0), (false, 0)] + ([(noise, 1)] if useless else [])
    sender = np.concatenate([np.full(len(part[0]), number) for part, number in parts])
    page, moment = (np.concatenate([part[k] for part, _ in parts]) for k in range(2))
    order = np.argsort(moment, kind="stable")
    return history, Heard(moment[order], page[order].astype(np.int64), sender[order])


def share_fresh(history: History, heard: Heard, *, from_share: float = 0.5) -> float:
    """The request-weighted share of time fresh of our schedule, after it has learned for a while."""
    begin = from_share * history.end
    field, _ = replay_learned(history, budget=history.pages / ROUND, score_from=begin, heard=heard)
    close(field)
    return float(history.weight @ field.fresh_time / history.weight.sum() / (history.end - begin))


def senders_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Senders told apart, taken as one, and the good one alone."""
    history, heard = two_senders(pages, seed)
    good = heard.sender == 0
    ways = {
        "told apart": heard,
        "one count": Heard(heard.time, heard.page),
        "the good one alone": Heard(heard.time[good], heard.page[good]),
    }
    return {name: _timed(history, way) for name, way in ways.items()}


def delay_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Late signals, with the delay learned and with all signals alike."""
    found = {}
    for delay in DELAYS:
        history, heard = two_senders(pages, seed, delay=delay * DAY, useless=False)
        found[f"learned, {delay:g} days late"] = _timed(history, heard)
        found[f"all alike, {delay:g} days late"] = _timed(history, Heard(heard.time, heard.page))
    return found


def _timed(history: History, heard: Heard) -> Sample:
    began = time.perf_counter()
    return Sample(share_fresh(history, heard), 1.0, 0.0, time.perf_counter() - began)


def weights_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Root mean square error of both senders' weights, over pages that differ, after some crawls of each."""
    rng = np.random.default_rng([seed, pages, 13])
    found = {}
    for crawls in WEIGHT_CRAWLS:
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
            found[f"{name}, {crawls} crawls"] = Sample(float(np.sqrt(np.mean((guess - truth) ** 2))), 0.0, 0.0)
    return found


def _online_weights(heard: NDArray[np.int64], changed: NDArray[np.bool_], *, apart: bool) -> Floats:
    """The weight of each sender on each page, learned crawl by crawl."""
    crawls, pages, count = heard.shape
    table, senders = new_table(pages, typical_rate=0.3, now=0.0, memory=np.inf, crawl_memory=1.0), Senders()
    numbers = [senders.number(str(number)) for number in range(count)]
    for k in range(crawls):
        for page in range(pages):
            kinds = {(number, NOT_EARLY): int(n) for number, n in zip(numbers, heard[k, page], strict=True) if n}
            signals = senders.count("host", kinds) if apart else float(heard[k, page].sum())
            if apart and kinds:
                alpha, _, weight = posterior_of(table, page)
                senders.learn("host", kinds, by_time=alpha, weight=weight, changed=bool(changed[k, page]))
            table.pages["heard"][page] += signals
            learn_crawl(table, page, 1.0, signals, bool(changed[k, page]))
            glance(table)
            glance(table)
    weights = [senders.weight("host", number) if apart else 1.0 for number in numbers]
    return np.array([[posterior_of(table, page)[2] * weight for weight in weights] for page in range(pages)])


SENDERS = Experiment(
    name="senders",
    title="A good and a useless sender of signals",
    claim="told apart, they are worth what the good one is alone",
    sizes=(300,),
    trial=senders_trial,
    reps=3,
    full_reps=20,
    picture="bars",
)
WEIGHTS = replace(
    SENDERS,
    name="weights",
    title="Error of the weights of two senders against crawls a page",
    claim="online it falls with the crawls, below that of each page by itself; one count cannot",
    sizes=(50,),
    trial=weights_trial,
    measure="root mean square error",
)
DELAY = replace(
    SENDERS,
    name="delay",
    title="A good sender of signals that is late",
    claim="learning the delay gains where signals are late, and costs nothing where they are not",
    trial=delay_trial,
)
