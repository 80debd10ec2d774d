"""Settings: the only place that knows TOML. afresh starts with none of them.

Each table of `afresh.toml` is one frozen dataclass; each field has its default, the way it is read, and one sentence of
help. An unknown key is an error that names the nearest known one. To add a setting: add a field here, use it where the
objects are built (`afresh.cli`), and run `make docs`.
"""

import difflib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from inspect import cleandoc
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, cast

from afresh.errors import ConfigError
from afresh.hours import Hours, Moments, hours, moments
from afresh.types import ADDRESSES, Address, Importance
from afresh.units import Budget, budget, cost, duration, importance, rate, show_duration, size

DEFAULT_PATH = Path("afresh.toml")
MAX_VERSIONS = 1_000  # of a page
MAX_KINDS = 8  # tables [[kind]]
MAX_SQL = 100_000  # characters
MAX_BAD_LINES = 10  # that are left out to find the store's path

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_HOST = re.compile(r"(?:\*\.)?[^\s/*?#@\\]+")


def _setting(default: str | float | bool | list[str], read: Callable[[Any], Any], help: str) -> Any:  # noqa: A002
    """A field that is written as `default` in the file and read by `read`."""
    return field(default=read(default), metadata={"written": default, "read": read, "help": help})


def _number(lowest: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value < 1e9:
            raise ConfigError(
                f"{value!r} is not a number between {lowest:g} and 1e9.", hint=f"Write {lowest:g} or more."
            )
        return float(value)

    return read


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{value!r} is not a share between 0 and 1.", hint="Write 0.1 for one in ten.")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{value!r} is not a whole number of at least 1.", hint="Write 1 or more.")
    return value


def _versions(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_VERSIONS:
        raise ConfigError(
            f"{value!r} is not a whole number from 0 to {MAX_VERSIONS}.", hint="Write 10, or 0 to keep none."
        )
    return value


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{value!r} is neither true nor false.", hint="Write true or false, without quotes.")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(each, str) and each and "/" not in each for each in value
    ):
        raise ConfigError(f"{value!r:.80} is not a list of names.", hint='Write it like [".*", "*.tmp"].')
    return tuple(value)


def _parameters(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{value!r:.80} is not a list of parameters.", hint='Write it like ["day=2026-11-17&n=5"].')
    return tuple(value)


def _sql(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value or len(value) > MAX_SQL:
        raise ConfigError(f"{value!r:.80} is no query.", hint='Write it in quotes: "SELECT …".')
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{value!r} is not a line of text.", hint='Write it in quotes: "like this".')
    return value


def _path(value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"{value!r} is not a file name.", hint='Write it in quotes: "afresh.db".')
    return Path(value).expanduser()


def _place(value: Any) -> Path | Address:
    if isinstance(value, str) and value.startswith(ADDRESSES):
        return Address(value)
    return _path(value)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in _text(value).replace(",", " ").split() if word)


def _ports(value: Any) -> frozenset[int]:
    words = _words(value)
    if not all(word.isascii() and word.isdecimal() and 0 < int(word[:6]) < 65536 for word in words):
        raise ConfigError(f"{value!r} is not a list of ports.", hint='Write numbers in quotes: "22, 8443".')
    return frozenset(int(word) for word in words)


def _networks(value: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(word) for word in _words(value))
    except ValueError as error:
        raise ConfigError(f"{error}.", hint='Write networks in quotes: "10.1.0.0/16, fd00::/8".') from None


def _some_time(value: Any) -> float:
    seconds = duration(value)
    if seconds < 1:
        raise ConfigError(f"{value!r} is less than a second.", hint='Write "1h" or "10min".')
    return seconds


def _hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(each, str) and _HOST.fullmatch(each) for each in value
    ):
        raise ConfigError(f"{value!r} is not a list of hosts.", hint='Write it like ["example.org", "*.example.net"].')
    return tuple(value)


# Every policy that can crawl live; `afresh.cli.build` knows what each is.
POLICIES = (
    *(
        "value",
        "mirror",
        "refresh-probabilities",
        "greedy",
        "greedy-cis",
        "greedy-ncis",
        "greedy-cis+",
        "greedy-ncis-d",
    ),
    *("uniform", "proportional", "nutch", "nutch-adaptive", "nutch-1.22", "stormcrawler", "stormcrawler-adaptive"),
    *("common-crawl-news", "heritrix", "miniflux", "yacy", "scrapy", "squid", "traffic-server"),
)


FEWEST_PROBES, MOST_PROBES = 0.001, 0.5  # a share of the refreshes
COSTS = ("significance", "staleness", "age", "query-quality")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _cost(value: Any) -> str:
    if value not in COSTS and not (isinstance(value, str) and _FUNCTION.fullmatch(value)):
        raise ConfigError(
            f"There is no cost {str(value)[:80]!r}.",
            hint=f'Known are {", ".join(COSTS)}, or a function of your own: "module:function".',
        )
    return str(value)


def _function_or_nothing(value: Any) -> str:
    if value != "" and not (isinstance(value, str) and _FUNCTION.fullmatch(value)):
        raise ConfigError(f"{value!r:.80} is no function.", hint='Write it like "module:function".')
    return str(value)


def _probes(value: Any) -> float:
    if not FEWEST_PROBES <= _share(value) <= MOST_PROBES:
        raise ConfigError(
            f"{value!r} is no share from {FEWEST_PROBES:g} to {MOST_PROBES:g}.",
            hint="Write 0.05 for one in twenty: fewer teach next to nothing, and more take too much of the budget.",
        )
    return float(value)


def _policy(value: Any) -> str:
    if value not in POLICIES:
        near = difflib.get_close_matches(str(value)[:80], POLICIES, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"There is no policy {str(value)[:80]!r}.", hint=f"{hint}Known are {', '.join(POLICIES)}.")
    return str(value)


