"""How far answers are from the answers on fresh copies, measured by crawls as they come.

When a crawl replaces a copy, only that page's scores move, and those of pages it links to. So the frequent queries that
touch its old or its new text are judged again, and the difference between the two rankings is what the old copy has
cost: the loss of that page while it was stale. Everything here works on words and numbers, and reads no store.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, expm1, sqrt
from typing import Any

from afresh.index.documents import Indexed, mark_of
from afresh.index.fulltext import Found, Weights
from afresh.index.measures import DEPTH, attention, discounted_gain, overlap, rank_biased_overlap
from afresh.index.scoring import Collection, Counted, Wanted, counted, score
from afresh.index.words import Tokenizer

LISTED = 30  # results of each query that are remembered, so that those that move up are known
MEASURES = ("overlap", "rbo", "ndcg")
PRIOR_CHANGES = 5.0  # how many changes' worth the general relation counts for a single page
FIRST_RATIO = 0.3  # of loss to attention, before any crawl has shown it
FIRST_COUNT = 20.0  # how many changes' worth that is
TYPICAL_EVERY = 1_000  # judged changes after which it is found out again where listed pages stand on average
MAX_PAGES = 100_000  # whose own losses are remembered
MAX_CHANGES = 16.0  # of a page that count; older ones fade
ALL_ATTENTION = sum(attention(rank) for rank in range(1, DEPTH + 1))


@dataclass(slots=True)
class Ranking:
    """A frequent query and its answer on the copies as they are."""

    wanted: Wanted
    collection: Collection
    share: float  # of all searches
    results: list[tuple[str, float]] = field(default_factory=list)  # address and score, the best first
    links: dict[str, int] = field(default_factory=dict)  # pages that link to each of them
    complete: bool = True  # there are no further results
    drift: float = 0.0  # what judged changes have moved since it was put together


@dataclass(frozen=True, slots=True)
class Judged:
    """What replacing a copy has changed in the answers."""

    losses: Mapping[str, float]  # by measure: of the answer to an average search
    moved: tuple[str, ...] = ()  # queries whose answers differ

    @property
    def loss(self) -> float:
        """Of rank-biased overlap, which steers."""
        return self.losses["rbo"]


NOTHING = Judged(dict.fromkeys(MEASURES, 0.0))


@dataclass(slots=True)
class _OfPage:
    changes: float = 0.0
    loss: float = 0.0


class Quality:
    """Follows the answers to frequent queries, and learns what each page costs while its copy is stale.

    Invariant: a ranking is that of the index as of its last evaluation, with every change judged since then; where
    results have left it and others may have taken their place, `drift` says that it is to be evaluated again.
    """

    def __init__(self, tokenizer: Tokenizer, weights: Weights | None = None) -> None:
        self.tokenizer = tokenizer
        self.weights = weights or Weights()
        self.rankings: dict[str, Ranking] = {}
        self._by_word: dict[str, set[str]] = {}
        self._beginnings: dict[str, set[str]] = {}
        self._listed: dict[str, set[str]] = {}  # address → queries that list it
        self._by_mark: dict[int, str] = {}  # the addresses among them by their marks
        self._words: frozenset[str] = frozenset()
        self._renewed = True  # these two are of the queries as they are
        self._prefixes: tuple[str, ...] = ()  # beginnings of words, wherever in a term
        self._pages: dict[str, _OfPage] = {}
        # Attention that changed pages had, and what their changes cost; the same of those listed below the first
        # results, by the share of searches that do; and how many others changed, and what that cost.
        self._relations = {"seen": [0.0, 0.0], "near": [0.0, 0.0], "others": [0.0, 0.0]}
        self._judged = 0
        self._typical_of, self._typical_place = (0, 0), (0.0, 0.0)
        self._first_copies = [0.0, 0.0]  # pages that were new, and the loss while they were missing

    # --- the answers that are followed ---

    def follow(self, query: str, asked: Wanted, collection: Collection, found: Sequence[Found], share: float) -> None:
        """A frequent query was evaluated on the index: this is its answer now; at most `LISTED` results count."""
        self.leave(query)
        some = found[:LISTED]
        links = {each.url: each.links for each in some}
        results = [(each.url, each.score) for each in some]
        self.rankings[query] = Ranking(asked, collection, share, results, links, complete=len(found) < LISTED)
        for word, beginning in asked.heads:
            (self._beginnings if beginning else self._by_word).setdefault(word, set()).add(query)
        for each in some:
            self._list(each.url, query)
        self._renewed = False

    def leave(self, query: str) -> None:
        """Follow a query no longer."""
        ranking = self.rankings.pop(query, None)
        if ranking is None:
            return
        for word, beginning in ranking.wanted.heads:
            _discard(self._beginnings if beginning else self._by_word, word, query)
        for url, _ in ranking.results:
            self._unlist(url, query)
        self._renewed = False

    def _list(self, url: str, query: str) -> None:
        self._listed.setdefault(url, set()).add(query)
        self._by_mark[mark_of(url)] = url

    def _unlist(self, url: str, query: str) -> None:
        _discard(self._listed, url, query)
        if url not in self._listed:
            self._by_mark.pop(mark_of(url), None)

    def _renew(self) -> None:
        """Find out which words are of interest, if there are other queries than before."""
        if self._renewed:
            return
        self._renewed = True
        self._words = frozenset(
            word for ranking in self.rankings.values() for words in ranking.wanted.words.values() for word in words
        )

        prefixes = {
            words[-1]
            for ranking in self.rankings.values()
            for term, words in ranking.wanted.words.items()
            if term.prefix and words
        }
        self._prefixes = tuple(sorted(prefixes))

    # --- what a change has done to them ---

    def judge(
        self,
        url: str,
        host: str,
        old: Indexed | None,
        new: Indexed | None,
        *,
        linked: int | None = None,
        learns: bool = True,
        moves: bool = True,
    ) -> Judged:
        """A page's copy `old` is replaced by `new` (None: there is none): the answers move, and this is by how much.

        `linked` pages link to it; None: as many as was known. Where it `learns`, that is what the old copy has cost,
        and counts for the page. Unless it `moves`, the answers stay as they are.
        """
        before, after = (None if each is None else self._counted(each, host) for each in (old, new))
        queries = set(self._listed.get(url, ()))
        for page in (before, after):
            queries |= self._touched(page) if page is not None else set()
        scored: dict[str, dict[str, float]] = {}
        for query in queries:
            ranking = self.rankings[query]
            scores = [
                0.0 if page is None else score(ranking.wanted, page, ranking.collection, self.weights)
                for page in (before, after)
            ]
            if scores[0] != scores[1] or after is None:
                pages = ranking.links.get(url, 0) if linked is None else linked
                if moves:
                    ranking.links[url] = pages
                scored.setdefault(query, {})[url] = scores[1] * self.weights.of_links(pages)
        self._linked(url, old, new, scored, moves=moves)
        self._judged += 1
        standing = self._standing(url)
        losses, moved = dict.fromkeys(MEASURES, 0.0), []
        for query, points in scored.items():
            ranking = self.rankings[query]
            earlier = ranking.results
            if not ranking.complete and self._stays_below(ranking, query, points):
                continue
            results = self._moved(ranking, points)
            for name, loss in _losses(earlier, results).items():
                losses[name] += ranking.share * loss
            if [each[0] for each in earlier] != [each[0] for each in results]:
                moved.append(query)
            if moves:
                self._move(query, points, results)
        if learns and old is not None:
            self._learn(url, standing, losses["rbo"])
        elif old is None:
            self._first_copies = [self._first_copies[0] + 1.0, self._first_copies[1] + losses["rbo"]]
        return Judged(losses, tuple(moved))

    def _counted(self, content: Indexed, host: str) -> Counted:
        self._renew()
        return counted(content, host, self.tokenizer, self._words, self._prefixes)

    def _touched(self, page: Counted) -> set[str]:
        """Queries with a term that may begin somewhere on a page."""
        found: set[str] = set()
        for places in page.columns:
            for word in places:
                found |= self._by_word.get(word, set())
                if self._beginnings:
                    for beginning, queries in self._beginnings.items():
                        if word.startswith(beginning):
                            found |= queries
        return found

    def _linked(
        self, url: str, old: Indexed | None, new: Indexed | None, scored: dict[str, dict[str, float]], *, moves: bool
    ) -> None:
        """Links that came and went move the pages they lead to, where these are listed."""
        had, has = (frozenset() if each is None else frozenset(each.targets) for each in (old, new))
        for mark in had ^ has:
            target = self._by_mark.get(mark, url)
            if target == url:
                continue
            for query in self._listed.get(target, ()):
                ranking = self.rankings[query]
                count = ranking.links.get(target, 0)
                now = max(count + (1 if mark in has else -1), 0)
                points = scored.setdefault(query, {})
                kept = points.get(target, dict(ranking.results)[target])
                points[target] = kept / self.weights.of_links(count) * self.weights.of_links(now)
                if moves:
                    ranking.links[target] = now

    def _stays_below(self, ranking: Ranking, query: str, scored: Mapping[str, float]) -> bool:
        """Whether none of these pages was in an answer, nor comes into it now."""
        least = ranking.results[-1][1] if ranking.results else 0.0
        return all(points < least and query not in self._listed.get(url, ()) for url, points in scored.items())

    def _moved(self, ranking: Ranking, scored: Mapping[str, float]) -> list[tuple[str, float]]:
        """An answer with pages where their scores belong now, and without those that are found no more."""
        kept = {url: points for url, points in ranking.results if url not in scored}
        least = min(kept.values(), default=0.0)
        # Below the last that is known there may be others above it.
        kept |= {
            url: points for url, points in scored.items() if points > 0.0 and (ranking.complete or points >= least)
        }
        return sorted(kept.items(), key=lambda each: (-each[1], each[0]))

    def _move(self, query: str, scored: Mapping[str, float], results: list[tuple[str, float]]) -> None:
        """Make it so."""
        ranking = self.rankings[query]
        earlier, ranking.results = ranking.results, results[:LISTED]
        ranking.complete = ranking.complete and len(results) <= LISTED
        had, has = {url for url, _ in earlier}, {url for url, _ in ranking.results}
        for url in had - has:
            self._unlist(url, query)
        for url in has - had:
            self._list(url, query)
        for url in scored.keys() - self._listed.keys():
            ranking.links.pop(url, None)
        lost = len(ranking.results) < len(earlier) and not ranking.complete
        ranking.drift += _losses(earlier, ranking.results)["rbo"] + (0.1 if lost else 0.0)

    # --- what a page costs while it is stale ---

    def attention_of(self, url: str) -> float:
        """The share of all looks at results that go to a page."""
        return self._standing(url)[0]

    def _standing(self, url: str) -> tuple[float, float]:
        """(the share of all looks that go to a page, the share of searches that list it below the first results)."""
        seen = near = 0.0
        for query in self._listed.get(url, ()):
            ranking = self.rankings[query]
            place = next(nth for nth, (each, _) in enumerate(ranking.results, 1) if each == url)
            if place <= DEPTH:
                seen += ranking.share * attention(place)
            else:
                near += ranking.share
        return seen / ALL_ATTENTION, near

    def _learn(self, url: str, standing: tuple[float, float], loss: float) -> None:
        """One more change of a page: what it cost, beside where the page stood."""
        seen, near = standing
        kept = self._relations["seen" if seen > 0 else "near" if near > 0 else "others"]
        kept[0] += seen if seen > 0 else near if near > 0 else 1.0
        kept[1] += max(loss - self.base_weight, 0.0) if seen > 0 or near > 0 else loss
        own = self._pages.get(url)
        if own is None:
            if len(self._pages) >= MAX_PAGES:
                del self._pages[next(iter(self._pages))]
            own = self._pages[url] = _OfPage()
        if own.changes >= MAX_CHANGES:
            own.loss *= 1.0 - 1.0 / MAX_CHANGES
            own.changes -= 1.0
        own.changes += 1.0
        own.loss += loss

    def weight(self, url: str) -> float:
        """What a stale copy of a page is expected to cost an average search: by its own changes as far as they tell,
        and by where it stands in the answers.
        """
        seen, near = self._standing(url)
        # Whatever answers list a page now, a change may bring it into others.
        general = self.base_weight + seen * self._ratio("seen") + near * self._ratio("near")
        own = self._pages.get(url) or _OfPage()
        return (PRIOR_CHANGES * general + own.loss) / (PRIOR_CHANGES + own.changes)

    @property
    def _typical(self) -> tuple[float, float]:
        """Where a page that some answer lists stands on average; kept until other answers are followed."""
        now = len(self.rankings), self._judged // TYPICAL_EVERY
        if self._typical_of != now:
            places = [self._standing(url) for url in self._listed]
            count = max(len(places), 1)
            self._typical_place = sum(each[0] for each in places) / count, sum(each[1] for each in places) / count
            self._typical_of = now
        return self._typical_place

    def _ratio(self, where: str) -> float:
        """What a change costs, in times the attention there; as far as nothing is known, a share of that attention."""
        seen, near = self._typical
        kept, usual = self._relations[where], seen if where == "seen" else near
        first = FIRST_COUNT * FIRST_RATIO * seen
        return (first + kept[1]) / (FIRST_COUNT * usual + kept[0]) if usual > 0 else 0.0

    @property
    def base_weight(self) -> float:
        """That of a page which no frequent query finds, and of which nothing is known."""
        kept = self._relations["others"]
        return (FIRST_COUNT * FIRST_RATIO * self._typical[0] + kept[1]) / (FIRST_COUNT + kept[0])

    @property
    def first_weight(self) -> float:
        """What it costs an average search that a page has no copy yet: as first copies have shown; before that, as much
        as an average page that is found.
        """
        count, loss = self._first_copies
        return (FIRST_COUNT * FIRST_RATIO * self._typical[0] + loss) / (FIRST_COUNT + count)

    @property
    def listed(self) -> Iterable[str]:
        """Pages in the answers, and those whose changes were judged."""
        return {**dict.fromkeys(self._listed), **dict.fromkeys(self._pages)}

    def learned(self) -> dict[str, object]:
        """To be kept over a restart."""
        pages = [[url, own.changes, own.loss] for url, own in self._pages.items() if own.loss > 0]
        return {
            "relations": self._relations,
            "first": self._first_copies,
            "pages": pages[-10_000:],
        }

    def recall(self, kept: Mapping[str, Any]) -> None:
        """What was kept."""
        for name, known in self._relations.items():
            known[:] = [max(float(each), 0.0) for each in _numbers(kept["relations"][name], 2)]
        self._first_copies = [max(float(each), 0.0) for each in _numbers(kept["first"], 2)]
        for url, changes, loss in kept["pages"]:
            self._pages[str(url)] = _OfPage(min(max(float(changes), 0.0), MAX_CHANGES), max(float(loss), 0.0))


def _numbers(kept: Sequence[object], count: int) -> list[float]:
    if len(kept) != count:
        raise ValueError("other numbers than these")
    return [float(str(each)) for each in kept]


def _discard(sets: dict[str, set[str]], key: str, member: str) -> None:
    found = sets.get(key)
    if found is not None:
        found.discard(member)
        if not found:
            del sets[key]


def _losses(found: Sequence[tuple[str, float]], fresh: Sequence[tuple[str, float]]) -> dict[str, float]:
    stale, current = [url for url, _ in found], [url for url, _ in fresh]
    if stale[:DEPTH] == current[:DEPTH]:
        return dict.fromkeys(MEASURES, 0.0)
    alike = (
        overlap(stale, current),
        rank_biased_overlap(stale, current),
        discounted_gain(stale, dict(fresh[:DEPTH])),
    )
    return {name: 1.0 - each for name, each in zip(MEASURES, alike, strict=True)}


def stale_share(changes: float) -> float:
    """The share of an interval for which a copy was stale, if it changed in it; `changes` are usual in as long a time.

    >>> round(stale_share(1e-9), 3), round(stale_share(1.0), 3), round(stale_share(100.0), 2)
    (0.5, 0.582, 0.99)
    """
    if changes < 1e-4:
        return 0.5 + changes / 12.0
    return -1.0 / expm1(-changes) - 1.0 / changes


class Measured:
    """The quality of answers over the recent past, by what crawls have found the copies to have cost, with its error.

    A crawl that finds a change knows the loss that the old copy has caused, and about how long. Summed over all crawls,
    a second of the past has had so much loss. What is further back counts less.
    """

    def __init__(self, memory: float = 86400.0) -> None:
        self.memory = memory  # seconds
        self.crawls = 0
        self._sums = dict.fromkeys(MEASURES, 0.0)
        self._squares = dict.fromkeys(MEASURES, 0.0)
        self._at: float | None = None
        self.since: float | None = None

    def add(self, losses: Mapping[str, float], elapsed: float, changes: float, now: float) -> None:
        """A crawl has judged a copy that was last known to be current so long ago; as long sees so many changes."""
        since = self._fade(now)
        self.crawls += 1
        watched = min(elapsed, now - since)
        seconds = watched * stale_share(changes * watched / elapsed if elapsed > 0 else 0.0)
        for name, loss in losses.items():
            self._sums[name] += loss * seconds
            self._squares[name] += (loss * seconds) ** 2

    def _fade(self, now: float) -> float:
        """Let what was seen fade up to now; since when something was."""
        if self.since is None or self._at is None:
            self.since = self._at = now
        left = exp(-max(now - self._at, 0.0) / self.memory)
        for sums, share in ((self._sums, left), (self._squares, left * left)):
            for name in sums:
                sums[name] *= share
        self._at = max(now, self._at)
        return self.since

    def quality(self, now: float) -> dict[str, tuple[float, float]]:
        """By measure: the quality (1: as on fresh copies) and its standard error; nothing before anything was seen."""
        if self.since is None or not now > self.since:
            return {}
        self._fade(now)
        seconds = -self.memory * expm1(-(now - self.since) / self.memory)
        return {
            name: (max(1.0 - self._sums[name] / seconds, 0.0), sqrt(self._squares[name]) / seconds) for name in MEASURES
        }

    def kept(self) -> dict[str, object]:
        """To be kept over a restart."""
        return {
            "sums": self._sums,
            "squares": self._squares,
            "at": self._at,
            "since": self.since,
            "crawls": self.crawls,
        }

    def recall(self, kept: Mapping[str, Mapping[str, float]]) -> None:
        """What was kept; the time for which nobody looked does not count as loss nor as none."""
        self._sums = {name: max(float(kept["sums"][name]), 0.0) for name in MEASURES}
        self._squares = {name: max(float(kept["squares"][name]), 0.0) for name in MEASURES}
        at, since = kept["at"], kept["since"]
        self._at = None if at is None else float(str(at))
        self.since = None if since is None else float(str(since))
        self.crawls = int(str(kept["crawls"]))
