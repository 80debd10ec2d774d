"""What a synthetic web is like: every knob, its unit and its default."""

from dataclasses import dataclass, fields
from math import isfinite

from afresh.errors import ConfigError
from afresh.sim.web.changes import Process


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of host and what its pages are typically like."""

    name: str
    change_interval: float  # days between two changes of the middle page
    process: Process  # how it changes when `processes` is "mixed"
    paragraphs: tuple[int, int]  # shortest and longest main text
    folder: str  # where its pages live
    feed: str  # "rss", "atom" or "" for none


KINDS = {
    "news": Kind("news", 2.0, Process.RHYTHM, (4, 14), "/story/", "rss"),
    "blog": Kind("blog", 7.0, Process.BURSTS, (5, 24), "/posts/", "atom"),
    "shop": Kind("shop", 4.0, Process.RHYTHM, (3, 9), "/product/", ""),
    "reference": Kind("reference", 90.0, Process.POISSON, (8, 40), "/wiki/", ""),
}
PROCESSES = ("mixed", "poisson", "rhythm", "bursts")


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Every knob of a synthetic web. Shares lie between 0 and 1; by default nothing fails, no validator lies.

    >>> SiteOptions(pages=50, hosts=5).pages
    50
    """

    seed: int = 0  # everything follows from it
    pages: int = 1000  # on all hosts together
    hosts: int = 20  # host names
    kinds: tuple[tuple[str, float], ...] = (("news", 3), ("blog", 3), ("shop", 2), ("reference", 2))  # shares of hosts

    day: float = 86400.0  # length of a day in seconds; 1.0 lets a day pass every second
    processes: str = "mixed"  # law of change: "mixed" (as fits the kind), "poisson", "rhythm" or "bursts"
    change_factor: float = 1.0  # all pages change this much faster
    rate_spread: float = 0.7  # standard deviation of the logarithm of change rates within a kind

    requests: float = 1000.0  # readers' requests per second on all pages together
    zipf: float = 0.9  # popularity falls with rank to this power
    popularity_correlation: float = 0.3  # how far popular pages are also the quickly changing ones, -1 … 1

    dressed: bool = False  # pages with a stylesheet, a picture and a script, each at an address of its own

    noise_share: float = 0.3  # pages with a clock, token or advertisement that changes without meaning
    noisy_text_share: float = 0.0  # pages with a counter of visits inside their main text
    etag_share: float = 0.7  # pages that send an ETag
    etag_wrong_share: float = 0.0  # of these, pages whose ETag lies: stuck for ever, or new at every request
    last_modified_share: float = 0.6  # pages that send Last-Modified
    last_modified_wrong_share: float = 0.0  # of these, pages whose date lies: stuck for ever, or always now

    sitemap_share: float = 1.0  # hosts with a sitemap
    sitemap_recall: float = 0.8  # share of changes that move lastmod
    sitemap_precision: float = 0.7  # share of lastmod's moves that mean a change
    ping_share: float = 0.5  # hosts that send pings
    ping_recall: float = 0.6  # share of changes that send a ping
    ping_precision: float = 0.8  # share of pings that mean a change
    ping_delay: float = 0.0  # mean days between change and ping; the longest delay is twice this
    signal_spread: float = 0.0  # how much recall and precision differ between pages, 0 … 1
    storms_per_day: float = 0.0  # how often a host announces all its pages at once for no reason
    feed_items: int = 20  # entries in a feed

    gone_share: float = 0.0  # pages that will be deleted (410 from then on)
    gone_within: float = 30.0  # days within which they are deleted
    disallowed_share: float = 0.0  # pages that robots.txt forbids
    crawl_delay: float = 0.0  # seconds asked for in robots.txt; 0: nothing asked

    latency: float = 0.0  # mean seconds before an answer starts
    error_share: float = 0.0  # requests answered with 500
    busy_share: float = 0.0  # requests answered with 503 and Retry-After
    retry_after: float = 5.0  # seconds that Retry-After names
    reset_share: float = 0.0  # requests whose connection is reset
    truncated_share: float = 0.0  # answers that end before their announced length
    stall_share: float = 0.0  # answers that stop in the middle and stay open
    stall_seconds: float = 60.0  # how long they stay open
    drip_share: float = 0.0  # answers that come in small bits
    drip_seconds: float = 20.0  # how long such an answer takes

    def __post_init__(self) -> None:
        for name, lowest, highest in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not (isfinite(value) and lowest <= value <= highest):
                top = f" and at most {highest:g}" if isfinite(highest) else ""
                raise ConfigError(f"{name} is {value!r}.", hint=f"Give a number of at least {lowest:g}{top}.")
        for name in ("seed", "pages", "hosts", "feed_items"):
            if not isinstance(getattr(self, name), int):
                raise ConfigError(f"{name} is {getattr(self, name)!r}.", hint="Give a whole number.")
        if self.hosts > self.pages:
            raise ConfigError(
                f"{self.pages} pages are too few for {self.hosts} hosts.", hint="Each host needs at least one page."
            )
        if self.processes not in PROCESSES:
            raise ConfigError(f"processes is {self.processes!r}.", hint=f"Choose one of {', '.join(PROCESSES)}.")
        self._check_kinds()
        faults = sum(getattr(self, field.name) for field in fields(self) if field.name in FAULTS)
        if faults > 1:
            raise ConfigError("The shares of failing answers add up to more than 1.", hint="Lower some of them.")

    def _check_kinds(self) -> None:
        for name, share in self.kinds:
            if name not in KINDS:
                raise ConfigError(f"{name!r} is not a kind of host.", hint=f"Choose among {', '.join(KINDS)}.")
            if not (isfinite(share) and share >= 0):
                raise ConfigError(f"The share of {name} hosts is {share!r}.", hint="Give a number of at least 0.")
        if not sum(share for _, share in self.kinds) > 0:
            raise ConfigError("No kind of host is chosen.", hint="Give at least one kind a share above 0.")


