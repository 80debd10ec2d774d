"""What receives signals, on loopback, and somebody who sends to it over a plain socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from afresh.serve.receive import tokens
from afresh.serve.receive.application import Handler, application
from afresh.serve.receive.hook import Hooks
from afresh.serve.receive.inlet import Inlet
from afresh.serve.receive.listener import Listener
from afresh.store import Memory

NOW = 1_795_000_000.0


@dataclass
class Answered:
    """An answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiving:
    """A receiver and its store."""

    port: int
    store: Memory
    token: str
    file: Path
    woken: list[float] = field(default_factory=list)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        *headers: str,
        token: str | None = None,
    ) -> Answered:
        token = self.token if token is None else token
        sent = body.encode() if isinstance(body, str) else body
        lines = [f"{method} {path} HTTP/1.1", "Host: here", *headers]
        lines += [f"Authorization: Bearer {token}"] if token else []
        lines += [f"Content-Length: {len(sent)}"] if sent is not None else []
        return await raw(self.port, "\r\n".join(lines).encode() + b"\r\n\r\n" + (sent or b""))

    def heard(self) -> list[list[Any]]:
        """All signals in the inbox."""
        return [item for entry in self.store.inbox(limit=10_000) for item in json.loads(entry.body)]


async def raw(port: int, sent: bytes) -> Answered:
    """Send bytes, and read one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Answered(int(head[0].split()[1]), headers, body)
    finally:
        writer.close()


@asynccontextmanager
async def receiving(
    folder: Path,
    *,
    store: Memory | None = None,
    rate: float = 1e6,
    max_body: int = 1 << 20,
    never: Sequence[str] = (),
    more: Sequence[tuple[str, str, Handler]] = (),
    wait: float = 0.0,
) -> AsyncIterator[Receiving]:
    """Receive signals."""
    store = store or Memory()
    file = folder / "tokens"
    made = Receiving(0, store, tokens.new(file, "cms", "signal"), file)
    inlet = Inlet(store.post, lambda: made.woken.append(0.0))
    hooks = Hooks(
        tokens.Tokens(file),
        inlet,
        max_body=max_body,
        rate=rate,
        never=never,
        keeps=lambda url: "strange" not in url,
        clock=lambda: NOW,
    )
    listener = Listener(application([("POST", "/signal", hooks.post), *more]), "127.0.0.1", 0)
    _, made.port = await listener.start()
    try:
        yield made
    finally:
        await listener.stop()
        await inlet.close()
