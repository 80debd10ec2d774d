"""RFC 9111 as pure functions: what an answer allows a shared cache to do with it.

`terms` reads all of it once, when an answer arrives. What a request asks for on top is `allows`.
"""

import re
from dataclasses import dataclass
from enum import Enum

from afresh.serve.proxy import dates
from afresh.serve.proxy.directives import Directives, parsed, seconds, structured
from afresh.serve.proxy.fields import Named, members

HEURISTIC_STATUSES = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
UNDERSTOOD = HEURISTIC_STATUSES | {201, 202, 302, 303, 307, 400, 401, 403, 500, 502, 503, 504}
NEVER_KEPT = frozenset({206, 304, 401, 407, 416})  # parts, and what concerns one reader's own question
HEURISTIC_SHARE = 0.1  # of the time since the last modification
LONGEST_HEURISTIC = 86400.0
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH"})
_AGE = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Terms:
    """What an answer's fields say: whether it may be kept and shared, and how long it is good."""

    storable: bool
    lifetime: float  # seconds from `initial_age` 0 on
    initial_age: float  # when it arrived
    explicit: bool  # whether the origin named the lifetime
    validate: bool  # no-cache: never without asking
    strict: bool  # must-revalidate and its kin: never stale, whatever happens
    stale_while_revalidate: float
    stale_if_error: float | None  # None: nothing was said
    withheld: frozenset[str] = frozenset()  # fields that must not be handed out again without asking


def directives_of(fields: Named) -> tuple[Directives, bool]:
    """What speaks to a shared cache like this one, and whether that is CDN-Cache-Control, which replaces all else."""
    targeted = fields.get("cdn-cache-control")
    if targeted is not None and (said := structured(targeted)):
        return said, True
    return parsed(fields.get("cache-control", "")), False


def age_of(fields: Named) -> float:
    """What Age says: its first member, if that is a number.

    >>> age_of({"age": "7200, 0"}), age_of({"age": "7200.0"}), age_of({})
    (7200.0, 0.0, 0.0)
    """
    first = fields.get("age", "").partition(",")[0].strip()
    return float(min(int(first[:12]), 2**31)) if _AGE.fullmatch(first) else 0.0


def initial_age(fields: Named, asked: float, answered: float) -> float:
    """How old an answer was when it arrived (RFC 9111, 4.2.3)."""
    date = dates.moment(fields.get("date", ""))
    apparent = max(0.0, answered - date) if date is not None else 0.0
    # A Date has whole seconds: what is less than one is no age.
    apparent = apparent if apparent >= 1.0 else 0.0
    return max(apparent, age_of(fields) + max(answered - asked, 0.0))


def lifetime(status: int, fields: Named, said: Directives, answered: float, *, targeted: bool) -> tuple[float, bool]:
    """(seconds that an answer is fresh, whether the origin said so)."""
    for name in ("s-maxage", "max-age"):
        if name in said:
            return seconds(said, name), True
    date = dates.moment(fields.get("date", ""))
    if "expires" in fields and not targeted:
        until = dates.moment(fields["expires"])
        return (0.0 if until is None else max(0.0, until - (answered if date is None else date))), True
    modified = dates.moment(fields.get("last-modified", ""))
    if modified is None or (status not in HEURISTIC_STATUSES and "public" not in said):
        return 0.0, False
    guess = HEURISTIC_SHARE * ((answered if date is None else date) - modified)
    return min(max(guess, 0.0), LONGEST_HEURISTIC), False


def terms(
    method: str, asked_with: Named, status: int, fields: Named, asked: float, answered: float, *, url: str = ""
) -> Terms:
    """All that an answer allows, read once."""
    said, targeted = directives_of(fields)
    life, explicit = lifetime(status, fields, said, answered, targeted=targeted)
    qualified = {name for word in ("no-cache", "private") for name in members(said.get(word) or "")}
    return Terms(
        storable=_storable(method, asked_with, status, fields, said, explicit, url),
        lifetime=life,
        initial_age=initial_age(fields, asked, answered),
        explicit=explicit,
        validate="no-cache" in said and not said["no-cache"],
        strict=any(word in said for word in ("must-revalidate", "proxy-revalidate", "s-maxage"))
        or ("no-cache" in said and not said["no-cache"]),
        stale_while_revalidate=seconds(said, "stale-while-revalidate"),
        stale_if_error=seconds(said, "stale-if-error") if "stale-if-error" in said else None,
        withheld=frozenset(qualified),
    )


def _storable(
    method: str, asked_with: Named, status: int, fields: Named, said: Directives, explicit: bool, url: str
) -> bool:
    """Whether a shared cache may keep an answer (RFC 9111, 3)."""
    wanted = parsed(asked_with.get("cache-control", ""))
    if status < 200 or status in NEVER_KEPT or "no-store" in wanted:
        return False
    if method != "GET" and not (method == "POST" and explicit and fields.get("content-location") in _forms(url)):
        return False
    understood = "must-understand" in said
    if (understood and status not in UNDERSTOOD) or ("no-store" in said and not understood):
        return False
    if ("private" in said and not said["private"]) or "*" in members(fields.get("vary", "")):
        return False
    if "authorization" in asked_with and not any(word in said for word in ("public", "must-revalidate", "s-maxage")):
        return False
    if "cookie" in asked_with and not explicit:
        return False  # what was made for a reader that is known by name is not kept by a guess
    return explicit or "public" in said or status in HEURISTIC_STATUSES


def _forms(url: str) -> tuple[str, ...]:
    """The ways to name an address in Content-Location."""
    path = "/" + url.partition("://")[2].partition("/")[2]
    return (url, path) if url else ()


class Use(Enum):
    """What may be done with a stored answer at a moment, for a request."""

    FRESH = "fresh"  # hand it out
    STALE = "stale"  # hand it out, and ask behind the reader's back
    ASK = "ask"  # ask first


def use(terms_: Terms, age: float, wanted: Directives) -> Use:
    """Whether a stored answer of this age may be handed out for a request that wants this."""
    if terms_.validate or "no-cache" in wanted or "no-store" in wanted:
        return Use.ASK
    left = terms_.lifetime - age
    if "max-age" in wanted and age > seconds(wanted, "max-age"):
        return Use.ASK
    if "min-fresh" in wanted and left < seconds(wanted, "min-fresh"):
        return Use.ASK
    if left > 0:
        return Use.FRESH
    if terms_.strict:
        return Use.ASK
    if "max-stale" in wanted and (not wanted["max-stale"] or -left <= seconds(wanted, "max-stale")):
        return Use.FRESH
    return Use.STALE if -left < terms_.stale_while_revalidate else Use.ASK


def bears_failure(terms_: Terms, age: float, *, reached: bool, longest: float) -> bool:
    """Whether a stale answer may stand in for an origin that failed.

    `reached`: it answered with an error. If it did not answer at all, a cache is disconnected, and may hand out what
    is not older than the `longest` that its operator bears (RFC 9111, 4.2.4).
    """
    if terms_.strict:
        return False
    stale = age - terms_.lifetime
    if terms_.stale_if_error is not None:
        return stale <= terms_.stale_if_error
    return not reached and stale <= longest
