"""What crawls find stale copies to have cost agrees with a search of everything, before and after."""

import random
from math import isclose
from pathlib import Path

import pytest

from afresh.index import FullText, Search, Weights, parse
from afresh.index.asked import Asked
from afresh.index.documents import Indexed
from afresh.index.fulltext import Found
from afresh.index.measures import rank_biased_overlap
from afresh.index.quality import LISTED, Measured, Quality, stale_share
from afresh.index.scoring import Collection, Counted, Wanted, counted, rarity, score, wanted
from afresh.index.words import Tokenizer
from afresh.store import Sqlite
from afresh.types import Copy, Page
from searched import HOSTS, fill, page_of, record

QUERIES = (
    "ferry",
    "boat harbour",
    '"time table"',
    "win*",
    "title:ferry OR café",
    "island -storm",
    "run site:b.example",
)
TOKENIZER = Tokenizer("words")


class Everything:
    """All pages, searched by looking at each: the plain form of an index whose collection does not change."""

    def __init__(self, rng: random.Random, pages: int, weights: Weights) -> None:
        self.weights = weights
        self.host = {f"http://{host}/{nth}": host for nth in range(pages) for host in [rng.choice(HOSTS)]}
        index = FullText()
        self.read = {
            url: [index.content_of(Copy(url, page_of(rng).encode(), "text/html", nth, nth)) for nth in (1.0, 2.0)]
            for url in self.host
        }
        self.content = {url: versions[0] for url, versions in self.read.items()}
        self.counted = {
            (url, nth): counted(each, self.host[url], TOKENIZER)
            for url, versions in self.read.items()
            for nth, each in enumerate(versions)
        }
        self.version = dict.fromkeys(self.host, 0)
        self.collection = Collection(pages, 30.0)
        self.asked: dict[str, Wanted] = {}
        for text in QUERIES:
            asked = wanted(parse(text), TOKENIZER)
            rare = {term: rarity(3 + nth, pages) for nth, term in enumerate(asked.words)}
            self.asked[text] = Wanted(asked.query, asked.words, rare)

    def links(self, url: str) -> int:
        from afresh.index.documents import mark_of

        return sum(mark_of(url) in self.read[other][at].targets for other, at in self.version.items())

    def answer(self, text: str) -> list[Found]:
        found = []
        for nth, url in enumerate(self.host):
            page: Counted = self.counted[url, self.version[url]]
            points = score(self.asked[text], page, self.collection, self.weights)
            if points > 0:
                links = self.links(url)
                found.append(Found(nth, url, points * self.weights.of_links(links), links))
        return sorted(found, key=lambda each: (-each.score, each.url))


@pytest.mark.parametrize("seed", range(3))
def test_losses_are_those_of_searching_everything_before_and_after(seed: int) -> None:
    """The brute force: every query over every page, with the old copy and with the new one."""
    rng, weights = random.Random(seed), Weights()
    world, quality = Everything(rng, 25, weights), Quality(TOKENIZER, weights)
    shares = {text: 1.0 / (nth + 2) for nth, text in enumerate(QUERIES)}
    for text in QUERIES:
        quality.follow(text, world.asked[text], world.collection, world.answer(text), shares[text])
    lost = 0.0
    for url in rng.sample(sorted(world.host), 20):
        before = {text: [each.url for each in world.answer(text)] for text in QUERIES}
        world.version[url] = 1
        after = {text: [each.url for each in world.answer(text)] for text in QUERIES}
        plain = sum(shares[text] * (1.0 - rank_biased_overlap(before[text], after[text])) for text in QUERIES)
        judged = quality.judge(url, world.host[url], *world.read[url], linked=world.links(url))
        assert isclose(judged.loss, plain, abs_tol=1e-9), url
        lost += plain
        for text in QUERIES:
            assert [each for each, _ in quality.rankings[text].results] == after[text][:LISTED]
    assert lost > 0.3


