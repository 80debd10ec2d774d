"""Conditional requests and ranges, answered from a whole copy (RFC 9110, 13 and 14)."""

import re

from afresh.serve.proxy import dates
from afresh.serve.proxy.fields import Named

_TAG = re.compile(r'(?:[Ww]/)?"[^"]*"|[^\s,"]+')
_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))", re.IGNORECASE)
MAX_TAGS = 8192  # characters of If-None-Match that are looked at


def unchanged(asked_with: Named, etag: str, modified: str, date: str) -> bool:
    """Whether the reader's own copy is the one that we have: then 304 is the answer.

    >>> unchanged({"if-none-match": '"a", W/"b"'}, '"b"', "", ""), unchanged({"if-none-match": '"a"'}, '"b"', "", "")
    (True, False)
    """
    tags = asked_with.get("if-none-match")
    if tags is not None:
        if tags == etag and etag:
            return True
        if tags.strip() == "*":
            return True
        ours = _bare(etag)
        return bool(etag) and any(_bare(tag) == ours for tag in _TAG.findall(tags[:MAX_TAGS]))
    since = asked_with.get("if-modified-since")
    if since is None:
        return False
    known, ours_at = dates.moment(since), dates.moment(modified or date)
    return known is not None and ours_at is not None and ours_at <= known


def _bare(tag: str) -> str:
    """Tags compare weakly here, and some write them without quotes."""
    text = tag[2:] if tag[:2] in ("W/", "w/") else tag
    return text.strip('"')


def part(asked_with: Named, size: int, etag: str, modified: str) -> tuple[int, int] | None:
    """The first byte and the one behind the last that are asked for; None: all; (0, 0) if there is no such part.

    More than one range is answered with all, as RFC 9110, 14.2 allows: many small ones are how servers are worn down.

    >>> part({"range": "bytes=2-"}, 10, "", ""), part({"range": "bytes=-3"}, 10, "", ""), part({}, 10, "", "")
    ((2, 10), (7, 10), None)
    >>> part({"range": "bytes=10-"}, 10, "", ""), part({"range": "bytes=0-1,4-5"}, 10, "", "")
    ((0, 0), None)
    """
    text = asked_with.get("range")
    if text is None or not _holds(asked_with.get("if-range"), etag, modified):
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        return (max(size - int(suffix), 0), size) if int(suffix) and size else (0, 0)
    start, end = int(first), min(int(last) + 1, size) if last is not None else size
    if last is not None and int(last) < start:
        return None  # no range at all
    return (start, end) if start < size else (0, 0)


def _holds(condition: str | None, etag: str, modified: str) -> bool:
    """If-Range: only a strong tag, or the very date that we have."""
    if condition is None:
        return True
    if condition.startswith('"'):
        return condition == etag
    return bool(modified) and condition == modified
