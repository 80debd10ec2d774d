"""Events as lines of a log: one line each, whatever a stranger's text holds, and no secrets."""

import json
import math
import re
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote_plus

from afresh.daemon import events
from afresh.types import Crawl

MAX_VALUE = 2_200  # characters: a whole URL
MAX_TRACE = 12_000
MAX_LOOKED_AT = 100_000  # characters of a value that are looked at for secrets
HIDDEN = "***"

Fields = Mapping[str, object]

_BARE = re.compile(r"[A-Za-z0-9_./:?&=%#@~+,;!$'()*\[\]-]+")
_USERINFO = re.compile(r"(?<=//)[^/\s@?#\"'<>]+@")
_PARAMETER = re.compile(r"([?&;])([^=&;#\s\"']{1,100})=([^&;#\s\"']+)")
_CREDENTIALS = re.compile(r"\b(bearer|basic|token)(\s+|=|:\s*)[A-Za-z0-9+/_.=~-]{6,}", re.IGNORECASE)
# Names of parameters whose values are secrets: a word at the end, or a whole part of the name.
_SECRET = re.compile(
    r"(?:token|secret|password|passwd|passphrase|signature|apikey|jwt|credentials?|sessionid|phpsessid)$"
    r"|(?:^|[^a-z0-9])(?:key|sig|sid|auth|authorization|pwd|pass|session|code|otp|pin)$"
)


def redacted(text: str) -> str:
    """A text without what looks like a secret in it.

    >>> redacted("http://me:pw@h/?page=2&access_token=abc#x"), redacted("Authorization: Bearer abcdef")
    ('http://***@h/?page=2&access_token=***#x', 'Authorization: Bearer ***')
    """
    text = _USERINFO.sub(f"{HIDDEN}@", text)
    text = _PARAMETER.sub(_without_value, text)
    return _CREDENTIALS.sub(rf"\1\2{HIDDEN}", text)


def _without_value(match: re.Match[str]) -> str:
    before, name, _ = match.groups()
    return f"{before}{name}={HIDDEN}" if _SECRET.search(unquote_plus(name).lower()) else match[0]


def line(moment: float, event: str, fields: Fields, *, as_json: bool) -> str:
    r"""One line for one event, without the newline; nothing in a value can begin another.

    >>> line(0.0, "crawl", {"url": "http://h/", "reason": "a\nb"}, as_json=False)
    '1970-01-01T00:00:00.000Z crawl url=http://h/ reason="a\\nb"'
    """
    when = _moment(moment)
    safe = {name: _safe(name, value) for name, value in fields.items() if value is not None and value != ""}
    if as_json:
        return json.dumps({"time": when, "event": event, **safe})
    return " ".join([when, event, *(f"{name}={_plain(value)}" for name, value in safe.items())])


def _moment(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def _safe(name: str, value: object) -> str | int | float | bool:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else str(value)
    # Cut afterwards, so that no secret is cut in two; the end of a trace says most.
    if name == "trace":
        return redacted(str(value)[-MAX_LOOKED_AT:])[-MAX_TRACE:]
    return redacted(str(value)[:MAX_LOOKED_AT])[:MAX_VALUE]


def _plain(value: str | float | bool) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)  # ASCII alone: nothing steers a terminal


def told(event: events.Event) -> Iterator[tuple[str, Fields]]:
    """What an event of the daemon's has to say: a name and fields for each line."""
    match event:
        case events.Started(pages):
            yield "started", {"pages": pages}
        case events.Stored(crawls):
            for crawl in crawls:
                yield "crawl", _crawl(crawl)
        case events.Listed():
            yield (
                "sitemap",
                {
                    "url": event.url,
                    "entries": event.entries,
                    "found": event.found,
                    "signals": event.signals,
                    "problem": event.problem,
                },
            )
        case events.Filled(used, bound, takes):
            yield "store", {"takes": takes, "used": used, "max_bytes": bound}
        case events.Stopped(released):
            yield "stopped", {"given_back": released}


def _crawl(crawl: Crawl) -> Fields:
    return {
        "url": crawl.url,
        "began": _moment(crawl.time),
        "outcome": str(crawl.outcome),
        "reason": crawl.reason,
        "status": crawl.status or None,
        "size": crawl.size or None,
        "took": round(crawl.took, 3),
    }


def fault(message: str, error: BaseException | None) -> Fields:
    """A fault of our own, with its trace."""
    if error is None:
        return {"message": message}
    trace = "".join(traceback.format_exception(error))
    return {"message": message, "error": f"{type(error).__name__}: {error}", "trace": trace}
