from collections.abc import Callable, Iterable

import pytest

from afresh.detect import Habits
from afresh.detect.kinds import counts_audience, is_token, tells_moment
from afresh.types import Outcome, Verdict
from visitor import Visitor

STORY = "".join(
    f"<p>The harbour of town {nth} was rebuilt after the storm, and the keeper stayed.</p>" for nth in "abcdef"
)
MINUTES, DAY = 600.0, 86_400.0


class Reader(Visitor):
    """Looks at pages of one host, some time after each other."""

    now = 1_000_000.0

    def look(self, body: str, *, page: str = "/", after: float = MINUTES) -> Verdict:
        self.now += after
        return self.visit(page, f"<title>A page</title><body>{body}".encode(), self.now)

    @property
    def host(self) -> Habits:
        return self.hosts[""]

    def visits(self, bodies: Iterable[str], **options: float) -> list[str]:
        found = [self.look(body, **options) for body in bodies]  # type: ignore[arg-type]
        return [verdict.reason or verdict.outcome.value for verdict in found]


ADS = ("Fresh coffee by post", "Learn the accordion", "Bicycle insurance", "A holiday by the lake")
NOISE: dict[str, Callable[[int], str]] = {
    "clock": lambda nth: f"{STORY}<p class=clock>It is {nth % 24:02}:{nth * 7 % 60:02}</p>",
    "counter among the paragraphs": lambda nth: f"{STORY}<p>This page was read {nth} times.</p>",
    "clock in a sentence": lambda nth: f"{STORY}<p>At <b>{nth}:00</b> the ferry had run for long, as it does.</p>",
    "users online": lambda nth: f"<div id=online>{100 + nth * 37 % 91} users online</div>{STORY}",
    "token": lambda nth: f"{STORY}<footer>Request a{nth * 7919:x}f{nth}</footer>",
    "advertisement": lambda nth: f"<aside class=ad>{ADS[nth % 4]}</aside>{STORY}",
    "two at once": lambda nth: f"<aside class=ad>{ADS[nth % 4]}</aside>{STORY}<i>{nth}</i><hr>",
    "names with numbers": lambda nth: f"<div id=ad-{nth}><span class='x{nth}'>{ADS[nth % 4]}</span></div>{STORY}",
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_known_after_five_visits(name: str) -> None:
    found = Reader().visits(NOISE[name](nth) for nth in range(12))
    assert found[0] == "new"
    assert found[1] == "changed"
    assert set(found[5:]) == {"noise"}, found


@pytest.mark.parametrize("name", NOISE)
def test_an_edit_beside_noise_is_never_lost(name: str) -> None:
    reader = Reader()
    assert reader.visits(NOISE[name](nth) for nth in range(8))[-1] == "noise"
    for nth, word in enumerate(("pier", "quay", "dock"), start=8):
        edited = NOISE[name](nth).replace("harbour of town c", f"{word} of town c")
        assert reader.look(edited).outcome is Outcome.CHANGED
        assert reader.look(edited.replace("nothing", "")).outcome is Outcome.UNCHANGED


def test_another_word_beside_a_clock_in_the_same_sentence_is_heard() -> None:
    reader, clock = Reader(), NOISE["clock in a sentence"]
    assert reader.visits(clock(nth) for nth in range(8))[-1] == "noise"
    assert reader.look(clock(9).replace("had run", "had not run")).outcome is Outcome.CHANGED


def test_the_numbers_of_other_blocks_are_heard() -> None:
    def page(nth: int, price: int) -> str:
        return f"{STORY}<p>Read {nth} times.</p><p>It costs {price}.</p>"

    reader = Reader()
    assert reader.visits(page(nth, 5) for nth in range(8))[-1] == "noise"
    assert reader.look(page(9, 6)).outcome is Outcome.CHANGED


NEWS: dict[str, Callable[[int], str]] = {
    "headlines of which one is new": lambda nth: (
        f"{STORY}<ul>"
        + "".join(f"<li>Story number{'x' * each} of the day</li>" for each in range(nth + 5, nth, -1))
        + "</ul>"
    ),
    "a lead and a paragraph": lambda nth: f"<p class=lead>Update {nth}{'x' * nth}</p>{STORY}<p>New{'y' * nth}.</p>",
    "all of it": lambda nth: f"<p>Quite {'another ' * (nth + 1)} story was told.</p>" * 3,
    "nothing but a clock": lambda nth: f"<p>{nth}:00</p>",
    "a third of it": lambda nth: f"{STORY}<div class=live>{f'goal {nth}. ' * 30}</div>",
    "some cells of a table": lambda nth: (
        f"{STORY}<table>" + "".join(f"<td>{each * (nth if each < 3 else 1)}" for each in range(9))
    ),
}


@pytest.mark.parametrize("after", [MINUTES, DAY])
@pytest.mark.parametrize("name", NEWS)
def test_news_is_never_taken_for_noise(name: str, after: float) -> None:
    reader = Reader()
    found = reader.visits((NEWS[name](nth) for nth in range(1, 30)), after=after)
    assert set(found[1:]) == {"changed"}
    assert not reader.pages["/"][0].noise
    assert not reader.host.noise


def test_what_changes_now_and_then_on_many_pages_is_not_noise_of_the_host() -> None:
    """Where a spot is first noticed it has just differed: counting that, each would seem to differ always."""
    reader, prices = Reader(), dict.fromkeys(range(60), 10)
    page = lambda nth: f"<h1>Tin {'i' * nth}</h1>{STORY}<p class=price>{prices[nth]} crowns</p>"  # noqa: E731
    for nth in prices:
        reader.look(page(nth), page=f"/{nth}")
    for day in range(40):
        for nth in prices:
            changes = (nth * 7 + day * 11) % 10 == 0
            prices[nth] += (day % 3 - 1.5 > 0) * 2 - 1 if changes else 0
            found = reader.look(page(nth), page=f"/{nth}", after=DAY / 60)
            assert (found.outcome is Outcome.CHANGED) is changes


def test_a_clock_is_known_by_its_growing_number_however_seldom_it_is_seen() -> None:
    found = Reader().visits((f"{STORY}<p>Read {nth * nth} times.</p>" for nth in range(12)), after=DAY)
    assert set(found[1:4]) == {"changed"}
    assert set(found[5:]) == {"noise"}


SLOW: dict[str, Callable[[int], str]] = {
    "clock of twelve hours": lambda nth: (
        f"<p>It is {nth * 7 % 12 + 1}:{nth * 13 % 60:02} {'pm' if nth % 2 else 'am'}</p>"
    ),
    "date in words": lambda nth: f"<p>{DAYS[nth % 7]}, {MONTHS[nth * 5 % 11]} {nth * 11 % 28 + 1}, 9:{nth:02}</p>",
    "relative time": lambda nth: f"<p>Seen {nth * 7 % 50 + 1} {UNITS[nth % 3]} ago</p>",
    "countdown": lambda nth: f"<p>The sale ends in {900 - nth * 9} steps</p>",
    "users online": lambda nth: f"<p>{100 + nth * 37 % 91} users online</p>",
    "time taken": lambda nth: f"<p>Made in 0.{nth * 37 % 91 + 101} seconds</p>",
    "token of long runs": lambda nth: f"<p>Request {nth * 79 % 97:02}abc{nth * 31 % 899 + 100}de{nth * 17 + 1000}f</p>",
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
UNITS = ("seconds", "minutes", "hours")


@pytest.mark.parametrize("name", SLOW)
def test_noise_of_a_kind_that_is_known_by_its_text_takes_five_visits_however_far_apart(name: str) -> None:
    """Paragraphs without a class, so that nothing but the words around tells where a number stands."""
    found = Reader().visits((STORY + SLOW[name](nth) for nth in range(12)), after=DAY)
    assert set(found[1:4]) == {"changed"}
    assert set(found[5:]) == {"noise"}, found


@pytest.mark.parametrize("name", SLOW)
def test_another_word_beside_such_noise_is_a_change(name: str) -> None:
    reader = Reader()
    assert reader.visits((STORY + SLOW[name](nth) for nth in range(8)), after=DAY)[-1] == "noise"
    edited = STORY + SLOW[name](8).replace("</p>", " or so</p>")
    assert reader.look(edited, after=DAY).outcome is Outcome.CHANGED


def test_a_date_that_moves_once_is_a_change() -> None:
    page = lambda day: f"{STORY}<p>The ferry leaves on {day} 3 May at 10:00.</p>"  # noqa: E731
    found = Reader().visits((page("Monday" if nth < 6 else "Tuesday") for nth in range(9)), after=DAY)
    assert found[6] == "changed"
    assert "noise" not in found


@pytest.mark.parametrize(("hours", "known"), [(0.5, 4), (5, 5), (10, 6), (24, 8)])
def test_the_longer_between_two_looks_the_longer_a_number_is_doubted(hours: float, known: int) -> None:
    page = lambda nth: f"{STORY}<p class=price>{nth * 7 % 13} crowns</p>"  # noqa: E731
    found = Reader().visits((page(nth) for nth in range(12)), after=hours * 3600)
    assert found.index("noise") == known
    assert set(found[known:]) == {"noise"}


def test_what_differs_from_day_to_day_is_doubted_for_longer() -> None:
    """Once a day a price may well be another each time; after eight days in a row it cannot be kept up with anyway."""
    page = lambda nth: f"{STORY}<p class=price>{nth * 7 % 13} crowns</p>"  # noqa: E731
    found = Reader().visits((page(nth) for nth in range(12)), after=DAY)
    assert set(found[1:8]) == {"changed"}
    assert set(found[9:]) == {"noise"}


def test_a_price_that_changes_now_and_then_is_news() -> None:
    found = Reader().visits(f"{STORY}<p class=price>{nth // 3} crowns</p>" for nth in range(60))
    assert found.count("changed") == 19
    assert "noise" not in found


def test_noise_that_stops_differing_is_heard_again() -> None:
    reader, clock = Reader(), NOISE["clock"]
    assert reader.visits(clock(nth) for nth in range(10))[-1] == "noise"
    stopped = clock(10)
    still = reader.visits([stopped, *(stopped + "<!---->" * nth for nth in range(1, 4)), *[stopped] * 6])
    assert set(still) <= {"noise", "same_text", "same_bytes"}
    assert reader.look(clock(11)).outcome is Outcome.CHANGED


def test_noise_of_several_pages_is_noise_on_all_of_the_host() -> None:
    reader = Reader()
    for nth in range(4):
        for page in ("/a", "/b", "/c"):
            reader.look(f"<h1>{page}</h1>" + NOISE["advertisement"](nth), page=page, after=DAY)
    assert reader.look("<h1>D</h1>" + NOISE["advertisement"](0), page="/d").outcome is Outcome.NEW
    found = reader.look("<h1>D</h1>" + NOISE["advertisement"](1), page="/d", after=DAY)
    assert (found.outcome, found.reason) == (Outcome.UNCHANGED, "noise")


def test_noise_of_one_page_is_not_noise_elsewhere() -> None:
    reader = Reader()
    reader.visits(NOISE["advertisement"](nth) for nth in range(12))
    assert reader.look(NOISE["advertisement"](0), page="/other").outcome is Outcome.NEW
    assert reader.look(NOISE["advertisement"](1), page="/other").outcome is Outcome.CHANGED


def test_what_is_noise_has_a_place_a_sample_and_a_moment() -> None:
    reader = Reader()
    reader.visits(NOISE["clock"](nth) for nth in range(8))
    (habit,) = [habit for habit in reader.pages["/"][0].spots.values() if habit.since]
    assert habit.place == "<p class=clock>"
    assert habit.sample.startswith("It is ")
    assert habit.since == 1_000_000.0 + 5 * MINUTES


def test_a_page_cannot_fill_the_memory() -> None:
    reader = Reader()
    for nth in range(40):
        reader.look(
            STORY + "".join(f"<div class={'x' * (nth * 50 + each)}>{nth} {'y' * 500}</div>" for each in range(50))
        )
    habits = reader.pages["/"][0]
    assert len(habits.spots) <= 16
    assert len(habits.to_text()) < 10_000
    assert len(reader.host.to_text()) < 10_000


@pytest.mark.parametrize("text", ["[", "7", '[{"key": 1}]', '[{"key": 1, "nonsense": 2}]', "{}", "null", "[[1]]"])
def test_what_cannot_be_read_is_learned_again(text: str) -> None:
    assert not Habits.from_text(text)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("Request 3fa9c81b77d20e4a", True),
        ("id 7f3a-9c2e-11d4-b8e0", True),
        ("1,234,567,890,123 visitors", False),
        ("2026-11-17T23:59:59Z", False),
        ("The price is 12.50 EUR", False),
        ("0bf43eeb2729e268", True),
        ("iPhone15ProMax", False),
        ("ISO9001-certified2024", False),
        ("a" * 60, False),
    ],
)
def test_a_price_or_a_moment_is_not_taken_for_a_token(text: str, token: bool) -> None:
    assert is_token(text) is token


@pytest.mark.parametrize(
    "text", ["7.50 EUR", "Score 12:4", "1:0 after 90 minutes", "4.5 stars", "21 °C", "12 in stock"]
)
def test_a_price_a_score_or_a_temperature_is_of_no_kind_that_is_known_as_noise(text: str) -> None:
    assert not any(kind(text) for kind in (tells_moment, counts_audience, is_token))
