import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from afresh.errors import ConfigError
from afresh.sim.web import GONE, Server, Site, SiteOptions, read_mark
from afresh.sim.web.ledger import NOTHING
from afresh.sim.web.validators import http_date, read_http_date

Play = Callable[..., None]


def test_every_page_is_served_whole_under_its_own_host_name(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        for page, url in enumerate(server.urls()):
            async with session.get(url) as answer:
                mark = read_mark(await answer.read())
            assert answer.status == 200
            assert mark is not None
            assert (mark.page, mark.version, mark.whole) == (page, 0, True)
        counts = server.ledger.client("tester").counts
        assert (counts.requests, counts.full, counts.broken) == (60, 60, 0)
        assert server.ledger.fresh_now("tester", 0.0) == pytest.approx(1.0)

    play(scene)


async def get(session: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, bytes, Mapping[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with session.get(url, headers=named) as answer:
        return answer.status, await answer.read(), answer.headers


def test_an_etag_is_confirmed_until_the_page_changes(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        url, change = server.url(3), server.site.next_change(3, 0.0)
        _, _, headers = await get(session, url)
        tag = headers["ETag"]
        clock.time = change * 0.999
        for sent in (tag, f'"x", {tag}', "*", f"W/{tag.removeprefix('W/')}"):
            status, body, again = await get(session, url, If_None_Match=sent)
            assert (status, body) == (304, b"")
            assert again["ETag"] == tag
        # If-None-Match decides alone: a date that would say "unchanged" does not matter beside it.
        late = "Fri, 01 Jan 2100 00:00:00 GMT"
        assert (await get(session, url, If_None_Match='"x"', If_Modified_Since=late))[0] == 200
        clock.time = change
        assert server.ledger.fresh_now("tester", change) == 0.0
        status, body, headers = await get(session, url, If_None_Match=tag)
        mark = read_mark(body)
        assert mark is not None
        assert (status, mark.version) == (200, 1)
        assert headers["ETag"] != tag
        counts = server.ledger.client("tester").counts
        assert (counts.requests, counts.full, counts.not_modified) == (7, 3, 4)

    play(scene, etag_share=1.0)


def test_last_modified_is_confirmed_until_the_page_changes(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        url, change = server.url(3), server.site.next_change(3, 0.0)
        _, _, headers = await get(session, url)
        assert "ETag" not in headers
        date = headers["Last-Modified"]
        assert abs(read_http_date(date) - (1_700_000_000 + server.site.last_change(3, 0.0))) <= 1  # type: ignore[operator]
        clock.time = change - 0.001
        assert (await get(session, url, If_Modified_Since=date))[0] == 304
        assert (await get(session, url, If_Modified_Since="some day"))[0] == 200
        clock.time = change
        status, _, headers = await get(session, url, If_Modified_Since=date)
        assert status == 200
        assert "Last-Modified" not in headers  # it might change again within this second
        clock.time = change + 2.0
        assert "Last-Modified" in (await get(session, url, If_Modified_Since=date))[2]

    play(scene, etag_share=0.0, last_modified_share=1.0)


def test_dates_never_confirm_a_stale_copy_however_quickly_pages_change(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        confirmed = 0
        page = int(server.site.change_rate.argmin())
        date, held = "", -1
        for step in range(400):
            clock.time = step * 0.21
            status, body, headers = await get(
                session, server.url(page), **({"If_Modified_Since": date} if date else {})
            )
            if status == 304:
                confirmed += 1
                assert server.site.version(page, clock.time) == held
            else:
                mark = read_mark(body)
                assert mark is not None
                date, held = headers.get("Last-Modified", ""), mark.version
        assert confirmed > 50

    play(scene, etag_share=0.0, last_modified_share=1.0, day=0.05)


def test_pages_without_validators_never_answer_not_modified(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        for page in range(10):
            status, _, headers = await get(
                session, server.url(page), If_None_Match="*", If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT"
            )
            assert status == 200
            assert "ETag" not in headers
            assert "Last-Modified" not in headers

    play(scene, etag_share=0.0, last_modified_share=0.0)


def test_the_set_shares_of_pages_send_validators() -> None:
    site = Site(SiteOptions(pages=5000, hosts=50, etag_share=0.7, last_modified_share=0.2, noise_share=0.4))
    for flags, share in ((site.etag, 0.7), (site.last_modified, 0.2), (site.noisy, 0.4)):
        assert flags.mean() == pytest.approx(share, abs=4 * (0.25 / 5000) ** 0.5)


def test_lying_validators_lie_and_the_ledger_is_not_deceived(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        tags = {page: (await get(session, server.url(page)))[2]["ETag"] for page in range(60)}
        late = clock.time = max(server.site.next_change(page, 0.0) for page in range(60)) + 1.0
        stuck = 0
        for page, tag in tags.items():
            status, _, headers = await get(session, server.url(page), If_None_Match=tag)
            fresh = server.ledger.client("tester").fresh(late)[page]
            if status == 304:  # it has changed, but the tag is stuck
                stuck += 1
                assert not fresh
            else:
                assert headers["ETag"] != tag
                assert fresh
        assert 15 < stuck < 45

    play(scene, etag_share=1.0, etag_wrong_share=1.0)


def test_lying_dates_are_stuck_or_always_now(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        early = {page: (await get(session, server.url(page)))[2]["Last-Modified"] for page in range(60)}
        late = clock.time = max(server.site.next_change(page, 0.0) for page in range(60)) + 1.0
        dates = {page: (await get(session, server.url(page)))[2]["Last-Modified"] for page in range(60)}
        now = http_date(int(1_700_000_000 + late))
        assert all(dates[page] in (early[page], now) for page in range(60))
        assert 15 < sum(dates[page] == now for page in range(60)) < 45

    play(scene, last_modified_share=1.0, last_modified_wrong_share=1.0)


def test_head_tells_the_headers_and_hands_nothing_out(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        _, body, full = await get(session, server.url(4))
        async with session.head(server.url(5)) as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        async with session.head(server.url(4)) as answer:
            assert answer.headers["ETag"] == full["ETag"]
            assert int(answer.headers["Content-Length"]) == len(body)
        client = server.ledger.client("tester")
        assert (client.counts.heads, client.counts.full) == (2, 1)
        assert (client.held >= 0).sum() == 1

    play(scene, etag_share=1.0, noise_share=0.0)


def test_what_is_not_there_is_said_so(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        assert (await get(session, server.url(0) + "nowhere"))[0] == 404
        assert (await get(session, f"http://127.0.0.1:{server.port}/", Host="elsewhere.localhost"))[0] == 421
        async with session.post(server.url(0)) as answer:
            assert answer.status == 405
        assert server.ledger.client("tester").counts.other_requests == 2

    play(scene)


def test_deleted_pages_are_gone_and_whoever_asked_knows(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        page = int(server.site.gone_at.argmin())
        clock.time = float(server.site.gone_at[page])
        assert (await get(session, server.url(page)))[0] == 410
        client = server.ledger.client("tester")
        assert (client.counts.errors, int(client.held[page])) == (1, GONE)
        host = int(server.site.host_of[page])
        _, listed, _ = await get(session, f"http://{server.site.host(page)}:{server.port}/sitemap.xml")
        assert server.url(page).encode() not in listed
        assert listed.count(b"<loc>") < len(server.site.pages_of(host))

    play(scene, gone_share=0.5)


def test_clients_are_told_apart_by_the_first_word_of_their_name(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        for agent, pages in (("nutch/1 (x)", 3), ("uniform", 2), ("", 1)):
            for page in range(pages):
                await get(session, server.url(page), User_Agent=agent)
        counts = {name: client.counts.full for name, client in server.ledger.clients.items()}
        assert counts == {"nutch/1": 3, "uniform": 2, "(unnamed)": 1}

    play(scene)


def test_a_slow_host_takes_its_time(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await get(session, server.url(0))
        assert loop.time() - started > 0.02

    play(scene, latency=0.2)


def test_a_client_that_leaves_early_was_not_handed_anything(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await get(session, server.url(0))
        client = server.ledger.client("tester")
        for _ in range(100):
            if client.counts.broken:
                break
            await asyncio.sleep(0.02)
        assert (client.counts.requests, client.counts.broken, client.counts.full) == (1, 1, 0)
        assert (client.held == NOTHING).all()

    play(scene, latency=3.0)


def test_played_answers_replace_pages_documents_and_whole_folders(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async def odd(request: web.BaseRequest) -> None:
            assert request.transport is not None
            request.transport.write(b"HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nhi")
            request.transport.close()

        async def trap(request: web.BaseRequest) -> web.Response:
            return web.Response(text=f'<a href="{request.raw_path}/next">next month</a>')

        server.play(server.url(2), odd)
        server.play(f"http://trap.localhost:{server.port}/calendar/*", trap)
        status, body, _ = await get(session, server.url(2))
        assert (status, body) == (299, b"hi")
        for path in ("2026", "2026/next/next"):
            _, body, _ = await get(session, f"http://trap.localhost:{server.port}/calendar/{path}")
            assert f"{path}/next".encode() in body
        assert (await get(session, server.url(1)))[0] == 200
        assert server.ledger.client("tester").counts.other_requests == 3

    play(scene)


def test_a_taken_port_is_a_clear_error(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        with pytest.raises(ConfigError, match=f"Port {server.port}") as caught:
            await Server(server.site, clock=clock, port=server.port).start()
        assert "another port" in caught.value.hint

    play(scene)


def test_a_server_can_start_again_on_its_port(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        port = server.port
        await server.stop()
        await server.start()
        assert server.port == port
        assert (await get(session, server.url(0)))[0] == 200

    play(scene)
