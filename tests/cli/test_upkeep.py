"""Backup, compact and the bound on the store's size, as people use them."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from afresh.store import PageState, Record, Sqlite
from afresh.store.files import Claim
from afresh.types import Copy, Crawl, Outcome, Page, Validators


def fill(path: Path, size: int = 20_000) -> None:
    with Sqlite(path) as store:
        pages = [Page(f"http://a.example/{nth}", "a.example") for nth in range(10)]
        store.add(pages)
        for body in (os.urandom(size), b"small"):
            marks = Validators(fingerprint=len(body))
            store.write(
                Record(
                    Crawl(page.url, 1.0, Outcome.CHANGED),
                    replace(PageState(page), fetched=1.0, checked=1.0, validators=marks),
                    Copy(page.url, body, "text/plain", 1.0, 1.0, marks),
                )
                for page in pages
            )


def test_backup_and_compact(afresh: Any, tmp_path: Path) -> None:
    assert afresh("backup", "b.db").returncode == 2, "there is nothing to back up"
    fill(tmp_path / "afresh.db")
    claim = Claim(tmp_path / "afresh.db")
    try:
        assert "Wrote" in afresh("backup", "b.db").stdout, "also while another process runs on it"
        refused = afresh("compact")
        assert refused.returncode == 2
        message, hint = refused.stderr.splitlines()[-2:]
        assert message == f"afresh: Another afresh (process {os.getpid()}) runs on {tmp_path / 'afresh.db'}."
        assert hint == "  hint: Stop it first, and start it again afterwards."
    finally:
        claim.release()
    again = afresh("backup", "b.db")
    assert (again.returncode, "there already" in again.stderr) == (2, True)
    assert json.loads(afresh("status", "--store", "b.db", "--json").stdout)["copies"] == 10
    sizes = json.loads(afresh("compact", "--json").stdout)
    assert sizes["after"] < sizes["before"] / 2
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        assert list(store.problems()) == []
        assert store.totals().copies == 10


def test_a_full_store_says_so_and_takes_no_new_pages(afresh: Any, tmp_path: Path) -> None:
    fill(tmp_path / "afresh.db")
    (tmp_path / "afresh.toml").write_text('[store]\nmax_bytes = "50kB"\n')
    status = afresh("status").stdout
    assert "of 48.8 KiB used (store.max_bytes),\n             which takes no new bodies" in status
    assert json.loads(afresh("status", "--json").stdout)["takes"] == "no new bodies"
    refused = afresh("add", "http://b.example/")
    assert (refused.returncode, "The store takes no new bodies" in refused.stderr) == (2, True)
    assert "store.max_bytes" in refused.stderr
    known = afresh("add", "http://a.example/1", "--importance", "5")
    assert known.returncode == 0, "what is there already may be said more of"
