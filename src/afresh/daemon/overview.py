"""What a runner says of all its pages together, every few seconds: how fresh the copies are, what politeness allows."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from afresh.daemon.asking import Asker
from afresh.engine import Engine, Stated, Survey
from afresh.frontier import Allowance, allowance

SURVEY_EVERY = 2.0  # seconds
NEW_SECONDS = 1.0
IDLE_TIMES = 10.0  # after a survey it rests this many times as long as that took: no more than a tenth of a core


class Overview:
    """Keeps statements up to date beside the crawl, in a thread; each says as of when it is.

    Invariant: what it states is of one moment, for all pages, and never older than a survey and the rest after it take.
    """

    def __init__(
        self, *, engine: Engine, asker: Asker, clock: Callable[[], float], waiting: Callable[[], int] = lambda: 0
    ) -> None:
        """`waiting` says how many pages without a copy the engine does not know yet."""
        self.engine = engine
        self.waiting = waiting
        self.asker = asker
        self.clock = clock
        self.stated: Stated | None = None
        self.allowance: Allowance | None = None

    async def keep(self) -> None:
        """Survey again and again, until cancelled."""
        while True:
            began = time.monotonic()
            await self.renew()
            await asyncio.sleep(max(SURVEY_EVERY, IDLE_TIMES * (time.monotonic() - began)))

    async def renew_unless_new(self) -> None:
        """State everything anew for somebody who asks now, unless that was done a moment ago."""
        if self.stated is None or self.clock() - self.stated.time > NEW_SECONDS:
            await self.renew()

    async def renew(self) -> None:
        """State everything anew."""
        survey = await self._gathered()
        stated, waiting = await asyncio.to_thread(survey.carry_out), self.waiting()
        if stated is not None and waiting:
            known = stated.pages / (stated.pages + waiting)  # the others are taken to be wanted as much
            stated = replace(stated, share=stated.share * known, pages=stated.pages + waiting)
        self.stated = stated
        rests, addresses = list(self.engine.hosts.rests()), self.asker.addresses
        if addresses is None:
            self.allowance = await asyncio.to_thread(allowance, rests)
        else:
            self.allowance = await asyncio.to_thread(allowance, rests, self.asker.address_of, addresses.turns)

    async def _gathered(self) -> Survey:
        gathering = self.engine.gather_survey(self.clock())
        while True:
            try:
                next(gathering)
            except StopIteration as done:
                return cast(Survey, done.value)
            await asyncio.sleep(0)

    def values(self) -> dict[str, str]:
        """What is worth keeping, for commands that look at the store when nothing runs on it."""
        return {} if self.allowance is None else {"allowance": self.allowance.to_text()}
