"""Which changes somebody wants to hear of, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from afresh.frontier.glob import Glob
from afresh.frontier.host_patterns import HostPatterns
from afresh.hours import Hours, Moments
from afresh.types import CHANGES, Crawl, Outcome

FAILING, WELL = "failing", "well"  # what a rule may be told of besides changes


@dataclass(frozen=True)
class Rule:
    """Which changes lead to a message, to whom, and when.

    Invariant: what it says of a change depends on the change alone, so that a second look after a kill says the same.
    """

    name: str
    to: str  # where messages go; see `afresh.notify.channels`
    secret: str = ""  # what a webhook's messages are signed with: the secret itself, $NAME or @FILE
    hosts: HostPatterns | None = None
    pages: tuple[Glob, ...] = ()
    on: frozenset[str] = frozenset({Outcome.CHANGED, Outcome.GONE})  # changes, FAILING and WELL
    failures: int = 3  # crawls in a row until a page fails
    appear: tuple[str, ...] = ()  # one of these must have come,
    disappear: tuple[str, ...] = ()  # or one of these must be gone
    significance: float = 0.0  # of changes, at least
    quiet: Hours | None = None
    digest: Moments | None = None

    @property
    def asks_for_words(self) -> bool:
        """Whether it depends on what the page says."""
        return bool(self.appear or self.disappear)

    @property
    def asks_for_failures(self) -> bool:
        """Whether it is told of pages that fail, or are well again."""
        return not self.on.isdisjoint((FAILING, WELL))

    def hears(self, crawl: Crawl, trouble: int) -> list[str]:
        """What it is told of a crawl, whatever the page is and says; `trouble` is that of `afresh.store.base.News`.

        Once in each time that a page fails, and of its end once, if that lasted for as many crawls.
        """
        heard: list[str] = []
        if crawl.outcome in CHANGES and crawl.outcome in self.on:
            enough = crawl.outcome is not Outcome.CHANGED or crawl.significance >= self.significance
            heard += [crawl.outcome.value] * enough
        if trouble == self.failures and FAILING in self.on:
            heard.append(FAILING)
        if trouble <= -self.failures and WELL in self.on:
            heard.append(WELL)
        return heard

    def concerns(self, url: str, host: str) -> bool:
        """Whether it is about a page."""
        if self.hosts is not None and host not in self.hosts:
            return False
        return not self.pages or any(pattern.matches(url) for pattern in self.pages)

    def words_match(self, before: str | None, after: str | None) -> bool:
        """Whether the words that it waits for have come or are gone; None: nobody knows what stood there.

        Where the text before is not known, a word that could have come has come, and one that could be gone is gone:
        a message too many is better than none.
        """
        if not self.asks_for_words:
            return True
        was, now = ("" if text is None else text.casefold() for text in (before, after))
        come = any(word in now and (before is None or word not in was) for word in self.appear)
        gone = any(word not in now and (before is None or word in was) for word in self.disappear)
        return come or gone or (after is None)

    def due(self, now: float) -> float:
        """When a message of this moment may go."""
        if self.digest is not None:
            now = self.digest.following(now)
        return now if self.quiet is None else self.quiet.closes(now)


def identifier(rule: str, *of: object) -> str:
    """The identifier of a message: the same at each attempt, and no other has it."""
    parts: Sequence[object] = (rule, *of)
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
