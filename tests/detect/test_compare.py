import pytest

from afresh.detect import Detector, Look, Rules, compare, judge, mark
from afresh.reading import Wanted
from afresh.types import Copy, Fetched, Outcome, Validators, Verdict

ARTICLE = "<p>" + "The harbour was rebuilt after the great storm, and the lighthouse keeper stayed on. " * 8 + "</p>"


def page(article: str = ARTICLE, *, clock: str = "12:00", advert: str = "Buy soap", menu: str = "Other") -> bytes:
    return f"""<!doctype html><html><head><title>Harbour</title></head><body>
      <nav><a href="/">Home</a> <a href="/x">{menu}</a></nav><div class="ad">{advert}</div>
      <main><article><h1>Harbour</h1>{article}</article></main>
      <footer>Served at {clock}</footer></body></html>""".encode()


def got(body: bytes = b"", *, status: int = 200, kind: str = "text/html; charset=utf-8", reason: str = "") -> Fetched:
    return Fetched("http://a/", 0.0, 0.1, status=status, body=body, content_type=kind, reason=reason)


def look(old: bytes, new: bytes, *, kind: str = "text/html", rules: Rules | None = None, **options: object) -> Look:
    detector = Detector({"a": rules} if rules else None)
    known = Validators(fingerprint=mark(old))
    copy = Copy("http://a/", old, kind, 0.0, 0.0, known)
    return detector.look(known, got(new, kind=kind), "a:80", kept=lambda: copy, **options)  # type: ignore[arg-type]


def verdict(old: bytes, new: bytes, **options: object) -> Verdict:
    return judge(look(old, new, **options))  # type: ignore[arg-type]


def test_no_visible_paragraph_is_left_out_of_account() -> None:
    """An extractor of main text had left out what it took for surroundings: over 500 true edits were never seen."""
    for edited in (page(menu="Archive"), page(advert="Buy tea"), page(clock="noon"), page(ARTICLE + "<p>More.</p>")):
        found = verdict(page(), edited)
        assert found.outcome is Outcome.CHANGED
        assert 0 < found.significance < 0.2


@pytest.mark.parametrize(
    "same",
    [
        page().replace(b"<article>", b'<article class="new" data-token="81">'),
        page().replace(b"<p>", b"<div><p style=x>").replace(b"</p>", b"</p></div>"),
        page().replace(b"<body>", b"<body><script>var t = 17</script><!-- built at 17:00 -->"),
        page().replace(b"Harbour", b"&#72;arbour").replace(b"\n", b"\n\n\t"),
        page().replace(b"<nav>", b'<nav><input type=hidden name=token value="a7c1">'),
    ],
)
def test_markup_alone_is_no_change(same: bytes) -> None:
    found = verdict(page(), same)
    assert (found.outcome, found.reason) == (Outcome.UNCHANGED, "same_text")
    assert found.validators.fingerprint == mark(same)


def test_another_order_is_a_change() -> None:
    one, other = b"<ol><li>red<li>green<li>blue<li>black</ol>", b"<ol><li>green<li>blue<li>black<li>red</ol>"
    found = look(one, other)
    assert found.verdict.outcome is Outcome.CHANGED
    assert found.difference is not None
    assert found.difference.new.tolist() == [3], "the one that has moved"


def test_the_blocks_that_changed_are_known() -> None:
    found = look(page(), page(clock="13:00", advert="Buy tea"))
    assert found.difference is not None
    assert found.page is not None
    assert [found.page.block(nth) for nth in found.difference.new] == ["Buy tea", "Served at 13:00"]
    assert len(found.difference.old) == 2


def test_significance_is_the_share_of_the_text_that_differs() -> None:
    words = [f"word{number:03}" for number in range(400)]

    def article(altered: int) -> bytes:
        return ("<p>" + " ".join([word.replace("word", "news") for word in words[:altered]] + words[altered:])).encode()

    for altered in (4, 120, 400):
        found = verdict(article(0), article(altered))
        assert found.significance == pytest.approx(altered / 400, rel=0.15)


def test_history_tells_four_sorts_apart() -> None:
    assert verdict(page(), page()).reason == "same_bytes"
    assert verdict(page(), page() + b"<!-- x -->").reason == "same_text"
    found = look(page(), page(clock="13:00"))
    assert found.difference is not None
    assert found.difference.spots is not None
    noisy = judge(found, found.difference.spots)
    assert (noisy.outcome, noisy.reason, noisy.significance) == (Outcome.UNCHANGED, "noise", 0.0)
    assert judge(found).reason == ""
    known = Validators(fingerprint=5)
    assert compare(known, got(status=304)).reason == "not_modified"


def test_a_change_beside_noise_counts_and_noise_is_not_part_of_it() -> None:
    found = look(page(), page(clock="13:00", menu="Archive"))
    assert found.difference is not None
    assert found.difference.spots is not None
    clock = [key for key, spot in found.difference.spots.items() if "Served" in spot.sample]
    without = judge(found, clock)
    assert without.outcome is Outcome.CHANGED
    assert 0 < without.significance < judge(found).significance


