"""What the console asks for, and how: in threads, bounded, and what takes long is kept for a while."""

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from afresh.serve.console.restraint import MAX_WAIT_SECONDS, Restraint
from afresh.serve.receive.bodies import Refused
from afresh.store.figures import Figures
from afresh.store.listing import Wanted

Told = TypeVar("Told")
Object = dict[str, Any]

THREADS = 3  # for what is quick
APART = 4  # for those who see to it that few of them ask at a time
MAX_WAITING = 200  # questions; more are refused
SECONDS = 20.0  # until an answer is given up
MAX_KEPT = 32  # answers that took long, and as many questions that wait
MAX_MADE_UP = 8  # the same of questions that anybody may make up, whose answers may be large
REST_TIMES = 20.0  # an answer that took long is kept so many times as long as that: 5 % of a core at most
FRESH_SECONDS = 1.0
# Questions a second that only the runner can answer, each about 2 ms of its loop: programs can take 3 % of a core from
# the crawl, and pages for browsers 2 %. They do not wait for each other: nobody's click waits behind a program.
BY_PROGRAMS, BY_PROGRAMS_AT_ONCE = 15.0, 30.0
BY_BROWSERS, BY_BROWSERS_AT_ONCE = 10.0, 20.0
OF_A_LISTED_PAGE = 1 / 400  # of such a question
STARTS = "The runner is starting."
RECKONED = "That is still being reckoned."


@dataclass(frozen=True, slots=True)
class LookBack:
    """Changes that match among some that were looked at, the newest first."""

    found: list[Object]
    last: int = 0  # the number of the oldest that was looked at
    time: float | None = None  # and of when it is; None: there are none before it


class Facts(Protocol):
    """All that the console tells. Methods may take a while; one thread at a time calls those of an object."""

    def is_run(self) -> bool:
        """Whether a runner is there, who can be asked."""

    def collection(self) -> Object:
        """Of the collection as a whole."""

    def pages(self, wanted: Wanted) -> Object:
        """A part of the list of pages, and where the next one begins."""

    def page(self, url: str, history: int) -> Object | None:
        """One page; None if it is not kept."""

    def hosts(self) -> list[Object]:
        """Every host, the most troubled first."""

    def senders(self) -> Object:
        """Who sends signals, and what they are worth."""

    def kinds(self) -> Object:
        """Kinds of pages."""

    def changes(self, after: int, limit: int) -> list[Object]:
        """What was found new, changed or gone, behind a number."""

    def latest(self, limit: int) -> list[Object]:
        """The latest of these, the newest first."""

    def latest_of(self, has: Callable[[str], bool], limit: int, before: int | None, looked_at: int) -> LookBack:
        """The latest of these whose addresses match, among so many before a number (None: the newest)."""

    def last_number(self) -> int:
        """The highest that a crawl of this collection was ever given."""

    def versions(self, url: str) -> list[Object]:
        """The versions of a page that are kept, the newest first."""

    def difference(self, url: str, since: int | None, until: int | None) -> Object | None:
        """What changed between two versions, or at the last change; None if these are not kept."""

    def text_of_change(self, change: Object) -> Object:
        """What a change of the feed was about: `title`, `words` (`removed`, `added`) and `blocks`, pairs of before and
        after. The last two are None where that is not kept."""

    def plan(self, budgets: Sequence[float], goals: Sequence[float]) -> Object:
        """What budgets buy, and what goals cost."""

    def settings(self) -> list[Object]:
        """All settings as they are in force."""

    def identity(self) -> str:
        """A name that no other collection has, and that stays."""

    def figures(self, since: float) -> list[Figures]:
        """How it was, the oldest first."""

    def counts(self) -> Object | None:
        """What the runner has counted since it began; None if none runs."""

    def wish(self, kind: str, said: Object) -> Object:
        """Hand a wish over; what became of it."""

    def close(self) -> None:
        """Let go of everything."""


def difference_name(url: str, numbers: tuple[int | None, int | None], newest: int) -> str:
    """What the difference of two versions is kept as, `newest` being the number of the newest: it stays as it is."""
    return f"difference {numbers} {newest} {url}"


class _Kept:
    """An answer that took long."""

    def __init__(self) -> None:
        self.value: Any = None
        self.time = -math.inf  # when it began to be found: it says nothing of what came later
        self.took = 0.0
        self.task: asyncio.Task[Any] | None = None

    @property
    def age(self) -> float:
        """Seconds; infinity where there is no answer yet."""
        return time.monotonic() - self.time

    @property
    def is_current(self) -> bool:
        """Whether its time has not run out."""
        return self.age <= max(FRESH_SECONDS, 0.0 if says_that_it_starts(self.value) else REST_TIMES * self.took)

    @property
    def is_sought(self) -> bool:
        """Whether it is being found, or waits for that."""
        return self.task is not None and not self.task.done()


def says_that_it_starts(answer: object) -> bool:
    """Whether an answer is that of a runner which starts: soon there is more to say."""
    return isinstance(answer, dict) and answer.get("starting") is not None


