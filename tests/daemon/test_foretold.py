import numpy as np
import pytest

from afresh.daemon.foretold import Foretold
from afresh.engine import Engine
from afresh.estimate import Grid, Learner
from afresh.estimate.learner import foretold_in
from afresh.frontier import Links, Scope
from afresh.reading import read
from afresh.schedule import Scheduler
from afresh.sources.web.discovery import Discovery
from afresh.types import Fetched, Page, Request

HOST, DAY = "a.example", 86400.0
FRONT = Page(f"http://{HOST}/", HOST)


def engine(estimator: object) -> Engine:
    made = Engine(scheduler=Scheduler.live(budget=1.0), estimator=estimator)  # type: ignore[arg-type]
    made.add(FRONT, 0.0)
    return made


def test_what_readers_want_is_learned_from_the_texts_of_links_and_used_for_new_pages() -> None:
    foretold, to, rng, now = Foretold(), engine(Learner(typical_rate=1 / DAY)), np.random.default_rng(0), 0.0
    for nth in range(120):  # pages called "results" are asked for, those called "imprint" are not
        now += DAY
        to.observe(Request(FRONT.url, now, 6.0))
        wanted = nth % 2 == 0
        new = Page(f"http://{HOST}/{nth}", HOST, depth=1)
        to.add(new, now)
        links = Links((new.url,), anchors={new.url: "All results" if wanted else "Imprint"})
        foretold.linked(to, links, now)
        foretold.found(to, FRONT, links, [new], now)
        to.observe(Request(new.url, now + 1.0, float(rng.poisson(8.0 if wanted else 0.3))))
        foretold.crawled(to, new.url, 0, now + 2.0)
    assert foretold.foretelling.judged > 60
    assert foretold.foretelling.used
    rates = []
    for text in ("All results", "Imprint", "Something else"):
        new = Page(f"http://{HOST}/{text[:3]}", HOST, depth=1)
        to.add(new, now)
        foretold.found(to, FRONT, Links((new.url,), anchors={new.url: text}), [new], now)
        rates.append(to.beliefs(new.url, now).request_rate)
    assert rates[0] > 2.0 * rates[1]
    assert rates[0] > rates[2] > rates[1]
    again = Foretold()
    again.begin(foretold.values().get)
    assert again.foretelling.used
    # What was foretold of a page is kept with the page, until somebody asks for it.
    results = f"http://{HOST}/All"
    learned, factor = to.learned(results), to.foretold(results)
    assert factor is not None
    assert factor == pytest.approx(foretold_in(learned))
    assert (factor > 1.5, to.foretold(FRONT.url)) == (True, None)
    restarted = engine(Learner(typical_rate=1 / DAY))
    restarted.add(Page(results, HOST), now, learned=learned)
    restarted.observe(Request(FRONT.url, now, 600.0))
    assert restarted.foretold(results) == factor
    plain = Page(f"http://{HOST}/plain", HOST)
    restarted.add(plain, now)
    rates = [restarted.beliefs(url, now + 1.0).request_rate for url in (results, plain.url)]
    assert rates[0] == pytest.approx(rates[1] * factor, rel=0.01)
    restarted.observe(Request(results, now))
    assert restarted.foretold(results) is foretold_in(restarted.learned(results)) is None
    restarted.tell(Page(plain.url, HOST, popularity=2.0), now)
    assert restarted.foretold(plain.url) is None


def test_nothing_is_kept_where_nobody_asks_or_the_operator_has_spoken() -> None:
    foretold, to, links = Foretold(), engine(Learner()), Links((f"http://{HOST}/x",))
    new = Page(f"http://{HOST}/x", HOST, popularity=2.0)
    to.add(new, 1.0)
    foretold.found(to, FRONT, links, [new], 1.0)
    to.observe(Request(FRONT.url, 2.0))
    foretold.found(to, FRONT, links, [new], 3.0)
    assert not foretold._judges
    other = engine(Grid())
    foretold.found(other, FRONT, links, [new], 3.0)
    assert not foretold._judges


def test_links_that_come_again_are_counted_for_pages_that_are_remembered() -> None:
    foretold, to = Foretold(), engine(Learner(typical_rate=1 / DAY))
    to.observe(Request(FRONT.url, 1.0))
    discovery = Discovery(Scope())
    discovery.know([FRONT.url])
    body = b'<a href="new.html">New</a> <a href="/">Front</a>'
    for nth in range(10):
        page = Page(f"http://{HOST}/p{nth}.html", HOST)
        fetched = Fetched(page.url, 2.0, 0.1, status=200, body=body, content_type="text/html")
        met = discovery.met(page, fetched)
        found = discovery.links(read(body, "text/html", wanted=discovery.wanted()), page, fetched, met)
        foretold.linked(to, found, 2.0)
        for some in discovery.follow(page, fetched, found, met):
            for each in some:
                to.add(each, 2.0)
            foretold.found(to, FRONT, found, some, 2.0)
        assert found.again == ((f"http://{HOST}/new.html",) if nth else ())
    judge = foretold._judges[f"http://{HOST}/new.html"]
    assert (judge.links, foretold._read - judge.since + 1) == (10, 10)
