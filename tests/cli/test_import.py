"""Captures of other programs come in as pages with copies and history; what we wrote comes in whole."""

import gzip
import io
import json
import random
from itertools import accumulate
from pathlib import Path

import pytest
from fastwarc.stream_io import GzipWriter
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from typer.testing import CliRunner

from afresh.cli import app
from afresh.store import Sqlite, gzip_members
from afresh.types import Outcome

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
RESPONSE = "application/http; msgtype=response"


def run(folder: Path, *words: str, fails: bool = False) -> str:
    with pytest.MonkeyPatch.context() as context:
        context.chdir(folder)
        result = CliRunner().invoke(app, [*words, "--store", str(folder / "afresh.db")], catch_exceptions=True)
    assert fails or result.exit_code == 0, result.output
    return result.output if not fails else f"{result.exit_code} {result.output} {result.exception}"


def record(
    url: str, content: bytes, when: str, kind: WarcRecordType = WarcRecordType.response, **more: str
) -> WarcRecord:
    made = WarcRecord()
    made.init_headers(record_type=kind)
    made.headers["WARC-Date"] = when
    made.headers["WARC-Target-URI"] = url
    made.headers["Content-Type"] = RESPONSE if kind != WarcRecordType.resource else "text/plain"
    for name, value in more.items():
        made.headers[name.replace("_", "-")] = value
    made.set_bytes_content(content)
    return made


def warc(*records: WarcRecord, packed: bool = True) -> bytes:
    raw = io.BytesIO()
    writer = GzipWriter(raw) if packed else raw
    for each in records:
        each.write(writer)
    if packed:
        writer.close()
    return raw.getvalue()


def page(body: bytes, *headers: bytes) -> bytes:
    return HEAD + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


def crawl_of_another() -> list[WarcRecord]:
    url = "http://www.example.org/a"
    packed = page(gzip.compress(b"<p>packed"), b"Content-Encoding: gzip")
    chunked = page(b"3\r\nabc\r\n0\r\n\r\n", b"Transfer-Encoding: chunked")
    return [
        record(url, page(b"<p>one word", b'ETag: "1"', b"X-Other: kept"), "2025-01-01T00:00:00Z"),
        record("http://www.example.org/b?x=1", packed, "2025-01-01T00:00:01Z"),
        record("http://www.example.org/c", chunked, "2025-01-01T00:00:02Z"),
        record(url, page(b"<p>another text", b'ETag: "2"'), "2025-01-02T00:00:00.250Z"),
        record(url, b"HTTP/1.1 304 Not Modified\r\n\r\n", "2025-01-04T00:00:00Z", WarcRecordType.revisit),
        record("http://www.example.org/c", b"HTTP/1.1 404 Not Found\r\n\r\n", "2025-01-05T00:00:00Z"),
        record("http://www.example.org/moved", b"HTTP/1.1 301 Moved\r\nLocation: /a\r\n\r\n", "2025-01-05T00:00:01Z"),
        record("dns:www.example.org", b"10.0.0.1", "2025-01-01T00:00:00Z", WarcRecordType.resource),
        record("http://www.example.org/late", page(b"x"), "2099-01-01T00:00:00Z"),
        record("http://www.example.org/nothing", b"HTTP/1.1 304 Not Modified\r\n\r\n", "2025-01-05T00:00:01Z"),
    ]  # fmt: skip


def test_a_crawl_of_another_program_goes_on_here(tmp_path: Path) -> None:
    (tmp_path / "their.warc.gz").write_bytes(warc(*crawl_of_another()))
    said = json.loads(run(tmp_path, "import", "--warc", "their.warc.gz", "--json").splitlines()[-1])
    assert {name: said[name] for name in ("new", "changed", "unchanged", "gone", "moved")} == {
        "new": 3, "changed": 1, "unchanged": 1, "gone": 1, "moved": 1
    }  # fmt: skip
    assert (said["left_out_no_web_address"], said["left_out_in_the_future"], said["left_out_revisit_of_nothing"]) == (
        1,
        1,
        1,
    )
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        state, copy = store.state("http://www.example.org/a"), store.copy("http://www.example.org/a")
        assert state is not None
        assert copy is not None
        assert (copy.body, copy.validators.etag, copy.fetched) == (b"<p>another text", '"2"', 1735776000.25)
        assert state.checked == 1735948800.0
        assert state.learned, "the estimator has heard of it"
        assert (state.crawls, state.changes) == (3, 1)
        assert [crawl.outcome for crawl in store.history(copy.url)] == [Outcome.UNCHANGED, Outcome.CHANGED, Outcome.NEW]
        bodies = [store.copy(f"http://www.example.org/{name}") for name in ("b?x=1", "c")]
        assert [each.body if each else None for each in bodies] == [b"<p>packed", b"abc"]
        kept = store.state("http://www.example.org/c")
        assert kept is not None
        assert kept.failures == 1
    assert "older 7" in run(tmp_path, "import", "--warc", "their.warc.gz")


