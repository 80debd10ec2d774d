import random
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.frontier import Admission, Refusal, Scope, Traps, canonical, site_of
from afresh.frontier.scope import Counts, _pattern

NO_TRAPS = Traps(0, 0, 0, 0, False, 0, 0, 0, 0, 0)


def rule(scope: Scope, url: str, depth: int = 0) -> str | None:
    refusal = scope.refusal(canonical(url), depth)
    return refusal.rule if refusal else None


def test_hosts_by_name_or_by_what_is_below_it() -> None:
    scope = Scope(hosts=["Example.org", "*.wide.example", "https://port.example:8080/"])
    inside = ["http://example.org/", "http://wide.example/", "http://a.b.wide.example:81/", "http://port.example:8080/"]
    outside = ["http://www.example.org/", "http://notwide.example/", "http://example.org.evil/", "http://port.example/"]
    assert [rule(scope, url) for url in inside] == [None] * 4
    assert [rule(scope, url) for url in outside] == ["host"] * 4


def test_paths_to_include_and_exclude() -> None:
    scope = Scope(include=["/docs/", "*.html$"], exclude=["*?print=", "/docs/old"])
    expected = {
        "/docs/a": None,
        "/a.html": None,
        "/a.html?x": "include",
        "/": "include",
        "/docs/a?print=1": "exclude",
        "/docs/older": "exclude",
    }
    assert {path: rule(scope, "http://e.org" + path) for path in expected} == expected


def test_depth() -> None:
    assert [rule(Scope(depth=2), "http://e.org/", depth) for depth in (0, 2, 3)] == [None, None, "depth"]


@pytest.mark.parametrize("bad", [{"hosts": [""]}, {"hosts": ["a/b"]}, {"hosts": ["a.*"]}, {"include": ["docs"]}])
def test_a_rule_that_cannot_be_meant_is_refused(bad: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigError) as caught:
        Scope(**bad)  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/" + "/".join(f"s{n}" for n in range(20)), None),
        ("/" + "/".join(f"s{n}" for n in range(21)), "segments"),
        ("/a/a", None),
        ("/a/a/a", "repeats"),
        ("/x/a/b/a/b/a/b", "repeats"),
        ("/x/a/b/a/b", None),
        ("/a/b/a/c/a/d/a/e/a", "same_segment"),
        ("/p;jsessionid=1", "session"),
        ("/p?x=1&PHPSESSID=1", "session"),
        ("/p?residence=1&outside=2", None),
        ("/p?" + "&".join(f"p{n}=1" for n in range(13)), "parameters"),
        ("/p?" + "&".join(f"p{n}=1" for n in range(12)), None),
    ],
)
def test_shapes_of_traps(path: str, expected: str | None) -> None:
    assert rule(Scope(), "http://e.org" + path) == expected
    assert rule(Scope(traps=NO_TRAPS), "http://e.org" + path) is None


# T1: what a hostile host can offer without end -----------------------------------------------------------------


def calendar() -> Iterator[str]:
    for month in range(10**9):
        yield f"/calendar/{1990 + month // 12}/{month % 12 + 1:02}"


def calendar_by_query() -> Iterator[str]:
    for month in range(10**9):
        yield f"/events?view=month&date={2000 + month // 12}-{month % 12 + 1:02}-01"


def sessions() -> Iterator[str]:
    rng = random.Random(1)
    while True:
        yield f"/shop?sid={rng.getrandbits(64):x}"


def hidden_sessions() -> Iterator[str]:
    rng = random.Random(2)
    while True:
        yield f"/shop/{rng.getrandbits(128):032x}/item{rng.randrange(20)}"


def nesting() -> Iterator[str]:
    for depth in range(1, 10**9):
        yield "/" + "/".join(["a", "b"] * depth)


def sorting() -> Iterator[str]:
    rng, keys = random.Random(3), ["sort", "filter", "page", "view", "colour", "size"]
    while True:
        chosen = rng.sample(keys, rng.randint(1, 6))
        yield "/list?" + "&".join(f"{key}={rng.randrange(50)}" for key in chosen)


def soft_404() -> Iterator[str]:
    for n in range(10**9):
        yield f"/missing/{n}/next"


def words() -> Iterator[str]:
    rng = random.Random(4)
    while True:
        yield "/" + "".join(rng.choices("abcdefghijklmnop", k=12))


TRAPS = Traps(pages_per_host=3_000, pattern=1_000, months=300, variants=100)


