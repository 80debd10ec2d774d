"""What fails is seen: in the lines of `run`, in `status`, `show` and `hosts`, and in exports."""

import json
import socket
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from afresh.cli import collection
from afresh.cli.reasons import MAX_WIDTH, counted, words
from afresh.cli.terminal import moment
from afresh.config import Config
from afresh.frontier import host_of
from afresh.serve.console.metrics import exposition
from afresh.store import Record, Sqlite
from afresh.types import Copy, Crawl, HostState, Outcome, Page, Validators

GONE, FAILING, WELL = "http://a.example/gone", "http://b.example/", "http://c.example/"
ALLOWED = "[fetch]\nallow_private = true\n"


def write(store: Sqlite, url: str, outcome: Outcome, time: float, *, status: int = 0, reason: str = "") -> None:
    store.add([Page(url, host_of(url))])
    state = store.state(url)
    assert state is not None
    failures = 0 if outcome.refreshed else state.failures + 1
    state, copy = replace(state, crawls=state.crawls + 1, failures=failures), None
    if outcome is Outcome.NEW:
        validators = Validators(fingerprint=7)
        state = replace(state, fetched=time, checked=time, validators=validators)
        copy = Copy(url, b"body", "text/plain", time, time, validators)
    before = store.host(host_of(url)) or HostState(host_of(url))
    is_down = outcome is Outcome.FAILED
    host = (
        replace(before, failures=before.failures + 1, reason=reason, since=before.since or time) if is_down else before
    )
    store.write([Record(Crawl(url, time, outcome, status=status, reason=reason), state, copy, host)])


def fill(folder: Path) -> None:
    with Sqlite(folder / "afresh.db") as store:
        for url in (GONE, WELL):
            write(store, url, Outcome.NEW, 1000.0, status=200)
        write(store, GONE, Outcome.GONE, 2000.0, status=404, reason="status_404")
        write(store, GONE, Outcome.GONE, 3000.0, status=410, reason="status_410")
        for moment in (4000.0, 5000.0, 6000.0):
            write(store, FAILING, Outcome.FAILED, moment, reason="dns")
        store.add([Page(f"{FAILING}{number}", host_of(FAILING)) for number in range(9)])


def narrow(text: str) -> Iterable[str]:
    return [line for line in text.splitlines() if len(line) > 80]


def test_status_and_hosts_count_what_fails_by_its_reason(afresh: Any, tmp_path: Path) -> None:
    fill(tmp_path)
    status = afresh("status").stdout
    assert "failing      1 page: 1 no such host\n" in status
    assert "gone         1 page (404, 410 or deleted)\n" in status
    assert "hosts        1 fails: 1 no such host\n" in status
    assert not narrow(status)
    facts = json.loads(afresh("status", "--json").stdout)
    assert (facts["gone"], facts["failing"], facts["failing_hosts"]["hosts"]) == (1, {"dns": 1}, 1)
    text = afresh("hosts").stdout
    assert not narrow(text)
    assert "fails since 1970-01-01 01:06:40 UTC: no such host (3 in a row)" in text
    hosts = [json.loads(line) for line in afresh("hosts", "--json").stdout.splitlines()]
    assert [host["host"] for host in hosts] == ["b.example", "a.example", "c.example"], "most troubled first"
    assert (hosts[0]["pages"], hosts[0]["failures"], hosts[0]["reason"]) == (10, 3, "dns")
    assert (hosts[1]["gone"], hosts[1]["failing"], hosts[1]["reason"]) == (1, {}, "")


@pytest.mark.parametrize("lookups", [0, 1_000])
def test_a_host_whose_pages_are_removed_fails_no_more(
    afresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lookups: int
) -> None:
    monkeypatch.setattr(collection, "MAX_LOOKUPS", lookups)
    fill(tmp_path)
    with Sqlite(tmp_path / "afresh.db") as store:
        store.write([], removed=[FAILING])
        facts = collection.collection_facts(store, Config(), 7000.0)
        assert (facts["failing"], facts["failing_hosts"]) == ({}, {"hosts": 1, "reasons": {"dns": 1}}), (
            "others are left"
        )
        store.write([], removed=[f"{FAILING}{number}" for number in range(9)])
        facts = collection.collection_facts(store, Config(), 7000.0)
        assert facts["failing_hosts"] is None
        facts |= {"receiver": None, "time": 7000.0}
        assert b"afresh_failing_hosts 0.0" in exposition(facts, None, [], 7000.0)
    assert "hosts  " not in afresh("status").stdout


