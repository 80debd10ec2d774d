"""Sitemaps as sites really send them, and as nobody should: what is understood, what is left out, and what it costs."""

import asyncio
import gzip
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.signals import Entry, Sitemap, read_sitemap
from afresh.signals.markup import DEEPEST, LONGEST_TAG, MOST_NAMES, MOST_TAGS
from afresh.signals.sitemap import LARGEST, MOST_ENTRIES

DAY = 86400.0


def urlset(*entries: str) -> bytes:
    return f"<urlset>{''.join(f'<url>{entry}</url>' for entry in entries)}</urlset>".encode()


def urls(said: Sitemap) -> list[str]:
    return [entry.url for entry in said.entries]


A, B = "http://e.org/a", "http://e.org/b"


def test_all_that_is_said_of_a_page_is_read() -> None:
    said = read_sitemap(
        b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
        b"<loc>http://e.org/a</loc><lastmod>1970-01-02</lastmod><changefreq>Weekly</changefreq><priority>0.3</priority>"
        b"</url><url><loc>http://e.org/b</loc><lastmod>never</lastmod><changefreq>often</changefreq>"
        b"<priority>7</priority></url></urlset>"
    )
    assert said == Sitemap("urlset", (Entry(A, DAY, "weekly", 0.3), Entry(B)))


def test_an_index_names_further_sitemaps() -> None:
    said = read_sitemap(
        b"<sitemapindex><sitemap><loc>http://e.org/1.xml</loc><lastmod>1970-01-02T00:00:00Z</lastmod></sitemap>"
        b"<sitemap> http://e.org/2.xml </sitemap></sitemapindex>"
    )
    assert said == Sitemap("sitemapindex", (), (Entry("http://e.org/1.xml", DAY), Entry("http://e.org/2.xml")))


def test_feeds_are_sitemaps_too() -> None:
    rss = (
        b"<rss><channel><link>http://e.org/</link><item><link>http://e.org/a</link><guid>http://e.org/no</guid>"
        b"<pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item><item><guid>http://e.org/b</guid></item></channel></rss>"
    )
    assert read_sitemap(rss) == Sitemap("rss", (Entry(A, DAY), Entry(B)))
    rdf = (
        b"<rdf:RDF><channel/><item><link>http://e.org/a</link><dc:date>1970-01-02</dc:date></item>"
        b"<item><link>http://e.org/b</link></item></rdf:RDF>"
    )
    assert read_sitemap(rdf) == Sitemap("rdf", (Entry(A, DAY), Entry(B)))
    atom = (
        b"<feed><link href='http://e.org/'/><entry><link rel='edit' href='http://e.org/no'/><link href='http://e.org/a'/>"
        b"<updated>1970-01-02T00:00:00Z</updated></entry><entry><link rel='alternate' href='http://e.org/b'/>"
        b"</entry></feed>"
    )
    assert read_sitemap(atom) == Sitemap("feed", (Entry(A, DAY), Entry(B)))


@pytest.mark.parametrize(
    "body",
    [
        b"http://e.org/a\nhttp://e.org/b",
        b"\xef\xbb\xbfhttp://e.org/a\r\n\r\n# a remark\r\nhttp://e.org/b\r\n",
        b"  http://e.org/a  \rhttp://e.org/b",
        "http://e.org/a\nhttp://e.org/b\n".encode("utf-16"),
        b"\xff\nhttp://e.org/a\njavascript:alert(1)\nhttp://e.org/\xff\nhttp://e.org/b",
    ],
)
def test_plain_text_has_one_address_a_line(body: bytes) -> None:
    assert read_sitemap(body) == Sitemap("text", (Entry(A), Entry(B)))


