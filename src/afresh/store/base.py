"""What the runners and the faces ask of a store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from afresh.types import STORE_FULL, Beliefs, Copy, Crawl, HostState, Outcome, Page, Validators

if TYPE_CHECKING:
    from afresh.store.listing import Listing, Wanted

# Failures in a row with the same outcome and reason: the first and the latest of them stay in a page's history, those
# between them leave it, so that a host that is down for a week does not push out what was learned before.
MAX_ALIKE = 10

FAILURES = (Outcome.FAILED, Outcome.BUSY, Outcome.REFUSED, Outcome.MOVED)  # what a page fails with
NO_ANSWER = (Outcome.FAILED, Outcome.BUSY, Outcome.REFUSED)  # what says nothing of whether a page is there

FIRST_COPIES_SHARE = 0.95  # of the bound: beyond it nothing is begun that was not kept before
EVERYTHING, NO_NEW_PAGES, NO_NEW_BODIES = "everything", "no new pages or first copies", "no new bodies"

MAX_ENTRY_BYTES = 64 << 10
MAX_KEY_CHARACTERS = 200
ENTRY_BYTES = 100  # what an entry takes besides its body
KEPT_KEYS = 100_000  # the latest ones
INBOX_BYTES = 64 << 20  # of all entries together, if nothing else is said


@dataclass(frozen=True, slots=True)
class PageState:
    """All that a restart needs to know of one page."""

    page: Page
    beliefs: Beliefs | None = None
    validators: Validators = field(default_factory=Validators)
    fetched: float | None = None  # when the kept body was downloaded; None: no copy
    checked: float | None = None  # when the copy was last known to be current
    signals: int = 0  # heard since then
    crawls: int = 0
    changes: int = 0
    failures: int = 0  # in a row, up to now
    learned: bytes = b""  # the estimator's own memory of the page, opaque to the store
    noise: str = ""  # what is known of the spots of the page that differ at nearly every fetch; opaque too
    urgent: bool = False  # somebody asked for it to be crawled before all others
    cost_same: float | None = None  # of a refresh that finds the same content, in the unit of its budget
    cost_new: float | None = None  # and of one that brings new content
    # Since when it is not there any more. A store finds that in the crawls that are written, whatever is said here.
    gone: float | None = field(default=None, compare=False)


def gone_after(since: float | None, crawl: Crawl) -> float | None:
    """Since when a page is gone, after one more crawl; None: it is there. What brought no answer decides nothing.

    >>> gone_after(None, Crawl("u", 5.0, Outcome.GONE)), gone_after(5.0, Crawl("u", 6.0, Outcome.FAILED))
    (5.0, 5.0)
    >>> gone_after(5.0, Crawl("u", 7.0, Outcome.UNCHANGED))
    """
    if crawl.outcome is Outcome.GONE:
        return crawl.time if since is None else since
    return since if crawl.outcome in NO_ANSWER else None


def trouble_after(before: int, crawl: Crawl, *, has_copy: bool) -> tuple[int, int]:
    """How many crawls of a page failed in a row, after one more; and what that crawl is: n stands for the n-th that
    fails, −n for one that finds the page well again after n, 0 for any other.

    A page that is gone does not fail, unless it never had a copy. A store without room is no failure of its pages.

    >>> trouble_after(2, Crawl("u", 0.0, Outcome.FAILED), has_copy=True)
    (3, 3)
    >>> trouble_after(3, Crawl("u", 0.0, Outcome.UNCHANGED), has_copy=True)
    (0, -3)
    """
    if crawl.reason == STORE_FULL:
        return before, 0
    if crawl.outcome in FAILURES or (crawl.outcome is Outcome.GONE and not has_copy):
        return before + 1, before + 1
    return 0, 0 if crawl.outcome is Outcome.GONE else -before


@dataclass(frozen=True, slots=True)
class News:
    """A crawl that somebody may want to be told of: one of `Store.changes`, or one of a page that fails or is well."""

    number: int
    crawl: Crawl
    trouble: int = 0  # see `trouble_after`


def in_order(changes: Sequence[tuple[int, Crawl]], troubles: Sequence[News], limit: int) -> list[News]:
    """The first of both, each crawl once; each are at most `limit`, as many as come first.

    >>> a, b = Crawl("u", 0.0, Outcome.NEW), Crawl("v", 0.0, Outcome.FAILED)
    >>> [each.number for each in in_order([(1, a), (4, a)], [News(2, b, 1), News(5, b, 2)], 2)]
    [1, 2, 4]
    """
    found = {number: News(number, crawl) for number, crawl in changes}
    found |= {each.number: each for each in troubles}
    both = [number for number, _ in changes], [each.number for each in troubles]
    last = min((numbers[-1] for numbers in both if len(numbers) == limit > 0), default=None)
    # What comes behind it, one of the two may not have in full.
    return [found[number] for number in sorted(found) if last is None or number <= last]


@dataclass(frozen=True, slots=True)
class PageColumns:
    """Many pages, a column each: what a runner needs to know of them when it starts."""

    numbers: Sequence[int]
    urls: Sequence[str]
    hosts: Sequence[str]
    checked: Sequence[float | None]
    crawls: Sequence[int]
    failures: Sequence[int]
    signals: Sequence[int]
    learned: Sequence[bytes]
    importance: Sequence[float | None]  # requests a second, as the operator says, or
    times: Sequence[float | None]  # times what is learned
    popularity: Sequence[float | None]
    cost_same: Sequence[float | None]
    cost_new: Sequence[float | None]
    # Those of which the operator says more than that, by their place here.
    special: Mapping[int, PageState]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that another process hands to the one that runs on the store: a wish, or evidence.

    Entries are written before they are acknowledged, and each takes effect once. One with a `key` that was seen
    recently is the same thing sent again.
    """

    kind: str
    body: str  # JSON
    received: float = 0.0
    key: str = ""
    number: int = 0  # given by the store

    def __post_init__(self) -> None:
        if len(self.body) > MAX_ENTRY_BYTES or not self.body.isascii():
            raise ValueError(f"the body of an entry is at most {MAX_ENTRY_BYTES} bytes of ASCII")
        if len(self.key) > MAX_KEY_CHARACTERS or len(self.kind) > MAX_KEY_CHARACTERS:
            raise ValueError(f"the key and the kind of an entry have at most {MAX_KEY_CHARACTERS} characters each")


