"""What the loop asks of a source: one kind of thing that copies are kept of, on the web, on a disk, in a database.

A thing is known by its key, which is text of the form `scheme:rest`; the scheme says whose it is. A lane is what must
not be disturbed by two at once: a host, a mount, a database. A purse is the budget that pays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from afresh.frontier import Allowance, Lanes, Links, Rest, allowance
from afresh.reading import Document, Wanted
from afresh.types import Fetched, Page, Validators

PURSE = "crawl"  # of the budget that pays where nothing else is said
MAX_KEY = 4096  # characters
MAX_META_BYTES = 64 << 10  # of a copy, names and values
MAX_LEADS = 1_000_000  # keys that one thing may lead to
MAX_SCHEMES = 64  # that are remembered


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a thing: what its source said when the copy was made, and when that was.

    A source may ask "is it still the same?" by `validators`, whose two texts are its own words. Without a fingerprint
    there is no copy, and the content must come.
    """

    validators: Validators = field(default_factory=Validators)
    fetched: float | None = None  # when the kept content came; None: there is no copy
    checked: float | None = None  # when it was last known to be current


@dataclass(frozen=True, slots=True)
class Later:
    """The thing was not asked for: its lane is left alone for `gap` seconds, then its turn comes again.

    If that is because the lane failed before it could be asked, this is a failed attempt at the thing: `failure`.
    """

    gap: float
    failure: Fetched | None = None


def kept_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """As much of it as a copy keeps: from the beginning on, whole values.

    >>> kept_meta({":status": "200", "long": "x" * 100_000, "age": "7"})
    {':status': '200', 'age': '7'}
    """
    room, kept = MAX_META_BYTES, {}
    for name, value in meta.items():
        size = len(name) + len(value)
        if size <= room:
            size = len((name + value).encode("utf-8", "surrogatepass"))
        if size <= room:
            kept[name] = value
            room -= size
    return kept


class Source(Protocol):
    """Knows one kind of thing.

    Invariants: `key` is idempotent and never raises; a key has one lane and one purse, now and later; `get` raises
    nothing but cancellation, and what goes wrong is an answer; what a thing leads to are keys of the same source.

    A source may have more, which is asked for by name: `Begins`; a `finder`; `dated(validators, now)`, the moment of
    the last change as far as it is known; `lifetime(fetched)`, how long an answer is said to hold;
    `marks(before, after)`, which of the validators that should move with the content did; `arriving`, the bytes that
    have come of what is under way; `said(name, text)`, what defines things of it in the store; `bounds`, of bytes of
    copies by lane; `received(fetched)`, what another process got of it.
    """

    kind: str  # the name of this kind of thing: "web", "files", "sql"

    def key(self, text: str) -> str | None:
        """The canonical key of what a person or a page writes; None if it is none of ours."""

    def lane(self, key: str) -> str:
        """What must not be disturbed by two at once; it may be long to rest after a failure."""

    def purse(self, key: str) -> str:
        """The budget that pays."""

    async def get(self, key: str, known: Known) -> Fetched | Later:
        """Get it, or hear that it is still what is `known` of it.

        `answer`, `started` and `took` must be said; `reason` says in a word what went wrong, and `blame` whether all of
        the lane would fail. With content come `content_type`, `validators` to ask with next time (the fingerprint is
        not the source's to set), `meta` that the copy keeps, and `leads`. `spent` says what it cost.
        """

    async def close(self) -> None:
        """Let go of everything. A second call does nothing."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A source has read a list of what there is: how many entries it has, how many of them are new, and how many are
    said to have changed.

    `problem` says in one sentence what is wrong with it; "" if nothing is.
    """

    url: str
    time: float
    entries: int = 0
    found: int = 0
    signals: int = 0
    problem: str = ""


