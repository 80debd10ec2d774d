import sys
import time
import tracemalloc
from html import escape

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from afresh.frontier import Links, canonical, canonical_or_none, links
from afresh.frontier.links import _tags, _unescaped, wanted
from afresh.reading import read
from afresh.sim.web.options import SiteOptions
from afresh.sim.web.site import Site

HERE = "https://example.org/docs/page.html"


def found(html: str | bytes, **options: object) -> tuple[str, ...]:
    return links(html, HERE, **options).urls  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "html",
    [
        '<a href="x">text</a>',
        "<A HREF = 'x' >",
        "<a\nclass=y\thref=x>",
        "<a/href=x/>".replace("x/", "x"),
        '<map><area href="x#part"></map>',
        "<iframe src=x></iframe>",
        "<frameset><frame src=x></frameset>",
        '<blockquote cite="x">said</blockquote>',
        "<q cite=x>said</q>",
        '<link rel="next" href="x">',
        "<link rel='ALTERNATE' hreflang=de href=x>",
        '<meta http-equiv="Refresh" content="5; URL=x">',
        "<meta http-equiv=refresh content='0;url=\"x\"'>",
        "<meta http-equiv=refresh content='3,x'>",
        "<svg><a xlink:href=x>",
        "<noscript><a href=x></noscript>",
        '<a href="&#120;">',
        "<a href=&#x78>",
        '<a href="y" href="z"><a href="x">'.replace('<a href="y" href="z">', ""),
        '<base href="/docs/"><a href="x">',
        "<a href='\n x\t'>",
        "<!-- > --><a href=x><!-- <a href=y> -->",
        "<!--><a href=x><!---><!-- --!>",
        "<script>if (a<b) '<a href=y>'</script><a href=x>",
        "<style><a href=y></style><title><a href=y></title><textarea><a href=y></textarea><a href=x>",
        "<scripty><a href=x></scripty>",
        "<p title='<a href=y>'><a href=x>",
        "<a href=x><a href=y",
        "< a href=y><a href=x></ a href=y><?a href=y?><!a href=y>",
    ],
)
def test_every_tag_that_can_hold_a_link(html: str) -> None:
    assert found(html) == ("https://example.org/docs/x",)
    assert found(html.encode()) == ("https://example.org/docs/x",)


@pytest.mark.parametrize(
    "html",
    [
        "<a>nothing</a><a href><a href='#top'><a href=''>",
        "<a href='javascript:x()'><a href='mailto:a@b.c'><a href='data:,x'><a href='tel:1'><a href='ftp://e.org/'>",
        "<a href='http://'><a href='http://user:word@e.org/'>",
        "<a rel='nofollow' href=x><a rel='external NoFollow' href=y>",
        "<meta name=robots content='noindex, NOFOLLOW'><a href=x>",
        "<meta name=robots content='noindex nofollow'><a href=x>",
        "<a href=x><meta name=Robots content=none>",
        "<link rel=stylesheet href=x><link rel=icon href=x><link rel='dns-prefetch' href=//e.org><link href=x>",
        "<img src=x><script src=x></script><form action=x></form>",
        "<a href='page.html'><a href='/docs/page.html#part'>",
        "<plaintext><a href=x>",
        "<a href='" + "x" * 5_000 + "'>",
    ],
)
def test_what_is_no_link_to_another_page(html: str) -> None:
    assert found(html) == ()


def test_what_a_page_says_of_itself() -> None:
    html = (
        '<link rel="canonical" href="/docs/real"><link rel=canonical href=/second><meta name=robots content=noindex>'
        '<link rel="alternate" type="application/rss+xml" href="/feed"><a href=x>'
    )
    page = links(html, HERE)
    assert page.canonical == "https://example.org/docs/real"
    assert page.feeds == ("https://example.org/feed",)
    assert (page.noindex, page.nofollow) == (True, False)
    assert "https://example.org/docs/x" in page.urls
    assert links("<a href=x>", HERE, robots_tag="NoFollow") == Links(nofollow=True)


@pytest.mark.parametrize("name", ["robots", "afresh", " AFRESH "])
def test_no_page_that_forbids_this_robot_by_name_has_its_links_followed(name: str) -> None:
    html = f'<meta name="{name}" content="nofollow"><a href=x>'
    assert links(html, HERE) == Links(nofollow=True)
    assert links(html.replace("nofollow", "noindex"), HERE).noindex
    assert links(html.replace(name, "otherbot"), HERE).urls == ("https://example.org/docs/x",)


def test_files_and_forms_on_request() -> None:
    html = (
        "<img src=a srcset='b 1x, c,d 2x,e'><video poster=f><source src=g></video><script src=h></script>"
        "<link rel='stylesheet' href=i><object data=j></object><form action=k></form><form method=POST action=l></form>"
    )
    page = links(html, "https://e.org/", files=True, forms=True)
    assert [url.rpartition("/")[2] for url in page.files] == ["a", "b", "c,d", "f", "g", "h", "i", "j"]
    assert page.urls == ("https://e.org/k",)


