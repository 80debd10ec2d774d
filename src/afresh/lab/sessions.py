"""Sessions of readers from a file: which pages were asked for one after another, and what is known of the pages."""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InputError, SignalError
from afresh.signals.access_log import Visit, visit_of
from afresh.units import show_size

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

HINT = "It takes access logs, session<TAB>page lines, .seq files and .npz with pages and offsets: see docs/prefetch.md."
WINDOW = 1800.0  # seconds without a request after which a reader of an access log begins a new session
MAX_LINE = 1 << 20
MAX_REQUESTS = 50_000_000  # of pages that are numbers already
MAX_VISITS = 10_000_000  # lines of a log
MAX_PAGES = 2_000_000
MAX_UNPACKED_BYTES = 4 << 30
MAX_TEXT_BYTES = 64 << 30  # unpacked
MAX_UNREAD = 1000  # lines beyond those that can be read, before a file is refused without reading on
MAX_BACKS = 10_000  # pages of a session that one can go back through
BACK = -1
# Parts of pages, which readers do not choose.
_PARTS: tuple[str, ...] = (
    ".css",
    ".js",
    ".mjs",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".svg",
    ".ico",
    ".webp",
    ".avif",
    ".woff",
    ".woff2",
)
_PARTS += (".ttf", ".eot", ".map", ".mp3", ".mp4", ".webm")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions in the order in which they began: `pages[offsets[i]:offsets[i + 1]]` is the i-th."""

    pages: Integers
    offsets: Integers
    count: int  # pages are numbers below this
    dwells: Floats  # seconds before each request; below 0: unknown
    sizes: Floats | None = None  # bytes, by page
    links: dict[int, list[int]] = field(default_factory=dict)
    skipped: int = 0  # lines of a log that are no page that was served
    unread: int = 0  # lines that cannot be read
    first_unread: str = ""  # where the first of these is, and why

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def moves(self) -> int:
        """From one page to the next."""
        return len(self.pages) - int(np.count_nonzero(np.diff(self.offsets)))

    def part(self, start: int, end: int) -> "Sessions":
        """Some of the sessions, with the same pages."""
        first, last = int(self.offsets[start]), int(self.offsets[end])
        offsets = self.offsets[start : end + 1] - first
        return Sessions(
            self.pages[first:last], offsets, self.count, self.dwells[first:last], self.sizes, self.links, self.skipped
        )


_ARRAYS = ("pages", "offsets", "session_ts", "duration", "links")


def read_sessions(path: Path) -> Sessions:
    """The sessions of a file, whatever it is written in; InputError if there are none."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.", hint="Check its name.")
    name = path.name.removesuffix(".xz").removesuffix(".gz")
    try:
        found = _from_npz(path) if path.suffix == ".npz" else _from_text(path, numbered=name.endswith(".seq"))
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=HINT) from None
    if not found.moves:
        raise InputError(f"{path} holds no session of two pages or more.", hint=HINT)
    return found


