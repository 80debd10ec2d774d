"""`afresh diff`: which versions are meant, and what is printed of them."""

import json
import time
from dataclasses import replace
from pathlib import Path

from afresh.store import KeepVersions, PageState, Record, Sqlite
from afresh.types import Copy, Crawl, Outcome, Page, Validators

URL = "https://example.com/"
HOSTILE = "Open \x1b[31m\x1b]0;title\x07 9 to 5 \u202e"


def crawled(kept: Sqlite, bodies: list[str], began: float, apart: float = 60.0) -> None:
    """A page whose crawls found these bodies, one a minute."""
    kept.add([Page(URL, "example.com")])
    state = PageState(Page(URL, "example.com"))
    for nth, body in enumerate(bodies):
        when, validators = began + apart * nth, Validators(fingerprint=nth + 1)
        outcome = Outcome.CHANGED if nth else Outcome.NEW
        state = PageState(state.page, None, validators, when, when, crawls=nth + 1, changes=nth)
        copy = Copy(URL, body.encode(), "text/html", when, when, validators)
        kept.write([Record(Crawl(URL, when, outcome, significance=0.1), state, copy)])


def test_a_page_is_compared_with_any_of_its_versions(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    began = time.time() - 3600
    rest = "".join(f"<p>Paragraph number {nth} stays." for nth in range(8))
    pages = [f"<h1>Café</h1><p>Open 9 to 5 daily{rest}", f"<h1>Café</h1><p>Open 9 to 6 daily{rest}<p>New"]
    pages.append(f"<h1>Café</h1><p>{HOSTILE}{rest}<p>{'word ' * 60}")
    with Sqlite(tmp_path / "afresh.db", keep_versions=KeepVersions(10)) as kept:
        crawled(kept, pages, began)
    listed = json.loads(afresh("diff", URL, "--list", "--json").stdout)["versions"]
    assert [(each["number"], each["replaced_by"]) for each in listed] == [(3, 0), (2, 3), (1, 2)]
    first = afresh("diff", URL, "--from", "1", "--to", "2").stdout
    assert "~ Open 9 to [-5-]{+6+} daily\n" in first
    assert "+ New\n" in first
    assert "  … 4 blocks unchanged\n" in first
    shown = afresh("diff", URL).stdout  # the last change
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert max(map(len, shown.splitlines())) <= 80
    assert "from number 2" in shown
    ago = json.loads(afresh("diff", URL, "--from", "3570s", "--json").stdout)  # half a minute after the first
    assert (ago["from"]["number"], ago["to"]["number"]) == (1, 3)
    rows = [row["kind"] for row in ago["rows"]]
    assert set(rows) <= {"changed", "added", "removed"}
    for row in ago["rows"]:
        assert "".join(text for kind, text in row["pieces"] if kind != "new") == (row["before"] or "")


def test_a_version_is_known_by_when_it_appeared_not_by_when_its_bytes_were_last_got(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    began = time.time() - 7200.0
    with Sqlite(tmp_path / "afresh.db", keep_crawls=9, keep_versions=KeepVersions(10)) as kept:
        crawled(kept, ["<p>one", "<p>two"], began, apart=600.0)
        state = kept.state(URL)
        assert state is not None
        for nth in range(3, 16):  # each brings the same bytes; the crawls of both versions leave the history
            when = began + 600.0 * nth / 2.0
            state = replace(state, fetched=when, checked=when, crawls=nth + 1)
            copy = Copy(URL, b"<p>two", "text/html", when, when, state.validators)
            kept.write([Record(Crawl(URL, when, Outcome.UNCHANGED), state, copy)])
        new, old = kept.versions(URL)
        assert (new.number, new.appeared, new.fetched) == (2, began + 600.0, began + 4500.0)
        assert (old.number, old.appeared, old.replaced) == (1, began, began + 600.0)
    listed = json.loads(afresh("diff", URL, "--list", "--json").stdout)["versions"]
    assert [each["appeared"] for each in listed] == [began + 600.0, began]
    for ago, number in (("60min", 2), ("105min", 2), ("115min", 1)):
        assert json.loads(afresh("diff", URL, "--from", ago, "--json").stdout)["from"]["number"] == number
    assert "No version 130min is kept" in afresh("diff", URL, "--from", "130min").stderr


def test_what_cannot_be_compared_gets_a_sentence_and_a_hint(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with Sqlite(tmp_path / "afresh.db") as kept:
        crawled(kept, ["<p>one", "<p>two"], 100.0)
        kept.add([Page("https://example.com/new", "example.com")])
        page = Page("https://example.com/same", "example.com")
        state = PageState(page, None, Validators(), 5.0, 5.0, crawls=1)
        first = Record(Crawl(page.url, 5.0, Outcome.NEW), state, Copy(page.url, b"<p>one", "text/html", 5.0, 5.0))
        kept.write([first], pages=[page])
    for words, sentence, hint in (
        ((URL,), "No version of https://example.com/ before that is kept.", "versions = 10 below [store]"),
        (("https://example.com/new",), "There is no copy", "fetch it first"),
        (("https://example.com/same",), "has not changed yet", "--list"),
        (("https://example.com/strange",), "is not kept", "afresh add"),
        ((URL, "--from", "77"), "No version 77 is kept.", "--list"),
        ((URL, "--from", "x"), "'x' is neither a number nor a time.", "2d"),
    ):
        done = afresh("diff", *words)
        assert done.returncode == 2, done
        assert sentence in done.stderr
        assert hint in done.stderr
