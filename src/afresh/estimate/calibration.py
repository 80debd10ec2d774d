"""Are stated probabilities true? Every crawl checks one: how likely the copy was said to be fresh, and whether it was.

Statements are gathered in ten bins; in each, the mean of what was stated should be the share that came true. The Brier
score is the mean square of stated minus true: 0 is perfect, and always saying the overall share s gives s(1 − s).
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from afresh.checks import number
from afresh.errors import ConfigError

BINS = 10
MEMORY = 100_000.0  # statements; older ones fade, so that what was said before anything was known is forgotten


@dataclass(frozen=True, slots=True)
class Reliability:
    """The statements of one bin."""

    statements: float
    stated: float  # mean probability
    fresh: float  # share that was fresh


class Calibration:
    """Counts of stated probabilities and what came true.

    >>> said = Calibration()
    >>> for fresh in (True, True, True, False):
    ...     said.add(0.8, fresh)
    >>> [(round(row.statements), round(row.stated, 3), round(row.fresh, 3)) for row in said.rows()]
    [(4, 0.8, 0.75)]
    """

    def __init__(self, *, memory: float = MEMORY) -> None:
        self.memory = number("memory", memory, least=1.0, infinite=True)  # statements
        self._bins = [[0.0, 0.0, 0.0] for _ in range(BINS)]  # statements, sum of stated, fresh
        self._square = 0.0
        self._weight = 1.0  # of the newest statement; grows instead of all older ones shrinking
        self._added = 0.0  # statements, of which none fades

    def add(self, probability: float, fresh: bool) -> None:
        """A statement, and whether it came true."""
        if type(probability) is not float or not 0.0 <= probability <= 1.0:
            probability = number("probability", probability, most=1.0)
        weight = self._weight = self._weight * (1.0 + 1.0 / self.memory)
        cell = self._bins[min(int(probability * BINS), BINS - 1)]
        cell[0] += weight
        cell[1] += probability * weight
        cell[2] += weight if fresh else 0.0
        self._square += (probability - fresh) ** 2 * weight
        self._added += 1.0
        if self._weight > 1e100:
            self._scale_to_one()

    @property
    def statements(self) -> float:
        """How many statements count, the newest as one."""
        return sum(cell[0] for cell in self._bins) / self._weight

    @property
    def brier(self) -> float:
        """Mean square of stated minus true; NaN before the first statement."""
        total = sum(cell[0] for cell in self._bins)
        return self._square / total if total else math.nan

    @property
    def bias(self) -> float:
        """Mean of stated minus share that was fresh: above 0 if copies are believed fresher than they are."""
        total = sum(cell[0] for cell in self._bins)
        return sum(cell[1] - cell[2] for cell in self._bins) / total if total else math.nan

    def rows(self) -> list[Reliability]:
        """The bins that have statements, from the least to the most confident."""
        return [
            Reliability(count / self._weight, stated / count, fresh / count)
            for count, stated, fresh in self._bins
            if count > 0
        ]

    def summary(self) -> dict[str, Any]:
        """Number of statements, Brier score, bias and the rows, as plain values."""
        rows = [asdict(row) for row in self.rows()]
        return {"statements": self.statements, "brier": self.brier, "bias": self.bias, "rows": rows}

    def to_text(self) -> str:
        """All of it, for `from_text`, with the summary for readers that have no need of the rest."""
        self._scale_to_one()
        counts = {"memory": self.memory, "bins": self._bins, "square": self._square, "added": self._added}
        return json.dumps({"summary": self.summary(), "counts": counts})

    @classmethod
    def from_text(cls, text: str | None) -> "Calibration":
        """What `to_text` wrote; an empty one if there is nothing, or nothing that can be read."""
        try:
            found = json.loads(text or "")["counts"]
            made = cls(memory=float(found["memory"]))
            made._bins = [_cell(cell) for cell in found["bins"]]
            made._square = _amount(found["square"])
            made._added = _amount(found.get("added", 0.0))
        except (ValueError, TypeError, KeyError, ConfigError):
            return cls()
        return made if len(made._bins) == BINS else cls()

    @classmethod
    def together(cls, before: "Calibration", since: Iterable["Calibration"]) -> "Calibration":
        """What was checked before, and since then by several who each began with nothing.

        >>> before, one, other = Calibration(), Calibration(), Calibration()
        >>> for said in (before, one, one, other):
        ...     said.add(0.5, True)
        >>> round(Calibration.together(before, [one, other]).statements, 3)
        4.0
        """
        several = list(since)
        made = cls(memory=before.memory)
        # What was before fades by all that came since, as it would have with one who checks.
        left = (1.0 + 1.0 / made.memory) ** -sum(each._added for each in several)
        for each, share in [(before, left), *((each, 1.0) for each in several)]:
            scale = share / each._weight
            for mine, own in zip(made._bins, each._bins, strict=True):
                mine[:] = [amount + other * scale for amount, other in zip(mine, own, strict=True)]
            made._square += each._square * scale
            made._added += each._added
        return made

    def _scale_to_one(self) -> None:
        """Let the newest statement weigh 1."""
        self._bins = [[amount / self._weight for amount in cell] for cell in self._bins]
        self._square /= self._weight
        self._weight = 1.0


def _cell(cell: Any) -> list[float]:
    count, stated, fresh = (_amount(amount) for amount in cell)
    return [count, stated, fresh]


def _amount(amount: Any) -> float:
    number = float(amount)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{amount} is not a count")
    return number
