"""Captures out of WARC files that anybody may have written.

Nothing in such a file is trusted: lengths that lie, records that end early and gzip bombs cost the record, or (where it
is no gzip member of its own) what follows it in the file, and no more memory than one body may take.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from afresh.store.gzip_members import MAGIC, following, member, members
from afresh.store.warc import OUTCOME

MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 500
MAX_PROBLEMS = 5  # of a file that are told
MAX_RECORD_BYTES = 4 << 30  # beyond which a file is not read on: what a record says cannot be skipped cheaply
STATUSES = range(100, 1_000)
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
    outcome: str = ""  # what a crawl of afresh found, where the bytes are not all there to tell
    bare: bool = False  # that is all that is known of it


@dataclass(slots=True)
class Ending:
    """What was wrong with a file, a sentence each, and where."""

    problems: list[str] = field(default_factory=list)
    records: int = 0
    more: int = 0  # problems that are not told

    def note(self, problem: str) -> None:
        """Something was wrong."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more += 1

    @property
    def problem(self) -> str:
        """All of it, "" if all is well."""
        return "; ".join(self.problems) + (f"; and {self.more:,} places more" if self.more else "")


def captures(path: Path, max_body: int, ending: Ending) -> Iterator[Capture]:
    """The captures of a file in their order. Where a member of a gzip file is damaged, it goes on with the next one."""
    with path.open("rb") as file:
        start: int | None = 0
        while start is not None:
            reading = _Reading(file, start, ending)
            yield from reading.captures(max_body)
            start = reading.goes_on


class _Reading:
    """Reads a file from a byte on, up to its end or a place that cannot be read."""

    def __init__(self, file: BinaryIO, start: int, ending: Ending) -> None:
        self.goes_on: int | None = None  # where the next reading begins
        self._file, self._start, self._ending = file, start, ending
        self._at: int | None = None  # where the last record begins
        self._broken = ""  # what is wrong with its header: nothing, if the file ends within it
        file.seek(start)
        self._packed = file.read(len(MAGIC)) == MAGIC
        file.seek(start)

    def captures(self, max_body: int) -> Iterator[Capture]:
        ending = self._ending
        try:
            # Other kinds of records as well: a broken header has none, and they tell where the last one begins.
            for record in ArchiveIterator(self._file, parse_http=False, max_header_len=MAX_HEADER_BYTES):
                self._tell_broken()
                at = self._at = record.stream_pos
                if not record.headers.get("WARC-Type") or record.headers.get("Content-Length") is None:
                    self._broken = f"the header of the record at byte {at:,} is broken"
                    continue
                if not record.record_type & READS:
                    continue
                ending.records += 1
                if record.content_length > MAX_RECORD_BYTES:
                    said = f"says that it has {record.content_length:,} bytes"
                    ending.note(f"the record at byte {at:,} {said}, and it is not read beyond")
                    return
                found, ends = _capture(record, max_body)
                if found is not None:
                    yield found
                elif not record.headers.get("WARC-Target-URI"):
                    self._broken = f"the header of the record at byte {at:,} is broken: it names no address"
                if ends and not self._packed:
                    ending.note(f"it ends within the record at byte {at:,}")
                    return
        except (OSError, ValueError, EOFError, RuntimeError, UnicodeError) as error:
            self._tell_broken()
            self._stopped(str(error)[:200].rstrip("."))
        else:
            self._ended()

    def _tell_broken(self) -> None:
        if self._broken:
            self._ending.note(self._broken)
            self._broken = ""

    def _ended(self) -> None:
        """No more records came: whether that is the end of the file, too. An empty member looks like the end."""
        cut = self._cut_packed() if self._packed else self._cut_plain()
        if cut is None or cut != self._at:
            self._tell_broken()
        if cut is not None:
            self._ending.note(f"it ends within the record at byte {cut:,}")

    def _cut_packed(self) -> int | None:
        """Where the member begins within which a gzip file ends; or reading goes on with a member that was not read."""
        at = self._start if self._at is None else self._at
        self._file.seek(at)
        # A file that is packed as a whole has its only member at its beginning.
        begin = at if self._file.read(len(MAGIC)) == MAGIC else self._start
        for place, found in members(self._file, begin):
            if found.cut:
                return place
            if place > begin and not found.empty:
                self.goes_on = place
                return None
        return None

    def _cut_plain(self) -> int | None:
        """Where the record begins within which a file that is not packed ends."""
        at = self._start if self._at is None else self._at
        self._file.seek(at)
        begins = self._file.read(MAX_HEADER_BYTES)
        if not begins.startswith(b"WARC/"):
            return None  # packed in another way
        head, blank, _ = begins.partition(b"\r\n\r\n")
        said = re.search(rb"(?im)^content-length:[ \t]*(\d{1,15})[ \t]*\r?$", head)
        if not blank or said is None:
            return at
        end = at + len(head) + len(blank) + int(said[1])
        size = self._file.seek(0, os.SEEK_END)
        if end > size:
            return at
        self._file.seek(end)
        rest = self._file.read(MAX_HEADER_BYTES)
        return end + len(rest) - len(rest.lstrip()) if rest.strip() else None

    def _stopped(self, error: str) -> None:
        """Something cannot be read: where the next reading begins, if there is a member of its own behind it."""
        at = self._start if self._at is None else self._at
        if self._packed:
            self._file.seek(at)
            if self._file.read(len(MAGIC)) == MAGIC:
                self._skip(at, error)
                return
        self._ending.note(f"behind byte {at:,} it is no WARC file: {error}")

    def _skip(self, at: int, error: str) -> None:
        """Leave out the member that is damaged: it is that of the last record, or the one behind it."""
        whole = member(self._file, at)
        if whole.end is not None and self._at is not None:
            # It is the next one then; or this one says that it is longer than it is, and the next is as it should be.
            at, whole = whole.end, member(self._file, whole.end)
            self._file.seek(at)
            if not self._file.read(MAX_HEADER_BYTES).strip(b"\0"):
                return  # padding
        if whole.cut:
            self._ending.note(f"it ends within the record at byte {at:,}")
            return
        self.goes_on = whole.end or following(self._file, at + 1)
        self._ending.note(f"the record at byte {at:,} is damaged: {error}")


