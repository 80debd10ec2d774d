"""`Search`: ranked answers over the copies of a store, each with its age and its probability of being fresh."""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from os import PathLike
from types import TracebackType
from typing import Self

import apsw

from afresh.checks import number, require_text
from afresh.errors import InboxFull, InputError, StoreError
from afresh.index import schema
from afresh.index.engines import engine_named
from afresh.index.fulltext import Found, FullText, Weights
from afresh.index.measures import attention
from afresh.index.queries import Query, parse
from afresh.index.schema import number_in, row_of
from afresh.index.scoring import Collection, Wanted, counted, score
from afresh.index.snippets import snippet
from afresh.index.words import Tokenizer
from afresh.store import PageState, Sqlite
from afresh.store.faults import translated
from afresh.store.messages import of_queries, of_requests
from afresh.store.socket_file import wake
from afresh.types import Outcome, Request

MAX_RESULTS = 1_000
SEEN_RANKS = 50  # that count as requests of their pages
PROBABLY_CHANGED = 0.5  # a result is, if it is fresh with a lower probability
TOLD_EVERY = 1.0  # seconds between two batches of what was searched for
MAX_TOLD = 5_000  # searches in one batch; more are counted as lost
_ANSWER = "SELECT answer, right FROM search_answers WHERE query = ?"
KNOWN_QUERIES = 1_000  # that were understood lately


@dataclass(frozen=True, slots=True)
class Result:
    """One page that was found."""

    url: str
    title: str
    snippet: str
    score: float
    age: float  # seconds since the copy was known to be current
    fresh: float  # the probability that it still is
    links: int = 0  # pages that link to it


@dataclass(frozen=True, slots=True)
class Results:
    """An answer: the results, the best first, and how far they may be out of date."""

    query: str
    time: float  # when it was put together
    results: tuple[Result, ...] = ()
    due: int = 0  # copies that the index does not have yet
    kept: bool = False  # it was put together before, and kept
    right: float = 1.0  # how far it is taken to be the answer of now
    whole: bool = False  # there are no further results

    @property
    def probably_changed(self) -> int:
        """How many of the results have probably changed since their copies were made."""
        return sum(each.fresh < PROBABLY_CHANGED for each in self.results)

    @property
    def notice(self) -> str:
        """A sentence about that; "" if there is nothing to say.

        >>> page = Result("http://e.org/", "", "", 1.0, 60.0, 0.2)
        >>> Results("ferry", 0.0, (page, replace(page, fresh=0.9))).notice
        '1 of 2 results has probably changed'
        """
        changed = self.probably_changed
        said = f"{changed} of {len(self.results)} results {'has' if changed == 1 else 'have'} probably changed"
        waits = f"{self.due:,} {'copy is' if self.due == 1 else 'copies are'} not in the index yet"
        return "; ".join([*([said] if changed else []), *([waits] if self.due else [])])