def _budget_hours(value: Any) -> tuple[tuple[Hours, float], ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and "=" in each for each in value):
        raise ConfigError(f"{value!r} is not a list of hours and rates.", hint='Write it like ["22:00-06:00 = 10/s"].')
    pairs = (each.split("=", 1) for each in value)
    return tuple((hours(when), budget(how_much.strip())) for when, how_much in pairs)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where copies and history are kept."""

    path: Path | Address = _setting(
        "afresh.db",
        _place,
        "The file that holds pages, copies, history and beliefs; or a database: postgresql://user@host/name.",
    )
    history: int = _setting(100, _count, "How many of the latest crawls of each page are kept.")
    max_bytes: int = _setting(
        "0B", size, "From 95 % of this on the store accepts no new pages, and it does not grow beyond it; 0B: no bound."
    )
    versions: int = _setting(
        0, _versions, "How many earlier versions of each page are kept, for `afresh diff`; 0: none, 1000 at most."
    )
    versions_age: float = _setting(
        "0s", duration, "Earlier versions go this long after they were replaced; 0s: they may stay."
    )
    versions_bytes: int = _setting(
        "16MiB", size, "What the earlier versions of one page may take together, compressed; 0B: no bound."
    )
    max_inbox: int = _setting(
        "64MiB", size, "How much may wait in the inbox while no `afresh run` reads it; more is refused."
    )


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """How much is crawled."""

    budget: Budget = _setting(
        "1/s",
        budget,
        "Crawls at a constant rate; no more are ordered in any second. Or what they cost: bytes, 5 MB/s.",
    )
    budget_hours: tuple[tuple[Hours, float], ...] = _setting(
        [], _budget_hours, 'Other budgets at other hours, UTC or with a zone: ["mon-fri 08:00-18:00 = 10/min"].'
    )
    policy: str = _setting(
        "value",
        _policy,
        "What picks the next page: the value of a crawl; mirror, by rates learned from costs; or the rule of another "
        "crawler to compare it with.",
    )
    cost: str = _setting(
        "significance",
        _cost,
        "With policy mirror, what an outdated copy costs: significance of the change times importance, staleness, age, "
        "query-quality (see [index]), "
        'or a function of your own, "module:function".',
    )
    probes: float = _setting(
        0.05,
        _probes,
        "With policy mirror, the share of refreshes before which a probe looks and keeps the copy; 0.001 to 0.5.",
    )
    sweep: float = _setting(
        0.02, _share, "This share of the crawls, rounded to one in n, visits the copies left alone longest; 0: none."
    )
    concurrency: int = _setting(64, _count, "How many fetches may be under way at once.")
    max_unwritten: int = _setting(
        "256MiB", size, "Largest total of bodies in memory that are not yet stored; at this size no new fetch begins."
    )
    memory: int = _setting(
        "256MiB",
        size,
        "Memory for the addresses that a crawl knows; what is found beyond it is known and waits on disk.",
    )
    grace: float = _setting("10s", duration, "How long fetches under way may continue after a stop signal.")
    gone_retry: float = _setting(
        "1h",
        _some_time,
        "A page that is gone (404, 410) is checked again after this time, which doubles with each check.",
    )
    request_memory: float = _setting("30d", duration, "How long requests count for a page's ordinary request rate.")
    burst_memory: float = _setting("12h", duration, "How long requests count for a burst of interest above that rate.")
    never: tuple[str, ...] = _setting(
        [], _hosts, "Hosts that are never contacted, such as example.org, or whole domains, such as *.example.net."
    )
    kinds: bool = _setting(
        True, _yes_or_no, "Kinds of pages are told at the first crawl, and help to foretell new pages."
    )
    sitemaps: bool = _setting(True, _yes_or_no, "The sitemaps that robots.txt names are read, as change hints.")
    feeds: bool = _setting(True, _yes_or_no, "The feeds that pages name are read, as change hints.")
    penalty: float = _setting(
        0.0, _number(0), "What a refresh that finds nothing new counts for besides, in units of the budget."
    )


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How pages are fetched."""

    contact: str = _setting("", _text, "A URL or address that site owners find in the User-Agent line.")
    timeout: float = _setting("60s", duration, "Deadline for one whole fetch, redirects included.")
    connect_timeout: float = _setting("15s", duration, "Deadline for a connection, TLS included.")
    lookup_timeout: float = _setting("10s", duration, "Deadline for finding the address of a host name.")
    max_body: int = _setting("16MiB", size, "Largest body, before and after inflation; larger ones count as failed.")
    max_redirects: int = _setting(5, _count, "How many redirects are followed.")
    allow_downgrade: bool = _setting(False, _yes_or_no, "Follow redirects from https to http.")
    allow_private: bool = _setting(False, _yes_or_no, "Also fetch from private and loopback addresses.")
    allow_networks: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "", _networks, "Private networks to fetch from nevertheless, such as 10.1.0.0/16, separated by commas."
    )
    allow_ports: frozenset[int] = _setting(
        "", _ports, "Ports to fetch from, besides 80, 443 and those from 1024 on that belong to no other service."
    )
    unverified_hosts: tuple[str, ...] = _setting(
        "", _words, "Host names whose certificate is not checked, separated by commas."
    )


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How long a host is left alone between fetches."""

    factor: float = _setting(
        10.0, _number(0), "After an answer, a host rests for this many times the time that the answer took,"
    )
    shortest_gap: float = _setting("1s", duration, "but at least this long,")
    longest_gap: float = _setting("5min", duration, "and at most this long.")
    first_back_off: float = _setting(
        "10s", duration, "Rest after a failure (a minute if robots.txt fails); it doubles each time in a row,"
    )
    longest_back_off: float = _setting("1h", duration, "up to this; also the longest Retry-After that is respected.")
    address_at_once: int = _setting(
        8, _count, "At most this many hosts on one network address are asked at the same time."
    )
    address_share: float = _setting(
        0.1, _number(0), "After a request to any of its hosts, an address rests for this share of the host's rest."
    )
    address_names: int = _setting(10_000, _count, "At most this many hosts on one address are fetched from.")
    robots: bool = _setting(True, _yes_or_no, "Obey robots.txt. Set false only for your own hosts.")


def _selectors(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each.strip() for each in value):
        raise ConfigError(f"{value!r} is not a list of CSS selectors.", hint='Write it like ["main", ".price"].')
    return tuple(value)


def _way(value: Any) -> str:
    if value not in ("text", "bytes"):
        raise ConfigError(f"{value!r} is no way to compare pages.", hint='Write "text" or "bytes".')
    return str(value)


def _importance(value: Any) -> Importance | None:
    return None if value == "" else importance(value if isinstance(value, str | int | float) else "")


def _site_host(value: Any) -> str:
    """The host of a rule; a rule for something that is no host name would silently never apply."""
    if value and not (isinstance(value, str) and _HOST.fullmatch(value)):
        raise ConfigError(f"{value!r} is not a host.", hint='Write it like "example.org" or "*.example.net".')
    return str(value).lower()


def _site_path(value: Any) -> str:
    if value and (not _text(value).startswith("/") or " " in value):
        raise ConfigError(f"{value!r} is not a path.", hint='Write it like "/news/*".')
    return str(value)


def _kind_name(value: Any) -> str:
    if not isinstance(value, str) or (value and not _NAME.fullmatch(value)):
        raise ConfigError(f"{value!r:.80} is not a name of a kind.", hint="Write letters, digits, - and _, at most 40.")
    return value


def _spread(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1.2 <= value <= 1000:
        raise ConfigError(f"{value!r} is no factor between 1.2 and 1000.", hint="Write 3 for three times.")
    return float(value)


def _cost_of_refresh(value: Any) -> tuple[float, str]:
    found, unit = cost(value)
    if not 0 < found < 1e12:
        raise ConfigError(f"{value!r} is not what a refresh can cost.", hint='Write it like "200 kB" or "0.5 s".')
    return found, unit


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and "//" in each for each in value):
        raise ConfigError(f"{value!r:.80} is not a list of addresses.", hint='Write ["https://example.com/shop/*"].')
    return tuple(value)


def _phrases(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each.strip() for each in value):
        raise ConfigError(f"{value!r:.80} is not a list of words.", hint='Write it like ["in stock", "sold out"].')
    return tuple(" ".join(each.split()).casefold() for each in value)


CHANGES = ("new", "changed", "gone", "failing", "well")


def _changes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not set(map(str, value)) <= set(CHANGES):
        raise ConfigError(f"{value!r:.80} is not a list of changes.", hint=f"Write some of {list(CHANGES)}.")
    return tuple(map(str, value))


def _keys(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and ":" in each for each in value):
        hint = 'Write ["https://example.com/shop/*"], or file:///srv/* or sql:shop/*.'
        raise ConfigError(f"{value!r:.80} is not a list of addresses.", hint=hint)
    return tuple(value)


def _quiet(value: Any) -> Hours:
    read = hours(value)
    if read.always:
        raise ConfigError(f"{value!r:.80} leaves no time for messages.", hint="Leave some hours out, or the rule.")
    return read


def _or_nothing(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Like `read`, but an empty text gives None."""
    return lambda value: None if value == "" else read(value)


