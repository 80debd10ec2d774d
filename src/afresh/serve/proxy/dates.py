"""HTTP dates, in exactly the three forms of RFC 9110, 5.6.7. What is almost one of them is none: it means "stale"."""

import calendar
import re
from datetime import UTC, datetime
from functools import lru_cache

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = tuple(month.title() for month in _MONTHS)
_CLOCK = r"(?P<hour>[0-2]\d):(?P<minute>[0-5]\d):(?P<second>[0-6]\d)"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_DAY = "(?:mon|tue|wed|thu|fri|sat|sun)"
_LONG_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_FORMS = [
    re.compile(rf"{_DAY}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_CLOCK} gmt", re.IGNORECASE | re.ASCII),
    re.compile(rf"{_LONG_DAY}, (?P<day>\d\d)-{_MONTH}-(?P<short>\d\d) {_CLOCK} gmt", re.IGNORECASE | re.ASCII),
    re.compile(rf"{_DAY} {_MONTH} (?P<day>[ \d]\d) {_CLOCK} (?P<year>\d{{4}})", re.IGNORECASE | re.ASCII),
]
MAX_YEARS_AHEAD = 50  # of a year of two digits: what is further ahead is meant to be in the past
_LONGEST = 40


@lru_cache(4096)
def moment(text: str, century_of: int = 2026) -> float | None:
    """Seconds since 1970, or None if the text is no HTTP date.

    >>> moment("Sun, 06 Nov 1994 08:49:37 GMT"), moment("Sunday, 06-Nov-94 08:49:37 GMT")
    (784111777.0, 784111777.0)
    >>> moment("Sun Nov  6 08:49:37 1994"), moment("Sun, 6 Nov 1994 08:49:37 GMT"), moment("0")
    (784111777.0, None, None)
    """
    if len(text) > _LONGEST:
        return None
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if match is None:
        return None
    parts = match.groupdict()
    if parts.get("year") is None:
        year = century_of // 100 * 100 + int(parts["short"])
        year -= 100 if year > century_of + MAX_YEARS_AHEAD else 0
    else:
        year = int(parts["year"])
    month = _MONTHS.index(parts["month"].lower()) + 1
    try:
        day = datetime(year, month, int(parts["day"]), int(parts["hour"]), int(parts["minute"]), tzinfo=UTC)
    except ValueError:
        return None
    return float(calendar.timegm(day.timetuple()) + int(parts["second"]))


@lru_cache(16)
def written(seconds: int) -> str:
    """A moment as HTTP writes it.

    >>> written(784111777)
    'Sun, 06 Nov 1994 08:49:37 GMT'
    """
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTH_NAMES[at.month - 1]} {at.year:04} {at:%H:%M:%S} GMT"