class Runner(Protocol):
    """What a source may ask of who runs it, and tell it of its own accord; all of it on the event loop."""

    @property
    def lanes(self) -> Lanes:
        """Who is in each lane, and how long it rests."""

    def clock(self) -> float:
        """What time it is."""

    def hint(self, key: str, sender: str, changed: float | None = None, *, deaf_since: float | None = None) -> bool:
        """A thing may have changed, now or at that moment. False: it is not kept, or nobody learns anything by that.

        Hints of changes between `deaf_since` and that moment would not have been noticed.
        """

    def unread(self, lane: str) -> Sequence[str]:
        """Things of a lane that were refreshed since the lists that may name them were read."""

    def read(self, lane: str, sender: str, until: float, keys: Iterable[str]) -> None:
        """All is heard that the lists of a sender said of these things until that moment."""

    def lasts(self, key: str, lifetime: float) -> None:
        """Somebody says that a thing changes about so often: seconds."""

    def found(self, pages: Sequence[Page]) -> None:
        """Here are further things to keep copies of."""

    def looks_again(self, key: str) -> None:
        """A thing that failed by itself may be well again: it is put off no longer."""

    def keeps(self, key: str) -> bool:
        """Whether a copy of this is to be kept."""

    def pages_of(self, lane: str) -> Iterable[str]:
        """The keys of all that is kept of a lane. In a thread."""

    def worth(self, key: str, sender: str) -> float:
        """What a hint of this sender gains for every second that it comes earlier, as the price is counted. Of what is
        not kept it is what the things kept are worth on average."""

    @property
    def price(self) -> float:
        """What a crawl must gain at this moment; 0: nobody knows yet."""

    @property
    def budget(self) -> float:
        """Crawls a second."""

    @property
    def takes_more(self) -> bool:
        """Whether there is room for further things."""

    def tell(self, event: Listed) -> None:
        """Let everybody know."""

    def hold(self, size: int) -> None:
        """So many bytes are in memory from now on; as many less if it is below 0."""

    @property
    def compete(self) -> bool:
        """Whether several owners' things do: then a lane rests for what it costs us, too."""


@runtime_checkable
class Begins(Protocol):
    """A source that does more than answer: it listens for hints, keeps something over a restart, asks for other lanes.

    `close` ends what was begun.
    """

    async def begin(self, runner: Runner) -> None:
        """A runner begins; called before the first `get`."""

    def take(self) -> Mapping[str, str | None]:
        """What is to be kept in the store since the last time, by name; None: to be forgotten."""


class Finder(Protocol):
    """What finds further things in the content of a source's things, in the one pass that also compares it.

    Invariant: a key is handed out once.
    """

    closed: bool  # there is no room for more: what is found leaves no trace, and is found again

    def know(self, keys: list[str]) -> None:
        """These are kept already, from before or because somebody added them."""

    def wanted(self) -> Wanted:
        """What reading is to look for."""

    def met(self, page: Page, fetched: Fetched) -> set[bytes]:
        """What needs no parsing if the content repeats it."""

    def links(self, read: Document, page: Page, fetched: Fetched, met: set[bytes]) -> Links:
        """What the content leads to. Runs in a thread, and touches nothing that is shared."""

    def follow(self, page: Page, fetched: Fetched, found: Links, met: set[bytes]) -> Iterator[list[Page]]:
        """Of what was found, some at a time, what is new."""

    def moved(self, page: Page, fetched: Fetched) -> list[Page]:
        """A thing is elsewhere now: that, if it is new."""


class Backlog(Protocol):
    """What was found and waits outside of the runner's memory: a finder may have one, by this name."""

    space: int  # things that may come in now; the runner says so
    share: int  # of those that were never got, that may be of one lane
    full_at: int  # things that are in, where no more may be; 0: there is room
    most_held: int | None  # things that may be in at most, whether they are that many or not
    admits: Callable[[Page], bool]  # whether a thing that waited may still come in
    leaving: set[str]  # keys of what waits again, and perhaps is in until its removal is heard of

    def __len__(self) -> int: ...

    def enter(self, now: float, price: float) -> list[Page]:
        """What comes in now: whose first crawl is expected to be worth most, and at least the price."""

    def best(self, most: int) -> list[float]:
        """The expected values of what would come in next, the best first."""

    def value(self, page: Page) -> float:
        """What a thing that is in would be expected to be worth if it waited."""

    def put_back(self, pages: Sequence[Page]) -> None:
        """Things that were in wait again."""

    def count_untried(self, lane: str, more: int) -> None:
        """So many more things of a lane are in and were never got, or fewer."""

    def tried(self, page: Page, value: float, *, copied: bool) -> None:
        """A thing was got for the first time: what that was worth when it was ordered; whether there is a copy now."""

    @property
    def handed(self) -> int:
        """How many things are out and would come again after a kill."""

    def settle(self, count: int) -> None:
        """The first so many of them are durable where they went."""

    def close(self) -> None:
        """Save everything."""


