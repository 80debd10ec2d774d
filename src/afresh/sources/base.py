"""What the loop asks of a source: one kind of thing that copies are kept of, on the web, on a disk, in a database.

A thing is known by its key, which is text of the form `scheme:rest`; the scheme says whose it is. A lane is what must
not be disturbed by two at once: a host, a mount, a database. A purse is the budget that pays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from afresh.types import Fetched, Validators

PURSE = "crawl"  # of the budget that pays where nothing else is said
MAX_KEY = 4096  # characters
MAX_META_BYTES = 64 << 10  # of a copy, names and values
MAX_LEADS = 1_000_000  # keys that one thing may lead to


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
        """Whose key this is."""
        scheme = key.partition(":")[0]
        source = self._by_scheme.get(scheme)
        if source is None:
            source = next((each for each in self.all if each.key(key) == key), None)
            if source is not None and len(self._by_scheme) < 64:
                self._by_scheme[scheme] = source
        return source

    def purse(self, key: str) -> str:
        """The budget that pays for a thing."""
        source = self.of(key)
        return PURSE if source is None else source.purse(key)

    def led(self, key: str, leads: Iterable[str]) -> list[str]:
        """What one thing leads to, as far as it may: content leads to things of its own kind alone.

        So no page of the web, redirect, sitemap or feed can make us read a file.
        """
        source = self.of(key)
        if source is None:
            return []
        return [lead for lead in leads if len(lead) <= MAX_KEY and source.key(lead) == lead]

    async def close(self) -> None:
        """Close all."""
        for source in self.all:
            await source.close()
