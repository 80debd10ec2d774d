"""Kinds of pages from the first crawl to what people are shown."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from afresh.cli.evidence import evidence
from afresh.config import parse
from afresh.daemon import Daemon, KindRule, Kinds
from afresh.engine import Arrivals, Engine
from afresh.errors import ConfigError
from afresh.estimate import Grid, Learner
from afresh.estimate.kinds import unpack
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.store import Sqlite
from afresh.store.base import Heard
from afresh.types import Fetched, Page, Spent, Validators

PAGES = {
    "https://a.example/products/lamp": b"<title>Lamp</title><meta property=og:type content=product><h1>Lamp</h1>"
    b"<p>$ 12.00 <button class=add-to-cart>Add to cart</button><p>In stock. Free shipping.",
    "https://a.example/blog/2024/05/the-tide-is-high": b"<title>The tide is high</title><meta property=og:type"
    b" content=article><article><h1>The tide is high</h1><p>By Ann, in May 2024. The tide was high when we came.",
    "https://a.example/own/1": b"<title>One</title><p>One",
}
SETTINGS = """
[[kind]]
name = "board"
pages = ["https://a.example/own/*"]
change_rate = "24/day"
spread = 3
cost = "200 kB"
value = 3
"""


def crawl(store: Sqlite, estimator: Any, rules: tuple[KindRule, ...], done: Any) -> Daemon:
    """Let a daemon fetch all pages once."""

    def answer(url: str, known: Validators) -> Fetched:
        return Fetched(url, time.time(), 0.001, status=200, body=PAGES[url], content_type="text/html")

    engine = Engine(scheduler=Scheduler.live(budget=50.0), estimator=estimator, lanes=Lanes(Politeness(0, 0, 0)))
    daemon = Daemon(engine=engine, fetcher=Scripted(answer), store=store, kinds=Kinds(rules))

    async def go() -> None:
        running = asyncio.create_task(daemon.run())
        for _ in range(600):
            await asyncio.sleep(0.05)
            if done() or running.done():
                break
        daemon.stop()
        await running

    asyncio.run(go())
    return daemon


def test_kinds_are_told_at_the_first_crawl_kept_and_shown(afresh: Any, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    rules = (KindRule("board", ("https://a.example/own/*",), 24 / 86400, 3.0, 3.0, (200_000.0, "bytes")),)
    with Sqlite(tmp_path / "afresh.db", create=True) as store:
        store.add([Page(url, "a.example") for url in PAGES])
        daemon = crawl(store, Learner(typical_rate=1 / 86400), rules, lambda: store.totals().copies == len(PAGES))
        names = [daemon.engine.kind(url) for url in PAGES]
        assert [unpack(each)[0][0] for each in names] == [4, 1, 8]  # product, article, the first of the operator's
    found = json.loads(afresh("kinds", "--json").stdout)
    by_name = {each["kind"]: each for each in found["kinds"]}
    assert by_name["board"]["pages"] == pytest.approx(15 / 16)
    assert by_name["board"]["value"] == 3.0
    assert by_name["product"]["pages"] > 0.4
    assert "scores" not in found
    assert "costs_of" not in found
    assert by_name["board"]["seconds"] == pytest.approx(0.001)
    assert found["all"]["bytes"] == 0.0  # none came over a network
    assert by_name["board"]["spread"] == pytest.approx(1.1, abs=0.1)
    assert 10_000 < by_name["board"]["bytes"] < 200_000  # as was said, and some crawls that cost nothing
    text = afresh("kinds").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "1 ms 0 B" in text
    assert "board" in text
    assert "too few crawls have judged it" in text
    shown = afresh("show", "https://a.example/own/1")
    assert "board 94%" in shown.stdout
    assert "evidence" in shown.stdout
    assert "of its own" in shown.stdout
    assert json.loads(afresh("show", "https://a.example/own/1", "--json").stdout)["kinds"] == [["board", 0.9375]]


@pytest.mark.parametrize(
    ("checked", "kinds", "sentence"),
    [
        (0, [], "0 checked intervals of its own, so mostly what pages alike on its host are like"),
        (
            1,
            [("a", 1.0)],
            "1 checked interval of its own, so mostly what pages alike on its host and of its kind are like",
        ),
        (5, [("a", 1.0)], "5 checked intervals of its own"),
    ],
)
def test_what_a_belief_rests_on_is_said(checked: int, kinds: list[tuple[str, float]], sentence: str) -> None:
    assert evidence({"beliefs": {"observations": checked}, "kinds": kinds, "said": []}) == sentence


def test_kinds_by_address_hold_before_the_first_crawl_and_leave_with_their_rule() -> None:
    """Also where another kind has the number of one that an operator named before."""

    def begun(*rules: KindRule, learned: bytes = b"", kept: str | None = None) -> tuple[Engine, Kinds]:
        engine, kinds = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Learner()), Kinds(rules)
        kinds.begin(engine, lambda _: kept)
        engine.add_many(Arrivals.of([Page(url, "a.example") for url in PAGES]), 1.0)
        engine.add(Page("https://a.example/own/2", "a.example"), 1.0, learned=learned)
        return engine, kinds

    def said(engine: Engine, kinds: Kinds, place: str) -> list[tuple[str, float]]:
        return kinds.said(engine.kind(f"https://a.example/{place}"))

    one, kinds = begun(KindRule("board", ("https://a.example/own/*",)))
    assert said(one, kinds, "own/1") == said(one, kinds, "own/2") == [("board", 15 / 16)]
    assert said(one, kinds, "products/lamp") == []
    kinds.costs.learn(one.kind("https://a.example/own/1"), Spent(bytes=9_000), new=True)
    learned, kept = one.learned("https://a.example/own/2"), kinds.values(one)["kinds"]
    other, kinds = begun(
        KindRule("lamps", ("https://a.example/products/*",)), KindRule("board"), learned=learned, kept=kept
    )
    assert said(other, kinds, "own/2") == []
    assert said(other, kinds, "products/lamp") == [("lamps", 15 / 16)]
    by_name = {each["kind"]: each for each in (kinds.summary(other) or {})["kinds"]}
    assert (by_name["board"]["bytes"], by_name["lamps"]["bytes"]) == (pytest.approx(9_000.0), None)


def test_a_page_that_nobody_asked_for_is_shown_with_what_is_foretold(afresh: Any, tmp_path: Path) -> None:
    learner = Learner()
    learner.add(0, now=time.time())
    learner.told_popularity(0, 2.5)
    page = Page("https://a.example/own/1", "a.example")
    with Sqlite(tmp_path / "afresh.db", create=True) as store:
        store.add([page])
        store.write([], heard=[Heard(page.url, learner.beliefs(0, time.time()), 0, learner.learned(0))])
    shown = afresh("show", page.url).stdout
    assert "none yet; it is foretold to be asked for 2.5 times what pages alike are" in " ".join(shown.split())
    assert json.loads(afresh("show", page.url, "--json").stdout)["foretold"] == pytest.approx(2.5)


def test_an_estimator_that_learns_nothing_of_kinds_is_told_none(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "afresh.db", create=True) as store:
        store.add([Page(url, "a.example") for url in PAGES])
        daemon = crawl(store, Grid(), (), lambda: store.totals().copies == len(PAGES))
        assert daemon.engine.of_kinds() is None
        assert daemon.engine.kind("https://a.example/own/1") == 0


def test_nothing_is_known_before_the_first_crawl(afresh: Any, tmp_path: Path) -> None:
    Sqlite(tmp_path / "afresh.db", create=True).close()
    assert "No kinds of pages are known yet" in afresh("kinds").stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[kind]]", "has no name"),
        ('[[kind]]\nname = "a b"', "is not a name of a kind"),
        ('[[kind]]\nname = "a"\npages = "x"', "is not a list of addresses"),
        ('[[kind]]\nname = "a"\nvalue = -1', "is not a number"),
        ('[[kind]]\nname = "a"\n[[kind]]\nname = "a"', "name a kind twice"),
        ('[[kind]]\nname = "a"\ncost = "3"', "is no cost with its unit"),
        ('[[kind]]\nname = "a"\ncost = "3 apples"', "is no cost with its unit"),
        ('[[kind]]\nname = "a"\ncost = "0 s"', "not what a refresh can cost"),
        ('[[kind]]\nname = "a"\nspread = 1', "no factor between"),
        ('[[kind]]\nname = "a"\nspread = 3', "has a spread, and no change_rate"),
        ('[[kind]]\nname = "a"\nrate = "1/d"', "There is no setting kind.rate"),
    ],
)
def test_settings_of_kinds_that_make_no_sense_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse(text)