def _interval(value: Any) -> float:
    seconds = duration(value)
    if not seconds > 0:
        raise ConfigError(f"{value!r} is no interval.", hint='Write it like "10min", or leave the line out.')
    return seconds


def _site_budget(value: Any) -> float:
    per_second = rate(value)
    if not per_second > 0:
        raise ConfigError(f"{value!r} is no budget.", hint='Write it like "100/h", or use `afresh pause --host`.')
    return per_second


def _hours_text(value: Any) -> str:
    return hours(value).text if value else ""


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What counts as a change on one site, and how often it is crawled. There may be any number of these tables.

    If several match a page, the most specific one wins: a name before a domain, a long path before a short one. keep,
    drop and compare hold for one whole host: they are refused together with path, or for a domain (*.example.net).
    """

    host: str = _setting("", _site_host, "The site's host name, or a whole domain: *.example.net.")
    path: str = _setting("", _site_path, "Only pages with this path, such as /news/*. Empty: all.")
    keep: tuple[str, ...] = _setting(
        [], _selectors, "CSS selectors of what counts. Empty: everything that the page shows."
    )
    drop: tuple[str, ...] = _setting([], _selectors, "CSS selectors of what does not count.")
    compare: str = _setting("text", _way, '"text": the text that pages show counts; "bytes": every byte counts.')
    importance: Importance | None = _setting(
        "", _importance, 'Requests per second of each page, or "x5": five times what is learned. Empty: learned.'
    )
    shortest_interval: float | None = _setting(
        "", _or_nothing(_interval), "Each page is crawled at most once in this time, such as 10min. Empty: no limit."
    )
    longest_interval: float | None = _setting(
        "", _or_nothing(_interval), "Each page is crawled at least once in this time, such as 1d. Empty: no limit."
    )
    hours: str = _setting(
        "", _hours_text, "Pages are crawled within these hours, UTC or with a zone: mon-fri 08:00-18:00. Empty: always."
    )
    budget: float | None = _setting(
        "",
        _or_nothing(_site_budget),
        "At most this many crawls of each matching host, or of path there, such as 100/h. Empty: no limit.",
    )


@dataclass(frozen=True, slots=True)
class KindSettings:
    """What is known of a kind of pages: of one that afresh tells, or of one of your own. There may be any number.

    afresh tells article, service, forum, product, listing, collection and documentation by itself.
    """

    name: str = _setting("", _kind_name, "The kind: one of those, or any other name.")
    pages: tuple[str, ...] = _setting(
        [], _patterns, "Addresses of pages of this kind, with * for anything. Empty: afresh tells by the page."
    )
    change_rate: float | None = _setting(
        "", _or_nothing(rate), "How often a typical page changes, such as 2/day, until its own crawls say more."
    )
    spread: float | None = _setting(
        "",
        _or_nothing(_spread),
        "Two thirds of its pages change at most this factor faster or slower. It needs change_rate.",
    )
    cost: tuple[float, str] | None = _setting(
        "",
        _or_nothing(_cost_of_refresh),
        'What a refresh costs, such as "200 kB" or "0.5 s": used if the budget is in that unit, until crawls say more.',
    )
    value: float = _setting(1.0, _number(0), "How many times more its pages are wanted than others.")


def _listen(value: Any) -> tuple[str, int]:
    text = _text(value)
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port[:6]) > 65535:
        raise ConfigError(f"{text[:80]!r} is no place to listen at.", hint='Write it like "127.0.0.1:8080".')
    return host.strip("[]"), int(port)


def _served_host(value: Any) -> str:
    if value and not (isinstance(value, str) and re.fullmatch(r"[^\s/*?#@\\]+", value)):
        raise ConfigError(f"{value!r:.80} is not a host.", hint='Write it like "www.example.com".')
    return str(value).lower()


def _origin(value: Any) -> str:
    text = _text(value).rstrip("/")
    if value and not re.fullmatch(r"https?://[^\s/?#@\\]+(?:/[^\s?#\\]*)?", text):
        raise ConfigError(f"{text[:80]!r} is no origin.", hint='Write it like "http://10.0.0.5:8080".')
    return text


def _stale(value: Any) -> bool:
    if value not in ("wait", "serve"):
        raise ConfigError(f"{value!r:.80} is no way to treat stale copies.", hint='Write "wait" or "serve".')
    return bool(value == "serve")


# What may do something when it is asked for, as paths often say.
WITH_EFFECTS: tuple[str, ...] = (
    "*logout",
    "*log-out",
    "*signout",
    "*sign-out",
    "*unsubscribe",
    "*delete",
    "*remove",
    "*/cart",
    "*/vote",
    "*logoff",
    "*log-off",
    "*destroy",
    "*/purge",
    "*/checkout",
    "*/buy",
)


def _globs(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise ConfigError(f"{value!r:.80} is not a list of patterns.", hint='Write ["/admin/*", "*logout"].')
    return tuple(value)


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            known = " or ".join(f'"{word}"' for word in words)
            raise ConfigError(f"{value!r:.80} is not known here.", hint=f"Write {known}.")
        return str(value)

    return read


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Full text over the copies, for `afresh search`."""

    enabled: bool = _setting(False, _yes_or_no, "`afresh run` keeps a full-text index of the copies.")
    tokenizer: str = _setting(
        "words",
        _one_of("words", "english"),
        '"words" as they are, but for accents and capitals; "english" also joins the forms of a word.',
    )
    engine: str = _setting(
        "fts5",
        _one_of("fts5", "tantivy"),
        '"fts5" keeps words in the store; "tantivy", an extra to install, beside it: for many searches, see [search].',
    )
    title_weight: float = _setting(
        8.0, _number(0), "A word in the title counts this many times as much as one in the text."
    )
    heading_weight: float = _setting(3.0, _number(0), "A word in a heading counts this many times as much.")
    authority: float = _setting(0.3, _share, "Links from other pages raise a score by up to this share; 0: not at all.")
    max_text: int = _setting("256KiB", size, "So much of the text of each copy is indexed.")
    queries: int = _setting(500, _count, "So many of the most frequent queries are followed, to measure the answers.")
    weigh: str = _setting(
        "requests",
        _one_of("requests", "quality"),
        'What makes a page worth refreshing: "requests", searches included; "quality", what stale copies cost them.',
    )
    report: str = _setting(
        "",
        _function_or_nothing,
        'A function of your own, "module:function", that says how far a change moves a report.',
    )


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The serving cache, `afresh serve`: where it listens, what it keeps, and which ways in are open."""

    listen: tuple[str, int] = _setting("127.0.0.1:8080", _listen, "Address and port that readers come to.")
    memory: int = _setting("256MiB", size, "Answers kept in memory; beyond it the least valuable leave.")
    max_object: int = _setting("16MiB", size, "Larger bodies are handed on, and not kept.")
    evict: str = _setting(
        "value", _one_of("value", "lru"), 'What leaves first: the least "value" per byte, or the longest unused, "lru".'
    )
    max_pages: int = _setting(
        100_000,
        _count,
        "Pages that readers ask for enter the store up to this many; then they displace others.",
    )
    connections: int = _setting(32, _count, "At most this many connections to one origin.")
    max_stale: float = _setting("1d", duration, "How long a stale copy may stand in for an origin that fails.")
    mirror: tuple[str, ...] = _setting(
        [], _hosts, "Hosts that may be read by a path like /https://example.com/page, or domains: *.example.net."
    )
    forward: bool = _setting(False, _yes_or_no, "Be a forward proxy for http:// addresses of any public host.")
    connect: bool = _setting(False, _yes_or_no, "As a forward proxy, also pass TLS through to port 443 (CONNECT).")
    max_request: int = _setting("64MiB", size, "Largest body of a request.")
    idle: float = _setting("60s", duration, "How long a connection may wait for its next request.")
    access_log: str = _setting("", _text, 'File for a line for every answer; "-" is standard output. Empty: none.')
    access_log_format: str = _setting("common", _one_of("common", "json"), '"common" or "json".')
    trusted: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "", _networks, "Networks of terminators in front, whose X-Forwarded-For is believed in the access log."
    )
    prefetch_memory: int = _setting(
        "32MiB", size, "What is learned of the paths of readers takes no more; for sites with `prefetch`."
    )
    purge_tokens: str = _setting("", _text, "File (mode 0600) of tokens that PURGE takes, one a line. Empty: none.")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """One site that `afresh serve` answers for. There may be any number of these tables."""

    host: str = _setting("", _served_host, "The host name that readers ask for.")
    prefix: str = _setting(
        "",
        _site_path,
        "The beginning of the path, such as /docs: at this host, or without one at any host that has no table.",
    )
    origin: str = _setting("", _origin, "Where the pages are, such as http://10.0.0.5:8080.")
    strict: bool = _setting(False, _yes_or_no, "Follow the origin's lifetimes to the letter (RFC 9111).")
    threshold: float = _setting(
        0.5, _share, "Without strict: a copy is handed out if it is fresh with this probability at least."
    )
    stale: bool = _setting(
        "wait",
        _stale,
        '"wait": below it readers wait for the origin; "serve": they get the old copy meanwhile.',
    )
    prefetch: bool = _setting(
        False, _yes_or_no, "Fetch ahead what readers are likely to ask for next, in turns that `afresh run` lends."
    )
    cost_per_kb: float = _setting(
        0.0,
        _number(0),
        "Only where 1,000 bytes save more than so many requests from waiting; rises with the fetches that readers "
        "wait for.",
    )
    prefetch_except: tuple[str, ...] = _setting(
        ["*?*", *WITH_EFFECTS],
        _globs,
        "Never ahead of readers: paths (with their queries) in which one of these is found; * is anything. "
        "Of these, those without ? are not kept for being asked for, either.",
    )


def _listen_or_not(value: Any) -> tuple[str, int] | None:
    return None if value == "" else _listen(value)


def _public_url(value: Any) -> str:
    text = _text(value).rstrip("/")
    if value and not re.fullmatch(r"https?://[^\s/?#@\\]+(?:/[^\s?#\\]*)?", text):
        raise ConfigError(
            f"{text[:80]!r} is no address of this machine.", hint='Write it like "https://crawler.example.com".'
        )
    return text


@dataclass(frozen=True, slots=True)
class ReceiveSettings:
    """What others may send to a running crawl: signals, IndexNow, WebSub."""

    listen: tuple[str, int] | None = _setting(
        "", _listen_or_not, "Address and port where signals are received, such as 127.0.0.1:8090. Empty: nowhere."
    )
    public_url: str = _setting(
        "", _public_url, "How hubs on the web reach it, such as https://crawler.example.com. Empty: no WebSub."
    )
    tokens: Path = _setting("afresh.tokens", _path, "The file of tokens (mode 0600), which `afresh token` writes.")
    max_body: int = _setting("4MiB", size, "Largest body that is received; a larger one is refused.")
    indexnow: float = _setting("10000/h", rate, "Addresses that one host may submit by IndexNow; 0: not received.")
    rate: float = _setting("25000/s", rate, "Signals that one token may send; ten seconds' worth may come at once.")


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The console in the browser, its API, feeds and metrics. Tokens are those of [receive]."""

    listen: tuple[str, int] | None = _setting(
        "",
        _listen_or_not,
        "Address and port of the console, such as 127.0.0.1:8600; not on loopback, reading needs a token. "
        "Empty: nowhere.",
    )
    public_url: str = _setting(
        "", _public_url, "How browsers reach it by a name of its own, such as https://crawl.example.com."
    )


