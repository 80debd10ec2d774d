"""The command that takes request rates from access logs: `afresh requests`."""

import gzip
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Annotated, cast

import typer

from afresh.cli.handover import Handed, hand_over, said_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, errors, labelled, moment, now, plain
from afresh.errors import InputError, SignalError
from afresh.store import LastingStore
from afresh.types import Request
from afresh.units import show_count, with_unit

SPAN = 3600.0  # seconds; requests for one page within them are counted together
BATCH_LINES = 100_000  # after which counts are handed over
MAX_INFLATION = 200  # times its size that a .gz file may unpack to, and a little more for small ones
SHOWN = 3  # bad lines that are shown
FOLLOW_SECONDS = 1.0


@dataclass(slots=True)
class Counted:
    """What was read."""

    lines: int = 0
    requests: float = 0.0
    strange: float = 0.0  # requests for pages that are not kept
    pages: set[str] = field(default_factory=set)
    bad: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # lines that tell of no page that was served, by kind
    shown: list[str] = field(default_factory=list)
    first: float = float("inf")
    last: float = 0.0
    new: int = 0
    batches: int = 0
    handed: Handed = field(default_factory=lambda: Handed(running=False, taken=True))
    counts: dict[tuple[str, int], float] = field(default_factory=dict)  # by page and hour, not handed over yet


