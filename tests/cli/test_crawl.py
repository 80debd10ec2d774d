"""`afresh crawl` finds a whole site, once each page, within its bounds, and obeys robots.txt."""

import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from afresh.sim.web import Server
from afresh.store import Sqlite
from command_line import COMMAND, SETTINGS, synthetic_web, whole_lines


def crawl(folder: Path, reached: Callable[[], bool], *words: str, timeout: float = 120.0) -> list[dict[str, object]]:
    """Crawl until something is so (however slow the machine is) and then stop in good order; what was reported."""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen([*COMMAND, "crawl", "--json", *words], cwd=folder, stdout=out, stderr=err)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and process.poll() is None and not reached():
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert process.returncode == 0, (folder / "err").read_text()
    return reported(folder)


def reported(folder: Path) -> list[dict[str, object]]:
    return whole_lines((folder / "out").read_bytes())


def copies(folder: Path) -> int:
    if not (folder / "afresh.db").exists():
        return 0
    with Sqlite(folder / "afresh.db", create=False) as store:
        return store.totals().copies


def kept(folder: Path) -> dict[str, int]:
    with Sqlite(folder / "afresh.db", create=False) as store:
        return {state.page.url: state.page.depth for _, state in store.states()}


def front_pages(server: Server) -> list[str]:
    return [server.url(server.site.pages_of(host)[0]) for host in range(server.site.options.hosts)]


def test_a_site_is_found_from_its_front_page_each_page_once(tmp_path: Path) -> None:
    with synthetic_web(pages=60, hosts=3, seed=4, kinds=(("reference", 1.0),)) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        front = front_pages(server)[0]
        pages = {server.url(page) for page in server.site.pages_of(0)}
        lines = crawl(tmp_path, lambda: copies(tmp_path) == len(pages), front)
        assert set(kept(tmp_path)) == pages
        first = [line["url"] for line in lines if line["outcome"] == "new"]
        assert sorted(first) == sorted(pages)
        assert kept(tmp_path)[front] == 0
        assert max(kept(tmp_path).values()) >= 1


def test_stopping_and_going_on_gives_the_same_set(tmp_path: Path) -> None:
    with synthetic_web(pages=30, hosts=1, seed=5) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        front = front_pages(server)[0]
        pages = {server.url(page) for page in server.site.pages_of(0)}
        crawl(tmp_path, lambda: copies(tmp_path) >= 5, front, "--budget", "10/s")
        assert 5 <= copies(tmp_path) < len(pages)
        crawl(tmp_path, lambda: copies(tmp_path) == len(pages))
        assert set(kept(tmp_path)) == pages


def test_bounds_hold(tmp_path: Path) -> None:
    with synthetic_web(pages=30, hosts=1, seed=5) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        front = front_pages(server)[0]
        crawl(tmp_path, lambda: copies(tmp_path) >= 10, front, "--max-pages", "10")
        assert len(kept(tmp_path)) == 10
        other = tmp_path / "other"
        other.mkdir()
        (other / "afresh.toml").write_text(SETTINGS)
        crawl(other, lambda: copies(other) > 1 and copies(other) == len(kept(other)), front, "--depth", "1")
        assert set(kept(other).values()) == {0, 1}


def test_a_sitemap_brings_pages_near_that_are_many_links_away(tmp_path: Path) -> None:
    with synthetic_web(pages=60, hosts=1, seed=5, kinds=(("reference", 1.0),)) as server:
        front, pages = front_pages(server)[0], {server.url(page) for page in server.site.pages_of(0)}
        for name, more in (("with", ""), ("without", "sitemaps = false\n")):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "afresh.toml").write_text(SETTINGS + more)
        crawl(tmp_path / "with", lambda: copies(tmp_path / "with") == len(pages), front, "--depth", "1")
        assert set(kept(tmp_path / "with")) == pages
        assert ", 1 sitemap with " in (tmp_path / "with" / "err").read_text()
        other = tmp_path / "without"
        crawl(other, lambda: copies(other) > 1 and copies(other) == len(kept(other)), front, "--depth", "1")
        assert set(kept(other)) < pages
        assert "sitemaps with" not in (other / "err").read_text()


def test_robots_are_obeyed_before_anything_is_sent(tmp_path: Path) -> None:
    with synthetic_web(pages=60, hosts=3, seed=6, disallowed_share=0.5) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        forbidden = {server.url(page) for page in range(60) if server.site.disallowed[page]}
        wanted = len(server.urls()) - len(forbidden)
        lines = crawl(tmp_path, lambda: copies(tmp_path) >= wanted // 2, *front_pages(server))
        refused = {str(line["url"]) for line in lines if line["reason"] == "robots"}
        fetched = {str(line["url"]) for line in lines if line["status"] == 200}
        assert refused
        assert refused <= forbidden
        assert not fetched & forbidden
        # The site's own books: no request for a forbidden page ever arrived.
        client = next(iter(server.ledger.clients.values()))
        assert all(client.held[page] < 0 for page in range(60) if server.site.disallowed[page])
        assert client.counts.requests == sum(line["reason"] != "robots" for line in lines)


def test_a_crawl_delay_is_kept_to(tmp_path: Path) -> None:
    with synthetic_web(pages=20, hosts=1, seed=7, crawl_delay=1.0) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        lines = crawl(tmp_path, lambda: len(reported(tmp_path)) >= 4, *front_pages(server))
        times = sorted(float(line["time"]) for line in lines)  # type: ignore[arg-type]
        assert min(after - before for before, after in pairwise(times)) >= 0.99


def test_bad_bounds_and_missing_crawls_are_refused(tmp_path: Path) -> None:
    for words, said in (([], "no store"), (["nonsense"], "not a URL")):
        done = subprocess.run([*COMMAND, "crawl", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_links_in_a_hostile_page_cannot_leave_the_scope(tmp_path: Path) -> None:
    from aiohttp import web as aiohttp_web

    async def hostile(request: object) -> aiohttp_web.Response:
        links = "".join(f'<a href="{target}">x</a>' for target in TARGETS)
        return aiohttp_web.Response(text=f"<main>{links}<p>text</p></main>", content_type="text/html")

    with synthetic_web(pages=4, hosts=2, seed=8) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        front = front_pages(server)[0]
        server.play(front, hostile)
        crawl(tmp_path, lambda: copies(tmp_path) >= 1, front)
        assert all(url.startswith(front) for url in kept(tmp_path)), kept(tmp_path)


TARGETS = [
    "http://169.254.169.254/latest",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "//evil.example/",
    "http://user:secret@evil.example/",
    "http://[::1]/",
    "/a/a/a/a/a/a",
    "/?PHPSESSID=0123456789abcdef0123456789abcdef",
]


def test_a_site_that_is_yet_to_be_found_is_not_taken_for_one_page() -> None:
    from afresh.cli.build import engine_for
    from afresh.cli.run import to_come
    from afresh.config import Config
    from afresh.frontier import Scope
    from afresh.sources.web import Discovery

    config = Config()
    found = {most: to_come(Discovery(Scope(), most_pages=most), 0) for most in (None, 50, 10**6)}
    assert found == {None: 1000, 50: 50, 10**6: 1000}
    assert to_come(None, 0) == to_come(Discovery(Scope()), 1) == 0
    engine = engine_for(config, 1, to_come=1000)
    assert engine.estimator.typical_rate == config.crawl.budget / 1000  # type: ignore[attr-defined]
    assert engine_for(config, 5000, to_come=1000).estimator.typical_rate == config.crawl.budget / 5000  # type: ignore[attr-defined]
