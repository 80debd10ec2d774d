"""One stored answer, ready to be handed out, and what a "not modified" makes of it."""

import sys
from dataclasses import dataclass

from afresh.serve.proxy import dates
from afresh.serve.proxy.belief import Outlook
from afresh.serve.proxy.fields import Lines, Named, end_to_end, joined, name_of, packed
from afresh.serve.proxy.rules import Terms
from afresh.types import Beliefs

ENTRY_BYTES = 1500  # what an entry takes besides its head and body
HITS_REMEMBERED = 3600.0  # seconds after which hits begin to count less, if there are some
HITS_ENOUGH = 16.0
PHRASES = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    203: "Non-Authoritative Information",
    204: "No Content",
    206: "Partial Content",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    410: "Gone",
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
_NOT_KEPT = frozenset({b"age", b"content-length", b"cache-status", b"x-fresh-probability", b"warning"})
_SECRETS = frozenset({b"set-cookie", b"set-cookie2"})
_OF_THE_BODY = frozenset({"content-length", "content-encoding", "content-range", "transfer-encoding"})
_IN_304 = frozenset(
    {
        "cache-control",
        "cdn-cache-control",
        "content-location",
        "date",
        "etag",
        "expires",
        "last-modified",
        "vary",
        "via",
    }
)


@dataclass(slots=True, eq=False)
class Entry:
    """An answer that is kept. Times are of the wall clock."""

    url: str
    status: int
    lines: Lines  # what is handed out, without what is made anew each time
    fields: Named
    body: bytes
    terms: Terms
    born: float  # the moment at which its age was 0
    good_until: float  # handed out without a second look before this moment
    head: bytes  # status line and fields, ready
    head_304: bytes
    etag: str = ""
    modified: str = ""
    coding: str = ""  # what the body is coded with
    names: tuple[str, ...] = ()  # the request's fields that select it
    selector: tuple[str, ...] = ()
    beliefs: Beliefs | None = None  # what the runner believes of the page
    outlook: Outlook | None = None  # own policy: what is believed by that and by all else
    confirmed: float = 0.0  # when it was last known to be current
    signals: int = 0  # of the store, since it was last known to be current
    signals_before: int = 0  # of the store's, those of before
    look_again: float = 0.0  # when the store is asked again whether it knows more
    refreshing: bool = False  # somebody asks behind the readers' backs
    hits: float = 0.0  # of late, for what it is worth
    hits_since: float = 0.0
    said: bytes = b""  # what a hit says of it, as long as that stays true
    said_from: float = 0.0
    said_until: float = 0.0

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return ENTRY_BYTES + len(self.body) + 3 * len(self.head)

    def counted(self, now: float) -> float:
        """For how many seconds its hits have been counted; those of long ago count half."""
        elapsed = max(now - self.hits_since, 0.0)
        if elapsed > HITS_REMEMBERED and self.hits > HITS_ENOUGH:
            self.hits, self.hits_since, elapsed = self.hits / 2, self.hits_since + elapsed / 2, elapsed / 2
        return elapsed

    def asked_for(self) -> float:
        """Requests a second, when it was last confirmed; the first one, which brought it here, says nothing yet."""
        elapsed = self.counted(self.confirmed)
        return max(self.hits - 1.0, 0.0) / elapsed if elapsed > 1.0 else 0.0

    def age(self, now: float) -> float:
        """Seconds since the origin made or confirmed it."""
        return max(now - self.born, 0.0)


def make(
    url: str,
    status: int,
    lines: Lines,
    body: bytes,
    terms: Terms,
    now: float,
    *,
    selected_by: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> Entry:
    """An entry of an answer that arrived just now."""
    withheld = frozenset(name.encode("latin-1") for name in terms.withheld)
    kept = end_to_end(lines, besides=_NOT_KEPT | _SECRETS | withheld)
    fields = joined(kept)
    if "date" not in fields:
        kept.append((b"Date", dates.written(int(now)).encode()))
        fields = joined(kept)
    born = now - terms.initial_age
    made = Entry(
        url=sys.intern(url),
        status=status,
        lines=kept,
        fields=fields,
        body=body,
        terms=terms,
        born=born,
        good_until=0.0 if terms.validate else born + terms.lifetime,
        head=b"",
        head_304=b"",
        names=selected_by[0],
        selector=selected_by[1],
        confirmed=now,
    )
    _ready(made)
    return made


def _ready(entry: Entry) -> None:
    """Put together what is the same in every answer."""
    fields = entry.fields
    entry.etag, entry.modified = fields.get("etag", ""), fields.get("last-modified", "")
    entry.coding = fields.get("content-encoding", "").strip().lower()
    start = f"HTTP/1.1 {entry.status} {PHRASES.get(entry.status, '')}\r\n".encode("latin-1")
    length = b"" if entry.status == 204 else b"Content-Length: %d\r\n" % len(entry.body)
    entry.head = start + packed(entry.lines) + length + VIA
    some = [line for line in entry.lines if name_of(line[0]) in _IN_304]
    entry.head_304 = b"HTTP/1.1 304 Not Modified\r\n" + packed(some) + VIA


VIA = b"Via: 1.1 afresh\r\n"


def refreshed(entry: Entry, lines: Lines, terms: Terms, now: float) -> Entry:
    """The entry with the fields of an answer that said it still holds (RFC 9111, 3.2 and 4.3.4)."""
    withheld = frozenset(name.encode("latin-1") for name in terms.withheld)
    newer = [
        line
        for line in end_to_end(lines, besides=_NOT_KEPT | _SECRETS | withheld)
        if name_of(line[0]) not in _OF_THE_BODY
    ]
    replaced = {name_of(name) for name, _ in newer}
    if "date" not in replaced:
        newer.append((b"Date", dates.written(int(now)).encode()))
        replaced.add("date")
    kept = [line for line in entry.lines if name_of(line[0]) not in replaced] + newer
    made = make(entry.url, entry.status, kept, entry.body, terms, now, selected_by=(entry.names, entry.selector))
    made.hits, made.hits_since = entry.hits, entry.hits_since
    made.beliefs, made.outlook, made.signals = entry.beliefs, entry.outlook, entry.signals
    made.look_again = entry.look_again
    return made


def checked(entry: Entry, at: float, *, again: bool = True) -> Entry:
    """The entry, known to be current at a moment; `again`: by a later look than that which brought it."""
    entry.born, entry.said_until = at, 0.0
    if again:
        dated = (b"Date", dates.written(int(at)).encode())
        entry.lines = [line for line in entry.lines if name_of(line[0]) != "date"] + [dated]
        entry.fields = joined(entry.lines)
        _ready(entry)
    return entry


def after(entry: Entry, newer: Lines) -> Named:
    """The fields that an entry would have after a "not modified" with these lines: what its terms are read from.

    Age is the new answer's own: the stored one says how old it was then.
    """
    fields = {name: value for name, value in entry.fields.items() if name != "age"}
    return fields | {name: value for name, value in joined(newer).items() if name not in _OF_THE_BODY}
