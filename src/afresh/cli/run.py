"""The commands that crawl: run, and crawl."""

import asyncio
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from afresh.cli.console import Beside, beside_for, open_beside, with_console
from afresh.cli.options import ConfigFile, LogFormat, LogTarget, Receive, StoreFile
from afresh.cli.options import Console as ConsoleAt
from afresh.cli.output import Output
from afresh.cli.reasons import counted
from afresh.cli.terminal import (
    as_json,
    console,
    errors,
    labelled,
    outlive_pipes,
    output_failed,
    plain,
    show_address,
    working,
)
from afresh.config import Config, parse
from afresh.errors import AfreshError, ConfigError, InputError
from afresh.store.base import EVERYTHING
from afresh.types import Outcome
from afresh.units import budget as read_budget
from afresh.units import duration, show_budget, show_count, show_rate, show_size
from afresh.units import size as read_size

if TYPE_CHECKING:
    from afresh.cli.faults import Faults
    from afresh.cli.log import Log
    from afresh.daemon import Daemon
    from afresh.daemon.events import Listener
    from afresh.frontier import Allowance
    from afresh.sources.sql import Definitions
    from afresh.sources.web import Discovery
    from afresh.sources.web.url_trace import UrlTrace
    from afresh.store import LastingStore

SITE = 1_000  # pages
FOUND = ("new", "changed", "unchanged")  # what most crawls find
FAILURES = (Outcome.FAILED, Outcome.BUSY, Outcome.REFUSED)


def run(
    budget: Annotated[str | None, typer.Option(help='Crawl rate such as "10/s"; overrides the settings.')] = None,
    seconds: Annotated[str | None, typer.Option(help='Stop by itself after this long, such as "90s".')] = None,
    receive: Receive = None,
    console: ConsoleAt = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON line for every crawl that is stored.")] = False,
    log: LogTarget = None,
    log_format: LogFormat = "plain",
) -> None:
    """Keep the pages in the store fresh until stopped (Ctrl-C or SIGTERM).

    A crawl is reported when it is safely stored. Stopping lets fetches under way finish. The next start continues where
    this one stopped.

    Example: afresh run --budget 5/s
    """
    from afresh.cli.opening import open_store, settings

    def again() -> Config:
        return with_console(with_receive(with_budget(settings(config, store), budget), receive), console)

    read = again()
    limit = duration(seconds) if seconds is not None else None
    logging_to = open_log(log, log_format, as_json_lines=json)
    with open_store(read, create=bool(read.query) or read.fed) as kept:
        progress = Progress(read, as_json_lines=json, budget_by="" if budget is None else "--budget")
        keep_fresh(read, kept, progress, limit, again=again, log=logging_to, config_file=config)


def with_budget(config: Config, budget: str | None) -> Config:
    """The settings; a budget from the command line replaces theirs at all hours."""
    if budget is None:
        return config
    return replace(config, crawl=replace(config.crawl, budget=read_budget(budget), budget_hours=()))


def with_receive(config: Config, receive: str | None) -> Config:
    """The settings; an address to receive signals at from the command line replaces theirs."""
    if receive is None:
        return config
    written = receive.replace("\\", "\\\\").replace('"', '\\"')
    listen = parse(f'[receive]\nlisten = "{written}"\n', where="--receive").receive.listen
    return replace(config, receive=replace(config.receive, listen=listen))


