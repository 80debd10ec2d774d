"""What robots.txt permits, host by host: fetched when it is needed, kept for as long as RFC 9309 allows."""

from collections.abc import Callable

from afresh.fetch import Fetcher
from afresh.frontier import Permission, RobotsState
from afresh.types import Fetched, Validators

MOST_HOSTS = 100_000  # whose rules are kept in memory; the longest unused go first and are asked for again


class Permits:
    """Asks every host what a robot may do there, and remembers the answer.

    `agent` is the name that rules are looked up by. Sitemaps that a robots.txt names are collected in `sitemaps`.
    """

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.sitemaps: dict[str, tuple[str, ...]] = {}
        self._states: dict[str, RobotsState] = {}

    def must_ask(self, url: str, now: float) -> bool:
        """Whether robots.txt must be fetched before this page can be judged, or is due for a refresh."""
        return self._state(url).due(now)

    async def ask(self, url: str, fetcher: Fetcher, clock: Callable[[], float]) -> Fetched:
        """Fetch the robots.txt that rules over a page; what came of it."""
        origin = _origin(url)
        fetched = await fetcher.fetch(origin + "/robots.txt", Validators())
        state = self._state(url).answered(fetched.status, fetched.body, now=clock(), reason=fetched.reason)
        self._states[origin] = state
        if state.rules is not None and state.rules.sitemaps:
            self.sitemaps[origin] = tuple(state.rules.sitemaps)
        return fetched

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

    def _state(self, url: str) -> RobotsState:
        origin = _origin(url)
        state = self._states.pop(origin, None) or RobotsState()
        self._states[origin] = state  # to the end: the longest unused are at the beginning
        if len(self._states) > MOST_HOSTS:
            oldest = next(iter(self._states))
            del self._states[oldest]
            self.sitemaps.pop(oldest, None)
        return state


def _origin(url: str) -> str:
    """Scheme, host and port of a canonical URL, in which a path always follows."""
    return url[: url.index("/", url.index("//") + 2)]
