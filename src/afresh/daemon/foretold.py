"""Foretells how much pages that were just found will be asked for, and learns from some of them how true that was."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from afresh.engine import Engine
from afresh.estimate.foretelling import Foretelling, place_of
from afresh.estimate.kinds import unpack
from afresh.frontier import Links
from afresh.types import Page

KEPT = "requests_foretold"  # under this name the store holds what was learned
MAX_JUDGES = 4_096  # pages that are remembered until their requests judge what was foretold
ENOUGH = 2.0  # requests that a page alike would have had, when a page is judged
LOOKED_AT = 8  # of the pages remembered, at each crawl
FEWEST_READ = 8  # pages, before it says something how many of them lead to a page
WORTH_TELLING = 0.1  # of a factor's logarithm
MAX_WORDS = 6  # of a text and of an address, each
_WORD = re.compile(r"[^\W\d_]{2,24}")


@dataclass(slots=True)
class _Judge:
    """A page whose requests will judge what was foretold of it."""

    marks: list[int]
    since: int  # how many pages had been read when it was found
    links: int = 1  # from pages that were read since
    kind: int = 0
    told: float = 1.0  # how much it is taken to be asked for


class Foretold:
    """What is foretold of requests for new pages: by the pages that lead to them, their texts for it, their kind."""

    def __init__(self, told: Callable[[str], None] = lambda _: None) -> None:
        self._told = told  # hears of each page of which something else is foretold
        self.foretelling = Foretelling()
        self._judges: dict[str, _Judge] = {}
        self._read = 0  # pages whose links were read

    def begin(self, get: Callable[[str], str | None]) -> None:
        """Go on from what was kept."""
        self.foretelling = Foretelling.from_text(get(KEPT))

    def linked(self, engine: Engine, links: Links, now: float) -> None:
        """A page was read that has these links: those to pages that are remembered count."""
        self._read += 1
        if not self._judges:
            return
        for url in (*links.urls, *links.again):
            if (judge := self._judges.get(url)) is not None:
                judge.links += 1
                self._tell(engine, url, judge, now)

    def found(self, engine: Engine, page: Page, links: Links, new: Sequence[Page], now: float) -> None:
        """New pages, which the engine has got, were found in the links of a page."""
        if page.url not in engine or not (usual := engine.average_request_rate(page.url, now)):
            return  # nobody asks for anything
        asked = engine.beliefs(page.url, now).request_rate / usual
        for each in new:
            if each.url not in engine or each.popularity is not None or each.importance is not None:
                continue
            path = each.url.partition("//")[2].partition("/")[2]
            marks = marks_of(asked, len(links.urls), each.depth, links.anchors.get(each.url, ""), path)
            judge = _Judge(marks, self._read)
            self._tell(engine, each.url, judge, now)
            if len(self._judges) < MAX_JUDGES:
                self._judges[each.url] = judge

    def crawled(self, engine: Engine, url: str, kind: int, now: float) -> None:
        """A page was crawled, and is of these kinds, if that is known: that may say more; and some are judged."""
        judge = self._judges.get(url)
        if judge is not None:
            if kind and not judge.kind:
                judge.kind = kind
                judge.marks += [place_of(f"kind {each}") for each, share in unpack(kind) if share >= 0.5]
            self._tell(engine, url, judge, now)
        for each in [*islice(self._judges, LOOKED_AT)]:
            self._judge(engine, each, now)

    def _marks(self, judge: _Judge) -> list[int]:
        """Those of a page now: how many pages lead to it is known once some were read."""
        read = self._read - judge.since + 1
        return judge.marks if read < FEWEST_READ else [*judge.marks, place_of(links_mark(judge.links / read))]

    def _tell(self, engine: Engine, url: str, judge: _Judge, now: float) -> None:
        if not self.foretelling.used or url not in engine:
            return
        factor = self.foretelling.factor(self._marks(judge))
        if abs(math.log(factor / judge.told)) > WORTH_TELLING:
            judge.told = factor
            engine.tell_popularity(url, factor, now)
            self._told(url)

    def _judge(self, engine: Engine, url: str, now: float) -> None:
        """Judge a page that was watched for long enough; the others go to the end of the queue."""
        judge = self._judges.pop(url)
        if url not in engine:
            return
        requests, expected = engine.requests_beside(url, now)
        if expected >= ENOUGH:
            self.foretelling.learn(self._marks(judge), requests, expected)
        else:
            self._judges[url] = judge

    def values(self) -> dict[str, str]:
        """What is worth keeping."""
        return {KEPT: self.foretelling.to_text()}


def marks_of(asked: float, leads: int, depth: int, text: str, path: str) -> list[int]:
    """The marks of a new page: of the page that names it, how often that is asked for beside pages alike, and how many
    links it has; the text of its link, and the page's own path."""
    marks = [
        "every",
        f"asked {_octave(asked)}",
        f"leads {_octave(leads)}",
        f"share {_octave(asked * 32 / (leads + 1))}",
    ]
    marks += [f"deep {min(depth, 9)}", *(f"text {word}" for word in _words(text))]
    return [place_of(mark) for mark in [*marks, *(f"word {word}" for word in _words(path))]]


def links_mark(share: float) -> str:
    """The mark of a page that so many of the pages that were read lead to."""
    return f"links {round(2.0 * math.log2(max(share, 1e-6)))}"


def _octave(number: float) -> int:
    return max(min(round(math.log2(max(number, 1e-9))), 12), -6)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())[:MAX_WORDS]