@dataclass(frozen=True, slots=True)
class FilesSettings:
    """Files and folders that were added: how often they are looked at, and what is kept of them."""

    budget: Budget = _setting(
        "100/s",
        budget,
        "Looks at files and folders a second; or what they cost: 5 MB/s, 0.1 s/s.",
    )
    penalty: float = _setting(
        0.0, _number(0), "What a look that finds nothing new counts for besides, in units of the budget."
    )
    hash_every: float = _setting(
        "7d",
        duration,
        "After this long a file is read even if size and times are the same: they can lie. 0s: never.",
    )
    max_size: int = _setting("16MiB", size, "Larger files count as failed.")
    exclude: tuple[str, ...] = _setting(
        [".*", "*~"], _names, "Names in folders that are left out, with * for anything."
    )
    timeout: float = _setting("30s", duration, "How long a mount may take to answer.")
    notices: bool = _setting(
        True, _yes_or_no, "Listen to the operating system's notices of changes, if the package watchfiles is there."
    )


def _secret(value: Any) -> str:
    if value and not (_text(value)[0] in "$@" and len(value) > 1):
        raise ConfigError("A secret stands in the settings.", hint='Write "$NAME", and set it in the environment.')
    return str(value)


def _mail_server(value: Any) -> str:
    text = _text(value)
    if value and not re.fullmatch(r"smtps?://(?:[^\s/@:]+@)?[^\s/@:]+(?::\d{1,5})?/?|[$@].+", text):
        hint = 'Write it like "smtp://me@mail.example.com:587"; the password has a setting of its own.'
        raise ConfigError("What stands there is no mail server.", hint=hint)
    return text


