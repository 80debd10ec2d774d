"""Pages that come in together, a column each: a store hands them over so, and no object is made for each of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.checks import MAX_MOMENT
from afresh.engine.arguments import check_page
from afresh.errors import ConfigError
from afresh.types import Importance, Page

NOTHING: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Pages that come in, and what is known of them; a column that is empty says nothing of any page."""

    urls: Sequence[str]
    hosts: Sequence[str]
    numbers: Sequence[int] = NOTHING  # in the store; 0: it does not keep the page, which is among `pages`
    current: Sequence[float | None] = NOTHING  # the copy is as of then; None: there is none
    signals: Sequence[int] = NOTHING
    failures: Sequence[int] = NOTHING
    learned: Sequence[bytes] = NOTHING
    importance: Sequence[float | None] = NOTHING  # requests a second, as the operator says, or
    times: Sequence[float | None] = NOTHING  # times what is learned
    popularity: Sequence[float | None] = NOTHING
    cost_same: Sequence[float | None] = NOTHING  # of a refresh, as far as it was learned
    cost_new: Sequence[float | None] = NOTHING
    # Those of which more is said (intervals, hours), by their place here.
    pages: Mapping[int, Page] = field(default_factory=dict)

    @classmethod
    def of(cls, pages: Sequence[Page]) -> "Arrivals":
        """Pages of which nothing is known but what their operator says."""
        for page in pages:
            check_page(page)
        said = [page.importance for page in pages]
        return cls(
            urls=[page.url for page in pages],
            hosts=[page.host for page in pages],
            importance=[None if each is None or each.times else each.value for each in said],
            times=[each.value if each is not None and each.times else None for each in said],
            popularity=[page.popularity for page in pages],
            pages=dict(enumerate(pages)),
        )

    def __len__(self) -> int:
        return len(self.urls)

    def some(self, places: NDArray[np.int64]) -> "Arrivals":
        """Those at some places."""
        each = places.tolist()
        columns = {name: [column[nth] for nth in each] for name, column in self._columns() if len(column)}
        pages = {at: self.pages[nth] for at, nth in enumerate(each) if nth in self.pages}
        return Arrivals(**columns, pages=pages)

    def _columns(self) -> "Iterator[tuple[str, Sequence[Any]]]":
        return ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != "pages")

    def check(self) -> None:
        """ConfigError if a column cannot be used: then none of the pages comes in."""
        for name in ("numbers", "signals", "failures"):
            self.numbers_of(name)
        self.floats_of("current")
        for name in ("importance", "times", "popularity"):
            if (self.floats_of(name, math.inf) < 0.0).any():
                raise ConfigError(f"{name} must be numbers of at least 0.", hint="One for each page, or None.")
        if len(self.hosts) != len(self) or len(self.learned) not in (0, len(self)):
            raise ConfigError("hosts and learned must be of all pages.", hint="One for each page.")

    def page(self, nth: int) -> Page:
        """One of them, with what its operator says of it."""
        if (page := self.pages.get(nth)) is not None:
            return page
        rate, factor = (each[nth] if each else None for each in (self.importance, self.times))
        importance = None if rate is None else Importance(rate)
        if factor is not None:
            importance = Importance(factor, times=True)
        popularity = self.popularity[nth] if self.popularity else None
        return Page(self.urls[nth], self.hosts[nth], importance=importance, popularity=popularity)

    def numbers_of(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers."""
        given = getattr(self, name)
        column = np.array(given, np.int64) if len(given) else np.zeros(len(self), np.int64)
        if len(column) != len(self) or column.min(initial=0) < 0:
            raise ConfigError(f"{name} must be {len(self)} whole numbers of at least 0.", hint="One for each page.")
        return column

    def floats_of(self, name: str, most: float = MAX_MOMENT) -> NDArray[np.float64]:
        """A column of numbers; NaN where there is none."""
        given = getattr(self, name)
        column = np.array(given, np.float64) if len(given) else np.full(len(self), np.nan)
        if len(column) != len(self) or (np.abs(column) > most).any():
            raise ConfigError(f"{name} must be {len(self)} finite numbers.", hint="One for each page, or None.")
        return column
