"""The nouns that flow through afresh.

Evidence comes in as `Signal`, `Request` and `Crawl`; it becomes `Beliefs` about a `Page`; the engine turns beliefs
into an `Order`; carrying an order out gives a `Fetched`, comparing that with what is kept gives a `Verdict`, and the
verdict closes the circle as a `Crawl`. What is kept is a `Copy`.

Time is float seconds since 1970 (or since the start of a simulation), rates are per second, sizes are bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, inf, log1p


class Outcome(StrEnum):
    """What came of one fetch; ordinary outcomes are values, never exceptions."""

    NEW = "new"  # the first whole copy
    CHANGED = "changed"  # another content than the kept copy's
    UNCHANGED = "unchanged"  # the same content, or the server said so (304)
    PROBED = "probed"  # compared with the kept copy, which stays as it was; the reason says what came of it
    GONE = "gone"  # 404 or 410: the page is not there any more
    MOVED = "moved"  # it lives at another address now
    REFUSED = "refused"  # robots.txt, the address guard or the scope forbids it
    BUSY = "busy"  # 429 or 503: the host asks to wait
    FAILED = "failed"  # timeout, reset, truncated, too large, bad protocol, server error

    refreshed: bool  # whether the kept copy was confirmed or replaced, so that its age starts again

    def __init__(self, word: str) -> None:
        self.refreshed = word in ("new", "changed", "unchanged")


# What a reader of changes wants to hear of.
CHANGES = frozenset({Outcome.NEW, Outcome.CHANGED, Outcome.GONE})


BACK = "back"  # the reason of a crawl that found a page again that was gone; its copy is as it was
STORE_FULL = "store_full"  # the reason of a crawl whose content could not be kept: `store.max_bytes` is reached


@dataclass(frozen=True, slots=True)
class Importance:
    """What an operator says a page is worth: requests per second, or `times` as many as are learned.

    >>> Importance(5.0).of(2.0), Importance(5.0, times=True).of(2.0)
    (5.0, 10.0)
    """

    value: float
    times: bool = False

    def of(self, learned: float) -> float:
        """The request rate to use, where this one was learned."""
        return self.value * learned if self.times else self.value


@dataclass(frozen=True, slots=True)
class Page:
    """A thing to keep a copy of, by its canonical URL, and what the operator says of it.

    What the operator does not say is left to the rules of its site.
    """

    url: str
    host: str
    added: float = 0.0
    importance: Importance | None = None  # None: what is learned from requests
    depth: int = 0  # links from a page that was named; 0: it was named itself
    shortest: float | None = None  # seconds between two crawls at least
    longest: float | None = None  # seconds between two crawls at most
    hours: str = ""  # when it may be crawled, as `units.hours` reads it
    paused: bool = False
    popularity: float | None = None  # by reports of others, in times the average page: counts of our own outweigh it


@dataclass(frozen=True, slots=True)
class Signal:
    """A hint, from a named sender, that a page may have changed."""

    url: str
    time: float
    sender: str = "ping"


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody asked for a page `count` times at about this moment."""

    url: str
    time: float
    count: float = 1.0


@dataclass(frozen=True, slots=True)
class Validators:
    """What the server gave us to ask "has it changed since?" with, and what the content itself says to that."""

    etag: str = ""
    last_modified: str = ""
    fingerprint: int = 0  # 64 bits of the bytes as they came; 0: none kept


class Answer(StrEnum):
    """What a source says when it is asked for something, given what is known of it."""

    NEW = "new"  # here is the content, which may equal what is kept
    SAME = "same"  # what is kept is still current
    GONE = "gone"  # there is no such thing any more
    MOVED = "moved"  # it is elsewhere now
    REFUSED = "refused"  # it must not be asked for
    BUSY = "busy"  # its lane asks to wait
    FAILED = "failed"


class Blame(StrEnum):
    """Where the fault lies when something could not be got."""

    LANE = "lane"  # whatever else is asked of it would fail as well: it rests, longer each time
    KEY = "key"  # the lane has answered; this one thing fails
    NOBODY = "nobody"  # nothing was asked


