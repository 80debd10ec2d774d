"""`afresh console`: the collection in the browser; and how `afresh run --console` keeps one beside it.

The console is a process of its own: no page, however large the collection, takes a turn from the crawl. It reads the
store, and asks the runner through its socket.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.options import ConfigFile, StoreFile
from afresh.cli.terminal import errors, outlive_pipes, plain, show_address
from afresh.config import Config, parse
from afresh.errors import AfreshError, InputError
from afresh.types import Address

if TYPE_CHECKING:
    from afresh.serve.console.app import ConsoleApp

DEFAULT = "127.0.0.1:8600"
MAX_LINE = 1 << 16  # bytes
START_SECONDS = 60.0
LOWER = 10  # by how much the crawl goes before the console, where both want the processor
LOOK_SECONDS = 0.3  # between two looks whether it is still there
LONGEST_REST = 60.0  # seconds until a console that ended is begun again


def console(
    listen: Annotated[
        str | None, typer.Option(help=f"Address and port; default {DEFAULT}, or the settings'.", show_default=False)
    ] = None,
    beside: Annotated[bool, typer.Option("--beside", hidden=True, help="End when whoever began this ends.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """Show the collection in the browser, and offer its API, feeds and metrics. Ctrl-C stops it.

    Without a running `afresh run` it only reads; `afresh run --console` starts both.

    Example: afresh console --listen 127.0.0.1:8600
    """
    from afresh.cli.opening import settings

    if beside:
        store = _told_store() or store

    def again() -> Config:
        return with_console(settings(config, store), listen)

    outlive_pipes()
    try:
        read = again()
        if read.console.listen is None:
            read = with_console(read, DEFAULT)
        asyncio.run(_serve(read, again, beside=beside))
    except AfreshError as error:
        if not beside:
            raise
        print(json.dumps({"error": error.message, "hint": error.hint}), flush=True)  # noqa: T201 - for who started it
        raise typer.Exit(2) from None


def with_console(config: Config, listen: str | None) -> Config:
    """The settings; an address of the console from the command line replaces theirs."""
    if listen is None:
        return config
    written = listen.replace("\\", "\\\\").replace('"', '\\"')
    found = parse(f'[console]\nlisten = "{written}"\n', where="--console").console.listen
    return replace(config, console=replace(config.console, listen=found))


def console_app(config: Config, read: "list[Config]") -> "ConsoleApp":
    """The application; `read` holds the settings in force, which may be exchanged."""
    from afresh import __version__
    from afresh.cli.looking import StoreFacts
    from afresh.cli.reasons import words
    from afresh.serve.console.app import ConsoleApp
    from afresh.serve.console.door import Door
    from afresh.serve.receive.tokens import Tokens, listed

    listed(config.receive.tokens)  # says what is wrong with the file before anything listens
    host = config.console.listen[0] if config.console.listen else ""
    door = Door(Tokens(config.receive.tokens), host=host, public_url=config.console.public_url)
    return ConsoleApp(lambda: StoreFacts(lambda: read[0]), door, __version__, words)


async def _serve(config: Config, again: Callable[[], Config], *, beside: bool) -> None:
    from afresh.cli.opening import open_store
    from afresh.serve.receive.listener import Listener

    open_store(config, create=False).close()  # says what is wrong with it before anything listens
    read = [config]
    app = console_app(config, read)
    assert config.console.listen is not None  # noqa: S101 - the caller sees to it
    listener = Listener(app.app, *config.console.listen, option="--listen")
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)

    def renew() -> None:
        with suppress(AfreshError):  # the runner says what is wrong with them; the old ones go on
            read[0] = again()

    loop.add_signal_handler(signal.SIGHUP, renew)
    alone: asyncio.Task[None] | None = None
    try:
        where = show_address(await listener.start())
        if beside:
            with suppress(OSError):
                os.nice(LOWER)
            print(json.dumps({"address": where}), flush=True)  # noqa: T201 - for who started it
            alone = asyncio.create_task(_until_alone(stopped))
        else:
            errors.print(f"Console at http://{where}/ (Ctrl-C stops it)", soft_wrap=True)
        await stopped.wait()
    finally:
        if alone is not None:
            alone.cancel()
        await app.end_streams()
        await listener.stop()
        app.close()


def _told_store() -> str | None:
    """The store, as whoever started this process says on its standard input: its address may hold a password, which
    must not stand among the words of a command."""
    line = os.read(sys.stdin.fileno(), MAX_LINE).partition(b"\n")[0]
    try:
        return str(json.loads(line)["store"])
    except (ValueError, KeyError, TypeError):
        return None


async def _until_alone(stopped: asyncio.Event) -> None:
    """Wait until whoever started this process is gone: then nobody holds the other end of its standard input."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
    stopped.set()


