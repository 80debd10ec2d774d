"""What goes through the inbox: evidence and wishes as entries, and what a wish means for the store.

The body of an entry is a JSON list. Evidence (`signals`, `requests`) needs an estimator, so it waits for a runner. A
wish is an `Edit` of the store alone: with a runner the runner carries it out, without one the command itself does.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from afresh.errors import InputError
from afresh.store.base import MAX_ENTRY_BYTES, Entry, PageState, Record, Store
from afresh.store.handed import GOT, record_of, result_in
from afresh.types import Importance, Page, Request, Signal

MAX_ITEMS = 500  # of an entry
MAX_EDIT = 10_000  # pages that one transaction changes; a wish for more is carried out in several
COSTS_KEPT = "costs found"  # the named value that says how a runner fared with costs
SEARCHES_KEPT = "search quality"  # the named value that holds what a runner has learned of searches
FOUND_SO_FAR = "found so far"  # the named value that says how much a runner knows, and how much of that waits
SEARCHED = "searched"  # the kind of an entry that says what was searched for
PAUSED = "paused"  # the named value that says which hosts are paused
PINNED = "pinned senders"  # the named value that says what senders are worth, where an operator does
MAX_PINS = 1_000
WATCHED = "requests since"  # the named value that says since when requests are counted
EVIDENCE = frozenset({"signals", "requests", SEARCHED})
HANDED = frozenset({GOT})  # what a runner learns from, and what is kept without one as well
QUERIES, DATABASES = "sql query ", "sql database "  # before the names of values that define one
FOLLOWED = "web sitemap "  # before those that name sitemaps which an operator follows
TREES = "files root "  # before the key of a folder: all that is in it is kept
DEFINITIONS = (QUERIES, DATABASES, FOLLOWED, TREES)
MAX_COUNT = 1e12  # requests in one line


def of_signals(signals: Iterable[Signal], received: float, key: str = "") -> list[Entry]:
    """Signals as entries."""
    return packed("signals", ([each.url, each.time, each.sender] for each in signals), received, key)


def of_requests(requests: Iterable[Request], received: float, key: str = "") -> list[Entry]:
    """Requests as entries."""
    return packed("requests", ([each.url, each.time, each.count] for each in requests), received, key)


def of_queries(queries: Iterable[tuple[str, float, float]], received: float, key: str = "") -> list[Entry]:
    """What was searched for as entries: the query, when, and how often."""
    return packed(SEARCHED, ([text, time, count] for text, time, count in queries), received, key)


def queries_in(entry: Entry) -> tuple[list[tuple[str, float, float]], int]:
    """(what was searched for, how many items make no sense); ValueError if all of the entry does not."""
    heard: list[tuple[str, float, float]] = []
    items = _items(entry)
    for item in items:
        try:
            text, time, count = item
            str(text).encode()
            heard.append((str(text), _number(time), min(max(_number(count), 0.0), MAX_COUNT)))
        except (ValueError, TypeError):
            continue
    return heard, len(items) - len(heard)


def searches_kept(get: Callable[[str], str | None]) -> dict[str, Any] | None:
    """What the last runner said of searches; None if there was nothing to say, or it makes no sense."""
    kept = get(SEARCHES_KEPT)
    try:
        summary: dict[str, Any] | None = None if kept is None else json.loads(kept)["summary"]
        return summary
    except (ValueError, TypeError, KeyError):
        return None


def weights_kept(get: Callable[[str], str | None]) -> tuple[dict[str, float], float, float] | None:
    """What stale copies cost an average search, of some pages and of others, and searches a second; None: not known."""
    kept = get(SEARCHES_KEPT)
    try:
        known = json.loads(kept or "{}")
        weights = {str(url): max(_number(weight), 0.0) for url, weight in known["weights"]}
        found = weights, max(_number(known["base"]), 0.0), _number(known["summary"]["searches_per_second"])
        return found if weights and found[2] > 0 else None
    except (ValueError, TypeError, KeyError):
        return None


def of_pages(pages: Iterable[Page], received: float, key: str = "") -> list[Entry]:
    """Pages to be added; of those that are kept already, what is said of them here is set."""
    return packed("add", map(_as_item, pages), received, key)


def packed(kind: str, items: Iterable[Any], received: float, key: str = "") -> list[Entry]:
    """Entries for these items: none is too large, and each has a key of its own if there is one."""
    bodies: list[list[str]] = []
    parts: list[str] = []
    size = 0
    for item in items:
        text = json.dumps(item)
        if len(text) > MAX_ENTRY_BYTES - 2:
            raise InputError(f"{text[:80]}… is too long.", hint=f"One line may have {MAX_ENTRY_BYTES:,} bytes.")
        if parts and (len(parts) == MAX_ITEMS or size + len(text) > MAX_ENTRY_BYTES - 2):
            bodies.append(parts)
            parts, size = [], 0
        parts.append(text)
        size += len(text) + 2
    bodies += [parts] if parts else []
    made = (f"[{', '.join(parts)}]" for parts in bodies)
    return [Entry(kind, body, received, key=f"{key} {nth}" if key else "") for nth, body in enumerate(made)]


def evidence(entry: Entry) -> tuple[list[Signal | Request], int]:
    """(the signals or requests in an entry, how many of its items make no sense); ValueError if all of it does not."""
    heard: list[Signal | Request] = []
    items = _items(entry)
    for item in items:
        try:
            url, time, more = item
            str(url).encode()
            if entry.kind == "signals":
                heard.append(Signal(str(url), _number(time), str(more)[:100]))
            else:
                heard.append(Request(str(url), _number(time), min(max(_number(more), 0.0), MAX_COUNT)))
        except (ValueError, TypeError):
            continue
    return heard, len(items) - len(heard)


@dataclass(slots=True)
class Edit:
    """What a wish changes in the store."""

    pages: list[Page] = field(default_factory=list)  # with all that is said of them now
    removed: list[str] = field(default_factory=list)
    urgent: list[str] = field(default_factory=list)
    values: dict[str, str | None] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    whole: bool = True  # False: there is more to do for the same entry

    def write(self, store: Store, number: int) -> int:
        """Make it durable, and take the entry of this number if that was all; how many pages were new."""
        taken = [number] if self.whole else []
        return store.write(
            self.records, pages=self.pages, removed=self.removed, urgent=self.urgent, values=self.values, taken=taken
        )


@dataclass(frozen=True, slots=True)
class Pauses:
    """Everything, or whole hosts, that an operator has paused."""

    everything: bool = False
    hosts: frozenset[str] = frozenset()

    @classmethod
    def from_text(cls, text: str | None) -> "Pauses":
        """As they were kept; ValueError and the like if that makes no sense."""
        if text is None:
            return cls()
        kept = json.loads(text)
        return cls(bool(kept["everything"]), frozenset(str(host) for host in kept["hosts"]))

    def to_text(self) -> str:
        """To be kept."""
        return json.dumps({"everything": self.everything, "hosts": sorted(self.hosts)})


@dataclass(frozen=True, slots=True)
class Pins:
    """What an operator says of senders: weights against the best sender, on a host or everywhere (""); 0 mutes one.

    >>> Pins().said([["cms", "", 0.5], ["ping", "e.org", 0]]).of("cms", "anywhere.org")
    0.5
    """

    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def of(self, sender: str, host: str) -> float | None:
        """What was said of a sender on a host, there or of all; None: nothing."""
        return self.weights.get((sender, host), self.weights.get((sender, "")))

    def said(self, items: Iterable[Any]) -> "Pins":
        """With more that is said; None frees a sender again."""
        weights = dict(self.weights)
        for sender, host, weight in items:
            if weight is None:
                weights.pop((str(sender), str(host)), None)
            else:
                weights[str(sender), str(host)] = min(max(_number(weight), 0.0), 1.0)
        if len(weights) > MAX_PINS:
            raise ValueError("too many senders are pinned")
        return Pins(weights)

    @classmethod
    def from_text(cls, text: str | None) -> "Pins":
        """As it was kept; an error if that makes no sense."""
        return cls().said(json.loads(text or "[]"))

    def to_text(self) -> str:
        """To be kept."""
        return json.dumps([[*key, weight] for key, weight in self.weights.items()])


def edit_of(entry: Entry, store: Store) -> Edit:
    """What a wish changes, given what the store holds now; ValueError if it makes no sense."""
    items = _items(entry)
    match entry.kind.partition("-"):
        case "got", _, "":
            handed = result_in(entry)
            record = record_of(handed, store)
            new = [handed.page] if handed.brings_content and store.state(handed.page.url) is None else []
            return Edit(pages=new, records=[] if record is None else [record])
        case "define", _, "":
            return _defining(items, store)
        case "add", _, "":
            return Edit(pages=list(_merged(items, store)))
        case "remove", _, "":
            return Edit(removed=[str(url) for url in items])
        case "remove", _, "host":
            return _without_hosts(items, store)
        case "pause" | "resume" as wish, _, "":
            kept = _kept(items, store)
            return Edit(pages=[replace(state.page, paused=wish == "pause") for state in kept])
        case "pause" | "resume" as wish, _, what:
            return _pausing(wish == "pause", what, items, store)
        case "refresh", _, "":
            return Edit(urgent=[state.page.url for state in _kept(items, store)])
        case "pin", _, "":
            return Edit(values={PINNED: Pins.from_text(store.get(PINNED)).said(items).to_text()})
        case "watched", _, "":
            since = min([_number(items[0]), *_number_in(store.get(WATCHED))])
            return Edit(values={WATCHED: repr(since)})
        case "popularity", _, "":
            said = {str(url): _number(value) for url, value in items}
            return Edit(pages=[replace(state.page, popularity=said[state.page.url]) for state in _kept(said, store)])
    raise ValueError(f"nobody knows wishes of the kind {entry.kind!r}")


def carry_out(entry: Entry, store: Store) -> int:
    """Carry a wish out on the store alone; how many pages were new. A wish that makes no sense is dropped."""
    new, whole = 0, False
    while not whole:
        try:
            edit = edit_of(entry, store)
        except (ValueError, TypeError, KeyError, RecursionError):
            edit = Edit()
        new += edit.write(store, entry.number)
        whole = edit.whole
    return new


def _items(entry: Entry) -> list[Any]:
    items = json.loads(entry.body)
    if not isinstance(items, list):
        raise TypeError("the body of an entry is a list")
    return items


def _number(value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a number that is too large") from None
    if not abs(number) < 1e300:
        raise ValueError("a number that is none")
    return number


def _number_in(text: str | None) -> list[float]:
    try:
        return [] if text is None else [_number(text)]
    except ValueError:
        return []


def _kept(urls: Iterable[Any], store: Store) -> Iterator[PageState]:
    for url in dict.fromkeys(str(url) for url in urls):
        state = store.state(url)
        if state is not None:
            yield state


def _without_hosts(hosts: list[Any], store: Store) -> Edit:
    urls = (state.page.url for host in hosts for state in store.states_of_host(str(host)))
    some = list(islice(urls, MAX_EDIT + 1))
    return Edit(removed=some[:MAX_EDIT], whole=len(some) <= MAX_EDIT)


def of_definitions(said: Mapping[str, str | None], received: float) -> list[Entry]:
    """What a source is to know from now on, by the names under which the store keeps it; None: to be forgotten."""
    return packed("define", ([name, text] for name, text in said.items()), received)


def _defining(items: list[Any], store: Store) -> Edit:
    """Named values of sources; with a query that is forgotten, its results go as well."""
    edit = Edit()
    for name, text in items:
        name = str(name)
        if not name.startswith(DEFINITIONS):
            raise ValueError(f"nobody defines {name[:80]!r}")
        edit.values[name] = None if text is None else str(text)
        kept = store.get(name)
        if text is None and kept is not None and name.startswith(QUERIES):
            key = f"sql:{json.loads(kept)['database']}/{name.removeprefix(QUERIES)}"
            some = [*store.states_under(f"{key}?", MAX_EDIT), *_kept([key], store)]
            edit.removed += [state.page.url for state in some]
        elif text is None and kept is not None and name.startswith(TREES):
            key = name.removeprefix(TREES)
            some = [*store.states_under(key, MAX_EDIT), *_kept([key], store)]
            edit.removed += [state.page.url for state in some]
            if len(some) >= MAX_EDIT:  # the rest goes the next time, for which the name is needed
                edit.whole = False
                del edit.values[name]
    return edit


def _pausing(pause: bool, what: str, items: list[Any], store: Store) -> Edit:
    try:
        pauses = Pauses.from_text(store.get(PAUSED))
    except (ValueError, TypeError, KeyError):
        pauses = Pauses()
    if what == "all":
        pauses = replace(pauses, everything=pause)
    elif what == "host":
        hosts = frozenset(str(host) for host in items)
        pauses = replace(pauses, hosts=pauses.hosts | hosts if pause else pauses.hosts - hosts)
    else:
        raise ValueError(f"nobody can pause {what!r}")
    return Edit(values={PAUSED: pauses.to_text()})


_SAID = ("shortest", "longest", "hours", "popularity")


def _as_item(page: Page) -> dict[str, Any]:
    item: dict[str, Any] = {"url": page.url, "host": page.host, "added": page.added, "depth": page.depth}
    if page.importance is not None:
        item["importance"] = [page.importance.value, page.importance.times]
    return item | {name: value for name in _SAID if (value := getattr(page, name)) not in (None, "")}


def _merged(items: Iterable[Mapping[str, Any]], store: Store) -> Iterator[Page]:
    """Pages as they will be: new, or as they are but for what is said of them now."""
    for item in items:
        said: dict[str, Any] = {name: item[name] for name in _SAID if name in item}
        if "importance" in item:
            value, times = item["importance"]
            said["importance"] = Importance(_number(value), bool(times))
        state = store.state(str(item["url"]))
        if state is None:
            yield Page(str(item["url"]), str(item["host"]), _number(item["added"]), depth=int(item["depth"]), **said)
        elif said:
            yield replace(state.page, **said)


def drain(store: Store) -> int:
    """Carry out all waiting wishes, if no runner is on the store; how many pages were new. Evidence stays.

    The store must be claimed by the caller.
    """
    new, after = 0, 0
    while entries := store.inbox(after=after):
        for entry in entries:
            if entry.kind not in EVIDENCE:
                new += carry_out(entry, store)
            after = entry.number
    return new
