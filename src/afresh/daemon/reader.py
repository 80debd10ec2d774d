"""Reads what was fetched, away from the event loop: did it change, is that noise, and what does it link to?

Two threads do it, one for large bodies, so that these hold up their like alone. What is compiled there holds no
interpreter lock. The verdict itself and what is learned of noise are made on the event loop, where nothing races.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from afresh.daemon.dates import NOTHING_WRITTEN, Written
from afresh.daemon.kinds import Kinds
from afresh.detect import Detector, Habits, Look, judge, learn, mark
from afresh.detect.compare import SAME_BYTES
from afresh.frontier import Links
from afresh.kinds.dates import page_dates
from afresh.sources import Finder, Sources
from afresh.store import PageState
from afresh.types import Copy, Fetched, Outcome, Verdict

LARGE = 256 << 10  # bytes; beyond this a body takes milliseconds
MAX_HOSTS = 4_096  # whose noise is in memory; the longest unused go first, and are in the store
NAME = "noise "  # before the host: under this its noise is kept in the store


@dataclass(frozen=True, slots=True)
class Read:
    """What came of reading a page."""

    verdict: Verdict
    noise: str = ""  # what is known of the page's noise now
    links: Links | None = None  # None: nothing new was read
    met: set[bytes] | None = None
    kind: int = 0  # of a page whose kind was asked for
    written: Written = NOTHING_WRITTEN  # dates


class Reader:
    """Makes verdicts of what was fetched; remembers what is noise on the pages of each host."""

    def __init__(
        self,
        detector: Detector,
        *,
        copy: Callable[[str], Copy | None],
        recall: Callable[[str], str | None] = lambda name: None,
        sources: Sources | None = None,
        kinds: Kinds | None = None,
    ) -> None:
        self.kinds = kinds
        self.detector = detector
        self.copy = copy
        self.recall = recall
        self.sources = sources or Sources([])
        self._hosts: OrderedDict[str, Habits] = OrderedDict()
        self._unsaved: dict[str, str] = {}
        self._small = ThreadPoolExecutor(1, "afresh-reader")
        self._large = ThreadPoolExecutor(1, "afresh-reader-large")

    async def read(self, before: PageState, fetched: Fetched, now: float, *, kind: int = 0) -> Read:
        """Compare what was fetched with the page's copy, and read its links if its bytes are others.

        Where its `kind` is not known, that is told, too.
        """
        page, host = Habits.from_text(before.noise), self._host(before.page.host)
        finder = self.sources.finder(before.page.url)
        met = finder.met(before.page, fetched) if finder is not None else None
        watched = {*page.spots, *host.spots}
        if fetched.body:
            threads = self._large if len(fetched.body) > LARGE else self._small
            loop = asyncio.get_running_loop()
            tells = self.kinds if not kind else None
            work = partial(self._look, before, fetched, finder, met, watched, tells)
            look, found, kind, written = await loop.run_in_executor(threads, work)
        else:
            look, found, kind, written = self._look(before, fetched, finder, met, watched, None)
        elapsed = None if before.fetched is None else fetched.started - before.fetched
        held = host.noise
        learn(look, now, elapsed=elapsed, page_habits=page, host_habits=host, page=mark(before.page.url.encode()))
        if host.noise or held:
            self._unsaved[NAME + before.page.host] = host.to_text()
        return Read(judge(look, page.noise, host.noise), page.to_text(), found, met, kind, written)

    def _look(
        self,
        before: PageState,
        fetched: Fetched,
        finder: Finder | None,
        met: set[bytes] | None,
        watched: set[int],
        kinds: Kinds | None,
    ) -> tuple[Look, Links | None, int, Written]:
        """What reads bytes; runs in a thread."""
        copies: list[Copy | None] = []

        def kept() -> Copy | None:
            if not copies:
                copies.append(self.copy(url))
            return copies[0]

        url, known = before.page.url, before.validators
        asked = finder.wanted() if finder is not None else None
        look = self.detector.look(known, fetched, before.page.host, kept=kept, wanted=asked, watched=watched)
        found = None
        if look.page is not None and finder is not None and met is not None:
            found = finder.links(look.page, before.page, fetched, met)
        refreshed = look.verdict.outcome in (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED)
        kind = kinds.of(url, fetched) if kinds is not None and refreshed else 0
        written = NOTHING_WRITTEN
        if refreshed and fetched.body and look.verdict.reason != SAME_BYTES and _is_html(fetched):
            old = copies[0] if copies else None
            written = Written(page_dates(fetched.body), None if old is None else page_dates(old.body))
        return Look(look.verdict, look.difference), found, kind, written  # the page itself is needed no more

    def _host(self, host: str) -> Habits:
        habits = self._hosts.pop(host, None)
        if habits is None:
            name = NAME + host
            habits = Habits.from_text(self._unsaved.get(name) or self.recall(name))
        self._hosts[host] = habits
        if len(self._hosts) > MAX_HOSTS:
            self._hosts.popitem(last=False)
        return habits

    def take(self) -> dict[str, str]:
        """What is to be kept of the hosts' noise since the last time, by name."""
        unsaved, self._unsaved = self._unsaved, {}
        return unsaved

    def close(self) -> None:
        """End the threads."""
        self._small.shutdown()
        self._large.shutdown()


def _is_html(fetched: Fetched) -> bool:
    return "html" in fetched.content_type.lower()
