"""The three ways in, with the programs that people use; and who may come in by them."""

import asyncio
import re
import resource
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from afresh.sim.web import Server, dress
from command_line import synthetic_web
from serving import Heard, Serving, Told, serving

FRESH = {"Cache-Control": "max-age=60", "Content-Type": "text/plain"}
MOST_IDLE = 5000  # connections, where the limit of open files allows it
OPEN = '[fetch]\nallow_private = true\n[proxy]\nmirror = ["127.0.0.1"]\nforward = true\nconnect = true\n'


def page(heard: Heard) -> Told:
    return Told(headers=FRESH, body=f"this is {heard.target}".encode())


def with_curl(proxy: str, address: str, *, forward: bool) -> tuple[int, str, str]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    via = ["--proxy", proxy] if forward else []
    done = subprocess.run(
        ["curl", "-sS", "-i", "--noproxy", "", *via, address], capture_output=True, text=True, timeout=20, check=True
    )
    head, _, body = done.stdout.partition("\n\n") if "\r" not in done.stdout else done.stdout.partition("\r\n\r\n")
    found = re.search(r"(?im)^cache-status: (.*?)\r?$", head)
    return int(head.split()[1]), body, found[1] if found else ""


def with_httpx(proxy: str, address: str, *, forward: bool) -> tuple[int, str, str]:
    httpx = pytest.importorskip("httpx")
    with httpx.Client(proxy=proxy if forward else None, trust_env=False) as client:
        got = client.get(address)
        return got.status_code, got.text, got.headers.get("cache-status", "")


def with_requests(proxy: str, address: str, *, forward: bool) -> tuple[int, str, str]:
    requests = pytest.importorskip("requests")
    with requests.Session() as session:
        session.trust_env = False
        got = session.get(address, proxies={"http": proxy} if forward else {}, timeout=20)
        return got.status_code, got.text, got.headers.get("cache-status", "")


Client = Callable[..., tuple[int, str, str]]


async def _by_all_ways(client: Client) -> None:
    async with serving(page, strict=False, settings=OPEN) as proxy:
        here, origin = f"http://{proxy.host}:{proxy.port}", proxy.origin.url
        ways = [(f"{here}/page?x=1", False), (f"{here}/{origin}/page?x=2", False), (f"{origin}/page?x=3", True)]
        for nth, (address, forward) in enumerate(ways, start=1):
            for expected in ("fwd=uri-miss", "hit"):
                status, body, how = await asyncio.to_thread(client, here, address, forward=forward)
                assert (status, body) == (200, f"this is /page?x={nth}"), address
                assert expected in how, (address, how)
        assert len(proxy.origin.heard) == len(ways)


@pytest.mark.parametrize("client", [with_curl, with_httpx, with_requests])
def test_programs_come_in_by_all_three_ways(client: Client) -> None:
    asyncio.run(_by_all_ways(client))


async def _refused() -> None:
    async def first_line(proxy: Serving, sent: bytes) -> bytes:
        return (await proxy.raw(sent + b"\r\nHost: a.example\r\nConnection: close\r\n\r\n")).partition(b"\r\n")[0]

    def asked(target: str) -> bytes:
        return f"GET {target} HTTP/1.1\r\nHost: {target.split('/')[2]}\r\nConnection: close\r\n\r\n".encode()

    async with serving(
        page, origin=False, settings='[[serve]]\nhost = "www.example.com"\norigin = "{origin}"\n'
    ) as proxy:
        port = proxy.origin.port
        for sent, status in (
            (f"GET /http://127.0.0.1:{port}/ HTTP/1.1".encode(), b"403"),  # nothing is mirrored
            (f"CONNECT 127.0.0.1:{port} HTTP/1.1".encode(), b"400"),  # Host is another one
            (b"GET / HTTP/1.1", b"421"),  # a name that somebody has pointed here is nobody's (rebinding)
        ):
            got = await first_line(proxy, sent)
            assert got.startswith((b"HTTP/1.1 " + status, b"HTTP/1.1 405")), (sent, got)
        got = await proxy.raw(asked(f"http://127.0.0.1:{port}/"))
        assert got.startswith(b"HTTP/1.1 403"), got[:60]  # no forward proxy
        assert not proxy.origin.heard
    # The ways are open, but private addresses, other ports and hosts that are not listed are not.
    shut = '[proxy]\nmirror = ["*.example.net"]\nforward = true\nconnect = true\n[crawl]\nnever = ["bad.example"]\n'
    async with serving(page, origin=False, settings=shut) as proxy:
        port = proxy.origin.port
        for sent in (
            asked(f"http://127.0.0.1:{port}/"),
            asked(f"http://[::1]:{port}/"),
            asked(f"http://localhost:{port}/"),
            asked("http://169.254.169.254/latest/meta-data/"),
            asked("http://2130706433/"),
            asked("http://bad.example/"),
            b"GET /http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"GET /http://evil.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"GET /http://example.net.evil.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode(),
            b"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n\r\n",
            b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n",
        ):
            got = await proxy.raw(sent, seconds=0.7)
            assert re.match(rb"HTTP/1.1 (40[03]|50[24]) ", got), (sent, got[:80])
        assert not proxy.origin.heard