def _from_npz(path: Path) -> Sessions:
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(each.file_size for each in packed.infolist())
    if unpacked > MAX_UNPACKED_BYTES:
        raise InputError(f"{path} unpacks to {show_size(unpacked)}.", hint="Cut it in parts.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {
                name: file[name] for name in ("pages", "offsets", "session_ts", "duration", "links") if name in file
            }
    except ValueError as error:
        raise InputError(f"{path} is not an .npz of plain arrays: {error}.", hint=HINT) from None
    for name in ("pages", "offsets"):
        if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
            raise InputError(f"{path} has no array {name!r} of whole numbers.", hint=HINT)
    pages, offsets = arrays["pages"].astype(np.int64), arrays["offsets"].astype(np.int64)
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(pages) or (np.diff(offsets) < 0).any():
        raise InputError(f"{path}: offsets do not divide pages into sessions.", hint=HINT)
    links = arrays.get("links", np.zeros((0, 2)))
    if links.ndim != 2 or links.shape[1] != 2 or links.dtype.kind not in "iuf":
        raise InputError(f"{path}: links has shape {links.shape}, expected (links, 2).", hint=HINT)
    count = int(max(pages.max(initial=0), links.max(initial=0))) + 1
    if min(pages.min(initial=0), links.min(initial=0)) < BACK or count > MAX_PAGES:
        raise InputError(f"{path}: pages are numbers from 0 to {MAX_PAGES:,}, and -1 for back.", hint=HINT)
    lists = [_with_backs(pages[start:end].tolist()) for start, end in pairwise(offsets)]
    times = np.full(len(lists), np.nan)
    if "duration" in arrays and arrays["duration"].shape == times.shape:
        steps = np.array([max(len(each) - 1, 1) for each in lists])
        times = arrays["duration"] / steps  # the mean of the session, where moments are not told
    order = np.arange(len(lists))
    if "session_ts" in arrays and arrays["session_ts"].shape == times.shape:
        order = np.argsort(arrays["session_ts"], kind="stable")
    menus: dict[int, list[int]] = {}
    for source, target in links.astype(np.int64).tolist():
        menus.setdefault(source, []).append(target)
    return _gathered([lists[at] for at in order], [[times[at]] * len(lists[at]) for at in order], links=menus)


def _with_backs(pages: list[int]) -> list[int]:
    """What a reader saw: a click on back shows the page before again.

    >>> _with_backs([1, 2, 3, -1, -1, 4])
    [1, 2, 3, 2, 1, 4]
    """
    seen, behind = list[int](), list[int]()
    for page in pages:
        if page != BACK:
            behind.append(page)
        elif len(behind) > 1:
            behind.pop()
        elif not behind:
            continue
        seen.append(behind[-1])
        del behind[:-MAX_BACKS]
    return seen


def _gathered(
    lists: list[list[int]], dwells: list[list[float]], *, links: dict[int, list[int]] | None = None, **more: Any
) -> Sessions:
    """Sessions with pages numbered from 0 without a gap, in the order of the numbers that they had."""
    menus = links or {}
    pages = np.array([page for each in lists for page in each], np.int64)
    linked = np.array([page for source, targets in menus.items() for page in (source, *targets)], np.int64)
    numbers = np.unique(np.concatenate([pages, linked]))
    new = dict(zip(numbers.tolist(), range(len(numbers)), strict=True)) if menus else {}
    before = np.array([dwell for each in dwells for dwell in each], np.float64)
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    return Sessions(
        np.searchsorted(numbers, pages),
        offsets,
        len(numbers),
        np.nan_to_num(before, nan=-1.0),
        links={new[source]: [new[target] for target in targets] for source, targets in menus.items()},
        **more,
    )


def _from_text(path: Path, *, numbered: bool) -> Sessions:
    if numbered:
        return _from_numbers(path)
    visits, rows, skipped = list[Visit](), list[tuple[str, str]](), 0
    bad = _Unread(path)
    for number, line in _lines(path):
        try:
            visit = None if line is None else visit_of(line)
        except SignalError as error:
            bad.line(number, f"cannot be read: {error}")
            continue
        if isinstance(visit, Visit):
            bad.right += 1
            if _is_page(visit.url):
                visits.append(visit)
            else:
                skipped += 1
        elif visit is not None:
            bad.right += 1
            skipped += 1
        elif line is not None and not visits and (row := _row(line)) is not None:
            rows.append(row)
            bad.right += 1
        elif line is None or (line.strip() and not line.startswith("#")):
            bad.line(number, "is too long" if line is None else "is neither of a log nor session<TAB>page")
        if len(visits) + len(rows) > MAX_VISITS:
            raise InputError(f"{path} has more than {MAX_VISITS:,} requests.", hint="Cut it in parts.")
    bad.refuse_if_most()
    found = _from_visits(visits, skipped) if visits else _from_rows(rows)
    return replace(found, unread=bad.wrong, first_unread=bad.first)


def _row(line: str) -> tuple[str, str] | None:
    """Session and page of a line; None if it is not text with a tab between them."""
    session, tab, page = line.rstrip("\r\n").partition("\t")
    page = page.strip()
    return (session, page) if tab and f"{session}{page}".isprintable() and "\ufffd" not in line else None