@dataclass(frozen=True, slots=True)
class Record:
    """Everything one finished crawl leaves behind; stored whole or not at all.

    A record without a crawl keeps a page's state alone: a signal that must not be lost, a rate learned from requests.
    All parts speak of one page, and a new copy's times and validators are the state's.
    """

    crawl: Crawl | None
    state: PageState
    copy: Copy | None = None  # None: the kept copy stays
    host: HostState | None = None

    def __post_init__(self) -> None:
        state, copy, url = self.state, self.copy, self.state.page.url
        if (self.crawl and self.crawl.url != url) or (copy and copy.url != url):
            raise ValueError(f"crawl, state and copy must be of one page, {url}")
        if copy and (copy.fetched, copy.checked, copy.validators) != (state.fetched, state.checked, state.validators):
            raise ValueError(f"fetched, checked and validators must be the same in state and copy of {url}")
        # A database has no NaN (SQLite makes it NULL), and a NaN belief would spoil the schedule after every restart.
        for number in self._numbers():
            if number != number:
                raise ValueError(f"the record of {url} has a time, rate or probability that is not a number")

    def _numbers(self) -> list[float | None]:
        crawl, state, beliefs = self.crawl, self.state, self.state.beliefs
        numbers = [state.fetched, state.checked, state.cost_same, state.cost_new]
        if self.host:
            numbers += (self.host.ready, self.host.since, self.host.asked, self.host.rate(self.host.asked))
        if crawl:
            numbers += (crawl.time, crawl.elapsed, crawl.took, crawl.significance, crawl.fresh_probability)
        if beliefs:
            numbers += (beliefs.request_rate, beliefs.change_rate, beliefs.recall, beliefs.false_rate, beliefs.shape)
        return numbers


@dataclass(frozen=True, slots=True)
class Heard:
    """What is believed of a page since something was heard of it, and was not crawled; the rest of its state stays."""

    url: str
    beliefs: Beliefs
    signals: int  # since the copy was current
    learned: bytes

    def __post_init__(self) -> None:
        known = self.beliefs
        total = known.request_rate + known.change_rate + known.recall + known.false_rate + known.shape
        if total != total:
            raise ValueError(f"what was heard of {self.url} leads to a rate that is not a number")