def test_show_says_that_a_page_is_gone_and_since_when(afresh: Any, tmp_path: Path) -> None:
    fill(tmp_path)
    text = afresh("show", GONE).stdout
    assert "state       gone (410 since 1970-01-01 00:33:20 UTC)" in text
    assert "failed (" not in text
    assert "fetches failed" not in text
    facts = json.loads(afresh("show", GONE, "--json").stdout)
    assert facts["gone"] == {"status": 410, "since": 2000.0}
    assert facts["copy"]["fresh_probability"] == 0.0, "a copy of what is gone is not current"
    assert facts["put_off"] == 3000.0 + 2 * 3600.0, "the second time after twice an hour"
    (tmp_path / "afresh.toml").write_text('[crawl]\ngone_retry = "1min"\n')
    assert json.loads(afresh("show", GONE, "--json").stdout)["put_off"] == 3000.0 + 120.0


def test_a_page_that_is_gone_is_not_due_before_it_is_asked_again(afresh: Any, tmp_path: Path) -> None:
    now = float(int(time.time()))
    with Sqlite(tmp_path / "afresh.db") as store:
        write(store, GONE, Outcome.GONE, now, status=404, reason="status_404")
    again = moment(now + 3600.0)
    text = afresh("show", GONE).stdout
    assert f"asked again {again}" in text
    assert f"due         not before {again}" in text


def test_show_says_why_a_page_has_never_been_fetched(afresh: Any, tmp_path: Path) -> None:
    fill(tmp_path)
    text = afresh("show", FAILING).stdout
    assert "waits for its first turn" not in text
    assert "its last 3 attempts failed (no such host)" in text
    assert "failed      3 no such host" in text
    other = afresh("show", FAILING + "7").stdout
    assert "its host fails: no such host since 1970-01-01 01:06:40 UTC (3 in a row)" in " ".join(other.split())
    assert "waits for its first turn" not in other


def test_exports_mark_pages_that_are_gone_or_leave_them_out(afresh: Any, tmp_path: Path) -> None:
    fill(tmp_path)
    assert (
        "Wrote 2 copies to all.jsonl, 1 of them of pages that are gone."
        in afresh("export", "--jsonl", "all.jsonl").stdout
    )
    lines = {each["url"]: each for each in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())}
    assert lines[GONE]["gone"] == {"status": 410, "since": 2000.0}
    assert lines[WELL]["gone"] is None
    counts = json.loads(afresh("export", "--jsonl", "some.jsonl", "--current", "--json").stdout)
    assert counts == {"file": "some.jsonl", "copies": 1, "gone": 0, "left_out": 1}
    assert GONE not in (tmp_path / "some.jsonl").read_text()
    afresh("export", "--warc", "all.warc.gz")
    with (tmp_path / "all.warc.gz").open("rb") as file:
        records = [
            (record.headers["WARC-Target-URI"], record.http_headers.status_code)
            for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True)
        ]
    assert records == [(GONE, 200), (GONE, 410), (WELL, 200)]


def test_run_counts_hosts_that_cannot_be_reached(afresh: Any, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(ALLOWED)
    with socket.socket() as held:  # bound, and nobody listens
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
        afresh("add", url, "http://127.0.0.1:22/")
        run = afresh("run", "--seconds", "2s", "--json", timeout=180)
    crawls = [json.loads(line) for line in run.stdout.splitlines()]
    assert {(crawl["outcome"], crawl["reason"]) for crawl in crawls} == {
        ("failed", "no_connection"),
        ("refused", "refused_port"),
    }
    assert "2 crawls" in run.stderr
    assert "2 failed" in run.stderr
    assert "Failed: 1 no connection, 1 port not allowed (fetch.allow_ports)." in run.stderr
    assert "no connection" in afresh("show", url).stdout
    assert "no connection" in afresh("hosts").stdout


def test_reasons_are_words_on_one_line() -> None:
    many = {f"status_{number}": 1_000_000 - number for number in range(500, 600)}
    assert len(counted(many)) <= MAX_WIDTH
    assert counted(many).endswith(" others")
    assert words("odd\x1b[31m reason") == "odd?[31m reason"
