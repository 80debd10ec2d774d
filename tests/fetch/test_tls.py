"""Certificates that must not be trusted: row F13 of the hostile world."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from afresh.detect import compare
from afresh.types import Outcome, Validators
from certificates import serving, trusting

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
URL = ("https://site.localhost:{port}/",)


def fetch(stage: Any, certificates: Path, name: str, **http: Any) -> Any:
    return stage.fetch(PAGE, urls=URL, server_tls=serving(certificates, name), **http)


def test_f13_a_good_certificate_is_trusted(stage: Any, certificates: Path) -> None:
    got = fetch(stage, certificates, "good", tls=trusting(certificates))
    assert (got.body, got.reason) == (b"hello", "")


def test_http2_is_not_offered(stage: Any, certificates: Path) -> None:
    context, offered = serving(certificates, "good"), []
    context.set_alpn_protocols(["h2", "http/1.1"])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offered.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(PAGE)

    assert stage.fetch(talk, urls=URL, server_tls=context, tls=trusting(certificates)).body == b"hello"
    assert offered == ["http/1.1"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("expired", "tls_expired"),
        ("to_come", "tls_not_yet_valid"),
        ("other", "tls_wrong_name"),
        ("self", "tls_self_signed"),
    ],
)
def test_f13_a_bad_certificate_is_refused_by_its_name(stage: Any, certificates: Path, name: str, reason: str) -> None:
    got = fetch(stage, certificates, name, tls=trusting(certificates))
    assert (got.reason, got.body, got.status) == (reason, b"", 0)
    assert not stage.requests  # not even the request was shown to it
    assert compare(Validators(), got).outcome is Outcome.FAILED


def test_f13_by_default_nobody_unknown_is_trusted(stage: Any, certificates: Path) -> None:
    assert fetch(stage, certificates, "good").reason in ("tls_unknown_issuer", "tls_self_signed")


def test_f13_the_way_out_is_per_host(stage: Any, certificates: Path) -> None:
    context = serving(certificates, "expired")
    urls = (*URL, "https://other.localhost:{port}/")
    hosts = {"unverified_hosts": ["site.localhost"], "tls": trusting(certificates)}
    trusted, other = stage.fetch_all(PAGE, urls=urls, server_tls=context, **hosts)
    assert (trusted.body, other.reason) == (b"hello", "tls_wrong_name")


def test_f13_a_stalled_handshake_is_named(stage: Any) -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(10)

    got = stage.fetch(stall, urls=URL, limits={"connect": 0.6}, silent=True)
    assert got.reason == "tls_timeout"
    assert got.took < 2


def test_f13_what_is_no_tls_is_named(stage: Any) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    assert stage.fetch(plain, urls=URL, silent=True).reason == "tls"


def test_f8_a_redirect_from_https_to_http_is_refused_unless_allowed(stage: Any, certificates: Path) -> None:
    down = b"HTTP/1.1 301 Moved\r\nLocation: http://site.localhost:1/x\r\nContent-Length: 0\r\n\r\n"
    up = down.replace(b"http://site.localhost:1/x", b"https://site.localhost:1/x")
    options = {"urls": URL, "server_tls": serving(certificates, "good"), "tls": trusting(certificates)}
    got = stage.fetch(down, **options)
    assert (got.reason, got.status, got.location) == ("insecure_redirect", 301, "")
    assert compare(Validators(), got).outcome is Outcome.FAILED
    assert stage.fetch(down, allow_downgrade=True, **options).reason == "refused_port"  # it was followed
    assert stage.fetch(up, **options).reason == "refused_port"
    plain = stage.fetch(down, urls=("http://site.localhost:{port}/",))
    assert plain.reason == "refused_port"  # there was nothing to lose
