"""The scheduler: the very best page among some thousands; among more, at a cost that does not grow with them."""

import math
from dataclasses import replace
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.checks import MAX_MOMENT, moment, number
from afresh.schedule.arguments import (
    BELIEFS,
    MAX_HOSTS,
    MAX_SIGNALS,
    host_budget,
    host_number,
    later_moment,
    seconds_to_rest,
)
from afresh.schedule.base import Explanation, Pick
from afresh.schedule.pace import MAX_BUDGET, MAX_DEBT_SECONDS, Pace
from afresh.schedule.priced import MANY_PICKS, picks_between_sweeps, require_seconds
from afresh.schedule.wheel import events, turn
from afresh.schedule.wheel.columns import by_slot, column, counts, slot_numbers
from afresh.schedule.wheel.explain import explain, facts_of, reaches
from afresh.schedule.wheel.hosts import touch_host
from afresh.schedule.wheel.machine import Machine, Slots
from afresh.schedule.wheel.policies import THRESHOLD, policy_numbers
from afresh.schedule.wheel.price import solve_on
from afresh.schedule.wheel.saved import read_state, write_state
from afresh.schedule.wheel.table import FREE, PAUSED, SPECIAL, TO_PAUSE, URGENT
from afresh.schedule.wheel.ticks import next_chance, run_thresholds, run_ticks
from afresh.schedule.wheel.worth import value_of, values_of
from afresh.types import Wait
from afresh.value.compiled import bundle

EXACT_UP_TO = 20_000  # pages among which a live crawl picks the very best at every tick
MAX_PAGES = 1 << 62

# What a live crawl needs; the loops for simulations are compiled for those who call them.
together = bundle(
    "wheel",
    events.write_all,
    events.place_all,
    events.remove_all,
    events.pause,
    events.resume,
    events.urge,
    events.replace,
    events.rebuild,
    events.reshelve,
    turn.order,
    turn.hand_in,
    next_chance,
    solve_on,
    value_of,
    values_of,
    facts_of,
    reaches,
    touch_host,
)