def _definition_name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigError(f"{value!r:.80} is no name.", hint="Write letters, digits, - and _, at most 40.")
    return value


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """A database whose queries are kept. There may be any number. Each has a budget of its own.

    A URL with a password is refused: "$SHOP_URL" is found in the environment, "@/run/secrets/shop" in a file.
    """

    name: str = _setting("", _or_nothing(_definition_name), "Its name, which queries and keys use.")
    url: str = _setting("", _text, "Such as postgresql://reader@db/shop, sqlite:shop.db, $NAME or @FILE.")
    budget: Budget = _setting("0.2 s/s", budget, "What refreshes may take of its time, or how many there may be: 10/s.")
    penalty: float = _setting(
        0.0, _number(0), "What a refresh that finds nothing new counts for besides, in units of the budget."
    )
    timeout: float = _setting("30s", duration, "A query that takes longer is ended.")
    max_rows: int = _setting(100_000, _count, "A result with more rows counts as failed.")
    max_size: int = _setting("16MiB", size, "A larger result counts as failed.")
    max_kept: int = _setting(
        "256MiB", size, "Results that came because they were asked for; beyond this those asked for least leave."
    )
    connections: int = _setting(2, _count, "At most this many connections.")
    notify: str = _setting("", _text, "PostgreSQL: the channel on which NOTIFY says what has changed. Empty: none.")
    watch: bool = _setting(True, _yes_or_no, "Look every second whether counters of tables, or the file, have changed.")


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """A query whose results are kept. There may be any number of these tables."""

    name: str = _setting("", _or_nothing(_definition_name), "Its name, by which applications ask for it.")
    database: str = _setting("", _or_nothing(_definition_name), "The name of its database.")
    sql: str = _setting("", _sql, "One statement that only reads; parameters are written :name.")
    keep: tuple[str, ...] = _setting(
        [],
        _parameters,
        'Parameters to keep results for: ["day=2026-11-17&n=5"]. Others come when asked for.',
    )


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Who is told of which changes. There may be any number of these tables, each with a name of its own."""

    name: str = _setting("", _or_nothing(_definition_name), "Its name, under which the store keeps its messages.")
    to: str = _setting(
        "",
        _text,
        '"https://…" for a webhook, "mailto:me@example.com", "command:PROGRAM", "apprise:SCHEME://…"; or $NAME or '
        "@FILE, where a webhook's address is found.",
    )
    secret: str = _setting(
        "", _secret, "What a webhook's messages are signed with: $NAME in the environment, or @FILE. Empty: unsigned."
    )
    hosts: tuple[str, ...] = _setting([], _hosts, "Only these hosts, or domains: *.example.net. Empty: all.")
    pages: tuple[str, ...] = _setting([], _keys, "Only these addresses, with * for anything. Empty: all.")
    on: tuple[str, ...] = _setting(
        ["changed", "gone"],
        _changes,
        "Of what: new (a first copy), changed, gone; failing, when crawls fail in a row; well, when that is over.",
    )
    failures: int = _setting(3, _count, "failing and well: only after so many crawls in a row that failed.")
    appear: tuple[str, ...] = _setting([], _phrases, "Only if one of these words has come,")
    disappear: tuple[str, ...] = _setting([], _phrases, "or one of these is gone. Both empty: whatever the words are.")
    significance: float = _setting(0.0, _share, "Only changes of at least this share of the text.")
    quiet: Hours | None = _setting(
        "", _or_nothing(_quiet), "No messages in these hours, UTC or with a zone; they go afterwards. Empty: always."
    )
    digest: Moments | None = _setting(
        "", _or_nothing(moments), "One message at these times of day: mon-fri 08:00 Europe/Berlin. Empty: one a change."
    )


@dataclass(frozen=True, slots=True)
class MailSettings:
    """How e-mail leaves, for `[[notify]]`."""

    server: str = _setting(
        "", _mail_server, "Such as smtp://me@mail.example.com:587 (with STARTTLS) or smtps://…:465; or $NAME, @FILE."
    )
    password: str = _setting("", _secret, "The password of its user: $NAME in the environment, or @FILE.")
    sender: str = _setting("", _text, "The address that messages come from. Empty: the user of the server.")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, one attribute a table."""

    store: StoreSettings = field(default_factory=StoreSettings)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    site: tuple[SiteSettings, ...] = ()
    kind: tuple[KindSettings, ...] = ()
    index: IndexSettings = field(default_factory=IndexSettings)
    proxy: ProxySettings = field(default_factory=ProxySettings)
    receive: ReceiveSettings = field(default_factory=ReceiveSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    serve: tuple[ServeSettings, ...] = ()
    files: FilesSettings = field(default_factory=FilesSettings)
    database: tuple[DatabaseSettings, ...] = ()
    query: tuple[QuerySettings, ...] = ()
    notify: tuple[NotifySettings, ...] = ()
    mail: MailSettings = field(default_factory=MailSettings)

    @property
    def importance(self) -> dict[str, Importance]:
        """The importance of the pages of each site that has one set."""
        whole = [site for site in self.site if not site.path and not site.host.startswith("*.")]
        return {site.host: site.importance for site in whole if site.importance is not None}

    @property
    def fed(self) -> bool:
        """Whether pages come in by readers who ask for them: then a store begins without any."""
        return any(not site.strict for site in self.serve)


# The tables that may appear any number of times, [[site]] and its like; all others may appear once.
MANY = ("site", "kind", "serve", "database", "query", "notify")
TABLES: dict[str, type] = {
    each.name: cast(type, each.default_factory) for each in fields(Config) if each.name not in MANY
}


def load(path: Path | None = None) -> Config:
    """The settings in a file; without a path, those in ./afresh.toml if it is there, else the defaults.

    Relative paths of the store and of the tokens are relative to the folder that the file is in.
    """
    if path is None:
        if not DEFAULT_PATH.exists():
            return Config()
        path = DEFAULT_PATH
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"The settings in {path} cannot be read: {reason}.", hint="Write a new file with `afresh init`."
        ) from None
    config = parse(text, where=str(path))
    store = replace(config.store, path=_in(path.parent, config.store.path))
    receive = replace(config.receive, tokens=path.parent / config.receive.tokens)
    here = path.parent.absolute()
    databases = tuple(replace(each, url=_beside(here, each.url)) for each in config.database)
    return replace(config, store=store, receive=receive, database=databases)


