"""What a page consists of, in the order in which a reader needs it: its text, then pictures, screen by screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afresh.frontier import links
from afresh.reading import read
from afresh.value.curves import Pieces

FIRST_SCREEN = 2000  # bytes of text that a reader sees before scrolling
MAX_BYTES = 2 << 20  # of a page that is read for its parts
MAX_PARTS = 40
# What of a page's value comes with what is in its head, its first screen, and below; the rest comes with its text.
HEAD, ABOVE, BELOW = 0.15, 0.15, 0.10


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page leads to, and what it needs: addresses, each list in the page's order."""

    links: tuple[str, ...] = ()
    head: tuple[str, ...] = ()  # styles and scripts
    above: tuple[str, ...] = ()  # pictures and the like, of the first screen
    below: tuple[str, ...] = ()


def parts_of(body: bytes, url: str, content_type: str) -> Parts:
    """The parts of an HTML page. For a thread: it reads a stranger's bytes.

    >>> page = b"<link rel=stylesheet href=s.css><body><img src=a.png><p>" + b"x " * 2000 + b"<p><img src=b.png>"
    >>> parts = parts_of(page, "http://e.org/", "text/html")
    >>> parts.head, parts.above, parts.below
    (('http://e.org/s.css',), ('http://e.org/a.png',), ('http://e.org/b.png',))
    """
    body = body[:MAX_BYTES]
    whole = links(body, url, content_type=content_type, files=True)
    end_of_head = body.lower().find(b"<body")
    head = links(body[: max(end_of_head, 0)], url, content_type=content_type, files=True).files
    above = links(body[: _fold(body, content_type)], url, content_type=content_type, files=True).files
    known = set(head)
    first = [each for each in above if each not in known]
    known |= set(first)
    rest = [each for each in whole.files if each not in known]
    return Parts(
        whole.urls, tuple(head[:MAX_PARTS]), tuple(first[:MAX_PARTS]), tuple(rest[: max(MAX_PARTS - len(first), 0)])
    )


def _fold(body: bytes, content_type: str) -> int:
    """Where the page begins to be below the first screen, by its text."""
    page, shown = read(body, content_type), 0
    for nth in range(len(page)):
        start, end, at = page.spans[nth, :3].tolist()
        shown += end - start
        if shown >= FIRST_SCREEN:
            return int(at) + FIRST_SCREEN
    return len(body)


@dataclass(frozen=True, slots=True)
class Segments:
    """A page as one document of segments, each an address with bytes and worth; together they are worth 1."""

    urls: tuple[str, ...]
    curve: Pieces

    def starting(self, at: float) -> str:
        """The address whose bytes begin there."""
        starts = self._starts
        return self.urls[min(range(len(starts)), key=lambda nth: abs(starts[nth] - at))]

    def start(self, url: str) -> float:
        """Where the bytes of an address begin; 0 if it is none of them."""
        return self._starts[self.urls.index(url)] if url in self.urls else 0.0

    @property
    def _starts(self) -> list[float]:
        return [0.0, *self.curve.ends[:-1]]


def segments_of(url: str, parts: Parts, sizes: Mapping[str, float], *, page: float, part: float) -> Segments:
    """The segments of a page, by what sizes are known, or else by what is usual of a page and of a part."""
    rows: list[tuple[str, float, float]] = []
    for share, urls in ((HEAD, parts.head), (ABOVE, parts.above), (BELOW, parts.below)):
        rows += [(each, sizes.get(each, part), share / len(urls)) for each in urls]
    text = 1.0 - sum(worth for _, _, worth in rows)
    rows.insert(0, (url, sizes.get(url, page), text))
    return Segments(tuple(each for each, _, _ in rows), Pieces([(max(size, 1.0), worth) for _, size, worth in rows]))


def within(urls: Sequence[str], base: str) -> tuple[str, ...]:
    """Those of a site."""
    return tuple(each for each in urls if each == base or each.startswith((base + "/", base + "?")))
