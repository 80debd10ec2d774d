import time

import numpy as np
import pytest

from afresh.kinds.address import FIGURES as ADDRESS_FIGURES
from afresh.kinds.address import address
from afresh.kinds.criteria import FIGURES, GROUPS, MAX_MARKS, WANTED, Criteria, criteria
from afresh.reading import read

PAGE = b"""<!doctype html><html><head><title>High tide at the harbour</title>
<meta property="og:type" content="article"><meta name="generator" content="Hugo 0.1">
<meta name=description content="When the water is high">
<meta property="article:modified_time" content="2024-06-01">
<script type="application/ld+json">{"@context": "https://schema.org", "@type": ["NewsArticle", "Thing"],
 "datePublished": "2024-05-01T10:00:00Z"}</script></head>
<body class="single-post"><h1>High tide</h1><p>The ferry runs at 12. Does it?<a href="/tides/low">Low</a>
<a href="http://other.example/x">Other</a></body>"""


def read_off(html: bytes, url: str = "http://e.example/tides/high-tide") -> Criteria:
    return criteria(read(html, "text/html; charset=utf-8", wanted=WANTED), url)


def figure(found: Criteria, name: str) -> float:
    return float(found.figures[FIGURES.index(name)])


def test_what_a_page_says_of_itself_is_read_off() -> None:
    said = read_off(PAGE).said
    assert said.types == {"newsarticle"}
    assert (said.og_type, said.generator) == ("article", "hugo")
    assert (said.published, said.modified) == ("2024-05-01T10:00:00Z", "2024-06-01")
    assert said.scripts


def test_figures_say_how_a_page_is_built() -> None:
    found = read_off(PAGE)
    assert len(found.figures) == len(FIGURES)
    assert figure(found, "log_a") == pytest.approx(np.log1p(2))
    assert figure(found, "links") == pytest.approx(np.log1p(2))
    assert figure(found, "outside") == pytest.approx(1 / 3)
    assert figure(found, "beside") == pytest.approx(1 / 3)
    assert figure(found, "heading_in_address") == 1.0
    assert figure(found, "depth") == 2.0
    assert figure(found, "questions") == pytest.approx(np.log1p(1))


def test_words_fall_into_groups_by_where_they_stand() -> None:
    found = read_off(PAGE)
    assert set(found.groups.tolist()) == set(range(len(GROUPS)))
    plain = read_off(b"<p>tide tide", "")
    assert (
        plain.marks[plain.groups == GROUPS.index("text")].tolist()[0:1] * 2
        == plain.marks[plain.groups == GROUPS.index("text")].tolist()
    )


def test_a_date_or_a_number_does_not_make_another_page() -> None:
    one = read_off(b"<title>Report 2023</title><p>12 of 40", "http://e.example/report-2023")
    other = read_off(b"<title>Report 2024</title><p>15 of 41", "http://e.example/report-2024")
    assert one.marks.tolist() == other.marks.tolist()


@pytest.mark.parametrize(
    "url", ["", "e.example", "http://", "//x", "http://[::1", "http://a@b:80/c?d#e", "\udc80", "?q=1"]
)
def test_no_address_is_too_odd(url: str) -> None:
    assert len(address(url).figures) == len(ADDRESS_FIGURES)
    assert np.isfinite(read_off(b"<p>x", url).figures).all()


@pytest.mark.parametrize(
    "html",
    [
        b"",
        b"<",
        b"<p" * 50_000,
        b"<meta name=" + b"a" * 100_000,
        b"<script type=application/ld+json>" + b'"@type":"' * 40_000,
        b"<a href=//" + b"/" * 1000 + b">" + b"<p>x " * 50_000,
        b"<div class='" + b"a " * 200_000 + b"'>",
        b'<script type="application/ld+json">{"@type": [' + b"[" * 60_000,
        b"\xff\xfe" * 1000,
    ],
)
def test_no_page_is_too_odd_or_too_much(html: bytes) -> None:
    began = time.process_time()
    found = read_off(html)
    assert len(found.marks) <= MAX_MARKS
    assert np.isfinite(found.figures).all()
    assert time.process_time() - began < 5.0  # compiled code may have to be loaded


def test_time_is_linear_in_the_page() -> None:
    """Twice the page takes no more than about twice the time, whatever it is made of."""
    for piece in (
        b"<p class='a b c'><a href='/x/y'>x</a> word",
        b'<meta name=a content="b c d">',
        b"<script></script>",
    ):
        read_off(piece)
        spent = []
        for size in (4_000, 16_000):
            body, best = piece * size, np.inf
            for _ in range(3):
                began = time.process_time()
                read_off(body)
                best = min(best, time.process_time() - began)
            spent.append(best)
        assert spent[1] < 8 * spent[0] + 0.02
