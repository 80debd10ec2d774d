"""ETag and Last-Modified of pages, true or lying, and what a conditional request gets."""

from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from math import floor

from afresh.sim.web import dice
from afresh.sim.web.site import Site


@lru_cache(maxsize=4096)
def http_date(second: int) -> str:
    """A Unix time as HTTP writes it.

    >>> http_date(0)
    'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    return formatdate(second, usegmt=True)


def read_http_date(text: str) -> float | None:
    """The Unix time of an HTTP date, None if it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Offer:
    """The validators that one answer carries, and whether they can be believed; "" for none."""

    etag: str
    etag_true: bool
    modified: int | None  # Unix seconds
    modified_true: bool


def offer(site: Site, page: int, version: int, t: float, *, epoch: float, request: int) -> Offer:
    """The validators of a page at a moment. `request` numbers the requests (for the lie that never repeats itself)."""
    luck = dice.bits(site.tag_key, page)
    etag = ""
    if site.etag[page]:
        label = f"{version:x}"
        if site.etag_wrong[page]:
            label = "0" if luck & 1 else f"r{request:x}"
        # Noisy pages are equal in meaning only, which is what a weak tag says.
        etag = f'{"W/" if site.noisy[page] or site.noisy_text[page] else ""}"{luck >> 32:08x}-{label}"'
    modified: int | None = None
    if site.last_modified[page]:
        modified = floor(epoch + site.last_change(page, t))
        if site.last_modified_wrong[page]:
            modified = floor(epoch + (t if luck & 2 else site.timeline.change_time(page, 0)))
        elif modified == floor(epoch + t):
            # In its own second a page may change again, and the date could not tell: a careful server sends none.
            modified = None
    return Offer(etag, not site.etag_wrong[page], modified, not site.last_modified_wrong[page])


def _opaque(tag: str) -> str:
    return tag.strip().removeprefix("W/")


def unchanged(offered: Offer, if_none_match: str | None, if_modified_since: str | None) -> tuple[bool, bool]:
    """Whether to answer 304, and whether that is the truth. If-None-Match, when sent, decides alone."""
    if if_none_match is not None:
        tags = {_opaque(tag) for tag in if_none_match.split(",")}
        same = bool(offered.etag) and (_opaque(offered.etag) in tags or "*" in tags)
        return same, same and offered.etag_true and "*" not in tags
    if if_modified_since is None or offered.modified is None:
        return False, False
    since = read_http_date(if_modified_since)
    same = since is not None and offered.modified <= since
    return same, same and offered.modified_true
