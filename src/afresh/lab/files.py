"""Reading histories and request counts; every fault is named with its file, its line and what was expected."""

import csv
import gzip
import math
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InputError
from afresh.lab.work import MAX_EVENTS
from afresh.sim.history import Floats, History, make_history
from afresh.units import show_count, show_size

CREATE, MODIFY, MOVE, DELETE = range(4)
MAX_WEIGHT = 1e15  # of a page: sums and squares of weights stay finite
MAX_LINE_CHARACTERS = 1 << 20
MAX_UNPACKED_BYTES = 4 << 30  # of a .npz
# Arrays of a .npz that say of a modification that it is none, and by which value.
_NO_CHANGE = {"technical": 1, "text_changed": 0}
_WEIGHT_NAMES = ("weight", "popularity", "requests", "count")
_TIME_NAMES = ("snapshot_ts", "snapshot", "time", "timestamp")
_HISTORY_HINT = "A history is a .npz with ts and page (and kind), or a CSV of page,timestamp: see docs/lab.md."
_ADDRESSES_HINT = "A file of addresses has a page, a tab and the page's address in every line: see docs/lab.md."
_REQUESTS_HINT = "A requests file is a CSV of page,weight with an optional snapshot_ts in front: see docs/lab.md."


@dataclass(frozen=True, slots=True)
class Recorded:
    """Events as they stand in a file: one row an event."""

    names: list[str]  # of the pages
    page: NDArray[np.int64]  # index into names
    time: Floats
    kind: NDArray[np.int64]
    notes: tuple[str, ...] = ()  # what was skipped, for people


def read_history(path: Path) -> Recorded:
    """The events of a .npz or CSV file."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.", hint="Check its name.")
    recorded = _from_npz(path) if path.suffix == ".npz" else _from_csv(path)
    if not len(recorded.time):
        raise InputError(f"{path} holds no change.", hint=_HISTORY_HINT)
    return recorded


def _from_npz(path: Path) -> Recorded:
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(each.file_size for each in packed.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise InputError(
                f"{path} unpacks to {show_size(unpacked)}, more than {show_size(MAX_UNPACKED_BYTES)}.",
                hint="Leave arrays out that are not needed, or cut the history in parts.",
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("ts", "page", "kind", *_NO_CHANGE) if name in file}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, MemoryError) as error:
        raise InputError(f"{path} is not an .npz of plain arrays: {error}.", hint=_HISTORY_HINT) from None
    for name in ("ts", "page"):
        if name not in arrays:
            raise InputError(f"{path} has no array {name!r}.", hint=_HISTORY_HINT)
    time, page = arrays["ts"], arrays["page"]
    arrays.setdefault("kind", np.full(time.shape, MODIFY))
    for name, values in arrays.items():
        if values.ndim != 1 or len(values) != len(time):
            raise InputError(f"{path}: {name} has shape {values.shape}, expected one value a row.", hint=_HISTORY_HINT)
        if values.dtype.kind not in "iuf" or not np.isfinite(values.astype(np.float64)).all():
            bad = _first_bad(values)
            raise InputError(f"{path}: {name}[{bad}] is not a number.", hint=_HISTORY_HINT)
    kept, notes = _events(arrays, path)
    time, page, kind = time[kept], page[kept], arrays["kind"][kept]
    labels, index = np.unique(page, return_inverse=True)
    return Recorded(
        [str(each) for each in labels.tolist()], index, time.astype(np.float64), kind.astype(np.int64), notes
    )


def _events(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows are events of a page, and what is to be said about the others."""
    kind, notes = arrays["kind"], []
    known = np.isin(kind, (CREATE, MODIFY, MOVE, DELETE))
    if not known.all():
        names = ", ".join(f"{each:g}" for each in np.unique(kind[~known])[:5])
        notes.append(f"{path.name}: {int((~known).sum()):,} events of unknown kind ({names}) are skipped.")
    for name, value in _NO_CHANGE.items():
        if name in arrays:
            unchanged = known & (kind == MODIFY) & (arrays[name] == value)
            known &= ~unchanged
            if unchanged.any():
                notes.append(f"{path.name}: {int(unchanged.sum()):,} events with {name} {value} are no changes.")
    return known, tuple(notes)


def _first_bad(values: NDArray[np.generic]) -> int:
    if values.dtype.kind not in "iuf":
        return 0
    return int(np.flatnonzero(~np.isfinite(values.astype(np.float64)))[0])