def _capture(record: WarcRecord, max_body: int) -> tuple[Capture | None, bool]:
    """What a record holds, if it is a capture; and whether the file ends within it."""
    url, moment = (record.headers.get("WARC-Target-URI") or "").strip().strip("<>"), record.record_date
    if not url:
        return None, False
    time = moment.timestamp() if moment is not None else 0.0
    same = record.record_type == WarcRecordType.revisit
    digest = (record.headers.get("WARC-Payload-Digest") or "")[:200]
    problem = "" if moment is not None else "no_date"
    kind, outcome = record.headers.get("Content-Type") or "", record.headers.get(OUTCOME) or ""
    if record.record_type == WarcRecordType.resource:
        body, problem, ends = _body(record, max_body, problem)
        return Capture(url, time, 0, (), body, kind[:200], False, digest, problem), ends
    if "application/http" in kind and record.content_length:
        try:
            record.parse_http(auto_decode="none", max_header_len=MAX_HEADER_BYTES)
        except (ValueError, OSError) as error:  # what a server wrote must not end the reading
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return Capture(url, time, problem="no_answer"), False
    http = record.http_headers
    if http is None:
        if same:  # a revisit may have no headers of its own
            return Capture(url, time, 304, (), same=True, digest=digest, problem=problem, outcome=outcome), False
        return Capture(url, time, problem="no_answer"), False
    status = http.status_code or 0
    if status not in STATUSES:  # bytes that are no answer of a web server
        return Capture(url, time, problem="no_answer"), False
    body, problem, ends = _body(record, max_body, problem)
    if not ends and record.headers.get("WARC-Truncated") and 200 <= status < 300:
        bare = outcome and not problem and not body  # the content is not kept, and when it was there is
        problem = "" if bare else problem or "truncated"
        if bare:
            return Capture(url, time, 200, digest=digest, outcome=outcome, bare=True), ends
    headers = tuple(http.items_bytes())[:MAX_HEADERS]
    return Capture(url, time, status, headers, body, "", same, digest, problem, outcome), ends


def _body(record: WarcRecord, max_body: int, problem: str) -> tuple[bytes, str, bool]:
    said = record.content_length
    body = record.reader.read(max_body + 1)
    if len(body) > max_body:
        return b"", problem or "too_large", False
    return body, (problem or "truncated") if len(body) < said else problem, len(body) < said
