"""Beside the crawl: the index catches up, frequent queries are followed, and what stale copies cost them is learned.

Whatever reads bytes or searches runs in one thread of its own, with a connection of its own, and rests in between.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, TypeVar

from afresh.daemon.apart import Apart
from afresh.engine import AnyEngine
from afresh.errors import InputError
from afresh.index import FullText, parse, results_of
from afresh.index.asked import FREQUENT, Asked
from afresh.index.measures import DEPTH
from afresh.index.quality import LISTED, MEASURES, Judged, Measured, Quality
from afresh.index.scoring import Collection, Wanted, rarity, wanted
from afresh.index.search import rescored
from afresh.index.words import Tokenizer
from afresh.store import PageState, Sqlite
from afresh.store.faults import transaction, translated
from afresh.store.messages import SEARCHES_KEPT
from afresh.types import Copy, Fetched, Outcome, Verdict

_log = logging.getLogger("afresh.search")

KEEP_EVERY = 30.0  # seconds
IDLE_TIMES = 30.0  # after an evaluation it rests so many times as long as that took: 3 % of a core
EVALUATE_AGAIN = 600.0  # seconds after which an answer is put together again, whatever has moved
SHARES_EVERY = 10.0  # seconds after which it is found out again which queries are frequent
STEER_EVERY = 30.0
PIECE = 200  # pages that are told their weights between two chances for others
LEAST_WEIGHT = 0.05  # of a page, as a share of the mean: nothing is given up for ever
MOST_SECONDS = 10.0  # that an operator's report may take
MOST_KEPT = 5_000  # weights that are kept for plans
CATCH_UP = 50  # copies in one go
SAVED_EVERY = 2.0  # seconds between two batches, with an engine that saves in batches

Report = Callable[[str, Copy | None, Copy | None], float]  # address, old and new copy: how far a report has moved
Found = TypeVar("Found")


class Searching:
    """Keeps the index and the answers to frequent queries, judges what crawls find, and may steer by it.

    Invariants: nothing here stops the crawl; a fault is told of once, and the crawl goes on without.
    """

    def __init__(
        self,
        *,
        store: Sqlite,
        index: FullText,
        engine: AnyEngine,
        clock: Callable[[], float],
        copy: Callable[[str], Copy | None] = lambda url: None,
        steers: bool = False,
        most: int = FREQUENT,
        report: Report | None = None,
        steer_every: float = STEER_EVERY,
    ) -> None:
        self.store, self.index, self.engine, self.clock = store, index, engine, clock
        self.steers, self.report, self._copy, self.steer_every = steers, report, copy, steer_every
        self.asked = Asked(most=most)
        self.quality = Quality(Tokenizer(index.tokenizer), index.weights)
        self.measured = Measured()
        self._evaluated: dict[str, float] = {}
        self._shares: dict[str, float] = {}
        self._shares_at = self._kept_at = self._steered_at = -1e300
        self._saved_at = -1e300
        self.ending = False  # what is learned is to be kept now, whenever that was done last
        self._complained = ""
        self._thread = ThreadPoolExecutor(1, "afresh-search")
        self._apart = Apart("afresh-report") if report is not None else None
        self._connection = store.reader()

    # --- what is heard ---

    def begin(self) -> None:
        """Recall what was learned before."""
        kept = self.store.get(SEARCHES_KEPT)
        if kept is None:
            return
        try:
            known = json.loads(kept)
            self.asked.recall(known["queries"], known["since"])
            self.measured.recall(known["measured"])
            self.quality.recall(known["quality"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("What was known of searches makes no sense and is learned anew: %s.", error)

    def searched(self, queries: Iterable[tuple[str, float, float]]) -> None:
        """Others have searched for this, then, so often."""
        now = self.clock()
        for text, when, count in queries:
            try:
                query = parse(text)
            except InputError:
                continue
            self.asked.count(query.text, count, min(when, now))

    async def judged(
        self, before: PageState, fetched: Fetched, verdict: Verdict, *, probe: bool = False
    ) -> float | None:
        """What the copy has cost the answers until now: 0 if nothing was to be seen; None: nobody can tell."""
        if not verdict.outcome.refreshed and verdict.outcome is not Outcome.GONE:
            return None
        if verdict.outcome is Outcome.UNCHANGED:
            found: Judged | None = Judged(dict.fromkeys(MEASURES, 0.0))
        elif self.report is None and not self.quality.rankings:
            return None
        elif self._apart is not None:
            found = await self._reported(self._apart, before, fetched, verdict)
        else:
            found = await self._run(self._judge, before, fetched, verdict, probe)
        if found is None or before.checked is None:
            return None
        elapsed = max(fetched.started - before.checked, 0.0)
        rate = before.beliefs.change_rate if before.beliefs is not None else 0.0
        self.measured.add(found.losses, elapsed, rate * elapsed, self.clock())
        return found.loss

    def _judge(self, before: PageState, fetched: Fetched, verdict: Verdict, probe: bool) -> Judged:
        url, gone = before.page.url, verdict.outcome is Outcome.GONE
        new = _new_copy(url, fetched, verdict)
        page = self.store.numbers([url])[0]
        old = self.index.content(self._connection, page)
        content = None if new is None else self.index.content_of(new)
        learns = old is not None and not (gone and before.failures)
        linked = self.index.linked(self._connection, url)
        return self.quality.judge(url, before.page.host, old, content, linked=linked, learns=learns, moves=not probe)

    async def _reported(self, thread: Apart, before: PageState, fetched: Fetched, verdict: Verdict) -> Judged | None:
        """How far the operator's report has moved; None if it does not say so in time."""
        url, report = before.page.url, self.report
        if report is None:
            return None
        try:
            if thread.busy > MOST_SECONDS:
                raise TimeoutError(f"the report has been at one crawl for more than {MOST_SECONDS:g} s")
            new = _new_copy(url, fetched, verdict)
            moved = await thread.ask(lambda: float(report(url, self._copy(url), new)), MOST_SECONDS)
            if moved is None or not 0.0 <= moved <= 1.0:
                raise ValueError(f"the report moved by {moved!r}, which is not between 0 and 1")
        except Exception as error:  # whatever an operator's function may raise
            self._complain(error)
            return None
        return Judged(dict.fromkeys(MEASURES, moved))

    async def _run(self, work: Callable[..., Found], *arguments: Any) -> Found | None:
        """Work in the thread; None if it failed, which is told of."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except Exception as error:  # also whatever an operator's report may raise
            self._complain(error)
            return None

    def _complain(self, error: Exception) -> None:
        said = f"{type(error).__name__}: {str(error)[:300]}"
        if said != self._complained:
            self._complained = said
            _log.warning("Searches are not followed as they should be: %s.", said)

    # --- beside the crawl ---

    async def keep(self) -> None:
        """Catch up, evaluate, steer; until cancelled."""
        while True:
            began = time.monotonic()
            if self.index.engine.batched:  # what waits as due is no extra, and does not lengthen the rest
                busy: int | None = 0
                await self._save_batch()
                began = time.monotonic()
            else:
                busy = await self._run(self._catch_up)
            await self._choose()
            busy = bool(await self._run(self._evaluate_one)) or bool(busy)
            if self.steers and self.clock() - self._steered_at >= self.steer_every:
                await self._steer()
            took = time.monotonic() - began
            await asyncio.sleep(max(IDLE_TIMES * took, 0.01) if busy else 0.5)

    async def _save_batch(self) -> None:
        """Write a batch, if one is full or has waited for long enough."""
        if time.monotonic() - self._saved_at >= SAVED_EVERY:
            count = await self._run(self._catch_up) or 0
            self._saved_at = time.monotonic() if count < self.index.engine.piece else -1e300

    def _catch_up(self) -> int:
        """Write some copies that the index does not have yet."""
        batched = self.index.engine.batched
        with translated(self.store.path):
            ready = self.index.due(self._connection, 0, self.index.engine.piece if batched else CATCH_UP)
            if not ready and not (batched and self.index.has_gone(self._connection)):
                return 0
            with self.store.writing() as connection:
                return self.index.catch_up(connection, ready)

    async def _choose(self) -> None:
        """Find out which queries are frequent now, and follow no others."""
        now = self.clock()
        if now - self._shares_at < SHARES_EVERY:
            return
        self._shares_at, self._shares = now, self.asked.frequent(now)
        left = [query for query in self.quality.rankings if query not in self._shares]
        if left:
            await self._run(self._leave, left)
        await self._run(self._share)

    def _leave(self, queries: list[str]) -> None:
        for query in queries:
            self.quality.leave(query)
            self._evaluated.pop(query, None)
        self._answered([(query, None, 0.0) for query in queries])

    def _share(self) -> None:
        for query, ranking in self.quality.rankings.items():
            ranking.share = self._shares.get(query, 0.0)
        moved = [(query, "", ranking.drift) for query, ranking in self.quality.rankings.items() if ranking.drift > 0]
        self._answered(moved)

    def _evaluate_one(self) -> bool:
        """Put the answer together again whose readers gain most by it; whether there was one."""
        now = time.monotonic()
        best, most = "", 0.0
        for text, share in self._shares.items():
            ranking = self.quality.rankings.get(text)
            if ranking is None:
                gain = 2.0 * share
            else:
                gain = share * ranking.drift * (now - self._evaluated[text] > 1.0)
                if now - self._evaluated[text] > EVALUATE_AGAIN:
                    gain = max(gain, 1e-3 * share)
            if gain > most:
                best, most = text, gain
        if not best:
            return False
        self._evaluated[best] = now
        query = parse(best)
        with translated(self.store.path):
            pages, words = self.index.counts(self._connection)
            asked = wanted(query, self.quality.tokenizer)
            matching = {term: self.index.matching(self._connection, term) for term in asked.words}
            rare = {term: rarity(count, pages) for term, count in matching.items()}
            found = self.index.search(self._connection, query, LISTED)
        collection = Collection(pages, words / pages if pages else 1.0)
        ready = Wanted(query, asked.words, rare)
        if self.index.engine.exact:
            scored = found
        else:  # changes are judged by one formula: what is followed is scored by it as well
            scored = rescored(self.index, self._connection, self.quality.tokenizer, ready, collection, found)
        self.quality.follow(best, ready, collection, scored, self._shares[best])
        results = results_of(self.store, self.index, self._connection, query, found, self.clock())
        answer = {"results": [asdict(each) for each in results], "all": len(found) < LISTED, "time": self.clock()}
        self._answered([(best, json.dumps(answer), 0.0)])
        return True

    def _answered(self, answers: Iterable[tuple[str, str | None, float]]) -> None:
        """Keep answers ready for others: new ones, those that moved by so much (""), and none of what left (None)."""
        some = list(answers)
        if not some:
            return
        with self.store.writing() as connection, transaction(connection):
            for query, answer, drift in some:
                right = max(1.0 - drift, 0.0)
                if answer is None:
                    connection.execute("DELETE FROM search_answers WHERE query = ?", (query,))
                elif answer:
                    connection.execute("INSERT OR REPLACE INTO search_answers VALUES (?, ?, ?)", (query, right, answer))
                else:
                    connection.execute("UPDATE search_answers SET right = ? WHERE query = ?", (right, query))

    # --- steering ---

    async def _steer(self) -> None:
        """Tell the engine what a stale copy of each page costs searches a second."""
        self._steered_at = self.clock()
        if not self.quality.rankings:
            return
        found = await self._run(self._weights)
        if not found or not found[0]:
            return
        weights, first = found
        mean = sum(weights.values()) / len(weights)
        base = max(self.quality.base_weight, LEAST_WEIGHT * mean)
        if mean <= 0:
            return
        rate = max(self.asked.rate(self.clock()), 1e-9)
        told = {url: max(weight, base * 0.1) * rate for url, weight in weights.items()}
        for part in self.engine.parts:
            moved = part.weigh(told, base * rate, max(first, base) * rate)
            for begin in range(0, len(moved), PIECE):
                part.believe_slots(moved[begin : begin + PIECE], self.clock())
                await asyncio.sleep(0)

    def _heaviest(self) -> list[tuple[str, float]]:
        """The pages whose stale copies cost most, for `afresh plan`."""
        weights = {url: self.quality.weight(url) for url in list(self.quality.listed)}
        return sorted(weights.items(), key=lambda each: -each[1])[:MOST_KEPT]

    def _weights(self) -> tuple[dict[str, float], float]:
        return {url: self.quality.weight(url) for url in self.quality.listed}, self.quality.first_weight

    # --- what is said and kept ---

    def values(self) -> dict[str, str]:
        """What is learned, to be kept in the store; nothing if that was done a moment ago."""
        now = self.clock()
        if now - self._kept_at < KEEP_EVERY and not self.ending:
            return {}
        self._kept_at = now
        if not len(self.asked) and not self.measured.crawls:
            return {}
        known = {
            "queries": list(self.asked.rows()),
            "since": self.asked.since,
            "measured": self.measured.kept(),
            "quality": self.quality.learned(),
            "weights": self._heaviest(),
            "base": self.quality.base_weight,
            "summary": self.summary(),
        }
        return {SEARCHES_KEPT: json.dumps(known)}

    def summary(self) -> dict[str, Any]:
        """For `status`: how good answers are, by what, and what the index lacks."""
        now = self.clock()
        found = self.measured.quality(now)
        return {
            "queries": len(self.quality.rankings),
            "searches_per_second": self.asked.rate(now),
            "judged": self.measured.crawls,
            "depth": DEPTH,
            "quality": {name: {"mean": mean, "error": error} for name, (mean, error) in found.items()},
            "steers": self.steers,
            "report": self.report is not None,
        }

    async def close(self) -> None:
        """End the threads; a report that hangs is not waited for."""
        if self._apart is not None:
            self._apart.close()
        if self.index.engine.batched:
            await self._run(self._catch_up)
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._connection.close()


def _new_copy(url: str, fetched: Fetched, verdict: Verdict) -> Copy | None:
    """What was fetched, as it is about to be kept; None: the page is gone."""
    if verdict.outcome is Outcome.GONE:
        return None
    return Copy(url, fetched.body, fetched.content_type, fetched.started, fetched.started)
