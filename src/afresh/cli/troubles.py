"""Says of a few pages, as it happens, when one begins to fail and when it is well again: for `afresh watch`."""

from collections.abc import Callable

from afresh.cli.reasons import words
from afresh.cli.terminal import plain
from afresh.daemon.events import Event, Finished
from afresh.types import Outcome

FAILING = frozenset({Outcome.FAILED, Outcome.BUSY, Outcome.REFUSED, Outcome.MOVED})
MAX_FAILING = 10_000  # pages of which it is remembered


class Troubles:
    """One line when a page begins to fail, with the reason, and one when it is well again.

    A page that is gone is told of as a change, unless nobody has ever seen it: then it fails.
    """

    def __init__(self, tell: Callable[[str], None], has_copy: Callable[[str], bool]) -> None:
        self._tell = tell
        self._has_copy = has_copy
        self._failing: set[str] = set()

    def hear(self, event: Event) -> None:
        """Take an event of the runner."""
        if not isinstance(event, Finished):
            return
        crawl, known = event.crawl, event.crawl.url in self._failing
        if crawl.outcome.refreshed:
            if known:
                self._failing.discard(crawl.url)
                self._tell(f"{plain(crawl.url)} is well again.")
            return
        fails = crawl.outcome in FAILING or (crawl.outcome is Outcome.GONE and not self._has_copy(crawl.url))
        if fails and not known and len(self._failing) < MAX_FAILING:
            self._failing.add(crawl.url)
            self._tell(f"{plain(crawl.url)} fails: {words(crawl.reason)}.")
