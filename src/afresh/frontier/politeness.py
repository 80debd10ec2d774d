"""How long a host is left alone after an answer, and a page after a failure, in seconds."""

from dataclasses import dataclass

from afresh.frontier.faults import is_unreachable
from afresh.types import STORE_FULL, Outcome


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
        rest = self.factor * took
        rest = self.shortest_gap if rest < self.shortest_gap else rest
        rest = self.longest_gap if rest > self.longest_gap else rest
        if failures:
            rest = max(rest, min(self.first_back_off * 2.0 ** min(failures - 1, 60), self.longest_back_off))
        if retry_after is not None:
            rest = max(rest, min(max(retry_after, 0.0), self.longest_back_off))
        return rest


# What a file is, or forbids, at the moment: somebody may mend that at any time.
_ON_DISK = frozenset({"symlink", "special_file", "no_permission", "file_too_large", "changes_meanwhile"})


@dataclass(frozen=True, slots=True)
class Retries:
    """When a page that could not be refreshed is tried again, in seconds; twice as late at each failure in a row."""

    failed: float = 60.0
    gone: float = 3600.0
    refused: float = 86400.0
    longest: float = 30 * 86400.0
    store_full: float = 3600.0  # always the same: it ends when somebody makes room
    on_disk: float = 30.0  # always the same: a look at a file is one stat, and nobody is disturbed by it

    def put_off(self, outcome: Outcome, failures: int, reason: str = "") -> float:
        """How long a page is left alone after it was not refreshed for the `failures`-th time in a row.

        >>> again = Retries()
        >>> again.put_off(Outcome.FAILED, 3), again.put_off(Outcome.GONE, 2), again.put_off(Outcome.BUSY, 9)
        (240.0, 7200.0, 0.0)
        >>> again.put_off(Outcome.REFUSED, 5, "special_file")
        30.0
        """
        if outcome.refreshed or outcome is Outcome.BUSY or failures < 1:
            return 0.0  # a busy host rests as a whole,
        if outcome is Outcome.FAILED and is_unreachable(reason):
            return 0.0  # and so does one that cannot be reached
        if reason == STORE_FULL:
            return self.store_full
        if reason in _ON_DISK:
            return self.on_disk
        first = {Outcome.GONE: self.gone, Outcome.REFUSED: self.refused}.get(outcome, self.failed)
        return min(first * 2.0 ** min(failures - 1, 40), self.longest)
