"""`afresh lab urlcache` over traces: of text, of ours, damaged, and what a crawl writes."""

import gzip
import json
import lzma
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import zstandard

from afresh.cli import main
from afresh.errors import ConfigError, InputError
from afresh.frontier import fingerprints, owner
from afresh.frontier.trace import MAGIC
from afresh.lab import urlcache
from afresh.lab.urlcache import POLICIES, misses, read_trace, sizes_for, study
from afresh.sources.web.url_trace import AT_ONCE, UrlTrace

LINKS = """# http://a.example/
http://a.example/1
http://b.example/1
http://a.example/1
# http://b.example/
http://a.example/1
http://b.example/2
http://c.example:8080/
"""


def test_text_is_read_however_it_is_packed(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(LINKS)
    (tmp_path / "t.gz").write_bytes(gzip.compress(LINKS.encode()))
    (tmp_path / "t.xz").write_bytes(lzma.compress(LINKS.replace("\n", "\r\n").encode()))
    first, *others = (read_trace(tmp_path / name) for name in ("t", "t.gz", "t.xz"))
    assert first.url.size == 6
    assert first.distinct == 4
    for other in others:
        assert np.array_equal(first.url, other.url)


def test_crossing_links_are_those_to_hosts_of_others(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(LINKS)
    trace = read_trace(tmp_path / "t")
    owners = 7
    whose = {name: owner(name, owners) for name in ("a.example", "b.example", "c.example:8080")}
    on = [("a.example", link) for link in LINKS.splitlines()[1:4]] + [
        ("b.example", link) for link in LINKS.splitlines()[5:]
    ]
    for each, found in enumerate(trace.crossing(owners)):
        expected = [u for page, u in on if whose[page] == each and whose[u.split("/")[2]] != each]
        assert found.tolist() == fingerprints(expected).tolist()
    assert [stream.size for stream in trace.crossing(1)] == [0]


def test_what_a_crawl_writes_is_read_back_and_continued(tmp_path: Path) -> None:
    urls = [f"http://a.example/{k}" for k in range(AT_ONCE // 2)]
    for _ in range(2):
        trace = UrlTrace(tmp_path / "own")
        trace.met("a.example", urls)
        trace.met("b.example", urls)
        trace.met("b.example", urls[:5])
        trace.close()
        trace.close()
        assert not trace.problem
    found = read_trace(tmp_path / "own")
    once = [*urls, *urls, *urls[:5]]
    assert np.array_equal(found.url, fingerprints(once * 2))
    assert len(set(found.page_host.tolist())) == 2
    assert (found.host[: len(urls)] == found.page_host[0]).all()
    # One that was killed in the middle of a frame is read as far as it goes, and never further than it is right.
    whole = (tmp_path / "own").read_bytes()
    (tmp_path / "own").write_bytes(whole[:-7])
    short = read_trace(tmp_path / "own")
    assert 0 < short.url.size < found.url.size
    assert np.array_equal(short.url, found.url[: short.url.size])


def test_what_a_crawl_met_is_in_the_file_within_seconds_whatever_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "own"
    crawl = f"""
import time
import tracemalloc
from pathlib import Path
from afresh.sources.web.url_trace import UrlTrace
trace = UrlTrace(Path({str(path)!r}))
trace.met("a.example", ["http://a.example/1", "http://a.example/2"])
print("met", flush=True)
time.sleep(60)
"""
    urls = ["http://a.example/1", "http://a.example/2"]
    for times in (1, 2):
        process = subprocess.Popen([sys.executable, "-c", crawl], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"met\n"
            size, end = path.stat().st_size, time.monotonic() + 20
            while path.stat().st_size == size and time.monotonic() < end:
                time.sleep(0.05)
        finally:
            process.kill()
            process.communicate()
        assert np.array_equal(read_trace(path).url, fingerprints(urls * times))


@pytest.mark.parametrize(
    "content",
    [b"", b"# http://a.example/\n", b"http://a.example/\n", b"\xfd7zXZ\x00broken", MAGIC, MAGIC + b"no frame at all"],
)
def test_what_is_no_trace_gets_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / ("t.xz" if content.startswith(b"\xfd") else "t")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"holds no links|no page was named|cannot be read|is damaged"):
        read_trace(path)


def test_a_small_file_that_holds_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urlcache, "MAX_LINKS", 200_000)
    packer = zstandard.ZstdCompressor().compressobj()
    packed = b"".join([*(packer.compress(bytes(16 << 20)) for _ in range(16)), packer.flush()])
    (tmp_path / "bomb").write_bytes(MAGIC + packed)
    (tmp_path / "text").write_bytes(b"# http://a.example/\n" + b"http://a.example/\n" * 200_001)
    tracemalloc.start()
    for name in ("bomb", "text"):
        with pytest.raises(InputError, match="more than 200,000 links"):
            read_trace(tmp_path / name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20  # and not 256 MB


def test_a_full_disk_leaves_no_half_frame_that_hides_what_a_later_crawl_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls, write = [f"http://a.example/{k}" for k in range(1_000)], os.write
    for full in (False, True, False):
        trace = UrlTrace(tmp_path / "own")
        with monkeypatch.context() as context:
            if full:
                context.setattr(os, "write", lambda file, body: write(file, body[: len(body) // 2]))
            trace.met("a.example", urls)
            trace.close()
        assert bool(trace.problem) == full
    assert np.array_equal(read_trace(tmp_path / "own").url, fingerprints(urls * 2))


def test_other_files_are_not_written_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="no file"):
        UrlTrace(tmp_path / "pipe")
    (tmp_path / "notes").write_text("mine, and longer than what a trace begins with")
    with pytest.raises(ConfigError, match="no trace"):
        UrlTrace(tmp_path / "notes")
    assert (tmp_path / "notes").read_text().startswith("mine")


def test_study_of_a_small_trace(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = ["# http://h0.example/"] + [
        f"http://h{int(k) % 9}.example/{int(k)}" for k in rng.zipf(1.4, 3_000) if k < 10_000
    ]
    (tmp_path / "t").write_text("\n".join(lines))
    trace = read_trace(tmp_path / "t")
    rows = {(row.trace, row.policy, row.size): row for row in study({"t": trace}, owners=3)}
    sizes = sizes_for(trace.distinct)
    assert {key[2] for key in rows if key[0] == "full"} == set(sizes)
    for size in sizes:
        at = {policy: rows["full", policy, size].misses for policy in POLICIES}
        assert at["infinite"] == trace.distinct
        assert at["infinite"] <= at["min"] <= min(at[name] for name in ("lru", "clock", "random", "sieve", "s3-fifo"))
        assert at["static"] <= at["static-online"] <= trace.url.size
    assert misses(trace.url, "lru", sizes[-1]) == trace.distinct
    assert rows["cross", "lru", 1].requests == sum(stream.size for stream in trace.crossing(3))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_text(LINKS)
    words = ("urlcache", str(tmp_path / "t"), "--sizes", "1,2", "--policy", "lru,min", "--json", "-")
    monkeypatch.setattr(sys, "argv", ["afresh", "lab", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    full = [row for row in json.loads(capsys.readouterr().out) if row["trace"] == "full"]
    assert [(row["policy"], row["size"], row["misses"], row["requests"]) for row in full] == [
        ("lru", 1, 5, 6),
        ("lru", 2, 4, 6),
        ("min", 1, 5, 6),
        ("min", 2, 4, 6),
    ]
