"""How long each host must be left alone: politeness, and patience with hosts that fail."""

from dataclasses import dataclass

from afresh.types import HostState, Outcome


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


class Hosts:
    """A number for every host name, and what must be remembered of each."""

    def __init__(self, politeness: Politeness | None = None) -> None:
        self.politeness = politeness or Politeness()
        self._numbers: dict[str, int] = {}
        self._states: dict[str, HostState] = {}
        self._delays: dict[str, float] = {}

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
        self, host: str, outcome: Outcome, *, now: float, took: float, retry_after: float | None = None
    ) -> float:
        """Note how the host answered; how long it must rest now."""
        failed = outcome in (Outcome.FAILED, Outcome.BUSY)
        failures = self.state(host).failures + 1 if failed else 0
        gap = max(self.politeness.gap(took, failures=failures, retry_after=retry_after), self._delays.get(host, 0.0))
        self._states[host] = HostState(host, now + gap, failures)
        return gap
