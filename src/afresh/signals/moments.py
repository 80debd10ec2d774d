"""Moments as publishers write them: the ISO forms of sitemaps and Atom, and the mail form of RSS."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 64  # characters; whatever is longer is no date
_YEAR_OR_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


def moment(text: str) -> float | None:
    """Seconds since 1970 of a written moment; None if it is none.

    Of a day, a month or a year it is the beginning. Without a zone it is taken to be UTC.

    >>> moment("1970-01-02"), moment("1970-01-01T01:00:00.5+01:00"), moment("1970"), moment("soon")
    (86400.0, 0.5, 0.0, None)
    >>> moment("Thu, 01 Jan 1970 00:01:00 GMT"), moment("01 Jan 70 00:00:01")
    (60.0, 1.0)
    """
    text = text.strip()
    if not text or len(text) > LONGEST:
        return None
    try:
        found = _iso(text) if text[:4].isdecimal() else parsedate_to_datetime(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _iso(text: str) -> datetime:
    if match := _YEAR_OR_MONTH.fullmatch(text):
        return datetime(int(match[1]), int(match[2] or 1), 1, tzinfo=UTC)
    return datetime.fromisoformat(text[:10].replace("/", "-") + text[10:].upper())