@dataclass(frozen=True, slots=True)
class Spent:
    """What getting something has cost, in every unit that a budget may be given in."""

    seconds: float = 0.0  # that its lane worked for us
    bytes: int = 0  # that came
    calls: float = 1.0
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class Copy:
    """One whole copy; body, validators, times and `meta` all belong to the same fetch.

    `meta` is what the source says of it besides: on the web ":status" and the headers, of a query its columns.
    """

    url: str
    body: bytes
    content_type: str
    fetched: float  # when this body was downloaded
    checked: float  # when it was last confirmed to be current
    validators: Validators = field(default_factory=Validators)
    meta: Mapping[str, str] = field(default_factory=dict)


_ANSWERS = {304: Answer.SAME, 404: Answer.GONE, 410: Answer.GONE, 429: Answer.BUSY, 503: Answer.BUSY}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one attempt to get a page brought back. `reason` says in a word what went wrong, "" if nothing did.

    A source says so by `answer`. Where there is none, `status` says it, as in HTTP.
    """

    url: str
    started: float
    took: float
    status: int = 0  # HTTP status; 0 if no answer arrived
    body: bytes = b""
    content_type: str = ""
    validators: Validators = field(default_factory=Validators)
    reason: str = ""
    retry_after: float | None = None
    location: str = ""  # where it was found in the end, if not at `url`
    hops: tuple[str, ...] = ()  # every address that a redirect led to, in order
    received: int = 0  # bytes of body that arrived, before inflation
    robots: str = ""  # what its X-Robots-Tag header asks of us: noindex, nofollow
    waited: float = 0.0  # seconds besides `took` for which we ourselves kept it waiting
    answer: Answer | None = None
    blame: Blame | None = None  # None: it follows from the rest
    meta: Mapping[str, str] = field(default_factory=dict)  # what its copy keeps besides
    spent: Spent | None = None  # None: one call, the time it took and the bytes received
    leads: tuple[str, ...] = ()  # keys of the same source that were found here

    @property
    def answered(self) -> Answer:
        """What the source has said.

        >>> Fetched("http://a.example/", 0.0, 0.1, status=404).answered.value
        'gone'
        """
        if self.answer is not None:
            return self.answer
        if self.reason:
            return Answer.FAILED
        if self.status in (200, 203):
            return Answer.NEW
        return _ANSWERS.get(self.status, Answer.MOVED if 300 <= self.status < 400 else Answer.FAILED)

    @property
    def cost(self) -> Spent:
        """What it has cost."""
        return Spent(self.took, self.received) if self.spent is None else self.spent

    @property
    def ended(self) -> float:
        """When the host had no more to do with it."""
        return self.started + self.took + self.waited


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the page really changed, and how much (0: not at all … 1: nothing in common)."""

    outcome: Outcome
    significance: float = 0.0
    validators: Validators = field(default_factory=Validators)  # of the content that is current now
    reason: str = ""
    cost: float | None = None  # of the copy, until now; None: nobody asked, or nobody could tell


