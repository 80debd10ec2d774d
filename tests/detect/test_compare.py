import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.detect import Detector, Rules, compare, distance, main_text, mark, signature
from afresh.types import Copy, Fetched, Outcome, Validators

ARTICLE = "<p>" + "The harbour was rebuilt after the great storm, and the lighthouse keeper stayed on. " * 8 + "</p>"


def page(article: str = ARTICLE, *, clock: str = "12:00", advert: str = "Buy soap") -> bytes:
    return f"""<!doctype html><html><head><title>Harbour</title></head><body>
      <nav><a href="/">Home</a> <a href="/x">Other</a></nav><div class="ad">{advert}</div>
      <main><article><h1>Harbour</h1>{article}</article></main>
      <footer>Served at {clock}</footer></body></html>""".encode()


def got(body: bytes = b"", *, status: int = 200, kind: str = "text/html; charset=utf-8", reason: str = "") -> Fetched:
    return Fetched("http://a/", 0.0, 0.1, status=status, body=body, content_type=kind, reason=reason)


def known(body: bytes) -> Validators:
    return compare(Validators(), got(body)).validators


def test_what_surrounds_the_text_does_not_count() -> None:
    assert "lighthouse" in main_text(page())
    assert main_text(page()) == main_text(page(clock="13:37", advert="Buy tea"))


@pytest.mark.parametrize(
    "passing",
    ["Updated 14:05:33", "as of 2026-03-04T05:06:07Z", "token 0123456789abcdef0123456789abcdef", "5 minutes ago"],
)
def test_clocks_and_tokens_inside_the_text_do_not_count(passing: str) -> None:
    other = passing.translate(str.maketrans("0123456789", "9876543210"))
    assert other != passing
    assert main_text(page(f"{ARTICLE}<p>{passing}</p>")) == main_text(page(f"{ARTICLE}<p>{other}</p>"))


def test_a_changed_sentence_counts() -> None:
    changed = page(ARTICLE.replace("stayed on", "went home", 1))
    assert compare(known(page()), got(changed)).outcome is Outcome.CHANGED


def test_significance_grows_with_the_change() -> None:
    words = [f"word{number}" for number in range(400)]

    def article(altered: int) -> bytes:
        return page("<p>" + " ".join(["new" + word for word in words[:altered]] + words[altered:]) + "</p>")

    small, large, all_new = (compare(known(article(0)), got(article(count))).significance for count in (4, 120, 400))
    assert 0 < small < large < all_new <= 1
    assert small < 0.35
    assert all_new > 0.6


def test_signatures_of_unrelated_texts_are_far_apart() -> None:
    texts = [" ".join(f"{letter}{number}" for number in range(200)) for letter in "abcdef"]
    signatures = [signature(text) for text in texts]
    assert all(distance(one, other) > 0.5 for one in signatures for other in signatures if one is not other)


def test_the_same_bytes_need_no_reading() -> None:
    """The raw mark settles it before anything is extracted: the verdict is the kept fingerprint's, whatever that is."""
    before = Validators(fingerprint=5, raw=mark(page()), signature=9)
    verdict = compare(before, got(page()))
    assert (verdict.outcome, verdict.validators.fingerprint) == (Outcome.UNCHANGED, 5)


def test_other_kinds_are_compared_by_their_bytes() -> None:
    first = compare(Validators(), got(b'{"a": 1}', kind="application/json"))
    assert first.outcome is Outcome.NEW
    assert compare(first.validators, got(b'{"a": 1}', kind="application/json")).outcome is Outcome.UNCHANGED
    assert compare(first.validators, got(b'{"a": 2}', kind="application/json")).significance == 1.0


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b"<html></html>", "é".encode("utf-16"), b"\x00" * 100, b"<p" * 9999]
)
def test_odd_bodies_have_marks_too(body: bytes) -> None:
    first = compare(Validators(), got(body))
    assert first.outcome is Outcome.NEW
    assert first.validators.fingerprint
    assert compare(first.validators, got(body)).outcome is Outcome.UNCHANGED


