"""Certificates for servers on loopback: good ones and all the bad kinds."""

import shutil
import ssl
import subprocess
from pathlib import Path

OPENSSL = shutil.which("openssl")


def openssl(*words: str, where: Path) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *words], cwd=where, check=True, capture_output=True)


def make_certificates(where: Path) -> None:
    """An authority, and certificates by it: good, expired, to come, for another name; and one that signed itself."""
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


def serving(certificates: Path, name: str, *protocols: str) -> ssl.SSLContext:
    """A server with one of the certificates, that offers these protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def trusting(certificates: Path) -> ssl.SSLContext:
    """A client that trusts the authority."""
    return ssl.create_default_context(cafile=certificates / "ca.pem")
