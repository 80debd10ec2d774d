"""Turns that are lent: another process of ours fetches something in its lane's turn, for a token of our budget.

A serving cache that fetches ahead of its readers asks here. What it wants competes with our own orders at one price,
and every rule that holds for an order holds for it: pauses, what is never asked, permission, one at a time, rests.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from math import exp
from typing import Any

from afresh.daemon.answers import Question
from afresh.daemon.control import Control
from afresh.engine import AnyEngine, Engines
from afresh.errors import InputError
from afresh.sources import Sources

MAX_WANTED = 32  # things that are asked for at once
LONGEST_WAIT = 1.0  # seconds for lanes to be free
# What a serving cache tells: how many, and bytes; "answers" are those that readers got, "at_once" without waiting.
TOLD = ("fetched", "fetched_bytes", "used", "used_bytes", "wasted_bytes", "bytes_per_second", "answers", "at_once")
MAX_TELLERS = 16
HEARD_WITHIN = 30.0  # seconds
LATELY = 60.0  # seconds after which a turn counts 1/e
CHANCE = 0.1  # seconds that a lane is left to our own orders, once it is ready again after it was lent
MAX_SECONDS = 40.0  # after which a lane is ours again, whatever became of it


class Turns:
    """Lends lanes out.

    Invariants: a lane is lent to one at a time, and to nobody while an order of ours is in it; each turn costs a token;
    after it the lane rests as after an order, and the next turn is our own orders', if there is one that is due.
    """

    def __init__(
        self,
        *,
        engine: AnyEngine,
        sources: Sources,
        control: Control,
        never: Container[str],
        clock: Callable[[], float],
    ) -> None:
        # What is lent is of the web, whose purse needs no name.
        self._engine = engine.first if isinstance(engine, Engines) else engine
        self._sources, self._control = sources, control
        self._never, self._clock = never, clock
        self._out: dict[str, tuple[str, asyncio.TimerHandle]] = {}  # key and what takes it back, by lane
        self._back: dict[str, float] = {}  # when a lane came back that we have not asked since
        self._lately: dict[str, tuple[float, float]] = {}  # turns of a lane that were lent of late, and when
        self._told: dict[str, tuple[float, dict[str, float]]] = {}  # by serving caches
        self.lent = 0  # turns, so far

    def questions(self) -> dict[str, Question]:
        """What others ask: for a turn, and that it is over."""
        return {"turn": self.turn, "turn over": self.over, "fetched ahead": self.told}

    async def turn(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The first of the things wanted (`[[key, worth], …]`) that may be fetched, `after` so many seconds.

        Worth is in the unit of prices. `key` None: none may be fetched now.
        """
        scheduler, lanes = self._engine.scheduler, self._engine.lanes
        price = 0.0 if getattr(scheduler, "spare", False) else scheduler.price  # spare: hosts take less than the budget
        end, not_now = self._clock() + LONGEST_WAIT, set[str]()  # lanes that we have waited for in vain
        for key, worth in _wanted(arguments):
            name = self._lane(key)
            if name is None or name in not_now or worth <= max(price, lanes.price(name)):
                continue
            if not await self._is_free(name, end):
                not_now.add(name)
                continue
            lanes.lane(name).visited = True  # nobody else takes it while we ask
            after = await self._after(name, key)
            if after is not None:
                self._lend(name, key, after)
                return {"key": key, "after": after, "price": price}
            lanes.lane(name).visited = False
        return {"key": None, "after": 0.0, "price": price}

    def over(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A thing was fetched, or was not (`failed`; None: nothing was asked); it took so many seconds."""
        key, took, failed = str(arguments.get("key", "")), arguments.get("took"), arguments.get("failed")
        if not isinstance(took, int | float) or not 0 <= took < 1e6 or failed not in (True, False, None):
            raise InputError("A turn that is over took some seconds, and failed or not.", hint="took, failed")
        source = self._source(key)
        lane = "" if source is None else source.lane(key)
        if self._out.get(lane, ("",))[0] == key:
            self._take_back(lane, float(took), failed)
        return {}

    def lately(self, lane: str) -> float:
        """About how many turns of a lane were lent in the last minute."""
        turns, at = self._lately.get(lane, (0.0, 0.0))
        return turns * exp(-max(self._clock() - at, 0.0) / LATELY)

    def _source(self, key: str) -> Any:
        return self._sources.of(key)

    def _lane(self, key: str) -> str | None:
        """The lane of a thing, if that may be asked for as far as we know."""
        source, pauses = self._source(key), self._control.pauses
        if not hasattr(source, "lend") or source.key(key) != key:
            return None
        name = source.lane(key)
        if pauses.everything or name in pauses.hosts or name in self._never or key in self._control.paused_pages:
            return None
        return str(name)

    async def _is_free(self, name: str, end: float) -> bool:
        """Whether nobody is in a lane at a moment soon to come, and it is ready by then."""
        lane = self._engine.lanes.lane(name)
        if self._is_ours(name):
            return False
        while not lane.is_free:  # soon over: not worth a queue
            if name in self._out or self._clock() >= end:
                return False
            await asyncio.sleep(0.005)
        return lane.ready <= end

    def told(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A serving cache (`who`) says what it has fetched ahead since it began, and what became of that."""
        who, said = str(arguments.get("who", ""))[:40], arguments.get("counts")
        if not isinstance(said, dict) or not all(isinstance(said.get(each), int | float) for each in TOLD):
            raise InputError("What was fetched ahead is told in counts.", hint=", ".join(TOLD))
        self._told.pop(who, None)
        self._told[who] = self._clock(), {each: min(max(float(said[each]), 0.0), 1e18) for each in TOLD}
        while len(self._told) > MAX_TELLERS:
            del self._told[next(iter(self._told))]
        return {}

    def ahead(self) -> dict[str, float] | None:
        """What the serving caches that were heard of lately have told, together; None if none was."""
        lately = [said for at, said in self._told.values() if self._clock() - at < HEARD_WITHIN]
        return {each: sum(said[each] for said in lately) for each in TOLD} if lately else None

    def _is_ours(self, name: str) -> bool:
        """Whether the next turn of a lane is our own orders': who asks all the time must not keep them out."""
        back, lane = self._back.get(name), self._engine.lanes.lane(name)
        if back is None:
            return False
        if lane.order is None and lane.asked <= back and self._clock() < max(back, lane.ready) + CHANCE:
            return True
        del self._back[name]
        return False

    async def _after(self, name: str, key: str) -> float | None:
        """In how many seconds a thing may be fetched; None: its source does not permit it, or there is no token."""
        source = self._source(key)
        if not await source.lend(key):
            return None
        spend: Callable[[float], float | None] | None = getattr(self._engine.scheduler, "spend", None)
        due = None if spend is None else spend(self._clock())
        if due is None:
            source.lent(key, 0.0)
            return None
        return max(due, self._engine.lanes.lane(name).ready - self._clock(), 0.0)

    def _lend(self, name: str, key: str, after: float) -> None:
        lanes = self._engine.lanes
        lanes.rest_until(name, self._clock() + after + lanes.rest(name).seconds)
        back = asyncio.get_running_loop().call_later(MAX_SECONDS, self._take_back, name, MAX_SECONDS, None)
        self._out[name] = key, back
        self.lent += 1
        self._lately[name] = self.lately(name) + 1.0, self._clock()

    def _take_back(self, name: str, took: float, failed: bool | None) -> None:
        key, back = self._out.pop(name)
        back.cancel()
        lanes = self._engine.lanes
        lanes.lane(name).visited = False
        lanes.answered(name, failed=failed, now=self._clock(), took=took, reason="fetched_ahead" if failed else "")
        self._source(key).lent(key, took)
        self._back[name] = self._clock()


def _wanted(arguments: Mapping[str, Any]) -> list[tuple[str, float]]:
    wanted = arguments.get("wanted")
    if not isinstance(wanted, list) or len(wanted) > MAX_WANTED:
        raise InputError(f"What is wanted is a list of at most {MAX_WANTED} things.", hint='{"wanted": [[key, 0.5]]}')
    try:
        return [(str(key), float(worth)) for key, worth in wanted]
    except (TypeError, ValueError):
        raise InputError("What is wanted is a key and its worth.", hint='{"wanted": [[key, 0.5]]}') from None
