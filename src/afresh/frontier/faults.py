"""Whose fault it is when something could not be fetched: the page's, its host's, or nobody's, since nobody was asked.

`host_failed` is the only place that says whether a host failed. Everybody asks it: of pages, of robots.txt, of
sitemaps, and of what a redirect of another host led to.
"""

from afresh.types import STORE_FULL, Blame, Fetched, HostState

FAILURES_IN_TROUBLE = 3  # in a row, of whatever kind
# Reasons for which nothing is ever sent to a host,
NEVER_ASKED = frozenset({"refused_address", "refused_port", "names_of_address"})
# and for which nothing was sent this time.
_NOT_ASKED = NEVER_ASKED | {"robots", "scope"}
# Reasons that speak of the host and of no single page: all its pages fail alike, and wait while the host rests.
_OF_THE_HOST = frozenset({"dns", "dns_timeout", "no_connection", "connect_timeout"})


def host_failed(host: str, fetched: Fetched, reason: str = "") -> bool | None:
    """Whether a fetch went wrong by the fault of the host whose turn it was; None if that was not asked at all.

    `reason` is what was found wrong with it afterwards.

    >>> [host_failed("a.example", Fetched("", 0.0, 0.1, status=status)) for status in (200, 404, 429, 500)]
    [False, False, True, True]
    """
    if fetched.blame is not None:
        return None if fetched.blame is Blame.NOBODY else fetched.blame is Blame.LANE
    why = fetched.reason or reason
    if fetched.hops or fetched.location:
        if _is_elsewhere(host, fetched):
            return False  # it answered, and pointed to another
    elif why in _NOT_ASKED or (why == STORE_FULL and not fetched.status):
        return None
    if fetched.status == 0:
        return why != "too_large" and why not in _NOT_ASKED
    return fetched.status >= 500 or fetched.status == 429


def retry_after(host: str, fetched: Fetched) -> float | None:
    """How long a host wants to be left alone, by an answer of its own."""
    return None if fetched.retry_after is None or _is_elsewhere(host, fetched) else fetched.retry_after


def _is_elsewhere(host: str, fetched: Fetched) -> bool:
    """Whether the last answer came from another host, to which this one had pointed."""
    if not fetched.location or 300 <= fetched.status < 400:
        return False
    return fetched.location.partition("//")[2].partition("/")[0] != host


def is_unreachable(reason: str) -> bool:
    """Whether a fetch ended before the host could be asked for any page: no connection, or no robots.txt.

    >>> [is_unreachable(reason) for reason in ("dns", "tls_expired", "robots_status_503", "robots", "status_500")]
    [True, True, True, False, False]
    """
    return reason in _OF_THE_HOST or reason.startswith(("tls", "robots_"))


def in_trouble(state: HostState) -> bool:
    """Whether a host as a whole fails, rather than one page of it now and then."""
    reason = state.reason
    whole = is_unreachable(reason) or reason in NEVER_ASKED or state.failures >= FAILURES_IN_TROUBLE
    return bool(reason) and whole