def test_noise_that_is_much_of_the_page_is_heard() -> None:
    found = look(b"<p>It is 12:00 now.<p>Bye.", b"<p>It is 13:00 now.<p>Bye.")
    assert found.difference is not None
    assert found.difference.spots
    assert judge(found, found.difference.spots).outcome is Outcome.CHANGED


def test_a_page_that_is_too_complex_is_compared_by_its_bytes() -> None:
    deep = b"<p>a" * 500_001
    found = verdict(page(), deep)
    assert (found.outcome, found.reason, found.significance) == (Outcome.CHANGED, "too_complex", 1.0)
    assert verdict(deep, page()).reason == "too_complex"
    assert verdict(deep, deep).reason == "same_bytes"


def test_a_page_without_text_is_compared_by_its_bytes() -> None:
    frames = b"<frameset><frame src=/a></frameset>"
    assert verdict(frames, frames.replace(b"/a", b"/b")).outcome is Outcome.CHANGED
    assert verdict(frames, b"<p>Text.").outcome is Outcome.CHANGED


def test_other_kinds_are_compared_by_their_bytes() -> None:
    assert compare(Validators(), got(b'{"a": 1}', kind="application/json")).outcome is Outcome.NEW
    found = verdict(b'{"a": 1}', b'{"a":1}', kind="application/json")
    assert (found.outcome, found.significance) == (Outcome.CHANGED, 1.0)


def test_a_site_may_ask_for_its_bytes() -> None:
    assert verdict(page(), page() + b" ", rules=Rules(compare="bytes")).outcome is Outcome.CHANGED
    assert verdict(page(), page() + b" ", rules=Rules()).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"<html></html>", b"\x00" * 100, b"<p" * 9999, b"<p>\xff"])
def test_odd_bodies_are_the_same_as_themselves_and_no_others(body: bytes) -> None:
    assert verdict(body, body).outcome is Outcome.UNCHANGED
    assert verdict(page(), body).outcome is Outcome.CHANGED
    assert verdict(body, page()).outcome is Outcome.CHANGED


@pytest.mark.parametrize(
    ("rules", "price", "visits"),
    [
        (Rules(keep=("main",), drop=(".visits",)), True, False),
        (Rules(keep=(".price",)), True, False),
        (Rules(drop=("main > .price",)), False, True),
        (Rules(keep=("#nothing",)), True, True),  # no text is left: all of it counts
        (Rules(keep=("#nothing",), drop=(".visits",)), True, False),
    ],
)
def test_a_site_may_say_what_counts(rules: Rules, price: bool, visits: bool) -> None:
    body = "<main><h1>Tin</h1><p class='price'>{}</p><p class='visits'>{}</p></main>"
    old = body.format(1, 1).encode()
    assert (verdict(old, body.format(2, 1).encode(), rules=rules).outcome is Outcome.CHANGED) is price
    assert (verdict(old, body.format(1, 2).encode(), rules=rules).outcome is Outcome.CHANGED) is visits


def test_the_first_copy_is_new_and_read_only_for_what_is_wanted_of_it() -> None:
    first = Detector().look(Validators(), got(page()))
    assert (first.verdict.outcome, first.verdict.significance) == (Outcome.NEW, 1.0)
    assert first.verdict.validators.fingerprint == mark(page())
    assert first.page is None
    asked = Detector().look(Validators(), got(page()), wanted=Wanted(["a"], ["href"], 100))
    assert asked.page is not None
    assert len(asked.page.rows) == 4


def test_a_page_is_read_whenever_its_bytes_differ() -> None:
    """Links added in the markup alone, or in what does not count, were never found."""
    more = page().replace(b"</nav>", b'<a href="/new"></a></nav>')
    found = look(page(), more, wanted=Wanted(["a"], ["href"], 100))
    assert found.verdict.outcome is Outcome.UNCHANGED
    assert found.page is not None
    assert len(found.page.rows) == 6


def test_a_fingerprint_of_an_earlier_version_costs_no_change() -> None:
    old = Copy("http://a/", page(), "text/html", 0.0, 0.0)
    found = Detector().look(Validators(fingerprint=5), got(page()), kept=lambda: old)
    assert (found.verdict.outcome, found.verdict.reason) == (Outcome.UNCHANGED, "same_bytes")


def test_a_copy_that_cannot_be_had_counts_as_changed() -> None:
    assert Detector().look(Validators(fingerprint=5), got(page()), kept=lambda: None).verdict.outcome is Outcome.CHANGED


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
    found = compare(Validators(fingerprint=7), fetched)
    assert found.outcome is outcome
    assert found.reason


def test_what_a_site_keeps_and_does_not_show_is_no_reason_to_count_markup_or_never_to_learn_noise() -> None:
    """A selector that matches nothing made every byte count, and no spot known."""
    rules = Rules(keep=("#moved-away",))
    assert verdict(b"<p>The ferry runs.", b"<p id=x>The ferry runs.", rules=rules).reason == "same_text"
    found = look(page(clock="12:00"), page(clock="13:00"), rules=rules).difference
    assert found is not None
    assert found.spots is not None
    assert rules.keeps_nothing_of(page(), "text/html")
    assert not Rules(keep=("p",)).keeps_nothing_of(page(), "text/html")
    assert not Rules(drop=("p",)).keeps_nothing_of(page(), "text/html")
    assert not rules.keeps_nothing_of(page(), "text/plain")