FAULTS = ("error_share", "busy_share", "reset_share", "truncated_share", "stall_share", "drip_share")
_INF = float("inf")
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("pages", 1, 10_000_000),
    ("hosts", 1, 1_000_000),
    ("day", 1e-3, _INF),
    ("change_factor", 0, 1e9),
    ("rate_spread", 0, 5),
    ("requests", 1e-9, 1e9),
    ("zipf", 0, 5),
    ("popularity_correlation", -1, 1),
    ("sitemap_precision", 1e-6, 1),
    ("ping_precision", 1e-6, 1),
    ("ping_delay", 0, 1e6),
    ("storms_per_day", 0, 1e6),
    ("feed_items", 1, 10_000),
    ("gone_within", 1e-6, 1e9),
    ("crawl_delay", 0, 1e6),
    ("latency", 0, 3600),
    ("retry_after", 0, 1e9),
    ("stall_seconds", 0, 86400),
    ("drip_seconds", 0, 86400),
    ("signal_spread", 0, 1),
    *((field.name, 0, 1) for field in fields(SiteOptions) if field.name.endswith(("_share", "_recall"))),
)

# A web as crawlers meet it: `dataclasses.replace(SiteOptions(), **ROUGH)`.
ROUGH: dict[str, float] = {
    "latency": 0.05,
    "error_share": 0.01,
    "busy_share": 0.005,
    "reset_share": 0.003,
    "truncated_share": 0.003,
    "stall_share": 0.001,
    "drip_share": 0.002,
    "etag_wrong_share": 0.05,
    "last_modified_wrong_share": 0.15,
    "noisy_text_share": 0.02,
    "gone_share": 0.05,
    "disallowed_share": 0.02,
    "ping_delay": 0.01,
    "signal_spread": 0.5,
    "storms_per_day": 0.05,
}
