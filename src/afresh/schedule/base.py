"""What the engine asks of a scheduler."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from afresh.types import Wait


@dataclass(frozen=True, slots=True)
class Pick:
    """The page to crawl at this tick, and why: its value against the price."""

    slot: int
    value: float
    price: float
    probe: bool = False  # fetch and compare, and leave the copy as it is


@dataclass(frozen=True, slots=True)
class LearnedRate:
    """What the costs of a page have taught; NaN where that is not known yet."""

    rate: float  # refreshes per second
    slope: float  # of its cost, by that rate: how much a refresh a second more would change it
    cost: float  # at the last refresh
    probe: float  # at the last probe


@dataclass(frozen=True, slots=True)
class CostsLearned:
    """How far learning from costs is, over all pages."""

    cost: str  # by its name in the settings
    mean: float  # of the costs that refreshes found; NaN: none yet
    updates: int  # of the rates
    refreshes: int  # with a known cost, since the last update
    next_update: int  # after so many of them
    probes: int  # with a known cost, since the start


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a page is, or is not, about to be crawled."""

    value: float  # what a crawl now would gain
    price: float  # what a crawl has to gain to be chosen
    due: float  # when it is crawled, or its value reaches the price; infinity: not by itself, or nobody can tell
    # "" or what keeps it back: "leased", "paused", "put off", "host busy", "host resting", "host budget",
    # "path budget", "host at its cap", "below the price"; or, of a page that waits for a first crawl, "first turn".
    held_by: str
    first_crawls: int = 0  # pages without a copy that go before this one, as far as anybody counts them
    ahead: int = 0  # crawls of its host that go before it
    turn: float = 0.0  # seconds from one crawl of its host to the next; 0: not known
    spare: bool = False  # there is more budget than hosts take: what is worth anything goes when its host is ready
    every: float = 0.0  # seconds between its crawls that its host has room for, where more are wanted; 0: not so


class Schedules(Protocol):
    """Which page next, under a budget that is spent at a constant rate.

    A page is a slot number, handed out by `add` and free again after `remove`. Between `next` and `finish` a page is
    leased: it is not handed out twice, and comes back into play by itself when the lease ends. While a page of a host
    is leased, no other page of that host is handed out; afterwards the host rests for its gap.

    `now` never goes backwards. Ties are broken by the lower slot.
    """

    budget: float  # crawls (or cost) per second; may be set while running

    @property
    def price(self) -> float:
        """Value of the crawls that are only just worth their budget, Λ of the papers."""

    def resume_price(self, price: float) -> None:
        """Go on with the price of before a restart."""

    def add(
        self,
        *,
        request_rate: float,
        change_rate: float,
        recall: float = ...,
        false_rate: float = ...,
        cost: float = ...,
        host: int = ...,
        now: float,
        age: float = ...,
        signals: float = ...,
        shape: float = ...,
    ) -> int:
        """Take a page in and return its slot; `age` seconds since its copy was current (infinity: no copy yet).

        `shape`: how surely the rate of silent changes is known (`Beliefs.shape`).
        """

    def update(
        self,
        slot: int,
        *,
        now: float,
        request_rate: float | None = ...,
        change_rate: float | None = ...,
        recall: float | None = ...,
        false_rate: float | None = ...,
        shape: float | None = ...,
        age: float | None = ...,
        signals: float | None = ...,
    ) -> None:
        """Change the beliefs about the page; what is not given stays.

        `age`: treat its copy as this old, since time in which siblings were busy counts as longer. `signals`: how many
        good ones were heard since the copy was current; one of a poor sender counts as a part of one.
        """

    def signal(self, slot: int, now: float, count: int = ...) -> None:
        """A hint arrived that the page changed."""

    def next(self, now: float) -> Pick | Wait:
        """The most valuable page that may be crawled now, if the budget has a token; or when to ask again."""

    def finish(
        self,
        slot: int,
        now: float,
        *,
        crawled: float | None,
        changed: bool = ...,
        gap: float = ...,
        put_off: float = ...,
    ) -> None:
        """The order is done: the copy is as of `crawled` (None: nothing was refreshed) and had or had not changed.

        Its host rests for `gap` seconds, and the page itself is not handed out again for `put_off` seconds.
        """

    def give_back(self, slot: int, until: float, now: float) -> None:
        """The page that `next` has just handed out is not crawled before `until`: the budget's token is back."""

    def put_off(self, slot: int, until: float, now: float) -> None:
        """Do not hand the page out before `until`, whatever was said before; not for one that is leased."""

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this host before `until`."""

    def pause(self, slot: int) -> None:
        """Keep the page out of play until `resume`; one that is being fetched is paused when it comes back."""

    def resume(self, slot: int, now: float) -> None:
        """Bring a paused page back into play."""

    def crawl_now(self, slot: int, now: float) -> None:
        """Crawl the page before all others, as soon as the budget and its host allow it."""

    def not_more_often_than(self, slot: int, seconds: float, now: float) -> None:
        """Leave at least this many seconds between two crawls of the page; 0: no limit."""

    def at_least_every(self, slot: int, seconds: float, now: float) -> None:
        """Crawl the page at least once in this many seconds, whatever it gains; infinity: no limit."""

    def set_host(self, host: int, *, gap: float | None = ..., budget: float | None = ...) -> None:
        """Give a host a least gap between two crawls, or a budget of its own (cost per second; infinity: none)."""

    def host_price(self, host: int) -> float:
        """What a crawl of a host that is at its cap has to gain; 0: the common price holds."""

    def remove(self, slot: int) -> None:
        """Forget the page."""

    def explain(self, slot: int, now: float, turn: float = ...) -> Explanation:
        """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes."""


@runtime_checkable
class KnowsPrices(Protocol):
    """What a scheduler can do besides where crawls do not all cost the same."""

    def set_costs(self, slots: ArrayLike, costs: ArrayLike) -> None:
        """What a crawl of each page is expected to cost from now on; of pages in play, `reckon` takes it up."""

    def cost_of(self, slot: int) -> float:
        """What a crawl of a page is expected to cost."""

    def reckon(self, slot: int, now: float) -> None:
        """A page whose cost was set takes its place anew."""

    def settle(self, more: float, now: float, most: float = ..., /) -> None:
        """What was crawled has cost so much more than was expected, or so much less if it is below 0.

        The debt that this makes is of `most` seconds of the budget.
        """


@runtime_checkable
class SeesCosts(Protocol):
    """What a scheduler can do besides that learns from what crawls find copies to have cost."""

    def named(self, slot: int, url: str) -> None:
        """The URL of a page that was added, by which it is known after a restart."""

    def saw(self, slot: int, cost: float | None, time: float, *, probe: bool) -> None:
        """What a fetch that began at `time` found; None: it could not tell. `finish` follows."""

    def learned_rate(self, slot: int) -> LearnedRate:
        """What the costs of a page have taught."""

    def costs_learned(self) -> CostsLearned:
        """How far learning is, over all pages."""

    def to_text(self) -> str:
        """All that was learned, for `recall` after a restart."""

    def recall(self, text: str) -> bool:
        """Go on from what was learned before a restart; before pages are added. False: it was from another cost."""
