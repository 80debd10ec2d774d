"""The texts of links: what a page calls the pages that it links to."""

import re
from collections.abc import Mapping

MOST = 64  # links of a page whose texts are looked at,
LONGEST = 400  # bytes behind the address in which a text must end,
LONGEST_TEXT = 120  # and characters of it that are kept

_TAG = re.compile(rb"<[^>]{0,300}>")


def anchors(page: bytes, written: Mapping[bytes, str | None]) -> dict[str, str]:
    """The texts of the first links that were `written` on a page, by what they mean.

    >>> anchors(b'<a href="a.html">The <b>tides</b></a>', {b"a.html": "http://e.org/a.html"})
    {'http://e.org/a.html': 'The tides'}
    """
    found: dict[str, str] = {}
    at = 0
    for raw, url in list(written.items())[:MOST]:
        start = page.find(raw, at)  # they are in the page's order
        if url is None or start < 0:
            continue
        at = start + len(raw)
        begun = page.find(b">", at, at + LONGEST)
        ended = page.find(b"</a", begun, begun + LONGEST) if begun >= 0 else -1
        if ended < 0:
            continue
        text = b" ".join(_TAG.sub(b" ", page[begun + 1 : ended]).split()).decode("utf-8", "replace")[:LONGEST_TEXT]
        if text:
            found[url] = text
    return found
