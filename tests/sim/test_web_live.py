import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from afresh.errors import ConfigError
from afresh.sim.web import LoopbackResolver, Server, SiteOptions, serve_forever
from afresh.sim.web.live import status_lines

Play = Callable[..., None]
SMALL = SiteOptions(pages=40, hosts=4, day=1.0)


class Lines(list[str]):
    """Status lines, and an event that says when the first one came."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    def append(self, line: str) -> None:
        super().append(line)
        self.begun.set()


def test_the_control_area_tells_options_counts_and_addresses(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async def area(name: str) -> Any:
            async with session.get(f"http://127.0.0.1:{server.port}/_site/{name}") as answer:
                assert answer.content_type == "application/json"
                return json.loads(await answer.text())

        await session.get(server.url(3))
        assert (await area("options"))["pages"] == 60
        assert await area("urls") == server.urls()
        assert (await area("clients"))["tester"]["full"] == 1
        assert [row["host"] for row in await area("hosts")] == server.site.hosts
        assert (await area("score"))["window"] == [0.0, None]
        assert set(await area("")) == {"options", "clients", "score", "hosts"}
        async with session.get(f"http://localhost:{server.port}/") as answer:
            assert server.site.hosts[0] in await answer.text()
        async with session.get(f"http://localhost:{server.port}/_site/secret") as answer:
            assert answer.status == 404
        async with session.post(f"http://localhost:{server.port}/_site/clients") as answer:
            assert answer.status == 405

    play(scene)


def test_the_control_area_does_not_answer_to_foreign_names(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        for name in ("evil.example", "127.0.0.1.evil.example", ""):
            async with session.get(f"http://127.0.0.1:{server.port}/_site/clients", headers={"Host": name}) as answer:
                assert answer.status == 421

    play(scene)


def test_names_that_clients_choose_cannot_harm_the_terminal_or_the_json(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        name = "\x9b31m<script>\u202e"
        await session.get(server.url(0), headers={"User-Agent": name})
        clock.time = 5.0
        lines = "\n".join(status_lines(server.ledger, clock.time))
        assert "<script>" in lines
        assert "\x9b" not in lines
        assert "\u202e" not in lines
        async with session.get(f"http://localhost:{server.port}/_site/clients") as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert (await answer.text()).isascii()

    play(scene)


def test_a_site_serves_until_it_is_stopped_and_reports() -> None:
    async def main() -> None:
        lines, stop = Lines(), asyncio.Event()
        task = asyncio.create_task(serve_forever(SMALL, port=0, status=lines.append, every=0.05, stop=stop))
        await lines.begun.wait()
        home = lines[0].split()[-1]
        connector = aiohttp.TCPConnector(resolver=LoopbackResolver())
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "visitor"}) as session:
            async with session.get(home + "_site/urls") as answer:
                urls = await answer.json()
            for url in urls:
                async with session.get(url) as answer:
                    assert answer.status == 200
        await asyncio.sleep(0.2)
        stop.set()
        report = await asyncio.wait_for(task, 5.0)
        assert report["visitor"]["full"] == len(urls) == 40
        assert 0.3 < report["visitor"]["readers_fresh"] <= 1.0
        assert any("visitor" in line and "served fresh" in line for line in lines)

    asyncio.run(main())


def test_a_taken_port_ends_it_with_a_clear_error() -> None:
    async def main() -> None:
        lines, stop = Lines(), asyncio.Event()
        first = asyncio.create_task(serve_forever(SMALL, port=0, status=lines.append, stop=stop))
        await lines.begun.wait()
        port = int(lines[0].rstrip("/").rsplit(":", 1)[1])
        with pytest.raises(ConfigError, match=str(port)):
            await serve_forever(SMALL, port=port)
        stop.set()
        await first

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_ends_in_order_on_a_signal(number: signal.Signals) -> None:
    code = (
        "from afresh.sim.web import SiteOptions, run\n"
        "print(run(SiteOptions(pages=5, hosts=1), port=0, status=lambda line: print(line, flush=True)))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        assert process.stdout is not None
        assert "5 pages" in process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert out.rstrip().endswith("{}")
