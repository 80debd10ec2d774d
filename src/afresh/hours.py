"""Hours of the week, such as "mon-fri 08:00-18:00 Europe/Berlin", and times of day."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf
from zoneinfo import ZoneInfo

from afresh.errors import ConfigError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 1440
WEEK_MINUTES = 7 * DAY_MINUTES
MAX_CHARACTERS = 200
MAX_MOMENT_CHARACTERS = 1_000  # of times of day
_TIME = r"([01]?\d|2[0-4]):([0-5]\d)"
_SPAN = re.compile(rf"(?:([a-z]{{3}})(?:-([a-z]{{3}}))?\s+)?{_TIME}-{_TIME}")
_MOMENT = re.compile(r"(?:([a-z]{3})(?:-([a-z]{3}))?\s+)?([01]?\d|2[0-3]):([0-5]\d)")
_ZONE = re.compile(r"(.*?\d)\s+([A-Za-z][A-Za-z0-9_+/-]*)")


@dataclass(frozen=True, slots=True)
class Hours:
    """Spans of minutes of the week, each with its length, and the time zone that they are meant in."""

    text: str
    spans: tuple[tuple[int, int], ...]
    zone: tzinfo = UTC

    def __str__(self) -> str:
        return self.text

    def are_open(self, now: float) -> bool:
        """Whether a moment is within them."""
        local = datetime.fromtimestamp(now, self.zone)
        minute = local.weekday() * DAY_MINUTES + local.hour * 60 + local.minute
        return any((minute - start) % WEEK_MINUTES < length for start, length in self.spans)

    def opens(self, now: float) -> float:
        """When they begin next, to the minute; `now` if they hold already.

        >>> hours("08:00-18:00").opens(30.0), hours("08:00-18:00").opens(36_000.0)
        (28800.0, 36000.0)
        """
        if self.are_open(now):
            return now
        begin = now - now % 60.0
        # The clocks of a zone may change on the way, so every minute is asked; a week has ten thousand.
        return next(begin + 60.0 * nth for nth in range(1, 2 * WEEK_MINUTES) if self.are_open(begin + 60.0 * nth))

    @property
    def always(self) -> bool:
        """Whether they never end."""
        open_minutes = {(start + nth) % WEEK_MINUTES for start, length in self.spans for nth in range(length)}
        return len(open_minutes) == WEEK_MINUTES

    def closes(self, now: float) -> float:
        """When they end next, to the minute; `now` if they do not hold, infinity if they never end.

        >>> hours("08:00-18:00").closes(36_000.0), hours("08:00-18:00").closes(30.0)
        (64800.0, 30.0)
        """
        if not self.are_open(now):
            return now
        begin = now - now % 60.0
        minutes = (begin + 60.0 * nth for nth in range(1, 2 * WEEK_MINUTES))
        return next((minute for minute in minutes if not self.are_open(minute)), inf)


@dataclass(frozen=True, slots=True)
class Moments:
    """Minutes of the week, and the time zone that they are meant in."""

    text: str
    minutes: tuple[int, ...]
    zone: tzinfo = UTC

    def __str__(self) -> str:
        return self.text

    def following(self, now: float) -> float:
        """The next of them after `now`.

        Where the clocks of their zone leave one out, it is when the clocks go on; where they repeat it, the first.

        >>> times = moments("08:00, 08:10")
        >>> times.following(30.0), times.following(28_800.0)
        (28800.0, 29400.0)
        """
        today = datetime.fromtimestamp(now, self.zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
        days = [today + timedelta(days=nth) for nth in range(-1, 9)]
        found = (
            self._moment(day + timedelta(minutes=minute % DAY_MINUTES))
            for day in days
            for minute in self.minutes
            if minute // DAY_MINUTES == day.weekday()
        )
        return min(moment for moment in found if moment > now)

    def _moment(self, wanted: datetime) -> float:
        """When the clocks show this, or begin to show later times."""
        moment = wanted.replace(tzinfo=self.zone).timestamp()
        while datetime.fromtimestamp(moment - 60.0, self.zone).replace(tzinfo=None) > wanted:
            moment -= 60.0
        return moment


def hours(text: str) -> Hours:
    """Hours from text: spans with commas between, each with its days unless it holds on all, and a zone unless UTC.

    >>> night = hours("22:00-06:00")
    >>> [night.are_open(3600.0 * hour) for hour in (5, 6, 21, 22)]
    [True, False, False, True]
    """
    said = str(text).strip()
    if len(said) > MAX_CHARACTERS:
        raise ConfigError(
            f"{said[:80]!r}… has {len(said):,} characters; hours have at most {MAX_CHARACTERS}.",
            hint="Name fewer spans.",
        )
    zoned = _ZONE.fullmatch(said)
    spans_text, zone = (zoned[1], _zone(zoned[2], said)) if zoned else (said, UTC)
    spans: list[tuple[int, int]] = []
    for span in spans_text.split(","):
        match = _SPAN.fullmatch(span.strip().lower())
        if match is None:
            raise _not_hours(said)
        spans += _spans(match, said)
    return Hours(said, tuple(spans), zone)


def moments(text: str) -> Moments:
    """Times of day from text, such as "mon-fri 08:00, 18:00 Europe/Berlin"; each has its days, or all.

    >>> moments("08:00").following(0.0) / 3600
    8.0
    """
    said = str(text).strip()
    if len(said) > MAX_MOMENT_CHARACTERS:
        raise ConfigError(
            f"{said[:80]!r}… has {len(said):,} characters; times of day have at most {MAX_MOMENT_CHARACTERS:,}.",
            hint="Name fewer times.",
        )
    zoned = _ZONE.fullmatch(said)
    times, zone = (zoned[1], _zone(zoned[2], said)) if zoned else (said, UTC)
    minutes: set[int] = set()
    for each in times.split(","):
        match = _MOMENT.fullmatch(each.strip().lower())
        days = None if match is None else _days(match)
        if match is None or days is None:
            raise ConfigError(f"{said[:80]!r} is no time of day.", hint='Write it like "mon-fri 08:00 Europe/Berlin".')
        minutes |= {day * DAY_MINUTES + int(match[3]) * 60 + int(match[4]) for day in days}
    return Moments(said, tuple(sorted(minutes)), zone)


def _days(match: re.Match[str]) -> list[int] | None:
    """The days of the week that stand before a time, all if there are none; None if they are no days."""
    first, last = match[1] or "mon", match[2] or match[1] or "sun"
    if first not in DAYS or last not in DAYS:
        return None
    count = (DAYS.index(last) - DAYS.index(first)) % 7 + 1
    return [(DAYS.index(first) + nth) % 7 for nth in range(count)]


def _spans(match: re.Match[str], said: str) -> list[tuple[int, int]]:
    days, start, end = _days(match), int(match[3]) * 60 + int(match[4]), int(match[5]) * 60 + int(match[6])
    if days is None or start >= DAY_MINUTES or end > DAY_MINUTES or start == end:
        raise _not_hours(said)
    length = end - start if end > start else end - start + DAY_MINUTES  # until the next morning
    return [(day * DAY_MINUTES + start, length) for day in days]


def _zone(name: str, said: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = 'Write one such as Europe/Berlin, or none for UTC: "08:00-18:00 Europe/Berlin".'
        raise ConfigError(f"{said[:80]!r} names no time zone that is known here.", hint=hint) from None


def _not_hours(said: str) -> ConfigError:
    return ConfigError(f"{said[:80]!r} are no hours.", hint='Write them like "08:00-18:00" or "mon-fri 22:00-06:00".')
