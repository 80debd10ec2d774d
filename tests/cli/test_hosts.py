"""Which hosts there are, and which are never to be asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from afresh.config import parse
from afresh.errors import ConfigError
from afresh.store import PageState, Record, Sqlite
from afresh.types import Crawl, HostState, Outcome, Page

SETTINGS = '[crawl]\nnever = ["example.org", "*.example.net"]\n'


def make(folder: Path) -> None:
    with Sqlite(folder / "afresh.db", create=True) as store:
        pages = [Page(f"https://{host}/{n}", host) for host in ("a.example", "www.example.net") for n in range(3)]
        store.add(pages)
        crawl = Crawl(pages[0].url, 1.0, Outcome.FAILED, reason="timeout")
        store.write([Record(crawl, PageState(pages[0]), host=HostState("a.example", 4e9, 2))])
        store.put({"robots https://a.example": json.dumps({"until": 4e9, "confirmed": 1.0, "robots": {"delay": 2.0}})})


def test_hosts_are_listed_with_what_is_known_of_them(afresh: Any, tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    lines = [json.loads(line) for line in afresh("hosts", "--json").stdout.splitlines()]
    assert [(each["host"], each["pages"], each["never"]) for each in lines] == [
        ("a.example", 3, False),
        ("www.example.net", 3, True),
        ("example.org", 0, True),
        ("*.example.net", 0, True),
    ]
    first = lines[0]
    assert (first["failures"], first["rests"] > 1e9, first["robots"]["delay"]) == (2, True, 2.0)
    assert lines[1]["robots"] is None
    text = afresh("hosts", "example.net").stdout
    assert "never asked" in text
    assert "a.example" not in text


def test_nothing_of_a_host_that_is_never_to_be_asked_is_added(afresh: Any, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    for command in (("add", "https://example.org/x"), ("crawl", "https://a.example.net/")):
        result = afresh(*command, "http://fine.example/")
        assert result.returncode == 2
        assert "never to be crawled" in result.stderr
    assert not (tmp_path / "afresh.db").exists()
    result = afresh("add", "--skip-bad", "https://EXAMPLE.org./x", "http://fine.example/", "--json")
    counts = json.loads(result.stdout)
    assert (counts["new"], counts["known"], counts["skipped"], len(counts["skipped_lines"])) == (1, 0, 1, 1)


@pytest.mark.parametrize("value", ['"example.org"', '["a b"]', '["http://example.org/x"]', "[1]", '["*"]', '["*.*"]'])
def test_what_is_no_host_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match=r"crawl\.never"):
        parse(f"[crawl]\nnever = {value}")
