"""What is taken from an answer's headers, and what is not believed: validators, dates, waiting times, codings."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache

from afresh.fetch.answer import Headers
from afresh.types import Validators

LONGEST_VALUE = 1024  # a validator longer than this is not worth keeping
LONGEST_TAGS = 8192  # characters of all X-Robots-Tag headers together that are read word by word
LONGEST_WAIT = 1e9  # seconds; what a host says beyond this means nothing
OLDEST_DATE = 631152000.0  # 1990: nothing on the web is older, and a server that says so has no clock
CLOCK_SLACK = 300.0  # how far a server's clock may be ahead of ours
_CODING_SUFFIXES = ("-gzip", "--gzip", ";gzip", "-br", "-zstd", "-deflate", "-df")


def conditions(known: Validators) -> dict[str, str]:
    """The headers that ask "has it changed since?"; none without a copy to fall back on.

    >>> conditions(Validators(etag='"7"', fingerprint=1)), conditions(Validators(etag='"7"'))
    ({'If-None-Match': '"7"'}, {})
    """
    if not known.fingerprint:
        return {}
    asked = {"If-None-Match": plain(known.etag), "If-Modified-Since": plain(known.last_modified)}
    return {name: value for name, value in asked.items() if value}


def validators(headers: Mapping[str, str], now: float) -> Validators:
    """What the server gave to ask with next time, as far as it makes sense."""
    last_modified = plain(headers.get("Last-Modified", ""))
    believed = date(last_modified, now) is not None
    return Validators(etag=plain(headers.get("ETag", "")), last_modified=last_modified if believed else "")


STATUS = ":status"  # the name under which the status stands beside the headers, as in HTTP/2
MAX_KEPT_BYTES = 16 << 10  # of names and values
# What speaks of one connection or of the form in which the body came, which is undone; and secrets of one reader.
_NOT_KEPT = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-encoding",
        "content-length",
        "www-authenticate",
        "authentication-info",
    }
)
_SECRET = frozenset({"set-cookie", "set-cookie2"})


def kept(status: int, headers: Headers) -> dict[str, str]:
    """The status and the headers that a copy keeps: names in lower case, values of one name joined by commas.

    Of cookies only that there were some. What is too long is left out.

    >>> kept(200, Headers([(b"Vary", b"a"), (b"vary", b"b"), (b"Set-Cookie", b"id=7"), (b"Connection", b"close")]))
    {':status': '200', 'vary': 'a, b', 'set-cookie': ''}
    """
    found, room = {STATUS: str(status)}, MAX_KEPT_BYTES
    for name in headers:
        if name in _NOT_KEPT:
            continue
        values = headers.all(name)
        size = len(name) + sum(len(value) + 2 for value in values)
        if size <= room:
            text = "" if name in _SECRET else ", ".join(values)
            found[name] = text if text.isprintable() else "".join(filter(str.isprintable, text))
            room -= size
    return found


def plain(value: str) -> str:
    """The value if it can be sent back as it is, else nothing."""
    return value if len(value) <= LONGEST_VALUE and value.isascii() and value.isprintable() else ""


def date(value: str, now: float) -> float | None:
    """The moment that an HTTP date names; None if it names none, or one that cannot be true.

    A date to come would make every later change look old, and a server without a clock says 1970 for ever; a year of
    two digits leaves the century open.

    >>> date("Sun, 06 Nov 1994 08:49:37 GMT", now=1e9), date("Thu, 01 Jan 1970 00:00:00 GMT", now=1e9)
    (784111777.0, None)
    """
    seconds = _moment(value[:100])
    return seconds if seconds is not None and OLDEST_DATE <= seconds <= now + CLOCK_SLACK else None


@lru_cache(1024)  # every answer of one second has the same Date, and all pages of some sites one Last-Modified
def _moment(value: str) -> float | None:
    """The moment that a date names, if it names its year whole."""
    try:
        moment = parsedate_to_datetime(value)
        return moment.timestamp() if str(moment.year) in value else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(value: str, now: float) -> float | None:
    """Seconds to wait, from either form of Retry-After; never negative, never absurd; None for one without sense.

    >>> retry_after("120", now=0.0), retry_after("-5", now=0.0), retry_after("9" * 400, now=0.0)
    (120.0, None, 1000000000.0)
    """
    value = value.strip()
    if not value:
        return None
    if value.isascii() and value.isdecimal():
        return min(float(value[:20]), LONGEST_WAIT)
    try:
        seconds = parsedate_to_datetime(value[:100]).timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT)


def oddities(headers: Mapping[str, str], now: float) -> list[str]:
    """Names of the headers that cannot be true and are not believed."""
    found = []
    if (said := headers.get("Last-Modified")) is not None and date(said, now) is None:
        found.append("Last-Modified")
    if (said := headers.get("Date")) is not None:
        moment = date(said, now)
        if moment is None or abs(moment - now) > 86400.0:
            found.append("Date")
    if (said := headers.get("Age")) is not None and not (said.isascii() and said.isdecimal() and len(said) < 10):
        found.append("Age")
    if (said := headers.get("ETag")) is not None and not plain(said):
        found.append("ETag")
    return found


def confirms(known: Validators, headers: Mapping[str, str]) -> bool:
    """Whether a "not modified" is about the version that was asked about.

    Weak and strong tags of one version agree here, and so do the tags of its compressed and plain forms: that is how
    servers answer, and only the version matters.
    """
    answered = headers.get("ETag", "")
    return not known.etag or not answered or known.etag == answered or _version(known.etag) == _version(answered)


def _version(etag: str) -> str:
    bare = etag.strip().removeprefix("W/").strip('"')
    for suffix in _CODING_SUFFIXES:
        bare = bare.removesuffix(suffix)
    return bare


_MAX_AGE = re.compile(r"(?:^|[,\s])(s-maxage|max-age)\s{0,9}=\s{0,9}\"?([0-9]{1,18})", re.IGNORECASE)


def lifetime(meta: Mapping[str, str]) -> float | None:
    """For how many seconds an answer is said to hold, by what a copy keeps of its headers; None: it does not say.

    An answer that must always be asked about says nothing of how often it changes, and nor does one that is said to
    have expired already.

    >>> lifetime({"cache-control": "public, max-age=600"}), lifetime({"cache-control": "no-cache, max-age=600"})
    (600.0, None)
    >>> lifetime({"date": "Sun, 06 Nov 1994 08:00:00 GMT", "expires": "Sun, 06 Nov 1994 09:00:00 GMT"})
    3600.0
    """
    said = meta.get("cache-control", "")[:LONGEST_VALUE].lower()
    if "no-cache" in said or "no-store" in said:
        return None
    if found := _MAX_AGE.findall(said):
        named = dict(reversed(found))  # of two with one name the first counts
        seconds = float(named.get("s-maxage") or named["max-age"])
    else:
        until, sent = _moment(meta.get("expires", "")[:100]), _moment(meta.get("date", "")[:100])
        if until is None or sent is None:
            return None
        seconds = until - sent
    return min(seconds, LONGEST_WAIT) if seconds > 0 else None


_UNHEARD_OF = "unheard-of"


def codings(values: list[str]) -> list[str]:
    """The content codings in the order in which they were applied; a list without end is one that nobody knows.

    >>> codings(["gzip, BR", "identity"])
    ['gzip', 'br']
    """
    if not values:
        return []
    if sum(map(len, values)) > LONGEST_VALUE:
        return [_UNHEARD_OF]
    words = [word.strip().lower() for value in values for word in value.split(",")]
    return [word for word in words if word not in ("", "identity", "none")]


_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_DIRECTIVES = {"nofollow": ("nofollow",), "noindex": ("noindex",), "none": ("noindex", "nofollow")}


def robots_tag(values: list[str], agent: str) -> str:
    """What X-Robots-Tag headers ask of this agent (or of all): "noindex", "nofollow", both with a comma, or "".

    A value may begin with the name of the robot that it speaks to, and another name may follow later on.

    >>> robots_tag(["otherbot: noindex, afresh: nofollow"], "afresh/1"), robots_tag(["otherbot: none"], "afresh/1")
    ('nofollow', '')
    """
    if not values:
        return ""
    if sum(map(len, values)) > LONGEST_TAGS:
        return "nofollow,noindex"  # nobody means so much, and who asks for something may have it
    names = ("", "*", agent.partition("/")[0].strip().lower())
    found: set[str] = set()
    for value in values:
        speaks_to = ""
        for part in value.lower().split(","):
            name, colon, word = part.partition(":")
            name = name.strip()
            if colon and name not in _VALUED and " " not in name:  # a date has colons and blanks
                speaks_to, part = name, word
            if speaks_to in names:
                for word in part.split():  # some write blanks instead of commas
                    found.update(_DIRECTIVES.get(word, ()))
    return ",".join(sorted(found))