def _in(folder: Path, place: Path | Address) -> Path | Address:
    return place if isinstance(place, Address) else folder / place


def _beside(folder: Path, url: str) -> str:
    """The URL of a database, whose file is relative to a folder.

    >>> _beside(Path("/etc"), "sqlite:shop.db"), _beside(Path("/etc"), "$SHOP_URL")
    ('sqlite:/etc/shop.db', '$SHOP_URL')
    """
    if not url.startswith("sqlite:") or url.startswith(("sqlite:/", "sqlite::")):
        return url
    return f"sqlite:{folder / url.removeprefix('sqlite:')}"


def store_named(path: Path | None = None) -> Path | Address | None:
    """The store that a file of settings names, whatever else is wrong in it; None if that cannot be read."""
    path = DEFAULT_PATH if path is None else path
    try:
        table = _without_bad_lines(path.read_text(encoding="utf-8")).get("store", {})
        named = {"path": table["path"]} if "path" in table else {}
        return _in(path.parent, cast(StoreSettings, _parse_table("store", StoreSettings, named, str(path))).path)
    except (OSError, ValueError, TypeError, ConfigError):
        return None


def _without_bad_lines(text: str) -> dict[str, Any]:
    """The tables of a TOML text but for a few lines that are wrong; ValueError if one may have named the store.

    >>> _without_bad_lines('[store]\\npath = "a.db"\\n[crawl]\\nbudget = 5/s\\n')
    {'store': {'path': 'a.db'}, 'crawl': {}}
    """
    lines = text.splitlines()
    for _ in range(MAX_BAD_LINES):
        try:
            return tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"\(at line (\d+), column", str(error))
            wrong = lines[int(place[1]) - 1] if place else ""
            if place is None or "[" in wrong or "path" in wrong or "store" in wrong:
                raise
            lines[int(place[1]) - 1] = ""
    raise ValueError("more is wrong than right")


