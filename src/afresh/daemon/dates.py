"""Hears the dates of change that sources give: grades them by what the crawls found, and hands them on as evidence."""

from collections.abc import Callable

from afresh.engine import Engine
from afresh.estimate.dates import DateTrust
from afresh.sources import Sources
from afresh.store import PageState
from afresh.types import Fetched, Outcome, Verdict

KEPT = "dates"  # under this name the store holds how far dates can be trusted
JUST_NOW = 2.0  # seconds before the answer: a date of then says when it was sent


class Dates:
    """How far dates are trusted, and what they say."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.trust = DateTrust()

    def begin(self, get: Callable[[str], str | None]) -> None:
        """Go on from what was kept."""
        self.trust = DateTrust.from_text(get(KEPT))

    def hear(self, engine: Engine, before: PageState, fetched: Fetched, verdict: Verdict, now: float) -> None:
        """A crawl that refreshed its copy, after the engine has learned from it."""
        url, host = before.page.url, before.page.host
        new = self.sources.dated(url, verdict.validators, now)
        if new is None:
            return
        if verdict.outcome is Outcome.NEW:
            if new < fetched.started - JUST_NOW:
                engine.tell_age(url, fetched.started - new, self.trust.of(host), now)
            return
        old = self.sources.dated(url, before.validators, now)
        if old is None or before.checked is None:
            return
        changed, moved = verdict.outcome is Outcome.CHANGED, new != old
        within = before.checked - JUST_NOW <= new <= fetched.started
        self.trust.grade(host, changed=changed, moved=moved and (within or not changed))
        if changed and moved and within:
            elapsed = max(fetched.started - before.checked, 0.0)
            engine.tell_last_change(url, fetched.started - new, elapsed, self.trust.of(host), now)

    def values(self) -> dict[str, str]:
        """What is worth keeping."""
        return {KEPT: self.trust.to_text()}