def test_references_in_an_address_are_decoded_and_parameters_are_not_mistaken_for_them() -> None:
    html = '<a href="?a=1&amp;b=2&copy=3&copyright=4&lt&nonsense;&reg;">'
    assert found(html) == (canonical_or_none("?a=1&b=2&copy=3&copyright=4<&nonsense;®", HERE),)


def test_each_link_comes_once_in_order_and_no_more_than_the_limit() -> None:
    html = "".join(f"<a href='p{n % 700}#s{n}'>" for n in range(2_000))
    page = links(html, HERE, most=500)
    assert page.urls == tuple(f"https://example.org/docs/p{n}" for n in range(500))
    assert page.left_out == 200
    assert len(found(html)) == 700


@pytest.mark.parametrize(
    "link",
    ["/{n}/" + "a" * 1_900, "/{n}&amp;" + "a" * 1_900, "?{n}=" + "%41" * 600, "x:{n}" + "y" * 2_000],
    ids=["plain", "escaped", "percent", "no address"],
)
@pytest.mark.parametrize("tag", ["<a href='{}'>", "<a rel=x href='{}'>", "<link rel=next href='{}'>", "<img src='{}'>"])
def test_no_page_offers_more_links_than_so_many_bytes(tag: str, link: str) -> None:
    html = "".join(tag.format(link.format(n=n)) for n in range(2_000))
    page = links(html, HERE, files=True, most_bytes=100_000)
    offered = page.urls + page.files
    assert sum(map(len, offered)) <= 100_000 + 4_000
    assert len(offered) >= 40 or link.startswith("x:")
    assert page.left_out >= 2_000 - 170


def test_short_links_of_a_page_with_a_long_address_are_counted_as_long_as_they_are() -> None:
    page = links(
        "".join(f"<a href='{n}'>" for n in range(1_000)), "http://e.org/" + "a" * 1_900 + "/", most_bytes=100_000
    )
    assert len(page.urls) == 53
    assert page.left_out == 947


@pytest.mark.parametrize(
    ("page", "content_type"),
    [
        ("<a href='/ü'>".encode(), ""),
        ("<a href='/ü'>".encode("utf-8-sig"), "text/html; charset=latin1"),
        ("<a href='/ü'>".encode("utf-16"), "text/html; charset=utf-8"),
        ("<a href='/ü'>".encode("latin-1"), "text/html; charset=ISO-8859-1"),
        ("<meta charset='windows-1252'><a href='/ü'>".encode("latin-1"), ""),
        ("<meta charset=utf-16><a href='/ü'>".encode(), ""),
        ("<a href='/ü'>".encode(), "text/html; charset=x-nonsense"),
        ("<a href='/ü'>".encode(), "text/html; charset=base64"),
    ],
)
def test_encodings_and_lies_about_them(page: bytes, content_type: str) -> None:
    assert links(page, HERE, content_type=content_type).urls == ("https://example.org/%C3%BC",)


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 400_000,
        "<ul><li>" * 200_000,
        "<p>" + "".join(f"<b id={n}>" for n in range(1_000)) + "</p>" + "<p>x" * 300_000,
        "<a " + " ".join(f"x{n}" for n in range(200_000)) + " href=y>",
        "<span>" * 100_000 + "</x>" * 100_000,
        "<!--" * 400_000,
        "<!-->-" * 200_000,
        '<a href="' * 200_000,
        "<a href='x" * 200_000,
        "<script>" + "</" * 500_000,
        "<script></script" * 100_000,
        "<" * 1_000_000,
        "<a href=&" + "&amp" * 300_000,
        "<a href=" + "../" * 300_000 + ">",
        "<meta http-equiv=refresh content='" + " " * 1_000_000 + "'>",
        "<meta http-equiv=refresh content='" + "0;" * 500_000 + "'>",
        "<a rel='" + "nofollo " * 100_000 + "' href=x>",
        "<img srcset='" + "a, " * 300_000 + "'>",
    ],
    ids=range(18),
)
def test_bombs_cost_no_more_than_their_size(html: str) -> None:
    links("<a href=x>", HERE)  # compile
    tracemalloc.start()
    began = time.process_time()
    links(html, HERE, files=True)
    took = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 3
    assert peak < 60e6


TEXT = st.text(st.sampled_from("ab <>&;='\"/!-?#\n"), max_size=12)
ATTRIBUTE = st.one_of(
    st.builds(' href="{}"'.format, TEXT.map(lambda text: escape(text))),
    st.builds(" href={}".format, st.text("abc/?&;=", min_size=1, max_size=8)),
    st.sampled_from([" href", " HREF='x'", " x", " /", " title='<a href=no>'", ' rel="x"', "/", " href = y"]),
)
PIECE = st.one_of(
    st.builds("<a{}>".format, st.lists(ATTRIBUTE, max_size=3).map("".join)),
    st.sampled_from(
        ["</a>", "<p>", "<b>", "<!-- x -->", "<!--", "-->", "<!x>", "<?y?>", "</ z>", "text", "a<b", "</>"]
    ),
    st.sampled_from(
        ["<script>", "</script>", "<style>", "</style >", "<title>", "</title/>", "<div class=x>", "</div>"]
    ),
    TEXT.map(lambda text: text.replace("<", "")),
)