def crawl(
    seeds: Annotated[
        list[str] | None, typer.Argument(help="Where to begin; none: continue the crawl in the store.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Follow this many links from a seed at most.", min=0)] = None,
    max_pages: Annotated[int | None, typer.Option(help="Keep this many pages at most.", min=1)] = None,
    max_known: Annotated[int | None, typer.Option(help="Know this many addresses at most.", min=1)] = None,
    max_kept: Annotated[
        int | None, typer.Option(help="Hold this many pages at most; what else is found waits on disk.", min=1)
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help='Memory for what is found and waits, such as "1GiB"; overrides the settings.')
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Hosts to stay on, such as example.com or *.example.com; default: the seeds' own. Repeatable."
        ),
    ] = None,
    include: Annotated[list[str] | None, typer.Option(help="Only paths like /docs/*; repeatable.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No paths like *print=; repeatable.")] = None,
    budget: Annotated[str | None, typer.Option(help='Crawl rate such as "10/s"; overrides the settings.')] = None,
    seconds: Annotated[str | None, typer.Option(help='Stop by itself after this long, such as "90s".')] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Add all links, as they are met, to this file, for afresh lab urlcache.")
    ] = None,
    receive: Receive = None,
    console: ConsoleAt = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON line for every crawl that is stored.")] = False,
    log: LogTarget = None,
    log_format: LogFormat = "plain",
) -> None:
    """Discover a site from its links and keep it fresh afterwards, until stopped (Ctrl-C or SIGTERM).

    New pages compete with refreshes by the value of a fetch. After a stop, the next start continues where this one
    stopped. Without seeds it keeps the same bounds.

    Example: afresh crawl https://example.com/ --depth 3 --max-pages 5000
    """
    from afresh.cli.bounds import UNREAD, Bounds
    from afresh.cli.opening import open_store, settings
    from afresh.frontier import HostPatterns

    def again() -> Config:
        return with_console(with_receive(with_budget(settings(config, store), budget), receive), console)

    read = again()
    limit = duration(seconds) if seconds is not None else None
    room = read.crawl.memory if memory is None else read_size(memory)
    logging_to = open_log(log, log_format, as_json_lines=json)
    never = read.crawl.never
    pages = Bounds.seeds(seeds or [], HostPatterns(never))
    with open_store(read, create=bool(pages)) as kept:
        kept.claim()  # before anything is changed: another process may be running on it
        before = bounds = Bounds.stored(kept)
        if pages:
            hosts = scope or [page.host for page in pages]
            paths = tuple(include or ()), tuple(exclude or ())
            bounds = Bounds(tuple(sorted(set(hosts))), *paths, depth, max_pages, max_known, max_kept)
            bounds.discovery(never)  # says what is wrong with them before anything is kept
            kept.add(pages)
            bounds.keep(kept, before)
        if bounds is None:
            raise InputError("There is no crawl to go on with.", hint="Name seeds: afresh crawl https://example.com/")
        if not pages and (max_known or max_kept):
            bounds = replace(bounds, max_known=max_known or bounds.max_known, max_kept=max_kept or bounds.max_kept)
            bounds.keep(kept, before)
        backlog = bounds.backlog(kept, kept.path, room)
        with _traced(trace) as links, closing(backlog):
            discovery = bounds.discovery(never, links, backlog)
            if kept.get(UNREAD) is not None:
                with working("Reading the links of all copies"):
                    bounds.read_copies(kept, discovery)
            progress = Progress(read, as_json_lines=json, budget_by="" if budget is None else "--budget")
            progress.found = discovery.counts
            keep_fresh(
                read,
                kept,
                progress,
                limit,
                discovery,
                again=again,
                log=logging_to,
                config_file=config,
                max_kept=bounds.max_kept,
            )


@contextmanager
def _traced(path: Path | None) -> "Iterator[UrlTrace | None]":
    """The file that links are written to, if there is to be one; says at the end if that did not go well."""
    if path is None:
        yield None
        return
    from afresh.sources.web.url_trace import UrlTrace

    trace = UrlTrace(path)
    try:
        yield trace
    finally:
        trace.close()
        if trace.problem:
            errors.print(f"{plain(str(path))}: {plain(trace.problem)}")


def open_log(target: str | None, log_format: str, *, as_json_lines: bool) -> "Log | None":
    """The log that the options name, if they do."""
    if log_format not in ("plain", "json"):
        raise InputError(f"There is no log format {plain(log_format, 40)!r}.", hint="Write plain or json.")
    if target is None:
        return None
    from afresh.cli.log import STANDARD_OUTPUT, Log

    if target == STANDARD_OUTPUT and as_json_lines:
        raise InputError("--json and --log - would both write to standard output.", hint="Give the log a file.")
    return Log(target, as_json=log_format == "json")


