"""How far senders can be trusted, over a whole collection: the truth, and the grades of `afresh senders`.

The hosts of a synthetic web announce their changes in sitemaps of different recall and precision. Crawls come by and
by, and grade them. A few hosts carry most of the importance, as on the real web.
"""

import time

import numpy as np

from afresh.estimate.grades import Grades
from afresh.lab.base import Floats, Sample
from afresh.sim.web.announce import Announcer
from afresh.sim.web.changes import Timeline
from afresh.sim.web.dice import Stream

PAGES_OF_HOST = 20
CRAWLS = 40.0  # of a page
GOOD_SHARE, GOOD_IMPORTANCE = 0.05, 6.0  # hosts whose word can be relied on, and how much more they are asked for


def sitemaps_graded(pages: int, seed: int) -> dict[str, Sample]:
    """Precision and recall of the sitemaps of all hosts: the truth against the grades, with the hosts' importance."""
    began, rng = time.perf_counter(), np.random.default_rng([seed, pages, 1])
    hosts = max(pages // PAGES_OF_HOST, 1)
    host_of = (np.arange(pages) % hosts).astype(np.int32)
    good = rng.random(hosts) < GOOD_SHARE
    precision = np.where(good, rng.uniform(0.8, 0.98, hosts), rng.beta(0.8, 2.0, hosts) * 0.9 + 0.02)
    recall = np.where(good, rng.uniform(0.8, 0.98, hosts), rng.uniform(0.1, 0.9, hosts))
    importance = (rng.pareto(1.5, hosts) + 1.0) * np.where(good, GOOD_IMPORTANCE, 1.0)
    rates = rng.lognormal(np.log(1e-2), 0.5, pages)
    false = (recall * (1 - precision) / precision)[host_of] * rates
    timeline = Timeline(seed, rates.tolist())
    announcer = Announcer(
        timeline,
        seed=seed,
        stream=Stream.SITEMAP,
        recall=recall[host_of],
        false_rate=false,
        member=np.ones(hosts, bool),
        storm_rate=0.0,
        host_of=host_of,
        gone_at=np.full(pages, np.inf),
    )
    grades = _watched(rng, timeline, announcer, rates, host_of)
    seconds = time.perf_counter() - began
    found = {}
    for name, truth in (("precision", precision), ("recall", recall)):
        said = [getattr(grades.grade("sitemap", f"h{host}"), name) for host in range(hosts)]
        guess = np.array([np.nan if each is None else each for each in said])
        known = np.isfinite(guess)
        error = float(np.average(np.abs(guess - truth)[known], weights=importance[known]))
        curves = {"x": truth[known], "y": guess[known], "weight": importance[known]}
        found[name] = Sample(1.0 - error, 1.0, 0.0, seconds / 2, curves)
    return found


def _watched(
    rng: np.random.Generator, timeline: Timeline, announcer: Announcer, rates: Floats, host_of: np.ndarray
) -> Grades:
    """The grades after a while of crawls, as often as pages change."""
    grades = Grades()
    for page, rate in enumerate(rates.tolist()):
        url, host, until = f"p{page}", f"h{host_of[page]}", CRAWLS / rate
        crawls = np.sort(rng.uniform(0.0, until, int(CRAWLS)))
        heard = announcer.between(page, float(crawls[0]), until)
        copy = float(crawls[0])
        grades.hear(url, host, "sitemap", -1.0, current=None, now=0.0)
        for crawl in crawls[1:].tolist():
            while heard and heard[0][0] < crawl:
                moment, _ = heard.pop(0)
                grades.hear(url, host, "sitemap", moment, current=copy, now=moment)
            changed = timeline.version(page, crawl) > timeline.version(page, copy)
            grades.crawled(url, host, copy, crawl, changed=changed, rate=rate)
            copy = crawl
    return grades
