"""Searches over a collection that changes: how right answers stay under different schedules at the same budget.

Documents change at moments within the quarters of their history. The live engine crawls them in virtual time, and at
random moments the answers of all queries on the copies are compared with those on fresh copies. All of the product's
own parts are used: the reading of documents, the queries, the scores, and what is learned of losses.
"""

import json
import lzma
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.engine import Engine
from afresh.errors import InputError
from afresh.estimate import Learner
from afresh.estimate.base import typical_rate
from afresh.frontier import Lanes, Politeness
from afresh.index.documents import Indexed, indexed
from afresh.index.fulltext import Found
from afresh.index.measures import DEPTH, attention, discounted_gain, overlap, rank_biased_overlap
from afresh.index.quality import LISTED, Quality
from afresh.index.queries import parse
from afresh.index.scoring import Collection, Counted, Wanted, counted, rarity, score, wanted
from afresh.index.words import Tokenizer
from afresh.mirror.scheduler import ByCosts
from afresh.schedule import Plain, Scheduler, Schedules
from afresh.schedule.peers import Uniform
from afresh.types import Fetched, Order, Outcome, Page, Request, Verdict

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Progress = Callable[[int, int], None]

POLICIES = ("uniform", "freshness", "requests", "quality", "mirror")
TITLES = {
    "uniform": "uniform",
    "freshness": "page freshness alone",
    "requests": "request-weighted freshness",
    "quality": "quality-weighted value",
    "mirror": "quality-driven mirror",
}
HINT = "Each line is a JSON object with path and versions, a list of [date, text]: see docs/search.md."
HOST = "docs.example"
MAX_DOCUMENTS = 20_000
WORDS_OF_A_QUERY = (2, 6)  # at least, and below
LEARN_EVERY = 30 * 86400.0  # seconds between two evaluations of all queries, and two weighings
SEARCHES_A_DAY = 1000.0
LOOKS = 120  # moments at which answers are compared
LEAST_WEIGHT = 0.05  # of the mean
NO_RESTS = Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its versions, each with the day on which it is first known, and the last day it is known."""

    path: str
    versions: tuple[tuple[float, str], ...]
    last: float


@dataclass(frozen=True, slots=True)
class Documents:
    """A recorded collection; all its days are among `days`."""

    all: tuple[Document, ...]
    days: tuple[float, ...]

    @property
    def versions(self) -> int:
        """How many there are."""
        return sum(len(each.versions) for each in self.all)


def documents_in(path: Path) -> Documents:
    """Read a collection from JSON lines, compressed or not; InputError if it makes no sense."""
    found: list[Document] = []
    days: set[float] = set()
    number = 0
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                item = json.loads(line)
                versions = tuple((_day(day), str(text)) for day, text in item["versions"])
                last = _day(item["last"]) if "last" in item else versions[-1][0]
                days |= {last, *(day for day, _ in versions)}
                found.append(Document(str(item["path"]), versions, last))
                if number > MAX_DOCUMENTS:
                    raise InputError(f"{path} has more than {MAX_DOCUMENTS:,} documents.", hint="Take some of them.")
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.", hint="Check its name.") from None
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=HINT) from None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"{path}, line {number} makes no sense: {error!r:.100}.", hint=HINT) from None
    if len(days) < 3:
        raise InputError(f"{path} has no history: at least three days are needed.", hint=HINT)
    return Documents(tuple(found), tuple(sorted(days)))


def _day(text: Any) -> float:
    return datetime.strptime(str(text), "%Y-%m-%d").replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class World:
    """Documents with a moment for each change, queries with frequencies, and the score of every version for each."""

    urls: tuple[str, ...]
    begin: Floats  # of each version
    end: Floats
    first: Integers  # the first version of each document, and behind the last
    content: tuple[Indexed, ...]
    words: tuple[Counted, ...]
    queries: tuple[Wanted, ...]
    shares: Floats
    scores: Floats  # by version and query
    collection: Collection
    start: float
    stop: float

    def current(self, document: int, now: float) -> int:
        """The version of a document at a moment; −1: there is none."""
        first, behind = int(self.first[document]), int(self.first[document + 1])
        place = first + int(np.searchsorted(self.begin[first:behind], now, side="right")) - 1
        return place if place >= first and now < self.end[place] else -1

    def ranking(self, versions: Integers, depth: int) -> list[list[int]]:
        """The best documents for every query, where each document has this version (−1: none)."""
        there = np.flatnonzero(versions >= 0)
        points = self.scores[versions[there]]
        best = np.argsort(-points, axis=0, kind="stable")[:depth]
        rows = []
        for query in range(points.shape[1]):
            column = best[:, query]
            rows.append(there[column[points[column, query] > 0.0]].tolist())
        return rows


def world_of(documents: Documents, *, queries: int, seed: int) -> World:
    """A collection whose changes fall at random moments within the stretch in which they were recorded."""
    rng = np.random.default_rng(seed)
    start, stop = documents.days[0], documents.days[-1]
    begin: list[float] = []
    end: list[float] = []
    first, content = [0], []
    for document in documents.all:
        moments = [_within(documents.days, day, rng) for day, _ in document.versions]
        after = documents.days.index(document.last) + 1
        dies = rng.uniform(document.last, documents.days[after]) if after < len(documents.days) else np.inf
        begin += moments
        end += [*moments[1:], dies]
        first.append(len(begin))
        content += [indexed(_url(document), text.encode(), "text/markdown") for _, text in document.versions]
    tokenizer = Tokenizer("words")
    asked = _queries_of(content, tokenizer, queries, rng)
    of_interest = frozenset(word for each in asked for words in each.words.values() for word in words)
    words = tuple(counted(each, HOST, tokenizer, of_interest) for each in content)
    collection = Collection(len(documents.all), float(np.mean([each.length for each in words])))
    shares = 1.0 / (1.0 + rng.permutation(len(asked)))
    scored, ready = _scored(words, np.array(first), asked, collection)
    return World(
        tuple(map(_url, documents.all)),
        np.array(begin),
        np.array(end),
        np.array(first),
        tuple(content),
        words,
        ready,
        shares / shares.sum(),
        scored,
        collection,
        start,
        stop,
    )


def _url(document: Document) -> str:
    return f"http://{HOST}/{document.path}"


def _within(days: Sequence[float], day: float, rng: np.random.Generator) -> float:
    """A moment in the stretch that ends with a day; the first day itself."""
    place = days.index(day)
    return day if place == 0 else float(rng.uniform(days[place - 1], day))


def _queries_of(content: Sequence[Indexed], tokenizer: Tokenizer, count: int, rng: np.random.Generator) -> list[Wanted]:
    """Queries made of titles and headings."""
    said = sorted({line for each in content for line in (each.title, *each.headings.splitlines())})
    found: dict[str, Wanted] = {}
    for nth in rng.permutation(len(said)).tolist():
        words = tokenizer.words(said[nth])
        if WORDS_OF_A_QUERY[0] <= len(words) < WORDS_OF_A_QUERY[1]:
            query = parse(" ".join(words))
            found.setdefault(query.text, wanted(query, tokenizer))
        if len(found) == count:
            break
    return list(found.values())


def _scored(
    words: Sequence[Counted], first: Integers, asked: Sequence[Wanted], collection: Collection
) -> tuple[Floats, tuple[Wanted, ...]]:
    """The score of every version for every query; and the queries with the rarity of their words."""
    from afresh.index.fulltext import Weights

    has: dict[str, set[int]] = {}
    for nth, page in enumerate(words):
        for places in page.columns:
            for word in places:
                has.setdefault(word, set()).add(nth)
    document = np.repeat(np.arange(len(first) - 1), np.diff(first))
    scores, ready, weights = np.zeros((len(words), len(asked))), [], Weights()
    for nth, each in enumerate(asked):
        of_terms = {
            term: set.intersection(*(has.get(word, set()) for word in some)) for term, some in each.words.items()
        }
        # As rare as it is in the versions of its documents on average.
        rare = {
            term: rarity(len({int(document[one]) for one in some}), collection.pages) for term, some in of_terms.items()
        }
        ready.append(Wanted(each.query, each.words, rare))
        for one in set.intersection(*of_terms.values()):
            scores[one, nth] = score(ready[-1], words[one], collection, weights)
    return scores, tuple(ready)


class _Followed(Quality):
    """`Quality` where the words of every version are counted already."""

    def __init__(self, world: World) -> None:
        super().__init__(Tokenizer("words"))
        self._known = {id(each): words for each, words in zip(world.content, world.words, strict=True)}

    def _counted(self, content: Indexed, host: str) -> Counted:
        return self._known[id(content)]


@dataclass(frozen=True, slots=True)
class Row:
    """What one policy came to at one budget."""

    policy: str
    every: float  # seconds between two crawls of a document, on average
    rbo: float
    overlap: float
    ndcg: float
    fresh: float  # share of documents whose copy is current
    crawls: int
    stderr: float = 0.0  # of rbo, over repetitions
    below_uniform: float = 0.0  # what is wrong, as a share of what is wrong under the uniform schedule
    reps: int = 1


@dataclass(slots=True)
class _Sums:
    rbo: float = 0.0
    overlap: float = 0.0
    ndcg: float = 0.0
    fresh: float = 0.0


@dataclass
class Run:
    """One policy over one world."""

    world: World
    policy: str
    every: float
    train: float  # of the time, that is not scored
    seed: int
    sums: _Sums = field(default_factory=_Sums)
    looks: int = 0
    crawls: int = 0

    def carry_out(self) -> Row:
        """Crawl from the start to the end."""
        world = self.world
        count = len(world.urls)
        self._numbers = {url: nth for nth, url in enumerate(world.urls)}
        self._held: Integers = np.full(count, -1)
        born = np.array([world.begin[int(nth)] for nth in world.first[:-1]])
        alive = float(
            np.mean(np.minimum(world.end[world.first[1:] - 1], world.stop) - born) / (world.stop - world.start)
        )
        self._engine = self._new_engine(count * alive / self.every, int(count * alive))
        self._quality = _Followed(world)
        rng = np.random.default_rng(self.seed + 1)
        scored_from = world.start + self.train * (world.stop - world.start)
        looks = np.sort(rng.uniform(scored_from, world.stop, LOOKS)).tolist()
        births = sorted((float(moment), nth) for nth, moment in enumerate(born))
        learns = np.arange(world.start, world.stop, LEARN_EVERY).tolist()
        now = world.start
        while now < world.stop:
            while births and births[0][0] <= now:
                self._enter(births.pop(0)[1], now)
            while learns and learns[0] <= now:
                learns.pop(0)
                self._learn(now)
            while looks and looks[0] <= now:
                self._look(looks.pop(0))
            decision = self._engine.next(now)
            if isinstance(decision, Order):
                self._crawl(decision, now)
                continue
            following = [decision.until, *(some[0] for some in (births[:1] and [births[0]])), *learns[:1], *looks[:1]]
            now = max(min([*following, world.stop]), now + 1.0)
        looks, sums = max(self.looks, 1), self.sums
        means = sums.rbo / looks, sums.overlap / looks, sums.ndcg / looks, sums.fresh / looks
        return Row(self.policy, self.every, *means, self.crawls)

    def _new_engine(self, budget: float, pages: int) -> Engine:
        schedulers: dict[str, Callable[[], Schedules]] = {
            "uniform": lambda: Plain(Uniform(), budget=budget),
            "mirror": lambda: ByCosts(budget=budget, rng=np.random.default_rng(self.seed), cost="query-quality"),
        }
        make = schedulers.get(self.policy, lambda: Scheduler.live(budget=budget))
        return Engine(
            scheduler=make(),
            estimator=Learner(typical_rate=typical_rate(budget, pages)),
            lanes=Lanes(NO_RESTS),
        )

    def _enter(self, document: int, now: float) -> None:
        """A document is there; those of the start have copies."""
        known = now <= self.world.start
        page = Page(self.world.urls[document], f"h{document}.example", now)
        self._engine.add(page, now, current=now if known else None)
        if known:
            self._held[document] = self.world.current(document, now)

    def _crawl(self, order: Order, now: float) -> None:
        world, document = self.world, self._numbers[order.url]
        held, found = int(self._held[document]), world.current(document, now)
        self.crawls += 1
        outcome = Outcome.UNCHANGED
        if found < 0:
            outcome = Outcome.GONE
        elif held < 0:
            outcome = Outcome.NEW
        elif found != held:
            outcome = Outcome.CHANGED
        cost = 0.0
        if outcome is not Outcome.UNCHANGED and self.policy in ("quality", "mirror"):
            old, new = (None if nth < 0 else world.content[nth] for nth in (held, found))
            cost = self._quality.judge(order.url, HOST, old, new, learns=held >= 0, moves=not order.probe).loss
        if order.probe and outcome is not Outcome.GONE:
            outcome = Outcome.PROBED
        elif found >= 0 or not order.probe:
            self._held[document] = found
        fetched = Fetched(order.url, now, 0.0, status=404 if outcome is Outcome.GONE else 200, body=b"x")
        significance = float(outcome is Outcome.CHANGED)
        self._engine.finish(order, fetched, Verdict(outcome, significance, cost=cost), now)
        if outcome is Outcome.GONE:
            self._engine.remove(order.url)
            self._held[document] = -1

    def _learn(self, now: float) -> None:
        """Evaluate all queries on the copies, and tell the engine what pages are worth."""
        if self.policy in ("uniform", "freshness"):
            return
        world = self.world
        ranked = world.ranking(self._held, LISTED + 1)
        if self.policy == "requests":
            seen = np.zeros(len(world.urls))
            for share, results in zip(world.shares, ranked, strict=True):
                for rank, document in enumerate(results[:DEPTH], start=1):
                    seen[document] += share * attention(rank)
            counts = SEARCHES_A_DAY * LEARN_EVERY / 86400.0 * seen
            requests = [Request(world.urls[nth], now, float(counts[nth])) for nth in np.flatnonzero(seen)]
            self._engine.observe_many(requests, now)
            return
        for nth, (asked, results) in enumerate(zip(world.queries, ranked, strict=True)):
            found = [
                Found(document, world.urls[document], float(world.scores[self._held[document], nth]), 0)
                for document in results
            ]
            self._quality.follow(asked.query.text, asked, world.collection, found, float(world.shares[nth]))
        if self.policy == "quality":
            weights = {url: self._quality.weight(url) for url in self._quality.listed}
            self._weigh(weights, self._quality.base_weight, self._quality.first_weight, now)

    def _weigh(self, weights: dict[str, float], base: float, first: float, now: float) -> None:
        least = LEAST_WEIGHT * sum(weights.values()) / max(len(weights), 1)
        base = max(base, least)
        told = {url: max(weight, 0.1 * base) for url, weight in weights.items() if url in self._engine}
        self._engine.believe_slots(self._engine.weigh(told, base, max(first, base)), now)

    def _look(self, now: float) -> None:
        """Compare all answers on the copies with those on fresh copies."""
        world = self.world
        fresh = np.array([world.current(nth, now) for nth in range(len(world.urls))])
        stale, right = world.ranking(self._held, DEPTH), world.ranking(fresh, DEPTH)
        gains = world.scores
        for nth, share in enumerate(world.shares.tolist()):
            found, wished = stale[nth], right[nth]
            self.sums.rbo += share * rank_biased_overlap(found, wished)
            self.sums.overlap += share * overlap(found, wished)
            worth: dict[Hashable, float] = {document: float(gains[fresh[document], nth]) for document in wished}
            self.sums.ndcg += share * discounted_gain(found, worth)
        there = fresh >= 0
        self.sums.fresh += float(np.mean(self._held[there] == fresh[there]))
        self.looks += 1


def contest(
    documents: Documents,
    *,
    every: Sequence[float],
    queries: int = 500,
    policies: Sequence[str] = POLICIES,
    train: float = 0.25,
    seed: int = 0,
    reps: int = 1,
    progress: Progress = lambda done, of: None,
) -> list[Row]:
    """All policies at all budgets; repetition k has the seed `seed` + k."""
    rows: dict[tuple[str, float], list[Row]] = {}
    done, total = 0, reps * len(every) * len(policies)
    progress(0, total)
    for rep in range(reps):
        world = world_of(documents, queries=queries, seed=seed + rep)
        for interval in every:
            for policy in policies:
                row = Run(world, policy, interval, train, seed + rep).carry_out()
                rows.setdefault((policy, interval), []).append(row)
                progress(done := done + 1, total)
    return [_together(policy, interval, some, rows) for (policy, interval), some in sorted(rows.items(), key=_order)]


def _order(item: tuple[tuple[str, float], list[Row]]) -> tuple[float, int]:
    (policy, every), _ = item
    return -every, POLICIES.index(policy)


def _together(policy: str, every: float, some: list[Row], rows: dict[tuple[str, float], list[Row]]) -> Row:
    means = [float(np.mean([getattr(each, name) for each in some])) for name in ("rbo", "overlap", "ndcg", "fresh")]
    spread = float(np.std([each.rbo for each in some], ddof=1) / np.sqrt(len(some))) if len(some) > 1 else 0.0
    crawls = int(np.mean([each.crawls for each in some]))
    uniform = rows.get(("uniform", every))
    share = (1.0 - means[0]) / (1.0 - np.mean([each.rbo for each in uniform])) if uniform else 1.0
    rbo, alike, gain, fresh = means
    return Row(policy, every, rbo, alike, gain, fresh, crawls, spread, float(share), len(some))