def requests(
    files: Annotated[list[str] | None, typer.Argument(help="Access logs, also .gz; - for standard input.")] = None,
    site: Annotated[
        str, typer.Option(help="The site that paths in the logs belong to, such as https://example.com.")
    ] = "",
    over: Annotated[str, typer.Option(help="The time that lines without a time cover (page,count).")] = "1d",
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Begin at the end of one file and follow it as it grows, until Ctrl-C."),
    ] = False,
    prior: Annotated[
        Path | None, typer.Option(help="A popularity report from another source: rank or count by page or host.")
    ] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Learn from access logs how often each page is requested: pages with more requests are kept fresher.

    Reads the common and the combined format, JSON lines, and lines of page,count; .gz too. GET and HEAD requests that
    were served count. A log that is read twice counts once. A report (--prior) counts until your own requests say more.

    Example: afresh requests /var/log/nginx/access.log* --site https://example.com
    """
    from afresh.cli.opening import open_store, settings

    if not files and prior is None:
        raise InputError("There is nothing to read.", hint="Give access logs, or a report with --prior.")
    if follow and len(files or []) != 1:
        raise InputError("Only one file can be followed.", hint="Start one `afresh requests --follow` for each.")
    if site and not site.startswith(("http://", "https://")):
        raise InputError(f"{plain(site, 80)} is not the address of a site.", hint="Write --site https://example.com")
    span = with_unit(over)
    with open_store(settings(config, store), create=False) as kept:
        if prior is not None:
            _take_report(kept, prior, json)
        reader = _Reader(kept, site, span)
        if follow and files:
            reader.follow(files[0])
        elif files:
            for name in files:
                reader.read(name)
            reader.finish()
            _tell(reader.counted, json)


class _Reader:
    """Reads logs, counts by page and hour, and hands over what was counted."""

    def __init__(self, kept: LastingStore, site: str, span: float) -> None:
        self.kept, self.site, self.span = kept, site, span
        self.counted = Counted()
        self._known: dict[str, str | None] = {}  # addresses as they stand in the log, and the pages that they are

    def read(self, name: str) -> None:
        """One file from end to end."""
        with ExitStack() as stack:
            for number, line in enumerate(_lines(name, stack), start=1):
                self.take(line, f"{name}, line {number}")
                if number % BATCH_LINES == 0:
                    self.hand_over()
        self.hand_over()

    def follow(self, name: str) -> None:
        """Follow one file from its end on, even when another file takes its name, until interrupted."""
        try:
            for nth, line in enumerate(_growing(name, self.hand_over)):
                self.take(line, f"{name}, line {nth + 1} since the start")
        except KeyboardInterrupt:
            self.hand_over()
            _tell(self.counted, False)

    def take(self, line: str, where: str) -> None:
        """Count one line, or record why it cannot be counted."""
        from afresh.signals.access_log import Skipped, request_of

        counted, when = self.counted, now()
        counted.lines += 1
        try:
            request = request_of(line, site=self.site, time=when)
        except SignalError as error:
            counted.bad += 1
            if len(counted.shown) < SHOWN:
                counted.shown.append(f"{plain(where, 120)}: {error.message}")
            return
        if isinstance(request, Skipped):
            counted.skipped[request] += 1
            return
        if request is None:
            return
        url = self._page(request.url)
        if url is None:
            counted.strange += request.count
            return
        counted.requests += request.count
        counted.pages.add(url)
        began = when - self.span if request.time == when else request.time
        counted.first, counted.last = min(counted.first, began), max(counted.last, min(request.time, when))
        # What has no time of its own is taken to have come evenly: in the middle, on average.
        at = min(when - self.span / 2 if request.time == when else request.time, when)
        key = url, int(at // SPAN)
        counted.counts[key] = counted.counts.get(key, 0.0) + request.count

    def _page(self, address: str) -> str | None:
        """The page that is kept under an address; None if there is none."""
        if address not in self._known:
            from afresh.frontier import canonical_or_none

            if len(self._known) >= BATCH_LINES:
                self._known.clear()
            url = canonical_or_none(address)
            self._known[address] = url if url is not None and self.kept.state(url) is not None else None
        return self._known[address]

    def hand_over(self) -> None:
        """Make what was counted durable."""
        from afresh.store.messages import of_requests, packed

        counted, counts = self.counted, self.counted.counts
        if not counts:
            return
        requests = [Request(url, (hour + 0.5) * SPAN, count) for (url, hour), count in sorted(counts.items())]
        # The key follows from the content: the same log read again is the same entry.
        mark = sha256(repr(requests).encode()).hexdigest()[:24]
        # How long pages were watched, before how often they were asked for.
        entries = packed("watched", [min(counted.first, now())], now(), f"watched {mark}")
        entries += of_requests(requests, now(), f"requests {mark}")
        counted.handed = hand_over(self.kept, entries)
        counted.new += counted.handed.new_entries
        counted.batches += 1
        counted.counts = {}

    def finish(self) -> None:
        """InputError if nothing could be read."""
        counted = self.counted
        if counted.bad and counted.bad + counted.skipped.total() == counted.lines:
            hint = "Say which site: --site https://example.com." if "no site is given" in counted.shown[0] else ""
            raise InputError(
                f"No line could be read. {counted.shown[0]}.",
                hint=hint or "See afresh requests --help for the formats.",
            )


def _lines(name: str, stack: ExitStack) -> Iterator[str]:
    """Lines of a log, of bounded length each; a .gz file may not unpack to much more than logs do."""
    from afresh.signals.access_log import MAX_LINE_BYTES

    try:
        if name == "-":
            source: IO[bytes] = sys.stdin.buffer
            most = float("inf")
        elif name.endswith(".gz"):
            source = cast(IO[bytes], stack.enter_context(gzip.open(name, "rb")))  # noqa: SIM115
            most = MAX_INFLATION * Path(name).stat().st_size + (1 << 20)
        else:
            source, most = stack.enter_context(Path(name).open("rb")), float("inf")  # noqa: SIM115
        size, whole = 0, True  # whether the last piece was the end of its line
        while piece := source.readline(MAX_LINE_BYTES + 1):
            size += len(piece)
            if size > most:
                hint = "Unpack it yourself if it is what it says."
                raise InputError(f"{name} unpacks to more than {MAX_INFLATION} times its size.", hint=hint)
            if whole:
                yield piece.decode(errors="replace")
            whole = piece.endswith(b"\n") or len(piece) <= MAX_LINE_BYTES
    except FileNotFoundError:
        raise InputError(f"There is no file {name}.", hint="Check its name.") from None
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or "it is no whole .gz file"
        raise InputError(f"{name} cannot be read: {said}.", hint="Check its name, its rights and its end.") from None


def _growing(name: str, idle: Callable[[], None]) -> Iterator[str]:
    """Lines that are written to a file from now on; `idle` is called about every second."""
    from afresh.signals.access_log import MAX_LINE_BYTES

    if name == "-":
        with ExitStack() as stack:
            last = time.monotonic()
            for said in _lines(name, stack):
                yield said
                if time.monotonic() - last >= FOLLOW_SECONDS:
                    last = time.monotonic()
                    idle()
        idle()
        raise KeyboardInterrupt  # the stream has ended
    file = _opened(name, at_end=True)
    while True:
        part = b""
        while line := file.readline(MAX_LINE_BYTES + 1):
            part += line
            if part.endswith(b"\n") or len(part) > MAX_LINE_BYTES:
                yield part.decode(errors="replace")
                part = b""
        file.seek(-len(part), os.SEEK_CUR)  # a line that is not whole yet is read again
        idle()
        time.sleep(FOLLOW_SECONDS)
        if not part and _was_replaced(name, file):
            file.close()
            file = _opened(name, at_end=False)


def _opened(name: str, *, at_end: bool) -> IO[bytes]:
    try:
        file = Path(name).open("rb")  # noqa: SIM115
        file.seek(0, os.SEEK_END if at_end else os.SEEK_SET)
    except OSError as error:
        raise InputError(f"{name} cannot be followed: {error.strerror}.", hint="Name a file that is there.") from None
    return file


def _was_replaced(name: str, file: IO[bytes]) -> bool:
    """Whether the log was rotated: another file has its name, or it was cut short."""
    try:
        there, have = Path(name).stat(), os.fstat(file.fileno())
    except OSError:
        return False  # between two files
    return (there.st_ino, there.st_dev) != (have.st_ino, have.st_dev) or there.st_size < file.tell()


def _take_report(kept: LastingStore, path: Path, json: bool) -> None:
    from afresh.frontier import canonical_or_none
    from afresh.signals.popularity import read_report
    from afresh.store.messages import packed

    with ExitStack() as stack:
        try:
            report = read_report(_lines(str(path), stack))
        except SignalError as error:
            raise InputError(f"{path} is no popularity report. {error.message}", hint="Check the file.") from None
    report.pages = {canonical_or_none(url) or url: weight for url, weight in report.pages.items()}
    report.hosts = {host.lower(): weight for host, weight in report.hosts.items()}
    counts = {host: pages for host, pages, _ in kept.pages_by_host()}
    said = report.relative(counts, ((state.page.url, state.page.host) for _, state in kept.states()))
    if not said:
        raise InputError(f"{path} names no page and no host that is kept.", hint="Check its names.")
    named = sum(url in report.pages or _host(url) in report.hosts for url in said)
    handed = hand_over(kept, packed("popularity", said.items(), now()))
    if json:
        typer.echo(as_json({"pages": len(said), "named": named, "bad_lines": len(report.bad)}))
    else:
        bad = (
            f" {show_count(len(report.bad), 'line')} could not be read, the first is line {report.bad[0]}."
            if report.bad
            else ""
        )
        of_all = f"{named:,} of {show_count(len(said), 'page')} {'is' if named == 1 else 'are'} named"
        typer.echo(f"{of_all} by {plain(str(path), 80)}.{bad}{said_of(handed)}")


def _host(url: str) -> str:
    from afresh.frontier import host_of

    return host_of(url)


def _tell(counted: Counted, json: bool) -> None:
    if json:
        facts = {"requests": counted.requests, "pages": len(counted.pages), "not_kept": counted.strange}
        known = {
            "skipped": dict(counted.skipped),
            "bad_lines": counted.bad,
            "lines": counted.lines,
            "new": bool(counted.new),
        }
        typer.echo(as_json(facts | known | {"taken": counted.handed.taken}))
        return
    for line in counted.shown:
        errors.print(labelled("skipped", line, 8))
    if counted.bad > len(counted.shown):
        errors.print(f"skipped {show_count(counted.bad - len(counted.shown), 'more line')}")
    since = f" from {moment(counted.first)} to {moment(counted.last)}" if counted.pages else ""
    typer.echo(f"{show_count(counted.requests, 'request')} for {show_count(len(counted.pages), 'page')}{since}.")
    for kind, lines in counted.skipped.most_common():
        typer.echo(f"{show_count(lines, 'request')} {kind} {'does' if lines == 1 else 'do'} not count.")
    if counted.strange:
        typer.echo(f"{show_count(counted.strange, 'request')} for pages that are not kept.")
    if counted.batches and not counted.new:
        typer.echo("All of them were counted before.")
    elif said := said_of(counted.handed):
        typer.echo(said.strip())