class _Unread:
    """Lines that cannot be read: a few are left out and counted; a file of them is refused, early."""

    def __init__(self, path: Path) -> None:
        self.right = self.wrong = 0
        self.first = ""  # where the first one is, and what is wrong with it
        self._path = path

    def line(self, number: int, why: str) -> None:
        """One that cannot be read."""
        self.wrong += 1
        self.first = self.first or f"line {number} {why}"
        if self.wrong - self.right > MAX_UNREAD:
            self.refuse_if_most()

    def refuse_if_most(self) -> None:
        """InputError, if most of what came so far cannot be read."""
        if self.wrong > self.right:
            many = f"{self.wrong:,} of {self.wrong + self.right:,} lines of {self._path} cannot be read"
            raise InputError(f"{many}: {self.first}.", hint=HINT)


def _lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """Lines with their numbers; None for one that is too long, of which no more than that is held."""
    packed: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with cast(IO[bytes], packed(path, "rb")) as file:
        number = total = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            total += len(line)
            if total > MAX_TEXT_BYTES:
                raise InputError(f"{path} has more than {show_size(MAX_TEXT_BYTES)} of text.", hint="Cut it in parts.")
            yield number, line.decode("utf-8", "replace") if len(line) <= MAX_LINE else None
            while len(line) > MAX_LINE and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE + 1)
                total += len(line)


def _from_numbers(path: Path) -> Sessions:
    """A session a line, pages as numbers; what comes before the first such line are headings."""
    lists, bad = list[list[int]](), _Unread(path)
    total = most = 0
    for number, line in _lines(path):
        words = [] if line is None else line.split()
        if line is not None and not words:
            continue
        if not words or not all(word.isdecimal() and word.isascii() and len(word) < 8 for word in words):
            if lists:
                bad.line(number, "is not a row of page numbers")
            continue
        bad.right += 1
        lists.append([int(word) for word in words])
        total, most = total + len(words), max(most, *lists[-1], 0)
        if total > MAX_REQUESTS or most >= MAX_PAGES:
            raise InputError(f"{path} has too many requests or pages at line {number}.", hint="Cut it in parts.")
    bad.refuse_if_most()
    found = _gathered(lists, [[-1.0] * len(each) for each in lists])
    return replace(found, unread=bad.wrong, first_unread=bad.first)


def _from_rows(rows: list[tuple[str, str]]) -> Sessions:
    """Lines of one session need not be together: sessions are in the order of their first lines."""
    numbers, by_session = dict[str, int](), dict[str, list[int]]()
    for session, page in rows:
        by_session.setdefault(session, []).append(numbers.setdefault(page, len(numbers)))
    return _gathered(list(by_session.values()), [[-1.0] * len(each) for each in by_session.values()])


def _from_visits(visits: list[Visit], skipped: int) -> Sessions:
    visits.sort(key=lambda visit: visit.time)
    numbers, sizes = dict[str, int](), dict[int, float]()
    open_now, last = dict[str, int](), dict[str, float]()
    lists, dwells = list[list[int]](), list[list[float]]()
    for visit in visits:
        page = numbers.setdefault(visit.url, len(numbers))
        if visit.size:
            sizes[page] = visit.size
        pause = visit.time - last.get(visit.reader, -np.inf)
        if pause > WINDOW:
            open_now[visit.reader] = len(lists)
            lists.append([])
            dwells.append([])
        lists[open_now[visit.reader]].append(page)
        dwells[open_now[visit.reader]].append(pause if pause <= WINDOW else -1.0)
        last[visit.reader] = visit.time
    usual = float(np.mean(list(sizes.values()))) if sizes else 0.0
    known = np.array([sizes.get(page, usual) for page in range(len(numbers))]) if sizes else None
    return _gathered(lists, dwells, sizes=known, skipped=skipped)


def _is_page(url: str) -> bool:
    return not url.partition("?")[0].lower().endswith(_PARTS)
