"""What `--max-kept` bounds: pages that a crawl has found, and nothing else in the store."""

import subprocess
from pathlib import Path

from afresh.store import Sqlite
from command_line import COMMAND, SETTINGS, synthetic_web


def call(folder: Path, *words: str) -> None:
    done = subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def kept(folder: Path, scheme: str) -> list[str]:
    with Sqlite(folder / "afresh.db", create=False) as store:
        return [state.page.url for _, state in store.states() if state.page.url.startswith(scheme)]


def test_files_of_the_same_store_neither_count_nor_leave(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for nth in range(20):
        (tmp_path / "docs" / f"{nth}.txt").write_text(f"file {nth}")
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    call(tmp_path, "add", str(tmp_path / "docs"), "--recursive")
    call(tmp_path, "run", "--seconds", "3s")
    files = kept(tmp_path, "file:")
    assert len(files) == 21
    with synthetic_web(pages=40, hosts=1, seed=4) as server:
        call(tmp_path, "crawl", server.url(server.site.pages_of(0)[0]), "--seconds", "5s", "--max-kept", "8")
    assert kept(tmp_path, "file:") == files
    assert len(kept(tmp_path, "http:")) == 8