@pytest.mark.parametrize(
    "body",
    [
        urlset(f"<loc>{A}</loc>", f"<loc>\n\t{B}\n</loc>"),
        b"\n\n  <?xml version='1.0'?>" + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
        b"\xef\xbb\xbf" + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>").decode().encode("utf-16"),
        b"<?xml version='1.0' encoding='shift_jis'?>" + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
        b"<?xml version='1.0' encoding='no-such-thing'?>" + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
        b"<?xml version='1.0' encoding='punycode'?>" + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>").replace(b"<urlset>", b"<urlset xmlns='http://wrong.example/'>"),
        urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>")
        .replace(b"</", b"</s:")
        .replace(b"<u", b"<s:u")
        .replace(b"<l", b"<s:l"),
        urlset(f"<LOC>{A}</LOC>", f"<loc><![CDATA[{B}]]></loc>"),
        urlset(f"<image:image><image:loc>http://e.org/i</image:loc></image:image><loc>{A}</loc>", f"<loc>{B}</loc>"),
        urlset(f"<image:loc>http://e.org/i</image:loc><loc>{A}</loc><loc>http://e.org/no</loc>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc><x><loc>http://e.org/no</loc></x>", "<loc></loc>", "", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc><n>a & b \x01</n>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc><!-- caf\xe9 -->").decode().encode("latin-1"),
        urlset(f"<loc>{A}</loc>", "<loc>http://e.org/&unknown;</loc>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc>", f"<loc>http://e.org/{'x' * 9_000}</loc>", f"<loc>{B}</loc>"),
        urlset(f"<loc>{A}</loc>", "<loc>ftp://e.org/</loc>", "<loc>javascript:alert(1)</loc>", f"<loc>{B}</loc>"),
        b'<!DOCTYPE urlset PUBLIC "-//x" "http://e.org/x.dtd">' + urlset(f"<loc>{A}</loc>", f"<loc>{B}</loc>"),
    ],
)
def test_what_sites_really_send_is_understood(body: bytes) -> None:
    said = read_sitemap(body)
    assert (urls(said), said.problem) == ([A, B], "")


@pytest.mark.parametrize(
    ("loc", "url"),
    [
        ("http://e.org/?a=1&amp;b=2", "http://e.org/?a=1&b=2"),
        ("http://e.org/?a=1&amp;amp;b=2", "http://e.org/?a=1&b=2"),
        ("http://e.org/?a=1&b=2&c", "http://e.org/?a=1&b=2&c"),
        ("http://e.org/caf&eacute;", "http://e.org/café"),
        ("http://e.org/caf&#233;", "http://e.org/café"),
        ("http://e.org/café", "http://e.org/café"),
        ("HTTP://E.org/", "HTTP://E.org/"),
        ("/a/b", "/a/b"),
    ],
)
def test_addresses_come_out_as_they_were_meant(loc: str, url: str) -> None:
    assert urls(read_sitemap(urlset(f"<loc>{loc}</loc>"))) == [url]


@given(st.integers(0, 40_000), st.sampled_from(["&", "&amp;", "&#38;", "&amp"]))
def test_a_reference_is_mended_wherever_pieces_are_cut(padding: int, written: str) -> None:
    body = urlset("<n>&</n>", f"<n>{'x' * padding}</n><loc>http://e.org/?a{written}b</loc>")
    assert urls(read_sitemap(body)) == ["http://e.org/?a&b" if written != "&amp" else "http://e.org/?a&ampb"]


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffd\ufffe\uffff"))


@given(st.lists(TEXT.filter(lambda text: text == text.strip() and "&amp;" not in text), max_size=20), st.booleans())
def test_what_is_written_is_read(paths: list[str], again: bool) -> None:
    addresses = [f"http://e.org/{path}" for path in paths]
    body = urlset(*(f"<loc>{escape(address)}</loc>" for address in addresses), *["<n>&</n>"] * again)
    said = read_sitemap(body)
    assert urls(said) == [address.strip() for address in addresses]
    assert said.problem == ("" if addresses else "It names no address.")


@given(st.data())
def test_a_document_that_breaks_off_keeps_what_was_read(data: st.DataObject) -> None:
    whole = urlset(*(f"<loc>http://e.org/{n}</loc>" for n in range(20)))
    cut = data.draw(st.integers(len("<urlset>"), len(whole) - 1))
    said = read_sitemap(whole[:cut])
    assert urls(said) == [f"http://e.org/{n}" for n in range(whole[:cut].count(b"</url>"))]
    assert said.problem == "It breaks off before its end."


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "It is empty."),
        (b"hello", "It is neither markup nor a list of addresses."),
        (b"\x1f\x8b\x08\0\0", "It is neither markup nor a list of addresses."),
        (b"<!doctype html><html><body>Not found</body></html>", "It is a page of HTML, not a sitemap."),
        (b"<opml><body/></opml>", "Its root is not that of a sitemap."),
        (b"<urlset></urlset>", "It names no address."),
        (b"<urlset><url></urlset>", "It is not well-formed in line 1; what comes after that was left out."),
        (b"<" * 1000, "It is not well-formed in line 1; what comes after that was left out."),
    ],
)
def test_what_is_no_sitemap_is_one_clear_sentence(body: bytes, problem: str) -> None:
    said = read_sitemap(body)
    assert (said.entries, said.children, said.problem) == ((), (), problem)