@pytest.mark.parametrize(
    ("trap", "most", "by"),
    [
        (calendar, 300, "months"),
        (calendar_by_query, 100, "variants"),
        (sessions, 0, "session"),
        (hidden_sessions, 1_000, "pattern"),
        (nesting, 2, "repeats"),
        (sorting, 100, "variants"),
        (soft_404, 1_000, "pattern"),
        (words, 3_000, "pages_per_host"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_t1_no_trap_gets_more_than_its_cap(trap: object, most: int, by: str) -> None:
    admission, source = Admission(Scope(traps=TRAPS)), trap()  # type: ignore[operator]
    refusals = [admission.admit(canonical("http://trap.example" + next(source)[:1_500])) for _ in range(8_000)]
    admitted = sum(refusal is None for refusal in refusals)
    assert admitted == most == admission.pages("trap.example")
    last = refusals[-1]
    assert last is not None
    assert last.rule in (by, "segments", "same_segment")
    assert any(refusal is not None and refusal.rule == by for refusal in refusals)
    assert admission.admit("http://honest.example/page/1?x=1") is None, "other hosts pay nothing"


def test_t1_all_traps_of_one_host_together_stay_within_its_budget() -> None:
    admission = Admission(Scope(traps=TRAPS))
    sources = [trap() for trap in (calendar, hidden_sessions, sorting, soft_404, words)]
    for _ in range(5_000):
        for source in sources:
            admission.admit(canonical("http://trap.example" + next(source)))
    assert admission.pages("trap.example") == 3_000


def test_t1_endless_names_below_one_domain() -> None:
    admission = Admission(Scope(traps=Traps(hosts_per_site=50)))
    refusals = [admission.admit(f"http://x{n}.trap.co.uk/") for n in range(200)]
    assert [refusal is None for refusal in refusals] == [True] * 50 + [False] * 150
    assert refusals[-1] == Refusal("hosts_per_site", "trap.co.uk")
    assert admission.admit("http://x1.trap.co.uk/more") is None, "a host that was let in stays in"
    assert admission.admit("http://other.co.uk/") is None


def test_an_honest_site_is_admitted_whole() -> None:
    admission = Admission(Scope())
    urls = [f"http://e.org/articles/{n}" for n in range(5_000)]
    urls += [f"http://e.org/2024/05/{n % 28 + 1:02}/title-{n}" for n in range(300)]
    urls += [f"http://e.org/{1995 + n % 30}/{n % 12 + 1:02}/{n % 28 + 1:02}/{n}.html" for n in range(5_000)]
    urls += [f"http://e.org/search?page={n}" for n in range(150)]
    assert [url for url in urls if admission.admit(url)] == []


def test_time_and_memory_of_hostile_shapes_are_bounded() -> None:
    began, admission = time.process_time(), Admission(Scope(exclude=["*a*a*a*a*a*b$"]))
    for n in range(300):
        admission.admit("http://e.org/" + "a/" * 900 + str(n))
        admission.admit("http://e.org/?" + "a&" * 1_000 + str(n))
        admission.admit("http://e.org/" + "1-" * 1_000 + str(n))
        admission.admit("http://e.org/" + "a" * 2_000 + str(n))
    assert time.process_time() - began < 5


@pytest.mark.parametrize("piece", ["a", "f-", "A", "1", "1g", "2001-", "2001/1", ";s", "g"])
def test_no_address_costs_more_than_its_length(piece: str) -> None:
    """A path of 1,900 letters from a to f took 75 ms: a digit was looked for ahead from each of them."""

    def seconds(length: int) -> float:
        admission, times = Admission(Scope()), []
        for n in range(8):
            url = f"http://e.org/{n}/" + piece * (length // len(piece))
            began = time.process_time()
            admission.full(url)
            times.append(time.process_time() - began)
        return min(times)

    seconds(100)
    assert seconds(16_000) < 40 * max(seconds(1_000), 1e-4)


@given(st.lists(st.sampled_from(["abcdefab", "AB-cd-ef", "1", "0f", "g", "/"]), max_size=12).map("".join))
def test_the_pattern_of_an_address_is_what_looking_ahead_would_find(path: str) -> None:
    ahead = re.compile(r"(?=[0-9a-f-]*[0-9])[0-9a-f-]{16,}", re.IGNORECASE)
    assert _pattern("/" + path, "") == re.sub("[0-9]+", "#", ahead.sub("#", "/" + path))


@given(st.lists(st.sampled_from("abcdefghij"), max_size=300))
def test_counts_never_say_too_little(texts: list[str]) -> None:
    for size in (1, 4, 1 << 10):
        counts = Counts(size)
        for text in texts:
            counts.add(text)
        for text in set(texts):
            assert counts[text] >= texts.count(text)
            if size == 1 << 10:
                assert counts[text] == texts.count(text)


def test_sites() -> None:
    expected = {
        "www.example.com": "example.com",
        "example.com": "example.com",
        "a.b.github.io": "b.github.io",
        "com": "com",
        "[::1]:80": "[::1]",
        "127.0.0.1:8080": "127.0.0.1",
        "www.example.com.": "example.com",
    }
    assert {host: site_of(host) for host in expected} == expected
