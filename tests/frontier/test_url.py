import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import ada_url
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.errors import InputError
from afresh.fetch.target import target
from afresh.frontier import Resolver, canonical, canonical_or_none, host_of, parse


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a/./b/../c", "https://example.com/a/c"),
        (" https://example.com/#top ", "https://example.com/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://e.com/?", "http://e.com/"),
        ("http://e.com/?#a?", "http://e.com/"),
        ("http://e.com/%66oo%2fbar%c3%a9%7E?q=%61%26", "http://e.com/foo%2Fbar%C3%A9~?q=a%26"),
        ("http://e.com/100%", "http://e.com/100%"),
        ("http://e.com/a@b", "http://e.com/a@b"),
        ("http://e.com\\a\tb", "http://e.com/ab"),
        ("http://e.com/\ud800", "http://e.com/%EF%BF%BD"),
    ],
)
def test_one_spelling(given: str, expected: str) -> None:
    assert canonical(given) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://e.com/a?x=1&y=2", "http://e.com/a?y=2&x=1"),
        ("http://e.com/a//b", "http://e.com/a/b"),
        ("http://e.com/a/", "http://e.com/a"),
        ("http://e.com./", "http://e.com/"),
        ("http://e.com/A", "http://e.com/a"),
        ("http://e.com/a%2Fb", "http://e.com/a/b"),
        ("http://e.com/a?b=", "http://e.com/a?b"),
        ("http://e.com/a?q=a+b", "http://e.com/a?q=a%20b"),
        ("http://e.com/a%2541", "http://e.com/a%41"),
        ("http://e.com/;jsessionid=1", "http://e.com/"),
        ("http://e.com/", "https://e.com/"),
    ],
)
def test_what_may_be_two_pages_stays_two(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


def test_relative_to_a_base() -> None:
    assert canonical("../b", "http://example.com/x/y/") == "http://example.com/x/b"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http://",
        "http://a b/",
        "http://e.com/" + "x" * 3000,
    ],
)
def test_bad_urls_are_one_clear_sentence(bad: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical(bad)
    assert caught.value.hint
    assert len(caught.value.message) < 250
    assert canonical_or_none(bad) is None


@pytest.mark.parametrize(
    "bad", ["http://me:hunter2@example.com/", "http://hunter2@example.com/", "http://a@hunter2@c/"]
)
def test_a_secret_is_not_repeated(bad: str) -> None:
    with pytest.raises(InputError, match="user name or password") as caught:
        canonical(bad)
    assert "hunter2" not in str(caught.value)


def test_host_has_its_port() -> None:
    assert host_of("http://example.com:8080/x") == "example.com:8080"
    assert host_of("http://example.com/x") == "example.com"


def test_parse_gives_the_plain_result_and_its_parts() -> None:
    parsed = parse("//user:word@Example.org:81/a/../b?q#top", "https://base.example/")
    assert parsed == "https://user:word@example.org:81/b?q#top"
    assert parsed.href == str(parsed)
    parts = (parsed.protocol, parsed.username, parsed.password, parsed.hostname, parsed.port, parsed.host)
    assert parts == ("https:", "user", "word", "example.org", "81", "example.org:81")
    assert (parsed.pathname, parsed.search, parsed.hash) == ("/b", "?q", "#top")
    assert parse("mailto:a@b.c") == "mailto:a@b.c"
    assert parse("//no-base") is None
    with pytest.raises(AttributeError):
        _ = parsed.nonsense


# Pieces that meet the edges of the fast path: dot segments, odd hosts, escapes, colons, fragments.
PLAIN = (
    r"a B . .. ../ / // ? # %41 %2f %2e % : @ http: https:// h.com 0x7f.1 é \ ; &x=1 ~ ' [ xn--a :80 :8080 - _ | + 1.2"
)
PIECES = st.sampled_from([*PLAIN.split(), " ", "\t", '"', "\ud800"])
LINKS = st.lists(PIECES, max_size=8).map("".join)
BASES = [
    "http://h.com/x/y.html?q",
    "https://1.2.3.4:8080/",
    "http://h.com",
    "http://h.com/a%41/.b/",
    "http://h.com/a//b",
    "http://0x7f.1/a/b",
    "http://h.com:80/a/",
    "http://H.com/a/",
    "http://h.com/a/../b",
    "http://h.com/a?",
    "http://u@h.com/a",
    "nonsense",
]


@given(st.lists(LINKS, max_size=6), st.sampled_from(BASES))
@example(["http://1.2/x", "http://1.2/y"], BASES[0])
@example(["https://h.com:443/a", "https://h.com:443/a"], BASES[0])
@example(["a #", " a #b", "a ", "/a #"], BASES[0])
def test_the_fast_path_agrees_with_the_full_parser(links: list[str], base: str) -> None:
    resolve = Resolver(base)
    for link in links:
        assert resolve(link) == canonical_or_none(link, base), (link, base)


@given(LINKS, st.sampled_from(BASES))
def test_a_canonical_url_is_its_own_canonical_form(link: str, base: str) -> None:
    found = canonical_or_none(link, base)
    if found is not None:
        assert canonical_or_none(found) == found
        assert found.isascii()
        assert "#" not in found


@given(st.lists(PIECES, max_size=5).map("".join), LINKS)
@example("h.com\t:8080", "x")
@example("h.com?", "x")
@example("u@h.com", "@h.org/")
def test_a_host_is_what_the_full_parser_says(authority: str, rest: str) -> None:
    url = f"http://{authority}/{rest}"
    try:
        expected = ada_url.URL(url).host
    except ValueError:
        return
    assert host_of(url) == expected
    assert host_of(url) == expected, "from the cache too"


def test_every_public_whatwg_case_is_as_specified(suite: Callable[[str], Path]) -> None:
    cases = [case for case in json.loads((suite("url-wpt") / "urltestdata.json").read_text()) if isinstance(case, dict)]
    assert len(cases) >= 891
    for case in cases:
        parsed = parse(case["input"], case.get("base"))
        if case.get("failure"):
            assert parsed is None, case
            continue
        assert parsed == case["href"], case
        for part in ("protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"):
            assert getattr(parsed, part) == case[part], (part, case)


def test_every_public_resolve_case_is_as_specified(suite: Callable[[str], Path]) -> None:
    rows = 0
    for row in _rows(suite("crawler-commons") / "url-utils" / "url-resolve.csv"):
        url, base, expected = row
        assert parse(url, base or None) == parse(expected), row
        rows += 1
    assert rows > 20


def _sorted_parameters(url: str) -> str:
    start, _, query = url.partition("?")
    parts = sorted(part.removesuffix("=") for part in query.split("&") if part.partition("=")[0])
    return f"{start}?{'&'.join(parts)}"


# Rules of crawler-commons that are not ours, because they can join two different pages or WHATWG says otherwise. Each
# is what would have to be done to our form to get theirs.
OTHER_RULES: dict[str, Callable[[str], str]] = {
    "sorts parameters and drops empty ones": _sorted_parameters,
    "joins doubled slashes": lambda url: re.sub("(?<!:)/+", "/", url),
    "escapes more than WHATWG does": lambda url: re.sub(
        r"[\[\]^`|]|%(?![0-9A-F]{2})", lambda match: f"%{ord(match[0]):02X}", url
    ),
    "takes a dot off the host": lambda url: url.replace("./", "/"),
}


def test_public_normalisation_cases_hold_unless_a_rule_is_not_ours(suite: Callable[[str], Path]) -> None:
    rows = _rows(suite("crawler-commons") / "normalizer" / "weirdToNormalizedUrls.csv")
    reasons: Counter[str] = Counter()
    for url, expected in rows:
        ours = canonical_or_none(url)
        if ours == expected:
            reasons["the same"] += 1
        elif ours is None:  # other schemes, no scheme at all, or no host
            assert re.match("(?!https?:)|https?:/*$", url), url
            reasons["not a web address"] += 1
        else:
            reasons[next(reason for reason, rule in OTHER_RULES.items() if rule(ours) == expected)] += 1
    assert set(reasons) == {"the same", "not a web address", *OTHER_RULES}
    assert reasons["the same"] >= 76
    assert sum(reasons.values()) == len(rows) == 112


def test_what_the_public_cases_call_invalid_has_no_canonical_form(suite: Callable[[str], Path]) -> None:
    rows = _rows(suite("crawler-commons") / "normalizer" / "invalidUrls.csv")
    assert rows
    assert [canonical_or_none(url) for (url,) in rows] == [None] * len(rows)


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    return [[cell.strip(" ") for cell in row] for row in csv.reader(lines, skipinitialspace=True)]


SCRAPS = st.sampled_from(
    ["%", "2", "e", "E", "5", "%2", "%65", "%2e", "%25", "%41", "/", "..", ".", "?", "#", "\\", "@", ":", "\t", " "]
) | st.sampled_from(
    ["é", "\ud800", "&", "=", "'", '"', "<", "^", "|", "[", "]", "xn--", "http://", "//", "%zz", "\u3002", "\xad"]
)
TEXTS = st.lists(SCRAPS, max_size=12).map("".join) | st.text(max_size=30)


@given(st.sampled_from(["http://e.com/", "http://e.com/?", "https://", "", "//e.com/a/"]), TEXTS)
@example("http://e.com/", "a/%2%65%2%65/private/x")
@example("http://e.com/", "%%45com")
@example("http://e.com/?", "%%32%65")
def test_nothing_is_left_for_a_second_canonicalisation_to_undo(start: str, text: str) -> None:
    """robots.txt was asked about one path, and another was sent: what comes out must be what goes over the wire."""
    for base in (None, "http://e.com/b/c"):
        url = canonical_or_none(start + text, base)
        if url is not None:
            assert canonical_or_none(url) == url
            sent = target(url)
            assert str(sent) == url
            assert f"{sent.scheme}://{sent.authority}{sent.path}" == url
            assert host_of(url) == sent.authority


def test_an_escape_that_would_make_another_one_stays() -> None:
    assert canonical("http://e.com/a/%2%65%2%65/private/x") == "http://e.com/a/%2%65%2%65/private/x"
    assert canonical("http://e.com/%2%6A%z%65%%7E%%35") == "http://e.com/%2j%ze%~%%35"
