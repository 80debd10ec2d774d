"""The console as people use it: a browser, a runner, and a site whose page changes; with scripts and without."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = os.environ.get("AFRESH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium: install it, or name it in AFRESH_CHROMIUM")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
PATIENCE = 90_000  # milliseconds: the runner may have to compile


@dataclass
class Site:
    """Pages that say what they are told to."""

    texts: dict[str, str] = field(default_factory=dict)
    port: int = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site({"/": "<title>start</title><p>first words here</p>"})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            text = made.texts.get(self.path.split("?")[0], "")
            self.send_response(200 if text else 404)
            body = text.encode()
            self.send_header("Content-Type", f"text/html; x={SCRIPT}" if "attack" in self.path else "text/html")
            self.send_header("ETag", f'"{SCRIPT}{len(text)}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


@dataclass
class Running:
    """A runner with its console."""

    base: str
    token: str
    folder: Path


@pytest.fixture(scope="module")
def running(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("browser")
    (folder / "afresh.toml").write_text(
        "[store]\nversions = 10\n[fetch]\nallow_private = true\n[politeness]\nshortest_gap = '200ms'\n"
    )

    def call(*words: str) -> str:
        command = [sys.executable, "-m", "afresh", *words]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()

    token = call("token", "new", "me", "--scope", "act")
    call("add", site.url("/"))
    words = [sys.executable, "-m", "afresh", "run", "--budget", "5/s", "--console", "127.0.0.1:0", "--seconds", "600"]
    with (folder / "log").open("w") as log:
        runner = subprocess.Popen(words, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        base = ""
        for _ in range(1200):
            if found := re.search(r"Console at (http://\S+)/", (folder / "log").read_text()):
                base = found[1]
                break
            assert runner.poll() is None, (folder / "log").read_text()
            threading.Event().wait(0.1)
        assert base, (folder / "log").read_text()
        for _ in range(3000):  # it may have to compile, and says so meanwhile
            with urllib.request.urlopen(f"{base}/api/v1/collection", timeout=30) as answer:
                if json.load(answer).get("starting") is None:
                    break
            threading.Event().wait(0.1)
        yield Running(base, token, folder)
    finally:
        runner.send_signal(signal.SIGTERM)
        runner.wait(30)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


def page_of(browser: Any, running: Running, *, scripts: bool) -> Any:
    """A page of a new visitor, who has signed in."""
    page = browser.new_context(java_script_enabled=scripts).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{running.base}/sign-in")
    page.fill("main input[name=token]", running.token)
    page.click("main button")
    page.wait_for_selector("text=Sign out")
    assert running.token not in page.url
    return page


def until(page: Any, selector: str) -> None:
    """Load a page again and again until it has something."""
    for _ in range(300):
        if page.locator(selector).count():
            return
        page.wait_for_timeout(300)
        page.reload()
    raise AssertionError((selector, page.inner_text("main")))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_page_is_added_crawled_seen_to_change_read_and_paused(
    browser: Any, running: Running, site: Site, scripts: bool
) -> None:
    path = f"/story-{scripts}"
    site.texts[path] = "<title>t</title><h1>A story</h1><p>It has seven words in its paragraph.</p>"
    page = page_of(browser, running, scripts=scripts)
    page.goto(f"{running.base}/pages")
    page.click("summary:has-text('Add pages')")
    page.fill("textarea[name=urls]", site.url(path))
    page.fill("input[name=longest]", "1s")
    page.click("button:has-text('Add')")
    assert page.inner_text("h1") == site.url(path)
    until(page, "td:has-text('first copy')")
    live = browser.new_context(java_script_enabled=scripts).new_page()  # a visitor who only looks
    live.goto(f"{running.base}/changes?pattern={site.url(path)}*")
    if scripts:
        live.wait_for_selector("#stream-state:has-text('live')")
    site.texts[path] = "<title>t</title><h1>A story</h1><p>It has eight other words in its one paragraph.</p>"
    if scripts:
        live.wait_for_selector("#changes tr >> text=changed", timeout=PATIENCE)
    else:
        until(live, "#changes tr >> text=changed")
    live.locator("#changes tr", has_text="changed").first.locator("a", has_text="difference").click()
    live.wait_for_selector("#difference")
    assert live.locator("#difference del").first.inner_text().strip() == "seven"
    assert "eight other" in live.locator("#difference ins").first.inner_text()
    page.reload()
    page.click("button:has-text('Pause')")
    until(page, "button:has-text('Resume')")
    assert page.locator(".badge:has-text('paused')").count()
    assert live.locator("button:has-text('Pause')").count() == 0  # who only looks has nothing to press


def test_a_budget_is_planned(browser: Any, running: Running) -> None:
    page = page_of(browser, running, scripts=False)
    page.goto(f"{running.base}/plan")
    page.fill("input[name=budget]", "2")
    page.click("button:has-text('What does it buy?')")
    assert page.locator("td:has-text('2/s')").count()


def test_an_attack_stays_text_wherever_it_shows(browser: Any, running: Running, site: Site) -> None:
    path = "/attack"
    address = site.url(path) + "?q='\"><script>document.title='owned'</script>"
    site.texts[path] = (
        f"<title>{SCRIPT}</title><p>words {SCRIPT} &lt;script&gt;document.title='owned'&lt;/script&gt;</p>"
    )
    page = page_of(browser, running, scripts=True)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{running.base}/pages")
    page.click("summary:has-text('Add pages')")
    page.fill("textarea[name=urls]", address)
    page.fill("input[name=longest]", "1s")
    page.click("button:has-text('Add')")
    until(page, "td:has-text('first copy')")
    site.texts[path] += "<p>more &lt;img src=x onerror=\"document.title='owned'\"&gt;</p>"
    until(page, "#difference ins")
    here = page.url
    for shown in (here, "/", "/pages", "/hosts", "/changes", "/signals"):
        page.goto(shown if shown.startswith("http") else running.base + shown)
        page.wait_for_timeout(200)
        assert page.title().endswith("· afresh"), shown
        assert page.locator("main script, main img").count() == 0, shown
    assert not [each for each in complaints if "Content Security Policy" in each or "Refused" in each], complaints