def keep_fresh(
    config: Config,
    kept: "LastingStore",
    progress: "Progress",
    limit: float | None,
    discovery: "Discovery | None" = None,
    *,
    again: Callable[[], Config] | None = None,
    log: "Log | None" = None,
    config_file: Path | None = None,
    max_kept: int | None = None,
) -> None:
    """Run a daemon on a store until a stop signal comes or the time is up; `again` reads the settings at SIGHUP, and
    `config_file` is where they are, for the console beside it."""
    if not config.crawl.budget > 0 and not config.crawl.budget_hours:
        raise ConfigError("A budget of 0 crawls nothing.", hint="Give a rate above 0, such as --budget 1/s.")
    from afresh.cli.faults import Faults

    faults = Faults(log)
    try:
        with faults:
            beside = beside_for(config, config_file)
            try:
                _keep_fresh(config, kept, progress, limit, discovery, again, faults, beside, max_kept)
            finally:
                if beside is not None:
                    beside.end()
    finally:
        if log is not None:
            log.close()
        faults.tell()


def _keep_fresh(
    config: Config,
    kept: "LastingStore",
    progress: "Progress",
    limit: float | None,
    discovery: "Discovery | None",
    again: Callable[[], Config] | None,
    faults: "Faults",
    beside: Beside | None,
    max_kept: int | None,
) -> None:
    from afresh.cli.queries import hand_in

    hand_in(config, kept)
    totals = kept.totals()
    if not totals.pages and not config.fed:
        raise InputError("There are no pages to keep fresh.", hint="Add some: afresh add https://example.com/")
    from afresh.cli.build import (
        budget_hours,
        compile_all,
        cost_for,
        definitions_for,
        detector_for,
        engine_for,
        engines_for,
        kinds_for,
        searching_for,
        sources_for,
    )
    from afresh.cli.collection import COMPILING, STARTING
    from afresh.cli.hangup import Hangup
    from afresh.cli.log import STANDARD_OUTPUT, write_to
    from afresh.cli.notifying import courier_for, telling
    from afresh.cli.receiving import receiver_for
    from afresh.daemon import Daemon, SteadyClock
    from afresh.frontier import HostPatterns
    from afresh.sources import Sources
    from afresh.store.socket_file import socket_path

    cost = cost_for(config)
    detector = detector_for(config)  # settings that make no sense are refused before anything takes time,
    courier = courier_for(config, kept)
    kept.claim()  # and so is a store that another process runs on
    kept.put({COMPILING: None, STARTING: repr(time.time())})  # also what a runner left that was killed meanwhile
    open_beside(beside)  # before anything takes time: it says that this starts

    compile_all(lambda: kept.put({COMPILING: repr(time.time())}), policy=config.crawl.policy)
    kept.put({COMPILING: None})
    searching = searching_for(config, kept)
    first = engine_for(config, totals.pages, to_come=to_come(discovery, totals.copies))
    definitions = definitions_for(config, kept)

    async def go() -> int:
        clock = SteadyClock()
        sources = Sources(sources_for(config, kept, first.lanes, clock, discovery, definitions))
        daemon = Daemon(
            engine=engines_for(config, kept, first, sources, definitions),
            sources=sources,
            store=kept,
            detector=detector,
            never=HostPatterns(config.crawl.never),
            kinds=kinds_for(config),
            searching=searching,
            clock=clock,
            concurrency=config.crawl.concurrency,
            grace=config.crawl.grace,
            max_unwritten=config.crawl.max_unwritten,
            max_kept=max_kept,
            socket=socket_path(kept.path),
            budget_hours=budget_hours(config),
            cost=cost,
            listeners=[progress.hear, *progress.listeners],
        )
        daemon.listeners.append(_started(kept))
        daemon.control.budget_by = progress.budget_by
        progress.stop = daemon.stop
        progress.others = lambda: [
            (part.purse, part.budget, "calls" if part.costs is None else part.costs.unit)
            for part in daemon.engine.parts[1:]
        ]
        progress.in_force = lambda: daemon.engine.first.budget  # at other hours another one
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, daemon.stop)
        faults.listen(loop)
        hangup = Hangup()
        if (log := faults.log) is not None:
            daemon.listeners.append(lambda event: write_to(log, event))
            hangup.add(log.reopen)
            progress.quiet = log.target == STANDARD_OUTPUT
        if again is not None:
            hangup.add(lambda: _read_again(again, daemon, progress, faults, definitions))
        hangup.listen(loop)
        if limit is not None:
            loop.call_later(limit, daemon.stop)
        shower = asyncio.create_task(progress.show(daemon))
        receiver = receiver_for(config, daemon)
        if beside is not None:
            hangup.add(beside.hang_up)
            await beside.start()
        try:
            if receiver is not None:
                where = await receiver.start()
                errors.print(f"Receiving signals at http://{show_address(where)}/", soft_wrap=True)
            async with telling(courier, daemon):
                await daemon.run()
        finally:
            shower.cancel()
            if receiver is not None:
                await receiver.stop()
            if beside is not None:
                await beside.stop()
            await sources.close()
        return daemon.pages

    outlive_pipes()
    progress.close(asyncio.run(go()))


