"""What is kept in memory, within a bound of bytes: the least valuable leaves."""

from collections.abc import Iterator

from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Named
from afresh.serve.proxy.vary import Selector, selected

MOST_VARIANTS = 16  # of one address: who can choose a request's fields must not fill the memory with one page
SAMPLE = 16  # entries that are compared when one has to go
COUNTED_FROM = 60.0  # seconds that an entry is taken to have been here before: one hit at once is no rate yet
RETRY_ALONE = 60.0  # seconds for which an address that could not be shared is fetched for each reader at once
MOST_ALONE = 10_000


class Resource:
    """All that is kept under one address."""

    __slots__ = ("names", "only", "variants")

    def __init__(self) -> None:
        self.names: Selector = ()
        self.only: Entry | None = None  # where nothing selects
        self.variants: dict[Selector, Entry] = {}

    def entries(self) -> list[Entry]:
        """All of them, the oldest first."""
        return [*self.variants.values(), *([self.only] if self.only is not None else [])]


class Cache:
    """Entries by address and by what selects them.

    `by_value`: what is worth least leaves; otherwise what was not used for longest.
    """

    def __init__(self, most_bytes: int, *, by_value: bool = True) -> None:
        self.most_bytes = most_bytes
        self.by_value = by_value
        self.bytes = 0
        self.evicted = 0
        self._resources: dict[str, Resource] = {}
        self._alone: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._resources)

    def __iter__(self) -> Iterator[Entry]:
        for resource in self._resources.values():
            yield from resource.entries()

    def get(self, url: str, asked_with: Named) -> Entry | None:
        """What a request selects."""
        resource = self._resources.get(url)
        if resource is None:
            return None
        if not resource.names:
            return resource.only
        return resource.variants.get(selected(resource.names, asked_with))

    def names_of(self, url: str) -> Selector:
        """The fields of a request that select what is kept under an address."""
        resource = self._resources.get(url)
        return () if resource is None else resource.names

    def put(self, entry: Entry, now: float) -> None:
        """Keep an answer in place of the one that the same requests selected."""
        resource = self._resources.pop(entry.url, None)
        if resource is None or resource.names != entry.names:
            if resource is not None:
                self.bytes -= sum(each.size for each in resource.entries())
            resource = Resource()
            resource.names = entry.names
        older = resource.variants.pop(entry.selector, None) if entry.names else resource.only
        if older is not None:
            self.bytes -= older.size
            if older is not entry:
                entry.hits, entry.hits_since = older.hits, older.hits_since
        if not entry.hits_since:
            entry.hits, entry.hits_since = entry.hits + 1.0, now
        if entry.names:
            if len(resource.variants) >= MOST_VARIANTS:
                self.bytes -= resource.variants.pop(next(iter(resource.variants))).size
            resource.variants[entry.selector] = entry
        else:
            resource.only = entry
        self.bytes += entry.size
        self._resources[entry.url] = resource  # at the end: the latest
        self._alone.pop(entry.url, None)
        while self.bytes > self.most_bytes and len(self._resources) > 1:
            self._evict(now, entry.url)

    def drop(self, url: str) -> bool:
        """Forget all that is kept under an address; whether there was anything."""
        resource = self._resources.pop(url, None)
        if resource is None:
            return False
        self.bytes -= sum(each.size for each in resource.entries())
        return True

    def spoil(self, url: str) -> bool:
        """Let nothing under an address be handed out before it was asked about; whether there was anything."""
        resource = self._resources.get(url)
        if resource is None:
            return False
        for entry in resource.entries():
            entry.good_until = 0.0
            entry.look_again = 0.0
        return True

    def touched(self, url: str) -> None:
        """An address was used: where that decides, it is the last to go."""
        if self.by_value:
            return
        if (resource := self._resources.pop(url, None)) is not None:
            self._resources[url] = resource

    def alone(self, url: str, now: float) -> bool:
        """Whether an answer under this address could not be shared just now: nobody should wait for another's."""
        return self._alone.get(url, 0.0) > now

    def note_alone(self, url: str, now: float) -> None:
        """An answer could not be shared."""
        if len(self._alone) >= MOST_ALONE:
            self._alone.pop(next(iter(self._alone)))
        self._alone[url] = now + RETRY_ALONE

    def _evict(self, now: float, keep: str) -> None:
        """Let one go: of those that have been here longest, what is worth least per byte."""
        some = []
        for url in self._resources:
            if url != keep:
                some.append(url)
            if len(some) == (SAMPLE if self.by_value else 1):
                break
        worst = min(some, key=lambda url: max(worth(each, now) / each.size for each in self._resources[url].entries()))
        self.drop(worst)
        self.evicted += 1
        for url in some:  # those that stay are looked at again when all others were
            if url != worst:
                self._resources[url] = self._resources.pop(url)


def worth(entry: Entry, now: float) -> float:
    """Requests a second that an entry is likely to answer fresh: its rate times how likely it is to be fresh.

    That is what the engine maximises when it refreshes copies; what it has learned of the page's requests counts too.
    """
    rate = entry.hits / (entry.counted(now) + COUNTED_FROM)
    if entry.outlook is not None:
        rate = max(rate, entry.beliefs.request_rate if entry.beliefs is not None else 0.0)
        return rate * entry.outlook.freshness(max(now - entry.confirmed, 0.0), entry.signals)
    if now < entry.good_until:
        return rate
    return 0.5 * rate if entry.etag or entry.modified else 0.1 * rate
