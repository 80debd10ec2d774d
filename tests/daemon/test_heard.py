"""What is remembered of hints, for people."""

import pytest

from afresh.daemon.heard import FALSE, MAX_LINES, MAX_PAGES_KEPT, OLD, REPEATED, TAKEN, TRUE, HeardOf


def test_what_became_of_each_hint_is_said_and_survives_a_restart() -> None:
    heard = HeardOf()
    heard.note("u", "cms", 1.0, TAKEN)
    heard.note("u", "cms", 2.0, REPEATED)
    heard.note("u", "cms", 3.0, REPEATED)
    heard.note("u", "map", 5.0, TAKEN)
    heard.crawled("u", 4.0, changed=True)
    assert [(line["sender"], line["last"], line["count"], line["became"]) for line in heard.of("u")] == [
        ("map", 5.0, 1, TAKEN),  # it came while the page was fetched
        ("cms", 3.0, 2, REPEATED),
        ("cms", 1.0, 1, TRUE),
    ]
    heard.crawled("u", 6.0, changed=False)
    again = HeardOf.from_text(heard.to_text())
    assert again.of("u") == heard.of("u")
    assert again.of("u")[0]["became"] == FALSE
    assert HeardOf.from_text(None).of("u") == []
    with pytest.raises((ValueError, TypeError, AttributeError)):
        HeardOf.from_text('{"u": [["cms"]]}')


def test_a_flood_neither_fills_memory_nor_hides_what_others_said() -> None:
    heard = HeardOf()
    heard.note("u", "honest", 0.0, TAKEN)
    for nth in range(10_000):
        heard.note("u", "flood", float(nth), (TAKEN, OLD)[nth % 2])
        heard.note(f"u{nth}", "flood", float(nth), TAKEN)
    assert len(heard.of("u")) <= MAX_LINES
    assert heard.of("u")[-1]["sender"] == "honest"
    assert len(HeardOf.from_text(heard.to_text())._pages) == MAX_PAGES_KEPT
