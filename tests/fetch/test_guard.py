"""Addresses and ports that must not be reached, in every disguise: rows S1, S2, S3, S5 and S6 of the hostile world."""

import asyncio
import ipaddress
import socket
from ipaddress import ip_network
from typing import Any

import ada_url
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.fetch import Guard, Http, Limits
from afresh.fetch.guard import Refused, public
from afresh.fetch.target import _PLAIN, BadTarget, target
from afresh.types import Fetched, Validators

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"
LOOPBACK_ONLY = ip_network("127.0.0.1/32")


class Names(AbstractResolver):
    """Resolves every name to the next of these lists of addresses; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=each,
                port=port,
                family=socket.AF_INET6 if ":" in each else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for each in addresses
        ]

    async def close(self) -> None:
        pass


def fetch(url: str, **http: Any) -> Fetched:
    async def go() -> Fetched:
        fetcher = Http(user_agent="test/1", limits=Limits(seconds=3), **http)
        try:
            return await fetcher.fetch(url, Validators())
        finally:
            await fetcher.close()

    return asyncio.run(go())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0x7f000001",
        "017700000001",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "0.0.0.0",
        "0",
        "[::]",
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "127\u30020\u30020\u30021",
        "%31%32%37.0.0.1",
        "localhost",
        "LOCALHOST.",
        "news.localhost",
        "127.255.255.254",
    ],
)
def test_s1_loopback_is_refused_in_every_spelling(stage: Any, host: str) -> None:
    url = f"http://{host}:{{port}}/"
    got = stage.fetch(PAGE, urls=(url,), guard=Guard())
    assert (got.reason, got.status, got.body) == ("refused_address", 0, b"")
    assert not stage.requests


S2 = [
    *("169.254.169.254", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"),
    *("100.127.255.255", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "0.1.2.3", "192.0.0.8"),
    *("192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "127.8.8.8"),
    *("fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "::", "::1", "::ffff:10.0.0.1", "::10.0.0.1"),
    *("64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:a00:1::", "2002:7f00:1::1", "2001::1"),
    *("2001:db8::1", "3fff::1", "100::1", "2001:20::1", "::ffff:0:10.0.0.1", "5f00::1"),
]


@pytest.mark.parametrize("address", S2)
def test_s2_addresses_that_are_not_public_are_refused(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    for got in (fetch(f"http://{literal}/"), fetch("http://name.example/", resolver=Names([address]))):
        assert got.reason == "refused_address"
        assert address not in repr(got).replace(got.url, "")  # nothing tells what a name resolved to


def test_s2_the_message_does_not_tell_the_address() -> None:
    with pytest.raises(Refused) as refused:
        Guard().check_address("10.1.2.3")
    assert "10.1.2.3" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"],
)
def test_s2_public_addresses_are_not_refused(address: str) -> None:
    Guard().check_address(address)


@settings(deadline=None)
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_s2_nothing_is_called_public_that_the_registry_calls_private(address: Any) -> None:
    if isinstance(address, ipaddress.IPv6Address) and address in ip_network("64:ff9b::/96"):
        return
    inner = getattr(address, "ipv4_mapped", None) or address
    if public(address):
        assert inner.is_global
        assert not inner.is_multicast


def test_s2_text_that_is_no_address_is_refused() -> None:
    for text in ("", "localhost", "10.0.0", "::1%", "\uff11.1.1.1"):
        with pytest.raises(Refused):
            Guard().check_address(text)


def test_s3_a_name_with_public_and_private_addresses_is_refused(stage: Any) -> None:
    for addresses in (["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "::1"]):
        got = stage.fetch(
            PAGE,
            urls=("http://both.example:{port}/",),
            guard=Guard(networks=[LOOPBACK_ONLY]),
            resolver=Names(addresses),
        )
        assert got.reason == "refused_address"
        assert not stage.requests


def test_s3_a_name_that_turns_private_is_refused_when_it_has_turned(stage: Any) -> None:
    """127.0.0.1 stands for the public address, 127.0.0.2 for the private one; the server listens on both."""
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    closing = PAGE.replace(b"Content", b"Connection: close\r\nContent", 1)

    async def go() -> list[Fetched]:
        asked = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(closing)
            writer.close()

        server = await asyncio.start_server(talk, "0.0.0.0", 0)
        port = server.sockets[0].getsockname()[1]
        http = Http(user_agent="test/1", guard=Guard(networks=[LOOPBACK_ONLY]), resolver=names)
        got = [await http.fetch(f"http://turns.example:{port}/", Validators())]
        assert http._wire is not None
        http._wire.dialer.names.forget()
        got.append(await http.fetch(f"http://turns.example:{port}/", Validators()))
        await http.close()
        server.close()
        assert len(asked) == 1
        return got

    first, second = asyncio.run(go())
    assert (first.body, second.reason) == (b"secret", "refused_address")
    assert names.asked == ["turns.example"] * 2


def test_s3_a_connection_that_is_used_again_stays_with_the_address_that_was_seen(stage: Any) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"])

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(PAGE)
        while True:
            stage.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(PAGE)

    got = stage.fetch_all(
        keep,
        urls=("http://turns.example:{port}/",) * 3,
        guard=Guard(networks=[LOOPBACK_ONLY]),
        resolver=names,
    )
    assert [each.body for each in got] == [b"secret"] * 3
    assert len(stage.requests) == 3
    assert names.asked == ["turns.example"]  # one connection for all three


class Late(Guard):
    """Lets every name pass and refuses at the last moment, as if an address had slipped in between."""

    def __init__(self) -> None:
        super().__init__(allow_private=True)
        self.asked: list[Any] = []

    def socket(self, info: Any) -> socket.socket:
        self.asked.append(info[4][:2])
        raise Refused("refused_address", "no")


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]])
def test_s3_the_guard_makes_every_socket_itself(stage: Any, addresses: list[str]) -> None:
    for scheme in ("http", "https"):
        guard = Late()
        got = stage.fetch(PAGE, urls=(f"{scheme}://a.example:{{port}}/",), guard=guard, resolver=Names(addresses))
        assert got.reason == "refused_address"
        assert guard.asked == [(each, stage.port) for each in addresses]
        assert not stage.requests


def test_s3_the_check_is_repeated_at_every_hop(stage: Any) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://inner.example:%d/\r\n\r\n" % stage.port
        )

    got = stage.fetch(
        answer,
        urls=("http://outer.example:{port}/",),
        guard=Guard(networks=[LOOPBACK_ONLY]),
        resolver=Names(["127.0.0.1"], ["127.0.0.2"]),
    )
    assert got.reason == "refused_address"
    assert [hop.split("/")[2].split(":")[0] for hop in got.hops] == ["inner.example"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http:\\\\example.com\\a", "http://example.com/a"),
        ("http://exa\tmple.com/\na", "http://example.com/a"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://p\u0430ypal.example/", "http://xn--pypal-4ve.example/"),  # one letter is Cyrillic
        ("http://example.com:080/", "http://example.com/"),
        ("https://example.com:443/a?b#c", "https://example.com/a?b"),
        ("http://example.com/%7Ea/./b/../c d|e", "http://example.com/%7Ea/c%20d|e"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_s5_urls_are_read_as_browsers_read_them(written: str, read: str) -> None:
    assert str(target(written)) == read


@pytest.mark.parametrize(
    "written", ["http://user:pass@example.com/", "http://a@b@c/", "http://@@/", "http://exa%00mple.com/", "http://a b/"]
)
def test_s5_what_hides_its_host_is_refused(written: str) -> None:
    with pytest.raises(BadTarget):
        target(written)


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(["http://", "http://a", "https://[", "//", "http://1", ""]))
def test_s5_fetcher_and_guard_go_by_one_parse(rest: str, start: str) -> None:
    try:
        read = target(start + rest, "http://example.com/")
    except BadTarget:
        return
    assert read.scheme in ("http", "https")
    assert "@" not in read.authority
    assert read.url.startswith(f"{read.scheme}://{read.authority}{read.path}")
    assert read.host == ada_url.URL(str(read)).hostname.strip("[]")
    assert str(target(str(read))) == str(read)


HOSTS = st.lists(
    st.sampled_from(["a", "b-c", "xn--", "xn--a", "-", "0", "07", "0x7f", "256", "127", "1", "com", "A", ""])
)
PATHS = st.lists(
    st.sampled_from(["", "a", ".", "..", "%2e", "%2E.", ".a", "a.b", "%", "%7E", "'", "|", "a b", "?", "#", "\\"])
)


@settings(deadline=None, max_examples=500)
@given(HOSTS.map(".".join), st.sampled_from(["", ":80", ":443", ":8080", ":59999", ":65536", ":0", ":08"]), PATHS)
def test_s5_what_looks_plain_is_what_the_parser_makes_of_it(host: str, port: str, path: list[str]) -> None:
    for scheme in ("http", "https"):
        url = f"{scheme}://{host}{port}/{'/'.join(path)}"
        if _PLAIN.fullmatch(url):
            assert ada_url.URL(url).href == url


def test_s5_nearly_all_is_plain() -> None:
    for url in (
        "http://example.com/",
        "https://www.a-b.example.co.uk:8443/a/b.html?c=d&e=%20f",
        "http://10.1.2.3:35727/a",
    ):
        assert _PLAIN.fullmatch(url)


@pytest.mark.parametrize(
    "port", [1, 21, 22, 23, 25, 53, 79, 110, 143, 445, 587, 993, 2375, 3306, 5432, 6000, 6379, 11211, 27017]
)
def test_s6_ports_of_other_services_are_refused(port: int) -> None:
    assert fetch(f"http://127.0.0.1:{port}/", allow_private=True).reason == "refused_port"
    names = Names(["127.0.0.1"])
    assert fetch(f"http://name.example:{port}/", allow_private=True, resolver=names).reason == "refused_port"
    assert not names.asked  # refused before anybody was asked


def test_s6_a_port_can_be_opened() -> None:
    Guard(ports=[22]).check_port(22)
    with pytest.raises(Refused, match="Port 25"):
        Guard(ports=[22]).check_port(25)
    for port in (80, 443, 1024, 3000, 8000, 8080, 8443, 49152, 65535):
        Guard().check_port(port)


def test_s6_an_opened_port_is_reached(stage: Any) -> None:
    assert stage.fetch(PAGE, guard=Guard(networks=[LOOPBACK_ONLY])).body == b"secret"
