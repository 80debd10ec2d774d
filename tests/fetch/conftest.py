"""Servers on loopback that say exactly what a test tells them to, byte by byte."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from afresh.fetch import Guard, Http, Limits
from afresh.types import Fetched, Validators
from certificates import OPENSSL, make_certificates

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Stage:
    """A raw server and a fetcher: `fetch` plays one against the other; `requests` is what the server was asked."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.port = 0
        self.http: Http | None = None

    def fetch(self, answer: "bytes | list[bytes] | Talk", **options: Any) -> Fetched:
        """One fetch of http://127.0.0.1:port/path from a server that answers like this."""
        return self.fetch_all(answer, **options)[0]

    def fetch_all(
        self,
        answer: "bytes | list[bytes] | Talk",
        *,
        urls: tuple[str, ...] = ("http://127.0.0.1:{port}/",),
        known: Validators | None = None,
        server_tls: ssl.SSLContext | None = None,
        silent: bool = False,
        limits: dict[str, Any] | None = None,
        **http: Any,
    ) -> list[Fetched]:
        """One fetch after another; {port} in the URLs is the server's; a silent server does not wait for a request."""

        async def go() -> list[Fetched]:
            server = await asyncio.start_server(self._talking(answer, silent), "127.0.0.1", 0, ssl=server_tls)
            self.port = server.sockets[0].getsockname()[1]
            http.setdefault("guard", Guard(allow_private=True))
            self.http = Http(user_agent="test/1", limits=Limits(**{"seconds": 5.0, **(limits or {})}), **http)
            try:
                return [await self.http.fetch(each.format(port=self.port), known or Validators()) for each in urls]
            finally:
                await self.http.close()
                server.close()

        return asyncio.run(go())

    def _talking(self, answer: "bytes | list[bytes] | Talk", silent: bool) -> Talk:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                if not silent:
                    self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
                if callable(answer):
                    await answer(reader, writer)
                else:
                    said = answer if isinstance(answer, bytes) else answer[min(len(self.requests), len(answer)) - 1]
                    writer.write(said)
                    await writer.drain()
            writer.close()

        return talk


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates, good and bad."""
    if OPENSSL is None:
        pytest.skip("certificates are made with the openssl command, which is not here")
    where = tmp_path_factory.mktemp("certificates")
    make_certificates(where)
    return where
