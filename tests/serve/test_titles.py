"""Titles of pages in every list of changes: found when a copy is written, bounded, and text wherever they are shown."""

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from afresh.cli import app
from afresh.cli.opening import open_store
from afresh.config import Config
from afresh.reading.title import HEAD, MAX_TITLE, title_in
from afresh.store import LastingStore, PageState, Record
from afresh.types import Address, Copy, Crawl, Outcome, Page
from consoles import NOW, console
from postgres import Postgres as Server

PLAIN, HOSTILE, NONE, GONE = (f"https://a.example/{name}" for name in ("plain", "hostile", "none", "gone"))
ATTACK = "</title><script>alert(1)</script>"
BODIES = {
    PLAIN: "<html><head><title>Shop &amp; more\n</title>",
    HOSTILE: f"<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u202e{'x' * 500}{ATTACK}",
    NONE: "<p>no title",
    GONE: "<title>It was here</title>",
}
TITLES = {PLAIN: "Shop & more", NONE: "", GONE: "It was here"}


def fill(store: LastingStore) -> None:
    for url, body in BODIES.items():
        page = Page(url, "a.example", NOW)
        state = PageState(page, fetched=NOW, checked=NOW, crawls=1)
        copy = Copy(url, body.encode(), "text/html; charset=utf-8", NOW, NOW)
        store.write([Record(Crawl(url, NOW, Outcome.NEW, size=len(body)), state, copy)], pages=[page])
    after = PageState(Page(GONE, "a.example", NOW), fetched=NOW, checked=NOW, crawls=2, failures=1)
    store.write([Record(Crawl(GONE, NOW + 1, Outcome.GONE, status=404), after)])


def settings(path: Path | Address) -> Config:
    return replace(Config(), store=replace(Config().store, path=path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = tmp_path_factory.mktemp("titles")
    with open_store(settings(found / "s.db"), create=True) as store:
        fill(store)
    return found


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    with console(folder) as served, httpx.Client(base_url=served.base, timeout=60) as made:
        yield made


def require_titles(found: dict[str, str]) -> None:
    assert {url: title for url, title in found.items() if url != HOSTILE} == TITLES
    assert found[HOSTILE].startswith("</title><script>alert(1)</script>?xxx")
    assert len(found[HOSTILE]) == MAX_TITLE


def test_every_line_and_every_event_has_the_title(client: httpx.Client, folder: Path) -> None:
    lines = [json.loads(line) for line in client.get("/api/v1/changes").text.splitlines()]
    assert [line["change"] for line in lines] == ["new"] * 4 + ["gone"]
    require_titles({line["url"]: line["title"] for line in lines})
    events = {}
    with client.stream("GET", "/api/v1/changes?after=0", headers={"Accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                said = json.loads(line[6:])
                events[said["url"]] = said["title"]
                if said["change"] == "gone":
                    break
    require_titles(events)
    printed = CliRunner().invoke(app, ["changes", "--store", str(folder / "s.db")]).stdout.splitlines()
    require_titles({said["url"]: said["title"] for said in map(json.loads, printed)})


def test_titles_are_text_in_the_browser_and_in_feeds(client: httpx.Client) -> None:
    for path in ("/changes", "/"):
        text = client.get(path, headers={"Accept": "text/html"}).text
        assert ">Shop &amp; more</a>" in text, path
        assert "&lt;/title&gt;&lt;script&gt;alert(1)" in text
        assert "<script>alert" not in text
    feed = ET.fromstring(client.get("/changes.atom").text)
    titles = [each.findtext("{http://www.w3.org/2005/Atom}title") for each in feed.iter()]
    assert {"gone: It was here", "new: Shop & more", f"new: {NONE}"} <= set(titles)


def test_a_store_in_a_server_keeps_titles(tmp_path: Path) -> None:
    server = Server()
    try:
        with open_store(settings(Address(server.fresh("titles"))), create=True) as store:
            fill(store)
            urls = [*BODIES, "https://nowhere.example/"]
            *found, nowhere = store.titles(urls)
            require_titles(dict(zip(urls, found, strict=False)))
            assert nowhere == ""
            assert store.titles([]) == []
    finally:
        server.close()


@pytest.mark.parametrize("piece", [b"<title", b"<title>", b"<title ", b"<title " + b"a" * 150, b"<", b"&", b"<title\0"])
def test_a_title_is_found_soon_whatever_a_page_is(piece: bytes) -> None:
    body = piece * (2 * HEAD // len(piece))
    began = time.perf_counter()
    for _ in range(10):
        assert len(title_in(body, "text/html")) <= MAX_TITLE
    assert time.perf_counter() - began < 0.2
