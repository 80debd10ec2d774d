"""What robots.txt permits, host by host: fetched when it is needed, kept for as long as RFC 9309 allows.

A robots.txt is read once, away from the event loop, and only the rules for our own agent are kept. What is kept is
bounded in bytes, in memory and in the store; the longest unused are forgotten, and asked for again.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace

from afresh.fetch import Fetcher
from afresh.frontier import Permission, Robots, RobotsState
from afresh.frontier.permission import Access, access
from afresh.frontier.robots import LARGEST
from afresh.types import Fetched, Validators

NAME = "robots "  # before the origin: under this an answer is kept in the store
SLACK = 60.0  # seconds that two clocks may differ
MAX_MEMORY = 32 << 20  # bytes of rules in memory
MAX_STORED = 128 << 20  # and in the store
SMALL = 1 << 13  # bytes that are read at once: handing them to a thread would take longer
_EACH = 500  # bytes that a host takes besides its rules
_UNTIL = re.compile(r'\{"until": ([0-9.e+]{1,30}),')


class Permits:
    """Asks every host what a robot may do there, and remembers the answer.

    `agent` is the name that rules are looked up by. The last answer that said something is to be kept, and what has
    failed since then (`take`); `recall` and `names` find what was kept before a restart.
    """

    def __init__(
        self,
        agent: str,
        *,
        recall: Callable[[str], str | None] = lambda name: None,
        names: Callable[[str], list[tuple[str, int]]] = lambda prefix: [],
    ) -> None:
        self.agent = agent
        self.recall = recall
        self.names = names
        self._states: dict[str, RobotsState] = {}  # by origin, the longest unused first
        self._memory = 0  # bytes that they take
        self._unsaved: dict[str, str | None] = {}
        self._saving: dict[str, str | None] = {}  # what was taken last, and may not be in the store yet
        self._stored: dict[str, int] = {}  # characters of each value in the store, the oldest first
        self._total = 0  # of these
        self._reading = asyncio.Lock()  # one large file at a time

    async def begin(self, now: float) -> None:
        """Look at what was kept before a restart; what is too old to decide anything is to be forgotten."""
        old, self._stored = await asyncio.to_thread(self._look, now)
        self._total = sum(self._stored.values())
        self._unsaved |= dict.fromkeys(old)

    def _look(self, now: float) -> tuple[list[str], dict[str, int]]:
        old, kept = [], {}
        for name, size in self.names(NAME):
            until = _UNTIL.match((self.recall(name) or "")[:64])
            if until is None or float(until[1]) < now:
                old.append(name)
            else:
                kept[name] = size
        return old, kept

    async def load(self, url: str) -> None:
        """Bring what was kept of a page's host into memory, before anything is asked about it."""
        origin = _origin(url)
        if origin not in self._states and (kept := self._kept(origin)) is not None and len(kept) > SMALL:
            state = await asyncio.to_thread(self._recalled, kept)
            if origin not in self._states:
                self._set(origin, state)

    def must_ask(self, url: str, now: float) -> bool:
        """Whether robots.txt must be fetched before this page can be judged, or is due for a refresh."""
        state = self._state(url)
        latest = now + SLACK
        if state.confirmed > latest or (state.failures and state.next_try > latest + state.patience.longest_retry):
            # Kept by a clock that was wrong.
            state = RobotsState()
            self._set(_origin(url), state)
        return state.due(now)

    async def ask(self, url: str, fetcher: Fetcher, clock: Callable[[], float]) -> Fetched:
        """Fetch the robots.txt that rules over a page; what came of it."""
        origin = _origin(url)
        fetched = await fetcher.fetch(origin + "/robots.txt", Validators(), beginning=LARGEST + 1)
        rules = None
        if access(fetched.status, fetched.reason) is Access.RULES:
            rules = await self._read(fetched.body)
        state = self._state(url).answered(fetched.status, rules, now=clock(), reason=fetched.reason)
        self._set(origin, state)
        self._unsaved[NAME + origin] = self._written(state)
        return fetched

    async def _read(self, body: bytes) -> Robots:
        body = body[: LARGEST + 1]  # one more, to tell that there is more
        if len(body) <= SMALL:
            return Robots(body, self.agent)
        async with self._reading:
            return await asyncio.to_thread(Robots, body, self.agent)

    def allowed(self, url: str, now: float) -> bool:
        """Whether the page may be fetched at this moment."""
        return self._state(url).verdict(url, now) is Permission.ALLOWED

    def closed_until(self, url: str, now: float) -> float | None:
        """When robots.txt is asked for again, if the host could not say what it permits; None if it could."""
        state = self._state(url)
        return state.next_try if state.failures and state.verdict(url, now) is not Permission.ALLOWED else None

    def crawl_delay(self, url: str, now: float) -> float | None:
        """Seconds that the host wants between requests; None if it does not say."""
        return self._state(url).crawl_delay(now)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """The Sitemap lines of a page's robots.txt, as written; the same tuple until it is read anew."""
        rules = self._state(url).rules
        return rules.sitemaps if rules is not None else ()

    def take(self) -> dict[str, str | None]:
        """What is to be kept since the last time, by name; None for what is to be forgotten."""
        for name, text in self._unsaved.items():
            self._total -= self._stored.pop(name, 0)
            if text is not None:
                self._stored[name] = len(text)  # at the end: the latest
                self._total += len(text)
        while self._total > MAX_STORED:
            oldest = next(iter(self._stored))
            self._total -= self._stored.pop(oldest)
            self._unsaved[oldest] = None
        self._saving, self._unsaved = self._unsaved, {}
        return self._saving

    def _written(self, state: RobotsState) -> str:
        """What is to be kept of a host: until when it is good for anything comes first."""
        until = max(state.next_try if state.failures else state.confirmed, 0.0) + state.patience.reuse
        kept = {"until": until, "agent": self.agent, "failures": state.failures, "next_try": state.next_try}
        if state.rules is not None:
            kept |= {"confirmed": state.confirmed, "robots": state.rules.to_json()}
        return json.dumps(kept, ensure_ascii=False)

    def _kept(self, origin: str) -> str | None:
        name = NAME + origin
        for waiting in (self._unsaved, self._saving):
            if name in waiting:
                return waiting[name]
        return self.recall(name)

    def _recalled(self, kept: str | None) -> RobotsState:
        """What was known before a restart; nothing that RFC 9309 would call too old decides anything."""
        if kept is None:
            return RobotsState()
        try:
            answer, state = json.loads(kept), RobotsState()
            if "robots" in answer and answer["agent"] == self.agent:
                state = state.answered(200, Robots.from_json(answer["robots"]), now=answer["confirmed"])
            if answer.get("failures"):
                state = replace(state, failures=int(answer["failures"]), next_try=float(answer["next_try"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return RobotsState()  # damaged: it is asked for again
        return state

    def _state(self, url: str) -> RobotsState:
        origin = _origin(url)
        state = self._states.pop(origin, None)
        if state is None:
            state = self._recalled(self._kept(origin))
            self._set(origin, state)
        else:
            self._states[origin] = state  # to the end: the longest unused are at the beginning
        return state

    def _set(self, origin: str, state: RobotsState) -> None:
        """Remember a state, and forget others if there is too much."""
        self._memory += _size(state) - (_size(self._states.pop(origin)) if origin in self._states else 0)
        self._states[origin] = state
        while self._memory > MAX_MEMORY and len(self._states) > 1:
            self._memory -= _size(self._states.pop(next(iter(self._states))))


def _size(state: RobotsState) -> int:
    return _EACH + (state.rules.size if state.rules is not None else 0)


def _origin(url: str) -> str:
    """Scheme, host and port of a canonical URL, in which a path always follows."""
    return url[: url.index("/", url.index("//") + 2)]
