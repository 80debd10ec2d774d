"""Answers of our own, and answers from what is kept, as bytes."""

from afresh.serve.proxy import conditions, dates
from afresh.serve.proxy.entry import PHRASES, VIA, Entry
from afresh.serve.proxy.fields import Lines, Named, packed

STALE_WARNING = b'Warning: 110 - "Response is Stale"\r\n'


def closing(keep_alive: bool, version: str) -> bytes:
    """The field that says whether the connection lives on, where that is not plain."""
    if not keep_alive:
        return b"Connection: close\r\n"
    return b"Connection: keep-alive\r\n" if version == "1.0" else b""


def own(
    status: int, sentence: str, now: float, *, keep_alive: bool, head_only: bool = False, more: bytes = b""
) -> bytes:
    """A short answer of our own, which nobody may keep."""
    body = f"{sentence}\n".encode("latin-1", "replace")
    head = (
        f"HTTP/1.1 {status} {PHRASES.get(status, 'Error')}\r\nDate: {dates.written(int(now))}\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
        f"Content-Length: {len(body)}\r\n"
    ).encode("latin-1")
    return head + more + closing(keep_alive, "1.1") + b"\r\n" + (b"" if head_only else body)


def from_entry(
    entry: Entry, asked_with: Named, method: str, note: bytes, tail: bytes
) -> tuple[bytes, memoryview | bytes, int]:
    """(head, body, status) of an answer from what is kept: whole, a part of it, or that the reader's copy is good.

    `note` is what is said of it at this moment: Age, Cache-Status; `tail` ends the head.
    """
    if entry.status == 200:
        date = entry.fields.get("date", "")
        if conditions.unchanged(asked_with, entry.etag, entry.modified, date):
            return b"%b%b%b\r\n" % (entry.head_304, note, tail), b"", 304
    if entry.status == 200 and method == "GET" and "range" in asked_with:
        found = conditions.part(asked_with, len(entry.body), entry.etag, entry.modified)
        if found is not None:
            return _part(entry, found, note + tail)
    body = entry.body if method != "HEAD" else b""
    return b"%b%b%b\r\n" % (entry.head, note, tail), body, entry.status


def _part(entry: Entry, found: tuple[int, int], tail: bytes) -> tuple[bytes, memoryview | bytes, int]:
    start, end = found
    size = len(entry.body)
    if start == end:
        head = b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */%d\r\nContent-Length: 0\r\n" % size
        return head + VIA + tail + b"\r\n", b"", 416
    kept = entry.head.partition(b"\r\n")[2]
    length = b"Content-Length: %d\r\n" % size
    place = kept.rindex(length)
    head = b"HTTP/1.1 206 Partial Content\r\n%b%bContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n" % (
        *(kept[:place], kept[place + len(length) :]),
        *(start, end - 1, size, end - start),
    )
    return head + tail + b"\r\n", memoryview(entry.body)[start:end], 206


def streamed(status: int, lines: Lines, tail: bytes) -> bytes:
    """The head of an answer that is sent on as it comes."""
    start = f"HTTP/1.1 {status} {PHRASES.get(status, '')}\r\n".encode("latin-1")
    return b"%b%b%b%b\r\n" % (start, packed(lines), VIA, tail)
