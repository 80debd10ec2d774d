import pytest

from afresh.detect import compare, fingerprint, main_text
from afresh.types import Fetched, Outcome, Validators

ARTICLE = "<p>" + "The harbour was rebuilt after the great storm, and the lighthouse keeper stayed on. " * 8 + "</p>"


def page(article: str = ARTICLE, *, clock: str = "12:00", advert: str = "Buy soap") -> bytes:
    return f"""<!doctype html><html><head><title>Harbour</title></head><body>
      <nav><a href="/">Home</a> <a href="/x">Other</a></nav><div class="ad">{advert}</div>
      <main><article><h1>Harbour</h1>{article}</article></main>
      <footer>Served at {clock}</footer></body></html>""".encode()


def got(body: bytes = b"", *, status: int = 200, kind: str = "text/html; charset=utf-8", reason: str = "") -> Fetched:
    return Fetched("http://a/", 0.0, 0.1, status=status, body=body, content_type=kind, reason=reason)


def test_what_surrounds_the_text_does_not_count() -> None:
    assert "lighthouse" in main_text(page())
    assert fingerprint(page(), "text/html") == fingerprint(page(clock="13:37", advert="Buy tea"), "text/html")


def test_a_changed_sentence_counts() -> None:
    assert fingerprint(page(), "text/html") != fingerprint(
        page(ARTICLE.replace("stayed on", "went home", 1)), "text/html"
    )


def test_other_kinds_are_compared_by_their_bytes() -> None:
    assert fingerprint(b"{'a': 1}", "application/json") != fingerprint(b"{'a': 2}", "application/json")


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"<html></html>", "é".encode("utf-16"), b"\x00" * 100])
def test_odd_bodies_have_a_fingerprint_too(body: bytes) -> None:
    assert fingerprint(body, "text/html") == fingerprint(body, "text/html") != 0


def test_the_first_copy_is_new() -> None:
    verdict = compare(Validators(), got(page()))
    assert verdict.outcome is Outcome.NEW
    assert verdict.fingerprint == fingerprint(page(), "text/html")


def test_the_content_decides_and_not_the_validator() -> None:
    known = Validators(etag='"1"', fingerprint=fingerprint(page(), "text/html"))
    assert compare(known, got(page(clock="9:00"))).outcome is Outcome.UNCHANGED
    assert (
        compare(known, got(page("<p>Something else entirely was written here today.</p>"))).outcome is Outcome.CHANGED
    )


def test_not_modified_needs_a_copy() -> None:
    assert compare(Validators(fingerprint=5), got(status=304)).outcome is Outcome.UNCHANGED
    assert compare(Validators(fingerprint=5), got(status=304)).fingerprint == 5
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
