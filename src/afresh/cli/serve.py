"""The command that hands copies out: serve."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.options import ConfigFile, StoreFile
from afresh.cli.terminal import errors, outlive_pipes, plain
from afresh.config import Config, ServeSettings, parse
from afresh.errors import ConfigError, InputError, StoreError
from afresh.units import show_count, show_size

if TYPE_CHECKING:
    from afresh.cli.serving import Parts
    from afresh.store import LastingStore

GRACE = 10.0  # seconds for answers that are under way when a stop signal comes
MAX_TOKENS_BYTES = 1 << 16
MAX_FILES = 65_536


def serve(
    listen: Annotated[
        str | None, typer.Option(help="Address and port, such as 127.0.0.1:8080; overrides the settings.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Answer for this one origin, such as http://127.0.0.1:9000, at any host name.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Follow the origin's lifetimes to the letter (RFC 9111); use no store.")
    ] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """Answer readers from copies: a caching HTTP proxy beside `afresh run`.

    It reads the copies that the runner keeps fresh, fetches what is missing itself, and tells the runner what is asked
    for. [[serve]] in the settings maps host names or prefixes to origins; --origin maps one without any settings.
    Ctrl-C or SIGTERM: what was asked is still answered. SIGHUP opens the access log anew.

    Example: afresh serve --listen 127.0.0.1:8080 --origin http://127.0.0.1:9000 --strict
    """
    from afresh.cli.opening import settings

    outlive_pipes()  # readers hang up whenever they like, also while they are answered
    read = settings(config, store)
    if listen is not None:
        read = replace(read, proxy=replace(read.proxy, listen=_listening(listen)))
    if origin is not None or strict:
        read = _mapped(read, origin, strict=strict)
    if not (read.serve or read.proxy.mirror or read.proxy.forward):
        raise InputError(
            "Nothing is mapped: there is no [[serve]], no proxy.mirror and no proxy.forward in the settings.",
            hint="afresh serve --origin http://127.0.0.1:9000, or see docs/serving.md.",
        )
    with ExitStack() as opened:
        kept = None if strict else _store(read, opened, needed=store is not None, create=origin is None and read.fed)
        run_server(read, kept)


def _listening(text: str) -> tuple[str, int]:
    return parse(f"[proxy]\nlisten = {_quoted(text)}\n", where="--listen").proxy.listen


def _mapped(config: Config, origin: str | None, *, strict: bool) -> Config:
    """The settings with one origin at every host, or with everything strict."""
    sites = config.serve
    if origin is not None:
        sites = parse(f'[[serve]]\nprefix = "/"\norigin = {_quoted(origin)}\n', where="--origin").serve
    if strict:
        sites = tuple(replace(site, strict=True) for site in sites)
    return replace(config, serve=sites)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _store(config: Config, opened: ExitStack, *, needed: bool, create: bool) -> "LastingStore | None":
    """The store beside which to serve; none, if there is none, nobody named one and none is to be made."""
    from afresh.cli.opening import may_be_there, open_store

    if not needed and not create and not may_be_there(config):
        errors.print(f"There is no store at {plain(str(config.store.path))}: answers are kept in memory alone.")
        return None
    try:
        return opened.enter_context(open_store(config, create=create))
    except StoreError as error:
        raise StoreError(error.message, hint=f"{error.hint} Or use --strict, which needs no store.") from None


def tokens(path: str) -> list[str]:
    """The tokens in a file that nobody else can read; none if no file is named."""
    if not path:
        return []
    file = Path(path).expanduser()
    try:
        if S_IMODE(file.stat().st_mode) & 0o077:
            raise ConfigError(f"Others can read the tokens in {file}.", hint=f"Run chmod 600 {file}.")
        with file.open(encoding="utf-8") as opened:
            text = opened.read(MAX_TOKENS_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The tokens in {file} cannot be read: {why}.", hint="One token a line.") from None
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if any(len(token) < 16 for token in found):
        raise ConfigError(f"A token in {file} is too short.", hint="Use 16 characters or more, such as from uuidgen.")
    return found


def run_server(config: Config, kept: "LastingStore | None") -> None:
    """Serve until a stop signal."""
    from afresh.cli.opening import place_of
    from afresh.cli.serving import fetches_ahead, parts_for
    from afresh.store.socket_file import ask

    for said in not_ahead(config, runs=kept is not None and ask(place_of(config), "wake") is not None):
        errors.print(said, soft_wrap=True)
    if fetches_ahead(config) and kept is not None:
        _compile_prefetching()
    allow_many_connections()
    parts = parts_for(config, kept, tokens(config.proxy.purge_tokens))
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(_serve(config, parts))


def not_ahead(config: Config, *, runs: bool) -> list[str]:
    """Why something is not fetched ahead that the settings want fetched ahead, in sentences.

    >>> not_ahead(Config(serve=(ServeSettings(host="a", origin="http://10.0.0.5", prefetch=True),)), runs=True)
    []
    """
    wanted = [site for site in config.serve if site.prefetch]
    said = [
        f"Nothing is fetched ahead for {site.origin}: strict mode asks the origin only for what readers ask for."
        for site in wanted
        if site.strict
    ]
    if len(said) < len(wanted) and not runs:
        said.append("Nothing is fetched ahead of readers until `afresh run` runs on the same store.")
    return said


def _compile_prefetching() -> None:
    from afresh.cli.compiling import shown_compiling
    from afresh.estimate.paths.readers import compile_ahead
    from afresh.serve.proxy.segments import parts_of

    with shown_compiling():
        compile_ahead()
        parts_of(b"<p>text", "http://localhost/", "text/html")


def allow_many_connections() -> None:
    """Let as many files be open as the system lets us: each reader is one."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, MAX_FILES) if most > 0 else MAX_FILES, most))


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop where it is installed; otherwise asyncio's own."""
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


