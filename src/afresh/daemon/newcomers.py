"""Pages without a copy wait for their share, so that first crawls starve neither refreshes nor each other.

A first crawl gains more than any refresh, and every host has a turn of its own. So a thousand new host names could take
every turn for as long as they last, be they of one domain or each a domain of its own. Therefore first crawls wait here
while several sites (registrable domains) are kept, and copies that may need a refresh. They go in

- for at most half of the orders, every site in turn. The hosts of a site but its first have a share of their own in
  that, which is the same for every site;
- without that limit where most copies that the engine refreshes instead are not due: they are younger than a round over
  all pages takes, or most likely still current;
- when there is nothing else to do: no part of the budget is lost to fairness.

Nor does a host need all of its pages with the engine before their first crawls: it is asked one thing at a time. Beyond
`MAX_UNTRIED` they queue here, which costs next to nothing, and one goes in for each that was tried. A page that offers
thousands of links would take the event loop's time from the others otherwise.

The engine has a slot for every page, also for one that waits; here are the slots in the order in which they go in, four
bytes each. The engine says whether a page still waits: one that was removed, or that somebody wanted at once, is passed
over when it is its turn.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from afresh.engine import Engine
from afresh.frontier import site_of

MIN_SHARE = 1 / 16  # of the orders, for the first crawls of one site's other hosts; more if there are fewer sites
MAX_SHARE = 1 / 2  # for those of all sites together: the other half is for refreshes, if any are due
EARLY_SHARE = 0.8  # of the time that a round over all pages takes: copies that are younger are not due,
LIKELY_FRESH = 0.8  # nor are those that are current with this probability
LATELY = 10  # refreshes
MOSTLY = 0.8  # share of those: single copies that were picked early say little
MAX_CREDIT = 4.0  # orders that may be owed to those who wait
MAX_LET_IN = 8  # pages for one refresh that was not
MAX_UNTRIED = 64  # pages of one host in play that were never tried
MAX_EARLY = 64  # untried pages in play, beyond which none is let in early
STUCK_AFTER = 16  # orders; one untried page fewer counts then: those of hosts that rest for long keep nobody out
TIDY = 1024  # slots that have had their turn, before a queue is written anew without them

Slots = NDArray[np.int64]


class Queue:
    """Slots in their order, four bytes each.

    >>> queue = Queue([3, 1])
    >>> queue.extend([2])
    >>> queue.pop(), len(queue), list(queue)
    (3, 2, [1, 2])
    """

    def __init__(self, slots: Iterable[int] = ()) -> None:
        self._slots, self._first = array("i", slots), 0

    def __len__(self) -> int:
        return len(self._slots) - self._first

    def __iter__(self) -> Iterator[int]:
        return iter(self._slots[self._first :])

    def extend(self, slots: Iterable[int]) -> None:
        """Put slots at the end."""
        self._slots.extend(slots)

    def pop(self) -> int:
        """The first one, which leaves."""
        slot = self._slots[self._first]
        self._first += 1
        if self._first >= TIDY and 2 * self._first >= len(self._slots):
            del self._slots[: self._first]
            self._first = 0
        return slot


_Lists = OrderedDict[str, OrderedDict[str, Queue]]


class Newcomers:
    """Which of the pages that wait for a first crawl goes next: every site has the same share.

    Invariant: every page that waits, by the engine's word, is in a list or queue of its host.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sites: dict[str, str] = {}  # by host
        self._firsts: dict[str, str] = {}  # the first host of each site
        self._begun: set[str] = set()  # other hosts that have gone in: nothing need be asked of them first
        # By site and by host, the next ones first: pages of the first host of each site, and of its others.
        self._fronts: _Lists = OrderedDict()
        self._waiting: _Lists = OrderedDict()
        self._untried: dict[str, int] = {}  # pages of each host that are in play and were not tried yet
        self._queues: dict[str, Queue] = {}  # pages of each host beyond that
        self._copies = False  # whether there are any that might be refreshed
        self._credit = 0.0  # orders that are due to those who wait,
        self._others = 0.0  # and of these to other hosts than sites' first ones
        self._early = 1.0  # share of the refreshes, lately, of copies that were not due
        self._entered = 0.0  # pages of all hosts in play that were not tried yet, and may soon be

    def __len__(self) -> int:
        return self._engine.waiting

    @property
    def compete(self) -> bool:
        """Whether there are pages of more than one site."""
        return len(self._firsts) >= 2

    @property
    def _holds(self) -> bool:
        """Whether first crawls could starve refreshes."""
        return self.compete and self._copies

    def offer(
        self, host: str, slots: Slots, *, new: NDArray[np.bool_], copied: NDArray[np.bool_], free: NDArray[np.bool_]
    ) -> Slots:
        """Pages of a host that are not in play yet: those that shall wait, which are queued here.

        `new`: they were never tried. `copied`: there is a copy. `free`: the operator does not say how important
        they are.
        """
        site = self._site(host)
        if copied.any():
            self._copies = True
            self._begun.add(host)  # before a restart: what it permits is known
        other = self.compete and self._firsts[site] != host
        later = ~copied if other else np.zeros(len(slots), np.bool_)
        first = new & ~copied & free & ~later if self._holds else np.zeros(len(slots), np.bool_)
        if later.any():
            _put(self._waiting, site, host, slots[later])
        if first.any():
            _put(self._fronts, site, host, slots[first])
        enters = ~(later | first)
        untried = np.flatnonzero(enters & new)
        room = max(MAX_UNTRIED - self._untried.get(host, 0), 0)
        beyond = untried[free[untried]][room:]  # what somebody calls important need not queue
        if len(beyond):
            self._queues.setdefault(host, Queue()).extend(slots[beyond].tolist())
            enters[beyond] = False
        self._enter(host, len(untried) - len(beyond))
        waits: Slots = slots[~enters]
        return waits

    def tried(self, host: str) -> int | None:
        """A page of this host was tried for the first time, or left untried: the page that may go in for that."""
        self._copies = True  # or will be there soon
        left = self._untried.pop(host, 1) - 1
        self._entered = max(self._entered - 1.0, 0.0)
        if left:
            self._untried[host] = left
        queue = self._queues.get(host)
        if queue is None or left >= MAX_UNTRIED:
            return None
        slot = self._first_of(queue)
        if not queue:
            del self._queues[host]
        if slot is None:
            return None
        if self._holds:
            _put(self._fronts, self._site(host), host, (slot,))
            return None
        self._enter(host, 1)
        return slot

    @property
    def wait_for_orders(self) -> bool:
        """Whether pages wait that may go in when an order is given."""
        return bool(self._waiting or self._fronts)

    def ordered(self, *, early: bool | None = None) -> list[int]:
        """An order was given: the pages that may go in for that. `early`: the copy that it refreshes is not due; None:
        it refreshes none."""
        if not self.wait_for_orders:
            return []
        self._entered = max(self._entered - 1 / STUCK_AFTER, 0.0)
        if early is not None:
            self._early += (early - self._early) / LATELY
        share = max(1 / len(self._firsts), MIN_SHARE)
        others = min(share * len(self._waiting), MAX_SHARE)
        self._others = min(self._others + others, MAX_CREDIT)
        if early and self._early > MOSTLY and self._fronts and self._entered < MAX_EARLY:
            taken = [self._take_from(self._fronts) for _ in range(MAX_LET_IN)]
            self._credit = 0.0  # what goes in for this costs nobody his share
            return [slot for slot in taken if slot is not None]
        self._credit += MAX_SHARE if self._fronts else others
        if self._credit < 1:
            return []
        slot = self.take()
        return [slot] if slot is not None else []

    def take(self) -> int | None:
        """The next page, of the site that has waited longest; None if none waits."""
        firsts = self._fronts and (not self._waiting or self._others < 1)
        first, second = (self._fronts, self._waiting) if firsts else (self._waiting, self._fronts)
        slot = self._take_from(first)
        return self._take_from(second) if slot is None else slot

    def _take_from(self, lists: _Lists) -> int | None:
        while lists:
            if self._untried.get(next(iter(next(iter(lists.values())))), 0) >= MAX_UNTRIED:
                self._queue_host(lists)
                continue
            site, hosts = lists.popitem(last=False)
            host, queue = hosts.popitem(last=False)
            slot = self._first_of(queue)
            if queue:
                hosts[host] = queue  # at the end: every host in turn, since the one that was just asked rests,
            if hosts:
                lists[site] = hosts  # and every site
            if slot is not None:
                self._enter(host, 1)
                # A host that is asked for the first time is asked what it permits, too.
                cost = 1.0 if host in self._begun else 2.0
                self._begun.add(host)
                self._credit = max(self._credit - cost, -cost)
                if lists is self._waiting:
                    self._others = max(self._others - cost, -cost)
                return slot
        return None

    def _first_of(self, queue: Queue) -> int | None:
        """The first page of a queue that still waits; the others leave it."""
        while queue:
            slot = queue.pop()
            if self._engine.is_waiting(slot):
                return slot
        return None

    def _queue_host(self, lists: _Lists) -> None:
        """The host that is next has enough pages in play: the others wait until these were tried."""
        site, hosts = next(iter(lists.items()))
        host, pages = hosts.popitem(last=False)
        self._queues.setdefault(host, Queue()).extend(pages)
        if not hosts:
            del lists[site]

    def entered(self, host: str) -> None:
        """A page of a host that waited goes in now, whoever's turn it is."""
        self._enter(host, 1)

    def _enter(self, host: str, untried: int) -> None:
        if untried:
            self._untried[host] = self._untried.get(host, 0) + untried
            self._entered += untried

    def _site(self, host: str) -> str:
        """The site of a host, which is noted."""
        site = self._sites.get(host)
        if site is None:
            site = self._sites[host] = site_of(host)
            self._firsts.setdefault(site, host)
        return site


def _put(lists: _Lists, site: str, host: str, slots: Iterable[int]) -> None:
    lists.setdefault(site, OrderedDict()).setdefault(host, Queue()).extend(np.asarray(slots).tolist())
