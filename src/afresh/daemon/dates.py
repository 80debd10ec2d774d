"""Hears what publishers say of when things change: grades it by what the crawls found, and hands it on as evidence.

There are dates of the last change, which a source gives with its answer or a page writes itself, and lifetimes, which
come with an answer or are said of a thing elsewhere. Each host's are graded apart, and so is each way of saying it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from afresh.engine import AnyEngine
from afresh.estimate.dates import DateTrust
from afresh.estimate.lifetimes import KEPT as KEPT_LIFETIMES
from afresh.estimate.lifetimes import Lifetimes
from afresh.signals.moments import moment
from afresh.sources import Sources
from afresh.store import PageState
from afresh.types import Fetched, Outcome, Verdict

KEPT = "dates"  # under this name the store holds how far they can be trusted
JUST_NOW = 2.0  # seconds before the answer: a date of then says when it was sent
DAY = 86400.0  # a date without time or zone may be off by so much
OLDEST = 631152000.0  # 1990: a page that says it is older means something else
IN_PAGE, ELSEWHERE = "page ", "said "  # before the host, where neither the answer itself says it
MAX_JUDGES = 16_384  # things whose lifetimes are remembered until crawls have judged them; of others nothing is learned
JUDGED_CRAWLS = 5  # of each of them


@dataclass(frozen=True, slots=True)
class Written:
    """The dates that a page writes itself, now and in the copy of before; None: there was nothing to be read."""

    new: tuple[str, ...] | None = None
    old: tuple[str, ...] | None = None


NOTHING_WRITTEN = Written()


@dataclass(frozen=True, slots=True)
class _Date:
    host: str  # with the way of saying it
    new: float
    old: float | None
    slack: float  # seconds that it may be off


class Dates:
    """How far dates and lifetimes are trusted, and what they say."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.trust = DateTrust()
        self.lifetimes = Lifetimes()
        self._judges: dict[str, list[tuple[str, float, int]]] = {}  # what lifetimes a thing was given, and by whom
        self._since_swept = 0

    def begin(self, engine: AnyEngine, get: Callable[[str], str | None]) -> None:
        """Go on from what was kept."""
        self.trust = DateTrust.from_text(get(KEPT))
        self.lifetimes = Lifetimes.from_text(get(KEPT_LIFETIMES))
        engine.first.recall_first_said(json.loads(get(KEPT) or "{}").get("first", []))

    def promised(self, engine: AnyEngine, url: str, lifetime: float) -> None:
        """Somebody else has said how long a thing lasts, as a rule; for its first crawl, and to be graded."""
        if (source := self.sources.of(url)) is not None:
            self._remember(engine, url, ELSEWHERE + source.lane(url), lifetime)

    def hear(
        self,
        engine: AnyEngine,
        before: PageState,
        fetched: Fetched,
        verdict: Verdict,
        now: float,
        written: Written = NOTHING_WRITTEN,
        *,
        told: bool = False,
    ) -> None:
        """A crawl that refreshed its copy, after the engine has learned from it.

        Where signals had `told` of a change, its date says nothing of those of which none tells.
        """
        self._hear_lifetimes(engine, before, fetched, verdict, now)
        url, heard, best = before.page.url, self._dates(before, fetched, verdict, now, written), 0.0
        if verdict.outcome is Outcome.NEW:
            for each in heard:
                self.trust.note(each.host)
            best = max((self.trust.of(each.host) for each in heard), default=0.0)
            for each in heard:
                if self.trust.of(each.host) == best and each.new < fetched.started - JUST_NOW:
                    return engine.tell_age(url, fetched.started - each.new, best, now)
            return None
        if before.checked is None:
            return None
        changed, telling = verdict.outcome is Outcome.CHANGED, None
        if not changed and written.new is None and self.trust.knows(IN_PAGE + before.page.host):
            self.trust.grade(IN_PAGE + before.page.host, changed=False, moved=False)
        for each in heard:
            if each.old is None:
                continue
            moved = each.new != each.old
            within = before.checked - max(JUST_NOW, each.slack) <= each.new <= fetched.started + each.slack
            self.trust.grade(each.host, changed=changed, moved=moved and (within or not changed))
            trust = self.trust.of(each.host)
            if changed and moved and within and trust > best:
                telling, best = each, trust
        elapsed = max(fetched.started - before.checked, 0.0)
        if telling is not None and not told and 2.0 * telling.slack < elapsed:
            engine.tell_last_change(url, max(fetched.started - telling.new, 0.0), elapsed, best, now)
        return None

    def _dates(
        self, before: PageState, fetched: Fetched, verdict: Verdict, now: float, written: Written
    ) -> list[_Date]:
        """What the answer and the page itself say."""
        url, host, found = before.page.url, before.page.host, []
        new = self.sources.dated(url, verdict.validators, now)
        if new is not None:
            found.append(_Date(host, new, self.sources.dated(url, before.validators, now), 0.0))
        if written.new is not None:
            mine, theirs = _newest(written.new, now), _newest(written.old or (), now)
            if mine is not None:
                found.append(_Date(IN_PAGE + host, mine[0], None if theirs is None else theirs[0], mine[1]))
        return found

    def _hear_lifetimes(
        self, engine: AnyEngine, before: PageState, fetched: Fetched, verdict: Verdict, now: float
    ) -> None:
        url, host = before.page.url, before.page.host
        named = self.sources.lifetime(fetched)
        if verdict.outcome is Outcome.NEW:
            if named is not None:
                self._remember(engine, url, host, named)
            said = self._judges.get(url, [] if named is None else [(host, named, 0)])
            best = max(said, key=lambda each: self.lifetimes.trust(each[0]), default=None)
            if best is not None:
                age = self.lifetimes.age_of(best[0], best[1])
                engine.tell_age(url, age, self.lifetimes.trust(best[0]), now)
            return
        if before.checked is None or url not in self._judges:
            return
        elapsed, changed, left = fetched.started - before.checked, verdict.outcome is Outcome.CHANGED, []
        for whose, lifetime, judged in self._judges[url]:
            self.lifetimes.saw(whose, lifetime, elapsed, changed=changed)
            if judged + 1 < JUDGED_CRAWLS:
                left.append((whose, lifetime, judged + 1))
        if left:
            self._judges[url] = left
        else:
            del self._judges[url]

    def _remember(self, engine: AnyEngine, url: str, host: str, lifetime: float) -> None:
        if len(self._judges) >= MAX_JUDGES and url not in self._judges:
            self._since_swept += 1
            if self._since_swept < MAX_JUDGES:
                return
            self._since_swept = 0
            for gone in [each for each in self._judges if each not in engine]:
                del self._judges[gone]
            if len(self._judges) >= MAX_JUDGES:
                return
        said = self._judges.setdefault(url, [])
        if all(whose != host for whose, _, _ in said):
            said.append((host, lifetime, 0))

    def values(self, engine: AnyEngine) -> dict[str, str]:
        """What is worth keeping."""
        dates = {**json.loads(self.trust.to_text()), "first": engine.first.worth_of_first_said()}
        return {KEPT: json.dumps(dates), KEPT_LIFETIMES: self.lifetimes.to_text()}


def _newest(texts: tuple[str, ...], now: float) -> tuple[float, float] | None:
    """The latest moment that a page writes, and how far it may be off; None where none of them can be true."""
    found = [(when, _slack(text)) for text in texts if (when := moment(text)) is not None]
    return max(((when, slack) for when, slack in found if OLDEST <= when <= now + slack + JUST_NOW), default=None)


def _slack(text: str) -> float:
    """Without a time or a zone it may be off by a day."""
    end = text[16:]
    return 0.0 if text.endswith(("Z", "GMT")) or "+" in end or "-" in end else DAY