async def _serve(config: Config, parts: "Parts") -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    host, port = config.proxy.listen
    try:
        where = await parts.start(host, port)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise InputError(f"Nothing can listen at {host}:{port}: {why}.", hint="Choose another with --listen.") from None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if parts.log is not None:
        loop.add_signal_handler(signal.SIGHUP, parts.log.again)
    errors.print(f"Serving at http://{where[0]}:{where[1]}/ {said_of(config.serve)}", soft_wrap=True)
    sys.stderr.flush()
    await stop.wait()
    errors.print("Stopping: what was asked is still answered.")
    await parts.stop(GRACE)
    counts = parts.service.counts
    errors.print(
        f"Answered {counts.hits:,} from copies, {counts.stale:,} stale, {counts.checked:,} confirmed by asking, "
        f"{counts.misses:,} fetched, {counts.joined:,} with another's fetch, {counts.passed:,} passed on; "
        f"{counts.errors:,} errors.",
        soft_wrap=True,
    )
    if parts.prefetching is not None:
        ahead = parts.prefetching.counts
        errors.print(
            f"Fetched {show_count(ahead.fetched, 'answer')} ahead ({show_size(ahead.fetched_bytes)}), of which readers "
            f"asked for {ahead.used:,} ({show_size(ahead.used_bytes)}); {ahead.called_off:,} called off, "
            f"{ahead.taken_up + parts.service.asking.unfinished.used:,} completed later.",
            soft_wrap=True,
        )


def said_of(sites: tuple[ServeSettings, ...]) -> str:
    """What is mapped, for a line.

    >>> said_of((ServeSettings(prefix="/", origin="http://127.0.0.1:9000", strict=True),))
    'for http://127.0.0.1:9000 (strict)'
    """
    if not sites:
        return "as mirror or forward proxy"
    first = sites[0]
    more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
    return f"for {first.origin}{' (strict)' if first.strict else ''}{more}"