@given(st.binary(max_size=300) | st.binary(max_size=200).map(lambda junk: b"<urlset><url><loc>http://e.org/" + junk))
def test_nothing_raises(body: bytes) -> None:
    assert isinstance(read_sitemap(body), Sitemap)


MEGA = 1_000_000
MANY = b"".join(b"<url><loc>http://e.org/%d</loc></url>" % number for number in range(60_000))
ATTRIBUTES = b"<url " + b"".join(b"a%d='' " % number for number in range(MEGA))
HOSTILE = {
    "60,000 addresses": (MANY, "more than 50,000 addresses"),
    "nothing but tags": (b"<url/>" * (MOST_TAGS + 10), "more than 1,000,000 tags"),
    "nesting": (b"<a>" * MEGA, "nested more than 64 deep"),
    "many names": (b"".join(b"<n%d/>" % number for number in range(MEGA)), "more than 10,000 kinds of tags"),
    "many attributes": (ATTRIBUTES, "longer than 128 KiB"),
    "a long tag": (b"<url x='" + b"y" * 10 * MEGA, "longer than 128 KiB"),
    "a long comment": (b"<!--" + b"y" * 10 * MEGA, "longer than 128 KiB"),
    "a long instruction": (b"<?it " + b"y" * 10 * MEGA, "longer than 128 KiB"),
    "a long text": (b"<url><loc>" + b"y" * 10 * MEGA, "breaks off"),
    "a long section": (b"<url><loc><![CDATA[" + b"y" * 10 * MEGA, "breaks off"),
    "one entry of a million parts": (b"<url>" + b"<loc>x</loc>" * (MOST_TAGS + 10), "more than 1,000,000 tags"),
    "ampersands": (b"<url><loc>" + b"&" * 10 * MEGA, "more than 1,000,000 tags"),
    "named characters": (b"<url><loc>" + b"&nbsp;" * 2 * MEGA, "more than 1,000,000 tags"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_g6_a_hostile_sitemap_costs_little_time_and_memory(name: str) -> None:
    said_of_it, problem = HOSTILE[name]
    body = b"<urlset>" + said_of_it
    began = time.process_time()
    said = read_sitemap(body)
    assert time.process_time() - began < 20
    assert problem in said.problem
    assert len(said.entries) == (MOST_ENTRIES if name.startswith("60,000") else 0)
    # Memory is traced on a part: tracing takes many times as long.
    tracemalloc.start()
    read_sitemap(body[:MEGA])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * MEGA


def test_g6_the_bounds_are_where_they_are_said_to_be() -> None:
    assert len(read_sitemap(urlset(*[f"<loc>{A}</loc>"] * MOST_ENTRIES)).entries) == MOST_ENTRIES
    assert read_sitemap(urlset(*[f"<loc>{A}</loc>"] * MOST_ENTRIES)).problem == ""
    deep = DEEPEST - 2
    assert read_sitemap(urlset(f"<loc>{A}</loc>{'<a>' * deep}{'</a>' * deep}")).problem == ""
    assert read_sitemap(urlset(f"<loc>{A}</loc><a x='{'y' * (LONGEST_TAG // 2)}'/>")).problem == ""
    assert read_sitemap(urlset(f"<loc>{A}</loc>" + "".join(f"<n{n}/>" for n in range(MOST_NAMES // 2)))).problem == ""
    lines = read_sitemap(b"http://e.org/a\n" * (MOST_ENTRIES + 1))
    assert len(lines.entries) == MOST_ENTRIES
    assert "more than 50,000 addresses" in lines.problem


def test_g6_what_is_beyond_50_mib_is_left_out() -> None:
    body = urlset(f"<loc>{A}</loc>")[:-9] + b" " * LARGEST + b"<url><loc>http://e.org/late</loc></url></urlset>"
    said = read_sitemap(body)
    assert (urls(said), said.problem) == ([A], "It is larger than 50 MiB; the rest was left out.")


ENTITIES = {
    "a bomb": '<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {name} "{f"&{chr(ord(name) - 1)};" * 10}">' for name in "bcdefghi"),
    "quadratic": f'<!ENTITY i "{"a" * 100_000}">',
    "a circle": '<!ENTITY a "&i;"><!ENTITY i "&a;">',
    "a file": '<!ENTITY i SYSTEM "file://{file}">',
    "a server": '<!ENTITY i SYSTEM "http://127.0.0.1:{port}/">',
    "a parameter": '<!ENTITY % p SYSTEM "http://127.0.0.1:{port}/"> %p;',
}


@pytest.mark.parametrize("name", ENTITIES)
def test_g6_entities_are_refused_and_nothing_is_opened(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("http://e.org/secret")
    connected: list[object] = []

    async def go() -> Sitemap:
        server = await asyncio.start_server(lambda reader, writer: connected.append(writer), "127.0.0.1", 0)
        port = str(server.sockets[0].getsockname()[1])
        declared = ENTITIES[name].replace("{file}", str(tmp_path / "secret")).replace("{port}", port)
        body = f"<!DOCTYPE urlset [{declared}]>".encode() + urlset(f"<loc>{'&i;' * 1000}</loc>", f"<loc>{A}</loc>")
        said = await asyncio.to_thread(read_sitemap, body)
        await asyncio.sleep(0.05)
        server.close()
        return said

    assert asyncio.run(go()) == Sitemap(problem="It declares entities, which are not read.")
    assert connected == []


def test_g6_an_outside_list_of_entities_is_not_fetched() -> None:
    connected: list[object] = []

    async def go() -> Sitemap:
        server = await asyncio.start_server(lambda reader, writer: connected.append(writer), "127.0.0.1", 0)
        where = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x.dtd"
        body = f'<!DOCTYPE urlset SYSTEM "{where}">'.encode() + urlset(f"<loc>{A}</loc>")
        said = await asyncio.to_thread(read_sitemap, body)
        await asyncio.sleep(0.05)
        server.close()
        return said

    assert urls(asyncio.run(go())) == [A]
    assert connected == []


# What the public sitemaps and feeds hold: kind, addresses of pages, further sitemaps.
PUBLIC = {
    "sitemaps/atom.xml": ("feed", 1, 0),
    "sitemaps/do-not-visit.txt": ("text", 1, 0),
    "sitemaps/sitemap-with-bom.txt": ("text", 2, 0),
    "sitemaps/sitemap.badns.xml": ("urlset", 2, 0),
    "sitemaps/sitemap.index.xml": ("sitemapindex", 0, 15),
    "sitemaps/sitemap.ns.xml": ("urlset", 2, 0),
    "sitemaps/sitemap.txt": ("text", 2, 0),
    "sitemaps/sitemap.txt.gz": ("text", 5, 0),
    "sitemaps/xmlSitemap.gz": ("urlset", 5, 0),
    "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml": ("urlset", 74, 0),
    "sitemaps/extension/pagemaps-sitemap.xml": ("urlset", 2, 0),
    "sitemaps/extension/shinpaideshou-news-sitemap.xml": ("urlset", 3, 0),
    "sitemaps/extension/sitemap-images.xml": ("urlset", 1, 0),
    "sitemaps/extension/sitemap-links.xml": ("urlset", 3, 0),
    "sitemaps/extension/sitemap-mobile.xml": ("urlset", 3, 0),
    "sitemaps/extension/sitemap-news.xml": ("urlset", 2, 0),
    "sitemaps/extension/sitemap-videos-tvshow.xml": ("urlset", 1, 0),
    "sitemaps/extension/sitemap-videos.xml": ("urlset", 3, 0),
    "rss/feed.rss": ("rss", 4, 0),
    "rss/xmlRss_pubDate.xml": ("rss", 7, 0),
}


def test_every_public_sitemap_and_feed_is_read(suite: Callable[[str], Path]) -> None:
    """Of extensions (pictures, films, news, translations) only the pages are taken, so their details have no case."""
    folder = suite("crawler-commons")
    files = {str(path.relative_to(folder)) for part in ("sitemaps", "rss") for path in (folder / part).rglob("*.*")}
    assert files == set(PUBLIC)
    said = {}
    for name in files:
        body = (folder / name).read_bytes()
        said[name] = read_sitemap(gzip.decompress(body) if name.endswith(".gz") else body)
    assert {name: (each.kind, len(each.entries), len(each.children)) for name, each in said.items()} == PUBLIC
    assert {each.problem for each in said.values()} == {""}
    first = said["sitemaps/xmlSitemap.gz"].entries[0]
    assert first == Entry("http://www.example.com/", 1104537600.0, "monthly", 0.8)
    assert urls(said["sitemaps/xmlSitemap.gz"])[1] == "http://www.example.com/catalog?item=12&desc=vacation_hawaii"
    assert urls(said["rss/feed.rss"])[3] == "https://www.example.com/foo?q=a&l=fr"
    moments = [entry.lastmod for entry in said["rss/xmlRss_pubDate.xml"].entries]
    assert moments[:5] == [1483619691.0, 1483619692.0, 1483619693.0, 1483619694.0, 1483623295.0]
    assert said["sitemaps/atom.xml"].entries[0].url == "http://example.org/2003/12/13/atom03"


def test_every_public_bomb_is_refused(suite: Callable[[str], Path]) -> None:
    folder = suite("xml-bombs")
    for path in folder.iterdir():
        said = read_sitemap(path.read_bytes())
        assert (said.entries, said.children) == ((), ())
        assert said.problem.startswith(("It declares entities", "Its root is not", "It is a page of HTML"))
        declares = b"<!ENTITY" in path.read_bytes()
        assert said.problem.startswith("It declares entities") == declares
        # And the same inside a sitemap.
        start, _, rest = path.read_bytes().partition(b"]>")
        if rest and declares:
            inside = start + b"]>" + urlset(f"<loc>{A}</loc>", "<loc>http://e.org/&a;&ee;</loc>")
            assert read_sitemap(inside) == Sitemap(problem="It declares entities, which are not read.")


def test_any_bytes_of_a_sitemap_may_be_broken() -> None:
    """A thousand sitemaps with bytes changed at random: nothing raises, and most of the others' addresses come out."""
    rng, whole = random.Random(1), urlset(*(f"<loc>http://e.org/{n}</loc>" for n in range(50)))
    expected = {f"http://e.org/{n}" for n in range(50)}
    for _ in range(1_000):
        broken = bytearray(whole)
        for _ in range(3):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        said = read_sitemap(bytes(broken))
        assert len(set(urls(said)) - expected) <= 3
