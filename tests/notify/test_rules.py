"""Which changes a rule is about, and when its messages go: quiet hours and digests where clocks change."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from afresh.config import parse
from afresh.errors import ConfigError
from afresh.frontier import HostPatterns
from afresh.frontier.glob import Glob
from afresh.hours import hours, moments
from afresh.notify import Rule
from afresh.notify.rules import identifier
from afresh.types import Crawl, Outcome

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, fold: int = 0) -> float:
    """A moment by the clocks of Berlin."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


def test_quiet_hours_end_by_the_clocks_of_their_zone_also_in_the_night_when_these_change() -> None:
    rule = Rule("r", "mailto:a@e.org", quiet=hours("22:00-07:00 Europe/Berlin"))
    assert rule.due(at("2026-11-19T12:00")) == at("2026-11-19T12:00")
    for evening, morning, asleep in (
        ("2026-03-28T23:00", "2026-03-29T07:00", 7),  # an hour is left out
        ("2026-10-24T23:00", "2026-10-25T07:00", 9),  # an hour comes twice
        ("2026-11-19T23:00", "2026-11-20T07:00", 8),
    ):
        assert rule.due(at(evening)) == at(morning)
        assert (at(morning) - at(evening)) / 3600 == asleep


def test_a_digest_goes_at_its_time_also_where_the_clocks_leave_that_out_or_repeat_it() -> None:
    rule = Rule("r", "mailto:a@e.org", digest=moments("02:30 Europe/Berlin"))
    assert rule.due(at("2026-03-28T12:00")) == at("2026-03-29T03:00")  # 02:30 is none that night
    assert rule.due(at("2026-03-29T12:00")) == at("2026-03-30T02:30")
    assert rule.due(at("2026-10-24T12:00")) == at("2026-10-25T02:30")  # the first of two
    weekly = Rule("r", "mailto:a@e.org", digest=moments("mon 08:00, fri 18:00 Europe/Berlin"))
    assert weekly.due(at("2026-11-19T12:00")) == at("2026-11-20T18:00")
    assert weekly.due(at("2026-11-20T18:00")) == at("2026-11-23T08:00")
    both = Rule("r", "mailto:a@e.org", digest=moments("06:00"), quiet=hours("05:00-07:30"))
    assert both.due(0.0) == 7.5 * 3600


def test_each_time_of_a_digest_is_a_moment_of_its_own_however_near_they_are() -> None:
    rule = Rule("r", "mailto:a@e.org", digest=moments("09:00, 10:00, 11:00"))
    day = 86_400.0
    assert [rule.due(hour * 3600.0) / 3600 for hour in (8.0, 9.0, 9.5, 10.99)] == [9.0, 10.0, 10.0, 11.0]
    assert rule.due(11 * 3600.0) == day + 9 * 3600
    near = Rule("r", "mailto:a@e.org", digest=moments("21:49, 21:57 Europe/Berlin"))
    assert near.due(at("2026-11-19T21:49")) == at("2026-11-19T21:57")
    often = moments(", ".join(f"{hour:02}:{minute:02}" for hour in range(24) for minute in (0, 15, 30, 45)))
    now = at("2026-03-28T12:00")
    for _ in range(96 * 2):  # also through the night in which the clocks change
        assert often.following(now) == now + 900.0
        now += 900.0
    # Two that the clocks leave out are one moment; in a night in which they are set back, the first of two.
    skipped = moments("02:10, 02:50 Europe/Berlin")
    assert skipped.following(at("2026-03-29T01:59")) == at("2026-03-29T03:00")
    assert skipped.following(at("2026-03-29T03:00")) == at("2026-03-30T02:10")
    assert skipped.following(at("2026-10-25T02:50")) == at("2026-10-26T02:10")


