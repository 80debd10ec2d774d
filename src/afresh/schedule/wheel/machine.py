"""The arrays behind the scheduler: room for more, the size of the wheel, the price at the start and after steps."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.events import place_all, rebuild, reshelve
from afresh.schedule.wheel.price import SAMPLE, solve_on
from afresh.schedule.wheel.table import (
    EXTRA,
    FREE,
    LEASE,
    LOOSE,
    PAGE,
    PAUSED,
    READY,
    SHELVES,
    SPECIAL,
    URGENT,
    State,
    aligned_records,
    new_hosts,
    new_queues,
    new_state,
)

Slots = NDArray[np.int64]

_HORIZON = 2.0  # in units of pages/budget
_WIDEST = 8.0  # ticks a bucket
_OFF = 0.15  # the price is solved anew if demand and budget differ by more than this share
_FAR = 0.5  # jumps of log price beyond which all thresholds are set anew, some at every tick
_HOST_SAMPLE = 4000


def _caps_of(hosts: NDArray[Any]) -> NDArray[np.float64]:
    """`hosts.cap_of` of all of them."""
    turn = np.maximum(hosts["gap"], hosts["service"])
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(hosts["budget"], np.where(turn > 0.0, 1.0 / turn, np.inf)))


class Machine:
    """Owns the `State` and lets it grow; all other work is done by the compiled functions."""

    def __init__(self) -> None:
        self.state: State = new_state()
        self._core_of: State | None = None
        self._core = 0

    @property
    def core(self) -> int:
        """What compiled functions want: `State.core`, which takes a while to find."""
        if self.state is not self._core_of:
            self._core_of, self._core = self.state, self.state.core
        return self._core

    def _make_room(self, pages: int, now: float) -> None:
        """Make sure that this many more pages fit."""
        control = self.state.control[0]
        free = int(control["used"] - control["pages"])
        wanted = int(control["used"]) + max(0, pages - free)
        have = len(self.state.pages)
        if wanted > have:
            # Growing by half keeps the cost of adding one by one linear; a large batch gets just what it needs.
            more = max(wanted, 64, have + have // 2 if pages < have // 2 else wanted)
            self.reserve(more - int(control["pages"]))
        if not control["exact"]:
            self._fit_wheel(int(control["pages"]) + pages, now)

    def reserve(self, pages: int) -> None:
        """Make room for this many more pages at once, so that adding them in parts copies nothing."""
        control = self.state.control[0]
        wanted = int(control["pages"]) + pages
        if wanted > len(self.state.pages):
            records = aligned_records(wanted)
            used = int(control["used"]) * PAGE.itemsize
            records.view(np.uint8)[:used] = self.state.pages.view(np.uint8)[:used]
            self.state = self.state._replace(pages=records).bind()

    def _fit_wheel(self, pages: int, now: float) -> None:
        """Rebuild the wheel if its buckets have become too few or their width does not fit the budget any more."""
        control = self.state.control[0]
        budget = float(control["budget"])
        if budget <= 0:
            return
        ticks = min(_WIDEST, max(1.0, pages / 4096))
        width = ticks / budget
        buckets = 1 << max(6, math.ceil(math.log2(_HORIZON * max(pages, 1) / ticks)))
        ratio = float(control["width"]) / width
        if len(self.state.wheel) >= buckets and 1 / 6 <= ratio <= 6 and control["pages"] > 0:
            return
        self.state = self.state._replace(wheel=new_queues(buckets)).bind()
        control["width"] = width
        control["bucket"] = control["ahead"] = math.floor(now / width)
        rebuild(self.state.core)

    def _leave_exact_mode(self, now: float) -> None:
        """There are too many pages to look at all of them: they go to the wheel, urgent ones in the order asked."""
        state, control = self.state, self.state.control[0]
        control["exact"], control["updated"] = 0, now
        state.hosts["price"] = state.hosts["picks"] = 0
        slots = np.flatnonzero(state.pages["place"] == LOOSE)
        state.pages["place"][slots], state.pages["due"][slots] = PAUSED, now
        urgent = (state.pages["marks"][slots] & URGENT) > 0
        asked = slots[urgent][np.argsort(state.pages["next"][slots[urgent]])]
        self._fit_wheel(int(control["pages"]), now)
        control["bucket"] = control["ahead"] = math.floor(now / float(control["width"]))
        self._solve_price(now, slots)
        place_all(self.state.core, np.concatenate([asked, slots[~urgent]]), now)
        control["changes"] = 0

    def _reach_host(self, number: int) -> None:
        """Make sure that this host exists."""
        have = len(self.state.hosts)
        if number >= have:
            count = max(number + 1, 2 * have, 16)
            hosts = new_hosts(count)
            hosts[:have] = self.state.hosts
            heap = np.zeros(count, np.int32)
            heap[:have] = self.state.heap
            self.state = self.state._replace(hosts=hosts, heap=heap).bind()

    def _room_for_lease(self) -> None:
        control = self.state.control[0]
        size = len(self.state.leases)
        first, last = int(control["leases_first"]), int(control["leases_last"])
        if last - first < size:
            return
        order = np.arange(first, last) % size
        leases = np.zeros(2 * size, LEASE)
        leases[: last - first] = self.state.leases[order]
        control["leases_first"], control["leases_last"] = 0, last - first
        self.state = self.state._replace(leases=leases).bind()

    def _extra(self, slot: int) -> np.void:
        """The special settings of a page, made if it has none."""
        state, control = self.state, self.state.control[0]
        page = state.pages[slot]
        index = int(page["anchor"].view(np.int32))
        if not page["marks"] & SPECIAL:
            index = int(control["extra_free"])
            if index < 0:
                index = len(state.extra)
                more = np.zeros(max(64, index), EXTRA)
                more["page"] = -2 - np.arange(index + 1, index + 1 + len(more))
                more["page"][-1] = -1
                self.state = state = state._replace(extra=np.concatenate([state.extra, more])).bind()
                control["extra_room"] = len(state.extra)
            control["extra_free"] = -2 - state.extra[index]["page"]
            state.extra[index] = (-np.inf, 0.0, np.inf, page["current"], slot)
            page["anchor"], page["marks"] = np.int32(index).view(np.float32), page["marks"] | SPECIAL
        return state.extra[index]  # type: ignore[no-any-return]

    def _slots_in_play(self) -> Slots:
        used = int(self.state.control[0]["used"])
        place = self.state.pages["place"][:used]
        return np.flatnonzero((place != FREE) & (place != PAUSED))

    def _off_balance(self) -> bool:
        """Whether the demand has left the budget so far behind, or ahead, that the price had better jump."""
        control = self.state.control[0]
        demand = control["demand"] + control["stale_demand"] * (control["stale_factor"] - 1.0)
        return not abs(demand / control["budget"] - 1.0) <= _OFF if control["budget"] > 0 else False

    def _review(self, now: float) -> None:
        """After changes to an eighth of the pages: solve the price anew if it does not fit any more."""
        control = self.state.control[0]
        if control["changes"] * 8 >= max(control["pages"], 1) and not control["exact"]:
            if self._off_balance():
                self._solve_price(now)
            control["changes"] = 0

    def _solve_price(self, now: float, fresh: Slots | None = None) -> None:
        """Let the price jump to the one at which a sample of the pages asks for its share of the budget."""
        control = self.state.control[0]
        sample, share = self._sample(fresh)
        if not len(sample) or control["budget"] <= 0:
            return
        price = solve_on(self.state.core, sample, float(control["budget"]) * share, True)
        scale = price
        if price == 0.0:  # they never ask for so much: shelves about the price would hold nobody
            pages = self.state.pages[sample]
            scale = float((pages["request_rate"] / pages["cost"]).sum()) / (float(control["budget"]) * share)
        self._jump(max(price, 1e-250), now, max(scale, 1e-250))

    def _sample(self, fresh: Slots | None) -> tuple[Slots, float]:
        """(some of the pages in play and of those not placed yet, their share of these); solves the hosts on the way.

        A fixed stride without a rhythm of its own, so that nothing is drawn and everything can be repeated.
        """
        hosts, used = self.state.hosts, int(self.state.control[0]["used"])
        caps = _caps_of(hosts)
        hosts["price"] = 0.0
        capped = bool(np.isfinite(caps).any())
        if used > 16 * SAMPLE and not capped:
            # Listing all pages would take as much memory as an eighth of them.
            some = (np.arange(4 * SAMPLE) * 2_654_435_761) % used
            pages = self.state.pages[some]
            unplaced = (pages["place"] == PAUSED) & (pages["threshold"] == 0.0)
            some = some[unplaced | ((pages["place"] != FREE) & (pages["place"] != PAUSED))]
            if len(some) >= SAMPLE:
                return some[:SAMPLE], 4 * SAMPLE * SAMPLE / (len(some) * used)
        slots = self._slots_in_play()
        if fresh is not None:
            slots = np.union1d(slots, fresh) if len(slots) else fresh
        if capped:
            self._solve_hosts(slots, caps)
        share = min(1.0, SAMPLE / max(1, len(slots)))
        return (slots if share == 1.0 else slots[(np.arange(SAMPLE) * 2_654_435_761) % len(slots)]), share

    def _solve_hosts(self, slots: Slots, caps: NDArray[np.float64]) -> None:
        """Each capped host's own price, which does not depend on the others."""
        hosts = self.state.hosts
        numbers = self.state.pages["host"][slots]
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(hosts) + 1))
        for number in np.flatnonzero(np.isfinite(caps)):
            mine = slots[order[bounds[number] : bounds[number + 1]]]
            if len(mine) and caps[number] > 0:
                step = -(-len(mine) // _HOST_SAMPLE)
                mine = np.ascontiguousarray(mine[::step])
                hosts[number]["price"] = solve_on(self.state.core, mine, float(caps[number]) / step, False)

    def _jump(self, price: float, now: float, scale: float) -> None:
        """Another price from now on; `scale` is about what pages are worth, which shelves tell apart."""
        control = self.state.control[0]
        demand = float(control["demand"])
        far = not abs(math.log(price / control["price"])) < _FAR if control["price"] > 0 else False
        control["sweep"] = 0 if far else control["used"]
        control["price"] = price
        control["stale_demand"] = demand
        control["stale_factor"] = min(100.0, control["budget"] / demand) if demand > 0 else 1.0
        control["epoch"] = (control["epoch"] + 1) & 15
        base = math.frexp(scale)[1] * 32 - SHELVES // 2
        if abs(base - control["base"]) > SHELVES // 4:
            reshelve(self.state.core, np.flatnonzero(self.state.pages["place"] == READY), base, now)
