import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.frontier.robots import LARGEST, LONGEST_LINE, Robots


def allowed(text: str | bytes, path: str, agent: str = "afresh") -> bool:
    return Robots(text).allowed(agent, f"https://example.org{path}")


def test_without_rules_all_is_allowed() -> None:
    for text in (b"", "", "Disallow:", "User-agent: *\nDisallow:", "User-agent: other\nDisallow: /"):
        assert allowed(text, "/x")


def test_the_longest_rule_decides_and_a_tie_allows() -> None:
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /t\nDisallow: /t"
    verdicts = [allowed(text, path) for path in ("/a", "/a/b", "/a/b/c", "/a/bc", "/t", "/z")]
    assert verdicts == [False, True, False, True, True, True]


def test_groups_of_one_agent_are_joined_and_replace_those_for_all() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-agent: Afresh\nDisallow: /a\n\nUser-agent: afresh/2.0\nDisallow: /b"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert Robots(text).allowed("afresh/1.0 (+https://example.org)", "https://example.org/c")
    assert not allowed(text, "/c", "other")
    assert not allowed(text, "/c", "afreshness")


def test_agents_above_one_another_share_their_rules() -> None:
    text = "User-agent: one\nUnknown: line\n\nUser-agent: two\nSitemap: x\nDisallow: /"
    assert not allowed(text, "/", "one")
    assert not allowed(text, "/", "two")


def test_a_delay_belongs_to_the_agents_above_it_and_does_not_part_them_from_their_rules() -> None:
    robots = Robots("User-agent: one\nCrawl-delay: 10\nUser-agent: two\nDisallow: /p\n\nUser-agent: *\nCrawl-delay: .5")
    assert [robots.crawl_delay(agent) for agent in ("one", "two", "three")] == [10.0, None, 0.5]
    assert not robots.allowed("one", "http://e.org/p")
    assert not robots.allowed("two", "http://e.org/p")


@pytest.mark.parametrize(
    ("written", "read"), [("2", 2.0), ("1e9", None), ("-1", None), ("99999999", 86400.0), ("nan", None), ("", None)]
)
def test_a_delay_is_a_plain_number_within_bounds(written: str, read: float | None) -> None:
    assert Robots(f"User-agent: *\nCrawl-delay: {written}").crawl_delay("afresh") == read


def test_escapes_are_compared_in_one_spelling() -> None:
    text = "User-agent: *\nDisallow: /ä\nDisallow: /%7euser\nDisallow: /a%2fb\nDisallow: /star-%2A"
    paths = ("/%C3%A4", "/~user", "/%7Euser", "/a%2Fb", "/star-*", "/a/b")
    assert [allowed(text, path) for path in paths] == [False, False, False, False, False, True]


def test_a_query_is_part_of_what_is_matched_and_a_fragment_is_not() -> None:
    text = "User-agent: *\nDisallow: /*?sort=\nDisallow: /x$"
    assert [allowed(text, path) for path in ("/a?sort=1", "/a", "/x", "/x#y", "/x?y")] == [
        False,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-8"])
def test_byte_order_marks_and_utf_16(encoding: str) -> None:
    assert not allowed("User-agent: *\nDisallow: /x".encode(encoding), "/x")
    assert allowed("User-agent: *\nDisallow: /x".encode(encoding), "/y")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends(end: str) -> None:
    assert not allowed(end.join(["User-agent: *", "", "Disallow: /x"]), "/x")


def test_html_in_its_place_says_nothing() -> None:
    page = "<!DOCTYPE html>\n<html><body style='color: red'>\n<p>Disallow: /</p>\n<a href='http://e.org/'>x</a></body></html>"
    assert allowed(page, "/")
    assert Robots(page).sitemaps == ()


def test_rules_before_any_agent_are_for_nobody() -> None:
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /x", "/")


def test_beyond_500_kib_nothing_counts_not_even_half_a_line() -> None:
    head = "User-agent: *\nDisallow: /x\n"
    filler = "# " + "z" * (LARGEST - len(head) - 13) + "\n"
    text = head + filler + "Disallow: /private\nAllow: /x\n"
    assert len(head + filler) == LARGEST - 10  # the limit falls right after "Disallow:"
    assert not allowed(text, "/x")
    assert allowed(text, "/private")
    assert allowed("User-agent: *\n" + "Disallow: /private\n" * 40_000 + "Disallow: /late", "/late")


def test_a_long_line_is_cut() -> None:
    start = "Disallow: /"
    line = start + "a" * (2 * LONGEST_LINE)
    assert not allowed("User-agent: *\n" + line, "/" + "a" * (LONGEST_LINE - len(start)))
    assert allowed("User-agent: *\n" + line, "/" + "a" * (LONGEST_LINE - len(start) - 1))


def test_a_hundred_thousand_agents_that_share_many_rules_cost_no_product() -> None:
    agents = "".join(f"User-agent: a\nuser-agent: {'bcdefghij'[n % 9]}{'klmnop'[n % 6]}\n" for n in range(5_000))
    text = agents + "".join(f"Disallow: /{n}\n" for n in range(10_000))
    many = "".join(f"User-agent: {n:05}\n".translate(str.maketrans("0123456789", "abcdefghij")) for n in range(100_000))
    tracemalloc.start()
    began = time.perf_counter()
    robots, crowd = Robots(text), Robots(many + "Disallow: /")
    took = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not robots.allowed("a", "http://e.org/9999")
    assert robots.allowed("zz", "http://e.org/9999")
    assert took < 20
    assert peak < 100e6
    assert crowd.allowed("jjjjj", "http://e.org/"), "beyond the limit its rules are gone"


def test_wildcard_bombs_are_matched_in_linear_time() -> None:
    bomb = Robots("User-agent: *\n" + "Disallow: /" + "*a" * 8_000 + "b\n")
    many = Robots("User-agent: *\n" + "".join(f"Disallow: /*a*a*{n}*b$\n" for n in range(20_000)))
    url = "http://e.org/" + "a" * 2_000
    began = time.perf_counter()
    assert bomb.allowed("afresh", url)
    assert many.allowed("afresh", url)
    assert time.perf_counter() - began < 2


def test_sitemaps_belong_to_nobody_and_come_once() -> None:
    robots = Robots("Sitemap: https://e.org/a.xml\nUser-agent: x\nSITEMAP:/b.xml # here\nSite-map: https://e.org/a.xml")
    assert robots.sitemaps == ("https://e.org/a.xml", "/b.xml")


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=40))
def test_no_bytes_upset_it(text: bytes, agent: str, url: str) -> None:
    robots = Robots(text)
    assert robots.allowed(agent, url) in (True, False)
    assert robots.crawl_delay(agent) is None or robots.crawl_delay(agent) >= 0