def _started(kept: "LastingStore") -> "Listener":
    """Who notes that a runner has started: from then on it answers questions itself."""
    from afresh.cli.collection import STARTING
    from afresh.daemon.events import Event, Started

    def hear(event: Event) -> None:
        if isinstance(event, Started):
            asyncio.get_running_loop().run_in_executor(None, kept.put, {STARTING: None})

    return hear


def _read_again(
    again: Callable[[], Config],
    daemon: "Daemon",
    progress: "Progress",
    faults: "Faults",
    definitions: "Definitions",
) -> None:
    """Continue with the settings as they are now, or with the old ones if the new ones cannot be used."""
    from afresh.cli.build import take_up

    try:
        config = again()
    except AfreshError as error:
        faults.say(f"The settings stay as they are: {error.message} {error.hint}".rstrip(), refused=True)
        return
    progress.config = config
    progress.taking_up = asyncio.get_running_loop().create_task(take_up(config, daemon, definitions))
    faults.say(
        "The settings were read again. [store] but for max_bytes and versions, [fetch], [[notify]], [mail], keep, "
        "drop, policy, cost and probes hold from the next start on. Options of the command line come before them."
    )


def to_come(discovery: "Discovery | None", copies: int) -> int:
    """How many pages to expect before any is read: about a thousand, give or take a factor of ten."""
    if discovery is None or copies:
        return 0
    return SITE if discovery.most_pages is None else min(SITE, discovery.most_pages)


