"""The page table: one packed record of 72 bytes a page, and the few arrays beside it.

Everything the machine knows is one `State`: a tuple of arrays, no object anywhere. A slot is the index of a page's
record. Compiled functions reach all of it through the address of the control record (see `memory`).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]
Integers = NDArray[np.int32]

# Times need double precision; beliefs do not: nobody knows a rate to seven digits.
PAGE = np.dtype(
    [
        ("current", "f8"),  # the copy is as of this moment; −∞: there is none
        # On the wheel: when it is to come up. Leased: when the lease ends. Loose: what it is worth at most until the
        # horizon; infinity: nobody knows.
        ("due", "f8"),
        ("silent_rate", "f4"),  # α, its mean
        ("shape", "f4"),  # how surely that is known: the shape of its Gamma distribution; infinity: exactly
        ("signal_rate", "f4"),  # γ
        ("weight", "f4"),  # b
        ("request_rate", "f4"),  # μ
        ("cost", "f4"),
        ("threshold", "f4"),  # staleness at which it comes up; the start of the next search for it
        ("rate", "f4"),  # its share of the demand: cost per second at that threshold
        (
            "next",
            "i4",
        ),  # neighbours in the list it is in; see `lists`. Loose and urgent: how many were asked for before
        ("previous", "i4"),  # leased: the bits of the number of signals when the lease began
        ("host", "i4"),  # −1: none
        # Price per request rate that the threshold was found for; 0: find it anew. Where a page has special settings,
        # the bits are their index instead.
        ("anchor", "f4"),
        ("signals", "f4"),  # heard since `current`, as a number of good ones
        ("place", "u1"),
        ("marks", "u1"),
        ("unused", "u2"),
    ]
)

# Where a page is.
FREE, WHEEL, READY, PARKED, LEASED, PAUSED, LOOSE = range(7)  # loose: exact mode looks at all, and needs no list

# Marks: four bits of their own, and a counter of price jumps in the upper half.
URGENT = 1  # "crawl this now"
TO_PAUSE = 2  # pause it when its lease is over
SPECIAL = 4  # it has special settings
EMPTY = 8  # it is up, and counted as one without a copy
EPOCH_SHIFT = 4

EXTRA = np.dtype(
    [
        ("not_before", "f8"),  # −∞: at any time
        ("shortest", "f8"),  # never more often than; 0: no limit
        ("longest", "f8"),  # at least every; ∞: no limit
        ("crawled", "f8"),  # when its copy was last confirmed, by the clock: `current` may be stretched
        ("page", "i8"),  # whose it is; of a free one, −2 − the next free one
    ]
)

HOST = np.dtype(
    [
        ("busy_until", "f8"),  # a page of it is leased until then at most
        ("rests_until", "f8"),
        ("gap", "f8"),  # seconds between two crawls at least
        ("service", "f8"),  # how long one crawl and the rest after it have been taking; 0: not known
        ("budget", "f8"),  # cost per second at most
        ("spent_until", "f8"),  # its budget is spent until then
        ("price", "f8"),  # what a crawl of its pages must gain while it is at its cap; 0: not at its cap
        ("demand", "f8"),  # of its pages
        ("updated", "f8"),  # when its price was
        ("active", "i4"),  # pages of it that are worth a crawl
        ("parked", "i4"),  # pages of it that are due and wait for it
        ("empty", "i4"),  # those of them that have no copy
        ("unused", "i4"),
        ("first", "i4"),
        ("last", "i4"),
        ("in_heap", "i4"),  # 1 + position among the hosts to be woken; 0: not there
        ("picks", "i4"),  # exact mode: of its pages, while it has a budget of its own
    ]
)

QUEUE = np.dtype([("first", "i4"), ("last", "i4")])  # a bucket of the wheel, or a shelf; −1: empty
WAKING = np.dtype([("host", "i4")])
LEASE = np.dtype([("end", "f8"), ("slot", "i8")])

CONTROL = np.dtype(
    [
        ("self_at", "i8"),  # addresses of this record and of the other arrays of `State`
        ("pages_at", "i8"),
        ("wheel_at", "i8"),
        ("shelves_at", "i8"),
        ("hosts_at", "i8"),
        ("heap_at", "i8"),
        ("extra_at", "i8"),
        ("leases_at", "i8"),
        ("buckets", "i8"),  # of the wheel: a power of two
        ("lease_room", "i8"),  # places in the ring of leases
        ("budget", "f8"),
        ("price", "f8"),
        ("demand", "f8"),  # F: cost per second of all thresholds
        ("stale_demand", "f8"),  # the part of it that was computed before the last jump of the price
        ("stale_factor", "f8"),  # what that part has to be multiplied by to hold at the present price
        ("updated", "f8"),  # when the price was
        ("pick_value", "f8"),  # value of the last pick
        ("width", "f8"),  # seconds a bucket of the wheel
        ("lease", "f8"),  # seconds; 0: picks are crawled at once
        ("delay", "f8"),  # signals within this many seconds after a crawl are dropped
        ("longest", "f8"),  # at least every, for all pages; ∞: no limit
        ("horizon", "f8"),  # exact mode: until when bounds on values hold
        ("bounded", "f8"),  # exact mode: when the horizon was set
        ("bucket", "i8"),  # all buckets of the wheel before this one are empty
        ("ahead", "i8"),  # how far the wheel has run ahead of the clock
        ("policy", "i8"),
        ("terms", "i8"),  # of the sums of the crawl value; 0: all
        ("exact", "i8"),  # every pick is the very best page; see `exact`
        ("most_exact", "i8"),  # up to this many pages
        ("picks", "i8"),  # exact mode: that the price has followed
        ("asked", "i8"),  # exact mode: pages so far that were wanted before all others
        ("bounded_turns", "i8"),  # exact mode: picks before the horizon was set
        ("used", "i8"),  # records ever used
        ("free", "i8"),  # first of the free slots; −1: none
        ("pages", "i8"),
        ("active", "i8"),  # pages worth a crawl at the present price
        ("ready", "i8"),
        ("empty", "i8"),  # pages among them that have no copy
        ("top", "i8"),  # no page is on a higher shelf
        ("bottom", "i8"),  # nor on a lower one than this
        ("rotate", "i8"),  # the shelf to be looked through next
        ("base", "i8"),  # number of the lowest shelf
        ("epoch", "i8"),
        ("leases_first", "i8"),
        ("leases_last", "i8"),
        ("heap_size", "i8"),
        ("extra_free", "i8"),
        ("extra_room", "i8"),  # records there are
        ("extra_hand", "i8"),  # the one whose limit is looked at next
        ("sweep", "i8"),  # slots before this one have thresholds from after the last jump of the price
        ("turns", "i8"),  # ticks so far
        ("oldest_every", "i8"),  # every n-th pick goes to a copy that was left alone for long; 0: none
        ("oldest_in", "i8"),  # picks until that
        ("oldest_hand", "i8"),  # the slot to be looked at next for that
        ("oldest_by_clock", "i8"),  # 1: in this round requests do not count for that
        ("changes", "i8"),  # to the pages since the price was solved
    ]
)

SHELVES = 2048
CACHE_LINE_BYTES = 64


class State(NamedTuple):
    """All that the machine knows, as arrays."""

    control: Records  # one record
    pages: Records
    wheel: Records
    shelves: Records
    hosts: Records
    heap: Integers  # hosts to be woken, by the time they are ready
    extra: Records
    leases: Records  # a ring, in the order in which leases end

    @property
    def core(self) -> int:
        """The address of the control record: what compiled functions want. This tuple must outlive the call."""
        address = int(self.control.ctypes.data)
        if self.control["self_at"][0] != address:
            self.bind()  # a copy, or read from a file
        return address

    def bind(self) -> "State":
        """Write the addresses of the other arrays into the control record."""
        control = self.control[0]
        control["self_at"] = self.control.ctypes.data
        for name in ("pages", "wheel", "shelves", "hosts", "heap", "extra", "leases"):
            control[f"{name}_at"] = getattr(self, name).ctypes.data
        control["buckets"], control["lease_room"] = len(self.wheel), len(self.leases)
        return self


def aligned_records(count: int) -> Records:
    """Empty page records that begin on a cache line."""
    raw = np.zeros(count * PAGE.itemsize + CACHE_LINE_BYTES, np.uint8)
    shift = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[shift : shift + count * PAGE.itemsize].view(PAGE)


def new_queues(count: int) -> Records:
    """Empty buckets or shelves."""
    return np.full(2 * count, -1, np.int32).view(QUEUE)


def new_hosts(count: int) -> Records:
    """Hosts that are ready and have no limits."""
    hosts = np.zeros(count, HOST)
    for name in ("busy_until", "rests_until", "spent_until", "updated"):
        hosts[name] = -np.inf
    hosts["budget"] = np.inf
    hosts["first"] = hosts["last"] = -1
    return hosts


def new_state() -> State:
    """A machine without pages."""
    control = np.zeros(1, CONTROL)
    control["free"] = control["extra_free"] = -1
    control["updated"] = control["horizon"] = -np.inf
    control["longest"] = np.inf
    control["stale_factor"] = 1.0
    control["width"] = 1.0
    control["base"] = 10**6  # far from any price, so that the first one sets it, whatever the unit of time
    return State(
        control=control,
        pages=aligned_records(0),
        wheel=new_queues(64),
        shelves=new_queues(SHELVES),
        hosts=new_hosts(0),
        heap=np.zeros(0, np.int32),
        extra=np.zeros(0, EXTRA),
        leases=np.zeros(64, LEASE),
    ).bind()
