"""How long each host and each page must be left alone: politeness, and patience with what fails."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from afresh.types import STORE_FULL, Fetched, HostState, Outcome, Verdict


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


_NEWEST = 0.2  # what the last rest counts for in the average


class Hosts:
    """A number for every host name, and what must be remembered of each."""

    def __init__(self, politeness: Politeness | None = None) -> None:
        self.politeness = politeness or Politeness()
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._states: dict[str, HostState] = {}
        self._delays: dict[str, float] = {}
        self._rests: dict[str, Rest] = {}  # of each, the average over its last answers: some take longer than others

    def number(self, host: str) -> int:
        """The host's number, the same for the same name."""
        number = self._numbers.get(host)
        if number is None:
            number = self._numbers[host] = len(self._names)
            self._names.append(host)
        return number

    def name(self, number: int) -> str:
        """The name of the host that has a number."""
        return self._names[number]

    def state(self, host: str) -> HostState:
        """What is remembered of a host."""
        return self._states.get(host) or HostState(host)

    def restore(self, state: HostState) -> None:
        """Take over what was known before a restart."""
        self._states[state.host] = state

    def wants(self, host: str, delay: float | None) -> None:
        """The host asks for this many seconds between requests (Crawl-delay); None: it does not say."""
        if delay is None or not delay > 0:
            self._delays.pop(host, None)
        else:
            self._delays[host] = min(delay, self.politeness.longest_gap)

    def answered(
        self,
        host: str,
        *,
        failed: bool | None,
        now: float,
        took: float,
        ended: float | None = None,
        retry_after: float | None = None,
        at_least: float = 0.0,
        reason: str = "",
    ) -> float:
        """Note whether the host failed (None: it was not asked anything), and why; how long it must rest from now on.

        `ended`: when its answer did, if that was before now. It has been resting since, while we were reading.
        `at_least`: for reasons of our own.
        """
        before = self.state(host)
        failures = before.failures if failed is None else before.failures + 1 if failed else 0
        delay = self._delays.get(host, 0.0)
        gap = max(self.politeness.gap(took, failures=failures, retry_after=retry_after), delay, at_least)
        self._rests[host] = self._rest(gap, delay, failures, self._rests.get(host))
        if ended is not None:
            gap = max(gap - max(now - ended, 0.0), at_least)
        after = replace(before, ready=now + gap, failures=failures)
        if failed is not None:
            asks, seconds = before.recent(now)
            after = replace(after, asked=now, recent_asks=asks + 1.0, recent_seconds=seconds)
        if failed or (failed is None and reason in _NEVER_ASKED):
            since = before.since if before.reason and before.since is not None else now
            after = replace(after, reason=reason, since=since)
        elif failed is False:
            after = replace(after, reason="", since=None)
        self._states[host] = after
        return gap

    def _rest(self, gap: float, delay: float, failures: int, before: Rest | None) -> Rest:
        if failures:
            return Rest(gap, "failures")
        if gap == delay:
            return Rest(gap, "Crawl-delay")
        if before is not None and before.because.startswith("politeness."):
            gap = before.seconds + _NEWEST * (gap - before.seconds)
        return Rest(gap, "politeness.shortest_gap" if gap <= self.politeness.shortest_gap else "politeness.factor")

    def rests(self) -> Iterator[tuple[str, Rest]]:
        """How long each host is left alone between two fetches: as of late, or as after a quick first answer."""
        for host in list(self._numbers):
            yield host, self.rest(host)

    def rest(self, host: str) -> Rest:
        """How long a host is left alone between two fetches."""
        return self._rests.get(host) or Rest(self.politeness.gap(0.0), "politeness.shortest_gap")


FAILURES_IN_TROUBLE = 3  # in a row, of whatever kind
# Reasons for which nothing is ever sent to a host.
_NEVER_ASKED = frozenset({"refused_address", "refused_port", "names_of_address"})
# Reasons that speak of the host and of no single page: all its pages fail alike, and wait while the host rests.
_OF_THE_HOST = frozenset({"dns", "dns_timeout", "no_connection", "connect_timeout"})


def is_unreachable(reason: str) -> bool:
    """Whether a fetch ended before the host could be asked for any page: no connection, or no robots.txt.

    >>> [is_unreachable(reason) for reason in ("dns", "tls_expired", "robots_status_503", "robots", "status_500")]
    [True, True, True, False, False]
    """
    return reason in _OF_THE_HOST or reason.startswith(("tls", "robots_"))


def in_trouble(state: HostState) -> bool:
    """Whether a host as a whole fails, rather than one page of it now and then."""
    reason = state.reason
    whole = is_unreachable(reason) or reason in _NEVER_ASKED or state.failures >= FAILURES_IN_TROUBLE
    return bool(reason) and whole


@dataclass(frozen=True, slots=True)
class Retries:
    """When a page that could not be refreshed is tried again, in seconds; twice as late at each failure in a row."""

    failed: float = 60.0
    gone: float = 3600.0
    refused: float = 86400.0
    longest: float = 30 * 86400.0
    store_full: float = 3600.0  # always the same: it ends when somebody makes room

    def put_off(self, outcome: Outcome, failures: int, reason: str = "") -> float:
        """How long a page is left alone after it was not refreshed for the `failures`-th time in a row.

        >>> again = Retries()
        >>> again.put_off(Outcome.FAILED, 3), again.put_off(Outcome.GONE, 2), again.put_off(Outcome.BUSY, 9)
        (240.0, 7200.0, 0.0)
        """
        if outcome.refreshed or outcome is Outcome.BUSY or failures < 1:
            return 0.0  # a busy host rests as a whole,
        if outcome is Outcome.FAILED and is_unreachable(reason):
            return 0.0  # and so does one that cannot be reached
        if reason == STORE_FULL:
            return self.store_full
        first = {Outcome.GONE: self.gone, Outcome.REFUSED: self.refused}.get(outcome, self.failed)
        return min(first * 2.0 ** min(failures - 1, 40), self.longest)


def host_failed(fetched: Fetched, verdict: Verdict) -> bool | None:
    """Whether a fetch that went wrong is its host's fault, not the page's; None if the host was not asked at all."""
    if verdict.outcome is Outcome.REFUSED:
        return None
    if verdict.outcome is Outcome.BUSY:
        return True
    silent = fetched.status == 0 and verdict.reason != "too_large"
    return verdict.outcome is Outcome.FAILED and (silent or fetched.status >= 500)
