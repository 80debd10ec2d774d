"""A console on loopback over a store whose pages are strangers' worst, served as `afresh console` serves it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from afresh.cli.console import console_app
from afresh.config import Config
from afresh.serve.receive import tokens
from afresh.serve.receive.listener import Listener
from afresh.store import KeepVersions, PageState, Record, Sqlite
from afresh.store.figures import Figures, name_of, to_text
from afresh.store.messages import drain
from afresh.types import Address, Beliefs, Copy, Crawl, HostState, Outcome, Page, Validators

NOW = 1_795_000_000.0
ATTACK = "http://a.example/%3Cb%3E?q='-alert(1)-'&x=%22onmouseover=alert(2)"
SCRIPT = "<script>alert('owned')</script><img src=x onerror=alert(3)>"
CHANGED = "http://a.example/changed"


def fill(path: Path, *, pages: int = 60) -> None:
    """Pages of two hosts: some fail, one is an attack, one has an earlier version; and figures of an hour."""
    with Sqlite(path, keep_versions=KeepVersions(10)) as store:
        records = [_record(nth) for nth in range(pages)]
        store.write(records, pages=[record.state.page for record in records])
        attack = Page(ATTACK, "a.example", NOW)
        validators = Validators(etag=SCRIPT, last_modified=SCRIPT)
        state = PageState(attack, validators=validators, fetched=NOW, checked=NOW, crawls=2, failures=1)
        copy = Copy(ATTACK, SCRIPT.encode(), SCRIPT, NOW, NOW, validators)
        bad = Crawl(ATTACK, NOW + 1, Outcome.FAILED, reason=f"status_{SCRIPT}", status=500)
        host = HostState("a.example", NOW, failures=5, reason=SCRIPT, since=NOW)
        store.write([Record(Crawl(ATTACK, NOW, Outcome.NEW), state, copy, host)], pages=[attack])
        store.write([Record(bad, state)])
        page = Page(CHANGED, "a.example", NOW)
        texts = "<p>one two three</p><p>stays</p>", f"<p>one 2 three &lt;b&gt; {SCRIPT}</p><p>stays</p>"
        for nth, text in enumerate(texts):
            at = NOW + 100.0 * nth
            state = PageState(page, fetched=at, checked=at, crawls=nth + 1, changes=nth, beliefs=Beliefs(1.0, 1e-3))
            crawl = Crawl(CHANGED, at, Outcome.CHANGED if nth else Outcome.NEW, size=len(text), fresh_probability=0.5)
            store.write([Record(crawl, state, Copy(CHANGED, text.encode(), "text/html", at, at))], pages=[page])
        rows = [Figures(NOW + 60 * nth, 0.9, 0.8, 0.85, 5.0, 1.5, pages, 300, 10, 2) for nth in range(3)]
        store.put({name_of(NOW): to_text(rows), "budget": "5.0", "price": "1.5"})


def _record(nth: int) -> Record:
    host = ("a.example", "b.example")[nth % 2]
    page = Page(f"https://{host}/{nth:05}", host, NOW)
    fails = nth % 10 == 9
    state = PageState(
        page,
        beliefs=Beliefs(1.0, 1e-4 * (1 + nth % 5)),
        fetched=None if fails else NOW,
        checked=None if fails else NOW,
        crawls=1,
        failures=int(fails),
    )
    if fails:
        return Record(Crawl(page.url, NOW, Outcome.FAILED, reason="timeout"), state)
    copy = Copy(page.url, b"<p>text</p>", "text/html", NOW, NOW)
    return Record(Crawl(page.url, NOW, Outcome.NEW, status=200, size=11, fresh_probability=0.0), state, copy)


class Served:
    """Where it is, and what opens it."""

    def __init__(self, base: str, folder: Path, act: str, read: str, signal: str) -> None:
        self.base, self.folder = base, folder
        self.act, self.read, self.signal = act, read, signal
        self.store = folder / "s.db"


@contextmanager
def console(
    folder: Path, *, public_url: str = "", runs: bool = False, database: Address | None = None
) -> Iterator[Served]:
    """Serve the store in a folder or database; with `runs`, somebody holds it and carries wishes out, as runners do."""
    names = {scope: tokens.new(folder / "tokens", scope, scope) for scope in ("act", "read", "signal")}
    config = Config()
    config = replace(
        config,
        store=replace(config.store, path=database or folder / "s.db", versions=10),
        receive=replace(config.receive, tokens=folder / "tokens"),
        console=replace(config.console, listen=("127.0.0.1", 0), public_url=public_url),
    )
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    where: list[tuple[str, int]] = []

    async def go() -> None:
        app = console_app(config, [config])
        listener = Listener(app.app, "127.0.0.1", 0)
        where.append(await listener.start())
        ready.set()
        await stop.wait()
        await app.end_streams()
        await listener.stop()
        app.close()

    def carry_out() -> None:
        with Sqlite(folder / "s.db", create=False) as store:
            store.claim()
            held.set()
            while not done.wait(0.02):
                drain(store)

    done, held = threading.Event(), threading.Event()
    runner = threading.Thread(target=carry_out)
    if runs:
        runner.start()
        assert held.wait(30)
    thread = threading.Thread(target=lambda: loop.run_until_complete(go()))
    thread.start()
    try:
        assert ready.wait(30)
        yield Served(f"http://127.0.0.1:{where[0][1]}", folder, names["act"], names["read"], names["signal"])
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
        done.set()
        if runs:
            runner.join(30)
