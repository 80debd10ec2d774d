"""What the engine is told of pages and crawls, checked before anything of it is kept."""

import math

from afresh.checks import MAX_MOMENT, moment, number, require_kinds, require_text, whole
from afresh.estimate.base import check_wanted
from afresh.hours import hours
from afresh.types import Fetched, Outcome, Page, Verdict


def check_page(page: Page) -> None:
    """ConfigError if a page, or what its operator says of it, cannot be used."""
    require_kinds((page, Page, "page"))
    for name in ("url", "host", "hours"):
        require_text(getattr(page, name), f"page.{name}")
    if page.hours:
        hours(page.hours)
    check_wanted(page.importance, page.popularity)
    number("page.added", page.added, least=-math.inf)
    whole("page.depth", page.depth)
    if page.shortest is not None:
        number("page.shortest", page.shortest, most=MAX_MOMENT)
    if page.longest is not None:
        number("page.longest", page.longest, infinite=True)


def check_crawl(fetched: Fetched, verdict: Verdict) -> None:
    """ConfigError if what came of a fetch cannot have come of one."""
    if (
        type(fetched) is Fetched
        and type(verdict) is Verdict
        and type(verdict.outcome) is Outcome
        and type(fetched.body) is bytes
        and type(fetched.started) is float
        and -MAX_MOMENT <= fetched.started <= MAX_MOMENT
        and type(fetched.took) is float
        and 0.0 <= fetched.took <= MAX_MOMENT
        and type(fetched.status) is int
        and fetched.status >= 0
        and fetched.retry_after is None
        and type(verdict.significance) is float
        and 0.0 <= verdict.significance <= 1.0
    ):
        return  # nearly always
    require_kinds((fetched, Fetched, "fetched"), (verdict, Verdict, "verdict"))
    require_kinds((verdict.outcome, Outcome, "verdict.outcome"), (fetched.body, bytes, "fetched.body"))
    moment("fetched.started", fetched.started)
    number("fetched.took", fetched.took, most=MAX_MOMENT)
    whole("fetched.status", fetched.status)
    if fetched.retry_after is not None:
        number("fetched.retry_after", fetched.retry_after, least=-math.inf, infinite=True)
    number("verdict.significance", verdict.significance, most=1.0)
