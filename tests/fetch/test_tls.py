"""Certificates that must not be trusted: row F13 of the hostile world."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from afresh.detect import compare
from afresh.types import Outcome, Validators

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
OPENSSL = shutil.which("openssl")
URL = ("https://site.localhost:{port}/",)


def openssl(*words: str, where: Path) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *words], cwd=where, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and certificates by it: good, expired, to come, for another name; and one that signed itself."""
    if OPENSSL is None:
        pytest.skip("certificates are made with the openssl command, which is not here")
    where = tmp_path_factory.mktemp("certificates")
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    openssl(*new, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem", where=where)
    site = ["-subj", "/CN=site", "-addext", "subjectAltName=DNS:site.localhost"]
    openssl(*new, *site, "-keyout", "self.key", "-out", "self.pem", where=where)
    (where / "ca.conf").write_text(
        "[ca]\ndefault_ca=own\n[own]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem\n"
        "private_key=ca.key\ndefault_md=sha256\npolicy=any\ncopy_extensions=copy\nunique_subject=no\n"
        "[any]\ncommonName=supplied\n"
    )
    (where / "index").touch()
    (where / "serial").write_text("01\n")
    dates = {
        "good": ("site.localhost", "20200101000000Z", "20491231000000Z"),
        "expired": ("site.localhost", "20200101000000Z", "20200201000000Z"),
        "to_come": ("site.localhost", "20480101000000Z", "20491231000000Z"),
        "other": ("other.localhost", "20200101000000Z", "20491231000000Z"),
    }
    for name, (host, start, end) in dates.items():
        ask = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=site"]
        names = ["-addext", f"subjectAltName=DNS:{host}"]
        openssl(*ask, *names, "-keyout", f"{name}.key", "-out", f"{name}.csr", where=where)
        sign = ["ca", "-batch", "-config", "ca.conf", "-startdate", start, "-enddate", end]
        openssl(*sign, "-in", f"{name}.csr", "-out", f"{name}.pem", "-notext", where=where)
    return where


def serving(certificates: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context


def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates / "ca.pem")


def fetch(stage: Any, certificates: Path, name: str, **http: Any) -> Any:
    return stage.fetch(PAGE, urls=URL, server_tls=serving(certificates, name), **http)


def test_f13_a_good_certificate_is_trusted(stage: Any, certificates: Path) -> None:
    got = fetch(stage, certificates, "good", tls=trusting(certificates))
    assert (got.body, got.reason) == (b"hello", "")


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
