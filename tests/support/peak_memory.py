"""How much memory a fetch takes: a program of its own fetches, so that nothing but the fetcher is measured."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pytest

Talk = Callable[[str, asyncio.StreamWriter], Awaitable[None]]  # is told the path

LIMIT = 10_000_000  # of a body

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")

_PROGRAM = """
    import asyncio, sys
    from afresh.fetch import Http, Limits
    from afresh.types import Validators

    def peak():
        # Of this program alone; ru_maxrss of a child begins with its parent's.
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    async def main(port, times, *paths):
        http = Http(user_agent="test/1", limits=Limits(body=LIMIT, seconds=30), allow_private=True)
        for path in ["small"] + list(paths) * (int(times) > 1):
            await http.fetch(f"http://127.0.0.1:{port}/{path}", Validators())
        before = peak()
        for path in paths:
            for _ in range(int(times)):
                got = await http.fetch(f"http://127.0.0.1:{port}/{path}", Validators())
            print(got.reason or "-", len(got.body), len(got.hops), peak() - before)
            got = None
        await http.close()

    asyncio.run(main(*sys.argv[1:]))
"""


@dataclass(frozen=True)
class Measured:
    """What came of a fetch, and how far the peak of the program's memory had risen by then."""

    reason: str
    size: int
    hops: int
    rise: int


def measured(answers: Mapping[str, bytes | Talk], *, times: int = 1) -> dict[str, Measured]:
    """Fetch each of these in turn, within `LIMIT`; several times each if told to, after one that does not count."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().strip("/")
            small = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            answer = answers.get(path.partition("/")[0], small)
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(path, writer)
        writer.close()

    async def go() -> list[str]:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        program = textwrap.dedent(_PROGRAM).replace("LIMIT", str(LIMIT))
        command = [sys.executable, "-c", program, str(port), str(times), *answers]
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        said, _ = await child.communicate()
        server.close()
        return said.decode().splitlines()

    lines = [line.split(" ") for line in asyncio.run(go())]
    return {
        path: Measured(reason.strip("-"), int(size), int(hops), int(rise))
        for path, (reason, size, hops, rise) in zip(answers, lines, strict=True)
    }
