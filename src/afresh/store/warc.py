"""Copies as a WARC file, the format of web archives."""

import hashlib
import re
from base64 import b32encode
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

REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # of a header
_GONE = {404: "Not Found", 410: "Gone"}


class _Answered(NamedTuple):
    """What an index says of a record."""

    status: int
    content_type: str


class WarcFile:
    """Writes a response record for every copy, and a revisit record for every later check that found it unchanged; of a
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

    def write(self, copy: Copy, history: Iterable[Crawl] = ()) -> None:
        """One copy, and the crawls (newest first) that confirmed it since it was fetched."""
        digest = "sha1:" + b32encode(hashlib.sha1(copy.body, usedforsecurity=False).digest()).decode()
        common = {"WARC-Target-URI": copy.url, "WARC-Payload-Digest": digest}
        if not _is_web(copy.url):
            # No answer of a server: a record of the content as it is, and the checks are in the store's history.
            kind = copy.content_type or "application/octet-stream"
            self._record(
                WarcRecordType.resource, copy.fetched, common | {"Content-Type": kind}, copy.body, _Answered(0, kind)
            )
            return
        response = common | {"Content-Type": "application/http; msgtype=response"}
        answered = _Answered(200, copy.content_type)
        self._record(WarcRecordType.response, copy.fetched, response, _answer(copy) + copy.body, answered)
        for crawl in reversed([each for each in history if _confirms(each, copy)]):
            revisit = common | {
                "WARC-Profile": REVISIT,
                "WARC-Refers-To-Target-URI": copy.url,
                "WARC-Refers-To-Date": _date(copy.fetched),
            }
            self._record(WarcRecordType.revisit, crawl.time, revisit, b"", _Answered(304, "warc/revisit"))

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


def _confirms(crawl: Crawl, copy: Copy) -> bool:
    return crawl.outcome is Outcome.UNCHANGED and crawl.time > copy.fetched


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