def test_ways_are_shut_unless_opened_and_lead_to_no_private_address() -> None:
    asyncio.run(_refused())


async def _tunnelled() -> None:
    async with serving(page, strict=False, settings=OPEN) as proxy:
        where = f"127.0.0.1:{proxy.origin.port}"
        ask = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()
        assert (await proxy.raw(ask, seconds=0.7)).startswith(b"HTTP/1.1 403 ")  # not port 443
        proxy.parts.service.allowed.connect_ports = {proxy.origin.port}
        reader = await proxy.reader()
        await reader.send(ask + b"GET /early HTTP/1.1\r\nHost: o\r\n\r\n")
        assert (await reader.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert (await reader.answer()).body == b"this is /early"
        got = await reader.ask("/later")
        assert (got.body, got["cache-status"]) == (b"this is /later", "")
        reader.close()
        assert len(proxy.parts.service.cache) == 0


def test_connect_passes_bytes_through_to_its_port_alone() -> None:
    asyncio.run(_tunnelled())


async def _acted() -> None:
    token = "0123456789abcdef-token"
    async with serving(page, tokens=[token]) as proxy:
        await proxy.ask("/p")
        right = {"Authorization": f"Bearer {token}"}
        foreign = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
        for headers in foreign:
            assert (await proxy.ask("/p", {**right, **headers}, method="PURGE")).status == 403, headers
        assert "hit" in (await proxy.ask("/p"))["cache-status"]
        assert (await proxy.ask("/p", {**right, "Origin": "http://a.example"}, method="PURGE")).status == 200


def test_pages_of_other_sites_cannot_purge_even_with_a_token() -> None:
    asyncio.run(_acted())


def browsed(browser: str, address: str, *more: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}"]
        flags += ["--virtual-time-budget=5000", *more, "--dump-dom", address]
        done = subprocess.run([browser, *flags], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout


async def _browsed(browser: str, web: Server) -> None:
    page = web.url(0)
    origin, _, path = page.removeprefix("http://").partition("/")
    mapped = f'[[serve]]\nprefix = "/"\norigin = "http://{origin}"\n'
    settings = mapped + OPEN.replace('"127.0.0.1"', '"*.localhost"')
    async with serving(lambda heard: Told(404), origin=False, settings=settings) as proxy:
        here = f"http://{proxy.host}:{proxy.port}"
        for address, more in (
            (f"{here}/{path}", ()),
            (f"{here}/{page}", ()),
            (page, (f"--proxy-server={here}", "--proxy-bypass-list=<-loopback>")),
        ):
            said = await asyncio.to_thread(browsed, browser, address, *more)
            assert f'data-shown="{dress.SHOWN}"' in said, (address, said[:300])
        # Every part was asked for once: all three ways lead to the same copies.
        (counts,) = [client.counts for client in web.ledger.clients.values()]
        kept = {entry.url.rpartition("/")[2] for entry in proxy.parts.service.cache}
        assert {"dress.css", "dress.png", "dress.js", path.rpartition("/")[2]} <= kept
        assert counts.requests == counts.full == 1
        assert counts.other_requests == len(kept) - 1


def test_a_browser_shows_pages_of_the_synthetic_web_with_their_pictures_and_styles() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no headless Chromium is installed")
    with synthetic_web(pages=3, hosts=1, dressed=True, change_factor=0.0) as web:
        asyncio.run(_browsed(browser, web))


def files_allowed() -> int:
    """How many files this process may have open, after asking for as many as there can be."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most if most > 0 else MOST_IDLE * 3


async def _unread() -> None:
    # Both ends of each connection are ours: two files.
    count = min(MOST_IDLE, (files_allowed() - 200) // 2)
    assert count > 100
    async with serving(page, settings='[proxy]\nidle = "30s"\n') as proxy:
        idle = []
        for _ in range(count):
            made = socket.create_connection((proxy.host, proxy.port))
            idle.append(made)
            if len(idle) % 50 == 0:
                await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        for _ in range(200):
            if len(proxy.parts.server.readers()) == count:
                break
            await asyncio.sleep(0.02)
        assert len(proxy.parts.server.readers()) == count
        began = loop.time()
        for nth in range(30):
            assert (await proxy.ask(f"/{nth % 3}")).status == 200
        assert loop.time() - began < 5
        idle[-1].sendall(b"GET /0 HTTP/1.1\r\nHost: a\r\n\r\n")  # one that waited is answered as well
        idle[-1].setblocking(False)
        assert (await loop.sock_recv(idle[-1], 65536)).startswith(b"HTTP/1.1 200 ")
        for made in idle:
            made.close()


def test_idle_connections_hold_up_nobody() -> None:
    asyncio.run(_unread())


def test_settings_say_what_is_wrong_with_them(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("0123456789abcdef-token\n")
    file.chmod(0o644)
    from afresh.cli.serve import tokens
    from afresh.errors import ConfigError

    with pytest.raises(ConfigError, match="Others can read"):
        tokens(str(file))
    file.chmod(0o600)
    assert tokens(str(file)) == ["0123456789abcdef-token"]
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="too short"):
        tokens(str(file))