# RFC 9309 (2.2.2) asks that an escaped letter be unescaped on both sides, so these rules match; Google's cases say no.
BY_THE_RFC = "/foo/bar/%62%61%7A"


def test_googles_public_cases(suite: Callable[[str], Path]) -> None:
    folder, right, differing = suite("robots-google-spec"), 0, []
    for name in ("google_robotstxt_cases.json", "spec_test_cases.json"):
        for case in json.loads((folder / name).read_text())["cases"]:
            agent, url = (case[key].encode("latin-1").decode("utf-8", "surrogateescape") for key in ("agent", "url"))
            if Robots(case["robots"].encode("latin-1")).allowed(agent, url) == case["allowed"]:
                right += 1
            else:
                differing.append(case)
    assert right >= 540
    assert all(BY_THE_RFC in case["robots"] for case in differing), differing


def test_public_files_of_crawler_commons(suite: Callable[[str], Path]) -> None:
    folder = suite("crawler-commons") / "robots"
    files = {path.name: Robots(path.read_bytes()) for path in sorted(folder.glob("*.txt"))}
    assert len(files) >= 23
    for name in ("robots-with-utf8-bom.txt", "robots-with-utf16le-bom.txt", "robots-with-utf16be-bom.txt"):
        assert not files[name].allowed("foobot", "http://domain.com/profile"), name
    merged = files["crawl-delay-group-merging.txt"]
    assert [merged.crawl_delay(agent) for agent in ("mybot", "yourbot", "other")] == [10.0, None, 30.0]
    assert not merged.allowed("mybot", "http://e.org/private/")
    assert merged.allowed("mybot", "http://e.org/login/")
    assert not merged.allowed("yourbot", "http://e.org/login/")
    assert len(files["sitemap-robots-dedup.txt"].sitemaps) == len(set(files["sitemap-robots-dedup.txt"].sitemaps))
