"""Dates that a page itself says: when it was published and last modified, as they are written there.

They are looked for by name in the bytes, without reading the page: it is asked at every visit that brings content.
"""

import re
from collections.abc import Iterator

MAX_PAGE = 512 << 10  # bytes of a page that are searched,
MAX_HITS = 8  # places with one name that are looked at,
NEAR = 200  # and bytes round each of them

# Names that may stand anywhere, and those of `meta` tags, which stand in the head alone.
_MODIFIED = (
    (rb"dateModified",),
    (rb"article:modified_time", rb"og:updated_time", rb"last-modified", rb"dcterms.modified", rb"DC.date.modified"),
)
_PUBLISHED = (
    (rb"datePublished", rb"pubdate"),
    (rb"article:published_time", rb"dcterms.created", rb"DC.date.issued"),
)
# As an ISO date, whole or with a time and a zone, or as mail writes it.
_WRITTEN = (
    rb"((?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9](?::[0-6][0-9](?:\.[0-9]{1,9})?)?"
    rb" ?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?)?"
    rb"|(?:[A-Z][a-z]{2}, )?[0-3]?[0-9] [A-Z][a-z]{2} (?:19|20)[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-6][0-9] GMT)"
)
_DATE = re.compile(_WRITTEN)
_VALUE = re.compile(rb"[^0-9>,]{0,80}" + _WRITTEN)  # in the same tag or statement


def page_dates(body: bytes) -> tuple[str, ...]:
    """What a page says of when it last changed; where it says nothing of that, when it was published.

    >>> page_dates(b'<meta property="article:modified_time" content="2026-05-01T08:00:00Z">')
    ('2026-05-01T08:00:00Z',)
    >>> page_dates(b'{"datePublished":"2020-02-03","headline":"Tides"}'), page_dates(b"<p>2020-02-03")
    (('2020-02-03',), ())
    """
    end = min(len(body), MAX_PAGE)
    head = body.find(b"</head", 0, end)
    for anywhere, in_head in (_MODIFIED, _PUBLISHED):
        found = dict.fromkeys((*_dates(body, anywhere, end), *_dates(body, in_head, end if head < 0 else head)))
        if found:
            return tuple(found)
    return ()


def _dates(body: bytes, names: tuple[bytes, ...], end: int) -> Iterator[str]:
    """The dates beside some names, up to a place."""
    for name in names:
        at = body.find(name, 0, end)
        for _ in range(MAX_HITS):
            if at < 0:
                break
            if date := _beside(body, at, at + len(name)):
                yield date
            at = body.find(name, at + len(name), end)


def _beside(body: bytes, start: int, end: int) -> str:
    """The date that belongs to a name: in the same statement or tag behind it, else in the same tag before it."""
    match = _VALUE.match(body, end, end + NEAR)
    if match is None:
        opened = body.rfind(b"<", max(start - NEAR, 0), start)
        if opened < 0 or body.find(b">", opened, start) >= 0:
            return ""
        match = _DATE.search(body, opened, start)
    return match.group(1).decode() if match is not None else ""
