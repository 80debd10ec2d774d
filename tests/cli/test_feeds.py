"""What is kept goes out again: the feed of changes, WARC and JSON lines."""

import base64
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType

from afresh.frontier import host_of
from afresh.store import Record, Sqlite
from afresh.types import Copy, Crawl, Outcome, Page, Validators

URLS = [f"http://example.com/{number}" for number in range(3)]


def write(store: Sqlite, url: str, outcome: Outcome, moment: float, body: bytes | None = None) -> None:
    store.add([Page(url, host_of(url))])
    state = store.state(url)
    assert state is not None
    state = replace(state, checked=moment)
    copy = None
    if body is not None:
        validators = Validators(etag='"1"\r\nX-Evil: yes', fingerprint=7)
        state = replace(state, fetched=moment, validators=validators)
        copy = Copy(url, body, "text/plain", moment, moment, validators)
    store.write([Record(Crawl(url, moment, outcome, size=len(body or b""), significance=0.5), state, copy)])


def filled(path: Path) -> None:
    with Sqlite(path) as store:
        write(store, URLS[0], Outcome.NEW, 1000.0, b"first body")
        write(store, URLS[1], Outcome.NEW, 1001.0, b"other")
        write(store, URLS[0], Outcome.UNCHANGED, 1002.0)
        write(store, URLS[1], Outcome.CHANGED, 1003.0, b"other, changed")
        write(store, URLS[0], Outcome.FAILED, 1004.0)
        write(store, URLS[0], Outcome.UNCHANGED, 1005.0)
        write(store, URLS[1], Outcome.GONE, 1006.0)


def test_changes_are_told_once_and_in_order(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    filled(tmp_path / "afresh.db")
    lines = [json.loads(line) for line in afresh("changes").stdout.splitlines()]
    assert [(line["number"], line["change"], line["url"]) for line in lines] == [
        (1, "new", URLS[0]),
        (2, "new", URLS[1]),
        (4, "changed", URLS[1]),
        (7, "gone", URLS[1]),
    ]
    assert lines[2]["significance"] == 0.5
    later = afresh("changes", "--after", "2").stdout.splitlines()
    assert [json.loads(line)["number"] for line in later] == [4, 7]


def test_a_number_that_was_not_given_yet_is_refused(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    filled(tmp_path / "afresh.db")
    with Sqlite(tmp_path / "afresh.db") as store:
        store.write([], removed=URLS)
    assert afresh("changes", "--after", "7").stdout == "", "its page is removed, and it was given"
    refused = afresh("changes", "--follow", "--after", "8")
    assert refused.returncode == 2
    assert "No change has the number 8 yet: the last one that was given is 7." in refused.stderr


def test_changes_can_be_followed(tmp_path: Path) -> None:
    filled(tmp_path / "afresh.db")
    process = subprocess.Popen(
        [sys.executable, "-c", "from afresh.cli import main; main()", "changes", "--follow", "--every", "0.1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    try:
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        with Sqlite(tmp_path / "afresh.db") as store:
            write(store, URLS[2], Outcome.NEW, time.time(), b"later")
        assert json.loads(process.stdout.readline())["url"] == URLS[2]
    finally:
        process.kill()
        process.communicate()


def test_warc_holds_copies_and_revisits(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    filled(tmp_path / "afresh.db")
    for name in ("copies.warc", "copies.warc.gz"):
        assert "Wrote 2 copies" in afresh("export", "--warc", name).stdout
        seen = []
        for record in ArchiveIterator(str(tmp_path / name), parse_http=True):
            body = record.reader.read()
            if record.headers.get("WARC-Truncated"):  # its content is not kept
                assert (record.headers["WARC-Target-URI"], record.headers["Afresh-Outcome"]) == (URLS[1], "new")
                continue
            seen.append(
                (record.record_type, record.headers["WARC-Target-URI"], record.headers["WARC-Date"][-3:-1], body)
            )
            if record.record_type == WarcRecordType.response:
                assert record.http_headers["Content-Type"] == "text/plain"
                assert "X-Evil" not in record.http_headers
            else:
                assert record.headers["WARC-Refers-To-Date"] == "1970-01-01T00:16:40Z"
        assert seen == [
            (WarcRecordType.response, URLS[0], "40", b"first body"),
            (WarcRecordType.revisit, URLS[0], "42", b""),
            (WarcRecordType.revisit, URLS[0], "45", b""),
            (WarcRecordType.response, URLS[1], "43", b"other, changed"),
        ]


def test_json_lines_hold_the_bodies(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    filled(tmp_path / "afresh.db")
    assert afresh("export", "--jsonl", "copies.jsonl").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "copies.jsonl").read_text().splitlines()]
    assert [base64.b64decode(line["body"]) for line in lines] == [b"first body", b"other, changed"]
    assert lines[0]["checked"] == 1005.0


def test_export_needs_one_target_that_can_be_written(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    filled(tmp_path / "afresh.db")
    for words in ([], ["--warc", "a", "--jsonl", "b"], ["--warc", "no/such/folder.warc"]):
        done = afresh("export", *words)
        assert done.returncode == 2
        assert "hint:" in done.stderr
        assert "Traceback" not in done.stderr
