import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from afresh.daemon import Daemon
from afresh.daemon.foretold import KEPT, Foretold
from afresh.engine import Engine
from afresh.estimate import Grid, Learner
from afresh.estimate.foretelling import Foretelling, place_of
from afresh.estimate.learner import foretold_in
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Links, Politeness, Scope
from afresh.reading import read
from afresh.schedule import Scheduler
from afresh.sources.web import Discovery, Web
from afresh.store import Sqlite
from afresh.store.base import Heard
from afresh.types import Fetched, Page, Request, Validators

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


def test_what_a_runner_foretells_of_a_page_is_in_the_store_before_its_first_crawl(tmp_path: Path) -> None:
    foretelling, before = Foretelling(), Learner(typical_rate=1 / DAY)
    for _ in range(200):
        foretelling.learn([place_of("text results")], 30.0, 5.0)
        foretelling.learn([place_of("text imprint")], 1.0, 5.0)
    before.add(0, now=time.time() - DAY)
    before.requested(0, 50.0, time.time())
    results = f"http://{HOST}/a"

    def answer(url: str, known: Validators) -> Fetched:
        body = b'<a href="/a">Results</a> <a href="/b">Nothing known</a>' if url == FRONT.url else b"<p>later"
        return Fetched(url, time.time(), 0.001, status=200, body=body, content_type="text/html")

    with Sqlite(tmp_path / "afresh.db", create=True) as store:
        store.put({KEPT: foretelling.to_text()})
        store.add([FRONT])
        store.write([], heard=[Heard(FRONT.url, before.beliefs(0, time.time()), 0, before.learned(0))])
        lanes = Lanes(Politeness(factor=0.0, shortest_gap=3600.0))  # so only the front page is crawled
        to = Engine(scheduler=Scheduler.live(budget=50.0), estimator=Learner(typical_rate=1 / DAY), lanes=lanes)
        daemon = Daemon(engine=to, sources=Web(Scripted(answer), discovery=Discovery(Scope())), store=store)

        async def go() -> None:
            running = asyncio.create_task(daemon.run())
            for _ in range(400):
                await asyncio.sleep(0.05)
                if running.done() or results in to:
                    break
            daemon.stop()
            await running

        asyncio.run(go())
        state = store.state(results)
        assert state is not None
        assert state.crawls == 0
        factor = foretold_in(state.learned)
        assert factor is not None
        assert factor == to.foretold(results) > 2.0