def contents(path: Path) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for each in ArchiveIterator(str(path), parse_http=False):
        headers = {name: value for name, value in each.headers.items() if name != "WARC-Record-ID"}
        found.append((each.record_type, sorted(headers.items()), each.reader.read()))
    return sorted(found, key=str)


def test_what_we_write_comes_in_whole(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "afresh.toml").write_text("[store]\nversions = 5\n")
    (first / "their.warc").write_bytes(warc(*crawl_of_another(), packed=False))
    run(first, "import", "--warc", "their.warc")
    run(first, "export", "--warc", "ours.warc.gz", "--cdx", "ours.cdx")
    (second / "ours.warc.gz").write_bytes((first / "ours.warc.gz").read_bytes())
    run(second, "import", "--warc", "ours.warc.gz")
    run(second, "export", "--warc", "again.warc.gz")
    assert contents(second / "again.warc.gz") == contents(first / "ours.warc.gz")
    assert len(contents(first / "ours.warc.gz")) == 6  # four versions of three pages, a revisit, a 404
    # The index leads to the records.
    whole = (first / "ours.warc.gz").read_bytes()
    lines = [line.split(" ") for line in (first / "ours.cdx").read_text().splitlines()[1:]]
    assert len(lines) == 6
    for line in lines:
        piece = whole[int(line[9]) : int(line[9]) + int(line[8])]
        (found,) = ArchiveIterator(io.BytesIO(piece), parse_http=False)
        assert found.headers["WARC-Target-URI"] == line[2]
    # With the index alone, or with the file beside it.
    third = tmp_path / "third"
    third.mkdir()
    (third / "ours.cdx").write_bytes((first / "ours.cdx").read_bytes())
    assert json.loads(run(third, "import", "--cdx", "ours.cdx", "--json").splitlines()[-1])["pages"] == 3
    with Sqlite(third / "afresh.db", create=False) as store:
        assert store.totals().copies == 0
        assert len(store.history("http://www.example.org/a")) == 3
    (third / "afresh.db").unlink()
    (third / "ours.warc.gz").write_bytes(whole)
    run(third, "import", "--cdx", "ours.cdx")
    with Sqlite(third / "afresh.db", create=False) as store:
        assert store.totals().copies == 3


