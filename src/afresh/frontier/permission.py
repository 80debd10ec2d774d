"""What a host's robots.txt permits at a moment, through failures and refreshes: a pure state machine.

    nothing known ──► answer 2xx ──────────────► obey it
                      answer 4xx, endless redirects ─► everything is allowed
                      5xx, 429, no answer ─────► nothing is allowed, unless a copy of the last day is at hand

A copy is asked for again after `refresh`, and never relied on for longer than `reuse` (a day, RFC 9309). A runner asks
`due` before it sends anything to the host, and `verdict` just before it sends each page, so that a rule which appears
while pages are queued holds for them too.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from afresh.frontier.robots import Robots

HOUR = 3600.0
REDIRECTS = 5  # that RFC 9309 wants followed at the least
# Reasons for which a fetch ends without an answer though the host is well: the file is simply not to be had.
_NOT_TO_BE_HAD = frozenset({"too_many_redirects", "bad_redirect"})

EVERYTHING = Robots()


class Access(StrEnum):
    """What an attempt to get robots.txt says."""

    RULES = "rules"  # there is a file: obey it
    UNCHANGED = "unchanged"  # the file we have is still good
    FREE = "free"  # there is none: all is allowed
    CLOSED = "closed"  # the host cannot say: nothing is allowed


class Permission(StrEnum):
    """Whether a page may be fetched now."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    ASK = "ask"  # robots.txt must be fetched first


def access(status: int, reason: str = "") -> Access:
    """What an answer to the request for robots.txt means, after redirects; status 0 for no answer, with the reason.

    >>> [str(access(status)) for status in (200, 404, 403, 503, 429, 0)]
    ['rules', 'free', 'free', 'closed', 'closed', 'closed']
    """
    if reason in _NOT_TO_BE_HAD:
        return Access.FREE
    if reason:
        return Access.CLOSED
    if status == 304:
        return Access.UNCHANGED
    if 200 <= status < 300:
        return Access.RULES
    # 429 says "not now", which is no permission. A redirect that is left over was not worth following.
    return Access.FREE if 300 <= status < 500 and status != 429 else Access.CLOSED


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer is good for, in seconds."""

    refresh: float = 12 * HOUR  # after this a fresh copy is asked for
    reuse: float = 24 * HOUR  # after this the old one counts no more
    first_retry: float = 60.0  # after a failure, twice as long each time
    longest_retry: float = HOUR


@dataclass(frozen=True, slots=True)
class RobotsState:
    """What is known of one host's robots.txt; `answered` gives the next state.

    Invariant: rules whose `confirmed` is older than `reuse` never decide anything.

    >>> state = RobotsState().answered(404, now=0.0)
    >>> str(state.verdict("http://example.org/", now=1.0)), state.due(now=1.0)
    ('allowed', False)
    """

    rules: Robots | None = None  # of the last answer that said anything
    confirmed: float = float("-inf")  # when that was
    next_try: float = float("-inf")
    failures: int = 0  # in a row, up to now
    patience: Patience = Patience()

    def answered(self, status: int, rules: Robots | None = None, *, now: float, reason: str = "") -> "RobotsState":
        """The state after an attempt to get robots.txt, whose rules count if the answer is one that has any."""
        found = access(status, reason)
        if found is Access.UNCHANGED and self.rules is None:
            found = Access.CLOSED  # nothing to be unchanged: ask again without conditions
        if found is Access.CLOSED:
            wait = min(self.patience.first_retry * 2.0 ** min(self.failures, 40), self.patience.longest_retry)
            return replace(self, next_try=now + wait, failures=self.failures + 1)
        if found is Access.UNCHANGED:
            rules = self.rules
        elif found is Access.FREE or rules is None:
            rules = EVERYTHING
        return replace(self, rules=rules, confirmed=now, next_try=now + self.patience.refresh, failures=0)

    def due(self, now: float) -> bool:
        """Whether robots.txt should be fetched."""
        return now >= self.next_try or (not self.failures and not self._usable(now))

    def verdict(self, url: str, now: float) -> Permission:
        """Whether a page may be fetched at this moment."""
        if self._usable(now) and self.rules is not None:
            return Permission.ALLOWED if self.rules.allowed(url) else Permission.REFUSED
        return Permission.ASK if self.due(now) else Permission.REFUSED

    def crawl_delay(self, now: float) -> float | None:
        """Seconds that the host wants between requests; None if it does not say."""
        return self.rules.crawl_delay if self.rules is not None and self._usable(now) else None

    def _usable(self, now: float) -> bool:
        return self.rules is not None and now - self.confirmed <= self.patience.reuse