@dataclass(frozen=True, slots=True)
class Crawl:
    """A finished crawl: the observation that teaches the engine, and one line of a page's history."""

    url: str
    time: float  # when the fetch began: content is as of then
    outcome: Outcome
    elapsed: float | None = None  # since the last crawl that refreshed the copy; None for the first
    signals: int = 0  # signals heard since then
    took: float = 0.0
    status: int = 0
    size: int = 0
    significance: float = 0.0
    reason: str = ""
    fresh_probability: float | None = None  # what the engine had believed just before

    @property
    def leaves_outdated(self) -> bool:
        """Whether the kept copy is known to differ from the page: there was no room for the new one, now or before."""
        if self.outcome.refreshed:
            return False
        return (self.reason == STORE_FULL and self.size > 0) or self.fresh_probability == 0.0


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of a page: the inputs of its crawl value (symbols of the papers in brackets)."""

    request_rate: float = 1.0  # μ
    change_rate: float = 0.0  # Δ
    recall: float = 0.0  # λ: share of changes that send a signal
    false_rate: float = 0.0  # ν: signals that mean nothing
    observations: int = 0  # crawls that taught us this
    # How surely the rate of silent changes is known: it is taken to be Gamma distributed round α, with this shape. A
    # rate about which little is known has a shape of 1 or less; infinity: it is known exactly.
    shape: float = inf

    @property
    def silent_rate(self) -> float:
        """α = (1 − λ)Δ: changes that send no signal."""
        return (1.0 - self.recall) * self.change_rate

    @property
    def signal_rate(self) -> float:
        """γ = λΔ + ν: all signals."""
        return self.recall * self.change_rate + self.false_rate

    @property
    def signal_weight(self) -> float:
        """b = log(γ/ν): what one signal takes from the logarithm of freshness; infinite if signals are always right."""
        heard = self.recall * self.change_rate
        if heard <= 0:
            return 0.0
        return log1p(heard / self.false_rate) if self.false_rate > 0 else inf

    def freshness(self, elapsed: float, signals: float) -> float:
        """Probability that a copy is still current, over all silent rates that the page may have.

        That is exp(−(α·elapsed + b·signals)) where the rate is known exactly.

        One page at a time and without heavy imports; `afresh.value.freshness` is the same for arrays.

        >>> round(Beliefs(change_rate=0.05).freshness(10.0, 0), 4)
        0.6065
        >>> round(Beliefs(change_rate=0.05, shape=1.0).freshness(10.0, 0), 4)
        0.6667
        """
        staleness = self.silent_rate * elapsed if elapsed else 0.0
        if self.shape < inf:
            staleness = self.shape * log1p(staleness / self.shape)
        return exp(-(staleness + self.signal_weight * signals if signals else staleness))


@dataclass(frozen=True, slots=True)
class Order:
    """Please fetch this page now; `value` and `price` say why it was chosen. Ends with `engine.finish`."""

    slot: int
    url: str
    host: str
    time: float
    value: float = 0.0
    price: float = 0.0
    signals: int = 0  # heard before the order was given; later ones stay for the next crawl
    probe: bool = False  # fetch and compare, and leave the copy as it is


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may go now; ask again at `until` (infinity: only new evidence can change that)."""

    until: float
    reason: str = ""


RECENT_SECONDS = 3600.0


def recently(asks: float, seconds: float, elapsed: float) -> tuple[float, float]:
    """What a number of requests, and the seconds over which they were counted, still count for later."""
    if not asks:
        return 0.0, 0.0
    left = exp(-max(elapsed, 0.0) / RECENT_SECONDS)
    return asks * left, seconds * left + RECENT_SECONDS * (1.0 - left)


@dataclass(frozen=True, slots=True)
class HostState:
    """What must be remembered of a host to stay polite, also after a restart."""

    host: str
    ready: float = 0.0  # not before this moment
    failures: int = 0  # in a row, up to now
    reason: str = ""  # of the last of them, or why it is not asked at all; "": all is well
    since: float | None = None  # the first of them
    # How often it was asked recently, and over how long; what is RECENT_SECONDS old counts for 1/e.
    asked: float = 0.0  # last
    recent_asks: float = 0.0
    recent_seconds: float = 0.0

    def recent(self, now: float) -> tuple[float, float]:
        """How often the host was asked recently, and over how many seconds, as they count now."""
        return recently(self.recent_asks, self.recent_seconds, now - self.asked)

    def rate(self, now: float) -> float:
        """Recent requests a second; 0 if it was not asked yet, or only just for the first time.

        >>> round(HostState("example.org", asked=100.0, recent_asks=60.0, recent_seconds=60.0).rate(now=101.0), 2)
        0.98
        """
        asks, seconds = self.recent(now)
        return asks / seconds if seconds > 0 else 0.0


ADDRESSES = ("postgresql://", "postgres://")  # what begins so is not the name of a file
_QUERY_SECRET = re.compile(r"(?i)\b(password|passwd|sslpassword)=[^&]*")


@dataclass(frozen=True)
class Address:
    """The address of a database that holds a store. Written as text it shows no password.

    >>> str(Address("postgresql://me:secret@db.example/pages?sslpassword=more"))
    'postgresql://me:***@db.example/pages?sslpassword=***'
    """

    secret: str = field(repr=False)  # the whole of it, as the library takes it

    def __str__(self) -> str:
        before, mark, rest = self.secret.partition("://")
        who, at, place = rest.rpartition("@") if "@" in rest.partition("?")[0].partition("/")[0] else ("", "", rest)
        user, colon, _ = who.partition(":")
        shown = f"{user}{':***' if colon else ''}{at}{place}"
        return _QUERY_SECRET.sub(lambda found: f"{found[1]}=***", f"{before}{mark}{shown}")

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"