def test_hostile_files_cost_themselves_alone(tmp_path: Path) -> None:
    good = record("http://www.example.org/a", page(b"one"), "2025-01-01T00:00:00Z")
    plain = warc(good, packed=False)
    other = record("http://www.example.org/b", page(b"x" * 5_000), "2025-01-01T00:00:00Z")
    both = plain + warc(other, packed=False)
    bomb = page(gzip.compress(bytes(200 << 20)), b"Content-Encoding: gzip")
    length = f"Content-Length: {len(HEAD) + 5}".encode()
    files = {
        "cut.warc": both[:-2_000],
        "lies.warc": plain + both[len(plain) :].replace(b"Content-Length: ", b"Content-Length: 99", 1),
        "huge.warc": plain + both[len(plain) :].replace(b"Content-Length: ", b"Content-Length: 999999999", 1),
        "short.warc": plain.replace(length, b"Content-Length: 9", 1) + plain,
        "bomb.warc.gz": warc(record("http://www.example.org/z", bomb, "2025-01-01T00:00:00Z"), packed=True),
        "header.warc.gz": gzip.compress(b"WARC/1.1\r\n" + b"A" * (50 << 20)),
        "noise.warc": b"nothing of the sort" * 100,
        "empty.warc": b"",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in files:
        said = run(tmp_path, "import", "--warc", name, fails=True)
        assert "Traceback" not in said
        code = int(said.split()[0])
        assert code == (0 if name.startswith(("cut", "lies", "huge", "bomb", "empty")) else code)
        assert code in (0, 1, 2)
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        assert [state.page.url for _, state in store.states() if state.fetched] == ["http://www.example.org/a"]
    assert "There is no file" in run(tmp_path, "import", "--warc", "none.warc", fails=True)
    assert "is a folder" in run(tmp_path, "import", "--warc", str(tmp_path), fails=True)


def test_captures_that_are_left_out_are_named_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text("[fetch]\nmax_body = 1000\n")
    where = "http://www.example.org/"
    captures = [
        record(where + "good", page(b"one"), "2025-01-01T00:00:00Z"),
        record(where + "large", page(b"x" * 5_000), "2025-01-01T00:00:00Z"),
        record(where + "late", page(b"x"), "2099-01-01T00:00:00Z"),
        record(where + "early", page(b"x"), "0001-01-01T00:00:00Z"),
        record(where + "sometime", page(b"x"), "some day"),
    ]
    (tmp_path / "their.warc.gz").write_bytes(warc(*captures))
    said = run(tmp_path, "import", "--warc", "their.warc.gz")
    assert "Imported 1 capture of 1 new page: 1 new." in said
    assert all(name in said for name in ("too_large 1", "in_the_future 1", "before_1991 1", "no_date 1")), said


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_no_whole_answer_of_a_server_costs_itself_alone(tmp_path: Path, packed: bool) -> None:
    where, when = "http://www.example.org/", "2025-01-01T00:00:00Z"
    long = b"".join(b"X-%d: %s\r\n" % (nth, b"a" * 1_000) for nth in range(100))
    contents = {
        "head": HEAD + long + b"\r\nx",
        "tls": b"\x16\x03\x01 no answer" * 10,
        "status": b"HTTP/1.1 OK\r\n\r\nx",
        "far": b"HTTP/1.1 99999 OK\r\n\r\nx",
        "chunk": page(b"5\r\nhello\r\n9\r\nwor", b"Transfer-Encoding: chunked"),
        "short": page(b"x", b"Content-Length: 500"),
        "unpacked": page(b"<p>hello", b"Transfer-Encoding: chunked"),
        "chunks": page(b"5\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"),
    }
    (tmp_path / "their.warc").write_bytes(
        b"".join(warc(record(where + name, content, when), packed=packed) for name, content in contents.items())
    )
    said = run(tmp_path, "import", "--warc", "their.warc")
    assert "Imported 2 captures of 2 new pages: 2 new." in said
    assert "no_answer 4" in said
    assert "truncated 2" in said
    assert "Warning" not in said
    assert addresses(tmp_path) == [where + "unpacked", where + "chunks"]


def test_an_index_may_name_files_that_cannot_be(tmp_path: Path) -> None:
    line = "org,example)/ 20250101000000 http://example.org/ text/html 200 AAAA - - 1 0 "
    (tmp_path / "index.cdx").write_text(line + "x" * 5_000 + "\n")
    assert "Imported 1 capture of 1 new page" in run(tmp_path, "import", "--cdx", "index.cdx")
    assert "There is no file" in run(tmp_path, "import", "--warc", "x" * 5_000, fails=True)


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def addresses(folder: Path) -> list[str]:
    with Sqlite(folder / "afresh.db", create=False) as store:
        return [state.page.url for _, state in store.states() if state.fetched]


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path, packed: bool) -> None:
    where = [f"http://www.example.org/{nth}" for nth in range(5)]
    members = [warc(record(url, page(noise(3_000)), "2025-01-01T00:00:00Z"), packed=packed) for url in where]
    whole, begins = b"".join(members), [0, *accumulate(len(each) for each in members)]
    name = "cut.warc.gz" if packed else "cut.warc"
    for cut, left in ((begins[3] + 20, 3), (begins[3] + 200, 3), (begins[4] - 1_000, 3), (begins[5], 5)):
        (tmp_path / name).write_bytes(whole[:cut])
        (tmp_path / "afresh.db").unlink(missing_ok=True)
        said = " ".join(run(tmp_path, "import", "--warc", name).split())
        assert addresses(tmp_path) == where[:left]
        assert (f"it ends within the record at byte {begins[3]:,}" in said) == (left == 3), said
        assert ("Warning" in said) == (left == 3), said


def test_a_damaged_member_costs_itself_alone(tmp_path: Path) -> None:
    where = [f"http://www.example.org/{nth}" for nth in range(9)]
    members = [bytearray(warc(record(url, page(noise(3_000)), "2025-01-01T00:00:00Z"))) for url in where]
    begins = [0, *accumulate(len(each) for each in members)]
    members[2][500:800] = bytes(300)
    members[4][:50] = bytes(50)
    broken = record(where[6], page(noise(3_000)), "2025-01-01T00:00:00Z")
    members[6] = bytearray(gzip.compress(warc(broken, packed=False).replace(b"WARC-Target-URI", b"WARC-Xarget-URI")))
    (tmp_path / "their.warc.gz").write_bytes(b"".join(members))
    said = " ".join(run(tmp_path, "import", "--warc", "their.warc.gz").split())
    assert addresses(tmp_path) == [url for nth, url in enumerate(where) if nth not in (2, 4, 6)]
    assert all(f"the record at byte {begins[nth]:,} is damaged" in said for nth in (2, 4)), said
    assert f"the header of the record at byte {begins[6]:,} is broken" in said


