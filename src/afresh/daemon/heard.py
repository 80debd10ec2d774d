"""Who said of which page that it changed, and what became of that: for people, of the pages that were heard of last."""

import json
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

KEPT = "heard"  # under this name the store holds the latest
MAX_PAGES = 20_000  # in memory; those that were heard of longest ago are forgotten first
MAX_PAGES_KEPT = 1_000  # over a restart
MAX_LINES = 8  # of a page
MAX_LINES_OF_SENDER = 4

TAKEN = "taken: it waits for a crawl"
REPEATED = "ignored: repeated before a crawl"
OLD = "ignored: from before the copy"
NO_COPY = "ignored: there was no copy yet"
MUTED = "ignored: the sender is muted"
TRUE = "taken: the page had changed"
FALSE = "taken: the page had not changed"


@dataclass(slots=True)
class Line:
    """Something of one sender, once or several times with the same result."""

    sender: str
    first: float
    last: float
    count: int
    became: str


class HeardOf:
    """The latest hints of each page."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, list[Line]] = OrderedDict()

    def note(self, url: str, sender: str, now: float, became: str) -> None:
        """A hint came."""
        lines = self._pages.pop(url, None)
        if lines is None:
            lines = []
            if len(self._pages) >= MAX_PAGES:
                self._pages.popitem(last=False)
        self._pages[url] = lines
        own = [line for line in lines if line.sender == sender]
        if own and own[-1].became == became:
            own[-1].last = now
            own[-1].count += 1
            return
        if len(lines) == MAX_LINES or len(own) == MAX_LINES_OF_SENDER:  # a flood of one leaves the others' lines
            lines.remove(own[0] if len(own) == MAX_LINES_OF_SENDER else lines[0])
        lines.append(Line(sender, now, now, 1, became))

    def crawled(self, url: str, started: float, *, changed: bool) -> None:
        """A crawl has shown whether a page had changed: what was taken before it was true, or false."""
        for line in self._pages.get(url, ()):
            if line.became == TAKEN and line.first <= started:
                line.became = TRUE if changed else FALSE

    def of(self, url: str) -> list[dict[str, Any]]:
        """What was heard of a page, the latest first."""
        lines = sorted(self._pages.get(url, ()), key=lambda line: (line.last, line.first), reverse=True)
        return [asdict(line) for line in lines]

    def to_text(self) -> str:
        """What was heard of the latest pages."""
        latest = list(self._pages)[-MAX_PAGES_KEPT:]
        return json.dumps({url: [list(asdict(line).values()) for line in self._pages[url]] for url in latest})

    @classmethod
    def from_text(cls, text: str | None) -> "HeardOf":
        """What `to_text` wrote; an error if it makes no sense."""
        made = cls()
        for url, lines in json.loads(text or "{}").items():
            made._pages[str(url)] = [
                Line(str(sender), float(first), float(last), int(count), str(became))
                for sender, first, last, count, became in lines[:MAX_LINES]
            ]
        return made