class Search:
    """Searches the copies of a store, beside whoever runs on it. Every search is told to the runner, which learns from
    it what is wanted.

    It may be used from many threads at once.
    """

    def __init__(
        self,
        store: str | PathLike[str] = "afresh.db",
        *,
        weights: Weights | None = None,
        tell: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Search the store at `store`; with `tell`, searches count as requests of what they find."""
        self._store = Sqlite(store, create=False)
        self._clock = clock
        self._tell = tell
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._told_at = clock()
        self._known: OrderedDict[tuple[str, str], Query] = OrderedDict()
        try:
            self._connection = self._store.reader()
            tokenizer, engine = self._made_with()
            self._index = FullText(tokenizer=tokenizer, weights=weights, engine=engine_named(engine))
        except BaseException:
            self._store.close()
            raise

    def _made_with(self) -> tuple[str, str]:
        """The tokenizer and the engine of the index."""
        with translated(self._store.path):
            if not schema.is_made(self._connection):
                raise StoreError(
                    f"The store {self._store.path} has no index.",
                    hint="Make one: afresh index. With [index] enabled = true, afresh run keeps it up to date.",
                )
            kept = str(schema.state(self._connection, "tokenizer"))
            engine = schema.engine_of(self._connection)
            if not schema.is_current(self._connection, kept, engine) or kept not in schema.TOKENIZERS:
                raise StoreError("The index was made by another version of afresh.", hint="Build it anew: afresh index")
            return kept, engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def search(self, words: str, *, limit: int = 10, host: str = "", fresh: float | None = None) -> Results:
        """The best results for some words; on one host or domain only, if that is given.

        With `fresh`, an answer that was kept will do, if it is still right with that probability at least. InputError
        if the query makes no sense.
        """
        require_text(words, "words")
        require_text(host, "host")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_RESULTS:
            raise InputError(f"{limit!r:.40} is no number of results.", hint=f"Ask for 1 to {MAX_RESULTS:,}.")
        if fresh is not None:
            fresh = number("fresh", fresh, most=1.0)
        query = self._understood(words, host)
        with self._lock:
            found = self._kept(query, limit, fresh) if fresh is not None else None
            if found is None:
                with translated(self._store.path):
                    found = self._found(query, limit)
        self._asked(query, found)
        return found

    def _understood(self, words: str, host: str) -> Query:
        query = self._known.get((words, host))
        if query is None:
            query = parse(words, host=host)
            with self._lock:
                self._known[words, host] = query
                if len(self._known) > KNOWN_QUERIES:
                    self._known.popitem(last=False)
        return query

    def _kept(self, query: Query, limit: int, fresh: float) -> Results | None:
        """An answer that the runner keeps ready, if it will do."""
        with translated(self._store.path):
            row = row_of(self._connection, _ANSWER, (query.text,))
        if row is None:
            return None
        try:
            answer = self._read(*row) if row[1] >= fresh else None
            if answer is None or (len(answer.results) < limit and not answer.whole):
                return None
            later = max(self._clock() - answer.time, 0.0)
            results = tuple(replace(each, age=each.age + later) for each in answer.results[:limit])
            return replace(answer, query=query.text, results=results)
        except (ValueError, TypeError, KeyError):
            return None

    @staticmethod
    @lru_cache(maxsize=KNOWN_QUERIES)
    def _read(text: str, right: float) -> "Results":
        answer = json.loads(text)
        results = tuple(Result(**each) for each in answer["results"])
        return Results("", answer["time"], results, kept=True, right=right, whole=bool(answer["all"]))

    def _found(self, query: Query, limit: int) -> Results:
        now = self._clock()
        found = self._index.search(self._connection, query, limit)
        some = results_of(self._store, self._index, self._connection, query, found, now)
        due = number_in(self._connection, "SELECT count(*) FROM search_due")
        return Results(query.text, now, tuple(some), due, whole=len(found) < limit)

    # --- what was asked for, told to the runner ---

    def _asked(self, query: Query, found: Results) -> None:
        if not self._tell:
            return
        with self._lock:
            count, _ = self._told.get(query.text, (0.0, ()))
            if count or len(self._told) < MAX_TOLD:
                self._told[query.text] = count + 1.0, tuple(each.url for each in found.results[:SEEN_RANKS])
            due = self._clock() - self._told_at >= TOLD_EVERY
        if due:
            self.tell()

    def tell(self) -> int:
        """Hand over what was searched for since the last time; how many searches that were."""
        with self._lock:
            told, self._told = self._told, {}
            self._told_at = now = self._clock()
        if not told:
            return 0
        counts: dict[str, float] = {}
        for count, urls in told.values():
            for rank, url in enumerate(urls, start=1):
                counts[url] = counts.get(url, 0.0) + count * attention(rank)
        requests = [Request(url, now, count) for url, count in counts.items()]
        queries = [(text, now, count) for text, (count, _) in told.items()]
        with suppress(InboxFull):  # nobody has listened for long: what is wanted is known well enough
            self._store.post([*of_queries(queries, now), *of_requests(requests, now)])
            wake(self._store.path)
        return len(told)

    def close(self) -> None:
        """Hand over the rest, and let go of the store. A second call does nothing."""
        with suppress(StoreError):
            self.tell()
        self._connection.close()
        self._store.close()


def results_of(
    store: Sqlite, index: FullText, connection: apsw.Connection, query: Query, found: Sequence[Found], now: float
) -> list[Result]:
    """What was found, as readers want it; pages that are gone are left out."""
    some = []
    for each in found:
        state, content = store.state_numbered(each.page), index.content(connection, each.page)
        if state is None or content is None or is_gone(store, state):
            continue
        age, sure = freshness_of(store, state, now)
        some.append(Result(each.url, content.title, snippet(content, query), each.score, age, sure, each.links))
    return some


def rescored(
    index: FullText,
    connection: apsw.Connection,
    tokenizer: Tokenizer,
    asked: Wanted,
    collection: Collection,
    found: Sequence[Found],
) -> list[Found]:
    """What an engine found that has a formula of its own, by the formula of `scoring`."""
    some = []
    for each in found:
        host = row_of(connection, "SELECT host FROM pages WHERE number = ?", (each.page,))
        content = index.content(connection, each.page)
        if host is not None and content is not None:
            points = score(asked, counted(content, host[0], tokenizer), collection, index.weights)
            some.append(each._replace(score=points * index.weights.of_links(each.links)))
    return sorted(some, key=lambda each: (-each.score, each.url))


def is_gone(store: Sqlite, state: PageState) -> bool:
    """Whether a page was not there any more when it was last asked for."""
    last = next(iter(store.history(state.page.url, 1)), None) if state.failures else None
    return last is not None and last.outcome is Outcome.GONE


def freshness_of(store: Sqlite, state: PageState, now: float) -> tuple[float, float]:
    """(age of a copy, probability that it is still current), by what the store knows of its page."""
    if state.checked is None:
        return 0.0, 0.0
    age = max(now - state.checked, 0.0)
    if state.failures:
        last = next(iter(store.history(state.page.url, 1)), None)
        if last is not None and last.leaves_outdated:
            return age, 0.0
    return age, 0.0 if state.beliefs is None else state.beliefs.freshness(age, state.signals)


def as_facts(found: Results) -> dict[str, object]:
    """An answer for programs."""
    return {**asdict(found), "probably_changed": found.probably_changed, "notice": found.notice}
