"""What a runner says of all its pages together, every few seconds: how fresh the copies are, what politeness allows."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from afresh.engine import AnyEngine, Stated
from afresh.engine.statements import together
from afresh.frontier import Allowance
from afresh.sources import Sources

Found = TypeVar("Found")

SURVEY_EVERY = 2.0  # seconds
NEW_SECONDS = 1.0
IDLE_TIMES = 50.0  # after a survey it rests this many times as long as that took: 2 % of a core at most


class Overview:
    """Keeps statements up to date beside the crawl, in a thread; each says as of when it is.

    Invariant: what it states is of one moment, for all pages, and never older than a survey and the rest after it take.
    """

    def __init__(self, *, engine: AnyEngine, sources: Sources, clock: Callable[[], float]) -> None:
        self.engine = engine
        self.sources = sources
        self.clock = clock
        self.stated: Stated | None = None
        self.weight = 0.0  # of all pages, by which what is stated of several collections goes together
        self._by_purse: dict[str, Stated] = {}
        self.allowance: Allowance | None = None
        self._took = 0.0  # seconds of a processor, for the last statements

    async def keep(self) -> None:
        """Survey again and again, until cancelled."""
        while True:
            await self.renew()
            await asyncio.sleep(max(SURVEY_EVERY, IDLE_TIMES * self._took))

    async def renew_unless_new(self) -> None:
        """State everything anew for somebody who asks now, unless that was done a moment ago."""
        if self.stated is None or self.clock() - self.stated.time > max(NEW_SECONDS, IDLE_TIMES * self._took):
            await self.renew()

    async def renew(self) -> None:
        """State everything anew."""
        surveys = {part.purse: part.survey(self.clock()) for part in self.engine.parts}
        stated, surveyed = await asyncio.to_thread(
            _timed, lambda: {name: survey.carry_out() for name, survey in surveys.items()}
        )
        self._by_purse = {name: each for name, each in stated.items() if each is not None}
        self.weight = sum(survey.weight for survey in surveys.values())
        self.stated = together([(self._by_purse[name], surveys[name].weight) for name in self._by_purse])
        self.allowance, reckoned = await asyncio.to_thread(_timed, self._allowed)
        self._took = surveyed + reckoned

    def _allowed(self) -> Allowance:
        lanes = self.engine.lanes
        return self.sources.allowed(lanes.rests(), lanes.others())

    def purses(self) -> list[dict[str, object]]:
        """Each purse with its budget, its price, and how fresh its copies are."""
        return [
            {
                "purse": part.purse,
                "unit": "calls" if part.costs is None else part.costs.unit,
                "budget": part.budget,
                "price": part.price,
                "spent": part.spending.rate(self.clock()),
                "pages": len(part),
                "freshness": None if (stated := self._by_purse.get(part.purse)) is None else stated.share,
            }
            for part in self.engine.parts
        ]

    def values(self) -> dict[str, str]:
        """What is worth keeping, for commands that look at the store when nothing runs on it."""
        return {} if self.allowance is None else {"allowance": self.allowance.to_text()}


def _timed(find: Callable[[], Found]) -> tuple[Found, float]:
    """What is found, and how long this thread worked on it."""
    began = time.thread_time()
    return find(), time.thread_time() - began