@given(st.lists(PIECE, max_size=12).map("".join))
def test_the_tags_are_those_that_a_whole_parser_finds(html: str) -> None:
    html = "<!DOCTYPE html><body>" + html
    parsed = [node.attributes["href"] or "" for node in LexborHTMLParser(html).css("a[href]")]
    ours = set()
    for _, found in _tags(read(html.encode(), wanted=wanted()), files=False):
        if isinstance(found, dict):
            ours |= {found["href"]} if "href" in found else set()
        else:  # as written, without the fragment
            ours.add(_unescaped(found.decode()))
    # The tree repeats a link that is left open across blocks, so its links are compared as a set.
    assert {_without_fragment(link) for link in parsed} - {""} == {_without_fragment(link) for link in ours} - {""}, (
        html
    )


def _without_fragment(link: str) -> str:
    return link.partition("#")[0]


ADDRESSES = [
    "a.html",
    "b.html#x",
    "a.html#top",
    "/c?d=1",
    "../e",
    "?page=2",
    "",
    "#here",
    "http://f.org/g",
    "&#97;.html",
]
ADDRESSES += ["b.html&amp;x#y", " a.html", "mailto:x@y.z", "http://[/"]
ANCHOR = st.builds(
    '<{} {}href="{}"{}>'.format,
    st.sampled_from(["a", "a", "a", "area", "base"]),
    st.sampled_from(["", "class=x ", "rel=nofollow "]),
    st.sampled_from(ADDRESSES),
    st.sampled_from(["", " rel=next", " href=z"]),
)


@given(st.lists(st.tuples(st.sampled_from(["one", "two?q", "../three"]), st.lists(ANCHOR, max_size=6))))
def test_what_was_met_in_the_folder_need_not_be_read_again(pages: list[tuple[str, list[str]]]) -> None:
    """Whatever was met, nothing new is missed: all pages together lead to the same addresses."""
    met: dict[str, set[bytes]] = {}
    every: set[str] = set()
    unmet: set[str] = set()
    for name, anchors in pages:
        url = canonical(name, "http://e.org/docs/")
        folder = met.setdefault(url[: url.rindex("/")], set())
        every |= set(links("".join(anchors), url).urls)
        found = links("".join(anchors), url, met=folder)
        unmet |= set(found.urls)
        folder |= set(found.written)
    # A page's link to itself is none; as a link of another page it is one, which is met by then all the same.
    own = {canonical(name, "http://e.org/docs/") for name, _ in pages}
    assert unmet - own == every - own


def test_a_link_is_kept_as_written_with_what_it_means() -> None:
    found = links(b'<a href="b.html#x"><a href="b.html#y"><a href="?p=1"><a href="mailto:x">', "http://e.org/a/")
    assert found.written == {b"b.html": "http://e.org/a/b.html", b"mailto:x": None}
    assert links(b'<meta name=robots content=nofollow><a href="b">', "http://e.org/").written == {}


def test_all_links_of_the_synthetic_web_are_found() -> None:
    site = Site(SiteOptions(pages=60, hosts=3, seed=5))
    for page in range(60):
        url = canonical_or_none(site.url(page, 8400))
        assert url
        body = site.body(page, 0, port=8400)
        parsed = (node.attributes["href"] or "" for node in LexborHTMLParser(body).css("a[href]"))
        expected = {canonical_or_none(link, url) for link in parsed if not link.startswith("#")} - {url}
        assert set(links(body, url).urls) == expected
        assert expected


HEADS = st.builds(
    lambda tag, attributes: f"<{tag} {' '.join(attributes)}>",
    st.sampled_from(["link", "meta", "LINK", "a"]),
    st.lists(
        st.builds(
            lambda name, mark, value: f"{name}={mark}{value}{mark}",
            st.sampled_from(["rel", "href", "type", "name", "http-equiv", "content", "title", "REL"]),
            st.sampled_from(['"', "'", ""]),
            st.sampled_from(
                [
                    *("x", "/y", "canonical", "next", "nofollow", "stylesheet", "alternate", "alternate stylesheet"),
                    *("application/rss+xml", "robots", " Robots", "refresh", "0;url=z", "none", "ne&#120;t", "icon up"),
                ]
            ),
        ),
        max_size=4,
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(HEADS, max_size=6))
@example(
    [
        "<link rel=\"x' href='y\">",
        "<link rel='x' href='y'>",
        "<link rel='next\" href=\"y'>",
        '<link rel="next" href="y">',
    ]
)
@example(['<link rel="alternate stylesheet" type="application/rss+xml" href=x>'])
def test_tags_that_say_nothing_are_skipped_and_no_others(heads: list[str]) -> None:
    page = "".join(heads) + "<a href=last>"
    quick = links(page, "http://e.org/"), links(page, "http://e.org/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["afresh.frontier.links"], "_says_nothing", lambda tag, raw: False)
        assert quick == (links(page, "http://e.org/"),) * 2
