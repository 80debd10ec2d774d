"""Access logs of every form, and lines that are none."""

import time

import pytest

from afresh.errors import SignalError
from afresh.signals.access_log import Skipped, request_of
from afresh.signals.popularity import read_report
from afresh.types import Request

WHEN = 971211336.0
COMMON = '1.2.3.4 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.html?x=1 HTTP/1.0" 200 2326'


@pytest.mark.parametrize(
    "line",
    [
        COMMON,
        COMMON + ' "https://e.org/start" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
        "e.org:443 " + COMMON,
        COMMON.replace("/a.html", "https://e.org/a.html"),
        COMMON.replace(" 200 ", " 304 "),
        f'{{"url": "https://e.org/a.html?x=1", "time": {WHEN}}}',
        '{"request": {"method": "GET", "host": "e.org", "uri": "/a.html?x=1"}, "ts": 971211336, "status": 200}',
        '{"path": "/a.html?x=1", "@timestamp": "2000-10-10T13:55:36-07:00"}',
        '{"request_uri": "/a.html?x=1", "time": "10/Oct/2000:13:55:36 -0700", "http_host": "e.org"}',
    ],
)
def test_each_form_is_read(line: str) -> None:
    assert request_of(line, site="https://e.org") == Request("https://e.org/a.html?x=1", WHEN, 1.0)


def test_counts_are_read_and_headings_are_not() -> None:
    assert request_of("https://e.org/,12.5\n", time=3.0) == Request("https://e.org/", 3.0, 12.5)
    assert request_of("/a,3", site="https://e.org/", time=3.0) == Request("https://e.org/a", 3.0, 3.0)
    assert [request_of(line) for line in ("page,count", "", "# comment")] == [None, None, None]


@pytest.mark.parametrize("change", [("GET", "POST"), (" 200 ", " 404 "), (" 200 ", " 500 ")])
def test_what_was_not_served_does_not_count(change: tuple[str, str]) -> None:
    kind = Skipped.NO_READING if change[0] == "GET" else Skipped.FAILED
    assert request_of(COMMON.replace(*change), site="https://e.org") is kind


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "\0\0\0",
        COMMON.replace("Oct", "Okt"),
        COMMON.replace("10/Oct", "32/Oct"),
        '{"url": ',
        "{" * 60_000,
        '{"x": 1}',
        '{"url": "ftp://e.org/"}',
        "https://e.org/,minus",
        "https://e.org/,-3",
        "https://e.org/,nan",
        "https://e.org/,1e999",
        '{"url": "https://e.org/", "time": 1e300}',
        '{"url": "https://e.org/", "time": "yesterday"}',
        "x" * 100_000,
    ],
)
def test_what_cannot_be_read_is_said(line: str) -> None:
    with pytest.raises(SignalError):
        request_of(line, site="https://e.org")


def test_a_path_without_a_site_is_said() -> None:
    with pytest.raises(SignalError, match="no site is given"):
        request_of(COMMON)


@pytest.mark.parametrize("piece", ['"\\', "a ", "[", '"', "\\\\", " ["])
def test_hostile_lines_take_no_longer_than_others(piece: str) -> None:
    line = ('a b c [d] "' + piece * 60_000)[:60_000]
    began = time.perf_counter()
    for _ in range(5):
        try:
            request_of(line)
        except SignalError:
            continue
    assert time.perf_counter() - began < 1.0


def test_reports_by_rank_and_count_of_pages_and_hosts() -> None:
    assert read_report(["1,a.example", "2,b.example"]).hosts == {"a.example": 1.0, "b.example": 0.5}
    report = read_report(["page,count", "https://e.org/a,30", "e.org,10", "bad line", "x,y"])
    assert (report.pages, report.hosts, report.bad) == ({"https://e.org/a": 30.0}, {"e.org": 10.0}, [4, 5])
    said = report.relative({"e.org": 4}, [("https://e.org/a", "e.org"), ("https://e.org/b", "e.org"), ("u", "x.org")])
    assert said["https://e.org/a"] == pytest.approx(12 * said["https://e.org/b"])
    assert said["u"] == said["https://e.org/b"] < 1.0
    assert sum(said.values()) == pytest.approx(3.0)
    with pytest.raises(SignalError):
        read_report(["hello", "world"])