class Scheduler(Machine):
    """Which page next, for up to a hundred million pages.

    Same contract as `Plain`, and the same picks if `exact`, or while there are no more than `exact_up_to` pages; `live`
    makes one as `afresh run` has it. Without `lease`, a pick counts as crawled at once, which is what a simulation
    wants; with it, every pick ends with `finish` or with the end of its lease. A share `sweep` of the picks goes to
    copies that were left alone longest, whatever a crawl of them is worth.

    >>> scheduler = Scheduler(budget=10.0)
    >>> slots = scheduler.add_many(request_rate=[1.0, 9.0], change_rate=0.1, now=0.0)
    >>> scheduler.next_many(0.5, 5).tolist()
    [1, 0, 1, 1, 1]
    """

    def __init__(
        self,
        *,
        budget: float,
        policy: str = "greedy-ncis",
        exact: bool = False,
        exact_up_to: int = 0,
        lease: float | None = None,
        delay: float | None = None,
        floor: float = 0.0,
        sweep: float = 0.0,
        counted: bool = True,
    ) -> None:
        super().__init__()
        if lease is not None:
            number("lease", lease, above=True, most=MAX_MOMENT)
        if delay is not None:
            number("delay", delay, most=MAX_MOMENT)
        number("floor", floor, most=MAX_BUDGET)
        control = self.state.control[0]
        control["policy"], control["terms"] = policy_numbers(policy)
        self.policy = policy
        self._pace = Pace(budget, counted=counted)
        control["budget"] = budget
        control["exact"] = exact or exact_up_to > 0
        control["most_exact"] = MAX_PAGES if exact else exact_up_to
        control["lease"] = lease or 0.0
        if delay is None:
            delay = 5.0 / budget if policy == "greedy-ncis-d" and budget > 0 else 0.0
        control["delay"] = delay
        control["oldest_every"] = control["oldest_in"] = picks_between_sweeps(sweep)
        control["longest"] = 1.0 / floor if floor > 0 else math.inf
        self._now = -math.inf
        self._tick = -math.inf
        self._waited = False  # since the last pick: there was budget, and no page could go
        self._spare = 0.0  # share of the picks, lately, before which that was so
        self._in_play = self._solved_for = 0  # pages that are not paused, now and when the price was found for them

    @classmethod
    def live(cls, *, budget: float, lease: float = 120.0, sweep: float = 0.0, counted: bool = True) -> Self:
        """For a crawl that may grow: exact while it is small, and the same machine when it is large.

        Without `counted` the budget is of what crawls cost, and says nothing of how many there may be in a second.
        """
        return cls(budget=budget, lease=lease, sweep=sweep, exact_up_to=EXACT_UP_TO, counted=counted)

    def __len__(self) -> int:
        return int(self.state.control[0]["pages"])

    @property
    def budget(self) -> float:
        """Crawls (or cost) per second; may be set while running."""
        return self._pace.budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._pace.budget = budget
        control = self.state.control[0]
        if control["budget"] > 0 and budget > 0:
            # The next tick comes as soon as at the new rate since the last one.
            self._tick += 1 / budget - 1 / float(control["budget"])
        control["budget"] = budget
        if len(self) and budget > 0 and not control["exact"]:
            now = max(self._now, 0.0)
            self._fit_wheel(len(self), now)
            if self._off_balance():
                self._solve_price(now)

    @property
    def price(self) -> float:
        """Value of the crawls that are only just worth their budget, Λ of the papers."""
        return float(self.state.control[0]["price"])

    def resume_price(self, price: float) -> None:
        """Go on with the price of before a restart: it was learned from very many picks.

        The price of many pages is solved from what is believed of them, now as before.
        """
        price = number("price", price)
        control = self.state.control[0]
        if control["exact"]:
            control["price"], control["picks"] = price, MANY_PICKS

    @property
    def spare(self) -> bool:
        """Whether there is more budget than hosts take: then a page need not gain the price to be picked."""
        return self._spare > 0.5

    def spend(self, now: float) -> float | None:
        """Take a token for what somebody fetches beside our orders: see `Pace.spend`."""
        return self._pace.spend(now)

    @property
    def demand(self) -> float:
        """What all pages together would cost per second at the thresholds that are set: close to the budget."""
        return float(self.state.control[0]["demand"])

    @property
    def nbytes(self) -> int:
        """Memory that the pages take up."""
        return sum(array.nbytes for array in self.state)

    # --- pages come and go ---

    def add_many(
        self,
        *,
        request_rate: ArrayLike,
        change_rate: ArrayLike,
        recall: ArrayLike = 0.0,
        false_rate: ArrayLike = 0.0,
        cost: ArrayLike = 1.0,
        host: ArrayLike = -1,
        now: float,
        age: ArrayLike = math.inf,
        signals: ArrayLike = 0,
        shape: ArrayLike = math.inf,
    ) -> Slots:
        """Take pages in and return their slots; `age` seconds since a copy was current (infinity: no copy yet).

        `shape`: how surely the rate of silent changes is known (`Beliefs.shape`).
        """
        columns = [
            _believed("request_rate", request_rate),
            _believed("change_rate", change_rate),
            _believed("recall", recall),
            _believed("false_rate", false_rate),
            _believed("cost", cost),
            _believed("age", age),
            _believed("signals", signals),
            _believed("shape", shape),
        ]
        hosts = counts("host", host, least=-1, most=MAX_HOSTS)
        slots = self._write(columns, hosts, now)
        self.place_many(slots, now)
        return slots

    def enter_many(self, *, host: NDArray[np.int64], now: float, age: NDArray[np.float64]) -> Slots:
        """Take pages in of which nothing is believed yet: somebody writes that into their records, and then they are
        placed (`place_many`)."""
        nothing = np.zeros(1)
        columns = [nothing, nothing, nothing, nothing, np.ones(1), age, nothing, np.full(1, math.inf)]
        return self._write(columns, host, now)

    def _write(self, columns: list[NDArray[np.float64]], hosts: NDArray[np.int64], now: float) -> Slots:
        """Records for new pages, which are in no list yet."""
        count = _common_length([*columns, hosts])
        self._begin(now)
        self._make_room(count, now)
        self._reach_host(int(hosts.max(initial=-1)))
        slots = np.empty(count, np.int64)
        request, change, recalled, false, costs, ages, heard, shapes = columns
        beliefs = change, recalled, false, shapes
        events.write_all(self.state.core, slots, beliefs, request, costs, hosts, now, ages, heard)
        return slots

    def place_many(self, slots: Slots, now: float) -> None:
        """Put new pages where they belong; the price is found anew if they are many. Those in play stay there."""
        if self.state.control[0]["exact"] and len(self) > self.state.control[0]["most_exact"]:
            self._leave_exact_mode(now)
        slots = slots[self.state.pages["place"][slots] == PAUSED]
        self._come_and_go(len(slots), now, slots, always=len(slots) > (len(self) - len(slots)) // 2)
        # In the order of slots, so that of equal pages the lower slot goes first.
        events.place_all(self.state.core, np.sort(slots), now)
        self._review(now)

    def add(
        self,
        *,
        request_rate: float,
        change_rate: float,
        recall: float = 0.0,
        false_rate: float = 0.0,
        cost: float = 1.0,
        host: int = -1,
        now: float,
        age: float = math.inf,
        signals: float = 0.0,
        shape: float = math.inf,
    ) -> int:
        """Take a page in and return its slot."""
        slots = self.add_many(
            request_rate=request_rate,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            cost=cost,
            host=host,
            now=now,
            age=age,
            signals=signals,
            shape=shape,
        )
        return int(slots[0])

    def update_many(
        self,
        slots: ArrayLike,
        *,
        now: float,
        request_rate: ArrayLike | None = None,
        change_rate: ArrayLike | None = None,
        recall: ArrayLike | None = None,
        false_rate: ArrayLike | None = None,
        shape: ArrayLike | None = None,
        age: ArrayLike | None = None,
        signals: ArrayLike | None = None,
    ) -> None:
        """Believe something else of the pages from now on; what is not given stays."""
        numbers = self._known(slots)
        given = {
            "change_rate": change_rate,
            "recall": recall,
            "false_rate": false_rate,
            "shape": shape,
            "request_rate": request_rate,
        }
        columns = [np.full(1, math.nan) if value is None else _believed(name, value) for name, value in given.items()]
        state = {}  # of the copies
        if age is not None:
            state["current"] = moment("now", now) - _believed("age", age)
        if signals is not None:
            state["signals"] = _believed("signals", signals)
        _common_length([*columns, numbers, *state.values()])
        self._begin(now)
        for name, values in state.items():
            self.state.pages[name][numbers] = values
        numbers, *columns = by_slot(numbers, *columns)
        change, recalled, false, shapes, requests = columns
        events.update_all(self.state.core, numbers, (change, recalled, false, shapes), requests, now)
        self._review(now)

    def update(
        self,
        slot: int,
        *,
        now: float,
        request_rate: float | None = None,
        change_rate: float | None = None,
        recall: float | None = None,
        false_rate: float | None = None,
        shape: float | None = None,
        age: float | None = None,
        signals: float | None = None,
    ) -> None:
        """Believe something else of the page from now on; what is not given stays."""
        self.update_many(
            slot,
            now=now,
            request_rate=request_rate,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            shape=shape,
            age=age,
            signals=signals,
        )

    def changed(self, pages: int, now: float) -> None:
        """What is believed of so many pages was written into their records by somebody else."""
        self.state.control[0]["changes"] += pages
        self._review(now)

    def remove_many(self, slots: ArrayLike) -> None:
        """Forget the pages."""
        numbers = self._known(slots)
        pages = self.state.pages[numbers]
        in_play = int(((pages["place"] != PAUSED) & (pages["marks"] & TO_PAUSE == 0)).sum())
        events.remove_all(self.state.core, numbers)
        self._come_and_go(-in_play, max(self._now, 0.0))
        self._review(max(self._now, 0.0))

    def remove(self, slot: int) -> None:
        """Forget the page."""
        self.remove_many(slot)

    def beliefs(self, slots: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """What is believed of the pages, as it is kept: to seven digits."""
        pages = self.state.pages[self._known(slots)]
        found = np.array([events.believed(page) for page in pages]).reshape(-1, 4)
        return {
            "change_rate": found[:, 0],
            "recall": found[:, 1],
            "false_rate": found[:, 2],
            "shape": found[:, 3],
            "request_rate": pages["request_rate"].astype(float),
            "cost": pages["cost"].astype(float),
        }

    # --- evidence ---

    def signal_many(self, slots: ArrayLike, now: float, count: ArrayLike = 1) -> None:
        """Hints arrived that the pages changed; a page may appear more than once."""
        self._begin(now)
        numbers, heard = by_slot(self._known(slots), counts("count", count, most=int(MAX_SIGNALS)))
        events.signal_all(self.state.core, numbers, now, heard)

    def signal(self, slot: int, now: float, count: int = 1) -> None:
        """A hint arrived that the page changed."""
        self.signal_many(slot, now, count)

    # --- decisions ---

    def next(self, now: float) -> Pick | Wait:
        """The most valuable page that may be crawled now, if the budget has a token; or when to ask again."""
        self._begin(now)
        state = self.state
        free = self.policy == "threshold"
        if not free and (wait := self._pace.wait(now)):
            return wait
        slot, value, cost, price, leases = turn.order(self.core, now) if len(self) else (-1, 0.0, 0.0, 0.0, 0)
        if slot < 0:
            self._waited = True
            until, reason = next_chance(self.core, now)
            return Wait(float(until), ("no pages", "hosts", "nothing to gain")[reason])
        if not free:
            self._pace.take(now, cost)
        self._spare += ((1.0 if self._waited else 0.0) - self._spare) / 20.0
        self._waited = False
        self._tick = max(self._tick, now + cost / self.budget if self.budget > 0 else now)
        if leases >= len(state.leases):
            self._room_for_lease()
        return Pick(slot, value, price)

    def next_many(self, now: float, count: int) -> Slots:
        """The pages picked at the ticks up to `now`, at most `count`, each crawled at its own tick.

        Ticks are 1/budget seconds apart (cost/budget after a page that costs more) and begin one step after the first
        page was added. For simulations: there must be no lease.
        """
        if self.state.control[0]["lease"] > 0:
            raise ValueError("next_many is for schedulers without lease; use next and finish")
        self._begin(now)
        picked = np.empty(count, np.int64)
        run = run_thresholds if self.state.control[0]["policy"] == THRESHOLD else run_ticks
        found, self._tick = run(self.state.core, self._tick, now, picked)
        return picked[:found]

    def finish(
        self,
        slot: int,
        now: float,
        *,
        crawled: float | None,
        changed: bool = False,
        gap: float = 0.0,
        put_off: float = 0.0,
    ) -> None:
        """The order is done: the copy is as of `crawled` (None: nothing was refreshed); its host rests for `gap`."""
        self._known(slot)
        self._begin(now)
        gap, put_off = seconds_to_rest("gap", gap), seconds_to_rest("put_off", put_off)
        crawled = crawled if crawled is None else moment("crawled", crawled)
        if put_off > 0 or self.state.pages[slot]["marks"] & SPECIAL:
            self._extra(slot)["not_before"] = now + put_off
        if crawled is None and put_off > 0:
            self.state.pages[slot]["marks"] &= ~URGENT & 255  # it was tried
        turn.hand_in(self.state.core, slot, now, math.nan if crawled is None else crawled, gap)

    def may_go_again(self, slot: int, now: float) -> None:
        """Nothing puts the page off any longer; who calls `turn.hand_in` for it calls this before."""
        self._begin(now)
        if self.state.pages["marks"][slot] & SPECIAL:
            self._extra(slot)["not_before"] = now

    def give_back(self, slot: int, until: float, now: float) -> None:
        """The page that `next` has just handed out is not crawled before `until`: the budget's token is back."""
        self._known(slot)
        until, now = max(moment("until", until), moment("now", now)), moment("now", now)
        if self.state.control[0]["policy"] != THRESHOLD:
            self._pace.give_back(float(self.state.pages[slot]["cost"]))
        self.finish(slot, now, crawled=None, put_off=until - now)

    def put_off(self, slot: int, until: float, now: float) -> None:
        """Do not hand the page out before `until`, whatever was said before; not for one that is leased."""
        self._limit(slot, "not_before", later_moment("until", until), now)

    def peek(self, now: float) -> int | None:
        """The slot that would be picked at this moment if the budget had a token; None: none."""
        self._begin(now)
        slot = int(turn.look(self.state.core, now)) if len(self) else -1
        return slot if slot >= 0 else None

    def explain(self, slot: int, now: float, turn: float = 0.0) -> Explanation:
        """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes."""
        self._known(slot)
        now = moment("now", now)
        begins = max(now, self._pace.ready_at()) if self.budget > 0 else now
        return replace(explain(self.state, int(slot), now, turn, begins), spare=self.spare)

    def value(self, slot: int, now: float) -> float:
        """What a crawl of the page would gain now, per cost."""
        self._known(slot)
        return float(value_of(self.state.core, slot, moment("now", now)))

    # --- what crawls cost ---

    def set_costs(self, slots: ArrayLike, costs: ArrayLike) -> None:
        """What a crawl of each page is expected to cost from now on; of pages in play, `reckon` takes it up."""
        self.state.pages["cost"][self._known(slots)] = _believed("cost", costs)

    def cost_of(self, slot: int) -> float:
        """What a crawl of a page is expected to cost, to seven digits."""
        return float(self.state.pages["cost"][slot])

    def reckon(self, slot: int, now: float) -> None:
        """A page whose cost was set takes its place anew."""
        self._begin(now)
        events.replace(self.state.core, slot, now)

    def settle(self, more: float, now: float, most: float = MAX_DEBT_SECONDS) -> None:
        """What was crawled has cost so much more than was expected, or so much less if it is below 0.

        The debt that this makes is of `most` seconds of the budget.
        """
        self._pace.settle(more, now, most)

    # --- what an operator may want ---

    def pause(self, slot: int) -> None:
        """Keep the page out of play until `resume`; one that is being fetched is paused when it comes back."""
        self._known(slot)
        paused = self._is_paused(slot)
        events.pause(self.state.core, slot)
        self._come_and_go(int(paused) - 1, max(self._now, 0.0))
        self._review(max(self._now, 0.0))

    def resume(self, slot: int, now: float) -> None:
        """Bring a paused page back into play."""
        numbers = self._known(slot)
        self._begin(now)
        self._come_and_go(int(self._is_paused(slot)), now, numbers)
        events.resume(self.state.core, slot, now)
        self._review(now)

    def crawl_now(self, slot: int, now: float) -> None:
        """Crawl the page before all others, as soon as the budget and its host allow it."""
        self._known(slot)
        self._begin(now)
        events.urge(self.state.core, slot, now)

    def not_more_often_than(self, slot: int, seconds: float, now: float) -> None:
        """Leave at least this many seconds between two crawls of the page; 0: no limit."""
        self._limit(slot, "shortest", require_seconds(seconds, 0.0), now)

    def at_least_every(self, slot: int, seconds: float, now: float) -> None:
        """Crawl the page at least once in this many seconds, whatever it gains; infinity: no limit."""
        self._limit(slot, "longest", require_seconds(seconds, 1e-9), now)

    def _limit(self, slot: int, name: str, seconds: float, now: float) -> None:
        self._known(slot)
        self._begin(now)
        self._extra(slot)[name] = seconds
        events.replace(self.state.core, slot, now)

    def set_host(self, host: int, *, gap: float | None = None, budget: float | None = None) -> None:
        """Give a host a least gap between two crawls, or a budget of its own (cost per second)."""
        host = host_number(host)
        self._reach_host(host)
        record = self.state.hosts[host]
        if gap is not None:
            record["gap"] = seconds_to_rest("gap", gap)
        if budget is not None:
            record["budget"] = budget = host_budget(budget)
            if budget == math.inf:
                record["spent_until"], record["price"], record["picks"] = -math.inf, 0.0, 0
                touch_host(self.state.core, host)
        self.state.control[0]["changes"] += int(record["active"])

    def host_price(self, host: int) -> float:
        """What a crawl of a host that is at its cap has to gain; 0: the common price holds."""
        host = host_number(host)
        price = float(self.state.hosts[host]["price"]) if host < len(self.state.hosts) else 0.0
        return price if price > self.price else 0.0

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this host before `until`."""
        host, until = host_number(host), later_moment("until", until)
        self._reach_host(host)
        record = self.state.hosts[host]
        record["rests_until"] = max(record["rests_until"], until)
        touch_host(self.state.core, host)

    # --- to disk and back ---

    def save(self, path: str | BinaryIO) -> None:
        """Write everything to a file (or an open one), at about the speed of the disk."""
        more = {"policy": self.policy, "now": self._now, "tick": self._tick, "spare": self._spare}
        write_state(path, self.state, more | {"waited": self._waited}, self._pace)

    @classmethod
    def load(cls, path: str | BinaryIO) -> Self:
        """A scheduler that goes on exactly where the saved one was."""
        state, saved, pace = read_state(path)
        scheduler = cls(budget=pace.budget, policy=saved["policy"])
        scheduler.state, scheduler._pace = state, pace
        scheduler._now, scheduler._tick = saved["now"], saved["tick"]
        scheduler._spare, scheduler._waited = saved["spare"], saved["waited"]
        scheduler._in_play = scheduler._solved_for = len(scheduler._slots_in_play())
        return scheduler

    # --- inside ---

    def _is_paused(self, slot: int) -> bool:
        page = self.state.pages[slot]
        return bool(page["place"] == PAUSED or page["marks"] & TO_PAUSE)

    def _come_and_go(self, pages: int, now: float, fresh: Slots | None = None, *, always: bool = False) -> None:
        """So many pages more are in play: the price is found anew where these are far more, or fewer, than it was for.

        Most pages may be paused: they wait for a first crawl. So all that there are say nothing.
        """
        self._in_play += pages
        if always or not 0.5 * self._solved_for <= self._in_play <= 2.0 * self._solved_for:
            self._solved_for = self._in_play
            if not self.state.control[0]["exact"]:
                self._solve_price(now, fresh)
                self.state.control[0]["changes"] = 0

    def _begin(self, now: float) -> None:
        """Every operation that knows the time passes here: it never goes backwards."""
        if type(now) is not float or not -MAX_MOMENT <= now <= MAX_MOMENT:
            now = moment("now", now)
        if self._tick == -math.inf and self.budget > 0:
            self._tick = now + 1 / self.budget
        self._now = max(self._now, now)

    def _known(self, slots: ArrayLike) -> Slots:
        numbers = slot_numbers(slots)
        used = int(self.state.control[0]["used"])
        if len(numbers) == 1 and 0 <= numbers[0] < used and self.state.pages["place"][numbers[0]] != FREE:
            return numbers  # one page at a time
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= used):
            raise ValueError(f"slot must be one that add returned, not {int(numbers.max())}")
        if (self.state.pages["place"][numbers] == FREE).any():
            raise ValueError("slot must be one that add returned and remove did not take back")
        return numbers


def _believed(name: str, given: ArrayLike) -> NDArray[np.float64]:
    least, most, infinite = BELIEFS[name]
    return column(name, given, least=least, most=most, infinite=infinite)


def _common_length(columns: list[NDArray[Any]]) -> int:
    sizes = {len(values) for values in columns} - {1}
    if len(sizes) > 1:
        raise ValueError(f"arguments must have the same length, but have {sorted(sizes)}")
    return sizes.pop() if sizes else 1