class Beside:
    """A console in a process of its own, which ends when this one does, and is begun again if it ends by itself."""

    def __init__(self, config: Config, config_file: Path | None) -> None:
        listen = config.console.listen
        self.listen = "" if listen is None else show_address(listen)
        path = config.store.path
        self._store = path.secret if isinstance(path, Address) else str(path)
        self._words = [] if config_file is None else ["--config", str(config_file)]
        self.process: subprocess.Popen[bytes] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._changing = threading.Lock()  # which process there is
        self._ending = False
        self.address = ""

    def begin(self) -> str:
        """Begin, also before there is an event loop; where it is. InputError if it cannot."""
        words: Sequence[str] = ["console", "--beside", "--listen", self.address or self.listen, *self._words]
        self._let_go()  # of one that ended
        with self._changing:
            if self._ending:
                return self.address
            process = self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "afresh", *words],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the runner, which then stops it
            )
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        late = threading.Timer(START_SECONDS, process.kill)
        late.start()
        said: dict[str, object] = {}
        try:
            with suppress(OSError, ValueError):
                process.stdin.write(json.dumps({"store": self._store}).encode() + b"\n")
                said = json.loads(process.stdout.readline() or b"{}")
        finally:
            late.cancel()
        if "address" in said:
            self.address = str(said["address"])
            return self.address
        self._let_go()
        raise InputError(
            str(said.get("error", "The console did not start.")),
            hint=str(said.get("hint", "See afresh console.")).replace("--listen", "--console"),
        )

    async def start(self) -> str:
        """Begin, if that was not done, and begin it again whenever it ends by itself; where it is."""
        if self.process is None:
            await asyncio.to_thread(self.begin)
        self._watching = asyncio.create_task(self._watch())
        return self.address

    async def _watch(self) -> None:
        rest, began = 1.0, time.monotonic()
        while True:
            while self.process is not None and self.process.poll() is None:  # noqa: ASYNC110 - another process
                await asyncio.sleep(LOOK_SECONDS)
            if time.monotonic() - began > LONGEST_REST:
                rest = 1.0
            errors.print(f"The console ended by itself; it begins again in {rest:g} s.")
            await asyncio.sleep(rest)
            rest, began = min(2 * rest, LONGEST_REST), time.monotonic()
            with suppress(AfreshError, OSError):
                await asyncio.to_thread(self.begin)

    def hang_up(self) -> None:
        """Let it read the settings again."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)

    async def stop(self) -> None:
        """End it, from the event loop that watches it."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """End it for good."""
        self._ending = True
        self._let_go()

    def _let_go(self) -> None:
        with self._changing:
            process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(8.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def beside_for(config: Config, config_file: Path | None) -> Beside | None:
    """The console that the settings want beside a runner; None if they want none."""
    return None if config.console.listen is None else Beside(config, config_file)


def open_beside(beside: Beside | None) -> None:
    """Begin a console, if there is to be one, and say where it is."""
    if beside is not None:
        errors.print(f"Console at http://{plain(beside.begin(), 300)}/", soft_wrap=True)