def test_a_site_may_say_what_counts() -> None:
    body = "<main><h1>Tin</h1><p class='price'>{}</p><p class='visits'>{}</p></main>"
    detector = Detector(
        {"shop.example": Rules(keep=("main",), drop=(".visits",)), "price.example": Rules(keep=(".price",))}
    )

    def verdict(host: str, price: int, visits: int) -> Outcome:
        before = detector.compare(Validators(), got(body.format(1, 1).encode()), host)
        return detector.compare(before.validators, got(body.format(price, visits).encode()), host).outcome

    assert verdict("shop.example:8080", 1, 2) is Outcome.UNCHANGED
    assert verdict("shop.example", 2, 1) is Outcome.CHANGED
    assert verdict("price.example", 1, 7) is Outcome.UNCHANGED
    assert verdict("other.example", 1, 2) is Outcome.CHANGED


def test_the_first_copy_is_new() -> None:
    verdict = compare(Validators(), got(page()))
    assert verdict.outcome is Outcome.NEW
    assert verdict.validators.raw == mark(page())


def test_the_content_decides_and_not_the_validator() -> None:
    before = Validators(etag='"1"', fingerprint=known(page()).fingerprint)
    assert compare(before, got(page(clock="9:00"))).outcome is Outcome.UNCHANGED
    assert (
        compare(before, got(page("<p>Something else entirely was written here today.</p>"))).outcome is Outcome.CHANGED
    )


def test_not_modified_needs_a_copy() -> None:
    assert compare(Validators(fingerprint=5), got(status=304)).outcome is Outcome.UNCHANGED
    assert compare(Validators(fingerprint=5), got(status=304)).validators.fingerprint == 5
    assert compare(Validators(), got(status=304)).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("fetched", "outcome"),
    [
        (got(status=404), Outcome.GONE),
        (got(status=410), Outcome.GONE),
        (got(status=429), Outcome.BUSY),
        (got(status=503), Outcome.BUSY),
        (got(status=500), Outcome.FAILED),
        (got(status=206), Outcome.FAILED),
        (got(status=301), Outcome.MOVED),
        (got(reason="timeout"), Outcome.FAILED),
        (got(page(), reason="truncated"), Outcome.FAILED),
        (got(reason="refused_address"), Outcome.REFUSED),
    ],
)
def test_outcomes(fetched: Fetched, outcome: Outcome) -> None:
    verdict = compare(Validators(fingerprint=7), fetched)
    assert verdict.outcome is outcome
    assert verdict.reason


BODIES = [page(), page(clock="9:00"), page("<p>Quite another story was told.</p>"), b"", b"<html></html>", b"plain"]


@given(st.lists(st.sampled_from(BODIES), max_size=6), st.sampled_from(["text/html", "text/plain"]))
def test_a_page_that_is_read_only_when_it_must_be_gets_the_same_verdicts(bodies: list[bytes], kind: str) -> None:
    eager, lazy, copy = Validators(), Validators(), None
    for body in bodies:
        fetched = got(body, kind=kind)
        one, other = compare(eager, fetched), Detector().compare(lazy, fetched, kept=lambda: copy)  # noqa: B023
        assert (one.outcome, one.significance) == (other.outcome, other.significance)
        eager, lazy = one.validators, other.validators
        copy = Copy("http://a/", body, kind, 0.0, 0.0, lazy)


def test_a_first_copy_is_marked_by_its_bytes_alone_where_it_can_be_read_later() -> None:
    verdict = Detector().compare(Validators(), got(page()), kept=lambda: None)
    assert verdict.outcome is Outcome.NEW
    assert verdict.validators.fingerprint == verdict.validators.raw == mark(page())
    assert verdict.validators.signature == 0


def test_a_copy_that_cannot_be_read_any_more_counts_as_changed() -> None:
    unread = Detector().compare(Validators(), got(page()), kept=lambda: None).validators
    assert Detector().compare(unread, got(page(clock="9:00")), kept=lambda: None).outcome is Outcome.CHANGED


BOMBS = {
    "formatting": b"".join(b"<b id=%d><p>" % number for number in range(20_000)),
    "blocks": b"<div>" * 100_000,
    "decoys": b"</div>" * 50_000 + b"<div></span>" * 50_000,
    "attributes": b"<div " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">x</div>",
    "brackets": b"<" * 1_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_page_made_to_choke_a_parser_is_read_plainly(name: str) -> None:
    """Each of these would take a tree parser many seconds and up to gigabytes."""
    body = b"<main><p>The words count.</p>" + BOMBS[name]
    began = time.process_time()
    first = compare(Validators(), got(body))
    assert time.process_time() - began < 3
    assert first.outcome is Outcome.NEW
    changed = body.replace(b"The words", b"Other words")
    assert compare(first.validators, got(changed)).outcome is Outcome.CHANGED
