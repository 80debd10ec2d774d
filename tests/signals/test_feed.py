"""Feeds in all their forms, and row G7: no exception whatever they hold, and duplicates merge."""

import json
import random
from pathlib import Path

import pytest

from afresh.signals.feed import MAX_ENTRIES, Item, read_feed
from afresh.signals.moments import moment

SUITES = Path(__file__).parents[2] / ".." / "shared" / "suites"
RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
 xmlns:content="c" xmlns:media="m"><channel><title>T</title><link>http://e.org/</link><ttl>60</ttl>
<atom:link rel="hub" href="http://hub.test/"/><atom:link rel="self" href="http://e.org/feed"/>
<item><title>One</title><link>http://e.org/1</link><guid isPermaLink="false">a</guid>
<pubDate>Thu, 01 Jan 1970 00:01:00 GMT</pubDate><media:link>http://no.test/</media:link></item>
<item><guid>http://e.org/2</guid><content:encoded>text</content:encoded></item>
<item><link>   </link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="/hub"/><link rel="self" href="/feed"/>
<entry><id>tag:1</id><link rel="edit" href="/edit"/><link href="/1"/><published>1970-01-01T00:00:00Z</published>
<updated>1970-01-01T00:01:00Z</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/" xmlns:dc="d"><channel><link>/</link></channel>
<item rdf:about="x"><link>http://e.org/1</link><dc:date>1970-01-01T00:01:00Z</dc:date></item></rdf:RDF>"""
JSON = {
    "version": "https://jsonfeed.org/version/1.1",
    "feed_url": "/feed",
    "hubs": [{"type": "WebSub", "url": "/hub"}, 7],
    "items": [{"id": "1", "url": "/1", "date_modified": "1970-01-01T00:01:00Z"}, {"id": "2"}, 5, {"url": 7}],
}


@pytest.mark.parametrize(
    ("text", "kind", "urls", "hubs", "itself"),
    [
        (RSS, "rss", ["http://e.org/1", "http://e.org/2"], ("http://hub.test/",), "http://e.org/feed"),
        (ATOM, "atom", ["/1"], ("/hub",), "/feed"),
        (RDF, "rdf", ["http://e.org/1"], (), ""),
        (json.dumps(JSON), "json", ["/1"], ("/hub",), "/feed"),
    ],
)
def test_every_form_is_read(text: str, kind: str, urls: list[str], hubs: tuple[str, ...], itself: str) -> None:
    feed = read_feed(text.encode())
    assert (feed.kind, [item.url for item in feed.items], feed.hubs, feed.itself) == (kind, urls, hubs, itself)
    assert feed.items[0].changed == 60.0
    assert not feed.problem
    assert feed.ttl == (3600.0 if kind == "rss" else 0.0)


def test_an_entry_that_was_changed_without_a_date_has_another_mark() -> None:
    one, other = (read_feed(RSS.replace("text", text).encode()).items for text in ("text", "other"))
    assert one[0] == other[0]
    assert one[1] != other[1]


def item(url: str, name: str, day: int) -> str:
    guid = f"<guid isPermaLink='false'>{name}</guid>"
    return f"<item><link>{url}</link>{guid}<pubDate>0{day} Jan 1970 00:00:00 GMT</pubDate></item>"


def test_duplicates_merge_in_any_order() -> None:
    rows = [item("/old", "a", 1), item("/new", "a", 3), item("/b", "b", 2), item("/b", "c", 1)]
    expected = {("/new", 2 * 86400.0), ("/b", 86400.0)}
    for order in (rows, rows[::-1]):
        feed = read_feed(f"<rss><channel>{''.join(order)}</channel></rss>".encode())
        assert {(each.url, each.changed) for each in feed.items} == expected


@pytest.mark.parametrize(
    "text",
    [
        *("2026-11-19T12:00:00Z", "2026-11-19T12:00:00+00:00", "2026-11-19t12:00:00z", "2026-11-19 12:00:00"),
        *("20261119T120000Z", "2026-11-19T12:00", "2026-11-19T13:00:00+01:00", "2026-11-19T12:00:00.000Z"),
        *("Thu, 19 Nov 2026 12:00:00 GMT", "Thu, 19 Nov 2026 12:00:00 +0000", "19 Nov 2026 12:00:00 GMT"),
        *("Thu, 19 Nov 2026 12:00 GMT", "Thu, 19 Nov 2026 07:00:00 EST", "19 Nov 26 12:00:00 GMT"),
        *("Thursday, 19 November 2026 12:00:00 GMT", "Thu Nov 19 12:00:00 2026", "2026/11/19 12:00:00"),
        *("Nov 19, 2026 12:00:00", "2026-W47-4T12:00:00Z", "2026-11-19T12:00:00+0000"),
    ],
)
def test_moments_are_read_in_twenty_spellings(text: str) -> None:
    assert moment(text) == 1795089600.0


def test_broken_feeds_are_read_as_far_as_they_go_and_never_an_exception() -> None:
    rng = random.Random(3)
    for text in (RSS, ATOM, RDF, json.dumps(JSON)):
        body = text.encode()
        for _ in range(150):
            start = rng.randrange(len(body))
            cut = (
                body[:start]
                + bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
                + body[start + rng.randrange(9) :]
            )
            assert isinstance(read_feed(cut).problem, str)
        assert read_feed(body[: len(body) // 2]).problem
    for body in (b"", b"\x00" * 100, b"[]", b"{}", b'{"items": 7}', b"<html><body>", b"<a>" * 100_000, b"plain text"):
        assert read_feed(body).problem
        assert not read_feed(body).items


def test_feeds_are_bounded() -> None:
    row = "<item><link>http://e.org/{}</link></item>"
    feed = read_feed(f"<rss><channel>{''.join(row.format(n) for n in range(MAX_ENTRIES + 5))}</channel></rss>".encode())
    assert (len(feed.items), bool(feed.problem)) == (MAX_ENTRIES, True)
    bomb = b'<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss><channel><item><link>&b;</link></item>'
    assert read_feed(bomb + b"</channel></rss>").items == ()
    assert read_feed(b"<rss><channel><item><link>" + b"x" * 100_000 + b"</link></item></channel></rss>").items == ()
    assert Item("/a").changed is None


@pytest.mark.skipif(not SUITES.exists(), reason="public test cases are not here")
def test_g7_public_hostile_documents_are_survived() -> None:
    files = [path for path in SUITES.rglob("*") if path.suffix in (".xml", ".rss", ".atom", ".json") and path.is_file()]
    for path in files[:400]:
        read_feed(path.read_bytes()[:1_000_000])
    assert files
