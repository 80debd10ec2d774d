"""How long each host must be left alone: politeness, and patience with hosts that fail."""

from collections.abc import Iterator
from dataclasses import dataclass

from afresh.types import Fetched, HostState, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Politeness:
    """How long a host rests after an answer: `factor` times what the answer took, within bounds.

    A host that fails in a row rests twice as long each time, up to `longest_back_off`.
    """

    factor: float = 10.0
    shortest_gap: float = 1.0
    longest_gap: float = 300.0
    first_back_off: float = 10.0
    longest_back_off: float = 3600.0

    def gap(self, took: float, *, failures: int = 0, retry_after: float | None = None) -> float:
        """Seconds of rest after an answer that took this long, the `failures`-th failure in a row.

        >>> Politeness().gap(0.5), Politeness().gap(0.5, failures=3), Politeness().gap(0.5, retry_after=1e9)
        (5.0, 40.0, 3600.0)
        """
        rest = min(max(self.factor * took, self.shortest_gap), self.longest_gap)
        if failures:
            rest = max(rest, min(self.first_back_off * 2.0 ** min(failures - 1, 60), self.longest_back_off))
        if retry_after is not None:
            rest = max(rest, min(max(retry_after, 0.0), self.longest_back_off))
        return rest


@dataclass(frozen=True, slots=True)
class Rest:
    """How long a host is left alone after an answer, and what asks for that."""

    seconds: float
    because: str  # a setting, "Crawl-delay" or "failures"


class Hosts:
    """A number for every host name, and what must be remembered of each."""

    def __init__(self, politeness: Politeness | None = None) -> None:
        self.politeness = politeness or Politeness()
        self._numbers: dict[str, int] = {}
        self._states: dict[str, HostState] = {}
        self._delays: dict[str, float] = {}
        self._rests: dict[str, Rest] = {}  # after the last answer of each

    def number(self, host: str) -> int:
        """The host's number, the same for the same name."""
        return self._numbers.setdefault(host, len(self._numbers))

    def state(self, host: str) -> HostState:
        """What is remembered of a host."""
        return self._states.get(host) or HostState(host)

    def restore(self, state: HostState) -> None:
        """Take over what was known before a restart."""
        self._states[state.host] = state

    def wants(self, host: str, delay: float | None) -> None:
        """The host asks for so many seconds between requests (Crawl-delay); None: it does not say."""
        if delay is None or not delay > 0:
            self._delays.pop(host, None)
        else:
            self._delays[host] = min(delay, self.politeness.longest_gap)

    def answered(
        self, host: str, *, failed: bool | None, now: float, took: float, retry_after: float | None = None
    ) -> float:
        """Note whether the host failed (None: it was not asked anything); how long it must rest now."""
        before = self.state(host).failures
        failures = before if failed is None else before + 1 if failed else 0
        delay = self._delays.get(host, 0.0)
        gap = max(self.politeness.gap(took, failures=failures, retry_after=retry_after), delay)
        self._rests[host] = self._rest(gap, delay, failures)
        self._states[host] = HostState(host, now + gap, failures)
        return gap

    def _rest(self, gap: float, delay: float, failures: int) -> Rest:
        if failures:
            return Rest(gap, "failures")
        if gap == delay:
            return Rest(gap, "Crawl-delay")
        return Rest(gap, "politeness.shortest_gap" if gap <= self.politeness.shortest_gap else "politeness.factor")

    def rests(self) -> Iterator[tuple[str, Rest]]:
        """How long each host is left alone between two fetches: as last time, or as after a quick first answer."""
        first = Rest(self.politeness.gap(0.0), "politeness.shortest_gap")
        for host in list(self._numbers):
            yield host, self._rests.get(host, first)


DAY = 86400.0
FIRST_RETRY = 60.0  # a page that failed is put off by this, and by twice as much every time it fails again
LONGEST_RETRY = 30 * DAY


def put_off(outcome: Outcome, failures: int) -> float:
    """How long a page that could not be refreshed, for the `failures`-th time in a row, is left alone.

    >>> put_off(Outcome.FAILED, 3), put_off(Outcome.GONE, 1), put_off(Outcome.BUSY, 9)
    (240.0, 86400.0, 0.0)
    """
    if outcome.refreshed or outcome is Outcome.BUSY or failures < 1:
        return 0.0  # a busy host rests as a whole
    first = DAY if outcome in (Outcome.GONE, Outcome.REFUSED) else FIRST_RETRY
    return min(first * 2.0 ** min(failures - 1, 40), LONGEST_RETRY)


def host_failed(fetched: Fetched, verdict: Verdict) -> bool | None:
    """Whether a fetch that went wrong is its host's fault, not the page's; None if the host was not asked at all."""
    if verdict.outcome is Outcome.REFUSED:
        return None
    if verdict.outcome is Outcome.BUSY:
        return True
    silent = fetched.status == 0 and verdict.reason != "too_large"
    return verdict.outcome is Outcome.FAILED and (silent or fetched.status >= 500)
