"""Links in imported copies are found by the next crawl, also where no page of them has changed."""

import http.client
import io
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from afresh.cli.bounds import UNREAD
from afresh.sim.web import Server
from afresh.store import Sqlite
from command_line import COMMAND, SETTINGS, synthetic_web

NO_SITEMAPS = SETTINGS + "sitemaps = false\n"


def kept(folder: Path) -> set[str]:
    with Sqlite(folder / "afresh.db", create=False) as store:
        return {state.page.url for _, state in store.states()}


def call(folder: Path, *words: str) -> str:
    done = subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def bring(folder: Path, urls: list[str]) -> None:
    """Import the pages as they are, as another program would have written them."""
    with (folder / "theirs.warc.gz").open("wb") as file:
        for url in urls:
            where = urlsplit(url)
            asking = http.client.HTTPConnection("127.0.0.1", where.port)
            asking.request("GET", where.path, headers={"Host": where.netloc})
            body = asking.getresponse().read()
            asking.close()
            record = WarcRecord()
            record.init_headers(record_type=WarcRecordType.response)
            record.headers["WARC-Date"] = "2025-01-01T00:00:00Z"
            record.headers["WARC-Target-URI"] = url
            record.headers["Content-Type"] = "application/http; msgtype=response"
            record.set_bytes_content(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body)
            member = io.BytesIO()
            writer = GzipWriter(member)
            record.write(writer)
            writer.close()
            file.write(member.getvalue())
    call(folder, "import", "--warc", "theirs.warc.gz")


def pages_of(server: Server) -> list[str]:
    return [server.url(page) for page in server.site.pages_of(0)]


@pytest.mark.parametrize("bounds_before", [False, True])
def test_a_crawl_goes_on_from_imported_copies(tmp_path: Path, bounds_before: bool) -> None:
    with synthetic_web(pages=40, hosts=1, seed=4, kinds=(("reference", 1.0),)) as server:
        (tmp_path / "afresh.toml").write_text(NO_SITEMAPS)
        pages = pages_of(server)
        if bounds_before:  # a crawl that has room for its seed alone
            call(tmp_path, "crawl", pages[0], "--seconds", "2s", "--max-known", "1")
            assert kept(tmp_path) == {pages[0]}
        bring(tmp_path, pages[:30])
        with Sqlite(tmp_path / "afresh.db", create=False) as store:
            assert store.get(UNREAD) is not None
        call(tmp_path, "crawl", *([] if bounds_before else [pages[0]]), "--seconds", "4s", "--max-known", "1000")
        assert set(pages) <= kept(tmp_path)
        with Sqlite(tmp_path / "afresh.db", create=False) as store:
            assert store.get(UNREAD) is None, "they are not read at every start"