@dataclass
class Progress:
    """Listens to the daemon, counts, and shows: a line that renews itself, or JSON lines, or a line now and then."""

    config: Config
    as_json_lines: bool
    began: float = field(default_factory=time.monotonic)
    under_way: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # of those that failed
    not_modified: int = 0
    recent: deque[float] = field(default_factory=deque)
    released: int = 0
    known_before: list[tuple[float, float]] = field(default_factory=list)  # when how many addresses were known, lately
    sitemaps: int = 0
    signals: int = 0
    allowed: "Allowance | None" = None  # what politeness was last said to allow
    room: str = ""  # what the store takes no more
    costless: set[str] = field(default_factory=set)  # kinds of reasons for costs that are not known, told of
    quiet: bool = False  # standard output is the log's
    output: Output | None = None  # what writes to it, since the first line
    stop: Callable[[], None] = lambda: None  # what to do when standard output is gone
    found: Callable[[], Mapping[str, float]] = dict  # what was found, if anything looks for it
    budget_by: str = ""  # the option that sets the budget; "": the settings do
    in_force: Callable[[], float] | None = None  # the budget at this moment; None: that of the settings
    # The budgets of files and databases, with their units, as far as there are any.
    others: Callable[[], list[tuple[str, float, str]]] = list
    unheard: OSError | None = None  # why not
    listeners: "list[Listener]" = field(default_factory=list)  # who hears of everything as well
    taking_up: "asyncio.Task[None] | None" = None  # other settings

    def __post_init__(self) -> None:
        from afresh.daemon import events

        self._events = events

    def hear(self, event: object) -> None:
        """Count an event of the daemon's; if standard output cannot be written, stop as after a signal."""
        try:
            self._hear(event)
        except OSError as error:
            self._give_up(error)

    def _write(self, line: str) -> None:
        """Hand a line over for standard output; the first that nobody has read in time is told of."""
        if self.output is None:
            loop = asyncio.get_running_loop()
            self.output = Output(lambda error: loop.call_soon_threadsafe(self._give_up, error))
        if not self.output.write(line) and self.output.dropped == 1:
            errors.print("Nobody reads standard output: its lines are dropped and counted. The crawl goes on.")

    def _give_up(self, error: OSError) -> None:
        self.unheard = self.unheard or error
        self.stop()

    def _hear(self, event: object) -> None:
        events = self._events
        match event:
            case events.Started():
                self.began = time.monotonic()
            case events.Ordered():
                self.under_way += 1
            case events.Released():
                self.under_way -= 1
            case events.Finished(crawl, ordered):
                self.under_way -= ordered
                self.recent.append(time.monotonic())
                self._forget()
                self.outcomes[crawl.outcome] += 1
                self.not_modified += crawl.status == 304
                if crawl.outcome in FAILURES:
                    self.reasons[crawl.reason] += 1
            case events.Stored(crawls) if self.as_json_lines and self.unheard is None:
                for crawl in crawls:
                    self._write(as_json(crawl))
            case events.Listed(signals=signals):
                self.sitemaps += 1
                self.signals += signals
            case events.Filled(used, bound, takes):
                full = f"store: {show_size(used)} of {show_size(bound)} used, {takes} (store.max_bytes)"
                self.room = "" if takes == EVERYTHING else full
            case events.CostUnknown(kind, why):
                self._tell_of_costs(kind, why)
            case events.Stopped(released):
                self.released = released

    async def show(self, daemon: "Daemon") -> None:
        """Show how it goes until cancelled."""
        try:
            await self._show(daemon)
        except OSError as error:
            self._give_up(error)

    async def _show(self, daemon: "Daemon") -> None:
        silent = self.as_json_lines or self.quiet
        if silent or not console.is_terminal:
            while True:
                await asyncio.sleep(10)
                self._tell_of_politeness(daemon.overview.allowance, errors)
                if not silent and self.unheard is None:
                    self._write("\n  ".join(self.lines(daemon.pages)))
        with console.status("\n  ".join(self.lines(daemon.pages))) as status:
            while True:
                await asyncio.sleep(0.25)
                if self._lasted() > 5:
                    self._tell_of_politeness(daemon.overview.allowance, console)
                status.update("\n  ".join(self.lines(daemon.pages)))

    @property
    def budget(self) -> float:
        """Crawls a second that may be made now: `crawl.budget_hours` have their own."""
        return self.config.crawl.budget if self.in_force is None else self.in_force()

    def _lasted(self) -> float:
        return max(time.monotonic() - self.began, 0.1)

    def _tell_of_politeness(self, allowed: "Allowance | None", where: Console) -> None:
        """Say what politeness allows of the budget: once, and again when it has changed a lot."""
        sentence = allowed.sentence(self.budget) if allowed is not None else ""
        if allowed is None or not sentence:
            self.allowed = None
            return
        before = self.allowed
        if before is None or before.because != allowed.because or not 0.7 < allowed.rate / before.rate < 1.4:
            self.allowed = allowed
            where.print(labelled("Note:", f"{sentence}.", 6))

    def _tell_of_costs(self, kind: str, why: str) -> None:
        """Say that costs are not known: the first time for each kind of reason; `afresh status` counts."""
        if kind in self.costless:
            return
        self.costless.add(kind)
        shown_live = console.is_terminal and not (self.as_json_lines or self.quiet)
        said = f"The cost of a crawl is not known: {plain(why, 160)}. afresh status counts such crawls."
        (console if shown_live else errors).print(labelled("Note:", said, 6))

    def _forget(self) -> None:
        """Keep the last ten seconds only."""
        horizon = time.monotonic() - 10
        while self.recent and self.recent[0] < horizon:
            self.recent.popleft()

    def lines(self, pages: int) -> list[str]:
        """How it goes, and what fails if anything does."""
        failed = [f"failed: {counted(self.reasons)}"] if self.reasons else []
        return [*self.counts(pages), *self._found_lines(), *failed, *([self.room] if self.room else [])]

    def _found_lines(self) -> list[str]:
        """What was found, and how fast."""
        from afresh.cli.wording import found_line

        found = self.found()
        if not found.get("looked_up"):
            return []
        moment = time.monotonic()
        if not self.known_before or moment - self.known_before[0][0] > 1.0:
            self.known_before = [*self.known_before[-9:], (moment, found["known"])]
        (since, before), (until, known) = self.known_before[0], self.known_before[-1]
        rate = (known - before) / (until - since) if until > since else 0.0
        return [found_line(found, rate)]

    def counts(self, pages: int, *, now: bool = True) -> list[str]:
        """How much was crawled and what that found, in lines that fit on 80 columns."""
        self._forget()
        rate_now = f", now {show_rate(len(self.recent) / min(10.0, self._lasted()))}" if now else ""
        counts = self.outcomes
        failed = counts["failed"] + counts["busy"] + counts["refused"]
        budget, crawls = show_budget(self.budget, self.config.crawl.budget.unit), show_count(counts.total(), "crawl")
        found = [
            f"{show_count(pages, 'page')}, budget {budget}{rate_now}, {self.under_way} under way, {crawls}",
            f"{failed:,} failed, " + ", ".join(f"{counts[name]:,} {name}" for name in FOUND),
        ]
        rest = [f"{counts[name]:,} {name}" for name in ("probed", "gone", "moved") if counts[name]]
        if self.not_modified:
            rest.append(f"{self.not_modified:,} not modified (304)")
        if self.sitemaps:
            rest.append(f"{show_count(self.sitemaps, 'sitemap')} with {show_count(self.signals, 'signal')}")
        if others := [f"{name.removeprefix('sql:')} {show_budget(each, unit)}" for name, each, unit in self.others()]:
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            found.insert(1, f"budgets of their own: {', '.join(others[:3])}{more}")
        first = ", ".join(rest[:3])
        return [*found, *(part for part in (first, ", ".join(rest[3:])) if part)]

    def close(self, pages: int) -> None:
        """The last line."""
        dropped = 0
        if self.output is not None:
            dropped = self.output.close()
            self.unheard = self.unheard or self.output.error
        released = f"; {self.released} given back unfinished" if self.released else ""
        # Programs read standard output; the summary is for people.
        errors.print(labelled("Stopped.", f"{'; '.join(self.counts(pages, now=False))}{released}.", 9))
        if self.reasons:
            errors.print(f"Failed: {counted(self.reasons)}.")
        if self.room:
            errors.print(labelled("Store:", f"{self.room.removeprefix('store: ')}.", 7))
        if dropped and self.unheard is None:
            was = "1 line of standard output was" if dropped == 1 else f"{dropped:,} lines of standard output were"
            errors.print(f"{was} dropped: nobody read {'it' if dropped == 1 else 'them'} in time.")
        if self.unheard is not None:
            output_failed(self.unheard)
