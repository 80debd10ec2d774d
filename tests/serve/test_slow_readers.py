"""Readers who ask for much and take little of it: they are left, and those who read slowly are not."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing

import pytest
from starlette.responses import Response

from afresh.serve.receive import listener as module
from afresh.serve.receive.application import application
from afresh.serve.receive.listener import Listener

SIZE = 24 << 20  # more than the buffers of the system take


class Reader:
    """A connection whose buffer is small."""

    def __init__(self, port: int) -> None:
        self.line = socket.socket()
        self.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        self.line.connect(("127.0.0.1", port))
        self.line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        """Hang up."""
        self.line.close()

    def take(self, most: int) -> int:
        """How many bytes come, until the end or so many."""
        self.line.settimeout(10)
        count = 0
        while count < most:
            try:
                piece = self.line.recv(1 << 20)
            except ConnectionResetError:
                break
            if not piece:
                break
            count += len(piece)
        return count


def serving(test: Callable[[int], Awaitable[None]]) -> None:
    async def large(request: object) -> Response:
        return Response(bytes(SIZE))

    async def go() -> None:
        listener = Listener(application([("GET", "/", large)]), "127.0.0.1", 0)
        _, port = await listener.start()
        try:
            async with asyncio.timeout(60):
                await test(port)
        finally:
            await listener.stop()

    asyncio.run(go())


def test_who_does_not_read_is_left_and_who_reads_slowly_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.5)

    async def test(port: int) -> None:
        with closing(Reader(port)) as silent, closing(Reader(port)) as slow:
            count = 0
            while count < SIZE:
                count += await asyncio.to_thread(slow.take, SIZE // 20)
                await asyncio.sleep(0.05)
            assert count > SIZE
            assert await asyncio.to_thread(silent.take, 2 * SIZE) < SIZE

    serving(test)


def test_what_waits_for_all_who_do_not_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNSENT_BYTES", 2 * SIZE)

    async def test(port: int) -> None:
        with ExitStack() as stack:
            readers = []
            for _ in range(5):
                readers.append(stack.enter_context(closing(Reader(port))))
                await asyncio.sleep(0.3)
            taken = [await asyncio.to_thread(each.take, SIZE + 1) for each in readers]
        assert [count > SIZE for count in taken] == [False, False, False, True, True]

    serving(test)