def test_an_empty_member_is_not_the_end_of_a_file(tmp_path: Path) -> None:
    one, two, three = (
        warc(record(f"http://www.example.org/{name}", page(b"x"), "2025-01-01T00:00:00Z")) for name in "abc"
    )
    empty, blank = gzip.compress(b""), gzip.compress(b"\r\n\r\n")
    (tmp_path / "their.warc.gz").write_bytes(empty + one + empty * 3 + two + blank + empty + three + empty)
    said = run(tmp_path, "import", "--warc", "their.warc.gz")
    assert "Imported 3 captures of 3 new pages: 3 new." in said
    assert "Warning" not in said
    (tmp_path / "cut.warc.gz").write_bytes(one + empty + two[:-9])
    assert f"it ends within the record at byte {len(one + empty)}" in run(tmp_path, "import", "--warc", "cut.warc.gz")


def test_behind_a_damaged_member_it_is_not_looked_at_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gzip_members, "MAX_LOOKS", 500)
    one, two = (
        warc(record(f"http://www.example.org/{name}", page(noise(99)), "2025-01-01T00:00:00Z")) for name in "ab"
    )
    broken = two[:60] + bytes([two[60] ^ 255]) + two[61:]
    for count, pages in ((400, 2), (600, 1)):
        (tmp_path / f"{count}.warc.gz").write_bytes(one + broken + b"\x1f\x8b\x08" * count + two)
        (tmp_path / "afresh.db").unlink(missing_ok=True)
        assert "is damaged" in run(tmp_path, "import", "--warc", f"{count}.warc.gz")
        assert len(addresses(tmp_path)) == pages


def test_what_is_said_of_imported_pages_is_true(tmp_path: Path) -> None:
    url = "http://www.example.org/a"
    (tmp_path / "one.warc").write_bytes(warc(record(url, page(b"one"), "2025-01-01T00:00:00Z"), packed=False))
    run(tmp_path, "import", "--warc", "one.warc")
    shown = json.loads(run(tmp_path, "show", url, "--json"))
    assert 0.0 < shown["copy"]["fresh_probability"] < 1.0
    assert "never crawled" not in shown["why"]
    said = run(tmp_path, "show", url)
    assert "first turn" not in said
    (tmp_path / "one.cdx").write_text(
        " CDX N b a m s k r M S V g\n"
        "org,example,www)/a 20250101000000 http://www.example.org/a text/html 200 AAAA - - - - -\n"
        "org,example,www)/a 20250102000000 http://www.example.org/a text/html 200 AAAA - - - - -\n"
    )
    (tmp_path / "afresh.db").unlink()
    run(tmp_path, "import", "--cdx", "one.cdx")
    assert json.loads(run(tmp_path, "status", "--json"))["expected_freshness"] == 0.0
    said = run(tmp_path, "show", url)
    assert "never crawled" not in said
    assert "There is no copy of it yet" in " ".join(said.split())
    assert "not crawled yet" not in said


@pytest.mark.parametrize("versions", [0, 5])
def test_the_history_goes_through_a_file_and_back(tmp_path: Path, versions: int) -> None:
    """Of a server that sends no validators: every check has the bytes, and the latest ones are kept."""
    url, bodies = "http://www.example.org/a", (b"one", b"one", b"two", b"two", b"<p>three", b"<p>three", b"<p>three")
    if not versions:
        bodies += (b"<p class='other'>three", b"<p>three", b"<p>three")  # the same text
    theirs = [record(url, page(body), f"2025-01-{nth + 1:02}T00:00:00Z") for nth, body in enumerate(bodies)]
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "afresh.toml").write_text(f"[store]\nversions = {versions}\n")
    (first / "their.warc.gz").write_bytes(warc(*theirs))
    run(first, "import", "--warc", "their.warc.gz")
    run(first, "export", "--warc", "../ours.warc.gz")
    said = run(second, "import", "--warc", "../ours.warc.gz")
    assert "Left out" not in said
    found = []
    for folder in (first, second):
        with Sqlite(folder / "afresh.db", create=False) as store:
            state, copy = store.state(url), store.copy(url)
            assert state is not None
            assert copy is not None
            crawls = [(crawl.time, crawl.outcome, crawl.elapsed) for crawl in store.history(url, 100)]
            found.append((crawls, state.crawls, state.changes, copy.body, copy.checked))
    assert found[0] == found[1]
    assert (found[0][1], found[0][2]) == (len(bodies), 2)
    kinds = [each[0] for each in contents(tmp_path / "ours.warc.gz")]
    assert kinds.count(WarcRecordType.revisit) == (4 if versions else 1)
    run(second, "export", "--warc", "../again.warc.gz")
    assert contents(tmp_path / "again.warc.gz") == contents(tmp_path / "ours.warc.gz")