def test_the_real_index_moves_as_was_judged(tmp_path: Path) -> None:
    """Rarity and mean length change with a copy, too: answers of the index itself differ a little from those judged."""
    rng, index = random.Random(4), FullText()
    with Sqlite(tmp_path / "afresh.db") as kept:
        kept.accompany(index)
        vocabulary = [f"word{nth}" for nth in range(400)]
        common = [1.0 / (nth + 10) for nth in range(400)]

        def text_of() -> str:
            some = rng.choices(vocabulary, common, k=rng.randint(20, 90))
            return f"<title>{some[0]}</title><p>{' '.join(some)}"

        bodies = {f"http://a.example/{nth}": ("a.example", text_of()) for nth in range(150)}
        kept.add(Page(url, "a.example") for url in bodies)
        kept.write([record(url, host, text) for url, (host, text) in bodies.items()])
        reader, quality, texts = kept.reader(), Quality(TOKENIZER), vocabulary[10:60:5]
        pages, length = index.counts(reader)
        for text in texts:
            asked = wanted(parse(text), TOKENIZER)
            rare = {term: rarity(index.matching(reader, term), pages) for term in asked.words}
            ready = Wanted(asked.query, asked.words, rare)
            found = index.search(reader, asked.query, LISTED)
            quality.follow(text, ready, Collection(pages, length / pages), found, 1.0 / len(texts))
        judged = real = 0.0
        for url in sorted(bodies)[:40]:
            host = bodies[url][0]
            before = [[each.url for each in index.search(reader, parse(text), LISTED)] for text in texts]
            (number,) = kept.numbers([url])
            old, body = index.content(reader, number), text_of()
            kept.write([record(url, host, body, 2.0)])
            after = [[each.url for each in index.search(reader, parse(text), LISTED)] for text in texts]
            real += sum(1.0 - rank_biased_overlap(*both) for both in zip(before, after, strict=True)) / len(texts)
            judged += quality.judge(url, host, old, index.content(reader, number)).loss
        assert real > 0.5
        assert judged == pytest.approx(real, rel=0.05)
        reader.close()


def test_pages_that_cost_much_weigh_more_than_pages_nobody_finds() -> None:
    quality, asked = Quality(TOKENIZER), wanted(parse("ferry"), TOKENIZER)
    ready = Wanted(asked.query, asked.words, dict.fromkeys(asked.words, 2.0))
    found = [Found(nth, f"http://a.example/{nth}", 9.0 - nth, 0) for nth in range(5)]
    quality.follow("ferry", ready, Collection(10, 20.0), found, 1.0)
    first, last = quality.weight(found[0].url), quality.weight(found[4].url)
    assert first > last
    assert first > quality.weight("http://a.example/unseen") == quality.base_weight
    for _ in range(8):  # a page that changes without moving any answer costs nothing, whoever sees it
        text = Indexed(text="ferry " * 3 + "boat", title="ferry")
        quality.judge(found[0].url, "a.example", text, text)
    assert quality.weight(found[0].url) < 0.5 * first
    again = Quality(TOKENIZER)
    again.recall(quality.learned())
    assert again.weight(found[0].url) < 0.5 * first


def test_measured_quality_is_what_copies_had_over_time() -> None:
    """One page of Poisson changes, refreshed every 10 s: each change costs 0.2 of the answers until it is seen."""
    rng, measured, stale = random.Random(3), Measured(memory=1e9), 0.0
    measured.add(dict.fromkeys(("overlap", "rbo", "ndcg"), 0.0), 10.0, 0.5, 0.0)
    for nth in range(1, 4001):
        first = rng.expovariate(0.05)
        if first < 10.0:
            stale += 10.0 - first
        loss = 0.2 if first < 10.0 else 0.0
        measured.add({"overlap": loss, "rbo": loss, "ndcg": loss}, 10.0, 0.5, 10.0 * nth)
    found, error = measured.quality(40_000.0)["rbo"]
    assert abs(found - (1.0 - 0.2 * stale / 40_000.0)) < 3 * error < 0.01
    assert stale_share(0.5) == pytest.approx(0.5415, abs=1e-3)
    assert Measured().quality(1.0) == {}


def test_queries_are_counted_faded_and_bounded() -> None:
    asked = Asked(most=10, memory=100.0)
    for nth in range(5000):
        asked.count(f"rare {nth}", 1.0, now=float(nth) / 50)
        if nth % 20 == 0:
            asked.count("ferry", 1.0, now=float(nth) / 50)
    assert len(asked) == 40
    frequent = asked.frequent(100.0)
    assert next(iter(frequent)) == "ferry"
    assert len(frequent) == 10
    asked.count("boat", 50.0, now=1000.0)
    assert next(iter(asked.frequent(1000.0))) == "boat"
    again = Asked(most=10, memory=100.0)
    again.recall(list(asked.rows()), asked.since)
    assert again.frequent(1000.0) == pytest.approx(asked.frequent(1000.0))
    assert again.rate(1000.0) == pytest.approx(asked.rate(1000.0))


def test_a_search_understands_the_same_query_once(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "afresh.db") as kept:
        fill(kept, FullText(), random.Random(1), 6)
    with Search(tmp_path / "afresh.db") as search:
        for _ in range(3):
            search.search("ferry  boat")
        assert search.tell() == 1