@pytest.mark.parametrize(
    ("before", "after", "matches"),
    [
        ("Sold out", "In stock now", True),
        ("in stock", "In STOCK", False),
        ("nothing", "nothing else", False),
        (None, "in stock", True),  # what was before is not known
        (None, "sold out", False),
        ("limited offer", "sold out", True),  # what was to disappear
        ("x", None, True),  # nobody can tell
        ("limited offer", "", True),  # the page is gone
        ("in stock", "", False),
    ],
)
def test_words_that_must_come_or_go(before: str | None, after: str | None, matches: bool) -> None:
    rule = Rule("r", "mailto:a@e.org", appear=("in stock",), disappear=("limited offer",))
    if before is None and after is not None:
        rule = Rule("r", "mailto:a@e.org", appear=("in stock",))
    assert rule.words_match(before, after) is matches


def test_a_rule_names_hosts_pages_kinds_and_how_much() -> None:
    shop, hosts = (Glob("https://a.e.org/shop/*$"),), HostPatterns(["*.e.org"])
    rule = Rule("r", "mailto:a@e.org", hosts=hosts, pages=shop, significance=0.1)

    def concerns(url: str, outcome: Outcome = Outcome.CHANGED, significance: float = 0.5) -> bool:
        crawl = Crawl(url, 0.0, outcome, significance=significance)
        return rule.concerns(url, "a.e.org") and rule.hears(crawl, 0) == [outcome]

    assert concerns("https://a.e.org/shop/1")
    assert not concerns("https://a.e.org/news")
    assert not concerns("https://a.e.org/shop/1", significance=0.05)
    assert concerns("https://a.e.org/shop/1", Outcome.GONE, 0.0)
    assert not concerns("https://a.e.org/shop/1", Outcome.NEW)
    assert not rule.concerns("https://a.e.org/shop/1", "other.org")


def test_a_rule_is_told_once_that_a_page_fails_and_once_that_it_is_well() -> None:
    def heard(rule: Rule, *troubles: int) -> list[list[str]]:
        return [rule.hears(Crawl("u", 0.0, Outcome.FAILED if each > 0 else Outcome.CHANGED), each) for each in troubles]

    both = Rule("r", "mailto:a@e.org", on=frozenset({"failing", "well"}), failures=2)
    assert heard(both, 1, 2, 3, 4, -4, 1, -1) == [[], ["failing"], [], [], ["well"], [], []]
    assert heard(Rule("r", "mailto:a@e.org"), 3, -3) == [[], ["changed"]]
    assert heard(Rule("r", "mailto:a@e.org", on=frozenset({"changed", "well"})), 3, -3) == [[], ["changed", "well"]]
    assert not Rule("r", "mailto:a@e.org").asks_for_failures


def test_identifiers_are_the_same_again_and_no_others() -> None:
    assert identifier("r", 7, "u") == identifier("r", 7, "u")
    assert len({identifier(*parts) for parts in [("r", 7), ("r", 8), ("s", 7), ("r", "7", "")]}) == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('name = "a"\nto = "x"\nsecret = "hush"', "A secret stands in the settings."),
        ('name = "a"\nto = "x"\nquiet = "00:00-24:00"', "leaves no time"),
        ('name = "a"\nto = "x"\ndigest = "8 o\'clock"', "is no time of day"),
        ('name = "a"\nto = "x"\ndigest = "mon-fry 08:00"', "is no time of day"),
        ('name = "a"\nto = "x"\ndigest = "08:00 Europe/Nowhere"', "names no time zone"),
        (f'name = "a"\nto = "x"\ndigest = "{", ".join(["08:00"] * 200)}"', "times of day have at most 1,000"),
        (f'name = "a"\nto = "x"\nquiet = "{", ".join(["08:00-09:00"] * 20)}"', "hours have at most 200"),
        ('name = "a"\nto = "x"\nquiet = "22:00-06:00 Europe/Atlantis"', "no time zone that is known"),
        ('name = "a"\nto = "x"\non = ["moved"]', "is not a list of changes"),
        ('name = "a"', "has no to"),
        ('name = "a"\nto = "x"\n[mail]\npassword = "hush"', "A secret stands"),
        ('name = "a"\nto = "x"\n[mail]\nserver = "smtp://me:hush@e.org"', "is no mail server"),
    ],
)
def test_what_makes_no_sense_is_refused_and_secrets_are_not_repeated(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"[[notify]]\n{text}\n")
    assert sentence in caught.value.message
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"
