"""`afresh import`: captures that another program made become pages with copies and history."""

from collections import Counter
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors, labelled, now, plain
from afresh.errors import ConfigError, InputError
from afresh.store.base import PageState, Record, Store
from afresh.types import Answer, Copy, Crawl, Fetched, Outcome, Page, Validators, Verdict
from afresh.units import show_count

if TYPE_CHECKING:
    from afresh.config import Config
    from afresh.engine import Engine
    from afresh.fetch.answer import Headers
    from afresh.store.cdx import Line
    from afresh.store.warc_reading import Capture

AT_ONCE = 200  # captures that are written together
MAX_HELD = 64 << 20  # bytes of bodies among them
OLDEST = 662_688_000.0  # 1991: there was no web to capture before
MAX_DIGITS = 16  # of a length
SLACK = 86_400.0  # seconds that a clock elsewhere may be ahead
FOUND = ("new", "changed", "unchanged", "gone", "moved", "failed", "busy")


def import_(
    warc: Annotated[list[Path] | None, typer.Option(help="A WARC file, compressed or not; repeatable.")] = None,
    cdx: Annotated[
        list[Path] | None, typer.Option(help="A CDX index; WARC files that it names are read if they lie beside it.")
    ] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Take in what another program has crawled: pages, their latest copies, and what was found when.

    A capture that is older than what the store has of its page is left out. afresh run goes on from there.

    Example: afresh import --warc crawl-00001.warc.gz --warc crawl-00002.warc.gz
    """
    from afresh.cli.opening import open_store, require_room, settings

    read = settings(config, store)
    files, indexes = _there(warc or []), _there(cdx or [])
    if not files and not indexes:
        raise ConfigError("Name what to import.", hint="Give --warc FILE or --cdx FILE.")
    with open_store(read, create=True) as kept:
        kept.claim()
        require_room(kept)
        importing = Importing(kept, read)
        problems = importing.read(files, indexes)
    for path, problem in problems:
        errors.print(
            labelled("Warning:", f"{plain(str(path))}: {plain(problem, 1000)}. What could be read is imported.", 9)
        )
    if problems and not importing.counts.total() and not importing.left_out.total():
        raise InputError("Nothing could be read.", hint="Is it a WARC or CDX file? gzip and zstd are known.")
    facts = importing.facts()
    if json:
        typer.echo(as_json(facts))
        return
    counts = ", ".join(f"{importing.counts[name]:,} {name}" for name in FOUND if importing.counts[name])
    captures = show_count(importing.counts.total(), "capture")
    console.print(f"Imported {captures} of {show_count(facts['pages'], 'new page')}: {counts or 'nothing new'}.")
    if importing.left_out:
        why = ", ".join(f"{name} {count:,}" for name, count in importing.left_out.most_common())
        console.print(labelled("Left out:", f"{why}.", 10))


def _there(files: list[Path]) -> list[Path]:
    for path in files:
        with suppress(OSError):
            if path.is_dir():
                raise InputError(f"{plain(str(path))} is a folder.", hint="Name the files in it, one by one.")
        if not _is_file(path):
            raise InputError(f"There is no file {plain(str(path))}.", hint="Check the path.")
    return files


def _is_file(path: Path) -> bool:
    """Whether there is a file of this name, which may be one that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


class Importing:
    """Plays captures to a store as if they were crawls of its own."""

    def __init__(self, store: Store, config: "Config") -> None:
        from afresh.cli.build import detector_for
        from afresh.frontier import HostPatterns

        self.store, self.config = store, config
        self.counts: Counter[str] = Counter()  # by outcome
        self.left_out: Counter[str] = Counter()  # by reason
        self.pages = 0
        self._never: Container[str] = HostPatterns(config.crawl.never)
        self._detector = detector_for(config)
        self._states: dict[str, PageState] = {}  # of the batch
        self._copies: dict[str, Copy] = {}
        self._records: list[Record] = []
        self._new: list[Page] = []
        self._met: dict[str, Page] = {}  # new ones of which nothing was of use so far
        self._held = 0
        self._told = False
        self._engine: Engine | None = None
        self._moment = 0.0
        self._latest = now() + SLACK

    def facts(self) -> dict[str, int]:
        """How it went, for programs."""
        left_out = {f"left_out_{name}": count for name, count in self.left_out.items()}
        return {"captures": self.counts.total(), "pages": self.pages, **self.counts, **left_out}

    def read(self, files: list[Path], indexes: list[Path]) -> list[tuple[Path, str]]:
        """Read everything; what was wrong with which files."""
        from afresh.store.cdx import read as read_index

        beside = {path.parent / Path(line.file).name for path in indexes for line in read_index(path) if line}
        files = [*files, *sorted(path for path in beside if _is_file(path) and path not in files)]
        problems = self._read_warcs(files)
        read = {path.name for path in files}
        for path in indexes:
            for line in read_index(path):
                if line is None:
                    self.left_out["bad_line"] += 1
                elif Path(line.file).name not in read:
                    self._take_line(line)
        self._write()
        return problems

    def _read_warcs(self, files: list[Path]) -> list[tuple[Path, str]]:
        from afresh.store.warc_reading import Ending, captures

        def first(path: Path) -> float:
            return next((each.time for each in captures(path, 0, Ending())), 0.0)

        problems = []
        for path in sorted(files, key=first) if len(files) > 1 else files:
            ending = Ending()
            for capture in captures(path, self.config.fetch.max_body, ending):
                self._take(capture)
            if ending.problem:
                problems.append((path, ending.problem))
        return problems

    def _take(self, capture: "Capture") -> None:
        """One capture."""
        from afresh.detect.compare import NOT_MODIFIED, SAME_TEXT

        known = self._known(capture.url, capture.time)
        if known is None:
            return
        if capture.problem:
            self.left_out[capture.problem] += 1
            return
        said = _said(capture, known)
        if said is not None and (capture.bare or (capture.same and not known.validators.fingerprint)):
            # A crawl of our own whose content is not kept, or comes with a later record.
            answered = Fetched(known.page.url, capture.time, 0.0, 200 if capture.bare else 304)
            reason = "" if said is not Outcome.UNCHANGED else SAME_TEXT if capture.bare else NOT_MODIFIED
            self._note(known, answered, Verdict(said, float(said is not Outcome.UNCHANGED), reason=reason), None)
            return
        fetched = self._fetched(known.page.url, capture)
        if isinstance(fetched, str):
            self.left_out[fetched] += 1
            return
        if fetched.answered is Answer.SAME and not known.validators.fingerprint:
            self.left_out["revisit_of_nothing"] += 1
            return
        url = known.page.url
        look = self._detector.look(
            known.validators, fetched, known.page.host, kept=lambda: self._copies.get(url) or self.store.copy(url)
        )
        verdict = look.verdict
        if said is not None and verdict.outcome is Outcome.NEW is not said:  # there is nothing to compare it with
            reason = SAME_TEXT if said is Outcome.UNCHANGED else ""
            verdict = replace(verdict, outcome=said, significance=float(not reason), reason=reason)
        copy = None
        if verdict.outcome in (Outcome.NEW, Outcome.CHANGED) or (
            verdict.outcome is Outcome.UNCHANGED and fetched.answered is not Answer.SAME
        ):
            copy = Copy(
                url,
                fetched.body,
                fetched.content_type,
                capture.time,
                capture.time,
                verdict.validators,
                fetched.meta,
            )
        self._note(known, fetched, verdict, copy)

    def _take_line(self, line: "Line") -> None:
        """A capture of which there is no more than a line: when it was, and whether it was the same as before."""
        known = self._known(line.url, line.time)
        if known is None:
            return
        before = known.validators.etag if known.validators.etag.startswith(DIGEST) else ""
        marked = Validators(etag=DIGEST + line.digest) if line.digest else Validators()
        outcome = Outcome.NEW if known.checked is None and not known.crawls else Outcome.CHANGED
        if line.status in (404, 410):
            outcome = Outcome.GONE
        elif line.status == 304 or line.content_type == "warc/revisit":
            outcome, marked = Outcome.UNCHANGED, known.validators
            if known.checked is None:
                self.left_out["revisit_of_nothing"] += 1
                return
        elif line.status and not 200 <= line.status < 300:
            self.left_out["no_content"] += 1
            return
        elif line.digest and before == marked.etag:
            outcome = Outcome.UNCHANGED
        fetched = Fetched(known.page.url, line.time, 0.0, line.status or 200, content_type=line.content_type)
        self._note(known, fetched, Verdict(outcome, float(outcome is not Outcome.UNCHANGED), marked), None)

    def _known(self, address: str, time: float) -> PageState | None:
        """What is known of a page at the moment of a capture; None, which is counted, if the capture is of no use."""
        from afresh.frontier import canonical_or_none, host_of

        url = canonical_or_none(address)
        if url is None:
            self.left_out["no_web_address"] += 1
            return None
        if host_of(url) in self._never:
            self.left_out["never"] += 1
            return None
        if not OLDEST <= time <= self._latest:
            self.left_out["no_date" if not time else "in_the_future" if time > OLDEST else "before_1991"] += 1
            return None
        state = self._states.get(url) or self.store.state(url)
        if state is None:
            state = PageState(Page(url, host_of(url), added=now()))
            self._met[url] = state.page
        latest = max(state.checked or 0.0, self._last(state))
        if time <= latest:
            self.left_out["older"] += 1
            self._states.setdefault(url, state)
            return None
        return state

    def _last(self, state: PageState) -> float:
        """When a page was crawled last."""
        if not state.crawls:
            return 0.0
        url = state.page.url
        for record in reversed(self._records):
            if record.state.page.url == url and record.crawl is not None:
                return record.crawl.time
        return next((crawl.time for crawl in self.store.history(url, 1)), 0.0)

    def _fetched(self, url: str, capture: "Capture") -> "Fetched | str":
        """The capture as a fetch; a word if its body cannot be used."""
        from afresh.fetch.answer import Headers
        from afresh.fetch.headers import kept, validators

        if not capture.status:
            return Fetched(url, capture.time, 0.0, 200, capture.body, capture.content_type)
        headers = Headers(list(capture.headers))
        body = b""
        if not capture.same and capture.status in (200, 203):
            undone = _undone(capture.body, headers, self.config.fetch.max_body)
            if isinstance(undone, str):
                return undone
            body = undone
        return Fetched(
            url,
            capture.time,
            0.0,
            304 if capture.same else capture.status,
            body,
            headers.get("Content-Type", "")[:200],
            validators(headers, capture.time),
            meta=kept(capture.status, headers),
        )

    def _note(self, known: PageState, fetched: Fetched, verdict: Verdict, copy: Copy | None) -> None:
        """Queue what a capture leaves behind."""
        url, outcome, time = known.page.url, verdict.outcome, fetched.started
        refreshed = outcome.refreshed
        before = known.checked
        crawl = Crawl(
            url,
            time,
            outcome,
            elapsed=time - before if refreshed and before is not None else None,
            status=fetched.status,
            size=len(fetched.body),
            significance=verdict.significance,
            reason=verdict.reason,
        )
        state = replace(
            known,
            validators=verdict.validators if refreshed else known.validators,
            fetched=time if copy is not None else known.fetched,
            checked=time if refreshed else known.checked,
            crawls=known.crawls + 1,
            changes=known.changes + (outcome is Outcome.CHANGED),
            failures=0 if refreshed else known.failures + 1,
        )
        if refreshed and before is not None:
            state = self._taught(known, state, fetched, verdict)
        self._states[url] = state
        if (new := self._met.pop(url, None)) is not None:
            self._new.append(new)
        if copy is not None:
            self._copies[url] = copy
            self._held += len(copy.body)
        self._records.append(Record(crawl, state, copy))
        self.counts[outcome.value] += 1
        if len(self._records) >= AT_ONCE or self._held > MAX_HELD:
            self._write()

    def _taught(self, known: PageState, state: PageState, fetched: Fetched, verdict: Verdict) -> PageState:
        """The state with what the estimator learns from a check: how often the page changes."""
        from afresh.cli.build import engine_for

        url = state.page.url
        if self._engine is None:
            self._engine = engine_for(self.config, max(self.store.totals().pages, 1))
        engine = self._engine
        self._moment = max(self._moment, fetched.started)
        if url not in engine:
            engine.add(known.page, self._moment, current=known.checked, learned=known.learned)
        engine.receive(fetched, verdict, self._moment)
        return replace(state, learned=engine.learned(url), beliefs=engine.beliefs(url, self._moment))

    def _write(self) -> None:
        """Make what is queued durable."""
        from afresh.cli.bounds import UNREAD

        if self._copies and not self._told:
            # Before the copies: a crawl reads links of what has changed, and these are as they are.
            self.store.put({UNREAD: "import"})
            self._told = True
        if self._records or self._new:
            self.pages += self.store.write(self._records, pages=self._new)
        self._records, self._new, self._held = [], [], 0
        self._states.clear()
        self._met.clear()
        self._copies.clear()


def _said(capture: "Capture", known: PageState) -> Outcome | None:
    """What our own crawl found then; None if the record is not of one, or what it says cannot be."""
    if capture.outcome not in ("new", "changed", "unchanged"):
        return None
    said = Outcome(capture.outcome)
    return None if said is Outcome.NEW and known.checked is not None else said


DIGEST = "cdx:"  # before a digest that stands for a content that is not here


def _undone(body: bytes, headers: "Headers", limit: int) -> bytes | str:
    """A body as its reader gets it; a word if that is not to be had."""
    from afresh.fetch.inflate import STEP, Body, Spoiled

    said = headers.get("Content-Length", "")
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        pieces, whole = _chunks(body)
        if pieces and not whole:
            return "truncated"
        body = b"".join(pieces) or body  # some programs write what they have unpacked, and leave the header
    elif said.isascii() and said.isdigit() and len(said) < MAX_DIGITS and int(said) > len(body):
        return "truncated"
    codings = headers.get("Content-Encoding", "")
    names = [name.strip().lower() for name in codings.split(",") if name.strip().lower() not in ("", "identity")]
    if not names:
        return body
    try:
        undone = Body(names, limit)
        for start in range(0, len(body), STEP):
            undone.feed(body[start : start + STEP])
        return undone.finish()
    except Spoiled as spoiled:
        return spoiled.reason


def _chunks(body: bytes) -> tuple[list[bytes], bool]:
    """The pieces of a chunked body, as far as they are whole; and whether that is all of it."""
    at, pieces = 0, list[bytes]()
    while (end := body.find(b"\r\n", at, at + 1_000)) > 0:
        size = _size(body[at:end])
        if size == 0:
            return pieces, True
        if size is None or end + 2 + size > len(body):
            break
        pieces.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return pieces, False


def _size(line: bytes) -> int | None:
    """What the line before a chunk says of it."""
    try:
        size = int(line.split(b";")[0], 16)
    except ValueError:
        return None
    return size if size >= 0 else None
