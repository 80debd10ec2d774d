"""`afresh crawl` over a real documentation tree that another program serves: every page once, also after a stop."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from afresh.store import Sqlite
from command_line import COMMAND, SETTINGS, whole_lines

TREES = [  # Debian's python3-doc and postgresql-doc
    *sorted(Path("/usr/share/doc").glob("python3.*/html/index.html")),
    *sorted(Path("/usr/share/doc").glob("postgresql-doc-*/html/index.html")),
]
PAGES = "/*.html"


class Anchors(HTMLParser):
    """The links of a page as the standard library sees them: an oracle that shares nothing with our own reader."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name == "href" and value and tag in ("a", "area", "link")]


def reachable(root: Path) -> set[str]:
    """The paths of the tree's pages that lead from its front page, by reading the files."""
    front, found = "/index.html", {"/index.html"}
    waiting = [front]
    while waiting:
        path = waiting.pop()
        reader = Anchors()
        reader.feed((root / path[1:]).read_text(encoding="utf-8", errors="replace"))
        for link in reader.found:
            parts = urlsplit(urljoin(f"http://tree{path}", link.strip()))
            there, ours = parts.path, (parts.scheme, parts.netloc, parts.query) == ("http", "tree", "")
            page = ours and there.endswith(".html") and (root / unquote(there)[1:]).is_file()
            if page and there not in found:
                found.add(there)
                waiting.append(there)
    return found


@pytest.fixture
def tree() -> Iterator[tuple[str, set[str]]]:
    """(front page's address, paths that lead from it) of a tree that is served by a program that is not ours."""
    if not TREES:
        pytest.skip("no documentation tree is installed (Debian: python3-doc or postgresql-doc)")
    root = TREES[0].parent
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(root)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    port = re.search(r"port (\d+)", server.stdout.readline())
    assert port
    try:
        yield f"http://127.0.0.1:{port[1]}/index.html", reachable(root)
    finally:
        server.kill()
        server.wait(10)
        server.stdout.close()


def copied(folder: Path) -> set[str]:
    """The paths of the pages that have a copy."""
    if not (folder / "afresh.db").exists():
        return set()
    with Sqlite(folder / "afresh.db", create=False) as store:
        return {urlsplit(state.page.url).path for _, state in store.states() if state.fetched is not None}


def crawl(folder: Path, enough: Callable[[], bool], *words: str) -> list[str]:
    """Crawl until there is enough, stop in good order; the addresses that were reported as new."""
    with (folder / "out").open("ab") as out, (folder / "err").open("ab") as err:
        command = [*COMMAND, "crawl", "--json", *words]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and process.poll() is None and not enough():
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 0, (folder / "err").read_text()
    return [str(line["url"]) for line in whole_lines((folder / "out").read_bytes()) if line["outcome"] == "new"]


def test_every_page_of_a_documentation_tree_is_found_once_also_after_a_stop(
    tree: tuple[str, set[str]], tmp_path: Path
) -> None:
    front, expected = tree
    assert len(expected) > 100
    (tmp_path / "afresh.toml").write_text(SETTINGS.replace("120/s", "2000/s"))
    new = crawl(tmp_path, lambda: len(copied(tmp_path)) >= len(expected) // 3, front, "--include", PAGES)
    middle = copied(tmp_path)
    assert len(expected) // 3 <= len(middle) < len(expected)
    assert middle < expected
    new = crawl(tmp_path, lambda: copied(tmp_path) >= expected)
    assert copied(tmp_path) == expected
    assert {urlsplit(url).path for url in new} == expected
    assert Counter(new).most_common(1)[0][1] == 1, "a page was new twice"
