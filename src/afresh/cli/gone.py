"""Pages that are gone: since when, and what said so."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from afresh.store import PageState, Store
from afresh.store.base import NO_ANSWER
from afresh.types import Crawl, Outcome

LOOKED_AT = 1_000  # crawls of its history, at most


@dataclass(frozen=True, slots=True)
class Gone:
    """A page that is not there any more: what its source answered, and since when that is known."""

    status: int
    since: float
    reason: str = ""  # of a source without status codes

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {"status": self.status, "since": self.since} | ({"reason": self.reason} if self.reason else {})


def gone_in(crawls: Iterable[Crawl]) -> Gone | None:
    """Since when a page with this history, newest first, is gone; None if it is not.

    Attempts that brought no answer decide nothing.
    """
    found = None
    for crawl in crawls:
        if crawl.outcome is Outcome.GONE:
            first = found or Gone(crawl.status, crawl.time, "" if crawl.status else crawl.reason)
            found = replace(first, since=crawl.time)
        elif crawl.outcome not in NO_ANSWER:
            break
    return found


def gone_of(kept: Store, state: PageState) -> Gone | None:
    """Since when a page is gone; None if it is not."""
    return gone_in(kept.history(state.page.url, LOOKED_AT)) if state.failures else None