class Sources:
    """Several sources, told apart by the schemes of their keys.

    >>> from afresh.sources.scripted import Scripted
    >>> sources = Sources([Scripted(lambda key, known: Later(1.0), kind="test")])
    >>> sources.key("test:one"), sources.key("other:one"), sources.of("test:one").kind
    ('test:one', None, 'test')
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.all = tuple(sources)
        self._by_scheme: dict[str, Source] = {}

    def key(self, text: str) -> str | None:
        """The canonical key of a text, by the first source that takes it; None: none does."""
        return next((key for source in self.all if (key := source.key(text)) is not None), None)

    def of(self, key: str) -> Source | None:
        """Whose key this is. If there is one source only, that is asked for everything."""
        if len(self.all) == 1:
            return self.all[0]
        scheme = key.partition(":")[0]
        source = self._by_scheme.get(scheme)
        if source is None:
            source = next((each for each in self.all if each.key(key) == key), None)
            if source is not None and len(self._by_scheme) < MAX_SCHEMES:
                self._by_scheme[scheme] = source
        return source

    def purse(self, key: str) -> str:
        """The budget that pays for a thing."""
        source = self.of(key)
        return PURSE if source is None else source.purse(key)

    def finder(self, key: str) -> Finder | None:
        """What finds further things in the content of this one; None: nothing does."""
        return getattr(self.of(key), "finder", None)

    @property
    def finders(self) -> list[Finder]:
        """All of them."""
        return [finder for source in self.all if (finder := getattr(source, "finder", None)) is not None]

    @property
    def backlog(self) -> Backlog | None:
        """Where what was found waits; None: nowhere, it comes in at once."""
        return next((found for each in self.finders if (found := getattr(each, "backlog", None)) is not None), None)

    def wanted(self, page: Page) -> bool:
        """Whether what was found once is still wanted, by its finder's bounds of today."""
        wants = getattr(self.finder(page.url), "wants", None)
        return True if wants is None else bool(wants(page))

    def found(self) -> dict[str, float]:
        """What finders say of what they found; empty: nobody finds anything."""
        told = (counts() for each in self.finders if (counts := getattr(each, "counts", None)) is not None)
        return next(told, {})

    def led(self, key: str, leads: Iterable[str]) -> list[str]:
        """What one thing leads to, as far as it may: content leads to things of its own kind alone.

        So no page of the web, redirect, sitemap or feed can make us read a file.
        """
        source = self.of(key)
        if source is None:
            return []
        return [lead for lead in leads if len(lead) <= MAX_KEY and source.key(lead) == lead]

    def dated(self, key: str, validators: Validators, now: float) -> float | None:
        """When a thing last changed, as its source has said; None: it does not say."""
        dated = getattr(self.of(key), "dated", None)
        return None if dated is None else dated(validators, now)

    def marks(self, key: str, before: Validators, after: Validators) -> list[tuple[str, bool]]:
        """By what a source marks content, and whether each mark has moved from one to the other."""
        marks = getattr(self.of(key), "marks", None)
        return [] if marks is None else marks(before, after)

    def lifetime(self, fetched: Fetched) -> float | None:
        """How long an answer is said to hold, in seconds; None: its source does not say."""
        lifetime = getattr(self.of(fetched.url), "lifetime", None)
        return None if lifetime is None else lifetime(fetched)

    @property
    def bounds(self) -> dict[str, int]:
        """Lanes whose copies have a bound of bytes: beyond it, what nobody added by name leaves."""
        return {lane: size for source in self.all for lane, size in getattr(source, "bounds", {}).items()}

    @property
    def arriving(self) -> int:
        """How many bytes have come of what is under way."""
        return sum(int(getattr(source, "arriving", 0)) for source in self.all)

    def allowed(self, rests: Iterable[tuple[str, Rest]], others: tuple[int, Rest]) -> Allowance:
        """How much these lanes allow together, by how long each rests, and so many more that were never asked. In a
        thread."""
        for source in self.all:
            if (allowed := getattr(source, "allowed", None)) is not None:
                return allowed(rests, others)  # type: ignore[no-any-return]
        return allowance(rests, others=others)

    async def begin(self, runner: Runner) -> None:
        """A runner begins."""
        for source in self.all:
            if isinstance(source, Begins):
                await source.begin(runner)

    def said(self, name: str, text: str | None) -> None:
        """What defines something of a source, under a name in the store, is this now; None: it is gone."""
        for source in self.all:
            if (said := getattr(source, "said", None)) is not None:
                said(name, text)

    def received(self, fetched: Fetched) -> None:
        """Another process has got something itself."""
        if (received := getattr(self.of(fetched.url), "received", None)) is not None:
            received(fetched)

    def take(self) -> dict[str, str | None]:
        """What is to be kept in the store."""
        kept: dict[str, str | None] = {}
        for source in self.all:
            if isinstance(source, Begins):
                kept |= source.take()
        return kept

    async def close(self) -> None:
        """Close all."""
        for source in self.all:
            await source.close()
