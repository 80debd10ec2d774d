"""What robots.txt permits, host by host: fetched when it is needed, kept for as long as RFC 9309 allows."""

import json
from collections.abc import Callable
from dataclasses import replace

from afresh.fetch import Fetcher
from afresh.frontier import Permission, RobotsState
from afresh.types import Fetched, Validators

NAME = "robots "  # before the origin: under this an answer is kept in the store
LARGEST = 500 * 1024  # bytes of a robots.txt that are read, and kept
SLACK = 60.0  # seconds that two clocks may differ
MOST_HOSTS = 100_000  # whose rules are kept in memory; the longest unused go first and are asked for again


class Permits:
    """Asks every host what a robot may do there, and remembers the answer.

    `agent` is the name that rules are looked up by. The last answer that said something is to be kept, and what has
    failed since then (`take`); `recall` finds what was kept before a restart.
    """

    def __init__(self, agent: str, *, recall: Callable[[str], str | None] = lambda name: None) -> None:
        self.agent = agent
        self.recall = recall
        self._unsaved: dict[str, str] = {}
        self._states: dict[str, RobotsState] = {}

    def must_ask(self, url: str, now: float) -> bool:
        """Whether robots.txt must be fetched before this page can be judged, or is due for a refresh."""
        state = self._state(url)
        latest = now + SLACK
        if state.confirmed > latest or (state.failures and state.next_try > latest + state.patience.longest_retry):
            # Kept by a clock that was wrong.
            state = self._states[_origin(url)] = RobotsState()
        return state.due(now)

    async def ask(self, url: str, fetcher: Fetcher, clock: Callable[[], float]) -> Fetched:
        """Fetch the robots.txt that rules over a page; what came of it."""
        origin = _origin(url)
        fetched = await fetcher.fetch(origin + "/robots.txt", Validators())
        state = self._state(url).answered(fetched.status, fetched.body, now=clock(), reason=fetched.reason)
        self._states[origin] = state
        self._keep(NAME + origin, state, fetched)
        return fetched

    def _keep(self, name: str, state: RobotsState, fetched: Fetched) -> None:
        if state.failures:
            before = self._unsaved.get(name) or self.recall(name)
            answer = json.loads(before) if before else {}
        else:
            text = fetched.body[:LARGEST].decode("latin-1") if 200 <= fetched.status < 300 else ""
            answer = {"confirmed": state.confirmed, "status": fetched.status, "text": text, "reason": fetched.reason}
        failed = {"failures": state.failures, "next_try": state.next_try} if state.failures else {}
        self._unsaved[name] = json.dumps(answer | failed)

    def allowed(self, url: str, now: float) -> bool:
        """Whether the page may be fetched at this moment."""
        return self._state(url).verdict(self.agent, url, now) is Permission.ALLOWED

    def closed_until(self, url: str, now: float) -> float | None:
        """When robots.txt is asked for again, if the host could not say what it permits; None if it could."""
        state = self._state(url)
        return (
            state.next_try if state.failures and state.verdict(self.agent, url, now) is not Permission.ALLOWED else None
        )

    def crawl_delay(self, url: str, now: float) -> float | None:
        """Seconds that the host wants between requests; None if it does not say."""
        return self._state(url).crawl_delay(self.agent, now)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """The Sitemap lines of a page's robots.txt, as written; the same tuple until it is read anew."""
        rules = self._state(url).rules
        return rules.sitemaps if rules is not None else ()

    def take(self) -> dict[str, str]:
        """What is to be kept since the last time, by name."""
        unsaved, self._unsaved = self._unsaved, {}
        return unsaved

    def _recalled(self, origin: str) -> RobotsState:
        """What was known before a restart; nothing that RFC 9309 would call too old decides anything."""
        kept = self.recall(NAME + origin)
        if kept is None:
            return RobotsState()
        answer, state = json.loads(kept), RobotsState()
        if "confirmed" in answer:
            body = answer["text"].encode("latin-1")
            state = state.answered(answer["status"], body, now=answer["confirmed"], reason=answer["reason"])
        if "failures" in answer:
            state = replace(state, failures=answer["failures"], next_try=answer["next_try"])
        return state

    def _state(self, url: str) -> RobotsState:
        origin = _origin(url)
        state = self._states.pop(origin, None) or self._recalled(origin)
        self._states[origin] = state  # to the end: the longest unused are at the beginning
        if len(self._states) > MOST_HOSTS:
            del self._states[next(iter(self._states))]
        return state


def _origin(url: str) -> str:
    """Scheme, host and port of a canonical URL, in which a path always follows."""
    return url[: url.index("/", url.index("//") + 2)]
