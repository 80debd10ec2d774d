"""Webhooks: what somebody with a token says has changed, in any of the usual forms.

Plain text has one address a line. JSON is an address, an object, or a list of either; NDJSON has one of them a line.
An object has `url` or `urls`, and may have `sender`, `time` and `key`. A CloudEvent is an object, too: its `data` may
hold addresses, and otherwise its `subject` is one, whole or below its `source`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from afresh.errors import SignalError
from afresh.signals.moments import moment
from afresh.signals.strict_json import read_json

MAX_ITEMS = 10_000  # addresses in one body
MAX_ADDRESS = 2_083  # characters
MAX_NAME = 100  # of a sender, and of a key
MILLISECONDS = 1e11  # seconds since 1970 are never so many: the year 5138
NDJSON = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})
_JSON = frozenset({b"{", b"[", b'"'})  # as JSON that holds addresses begins


@dataclass(frozen=True, slots=True)
class Said:
    """One page that is said to have changed; as written, for the caller to check."""

    url: str
    time: float | None = None  # of the change, if that is said
    sender: str = ""


@dataclass(frozen=True, slots=True)
class Hook:
    """What one body says."""

    items: tuple[Said, ...] = ()
    key: str = ""  # under which the same may be sent again


def read_hook(body: bytes, content_type: str = "") -> Hook:
    """What the body of a webhook says; SignalError with the position of what cannot be read.

    >>> read_hook(b'{"urls": ["https://e.org/a"], "sender": "cms", "time": "1970-01-02"}').items
    (Said(url='https://e.org/a', time=86400.0, sender='cms'),)
    >>> len(read_hook(b"https://e.org/a\\nhttps://e.org/b\\n").items)
    2
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in NDJSON:
        return _lines(body)
    if kind.endswith("json") or body.lstrip()[:1] in _JSON:
        try:
            return _gathered(_said(read_json(body), "The body"))
        except SignalError:
            if kind.endswith("json") or not _has_values_on_lines(body):
                raise
    return _lines(body)


def _has_values_on_lines(body: bytes) -> bool:
    """Whether what is no JSON value may be several, one a line: the first is whole, and more begin."""
    first, *more = (line for line in body.split(b"\n", 64) if line.strip())
    try:
        read_json(first)
    except SignalError:
        return False
    return bool(more)


def _lines(body: bytes) -> Hook:
    """A line is an address or JSON."""

    def said() -> Iterator[Said | str]:
        for number, line in enumerate(body.splitlines(), 1):
            line = line.strip()
            if not line:
                continue
            try:
                if line[:1] in _JSON:
                    yield from _said(read_json(line), "It")
                else:
                    yield Said(_address(line.decode("utf-8"), "It"))
            except (SignalError, UnicodeDecodeError) as error:
                why = error.message if isinstance(error, SignalError) else "It is not UTF-8."
                raise SignalError(f"Line {number} cannot be used: {why}") from None

    return _gathered(said())


def _gathered(said: Iterator[Said | str]) -> Hook:
    items: list[Said] = []
    key = ""
    for each in said:
        if isinstance(each, str):
            key = key or each
        elif len(items) >= MAX_ITEMS:
            raise SignalError(f"There are more than {MAX_ITEMS:,} addresses in one body.", hint="Send them in parts.")
        else:
            items.append(each)
    if not items:
        raise SignalError("No address is in it.", hint='Send {"url": "https://example.com/page"}.')
    return Hook(tuple(items), key)


def _said(value: Any, where: str) -> Iterator[Said | str]:
    """Pages, and keys as plain text, in one JSON value."""
    if isinstance(value, str):
        yield Said(_address(value, where))
    elif isinstance(value, list):
        for nth, each in enumerate(value):
            if isinstance(each, list):
                raise SignalError(f"Item {nth} is a list in a list.")
            yield from _said(each, f"Item {nth}")
    elif isinstance(value, dict):
        yield from _of_object(_event(value) if "specversion" in value else value, where)
    else:
        raise SignalError(f"{where} is neither an address nor an object.")


def _of_object(said: dict[str, Any], where: str) -> Iterator[Said | str]:
    urls = said.get("urls", said.get("url"))
    urls = [urls] if isinstance(urls, str) else urls
    if not isinstance(urls, list) or not urls:
        raise SignalError(f"{where} has neither url nor urls.")
    sender, key = _name(said.get("sender", ""), where), _name(said.get("key", ""), where)
    when = _time(said.get("time"), where)
    if key:
        yield key
    for url in urls:
        yield Said(_address(url, where), when, sender)


def _event(event: dict[str, Any]) -> dict[str, Any]:
    """A CloudEvent as a plain object; its identity is the key."""
    data, source, subject = event.get("data"), str(event.get("source", "")), str(event.get("subject", ""))
    said: dict[str, Any] = dict(data) if isinstance(data, dict) and ("url" in data or "urls" in data) else {}
    if not said:
        whole = subject.startswith(("http://", "https://"))
        said["url"] = subject if whole else f"{source.rstrip('/')}/{subject.lstrip('/')}" if subject else source
    said.setdefault("time", event.get("time"))
    said.setdefault("key", f"{source} {event.get('id', '')}"[-MAX_NAME:] if event.get("id") else "")
    return said


def _address(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ADDRESS:
        raise SignalError(f"{where} holds an address that is no text of at most {MAX_ADDRESS:,} characters.")
    return value.strip()


def _name(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME or not value.isprintable():
        raise SignalError(f"{where} has a sender or key that is no text of at most {MAX_NAME} printable characters.")
    return value


def _time(value: Any, where: str) -> float | None:
    """Seconds since 1970, or milliseconds, or a written moment."""
    if value is None:
        return None
    if isinstance(value, str):
        found = moment(value)
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        found = None
    else:
        found = value / 1000.0 if value > MILLISECONDS else float(value)
    if found is None:
        raise SignalError(f"{where} has a time that is none.", hint='Write it like "2026-11-19T12:00:00Z".')
    return found
