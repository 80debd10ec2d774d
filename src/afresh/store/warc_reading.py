"""Captures out of WARC files that anybody may have written.

Nothing in such a file is trusted: lengths that lie, records that end early and gzip bombs cost the record, or what
follows it in the file, and no more memory than one body may take.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 500
MAX_RECORD_BYTES = 4 << 30  # beyond which a file is not read on: what a record says cannot be skipped cheaply
OLDEST = 662_688_000.0  # 1991: there was no web to capture before
READS = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource


@dataclass(frozen=True, slots=True)
class Capture:
    """What an address answered at a moment, the body as it was sent; `problem` says in a word why it is of no use."""

    url: str
    time: float
    status: int = 0  # 0: no answer of a server, but a content as it was
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    content_type: str = ""  # of what is no answer of a server
    same: bool = False  # the content is that of the capture before
    digest: str = ""
    problem: str = ""


@dataclass(slots=True)
class Ending:
    """How the reading of a file ended: in one sentence, "" if all is well."""

    problem: str = ""
    records: int = field(default=0)


def captures(path: Path, max_body: int, ending: Ending) -> Iterator[Capture]:
    """The captures of a file in their order."""
    at = 0
    try:
        for record in ArchiveIterator(
            str(path), record_types=READS, parse_http=False, fsspec_args=False, max_header_len=MAX_HEADER_BYTES
        ):
            at = record.stream_pos
            ending.records += 1
            if record.content_length > MAX_RECORD_BYTES:
                ending.problem = f"the record at byte {at:,} says that it has {record.content_length:,} bytes"
                return
            found, ends = _capture(record, max_body)
            if found is not None:
                yield found
            if ends:
                ending.problem = f"it ends within the record at byte {at:,}"
                return
    except (OSError, ValueError, EOFError, RuntimeError, UnicodeError) as error:
        ending.problem = f"behind byte {at:,} it is no WARC file: {str(error)[:200]}"


def _capture(record: WarcRecord, max_body: int) -> tuple[Capture | None, bool]:
    """What a record holds, if it is a capture; and whether the file ends within it."""
    url, moment = (record.headers.get("WARC-Target-URI") or "").strip().strip("<>"), record.record_date
    if not url:
        return None, False
    time = moment.timestamp() if moment is not None else 0.0
    same = record.record_type == WarcRecordType.revisit
    digest = (record.headers.get("WARC-Payload-Digest") or "")[:200]
    problem = "" if isfinite(time) and time >= OLDEST else "no_date"
    kind = record.headers.get("Content-Type") or ""
    if record.record_type == WarcRecordType.resource:
        body, problem, ends = _body(record, max_body, problem)
        return Capture(url, time, 0, (), body, kind[:200], False, digest, problem), ends
    if "application/http" in kind and record.content_length:
        record.parse_http(auto_decode="none", max_header_len=MAX_HEADER_BYTES)
    http = record.http_headers
    if http is None:
        if same:  # a revisit may have no headers of its own
            return Capture(url, time, 304, (), same=True, digest=digest, problem=problem), False
        return Capture(url, time, problem="no_answer"), False
    body, problem, ends = _body(record, max_body, problem)
    if not ends and record.headers.get("WARC-Truncated") and 200 <= (http.status_code or 0) < 300:
        problem = problem or "truncated"
    headers = tuple(http.items_bytes())[:MAX_HEADERS]
    return Capture(url, time, http.status_code or 0, headers, body, "", same, digest, problem), ends


def _body(record: WarcRecord, max_body: int, problem: str) -> tuple[bytes, str, bool]:
    said = record.content_length
    body = record.reader.read(max_body + 1)
    if len(body) > max_body:
        return b"", problem or "too_large", False
    return body, (problem or "truncated") if len(body) < said else problem, len(body) < said
