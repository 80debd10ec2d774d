"""A stored body that is damaged: the next fetch replaces it, and the log says so in one line."""

import asyncio
import logging
from pathlib import Path

import apsw
import pytest

from afresh.errors import BodyDamaged
from afresh.store import Sqlite
from live_site import NONE, Crawl, LiveSite, html

BODY = "<p>hello " * 100


@pytest.mark.parametrize("answers", ["not modified", "the same", "another"])
@pytest.mark.parametrize("damage", ["x'28b52ffd'", "x''", "substr(body, 1, length(body) - 5)"])
def test_a_damaged_body_heals_at_the_next_fetch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, answers: str, damage: str
) -> None:
    whole, conditional = html(BODY, 'ETag: "1"'), False

    def answer(host: str, path: str) -> bytes:
        if path != "/page":
            return NONE
        asked = site.log[-1].head
        if conditional and "If-None-Match" in asked and answers == "not modified":
            return b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
        return html("<p>other " * 100) if conditional and answers == "another" else whole

    site = LiveSite(answer)

    async def act() -> None:
        nonlocal conditional
        await site.start()
        try:
            with Sqlite(tmp_path / "s.db") as store:
                url = site.url("a.test", "/page")
                await Crawl(site, store).until(lambda: store.copy(url) is not None, url)
            connection = apsw.Connection(str(tmp_path / "s.db"))
            connection.execute(f"UPDATE copies SET body = {damage}")
            connection.close()
            conditional = True
            with Sqlite(tmp_path / "s.db") as store:
                with pytest.raises(BodyDamaged):
                    store.copy(url)
                before, asked = store.totals().crawls, len(site.log)
                await Crawl(site, store).until(lambda: store.totals().crawls > before + 2)
                first = next(each.head for each in site.log[asked:] if each.path == "/page")
                assert "If-None-Match" not in first
                copy = store.copy(url)
                assert copy is not None
                assert copy.body == (b"<p>other " * 100 if answers == "another" else BODY.encode())
                assert all(crawl.outcome.refreshed for crawl in store.history(url))
                assert not [problem for problem in store.problems() if "copy" in problem]
        finally:
            site.stop()

    with caplog.at_level(logging.WARNING, logger="afresh"):
        asyncio.run(act())
    (line,) = caplog.records
    assert "/page" in line.message


def test_a_sound_copy_is_looked_at_once_and_asked_with_its_conditions(tmp_path: Path) -> None:
    site = LiveSite(lambda host, path: html(BODY, 'ETag: "1"') if path == "/page" else NONE)

    async def act() -> None:
        await site.start()
        try:
            with Sqlite(tmp_path / "s.db") as store:
                url = site.url("a.test", "/page")
                await Crawl(site, store).until(lambda: store.copy(url) is not None, url)
            with Sqlite(tmp_path / "s.db") as store:
                asked = len(site.log)
                await Crawl(site, store).until(lambda: len(site.log) > asked + 3)
                heads = [each.head for each in site.log[asked:] if each.path == "/page"]
                assert heads
                assert all('If-None-Match: "1"' in head for head in heads)
        finally:
            site.stop()

    asyncio.run(act())
