"""What a copy says, as blocks of text: what a page shows, the lines of a text file, the rows of a result."""

import re

from afresh.detect.compare import NO_RULES, Rules
from afresh.detect.diff import Row, diff
from afresh.reading import read
from afresh.reading.decode import utf8
from afresh.types import Copy

MAX_TEXT_BYTES = 4 << 20  # of a body that are looked at
MAX_BLOCKS = 50_000
_TEXT = re.compile(r"text/|json|xml|javascript|csv|yaml|toml", re.IGNORECASE)
_LONG_LINE = 400  # characters; JSON in longer lines is broken where lists and objects end
_END_OF_VALUE = re.compile(r"(?<=[\]}]),")


def blocks_of(copy: Copy, rules: Rules = NO_RULES) -> list[str] | None:
    """The blocks of a copy in their order; None if it holds no text.

    >>> blocks_of(Copy("", b"<title>Port</title><p>The <b>ferry</b> runs.", "text/html", 0.0, 0.0))
    ['Port', 'The ferry runs.']
    >>> blocks_of(Copy("", b"a\\0b", "image/png", 0.0, 0.0)) is None
    True
    """
    body, kind = copy.body[:MAX_TEXT_BYTES], copy.content_type
    if "html" in kind.lower():
        page = read(body, kind, selectors=rules.parts)
        if rules.keep and not len(page):  # what is to be kept is nowhere on it: all of it counts
            page = read(body, kind, selectors=rules.without_keep)
        return [page.block(nth) for nth in range(min(len(page), MAX_BLOCKS))]
    if not (_TEXT.search(kind) or copy.url.startswith("sql:")) and b"\0" in body[:1024]:
        return None
    try:
        text = utf8(body, kind).decode("utf-8", "replace" if _TEXT.search(kind) else "strict")
    except UnicodeDecodeError:
        return None
    lines = text.splitlines()
    if any(len(line) > _LONG_LINE for line in lines) and ("json" in kind or copy.url.startswith("sql:")):
        lines = _END_OF_VALUE.sub(",\n", text).splitlines()
    return [line.rstrip() for line in lines[:MAX_BLOCKS]]


def compared(before: Copy | None, after: Copy | None, rules: Rules = NO_RULES) -> list[Row] | None:
    """What two versions of a page show, beside each other; None if there is no text to compare.

    It reads both, and takes as long as that takes: up to a few seconds for the largest pages.
    """
    old, new = (None if copy is None else blocks_of(copy, rules) for copy in (before, after))
    if (old is None and before is not None) or (new is None and after is not None):
        return None
    return diff(old or [], new or [])