@dataclass(frozen=True, slots=True)
class KeepVersions:
    """How many earlier versions of each page are kept, and for how long: the bounds that `[store]` sets."""

    count: int = 0
    seconds: float = 0.0  # since they were replaced; 0: no bound
    bytes: int = 16 << 20  # of all earlier versions of one page, as they are stored; 0: no bound


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a page: the content that a crawl brought, until another one found something else."""

    number: int  # of the crawl that brought it, as `Store.changes` numbers them; 0: before versions had numbers
    fetched: float  # when its bytes were last got: also by a crawl that found the same, or no more than noise
    content_type: str
    size: int  # bytes, before compression
    replaced_by: int = 0  # number of the crawl that found another content; 0: this is the copy that is kept now
    replaced: float | None = None  # when that was
    appeared: float | None = None  # when it was first found; None: nobody knows any more

    @property
    def since(self) -> float:
        """From when on it was the copy, as far as that is known."""
        return self.fetched if self.appeared is None else self.appeared


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the whole store."""

    pages: int = 0
    copies: int = 0
    crawls: int = 0  # ever written, also those that have left the bounded history
    changes: int = 0  # crawls among them that found another content
    body_bytes: int = 0  # before compression
    stored_bytes: int = 0  # after
    inbox_entries: int = 0  # that wait for a runner
    inbox_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes that a store uses, and how many it may; what was deleted and can be written again does not count."""

    used: int
    bound: int = 0  # 0: there is none

    @property
    def takes(self) -> str:
        """What is still taken in: "everything", "no new pages or first copies", or "no new bodies".

        >>> [Space(used, bound=100).takes for used in (94, 95, 100)]
        ['everything', 'no new pages or first copies', 'no new bodies']
        """
        if not self.bound or self.used < FIRST_COPIES_SHARE * self.bound:
            return EVERYTHING
        return NO_NEW_PAGES if self.used < self.bound else NO_NEW_BODIES


@dataclass(frozen=True, slots=True)
class Failing:
    """Pages of one host whose last crawls did not refresh their copies, all in the same way."""

    host: str
    outcome: Outcome
    reason: str
    pages: int
    without_copy: int = 0  # of them


class Store(Protocol):
    """Pages, current copies, crawl history, beliefs, validators and host state.

    One process runs on a store at a time (`claim`); others read, and may add pages, while it does. `write` returns
    when its records are durable: what it acknowledged survives a kill at any moment, and a copy is whole or absent.
    Any method may be called from any thread. A store that is closed, damaged or full raises StoreError.
    """

    max_bytes: int  # what it should not grow beyond; 0: no bound. May be set while it is in use
    keep_versions: KeepVersions  # the same

    def claim(self, *, brief: bool = False) -> None:
        """Become the one process that runs on this store; StoreLocked if there is another.

        One that wants it only `brief`ly, for a wish, is waited for; it does not look for damage.
        """

    def add(self, pages: Iterable[Page]) -> int:
        """Take pages in that are not there yet; how many were new.

        A page that is there stays as it is, but for the importance, if one is given.
        """

    def states(self, *, after: int = 0) -> Iterator[tuple[int, PageState]]:
        """Every page with its number, in the order in which they were added, beginning behind number `after`.

        The first number is 1. Pages that are added meanwhile come at the end; no lock is held between
        two of them, so the consumer may be slow.
        """

    def columns(self, *, after: int = 0, limit: int = 10_000) -> PageColumns:
        """The next pages behind number `after`, in the order in which they were added; none: there are no more."""

    def numbers(self, urls: Sequence[str]) -> list[int]:
        """The numbers of pages; 0 where one is not kept."""

    def state_numbered(self, number: int) -> PageState | None:
        """The page with a number, or None if there is none."""

    def states_of_host(self, host: str) -> Iterator[PageState]:
        """Every page of a host, in the order in which they were added; no lock is held between two of them."""

    def states_under(self, prefix: str, limit: int) -> list[PageState]:
        """The first pages whose addresses begin so, in the order of their addresses."""

    def sizes_of_host(self, host: str) -> list[tuple[str, int, int, float]]:
        """(url, depth, bytes of the body, requests a second as last believed) of each page of a host with a copy."""

    def state(self, url: str) -> PageState | None:
        """One page, or None if it is not kept."""

    def copy(self, url: str) -> Copy | None:
        """The current copy, or None; `checked` is the page's. StoreError if the body is not what was stored."""

    def versions(self, url: str) -> list[Version]:
        """The versions of a page that are kept, the newest first: that is the current copy, if there is one.

        Earlier ones are kept within `keep_versions`, and where the store has room; a page that changes has its copy of
        before among them in the same transaction that brings the new one.
        """

    def version(self, url: str, number: int) -> Copy | None:
        """One version of a page by its number, whole; None if it is not kept. StoreError if it is not what was stored.

        Of the validators and what its source said besides, nothing is known of earlier versions.
        """

    def history(self, url: str, limit: int = 20) -> list[Crawl]:
        """The latest crawls of a page, newest first; a store keeps a bounded number of them.

        Of more than `MAX_ALIKE` failures in a row that are all alike, the first and the latest are kept.
        """

    def changes(self, *, after: int = 0, limit: int = 1000) -> list[tuple[int, Crawl]]:
        """Crawls that found something new, changed or gone, each with its number, in the order of their writing.

        A page that is found gone again and again is told of once.

        Numbers grow and are never used twice, so a reader that remembers the last one misses nothing, except what has
        left the bounded history meanwhile.
        """

    def write(
        self,
        records: Iterable[Record],
        *,
        pages: Iterable[Page] = (),
        removed: Iterable[str] = (),
        urgent: Iterable[str] = (),
        values: Mapping[str, str | None] | None = None,
        taken: Iterable[int] = (),
        heard: Iterable[Heard] = (),
    ) -> int:
        """Make a batch durable, all of it or nothing; claims the store if that was not done. How many pages were new.

        First come `pages`: new ones are taken in, and of the others all is set that the operator says of them. Then the
        records: what was said of a page stays; `fetched` follows the copies that are really there; StoreError if a page
        is not kept. Then comes what was `heard` of pages, and nothing of those that are not kept. Then pages become
        `urgent` until their next crawl is written, or are `removed` with all that is kept of them; named `values` are
        set as by `put`; and entries of the inbox with the numbers `taken` are gone: their effect is in this batch.
        """

    def post(self, entries: Iterable[Entry]) -> int:
        """Put entries into the inbox, durably, all of them or none; how many were new. Any process may.

        InboxFull if there is no room for them.
        """

    def inbox(self, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Entries that wait, in the order of their numbers, beginning behind number `after`."""

    def hosts(self) -> Iterator[HostState]:
        """Every host that has a state."""

    def host(self, name: str) -> HostState | None:
        """One host, or None if it has no state."""

    def failing(self) -> list[Failing]:
        """Pages whose last crawl did not refresh their copies, counted by host, outcome and reason, in that order."""

    def pages_by_host(self) -> Iterator[tuple[str, int, int]]:
        """Every host that has pages, in the order of their names: how many, and how many of them have a copy."""

    def get(self, name: str) -> str | None:
        """A named value of the runner's (its price, its start), or None."""

    def names(self, prefix: str) -> list[tuple[str, int]]:
        """The names of values that begin so, in their order, each with about how many bytes its value takes."""

    def put(self, values: Mapping[str, str | None]) -> None:
        """Set named values, durably, and forget those that are None; claims the store if that was not done."""

    def totals(self) -> Totals:
        """Counts over the whole store."""

    def space(self) -> Space:
        """How much room there is; who writes more than that is not refused, but keeps no longer histories."""

    def close(self) -> None:
        """Let go of everything; the store may be opened again. A second call does nothing."""

    def __enter__(self) -> Self:
        """The store itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""


def untitled(copy: Copy) -> str:
    """What a store keeps as the title of a copy, if nobody tells it how to find one."""
    return ""


class LastingStore(Store, Protocol):
    """A store that outlasts who opened it."""

    title_of: Callable[[Copy], str]  # finds the title that is kept beside a copy, when that is written
    path: Path  # beside this name is the socket of who runs on it
    max_inbox: int  # bytes that may wait in the inbox

    def identity(self) -> str:
        """A name that no other store has: it stays, wherever this one is moved or carried over to."""

    def titles(self, urls: Sequence[str]) -> list[str]:
        """The titles of pages, as their copies had them when they were written; "" where there is none."""

    def news(self, *, after: int = 0, limit: int = 1000) -> list[News]:
        """What `changes` has, and crawls of pages that fail or are well again, in the order of their writing.

        Of failures in a row that are all alike, those between the first and the latest leave the history soon.
        """

    def listed(self, wanted: "Wanted") -> "Listing":
        """A part of a list of pages, in the order of an index where there is one."""

    def is_run(self) -> bool:
        """Whether a process runs on it now: one that holds it for longer than a command takes."""

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it, read from end to end."""