def _text_lines(path: Path, hint: str) -> Iterator[str]:
    """The lines of a text file, plain or gzipped, one after another; none may be longer than anybody writes."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
            while line := file.readline(MAX_LINE_CHARACTERS):
                if len(line) == MAX_LINE_CHARACTERS:
                    raise InputError(f"{path} has a line of more than {MAX_LINE_CHARACTERS:,} characters.", hint=hint)
                yield line
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.", hint="Check its name.") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as text: {error}.", hint=hint) from None


def _lines(path: Path, hint: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of a CSV file, plain or gzipped."""
    reader = csv.reader(_text_lines(path, hint))
    rows = 0
    try:
        for fields in reader:
            if fields and not fields[0].startswith("#"):
                rows += 1
                if rows > MAX_EVENTS:
                    raise InputError(f"{path} has more than {MAX_EVENTS:,} rows.", hint="Cut it in parts.")
                yield reader.line_num, [field.strip() for field in fields]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.", hint=hint) from None


def moment_of(text: str) -> float:
    """Unix seconds from a number or an ISO 8601 time (UTC unless it says otherwise); NaN: neither.

    >>> moment_of("1600000000"), moment_of("2020-09-13T12:26:40")
    (1600000000.0, 1600000000.0)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _from_csv(path: Path) -> Recorded:
    numbers: dict[str, int] = {}
    pages, times = array("q"), array("d")  # a tenth of the room that lists take
    for count, (line, fields) in enumerate(_lines(path, _HISTORY_HINT)):
        if len(fields) != 2:
            raise InputError(
                f"{path}, line {line}: {show_count(len(fields), 'field')}, expected 2: page,timestamp.",
                hint=_HISTORY_HINT,
            )
        time = moment_of(fields[1])
        if not math.isfinite(time):
            if count == 0:
                continue  # a header
            raise InputError(
                f"{path}, line {line}: {fields[1][:60]!r} is not a time; expected Unix seconds or ISO 8601.",
                hint=_HISTORY_HINT,
            )
        pages.append(numbers.setdefault(fields[0], len(numbers)))
        times.append(time)
    kind = np.full(len(times), MODIFY)
    return Recorded(list(numbers), np.array(pages, np.int64), np.array(times, np.float64), kind)


def read_requests(path: Path, at: float) -> dict[str, float]:
    """Weight of each page; of several snapshots the last one up to the moment `at`, or else the first."""
    columns = (0, 1, -1)  # of page, weight, time (−1: none)
    rows: list[tuple[float, str, float]] = []
    for count, (line, fields) in enumerate(_lines(path, _REQUESTS_HINT)):
        if count == 0:
            columns, header = _columns(fields)
            if header:
                continue
        rows.append(_request_row(path, line, fields, columns))
    if not rows:
        raise InputError(f"{path} holds no weights.", hint=_REQUESTS_HINT)
    moments = sorted({time for time, _, _ in rows})
    chosen = max((time for time in moments if time <= at), default=moments[0])
    weights: dict[str, float] = {}
    for time, page, weight in rows:
        if time == chosen:
            weights[page] = weights.get(page, 0.0) + weight
    return weights


def _columns(fields: list[str]) -> tuple[tuple[int, int, int], bool]:
    """Where page, weight and time stand, and whether this was a header that said so."""
    names = [field.lower() for field in fields]
    weight = next((names.index(name) for name in _WEIGHT_NAMES if name in names), -1)
    if "page" in names and weight >= 0:
        time = next((names.index(name) for name in _TIME_NAMES if name in names), -1)
        return (names.index("page"), weight, time), True
    return (0, 1, -1), False


def _request_row(path: Path, line: int, fields: list[str], columns: tuple[int, int, int]) -> tuple[float, str, float]:
    page, weight, time = columns
    needed = 2 if time < 0 else 3
    if len(fields) != needed:
        expected = "page,weight" if time < 0 else "page, weight and snapshot time"
        raise InputError(
            f"{path}, line {line}: {show_count(len(fields), 'field')}, expected {needed}: {expected}.",
            hint=_REQUESTS_HINT,
        )
    value, moment = moment_of(fields[weight]), 0.0 if time < 0 else moment_of(fields[time])
    if not 0 <= value <= MAX_WEIGHT:
        raise InputError(
            f"{path}, line {line}: {fields[weight][:60]!r} is not a weight; expected 0 to {MAX_WEIGHT:g}.",
            hint=_REQUESTS_HINT,
        )
    if not math.isfinite(moment):
        raise InputError(
            f"{path}, line {line}: {fields[time][:60]!r} is not a time; expected Unix seconds or ISO 8601.",
            hint=_REQUESTS_HINT,
        )
    return moment, fields[page], value


@dataclass(frozen=True, slots=True)
class Chosen:
    """The part of a file that is replayed."""

    history: History
    score_from: float
    left_out: int  # pages that are gone when the scored time begins, or that nobody asks for
    gone: int = 0  # pages that are deleted before the end, and count until then
    born: int = 0  # pages that come to be in the scored time, and count from then on


def choose(
    recorded: Recorded,
    *,
    score_from: float,
    weights: dict[str, float] | None,
    addresses: dict[str, str] | None = None,
    apart: bool = False,
    from_start: bool = False,
) -> Chosen:
    """The pages that exist after `score_from` and, if weights are given, are asked for; each from birth to deletion.

    `from_start`: every page is there from the start to the end, and silent before it is born and after it is gone.

    Pages of one folder, and of one site, may change together, unless they are taken `apart`. `addresses` are the pages'
    own, where the names in the file are not; names without a folder are taken to be of one site.
    """
    start, end = float(recorded.time.min()), float(recorded.time.max())
    count = len(recorded.names)
    born, ends = _lives(recorded)
    if from_start:
        born, ends = np.full(count, -np.inf), np.full(count, np.inf)
    keep = (ends > score_from) & (ends > born) & (born < end)
    weight = np.ones(count)
    if weights is not None:
        weight = np.array([weights.get(name, 0.0) for name in recorded.names])
        keep &= weight > 0
    if not keep.any():
        raise InputError(
            "No page is left to replay: none lives in the scored time and is asked for.",
            hint="Check that the requests file names the history's pages, or score from another time.",
        )
    number = np.cumsum(keep) - 1
    changes = (recorded.kind == MODIFY) & keep[recorded.page]
    history = make_history(
        number[recorded.page[changes]],
        recorded.time[changes],
        weight=weight[keep],
        start=max(start, float(born[keep].min())),
        end=end,
        names=() if apart else _addresses(recorded, keep, addresses),
        ends=ends[keep],
        births=born[keep],
    )
    gone, late = int((ends[keep] < np.inf).sum()), int((born[keep] > score_from).sum())
    return Chosen(history, score_from, count - int(keep.sum()), gone, late)


def _addresses(recorded: Recorded, keep: NDArray[np.bool_], addresses: dict[str, str] | None) -> tuple[str, ...]:
    names = (recorded.names[i] for i in np.flatnonzero(keep))
    return tuple(names if addresses is None else (addresses.get(name, "") for name in names))


def _lives(recorded: Recorded) -> tuple[Floats, Floats]:
    """When each page was first created (−∞: it was there before), and when it was deleted for good (∞: it was not)."""
    count = len(recorded.names)
    seen = np.full(count, np.inf)
    np.minimum.at(seen, recorded.page, recorded.time)
    born, revived, ends = np.full(count, np.inf), np.full(count, -np.inf), np.full(count, -np.inf)
    created, deleted = recorded.kind == CREATE, recorded.kind == DELETE
    np.minimum.at(born, recorded.page[created], recorded.time[created])
    np.maximum.at(revived, recorded.page[created], recorded.time[created])
    np.maximum.at(ends, recorded.page[deleted], recorded.time[deleted])
    return np.where(born <= seen, born, -np.inf), np.where(ends > revived, ends, np.inf)


def read_addresses(path: Path) -> dict[str, str]:
    """The address of each page: a text file of page, tab, address, one a line, plain or gzipped."""
    found = {}
    for number, line in enumerate(_text_lines(path, _ADDRESSES_HINT), start=1):
        page, tab, address = line.partition("\t")
        if not tab:
            raise InputError(f"{path}, line {number}: there is no tab.", hint=_ADDRESSES_HINT)
        found[page.strip()] = address.strip()
    return found


def read_names(history: Path) -> dict[str, str]:
    """The addresses in NAME.items.txt.gz or NAME.pages.txt.gz beside NAME.npz: a line a page, numbered from 0 on.

    A line may begin with the page and a tab; where there is no such file, nothing is known.
    """
    for kind in ("items", "pages"):
        path = history.with_name(f"{history.stem}.{kind}.txt.gz")
        if path.is_file():
            parts = [line.rstrip("\r\n").rpartition("\t") for line in _text_lines(path, _ADDRESSES_HINT)]
            return {page.strip() or str(number): name.strip() for number, (page, _, name) in enumerate(parts)}
    return {}