class _Lane:
    """Long questions that are answered one after the other, and their answers, a bounded number of each."""

    def __init__(self, name: str, most: int) -> None:
        self.pool = ThreadPoolExecutor(1, name)
        self.kept: OrderedDict[str, _Kept] = OrderedDict()
        self._most = most

    def require_room(self) -> None:
        """Refused if too many wait."""
        if sum(each.is_sought for each in self.kept.values()) >= self._most:
            raise Refused(503, "Too many long questions are waiting.", "Ask again in a moment.", Retry_After="5")

    def trim(self) -> None:
        """Forget the answers that nobody has asked for the longest time."""
        answered = [name for name, each in self.kept.items() if not each.is_sought]
        for name in answered[: max(len(answered) - self._most, 0)]:
            del self.kept[name]


class Reading:
    """Asks for facts away from the event loop.

    Invariants: at most `THREADS` quick questions, one long one of the console's own and one that somebody has made up
    are answered at a time; the same long question is answered once, however many ask it.
    """

    def __init__(self, make: Callable[[], Facts]) -> None:
        self._make = make
        self._mine = threading.local()
        self._made: list[Facts] = []
        self._quick = ThreadPoolExecutor(THREADS, "afresh-console")
        self._long = _Lane("afresh-console-long", MAX_KEPT)
        self._made_up = _Lane("afresh-console-made-up", MAX_MADE_UP)
        self._apart = ThreadPoolExecutor(APART, "afresh-console-apart")
        self._by_programs = Restraint(rate=BY_PROGRAMS, burst=BY_PROGRAMS_AT_ONCE)
        self._by_browsers = Restraint(rate=BY_BROWSERS, burst=BY_BROWSERS_AT_ONCE)
        self._waiting = 0

    async def ask(self, question: Callable[[Facts], Told]) -> Told:
        """The answer to a quick question; Refused if too many wait, or it takes too long."""
        if self._waiting >= MAX_WAITING:
            raise Refused(503, "Too many questions are waiting.", "Ask again later.", Retry_After="2")
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._quick, self._answer, question)
        except TimeoutError:
            raise Refused(503, "The answer takes too long.", "Ask for less, or later.", Retry_After="10") from None
        finally:
            self._waiting -= 1

    async def ask_runner(
        self, question: Callable[[Facts], Told], *, cost: float = 1.0, by_browser: bool = False
    ) -> Told:
        """The answer to a quick question for which the runner is asked, where there is one: these have their turns."""
        seconds = (self._by_browsers if by_browser else self._by_programs).wait(cost, time.monotonic())
        if seconds and await self.ask(lambda facts: facts.is_run()):
            if seconds > MAX_WAIT_SECONDS:
                raise Refused(
                    503,
                    "The runner is asked too much at a time.",
                    "It crawls meanwhile: ask again later, and more seldom.",
                    Retry_After=str(math.ceil(seconds)),
                )
            await asyncio.sleep(seconds)
        return await self.ask(question)

    async def ask_apart(self, question: Callable[[Facts], Told]) -> Told:
        """The answer to a question of somebody who asks few at a time: it waits behind those of nobody else, and they
        do not wait for it. TimeoutError if it takes too long."""
        async with asyncio.timeout(SECONDS):
            return await asyncio.get_running_loop().run_in_executor(self._apart, self._answer, question)

    async def ask_long(
        self,
        name: str,
        question: Callable[[Facts], Told],
        *,
        seconds: float = SECONDS,
        older: float = 0.0,
        made_up: bool = False,
    ) -> Told:
        """The answer to a question that may take long; `made_up`: of its kind there are as many as anybody cares to
        ask, so they wait behind each other alone, and few of them.

        One whose time has run out is not given: who asks waits for the new one. If that does not come in so many
        seconds, it is Refused; except that the last one is given if it is at most `older` seconds old: the caller then
        says of when it is.
        """
        lane = self._made_up if made_up else self._long
        kept = lane.kept.get(name)
        if kept is None or not (kept.is_current or kept.is_sought):
            lane.require_room()
            kept = kept or lane.kept.setdefault(name, _Kept())
            kept.task = asyncio.create_task(self._renew(kept, question, lane))
            kept.task.add_done_callback(lambda task: task.cancelled() or task.exception())  # who waits hears of it
            lane.trim()
        lane.kept.move_to_end(name)
        if kept.is_current:
            return cast(Told, kept.value)
        try:
            async with asyncio.timeout(seconds):
                return cast(Told, await asyncio.shield(cast(asyncio.Task[Told], kept.task)))
        except TimeoutError:
            if kept.age <= older and kept.time > -math.inf:
                return cast(Told, kept.value)
            raise Refused(503, RECKONED, "Ask again in a moment.", Retry_After="5") from None

    async def _renew(self, kept: _Kept, question: Callable[[Facts], Told], lane: "_Lane") -> Told:
        def timed() -> tuple[Told, float, float]:  # without the time that it waits for others to be answered
            began = time.monotonic()
            return self._answer(question), began, time.monotonic() - began

        value, kept.time, kept.took = await asyncio.get_running_loop().run_in_executor(lane.pool, timed)
        kept.value = value
        return value

    def _answer(self, question: Callable[[Facts], Told]) -> Told:
        facts: Facts | None = getattr(self._mine, "facts", None)
        if facts is None:
            facts = self._mine.facts = self._make()
            self._made.append(facts)
        return question(facts)

    def close(self) -> None:
        """Finish what was asked, and let go."""
        for pool in (self._quick, self._long.pool, self._made_up.pool, self._apart):
            pool.shutdown(cancel_futures=True)
        for facts in self._made:
            facts.close()
