"""Copies as a WARC file, the format of web archives."""

import hashlib
import re
from base64 import b32encode
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from afresh.store.cdx import Line
from afresh.types import Copy, Crawl, Outcome

OUTCOME = "Afresh-Outcome"  # of a record: what the crawl found, as bytes that are not here cannot tell
OTHER_BYTES = ("same_text", "noise")  # reasons of crawls that found other bytes, and nothing that counts
RESPONSE = {"Content-Type": "application/http; msgtype=response"}
REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # of a header
_GONE = {404: "Not Found", 410: "Gone"}


class _Answered(NamedTuple):
    """What an index says of a record."""

    status: int
    content_type: str


class WarcFile:
    """Writes a response record for every copy, and a revisit record for every check that found the same bytes; of a
    file or a query's result a resource record.

    The headers of the answer are those that are kept: content type and validators. A name that ends in .gz makes a
    file in which every record is compressed on its own, as readers of WARC files expect.
    """

    def __init__(self, path: str, *, indexed: bool = False) -> None:
        self.lines: list[Line] = []  # of an index
        self._name, self._indexed = Path(path).name, indexed
        self._file = open(path, "wb")  # noqa: PTH123, SIM115 - closed by __exit__
        self._packs = path.endswith(".gz")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, copy: Copy, history: Iterable[Crawl] = (), earlier: Iterable[Copy] = ()) -> None:
        """One copy, its earlier versions (oldest first), and the crawls of its page (newest first), in their order.

        A crawl whose content is not kept is a response without one, which says so.
        """
        if not _is_web(copy.url):
            # No answer of a server: a record of the content as it is, and the checks are in the store's history.
            for each in (*earlier, copy):
                kind = each.content_type or "application/octet-stream"
                said = _common(each) | {"Content-Type": kind}
                self._record(WarcRecordType.resource, each.fetched, said, each.body, _Answered(0, kind))
            return
        crawls = sorted((each for each in history if each.outcome.refreshed), key=lambda each: each.time)
        waiting = deque(crawls)
        before: Copy | None = None
        date = 0.0  # of its record
        for each in (*earlier, copy):
            between: list[Crawl] = []
            while waiting and waiting[0].time <= each.fetched:
                between.append(waiting.popleft())
            begins = _first_with(between, each)
            self._write_checks(before, between[:begins], date)
            first = between[begins] if begins < len(between) else None
            said = _common(each) | RESPONSE | ({OUTCOME: first.outcome.value} if first is not None else {})
            answered, when = _Answered(200, each.content_type), each.fetched if first is None else first.time
            self._record(WarcRecordType.response, when, said, _answer(each) + each.body, answered)
            before, date = each, when
            self._write_checks(before, between[begins + 1 :], date)
        self._write_checks(before, list(waiting), date)

    def _write_checks(self, of: Copy | None, crawls: list[Crawl], date: float = 0.0) -> None:
        """Crawls behind the record of a copy, of this date: revisits of it, until one had other bytes."""
        for crawl in crawls:
            said = {OUTCOME: crawl.outcome.value}
            if of is None or not _is_same(crawl):
                of = None
                said |= {"WARC-Target-URI": crawl.url, "WARC-Truncated": "unspecified"} | RESPONSE
                answer = b"HTTP/1.1 200 OK\r\n\r\n"
                self._record(WarcRecordType.response, crawl.time, said, answer, _Answered(200, ""))
                continue
            said |= _common(of) | {
                "WARC-Profile": REVISIT,
                "WARC-Refers-To-Target-URI": of.url,
                "WARC-Refers-To-Date": _date(date),
            }
            self._record(WarcRecordType.revisit, crawl.time, said, b"", _Answered(304, "warc/revisit"))

    def write_gone(self, url: str, status: int, since: float) -> None:
        """The page's server says since this moment that it is not there; what else it answered is not kept."""
        if not _is_web(url):
            return
        headers = {"WARC-Target-URI": url, "Content-Type": "application/http; msgtype=response"}
        answer = f"HTTP/1.1 {status} {_GONE.get(status, '')}\r\n\r\n".encode()
        said = headers | {"WARC-Truncated": "unspecified"}
        self._record(WarcRecordType.response, since, said, answer, _Answered(status, ""))

    def _record(
        self, kind: WarcRecordType, moment: float, headers: dict[str, str], content: bytes, answered: "_Answered"
    ) -> None:
        record = WarcRecord()
        record.init_headers(record_type=kind)
        record.headers["WARC-Date"] = _date(moment)
        for name, value in headers.items():
            record.headers[name] = value
        record.set_bytes_content(content)
        at = self._file.tell()
        if self._packs:
            packed = BytesIO()  # a writer of its own for each: the record has its place in the file then
            writer = GzipWriter(packed)
            record.write(writer)
            writer.close()
            self._file.write(packed.getvalue())
        else:
            record.write(self._file)
        if not self._indexed:
            return
        digest = headers.get("WARC-Payload-Digest", "")
        line = Line(headers["WARC-Target-URI"], moment, answered.status, answered.content_type, digest)
        self.lines.append(replace(line, size=self._file.tell() - at, offset=at, file=self._name))


def _is_web(url: str) -> bool:
    return url.startswith(("http:", "https:"))


def _common(copy: Copy) -> dict[str, str]:
    digest = "sha1:" + b32encode(hashlib.sha1(copy.body, usedforsecurity=False).digest()).decode()
    return {"WARC-Target-URI": copy.url, "WARC-Payload-Digest": digest}


def _first_with(crawls: list[Crawl], copy: Copy) -> int:
    """The first of some crawls up to a copy that had its bytes: the copy is of the last of them; their number if none.

    A server without validators sends the same bytes each time, and the copy is of the last time.
    """
    if not crawls or crawls[-1].time != copy.fetched:
        return len(crawls)
    nth = len(crawls) - 1
    while nth and _is_same(crawls[nth]):
        nth -= 1
    return nth


def _is_same(crawl: Crawl) -> bool:
    """Whether the bytes were those of the crawl before, and not only what counts of them."""
    return crawl.outcome is Outcome.UNCHANGED and crawl.reason not in OTHER_BYTES


def _answer(copy: Copy) -> bytes:
    """The head of the HTTP answer, from what is kept of it."""
    head = {
        "Content-Type": copy.content_type,
        "ETag": copy.validators.etag,
        "Last-Modified": copy.validators.last_modified,
        "Content-Length": str(len(copy.body)),
    }
    written = {name.lower() for name in head}
    more = {name: value for name, value in copy.meta.items() if name.isascii() and _NAME.fullmatch(name)}
    head |= {name.title(): value for name, value in more.items() if name.lower() not in written}
    # What came over the network must not be able to end a header line.
    lines = [f"{name}: {''.join(c for c in value if c.isprintable())}" for name, value in head.items() if value]
    return ("HTTP/1.1 200 OK\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _date(moment: float) -> str:
    """With as many digits as there are: WARC 1.1 allows fractions of a second."""
    when = datetime.fromtimestamp(round(moment, 6), UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if when.microsecond else "%Y-%m-%dT%H:%M:%SZ")