def parse(text: str, where: str = "the settings") -> Config:
    """The settings in a TOML text.

    >>> parse('[crawl]\\nbudget = "600/min"').crawl.budget
    Budget(10.0, 'calls')
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.", hint="Compare it with `afresh init`.") from None
    read: dict[str, Any] = {}
    for name, values in tables.items():
        if name == "site" and isinstance(values, list):
            read[name] = tuple(_parse_site(each, where) for each in values)
        elif name == "kind" and isinstance(values, list):
            read[name] = _parse_kinds(values, where)
        elif name == "serve" and isinstance(values, list):
            read[name] = _parse_serves(values, where)
        elif name == "database" and isinstance(values, list):
            read[name] = _parse_named(name, DatabaseSettings, values, ("name", "url"), where)
        elif name == "query" and isinstance(values, list):
            read[name] = _parse_named(name, QuerySettings, values, ("name", "database", "sql"), where)
        elif name == "notify" and isinstance(values, list):
            read[name] = _parse_named(name, NotifySettings, values, ("name", "to"), where)
        elif name in TABLES and isinstance(values, dict):
            read[name] = _parse_table(name, TABLES[name], values, where)
        else:
            raise _unknown_table(name, where)
    config = Config(**read)
    _check_order(config.politeness, where)
    _check_units(config.crawl, where)
    return config


def _check_units(crawl: CrawlSettings, where: str) -> None:
    """Refuse budgets of other hours in another unit."""
    for _, each in crawl.budget_hours:
        if getattr(each, "unit", "calls") != crawl.budget.unit:
            raise ConfigError(
                f"crawl.budget_hours in {where} are in another unit than crawl.budget.", hint="Write all in one unit."
            )


def _check_order(polite: PolitenessSettings, where: str) -> None:
    """Refuse a shortest rest that is longer than the longest."""
    for least, most in (("shortest_gap", "longest_gap"), ("first_back_off", "longest_back_off")):
        low, high = getattr(polite, least), getattr(polite, most)
        if low > high:
            raise ConfigError(
                f"politeness.{least} ({show_duration(low)}) is longer than politeness.{most} ({show_duration(high)}) "
                f"in {where}.",
                hint=f"Raise {most}, or lower {least}.",
            )


def _unknown_table(name: str, where: str) -> ConfigError:
    """What is wrong with a name outside all tables, or with the name of a table that does not exist."""
    owners = [table for table, settings in TABLES.items() if name in {each.name for each in fields(settings)}]
    if owners:
        return ConfigError(f"{name} stands outside its table ({where}).", hint=f"Write it below a line [{owners[0]}].")
    return _unknown(f"[{name}]", [*(f"[{table}]" for table in TABLES), *(f"[[{table}]]" for table in MANY)], where)


def _parse_site(values: Any, where: str) -> object:
    if not isinstance(values, dict) or not values.get("host"):
        raise ConfigError(f"A [[site]] in {where} has no host.", hint='Write host = "example.com" below it.')
    site = cast(SiteSettings, _parse_table("site", SiteSettings, values, where))
    if (site.path or site.host.startswith("*.")) and (site.keep or site.drop or site.compare != "text"):
        hint = "Leave path out, and name one host without *."
        raise ConfigError(f"keep, drop and compare hold for one whole host, not for {site.host}{site.path}.", hint=hint)
    if site.shortest_interval and site.longest_interval and site.shortest_interval > site.longest_interval:
        raise ConfigError(
            f"The shortest interval of {site.host}{site.path} is longer than its longest.",
            hint="Exchange shortest_interval and longest_interval.",
        )
    return site


def _parse_kinds(tables: list[Any], where: str) -> tuple[KindSettings, ...]:
    if not all(isinstance(each, dict) and each.get("name") for each in tables):
        raise ConfigError(f"A [[kind]] in {where} has no name.", hint='Write name = "product" below it.')
    kinds = [cast(KindSettings, _parse_table("kind", KindSettings, each, where)) for each in tables]
    for each in kinds:
        if each.spread is not None and each.change_rate is None:
            raise ConfigError(
                f"The [[kind]] {each.name} in {where} has a spread, and no change_rate.",
                hint='Write change_rate = "2/day" beside it.',
            )
    names = [each.name for each in kinds]
    if len(set(names)) < len(names) or len(kinds) > MAX_KINDS:
        raise ConfigError(
            f"The [[kind]] tables in {where} name a kind twice, or more than {MAX_KINDS}.", hint="Join or drop some."
        )
    return tuple(kinds)


def _parse_serves(tables: list[Any], where: str) -> tuple[ServeSettings, ...]:
    sites = tuple(_parse_serve(each, where) for each in tables)
    said = [f"{site.host.lower()}{site.prefix.rstrip('/')}" or "/" for site in sites]
    if twice := next((each for each in said if said.count(each) > 1), None):
        raise ConfigError(f"Two [[serve]] in {where} are for {twice}.", hint="Drop one of them.")
    return sites


def _parse_serve(values: Any, where: str) -> ServeSettings:
    if not isinstance(values, dict) or not values.get("origin") or not (values.get("host") or values.get("prefix")):
        hint = 'Write host = "www.example.com" and origin = "http://10.0.0.5:8080" below it.'
        raise ConfigError(f"A [[serve]] in {where} needs an origin, and a host or a prefix.", hint=hint)
    return cast(ServeSettings, _parse_table("serve", ServeSettings, values, where))


def _parse_named(name: str, table: type, tables: list[Any], required: tuple[str, ...], where: str) -> tuple[Any, ...]:
    """Tables that have names, each its own, and cannot do without some settings."""
    for each in tables:
        missing = [key for key in required if not isinstance(each, dict) or not each.get(key)]
        if missing:
            raise ConfigError(
                f"A [[{name}]] in {where} has no {missing[0]}.", hint=f'Write {missing[0]} = "…" below it.'
            )
    read = tuple(cast(Any, _parse_table(name, table, each, where)) for each in tables)
    names = [each.name for each in read]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise ConfigError(f"Two [[{name}]] in {where} are called {twice}.", hint="Give each a name of its own.")
    return read


def _parse_table(name: str, table: type, values: dict[str, Any], where: str) -> object:
    known = {each.name: each for each in fields(table)}
    read: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise _unknown(f"{name}.{key}", [f"{name}.{each}" for each in known], where)
        try:
            read[key] = known[key].metadata["read"](value)
        except ConfigError as error:
            raise ConfigError(f"{name}.{key} in {where}: {error.message}", hint=error.hint) from None
    return table(**read)


# What other crawlers call settings, and what does that here.
_ELSEWHERE = {"fetch.user_agent": "The User-Agent line names afresh and what fetch.contact says."}


def _unknown(name: str, known: list[str], where: str) -> ConfigError:
    if name in _ELSEWHERE:
        return ConfigError(f"There is no setting {name} ({where}).", hint=_ELSEWHERE[name])
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}."
    return ConfigError(f"There is no setting {name} ({where}).", hint=hint)


def template() -> str:
    """A commented `afresh.toml` with every setting at its default."""
    lines = ["# Settings of afresh. Every line that is commented out shows the default.", ""]
    for table, settings in TABLES.items():
        lines += [f"# {settings.__doc__}", f"[{table}]"]
        for each in fields(settings):
            lines += [f"# {each.metadata['help']}", f"# {each.name} = {_toml(each.metadata['written'])}"]
        lines.append("")
    lines += [
        *(f"# {line}".rstrip() for line in cleandoc(SiteSettings.__doc__ or "").splitlines()),
        "# [[site]]",
        '# host = "example.com"',
        '# keep = ["main"]',
        '# drop = [".visitors"]',
        "",
        *(f"# {line}".rstrip() for line in cleandoc(KindSettings.__doc__ or "").splitlines()),
        "# [[kind]]",
        '# name = "product"',
        '# change_rate = "1/day"',
        "# value = 3",
        "",
        *(f"# {line}".rstrip() for line in cleandoc(ServeSettings.__doc__ or "").splitlines()),
        "# [[serve]]",
        '# host = "www.example.com"',
        '# origin = "http://10.0.0.5:8080"',
        "",
        *(f"# {line}".rstrip() for line in cleandoc(DatabaseSettings.__doc__ or "").splitlines()),
        "# [[database]]",
        '# name = "shop"',
        '# url = "$SHOP_URL"',
        '# budget = "0.2 s/s"',
        "",
        *(f"# {line}".rstrip() for line in cleandoc(QuerySettings.__doc__ or "").splitlines()),
        "# [[query]]",
        '# name = "top_customers"',
        '# database = "shop"',
        '# sql = "SELECT customer, sum(amount) FROM orders WHERE day = :day GROUP BY customer"',
        "",
        *(f"# {line}".rstrip() for line in cleandoc(NotifySettings.__doc__ or "").splitlines()),
        "# [[notify]]",
        '# name = "prices"',
        '# to = "mailto:me@example.com"',
        '# pages = ["https://example.com/shop/*"]',
        '# digest = "08:00 Europe/Berlin"',
        "",
    ]
    return "\n".join(lines)


def reference() -> str:
    """The page docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "After reading this page you can set everything that `afresh.toml` holds. No setting is required:",
        "`afresh init` writes a file with every setting commented out at its default.",
        "",
        "`make docs` generates this page from `afresh/config.py`.",
        "",
    ]
    for table, settings in [
        *TABLES.items(),
        ("[site]", SiteSettings),
        ("[kind]", KindSettings),
        ("[serve]", ServeSettings),
        ("[database]", DatabaseSettings),
        ("[query]", QuerySettings),
        ("[notify]", NotifySettings),
    ]:
        lines += [f"## [{table}]", "", cleandoc(settings.__doc__ or ""), "", "| setting | default | |", "|---|---|---|"]
        for each in fields(settings):
            lines.append(f"| `{each.name}` | `{_toml(each.metadata['written'])}` | {each.metadata['help']} |")
        lines.append("")
    return "\n".join(lines)


def _toml(value: str | float | bool | list[str]) -> str:
    if isinstance(value, list):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"
