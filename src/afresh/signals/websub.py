"""WebSub: where a topic's hub is, and whether what comes is the hub's.

Pure: headers and bytes in, values out. Sending, waiting and remembering are the subscriber's.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_LINKS = 64
MAX_HEADER = 16 << 10
METHODS = frozenset({"sha1", "sha256", "sha384", "sha512"})
MAX_CHALLENGE = 4_096  # characters
SHORTEST_LEASE, LONGEST_LEASE = 300.0, 30 * 86_400.0
DEFAULT_LEASE = 10 * 86_400.0
_LINK = re.compile(
    r"\s*<([^<>]{1,2083})>((?:\s*;\s*[^\s;,=]{1,40}\s*(?:=\s*(?:\"[^\"]{0,2083}\"|[^\s;,\"]{0,2083}))?)*)\s*(?:,|$)"
)
_RELATION = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Announced:
    """What a publisher says of its hubs: addresses as written, relative to where they were found."""

    hubs: tuple[str, ...] = ()
    itself: str = ""  # the topic's own address, which alone may be subscribed to

    def __bool__(self) -> bool:
        return bool(self.hubs)


def in_header(value: str) -> Announced:
    """What Link headers say, joined by commas as they are kept.

    >>> in_header('<https://hub.test/>; rel="hub", </feed>; rel=self')
    Announced(hubs=('https://hub.test/',), itself='/feed')
    """
    hubs: list[str] = []
    itself, at = "", 0
    value = value[:MAX_HEADER]
    for _ in range(MAX_LINKS):
        match = _LINK.match(value, at)
        if match is None:
            break
        at = match.end()
        relation = _RELATION.search(match[2])
        words = (relation[1] or relation[2] or "").lower().split() if relation is not None else []
        if "hub" in words:
            hubs.append(match[1].strip())
        if "self" in words and not itself:
            itself = match[1].strip()
        if at >= len(value):
            break
    return Announced(tuple(hubs), itself)


def best(*announced: Announced) -> Announced:
    """The first that names a hub: headers come before what the content says."""
    return next((each for each in announced if each), Announced())


def lease_of(text: str) -> float:
    """Seconds that a hub grants: within bounds, whatever it says.

    >>> lease_of("864000"), lease_of("-1"), lease_of("9" * 30), lease_of("")
    (864000.0, 300.0, 2592000.0, 864000.0)
    """
    try:
        seconds = float(text[:20]) if text else DEFAULT_LEASE
    except ValueError:
        return DEFAULT_LEASE
    if seconds != seconds:
        return DEFAULT_LEASE
    return min(max(seconds, SHORTEST_LEASE), LONGEST_LEASE)


def is_signed(body: bytes, header: str, secret: str) -> bool:
    """Whether a delivery carries the signature of who knows the secret, compared in constant time.

    >>> is_signed(b"x", "sha256=" + hmac.new(b"s", b"x", "sha256").hexdigest(), "s"), is_signed(b"x", "", "s")
    (True, False)
    """
    method, _, said = header.strip().partition("=")
    method, said = method.strip().lower(), said.strip().lower()
    if method not in METHODS or not said.isascii():
        return False
    return hmac.compare_digest(hmac.new(secret.encode(), body, method).hexdigest(), said)


@dataclass(frozen=True, slots=True)
class Intent:
    """What a hub asks before it does it."""

    mode: str  # subscribe, unsubscribe, denied
    topic: str
    challenge: str = ""
    lease: float = DEFAULT_LEASE


def intent_of(query: Mapping[str, str]) -> Intent | None:
    """The question of a hub; None if it is none, or one that should not be answered.

    >>> intent_of({"hub.mode": "subscribe", "hub.topic": "https://e.org/feed", "hub.challenge": "c"}).challenge
    'c'
    """
    mode, topic, challenge = (query.get(f"hub.{name}", "") for name in ("mode", "topic", "challenge"))
    if mode == "denied" and topic:
        return Intent(mode, topic)
    if mode not in ("subscribe", "unsubscribe") or not topic or not 0 < len(challenge) <= MAX_CHALLENGE:
        return None
    return Intent(mode, topic, challenge, lease_of(query.get("hub.lease_seconds", "")))
