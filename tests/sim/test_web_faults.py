import asyncio
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from afresh.sim.web import Server, SiteOptions, read_mark
from afresh.sim.web.answers import is_sent
from afresh.sim.web.faults import Faults
from afresh.sim.web.ledger import NOTHING

Play = Callable[..., None]


async def raw(server: Server, page: int) -> tuple[bytes, str]:
    """All bytes that arrive over a bare socket, and how the connection ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    host = f"{server.site.host(page)}:{server.port}"
    writer.write(f"GET {server.site.path(page)} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: raw\r\n\r\n".encode())
    got, end = b"", "closed"
    try:
        while piece := await asyncio.wait_for(reader.read(65536), 0.5):
            got += piece
    except ConnectionResetError:
        end = "reset"
    except TimeoutError:
        end = "open"
    writer.close()
    return got, end


def test_faults_come_in_the_set_shares_and_repeat_themselves() -> None:
    options = SiteOptions(error_share=0.1, busy_share=0.05, reset_share=0.2, truncated_share=0.15, drip_share=0.3)
    faults, again = Faults(options), Faults(options)
    drawn = [faults.choose(page, number) for page in range(200) for number in range(50)]
    assert drawn == [again.choose(page, number) for page in range(200) for number in range(50)]
    shares = Counter(drawn)
    expected = {"error": 0.1, "busy": 0.05, "reset": 0.2, "truncated": 0.15, "drip": 0.3, "": 0.2}
    assert set(shares) == set(expected)
    for name, share in expected.items():
        assert shares[name] / len(drawn) == pytest.approx(share, abs=4 * (share / len(drawn)) ** 0.5)


def test_without_faults_nothing_fails() -> None:
    faults = Faults(SiteOptions())
    assert {faults.choose(page, number) for page in range(100) for number in range(10)} == {""}


def test_server_errors_hand_nothing_out(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with session.get(server.url(1)) as answer:
            assert answer.status == 500
        client = server.ledger.client("tester")
        assert (client.counts.errors, int(client.held[1])) == (1, NOTHING)

    play(scene, error_share=1.0)


def test_a_busy_host_says_when_to_come_back(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with session.get(server.url(1)) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "7")

    play(scene, busy_share=1.0, retry_after=7.0)


def test_a_reset_is_a_real_reset(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        assert await raw(server, 2) == (b"", "reset")
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(server.url(2))
        counts = server.ledger.client("raw").counts
        assert (counts.requests, counts.broken) == (1, 1)

    play(scene, reset_share=1.0)


def test_a_truncated_answer_is_shorter_than_it_says(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        got, end = await raw(server, 2)
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(
            next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split()[1]
        )
        assert end == "closed"
        assert 0 < len(body) < length
        mark = read_mark(body)
        assert mark is None or not mark.whole
        with pytest.raises(aiohttp.ClientPayloadError):
            async with session.get(server.url(2)) as answer:
                await answer.read()
        for name in ("raw", "tester"):
            client = server.ledger.client(name)
            assert (client.counts.broken, client.counts.full, int(client.held[2])) == (1, 0, NOTHING)

    play(scene, truncated_share=1.0)


def test_a_stalled_answer_stays_open_without_a_byte(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        got, end = await raw(server, 2)
        assert end == "open"
        assert len(got) > 500
        for _ in range(100):  # the client has gone: the server notices and lets go
            if server.ledger.client("raw").counts.broken:
                break
            await asyncio.sleep(0.02)
        assert server.ledger.client("raw").counts.broken == 1
        assert (server.ledger.client("raw").held == NOTHING).all()

    play(scene, stall_share=1.0, stall_seconds=30.0)


def test_a_dripping_answer_is_slow_but_whole(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        loop = asyncio.get_running_loop()
        started, pieces = loop.time(), 0
        async with session.get(server.url(2)) as answer:
            body = b""
            async for piece in answer.content.iter_any():
                body += piece
                pieces += 1
        mark = read_mark(body)
        assert mark is not None
        assert mark.whole
        assert pieces > 20
        assert loop.time() - started > 0.3
        await asyncio.sleep(0.05)
        client = server.ledger.client("tester")
        assert (client.counts.full, int(client.held[2])) == (1, 0)

    play(scene, drip_share=1.0, drip_seconds=0.4)


def test_whoever_hangs_up_on_a_dripping_answer_holds_nothing(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), session.get(server.url(2)) as answer:
                await answer.read()
        for _ in range(100):
            if server.ledger.client("tester").counts.broken:
                break
            await asyncio.sleep(0.02)
        client = server.ledger.client("tester")
        assert (client.counts.broken, client.counts.full, int(client.held[2])) == (1, 0, NOTHING)

    play(scene, drip_share=1.0, drip_seconds=10.0)


def test_stopping_does_not_wait_for_stalled_answers(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        task = asyncio.create_task(raw(server, 2))
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await server.stop()
        assert loop.time() - started < 3.0
        await task

    play(scene, stall_share=1.0, stall_seconds=600.0)


@pytest.mark.parametrize("patient", [True, False])
def test_an_answer_counts_as_sent_when_its_last_byte_has_left(patient: bool) -> None:
    async def main() -> None:
        served: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        server = await asyncio.start_server(lambda _, writer: served.put_nowait(writer), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1], limit=1024)
        answering = await served.get()
        answering.write(bytes(30_000_000))  # more than the kernel takes on its own
        sent = asyncio.create_task(is_sent(SimpleNamespace(transport=answering.transport)))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        assert not sent.done()
        if patient:
            await reader.readexactly(30_000_000)
        else:
            writer.transport.abort()
        assert await asyncio.wait_for(sent, 10.0) == patient
        for end in (writer, answering):
            end.close()
        server.close()

    asyncio.run(main())


def test_every_request_ends_in_exactly_one_account(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async def ask(number: int) -> None:
            clock.time += 1000.0
            try:
                async with asyncio.timeout(4.0):
                    call = session.head if number % 7 == 0 else session.get
                    async with call(
                        server.url(number % 60), headers={"If-None-Match": "*"} if number % 3 else {}
                    ) as got:
                        await got.read()
            except (aiohttp.ClientError, TimeoutError):
                return

        await asyncio.gather(*(ask(number) for number in range(400)))
        counts = server.ledger.client("tester").counts
        for _ in range(500):
            ended = counts.full + counts.not_modified + counts.errors + counts.broken + counts.heads
            if ended == counts.requests:
                break
            await asyncio.sleep(0.02)
        assert ended == counts.requests > 200
        assert min(counts.full, counts.not_modified, counts.errors, counts.broken, counts.heads) > 5

    shares = {f"{name}_share": 0.06 for name in ("error", "busy", "reset", "truncated", "stall", "drip")}
    play(scene, gone_share=0.1, gone_within=1.0, stall_seconds=20.0, drip_seconds=0.2, **shares)
