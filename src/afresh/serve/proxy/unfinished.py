"""Answers that were called off: what had come is kept for a while, and only the rest is asked for later.

The origin is asked for the rest with the validator of what is here, so it decides whether both belong together. Nothing
of a beginning is shown before it has said so.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass

from afresh.serve.proxy import dates
from afresh.serve.proxy.fields import Lines, Named, joined, members, name_of
from afresh.serve.proxy.filling import Filling
from afresh.serve.proxy.vary import Selector, selected

MOST = 256  # beginnings
MOST_BYTES = 16 << 20  # of all together
KEPT_BYTES = 1500  # what one takes besides its body
LONGEST = 600.0  # seconds for which one is kept
APART = 60.0  # seconds by which Last-Modified must lie before Date: a page may change twice within one of its seconds
_STRONG = re.compile(r'"[\x21\x23-\x7e]{1,256}"')
_OF_THE_PART = frozenset(
    {"content-length", "content-range", "content-type", "content-encoding", "transfer-encoding", "accept-ranges"}
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of an answer, and what says that others belong to it."""

    url: str
    lines: Lines
    body: bytes
    total: int
    validator: tuple[str, str]  # name and value of the field
    names: Selector
    selector: Selector
    kept: float

    @property
    def size(self) -> int:
        """What it takes."""
        return len(self.body) + sum(len(name) + len(value) for name, value in self.lines) + KEPT_BYTES

    def asks(self) -> Lines:
        """The fields that ask for the rest."""
        value = self.validator[1].encode("latin-1")
        return [(b"Range", b"bytes=%d-" % len(self.body)), (b"If-Range", value)]

    def continued(self, lines: Lines) -> Lines | None:
        """The fields of the whole, if an answer with status 206 brings exactly the rest of it."""
        fields, before = joined(lines), joined(self.lines)
        left = self.total - len(self.body)
        name, value = self.validator
        other = any(fields.get(each, before.get(each)) != before.get(each) for each in ("etag", "last-modified"))
        if (
            other
            or fields.get(name) != value
            or fields.get("content-range", "").lower() != f"bytes {len(self.body)}-{self.total - 1}/{self.total}"
            or fields.get("content-length", str(left)) != str(left)
            or fields.get("content-encoding", "identity").lower() != "identity"
        ):
            return None
        newer = [line for line in lines if name_of(line[0]) not in _OF_THE_PART]
        replaced = {name_of(name) for name, _ in newer} | {"age"}
        kept = [line for line in self.lines if name_of(line[0]) not in replaced]
        return [*kept, *newer, (b"Content-Length", b"%d" % self.total)]


def beginning_of(filling: Filling, now: float) -> Beginning | None:
    """What has come of an answer, if its rest can be asked for."""
    fields, total = filling.fields, filling.length
    if not (filling.keep and filling.status == 200 and total is not None and 0 < filling.size < total):
        return None
    if "bytes" not in members(fields.get("accept-ranges", "")) or "transfer-encoding" in fields:
        return None
    if fields.get("content-encoding", "identity").lower() != "identity":
        return None  # many origins pack anew for each request
    validator = _validator(fields)
    if validator is None:
        return None
    body = filling.body()
    return Beginning(filling.url, filling.lines, body, total, validator, filling.names, filling.selector, now)


def _validator(fields: Named) -> tuple[str, str] | None:
    """What tells two answers apart that differ in a single byte."""
    etag, modified = fields.get("etag", ""), fields.get("last-modified", "")
    if _STRONG.fullmatch(etag):
        return "etag", etag
    changed, said = dates.moment(modified), dates.moment(fields.get("date", ""))
    if not etag and changed is not None and said is not None and changed + APART <= said:
        return "last-modified", modified
    return None


class Unfinished:
    """Beginnings by address, bounded; those kept longest leave first."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self.bytes = 0
        self.used, self.used_bytes = 0, 0  # completed for readers
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Beginning] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, url: object) -> bool:
        return url in self._kept

    def keep(self, beginning: Beginning) -> bool:
        """Keep one; whether there was room."""
        self.drop(beginning.url)
        if beginning.size > self._most_bytes:
            return False
        self._kept[beginning.url] = beginning
        self.bytes += beginning.size
        while len(self._kept) > self._most or self.bytes > self._most_bytes:
            self.drop(next(iter(self._kept)))
        return True

    def take(self, url: str, asked_with: Named, now: float) -> Beginning | None:
        """The beginning of what a request asks for, which leaves."""
        found = self._kept.get(url)
        if found is None or selected(found.names, asked_with) != found.selector:
            return None
        self.drop(url)
        return found if now - found.kept <= LONGEST else None

    def drop(self, url: str) -> None:
        """Forget what there is of an address."""
        if (found := self._kept.pop(url, None)) is not None:
            self.bytes -= found.size
