"""A serving cache on real sockets, an origin that does as it is told, and a reader."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from afresh.cli.serving import Parts, parts_for
from afresh.config import Config, parse
from afresh.store import Store

HOST = "127.0.0.1"


@dataclass
class Told:
    """What an origin answers."""

    status: int = 200
    headers: Mapping[str, str] | list[tuple[str, str]] = field(default_factory=dict)
    body: bytes = b"hello"
    before: bytes = b""  # bytes before the answer
    wait: float = 0.0
    cut: bool = False  # the connection ends instead
    chunked: bool = False
    pieces: Callable[[], AsyncIterator[bytes]] | None = None


@dataclass
class Heard:
    """A request as it reached the origin."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    raw: bytes


@dataclass
class Got:
    """An answer as it reached a reader."""

    status: int
    headers: dict[str, str]
    body: bytes
    interim: list[int] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of the fields, as they were spelt

    def __getitem__(self, name: str) -> str:
        return self.headers.get(name, "")


Play = Callable[[Heard], Told | Awaitable[Told]]


class Origin:
    """An HTTP server that keeps what it heard; `play` says what to answer."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.heard: list[Heard] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._server = await asyncio.start_server(accept, HOST, 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                raw = await reader.readuntil(b"\r\n\r\n")
                first, *lines = raw[:-4].decode("latin-1").split("\r\n")
                headers: dict[str, str] = {}
                for line in lines:
                    name, _, value = line.partition(":")
                    headers[name.lower()] = ", ".join(filter(None, [headers.get(name.lower(), ""), value.strip()]))
                body = await self._body(reader, headers)
                method, target, _ = first.split(" ")
                heard = Heard(method, target, headers, body, raw)
                self.heard.append(heard)
                told = self.play(heard)
                if not isinstance(told, Told):
                    told = await told
                if not await self._answer(writer, heard, told):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @staticmethod
    async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
            return body
        return await reader.readexactly(int(headers.get("content-length", "0")))

    @staticmethod
    async def _answer(writer: asyncio.StreamWriter, heard: Heard, told: Told) -> bool:
        if told.wait:
            await asyncio.sleep(told.wait)
        if told.cut:
            writer.transport.abort()
            return False
        items = list(told.headers.items()) if isinstance(told.headers, Mapping) else list(told.headers)
        writer.write(told.before)
        bodiless = heard.method == "HEAD" or told.status in (204, 304)
        if told.pieces is not None or told.chunked:
            items.append(("Transfer-Encoding", "chunked"))
        elif told.status not in (204, 304) and "content-length" not in {name.lower() for name, _ in items}:
            items.append(("Content-Length", str(len(told.body))))
        head = f"HTTP/1.1 {told.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in items) + "\r\n"
        writer.write(head.encode("latin-1"))
        if told.pieces is not None:
            async for piece in told.pieces():
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        elif not bodiless:
            writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(told.body), told.body) if told.chunked else told.body)
        await writer.drain()
        return True


class Reader:
    """One connection of a reader."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def ask(
        self, path: str = "/", headers: Mapping[str, str] | None = None, *, method: str = "GET", body: bytes = b""
    ) -> Got:
        lines = {"Host": "a.example", **(headers or {})}
        if body and "Transfer-Encoding" not in lines:
            lines["Content-Length"] = str(len(body))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.send(head.encode("latin-1") + b"\r\n" + body)
        return await self.answer(method=method)

    async def answer(self, *, method: str = "GET") -> Got:
        interim: list[int] = []
        while True:
            raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20)
            first, *lines = raw[:-4].decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            headers: dict[str, str] = {}
            for line in lines:
                name, _, value = line.partition(":")
                key = name.lower()
                headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
            if status < 200:
                interim.append(status)
                continue
            break
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            body = await self.reader.read()
        return Got(status, headers, body, interim, {line.partition(":")[0] for line in lines})

    async def rest(self, seconds: float = 5.0) -> bytes:
        """All that comes until the connection ends."""
        return await asyncio.wait_for(self.reader.read(), seconds)

    def close(self) -> None:
        self.writer.close()


@dataclass
class Serving:
    """Everything together."""

    origin: Origin
    parts: Parts
    host: str
    port: int

    async def reader(self) -> Reader:
        return Reader(*await asyncio.open_connection(self.host, self.port, limit=1 << 20))

    async def ask(
        self, path: str = "/", headers: Mapping[str, str] | None = None, *, method: str = "GET", body: bytes = b""
    ) -> Got:
        """One request on a connection of its own."""
        reader = await self.reader()
        try:
            return await reader.ask(path, headers, method=method, body=body)
        finally:
            reader.close()

    async def raw(self, sent: bytes, seconds: float = 5.0) -> bytes:
        """What comes back for these bytes until the connection ends, or nothing more comes."""
        reader = await self.reader()
        await reader.send(sent)
        got = b""
        try:
            async with asyncio.timeout(seconds):
                while piece := await reader.reader.read(65536):
                    got += piece
        except TimeoutError:
            pass
        finally:
            reader.close()
        return got


@asynccontextmanager
async def serving(
    play: Play,
    *,
    strict: bool = True,
    settings: str = "",
    store: Store | None = None,
    tokens: list[str] | None = None,
    origin: bool = True,
) -> AsyncIterator[Serving]:
    """A proxy before an origin; `settings` are put behind what maps it ({origin} is its address)."""
    server = Origin(play)
    await server.start()
    text = settings.replace("{origin}", server.url)
    if origin:
        text = f'[[serve]]\nprefix = "/"\norigin = "{server.url}"\nstrict = {str(strict).lower()}\n' + text
    config: Config = parse(text)
    parts = parts_for(config, store, tokens or [])
    host, port = await parts.start(HOST, 0)
    try:
        yield Serving(server, parts, host, port)
    finally:
        await parts.stop(0.2)
        await server.stop()
        await asyncio.sleep(0.02)  # for connections to be gone


def settings_file(folder: Path, text: str) -> Path:
    """A file of settings."""
    file = folder / "afresh.toml"
    file.write_text(text)
    return file
