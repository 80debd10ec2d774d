"""Links in imported copies are found by the next crawl, also where no page of them has changed."""

import http.client
import io
import json
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest
from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from afresh.cli.bounds import UNREAD, Bounds
from afresh.errors import BodyDamaged
from afresh.sim.web import Server
from afresh.store import PageState, Record, Sqlite
from afresh.store.messages import FOUND_SO_FAR
from afresh.types import Copy, Crawl, Outcome, Page, Validators
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


def test_a_crawl_that_may_know_more_finds_what_it_left_out(tmp_path: Path) -> None:
    page, marked = Page("http://a.example/", "a.example"), Validators(fingerprint=1)
    body = "".join(f'<a href="/{nth}">x</a>' for nth in range(30)).encode()
    few = Bounds(("a.example",), max_known=10)

    def start(store: Sqlite, bounds: Bounds) -> tuple[int, bool]:
        """What the command does before it crawls: how much is known then, and whether copies were read."""
        bounds.keep(store, Bounds.stored(store))
        with closing(bounds.backlog(store, tmp_path / "afresh.db", 8 << 20)) as backlog:
            discovery = bounds.discovery((), None, backlog)
            if reads := store.get(UNREAD) is not None:
                bounds.read_copies(store, discovery)
            store.put({FOUND_SO_FAR: json.dumps(discovery.counts())})
            return len(backlog.known), reads

    with Sqlite(tmp_path / "afresh.db") as store:
        copy = Copy(page.url, body, "text/html", 1.0, 1.0, marked)
        state = PageState(page, None, marked, 1.0, 1.0, crawls=1)
        store.write([Record(Crawl(page.url, 1.0, Outcome.NEW), state, copy)], pages=[page])
        assert start(store, few) == (10, True), "the copy was there before the crawl"
        assert start(store, few) == (10, False)
        assert start(store, replace(few, max_known=5)) == (10, False)
        assert start(store, replace(few, max_known=20)) == (20, True)
        assert start(store, replace(few, max_known=None)) == (31, True)
        assert start(store, replace(few, max_known=1_000)) == (31, False)
        assert start(store, replace(few, max_known=2_000)) == (31, False), "so much was not known: nothing was left out"


def test_copies_are_read_as_their_servers_ask_and_a_damaged_one_does_not_end_it(tmp_path: Path) -> None:
    tags = {"damaged": "", "asks": "nofollow", "other": "otherbot: nofollow"}
    marked = Validators(fingerprint=1)
    with Sqlite(tmp_path / "afresh.db") as store:
        for name, tag in tags.items():
            url = f"http://a.example/{name}"
            body, meta = f'<a href="/by-{name}">x</a>'.encode(), {"x-robots-tag": tag} if tag else {}
            state = PageState(Page(url, "a.example"), None, marked, 1.0, 1.0, crawls=1)
            copy = Copy(url, body, "text/html", 1.0, 1.0, marked, meta)
            store.write([Record(Crawl(url, 1.0, Outcome.NEW), state, copy)], pages=[state.page])
    connection = apsw.Connection(str(tmp_path / "afresh.db"))
    connection.execute("UPDATE copies SET body = x'00' WHERE page = 1")
    connection.close()
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        with pytest.raises(BodyDamaged):
            store.copy("http://a.example/damaged")
        Bounds.read_copies(store, Bounds(("a.example",)).discovery(()))
        found = {state.page.url.rpartition("/")[2] for _, state in store.states()}
    assert found == {*tags, "by-other"}
