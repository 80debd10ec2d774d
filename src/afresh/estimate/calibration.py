"""Whether what is stated comes true: every crawl checks one statement of how likely a copy was to be fresh."""

import json
import math
from dataclasses import dataclass, field

BINS = 10
_MEMORY = 20_000.0  # crawls; old statements were made by a younger estimator


@dataclass(frozen=True, slots=True)
class Reliability:
    """What came of the statements of about one probability."""

    stated: float  # their mean
    found: float  # the share of copies that were fresh
    crawls: float


@dataclass(slots=True)
class Calibration:
    """A reliability table and a Brier score, of the last many crawls."""

    crawls: list[float] = field(default_factory=lambda: [0.0] * BINS)
    stated: list[float] = field(default_factory=lambda: [0.0] * BINS)
    found: list[float] = field(default_factory=lambda: [0.0] * BINS)
    squares: float = 0.0

    def check(self, stated: float, fresh: bool) -> None:
        """A crawl has shown whether the copy was fresh."""
        fading = 1.0 - 1.0 / _MEMORY
        for column in (self.crawls, self.stated, self.found):
            column[:] = [each * fading for each in column]
        cell = min(int(stated * BINS), BINS - 1)
        self.crawls[cell] += 1.0
        self.stated[cell] += stated
        self.found[cell] += fresh
        self.squares = self.squares * fading + (stated - fresh) ** 2

    @property
    def brier(self) -> float | None:
        """Mean squared error of the statements: 0 is perfect, ¼ what "even chance" every time would get.

        >>> checked = Calibration()
        >>> checked.check(0.8, True)
        >>> round(checked.brier, 2)
        0.04
        """
        total = sum(self.crawls)
        return self.squares / total if total > 0 else None

    def table(self) -> list[Reliability]:
        """One line a tenth of probability in which anything was stated."""
        return [
            Reliability(stated / crawls, found / crawls, crawls)
            for crawls, stated, found in zip(self.crawls, self.stated, self.found, strict=True)
            if crawls >= 0.5
        ]

    def text(self) -> str:
        """All of it, for `read`."""
        return json.dumps([self.crawls, self.stated, self.found, self.squares])

    @classmethod
    def read(cls, text: str | None) -> "Calibration":
        """What `text` wrote; nothing checked yet if that cannot be read."""
        try:
            crawls, stated, found, squares = json.loads(text or "")
            columns = [[float(each) for each in column] for column in (crawls, stated, found)]
            numbers = [*columns[0], *columns[1], *columns[2], float(squares)]
        except (ValueError, TypeError):
            return cls()
        if any(len(column) != BINS for column in columns) or not all(math.isfinite(x) and x >= 0 for x in numbers):
            return cls()
        return cls(columns[0], columns[1], columns[2], float(squares))
