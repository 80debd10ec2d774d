"""Lists that sites keep of themselves: sitemaps and feeds, read for hints of change and for pages nobody links to.

A list is a special page of its host, as robots.txt is: when a page of the host is about to be fetched and a list is
due, the turn goes to the list, and the page's order is given back. Of two turns in a row only one is taken, so that an
index of thousands delays the pages and does not starve them. Where no page takes a turn, a due list gets one of its
own (`poll`), up to a share of the budget.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from afresh.detect import compare
from afresh.frontier import canonical_or_none, host_failed, host_of, retry_after
from afresh.frontier.effort import rest_for
from afresh.signals.sitemap import LARGEST
from afresh.signals.websub import Announced, best, in_header
from afresh.sources.base import Later, Listed, Runner
from afresh.sources.pieces import in_pieces
from afresh.sources.web.agenda import FEED, OPERATOR, SITEMAP, Agenda, Known
from afresh.sources.web.asking import Asker
from afresh.sources.web.digest import SLACK, Look, Marks, look, marks_of, named_by
from afresh.sources.web.discovery import Discovery
from afresh.sources.web.permits import Permits
from afresh.types import Fetched, Outcome, Page, Validators

GONE = "sitemap-gone"  # the sender of hints that a page is in its sitemap no longer
KEPT = "lists "  # before a host: under this name the store holds what is known of its lists
MOST = 100_000  # of all hosts together; those of the host that was met first are forgotten, and found again
MAX_KEPT_BYTES = 8 << 20  # of one host
MAX_VANISHED = 10_000  # of which one reading may tell
BUDGET_SHARE = 0.1  # of the crawls, that lists may take besides pages' turns
LEAST_POLLS = 0.1  # a second, that they may take whatever the budget is
AT_ONCE = 4
LOOK_SECONDS = 0.5
SAMPLE = 50  # pages by which it is told what a hint gains
COST_BYTES = 256 << 10  # that cost as much as a crawl besides

_log = logging.getLogger("afresh.lists")


@dataclass(frozen=True, slots=True)
class Hub:
    """A list that a hub would push."""

    host: str
    topic: str
    announced: Announced
    at: str  # where it was read, which the addresses are relative to


class Lists:
    """Reads what sites list, and makes pages and signals of it.

    Invariants: a list is asked for like a page, with the same permission, politeness and guard; it speaks for its own
    host and for those that lead to it; it raises at most one signal for a page until that is crawled.
    """

    def __init__(
        self,
        *,
        asker: Asker,
        runner: Runner,
        permits: Permits | None = None,
        discovery: Discovery | None = None,
        sitemaps: bool = True,
        feeds: bool = True,
        recall: Callable[[str], str | None] = lambda name: None,
        names: Callable[[str], list[tuple[str, int]]] = lambda prefix: [],
        pushes: Callable[[Hub], None] = lambda hub: None,
    ) -> None:
        self.asker = asker
        self.permits = permits
        self.discovery = discovery
        self.runner = runner
        self.sitemaps, self.feeds = sitemaps, feeds
        self.recall, self.names = recall, names
        self.pushes = pushes
        self._agendas: dict[str, Agenda] = {}  # by host
        self._count = 0
        self._one_at_a_time = asyncio.Lock()  # what is being read is in memory whole
        self._heap: list[tuple[float, str]] = []
        self._under_way: set[str] = set()  # hosts whose list is being read
        self._gone: set[str] = set()  # hosts whose agenda is to be forgotten in the store
        self._polls: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._allowance = 0.0
        self._unpriced: set[str] = set()  # hosts whose lists were planned before there was a price

    async def begin(self) -> None:
        """Go on from what was kept before a restart."""
        kept = await asyncio.to_thread(self._recalled)
        for host, agenda in kept.items():
            for known in agenda.lists():
                known.mend(self.runner.clock())
                if self.discovery is not None and not known.finds:
                    # Its pages were heard of only: now they are wanted.
                    known.validators, known.roll, known.due = Validators(), None, -1e18
            self._agendas[host] = agenda
            self._count += len(agenda)
            self._look_at(host)
        self._poller = asyncio.create_task(self._poll())

    async def close(self) -> None:
        """Let go."""
        for task in [*self._polls, *([self._poller] if self._poller is not None else [])]:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    def take(self) -> dict[str, str | None]:
        """What is to be kept since the last time."""
        found: dict[str, str | None] = dict.fromkeys((KEPT + host for host in self._gone), None)
        self._gone.clear()
        for host, agenda in self._agendas.items():
            if agenda.changed:
                agenda.changed = False
                text = agenda.to_text()
                if len(text) > MAX_KEPT_BYTES:
                    _log.warning("What is known of the lists of %s is too much to be kept.", host)
                    continue
                found[KEPT + host] = text
        return found

    def find(self, url: str) -> Known | None:
        """What is known of a list, wherever it is named."""
        return next((known for agenda in self._agendas.values() if (known := agenda.find(url)) is not None), None)

    def follow(self, url: str) -> None:
        """An operator wants this sitemap to be followed: its pages are kept from now on."""
        self._agenda(host_of(url)).wanted(url)
        self._look_at(host_of(url))

    def leave(self, url: str) -> None:
        """The operator wants that no more."""
        if (agenda := self._agendas.get(host_of(url))) is not None:
            agenda.unwanted(url)

    def announced(self, host: str, feeds: Iterable[str]) -> None:
        """A page of a host names these feeds."""
        if self.feeds and self._agenda(host).announced(feeds):
            self._look_at(host)

    def pushed(self, host: str, url: str, *, at: float | None = None, agreed: bool | None = None) -> None:
        """A hub has delivered a list, or has agreed to do so, or does so no more."""
        known = self._agenda(host).find(url)
        if known is not None:
            known.pushed = at if at is not None else known.pushed
            known.is_pushed = agreed if agreed is not None else known.is_pushed
            known.plan(self.runner.price)
            self._agenda(host).planned()
            self._look_at(host)

    async def turn(self, url: str) -> float | None:
        """Use the turn of a page's host for a list that is due; the host's rest after that, None if none is."""
        host = host_of(url)
        known = self._due(url, host)
        if known is None or host in self._under_way:
            return None
        own = host_of(known.url) == host
        self._under_way.add(host)
        try:
            if own:
                got = await self.asker.ask(known.url, known.validators, most=LARGEST)
                if isinstance(got, Later):
                    return got.gap
                fetched = got
            else:
                fetched = await self.asker.elsewhere(url, known.url)
            rest = await self._took(host, known, fetched)
            return self._rested(host, known, fetched, rest) if own else 0.0
        finally:
            self._under_way.discard(host)

    async def _took(self, host: str, known: Known, fetched: Fetched) -> tuple[Outcome, str, float]:
        """Use what came; what came of it, why, and how long its host should rest for what it cost."""
        self.runner.hold(len(fetched.body))
        try:
            # The bytes are what counts, whatever type it claims: of a page dates would not count, here they are all.
            fetched = replace(fetched, content_type="")
            verdict = await asyncio.to_thread(compare, known.validators, fetched)
            now, before, rest = self.runner.clock(), known.read, 0.0
            known.answered(verdict.outcome, verdict.validators, now)
            if verdict.outcome in (Outcome.NEW, Outcome.CHANGED):
                named = await self._read(host, known, fetched, before)
                if self.runner.compete:
                    rest = rest_for(len(fetched.body), iter(named))
            elif verdict.outcome.refreshed:
                known.heard(0.0, now - before, None)
                await self._heard_out(host, known, fetched.started)
            else:
                problem = f"It could not be fetched: {verdict.reason}."
                if host_of(known.url) in self.asker.never:
                    problem = "It was not fetched: its host is never to be crawled (crawl.never)."
                self.runner.tell(Listed(known.url, now, problem=problem))
            known.plan(self.runner.price, 1.0 + len(fetched.body) / COST_BYTES)
            if not self.runner.price > 0:
                self._unpriced.add(host)
            self._agenda(host).planned()
            self._look_at(host)
            return verdict.outcome, verdict.reason, rest
        finally:
            self.runner.hold(-len(fetched.body))

    def _rested(self, host: str, known: Known, fetched: Fetched, came: tuple[Outcome, str, float]) -> float:
        """Let a host rest after a turn that went to its list; for how long."""
        outcome, reason, rest = came
        gap = self.runner.lanes.answered(
            host,
            failed=False if outcome.refreshed else host_failed(host, fetched, reason),
            now=self.runner.clock(),
            took=fetched.took,
            retry_after=retry_after(host, fetched),
            reason=reason,
        )
        return max(gap, rest)

    def _due(self, url: str, host: str) -> Known | None:
        """The list that this turn goes to, if any."""
        lines = self.permits.sitemaps(url) if self.permits is not None and self.sitemaps else ()
        agenda = self._agendas.get(host)
        if agenda is None:
            if not lines:
                return None
            agenda = self._agenda(host)
        if lines is not agenda.lines:
            agenda.lines = lines
            whole = (canonical_or_none(line, url) for line in lines)
            self._named(agenda, dict.fromkeys(each for each in whole if each is not None))
        return agenda.take(self.runner.clock())

    def _agenda(self, host: str) -> Agenda:
        agenda = self._agendas.get(host)
        if agenda is None:
            agenda = self._agendas[host] = Agenda()
        return agenda

    def _named(
        self, agenda: Agenda, urls: dict[str, float | None], by: Known | None = None, *, all_of_them: bool = True
    ) -> None:
        """Note what is named, within bounds."""
        self._count -= len(agenda)
        agenda.named(urls, by, all_of_them=all_of_them)
        self._count += len(agenda)
        while self._count > MOST and len(self._agendas) > 1:
            first = next(iter(self._agendas))
            self._count -= len(self._agendas.pop(first))
            self._gone.add(first)

    def _look_at(self, host: str) -> None:
        """See to it that a due list of a host is read even if no page takes a turn there."""
        heappush(self._heap, (self._agenda(host).next_due(), host))

    async def _poll(self) -> None:
        """Give lists that are due a turn of their own, where no page's turn has gone to them."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._give_turns()
            except Exception:
                _log.exception("lists cannot be given turns")

    def _give_turns(self) -> None:
        now = self.runner.clock()
        if self._unpriced and self.runner.price > 0:
            self._plan_again()
        most = max(BUDGET_SHARE * self.runner.budget, LEAST_POLLS)
        self._allowance = min(self._allowance + most * LOOK_SECONDS, max(most, 1.0))
        waiting = []
        while self._heap and self._heap[0][0] <= now and len(self._polls) < AT_ONCE and self._allowance >= 1.0:
            _, host = heappop(self._heap)
            agenda = self._agendas.get(host)
            known = agenda.longest_due(now) if agenda is not None else None
            if known is None:
                continue  # it had a turn meanwhile
            if host in self._under_way or not self._may_visit(known, now):
                waiting.append((now + LOOK_SECONDS, host))
                continue
            self._allowance -= 1.0
            self._under_way.add(host)
            task = asyncio.create_task(self._visit(host, known))
            self._polls.add(task)
            task.add_done_callback(self._polls.discard)
        for each in waiting:
            heappush(self._heap, each)

    def _plan_again(self) -> None:
        """The crawl has found its price: what was read before can be planned by value."""
        for host in self._unpriced:
            agenda = self._agenda(host)
            for known in agenda.lists():
                known.plan(self.runner.price)
            agenda.planned()
            self._look_at(host)
        self._unpriced.clear()

    def _may_visit(self, known: Known, now: float) -> bool:
        lane = self.runner.lanes.lane(host_of(known.url))
        return lane.is_free and lane.ready <= now

    async def _visit(self, host: str, known: Known) -> None:
        try:
            got = await self.asker.visit(known.url, known.validators, most=LARGEST)
            if isinstance(got, Later):
                if got.failure is not None:
                    known.answered(Outcome.FAILED, known.validators, self.runner.clock())
                    known.due = max(known.due, self.runner.clock() + got.gap)
                    self._agenda(host).planned()
                heappush(self._heap, (self.runner.clock() + max(got.gap, LOOK_SECONDS), host))
            else:
                await self._took(host, known, got)
        except Exception:
            _log.exception("the list %s cannot be read", known.url)
            known.answered(Outcome.FAILED, known.validators, self.runner.clock())
            self._agenda(host).planned()
            self._look_at(host)
        finally:
            self._under_way.discard(host)

    async def _read(self, host: str, known: Known, fetched: Fetched, before: float) -> Iterable[str]:
        """Make pages, further lists and signals of what was fetched; the addresses that it names."""
        where = fetched.location or known.url
        # It speaks for the host that it lies on, and for the one that leads to it.
        origins = tuple(f"{scheme}://{name}/" for name in {host, host_of(known.url)} for scheme in ("http", "https"))
        now = self.runner.clock()
        async with self._one_at_a_time:
            said = await asyncio.to_thread(
                look, known.kind, fetched.body, where, lambda url: url.startswith(origins), known.roll, now
            )
        first = known.roll is None
        if said.children and known.kind == SITEMAP:
            self._named(self._agenda(host), said.children, known, all_of_them=not said.problem)
        known.ttl = said.ttl
        found = signals = 0
        sender = known.kind
        for piece in in_pieces(list(said.pages.items()), _length):
            found += self._found(known, [url for url, _ in piece])
            for url, _ in piece:
                if url in said.often:
                    self.runner.lasts(url, said.often[url])
            signals += sum(self._hear(url, sender, changed, before, dated_only=first) for url, changed in piece)
            await asyncio.sleep(0)
        if len(said.vanished):
            signals += await self._vanished(host, said.vanished)
        if said.roll is not None and (not said.problem or first):
            known.roll = said.roll
        await self._heard_out(host, known, fetched.started)
        self._value(known, said, found + signals, before)
        self.runner.tell(Listed(known.url, self.runner.clock(), said.entries, found, signals, said.problem))
        in_head = in_header(fetched.meta.get("link", ""))
        if announced := best(in_head, Announced(said.hubs, said.itself)):
            self.pushes(Hub(host, known.url, announced, where))
        return said.addresses

    def _found(self, known: Known, urls: list[str]) -> int:
        """Take in what is new, if that is wanted; how many."""
        if known.parent == OPERATOR or (known.depth and self._followed(known)):
            now = self.runner.clock()
            new = [Page(url, host_of(url), added=now, depth=1) for url in urls if not self.runner.keeps(url)]
            new = [page for page in new if page.host not in self.asker.never] if self.runner.takes_more else []
        elif self.discovery is not None:
            new = self.discovery.listed(urls, self.runner.clock())
        else:
            return 0
        known.finds = True
        self.runner.found(new)
        return len(new)

    def found_by_push(self, known: Known, urls: list[str]) -> None:
        """A hub has pushed a list that names these."""
        self._found(known, urls)

    def _followed(self, known: Known) -> bool:
        """Whether an index leads to it that an operator wants to be followed."""
        for _ in range(known.depth):
            above = self.find(known.parent)
            if above is None:
                return False
            known = above
        return known.parent == OPERATOR

    def _hear(self, url: str, sender: str, changed: float | None, before: float, *, dated_only: bool) -> bool:
        """Raise a signal if the page is said to be newer than its copy, and nobody said so before.

        A list shows the latest change of each page alone: of earlier ones since it was read before nothing is heard.
        """
        if changed is None:
            return sender == FEED and not dated_only and self.runner.hint(url, sender, deaf_since=before)
        return changed <= self.runner.clock() + SLACK and self.runner.hint(url, sender, changed, deaf_since=before)

    async def _heard_out(self, host: str, known: Known, until: float) -> None:
        """Let it count what this list did not say: of what it names, and of what no other list of the sender names."""
        own = known.roll.urls if known.roll is not None else marks_of(())
        named = [each.roll.urls for each in self._agenda(host).lists() if each.kind == known.kind and each.roll]
        others = [urls for urls in named if urls is not own]
        for lane in {host, host_of(known.url)}:
            keys = self.runner.unread(lane)
            if others:
                keys = await asyncio.to_thread(named_by, keys, own, others)
            self.runner.read(lane, known.kind, until, keys)

    async def _vanished(self, host: str, marks: Marks) -> int:
        """Pages that a sitemap names no longer may be gone."""

        def urls() -> list[str]:
            wanted, found = set(marks.tolist()), []
            for piece in in_pieces(list(self.runner.pages_of(host)), len):
                found += [url for url, mark in zip(piece, marks_of(piece).tolist(), strict=True) if mark in wanted]
                if len(found) >= MAX_VANISHED:
                    break
            return found

        told = 0
        for nth, url in enumerate(await asyncio.to_thread(urls)):
            told += self.runner.hint(url, GONE)
            if nth % SAMPLE == SAMPLE - 1:
                await asyncio.sleep(0)
        return told

    def _value(self, known: Known, said: Look, useful: int, before: float) -> None:
        """Learn what a reading of this list is worth."""
        some = list(said.pages)[: 10 * SAMPLE : 10] or list(said.pages)[:SAMPLE]
        worth = [self.runner.worth(url, known.kind) for url in some]
        gain = sum(worth) / len(worth) if worth else None
        if before > -1e17:  # what came since the last reading
            known.heard(useful, self.runner.clock() - before, gain)
        elif said.news[0]:  # at the first, what it says itself
            known.heard(said.news[0], said.news[1], gain)

    def _recalled(self) -> dict[str, Agenda]:
        """What was kept, in a thread; what makes no sense is forgotten."""
        found: dict[str, Agenda] = {}
        for name, _ in self.names(KEPT):
            host = name.removeprefix(KEPT)
            try:
                found[host] = Agenda.from_text(self.recall(name) or "")
            except (ValueError, TypeError, KeyError, AttributeError):
                self._gone.add(host)
        return found


def _length(pair: tuple[str, float | None]) -> int:
    return len(pair[0])
