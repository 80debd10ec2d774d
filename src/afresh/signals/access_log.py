"""Lines of access logs as requests: common and combined format, JSON lines, and `page,count`.

Logs hold strangers' bytes. A line of bounded length is looked at once, in linear time; what cannot be read is said.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from afresh.errors import SignalError
from afresh.types import Request

MAX_LINE_BYTES = 64 << 10
MAX_COUNT = 1e12
# host (or site:port host) ident user [time] "request" status …
_WORD = r"(\S{1,300})"
_LOG = re.compile(rf'{_WORD} (?:{_WORD} )?{_WORD} {_WORD} \[([^\]]{{1,40}})\] "((?:[^"\\]|\\.)*)" (\d{{3}})(?: |$)')
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MOMENT = re.compile(r"(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})")
_URL_NAMES = ("url", "page", "request_url", "uri", "request_uri", "path")
_TIME_NAMES = ("time", "timestamp", "ts", "@timestamp", "time_iso8601", "date")
_HOST_NAMES = ("host", "http_host", "server_name", "vhost")
ASKING = frozenset({"GET", "HEAD"})
FIRST_FAILURE = 400  # of the statuses: what failed was not served


class Skipped(StrEnum):
    """Lines that can be read, and tell of no page that was served."""

    FAILED = "that failed"  # 404 and the like
    NO_READING = "other than GET and HEAD"


def request_of(line: str, *, site: str = "", time: float = 0.0) -> Request | Skipped | None:
    """What one line tells: a request, or why it is none; None for headings and the like.

    SignalError if it cannot be read.

    `site` is put before an address that is a path alone; `time` is used for a line that has none.

    >>> line = '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "-" "x"'
    >>> request_of(line, site="https://e.org")
    Request(url='https://e.org/a', time=971211336.0, count=1.0)
    >>> request_of("https://e.org/b,12", time=5.0)
    Request(url='https://e.org/b', time=5.0, count=12.0)
    """
    text = line.strip()
    if len(line) > MAX_LINE_BYTES:
        raise SignalError(f"it is longer than {MAX_LINE_BYTES} bytes")
    if not text or text.startswith("#"):
        return None
    if text.startswith("{"):
        return _from_json(text, site, time)
    match = _LOG.match(text)
    if match is not None:
        return _from_log(match, site)
    page, comma, count = text.rpartition(",")
    if not comma or page.strip('" ').lower() in ("page", "url"):
        if comma:
            return None  # the heading
        raise SignalError("it is neither a line of an access log, nor JSON, nor page,count")
    return Request(_whole(page.strip('" '), "", site), time, _count(count))


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that a reader was served: who that was as far as a log can tell, and how many bytes it took."""

    reader: str
    url: str  # or a path, where the log does not say of which site
    time: float
    size: float | None


_AFTER = re.compile(r' ?(\d{1,15}|-)(?: "(?:[^"\\]|\\.){0,8192}" "((?:[^"\\]|\\.){0,8192})")?')


def visit_of(line: str) -> Visit | Skipped | None:
    """What a line of the common or combined format says of a reader; None if it is not one.

    >>> visit_of('1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "-" "Browser"')
    Visit(reader='1.2.3.4 Browser', url='/a', time=971211336.0, size=2326.0)
    """
    match = _LOG.match(line.strip()) if len(line) <= MAX_LINE_BYTES else None
    if match is None:
        return None
    first, second, _, _, moment, asked, status = match.groups()
    method, _, rest = asked.partition(" ")
    if method not in ASKING:
        return Skipped.NO_READING
    if int(status) >= FIRST_FAILURE:
        return Skipped.FAILED
    after = _AFTER.match(line.strip(), match.end())
    size, agent = (after[1], after[2] or "") if after is not None else ("-", "")
    address, site = rest.rpartition(" ")[0] or rest, first if second is not None else ""
    url = f"{site}{address}" if address.startswith("/") else address
    return Visit(f"{second or first} {agent}".strip(), url, _moment(moment), None if size == "-" else float(size))


def _from_log(match: re.Match[str], site: str) -> Request | Skipped:
    first, second, _, _, moment, asked, status = match.groups()
    method, _, rest = asked.partition(" ")
    if method not in ASKING:
        return Skipped.NO_READING
    if int(status) >= FIRST_FAILURE:
        return Skipped.FAILED
    # Logs of several sites begin with the site: "example.org:443 1.2.3.4 - - [".
    host = first if second is not None else ""
    return Request(_whole(rest.rpartition(" ")[0] or rest, host, site), _moment(moment))


def _from_json(text: str, site: str, time: float) -> Request | Skipped:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        raise SignalError("it begins like JSON and is none") from None
    inner = read.get("request")
    fields = {**read, **inner} if isinstance(inner, dict) else read
    method, status = str(fields.get("method", "GET")), fields.get("status", 200)
    if method not in ASKING:
        return Skipped.NO_READING
    if str(status).isdecimal() and int(str(status)[:6]) >= FIRST_FAILURE:
        return Skipped.FAILED
    url = next((str(fields[name]) for name in _URL_NAMES if fields.get(name)), "")
    host = next((str(fields[name]) for name in _HOST_NAMES if fields.get(name)), "")
    if not url:
        raise SignalError(f"it has none of {', '.join(_URL_NAMES)}")
    when = next((fields[name] for name in _TIME_NAMES if fields.get(name) is not None), None)
    return Request(_whole(url, host, site), time if when is None else _any_moment(when), _count(fields.get("count", 1)))


def _whole(address: str, host: str, site: str) -> str:
    """An address with scheme and host."""
    if address.startswith(("http://", "https://")):
        return address
    if not address.startswith("/"):
        raise SignalError("its address is neither a URL nor a path")
    if site:
        return site.rstrip("/") + address
    name, colon, port = host.rpartition(":")
    if not host or "/" in host:
        raise SignalError("its address is a path alone, and no site is given")
    if colon and port in ("443", "80"):
        return f"{'https' if port == '443' else 'http'}://{name}{address}"
    return f"https://{host}{address}"


def _count(value: Any) -> float:
    try:
        count = float(value)
    except (ValueError, TypeError):
        count = -1.0
    if not 0 <= count <= MAX_COUNT:
        raise SignalError("its count is not a number of requests")
    return count


def _moment(text: str) -> float:
    match = _MOMENT.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise SignalError("its time is not like 10/Oct/2000:13:55:36 -0700")
    day, _, year, hour, minute, second, sign, hours, minutes = match.groups()
    try:
        month, seconds = _MONTHS.index(match[2]) + 1, min(int(second), 59)  # there are leap seconds
        local = datetime(int(year), month, int(day), int(hour), int(minute), seconds, tzinfo=UTC)
    except ValueError:
        raise SignalError("its time is no time") from None
    offset = (int(hours) * 60 + int(minutes)) * 60.0
    return local.timestamp() - (offset if sign == "+" else -offset)


def _any_moment(value: Any) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
        elif "/" in str(value)[:12]:
            return _moment(str(value))
        else:
            read = datetime.fromisoformat(str(value)[:40])
            number = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise SignalError("its time is no time") from None
    if not 0 <= number < 1e11:
        raise SignalError("its time is no time")
    return number
