"""What people search for: how often each query comes, faded, and no more of them than there is room for."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, expm1

MEMORY = 30 * 86400.0  # seconds after which a search counts for 1/e
FREQUENT = 500  # queries that are judged, if nothing else is said
KEPT_TIMES = 4  # as many are counted, so that one that becomes frequent is not begun anew
MAX_COUNT = 1e12


@dataclass(slots=True)
class _Counted:
    count: float  # as of `at`
    at: float


class Asked:
    """Counts queries.

    Invariants: at most `KEPT_TIMES * most` are kept; of those that are not, none was counted higher than the least
    that is, when it left.

    >>> asked = Asked(most=2)
    >>> for text in ("ferry", "ferry", "boat", "tram"):
    ...     asked.count(text, 1.0, now=0.0)
    >>> asked.frequent(now=0.0)
    {'ferry': 0.5, 'boat': 0.25}
    """

    def __init__(self, *, most: int = FREQUENT, memory: float = MEMORY) -> None:
        self.most = most
        self.memory = memory
        self._queries: dict[str, _Counted] = {}
        self._since: float | None = None

    def __len__(self) -> int:
        return len(self._queries)

    def count(self, text: str, times: float, now: float) -> None:
        """A query was asked so often."""
        self._since = now if self._since is None else min(self._since, now)
        known = self._queries.get(text)
        if known is None:
            if len(self._queries) >= KEPT_TIMES * self.most:
                del self._queries[min(self._queries, key=lambda each: self._faded(each, now))]
            known = self._queries[text] = _Counted(0.0, now)
        known.count = min(self._faded(text, now) + times, MAX_COUNT)
        known.at = max(known.at, now)

    def _faded(self, text: str, now: float) -> float:
        known = self._queries[text]
        return known.count * exp(-max(now - known.at, 0.0) / self.memory)

    def frequent(self, now: float) -> dict[str, float]:
        """The most frequent queries, each with its share of all searches."""
        counts = {text: self._faded(text, now) for text in self._queries}
        total = sum(counts.values())
        best = sorted(counts, key=lambda text: -counts[text])[: self.most]
        return {text: counts[text] / total for text in best if total > 0}

    def rate(self, now: float) -> float:
        """Searches a second, all together."""
        if self._since is None or not now > self._since:
            return 0.0
        seconds = -self.memory * expm1(-(now - self._since) / self.memory)
        return sum(self._faded(text, now) for text in self._queries) / max(seconds, 1.0)

    def rows(self) -> Iterator[tuple[str, float, float]]:
        """All that is kept: text, count and when that was."""
        return ((text, each.count, each.at) for text, each in self._queries.items())

    def recall(self, rows: list[tuple[str, float, float]], since: float | None) -> None:
        """What was kept before a restart."""
        self._since = since
        for text, count, at in rows[: KEPT_TIMES * self.most]:
            self._queries[str(text)] = _Counted(min(max(float(count), 0.0), MAX_COUNT), float(at))

    @property
    def since(self) -> float | None:
        """When counting began."""
        return self._since
