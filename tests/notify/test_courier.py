"""From a change to who is told of it: at least once, through kills, restarts, and receivers that are down."""

import asyncio
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import afresh
from afresh.detect.compare import NO_RULES
from afresh.hours import hours, moments
from afresh.notify import Courier, Rule, gather
from afresh.notify.channels.base import Channel, Undelivered
from afresh.notify.channels.mail import MailServer
from afresh.notify.channels.opening import channel_for
from afresh.notify.courier import letter_of
from afresh.notify.gather import Gatherer
from afresh.notify.message import FULL_ITEMS, Letter
from afresh.store import KeepVersions, LastingStore, PageState, Record, Sqlite
from afresh.store.outbox import DEAD, GATHERED, Message, Outbox
from afresh.store.postgres import Postgres
from afresh.types import BACK, Copy, Crawl, Outcome, Page, Validators
from hook import Hook, hook
from notify_waits import until
from postgres import Postgres as Server

HOST = "e.org"


class Clock:
    """Time that stands still until somebody moves it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def changed(kept: LastingStore, url: str, body: str, when: float, outcome: Outcome = Outcome.CHANGED) -> None:
    """A crawl that found something."""
    page = Page(url, HOST)
    kept.add([page])
    if outcome is Outcome.GONE:
        kept.write([Record(Crawl(url, when, outcome), PageState(page, checked=when, failures=1))])
        return
    validators = Validators(fingerprint=hash(body) & 0xFFFF)
    state = PageState(page, None, validators, when, when)
    copy = Copy(url, body.encode(), "text/html", when, when, validators)
    kept.write([Record(Crawl(url, when, outcome, significance=0.2), state, copy)])


@contextmanager
def telling(
    kept: LastingStore,
    rules: Sequence[Rule],
    clock: Callable[[], float] = time.time,
    retry: float = 0.05,
    seconds: float = 5.0,
) -> Iterator[Courier]:
    """A courier at work."""

    def channels() -> dict[str, Channel]:
        return {rule.name: channel_for(rule, MailServer(""), seconds=seconds) for rule in rules}

    gatherer = Gatherer(kept, rules, counts=lambda host: NO_RULES, clock=clock)
    courier = Courier(gatherer, channels, clock=clock, first_retry=retry, rng=random.Random(1))
    courier.start()
    try:
        yield courier
    finally:
        courier.stop()


def opened(place: Path | str) -> LastingStore:
    keeps = KeepVersions(2)
    return Sqlite(place, keep_versions=keeps) if isinstance(place, Path) else Postgres(place, keep_versions=keeps)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new store may be: a file, or a database."""
    if request.param == "file":
        return tmp_path / "s.db"
    own: Server = request.getfixturevalue("server")
    return own.fresh("courier")


def test_each_rule_is_told_of_what_it_is_about_with_the_text_before_and_after(place: Path | str) -> None:
    with opened(place) as kept, hook() as everything, hook() as stock:
        changed(kept, "https://e.org/old", "<p>of before", 1.0, Outcome.NEW)
        rules = [Rule("all", everything.url), Rule("stock", stock.url, appear=("in stock",))]
        with telling(kept, rules) as courier:
            changed(kept, "https://e.org/a", "<title>Shop</title><p>Sold out", 10.0, Outcome.NEW)
            changed(kept, "https://e.org/a", "<title>Shop</title><p>Price: 5", 20.0)
            changed(kept, "https://e.org/a", "<title>Shop</title><p>Price: 5<p>In stock", 30.0)
            changed(kept, "https://e.org/a", "", 40.0, Outcome.GONE)
            courier.wake()
            until(lambda: len(everything.messages) == 3 and len(stock.messages) == 1)
        first, second, gone = everything.messages
        assert [each["changes"][0]["number"] for each in everything.messages] == [3, 4, 5]
        assert first["changes"][0]["blocks"] == [
            {"before": "Sold out", "after": None},
            {"before": None, "after": "Price: 5"},
        ]
        assert second["changes"][0]["title"] == "Shop"
        assert stock.messages[0]["changes"][0]["blocks"] == [{"before": None, "after": "In stock"}]
        assert gone["changes"][0]["change"] == "gone"
        assert len({each["id"] for each in (*everything.messages, *stock.messages)}) == 4
        told = {each.name: each for each in Outbox(kept).all()}
        assert (told["all"].delivered, told["all"].waiting, told["stock"].delivered) == (3, 0, 1)


def test_a_webhook_that_is_down_for_a_while_gets_all_in_order_and_the_others_do_not_wait(place: Path | str) -> None:
    with hook() as first:
        port = first.server_address[1]
    with opened(place) as kept, hook() as other:
        rules = [Rule("down", f"http://127.0.0.1:{port}/"), Rule("up", other.url)]
        with telling(kept, rules) as courier:
            for nth in range(12):
                changed(kept, f"https://e.org/{nth % 3}", f"<p>{nth}", 100.0 + nth)
            courier.wake()
            until(lambda: len(other.messages) == 12)
            until(lambda: Outbox(kept).all()[0].failures > 2)
            told = Outbox(kept).all()[0]
            assert (told.problem, told.waiting) == ("no_connection", 12)
        with telling(kept, rules), hook(port) as there:  # after a restart, and it is up again
            until(lambda: len(there.messages) == 12)
            assert there.numbers == sorted(there.numbers)
            until(lambda: Outbox(kept).all()[0].delivered == 12)
            assert Outbox(kept).all()[0].problem == ""
        assert other.numbers == there.numbers


def test_what_a_receiver_refuses_is_given_up_and_may_be_sent_again(place: Path | str) -> None:
    with opened(place) as kept, hook() as there:
        rules = [Rule("picky", there.url)]
        there.status = 422
        with telling(kept, rules, retry=0.01) as courier:
            changed(kept, "https://e.org/a", "<p>x", 1.0)
            courier.wake()
            until(lambda: Outbox(kept).all()[0].dead == 1)
            assert there.asked == 5
            (dead,) = Outbox(kept).messages("picky", DEAD)
            assert dead.problem == "HTTP 422"
            there.status = 200
            changed(kept, "https://e.org/a", "<p>y", 2.0)
            courier.wake()
            until(lambda: len(there.messages) == 1)
            assert Outbox(kept).revive("picky", time.time()) == 1
            courier.wake()
            until(lambda: len(there.messages) == 2)
            assert there.messages[1]["id"] == dead.id
        changed(kept, "https://e.org/a", "<p>z", 3.0)
        Gatherer(kept, rules, counts=lambda host: NO_RULES, clock=time.time).step()
        assert Outbox(kept).forget("picky") == 1
        assert not Outbox(kept).all()


def test_a_digest_goes_at_its_hour_and_quiet_hours_keep_messages_back(place: Path | str) -> None:
    clock = Clock(datetime(2026, 11, 19, 5, 0, tzinfo=UTC).timestamp())  # six o'clock in Berlin
    with opened(place) as kept, hook() as daily, hook() as quiet:
        rules = [
            Rule("daily", daily.url, digest=moments("08:00 Europe/Berlin")),
            Rule("quiet", quiet.url, quiet=hours("22:00-07:00 Europe/Berlin")),
        ]
        with telling(kept, rules, clock) as courier:
            for nth in range(3):
                changed(kept, f"https://e.org/{nth}", f"<p>{nth}", clock.now)
            courier.wake()
            until(lambda: [(each.gathered, each.waiting) for each in Outbox(kept).all()] == [(3, 0), (0, 3)])
            clock.now += 3599.0
            courier.wake()
            time.sleep(0.2)
            assert not quiet.asked
            clock.now += 1.0
            courier.wake()
            until(lambda: len(quiet.messages) == 3)
            assert not daily.asked
        clock.now += 3600.0  # eight o'clock, after a restart
        with telling(kept, rules, clock):
            until(lambda: len(daily.messages) == 1)
        assert daily.messages[0]["type"] == "digest"
        assert daily.numbers == [1, 2, 3]
        assert not Outbox(kept).all()[0].gathered


def test_who_is_told_that_a_page_is_gone_is_told_which_and_that_it_is_back(place: Path | str) -> None:
    url, shop = "https://e.org/a", "<title>Shop</title><p>In stock"
    with opened(place) as kept:
        rules = [Rule("all", "screen:"), Rule("stock", "screen:", appear=("in stock",)), Rule("sold", "screen:")]
        rules[2] = replace(rules[2], disappear=("sold out",))
        gatherer = Gatherer(kept, rules, counts=lambda host: NO_RULES, clock=time.time)
        gatherer.begin()
        changed(kept, "https://e.org/never", "", 5.0, Outcome.GONE)  # nobody has ever seen it
        changed(kept, url, shop, 10.0, Outcome.NEW)
        changed(kept, url, "", 20.0, Outcome.GONE)
        state = kept.state(url)
        assert state is not None
        kept.write([Record(Crawl(url, 30.0, Outcome.CHANGED, significance=1.0, reason=BACK), state)])
        changed(kept, url, shop.replace("In", "Not in"), 40.0)
        while gatherer.step():
            pass
        told = {rule.name: [letter_of(each) for each in gatherer.outbox.messages(rule.name, limit=9)] for rule in rules}
    lines = [letter.text.splitlines() for letter in told["all"]]
    assert lines[:2] == [["Shop is gone", url], ["Shop is back", url]]
    assert [letter.items[0].back for letter in told["all"]] == [False, True, False]
    assert told["all"][1].items[0].blocks == ((None, "Shop"), (None, "In stock"))
    assert [letter.items[0].number for letter in told["stock"]] == [4]  # its text is here again
    assert not told["sold"], "what it waits for never stood there"


def test_a_digest_tells_its_first_changes_in_full_and_stays_bounded(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as kept:
        rule = Rule("daily", "screen:", digest=moments("08:00"))
        gatherer = Gatherer(kept, [rule], counts=lambda host: NO_RULES, clock=time.time)
        gatherer.begin()
        for nth in range(FULL_ITEMS + 20):
            for text in ("old", "new"):
                body = "".join(f"<p>{text}{block} {'word ' * 100}{text}" for block in range(12))
                changed(kept, f"https://e.org/{nth}", body, 1.0, Outcome.NEW if text == "old" else Outcome.CHANGED)
        while gatherer.step():
            pass
        parts = gatherer.outbox.messages("daily", GATHERED, 500)
    items = [letter_of(each).items[0] for each in parts]
    assert [len(item.blocks) for item in items] == [10] * FULL_ITEMS + [3] * 20
    assert [item.more for item in items] == [2] * FULL_ITEMS + [9] * 20


def test_more_changes_than_a_slow_receiver_takes_wait_in_the_store_and_cost_no_memory(place: Path | str) -> None:
    with opened(place) as kept, hook() as slow:
        rules = [Rule("slow", slow.url)]
        gatherer = Gatherer(kept, rules, counts=lambda host: NO_RULES, clock=time.time)
        gatherer.begin()
        pages = [Page(f"https://e.org/{nth}", HOST) for nth in range(2_000)]
        kept.add(pages)
        states = [PageState(page, checked=1.0, failures=1) for page in pages]
        kept.write([Record(Crawl(each.page.url, 1.0, Outcome.CHANGED), each) for each in states])
        while gatherer.step():
            pass
        held = Outbox(kept).all()[0]
        assert gather.MAX_WAITING <= held.waiting < gather.MAX_WAITING + gather.BATCH
        assert held.position == held.waiting  # the others are still to be read
        with telling(kept, rules) as courier:
            until(lambda: len(slow.messages) >= 1_500, 150)
            assert courier.outbox.all()[0].waiting <= gather.MAX_WAITING + gather.BATCH
        assert slow.numbers == sorted(set(slow.numbers))


FAILURES = frozenset({"gone", "failing", "well"})


def failed(
    kept: LastingStore, url: str, when: float, outcome: Outcome = Outcome.FAILED, reason: str = "timeout"
) -> None:
    """A crawl that brought nothing."""
    kept.add([Page(url, HOST)])
    state = kept.state(url)
    assert state is not None
    kept.write([Record(Crawl(url, when, outcome, reason=reason), replace(state, failures=state.failures + 1))])


def gathered(kept: LastingStore, rule: Rule, crawls: Callable[[], Iterator[None]]) -> list[Letter]:
    """What a rule is told of some crawls; whoever gathers that looks at each point where they rest, and at the end."""
    gatherer = Gatherer(
        kept, [rule], counts=lambda host: NO_RULES, clock=time.time, words=lambda reason: f"in words: {reason}"
    )
    gatherer.begin()
    for _ in crawls():
        gatherer.step()
    while gatherer.step():
        pass
    return [letter_of(each) for each in gatherer.outbox.messages(rule.name, limit=999)]


def test_who_asks_for_failures_is_told_once_that_a_page_fails_and_that_it_is_well(place: Path | str) -> None:
    url, other, never = (f"https://e.org/{name}" for name in ("shop", "other", "never"))

    def crawls() -> Iterator[None]:
        changed(kept, url, "<title>Shop</title>", 1.0, Outcome.NEW)
        for nth in range(2, 30):  # of so many alike, most leave the history
            failed(kept, url, float(nth))
            yield
            if nth == 3:
                failed(kept, other, 3.5)
        changed(kept, other, "<p>x", 31.0)  # too few had failed
        failed(kept, url, 32.0, reason="store_full")  # its page has not failed
        changed(kept, url, "<title>New shop</title>", 33.0)
        for nth in (34, 35):
            failed(kept, url, float(nth), Outcome.BUSY, "status_503")
        changed(kept, url, "", 36.0, Outcome.GONE)  # that is told instead
        for nth in (37, 38):
            failed(kept, never, float(nth), Outcome.GONE, "status_404")  # nobody has ever seen it: it fails

    with opened(place) as kept:
        kept.title_of = lambda copy: copy.body[7:-8].decode()
        letters = gathered(kept, Rule("ops", "screen:", on=FAILURES, failures=2), crawls)
    texts = [letter.text.splitlines() for letter in letters]
    assert texts == [
        ["Shop fails: in words: timeout", url, "2 crawls that failed"],
        ["New shop is well again", url, "After 28 crawls that failed"],
        ["New shop fails: in words: status_503", url, "2 crawls that failed"],
        ["New shop is gone", url],
        ["Fails: in words: status_404", never, "2 crawls that failed"],
    ]
    items = [letter.items[0] for letter in letters]
    assert [(each.change, each.reason, each.failures) for each in items] == [
        ("failing", "timeout", 2),
        ("well", "", 28),
        ("failing", "status_503", 2),
        ("gone", "", 0),
        ("failing", "status_404", 2),
    ]
    assert letters[0].subject == "afresh ops: Shop fails: in words: timeout"
    assert len({letter.id for letter in letters}) == 5


def test_one_crawl_may_find_a_change_and_that_a_page_is_well(place: Path | str) -> None:
    url = "https://e.org/a"

    def crawls() -> Iterator[None]:
        failed(kept, url, 1.0)
        yield
        changed(kept, url, "<p>x", 2.0, Outcome.NEW)

    with opened(place) as kept:
        both = Rule("both", "screen:", on=frozenset({"new", "well"}), failures=1, appear=("x",), significance=0.9)
        letters = gathered(kept, both, crawls)
    assert [(letter.items[0].change, letter.items[0].number) for letter in letters] == [("new", 2), ("well", 2)]
    assert len({letter.id for letter in letters}) == 2


def test_nothing_is_missed_where_changes_and_failures_come_in_parts(place: Path | str) -> None:
    """Both are read in parts of their own: neither may run ahead of the other."""

    def crawls() -> Iterator[None]:
        for nth in range(130):  # first many changes, then many failures, then both
            changed(kept, f"https://e.org/{nth}", "<p>x", 1.0, Outcome.NEW)
        for nth in range(130):
            failed(kept, f"https://e.org/{nth}", 2.0)
        for nth in range(130):
            yield from (None,) * (nth == 70)
            changed(kept, f"https://e.org/{nth}", "<p>y", 3.0)
            failed(kept, f"https://e.org/{nth}", 4.0)

    with opened(place) as kept:
        letters = gathered(kept, Rule("all", "screen:", on=FAILURES | {"new", "changed"}, failures=1), crawls)
    numbers = [letter.items[0].number for letter in letters]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, 521))
    assert len(letters) == 520 + 130  # whose change ended a failure


OUTAGES = """
import sys, time
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from test_courier import FAILURES, changed, failed, opened, telling
from afresh.notify import Rule

place = sys.argv[1] if sys.argv[1].startswith("postgresql") else Path(sys.argv[1])
with opened(place) as kept, telling(kept, [Rule("ops", sys.argv[2], on=FAILURES, failures=2)]) as courier:
    print("up", flush=True)
    first = kept.totals().crawls
    for nth in range(first, 10**9):
        url = f"https://e.org/{nth % 7}"
        # Twice seven failures, then seven that are well: each page has an outage of two.
        if nth // 7 % 3 < 2:
            failed(kept, url, time.time())
        else:
            changed(kept, url, f"<p>text {nth}", time.time())
        courier.wake()
        time.sleep(0.02)
"""


def test_kill_9_loses_no_outage_and_tells_each_with_one_identifier(place: Path | str) -> None:
    rng = random.Random(6)
    tests = Path(__file__).parent
    source = [str(Path(afresh.__file__).parent.parent), str(tests), str(tests.parent / "support")]
    with hook() as there:
        for _ in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", OUTAGES, str(place), there.url, *source],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": source[0]},
            )
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            wanted = len(there.messages) + rng.randrange(5, 20)
            until(lambda wanted=wanted: len(there.messages) >= wanted, 60)  # type: ignore[misc]
            process.kill()
            process.communicate()
        with opened(place) as kept, telling(kept, [Rule("ops", there.url, on=FAILURES, failures=2)]):
            last = kept.totals().crawls
            # Crawl n (from 1) of what is written above: the second failure of a page, or that it is well.
            expected = {
                n: "failing" if (n - 1) // 7 % 3 == 1 else "well" for n in range(1, last + 1) if (n - 1) // 7 % 3
            }
            until(lambda: {each["changes"][0]["number"] for each in there.messages} >= expected.keys(), 60)
        told: dict[int, set[tuple[str, str]]] = {}
        for message in there.messages:
            told.setdefault(message["changes"][0]["number"], set()).add(
                (message["id"], message["changes"][0]["change"])
            )
    assert {number: [kind for _, kind in each] for number, each in told.items()} == {
        n: [k] for n, k in expected.items()
    }
    assert len({name for each in told.values() for name, _ in each}) == len(expected)


RUNNER = """
import sys, time
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from test_courier import opened, telling, changed
from afresh.notify import Rule

place = sys.argv[1] if sys.argv[1].startswith("postgresql") else Path(sys.argv[1])
with opened(place) as kept, telling(kept, [Rule("all", sys.argv[2])]) as courier:
    print("up", flush=True)
    for nth in range(10**9):
        changed(kept, f"https://e.org/{nth % 97}", f"<p>text {nth}", time.time())
        print(kept.totals().crawls, flush=True)
        courier.wake()
        time.sleep(0.02)
"""


def test_a_message_that_nobody_takes_is_given_up_after_three_days_of_trying(place: Path | str) -> None:
    clock = Clock(1_000.0)
    with opened(place) as kept:
        rule = Rule("down", "http://127.0.0.1:1/")
        courier = Courier(
            Gatherer(kept, [rule], counts=lambda host: NO_RULES, clock=clock), dict, clock=clock, rng=random.Random(1)
        )
        courier.gatherer.begin()
        changed(kept, "https://e.org/a", "<p>x", 1_000.0)
        courier.gatherer.step()

        async def try_until_given_up() -> None:
            channel = Fails()
            while waiting := courier.outbox.messages("down"):
                clock.now = max(clock.now, waiting[0].due)
                await courier.deliver_some(rule, channel)

        asyncio.run(try_until_given_up())
        assert 2.5 * 86_400 < clock.now - 1_000.0 < 3.5 * 86_400
        assert courier.outbox.all()[0].dead == 1


class Fails:
    """A channel whose receiver is not there."""

    async def send(self, letter: Letter) -> None:
        """It does not arrive."""
        raise Undelivered("no_connection")

    async def close(self) -> None:
        """Nothing is open."""


def test_messages_that_the_store_has_lost_do_not_hold_up_those_behind_them(place: Path | str) -> None:
    with opened(place) as kept, hook() as there, hook() as daily:
        rules = [Rule("now", there.url), Rule("daily", daily.url, digest=moments("08:00"))]
        outbox = Outbox(kept)
        outbox.begin(rule.name for rule in rules)
        bad = ["no JSON", "[]x", "7", '{"url": 5}', '[{"url": "https://e.org/"}]']
        waiting = [Message("now", f"w{nth}", 1.0, 1.0, body) for nth, body in enumerate(bad)]
        parts = [Message("daily", f"g{nth}", 1.0, 1.0, body, GATHERED) for nth, body in enumerate(bad)]
        outbox.add([*waiting, *parts], {})
        with telling(kept, rules):
            changed(kept, "https://e.org/a", "<p>x", 1.0)
            until(lambda: len(there.messages) == 1 and len(daily.messages) == 1)
        assert [(each.dead, each.waiting, each.gathered) for each in outbox.all()] == [(5, 0, 0), (5, 0, 0)]
        assert outbox.messages("now", DEAD)[0].problem == "it is damaged in the store"


def test_what_a_clock_that_ran_ahead_put_off_goes_in_its_time(place: Path | str) -> None:
    now = datetime(2026, 11, 19, 5, 0, tzinfo=UTC).timestamp()
    clock = Clock(now + 400 * 86_400)
    with opened(place) as kept, hook() as there, hook() as daily:
        rules = [Rule("now", there.url), Rule("daily", daily.url, digest=moments("08:00"))]
        there.status = 500
        with telling(kept, rules, clock, retry=10.0) as courier:
            changed(kept, "https://e.org/a", "<p>x", clock.now)
            courier.wake()
            until(lambda: [(each.failures, each.gathered) for each in Outbox(kept).all()] == [(0, 1), (1, 0)])
        there.status, clock.now = 200, now
        with telling(kept, rules, clock) as courier:
            until(lambda: len(there.messages) == 1)
            assert not daily.asked
            clock.now += 3 * 3600.0
            courier.wake()
            until(lambda: len(daily.messages) == 1)


def test_what_was_gathered_goes_at_once_where_the_rule_has_no_digest_any_more(place: Path | str) -> None:
    clock = Clock(1_000.0)
    with opened(place) as kept, hook() as there:
        with telling(kept, [Rule("r", there.url, digest=moments("08:00"))], clock) as courier:
            changed(kept, "https://e.org/a", "<p>x", 1_000.0)
            courier.wake()
            until(lambda: Outbox(kept).all()[0].gathered == 1)
        with telling(kept, [Rule("r", there.url)], clock):
            until(lambda: there.numbers == [1])


def test_texts_of_one_host_that_take_long_do_not_keep_all_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "SECONDS_A_BYTE", 0.5 / 1_000)
    clock = itertools.count()
    monkeypatch.setattr(gather.time, "thread_time", lambda: 0.3 * next(clock))
    with opened(tmp_path / "s.db") as kept:
        wanted = frozenset({Outcome.NEW})
        rules = [Rule("all", "screen:", on=wanted), Rule("words", "screen:", on=wanted, appear=("text 7 ",))]
        gatherer = Gatherer(kept, rules, counts=lambda host: NO_RULES, clock=time.time)
        gatherer.begin()
        for nth in range(gather.BATCH + 10):
            text = f"<title>T</title><p>text {nth} " + "long " * (nth % 5 and 190)
            changed(kept, f"https://e.org/{nth}", text, 1.0, Outcome.NEW)
        monkeypatch.setattr(gather, "CHEAP_SECONDS", 0.1)
        while gatherer.step():
            pass
        items = [letter_of(each).items[0] for each in gatherer.outbox.messages("all", limit=100)]
        asked_for = [letter_of(each).items[0] for each in gatherer.outbox.messages("words", limit=100)]
    told = [bool(item.blocks) for item in items]
    waited = [nth % 5 == 0 for nth in range(gather.BATCH)]  # while others wait: short ones, and the first of the long
    assert told == [*waited[:1], True, *waited[2:], *[True] * 10]
    assert {item.title for item in items} == {"T"}
    assert [item.url for item in asked_for] == ["https://e.org/7"], "who asks for words gets no message without them"


def test_a_rule_that_is_forgotten_while_it_is_at_work_stops_no_other(place: Path | str) -> None:
    with opened(place) as kept, hook() as there:
        rules = [Rule("gone", there.url), Rule("stays", there.url)]
        with telling(kept, rules) as courier:
            Outbox(kept).forget("gone")
            changed(kept, "https://e.org/a", "<p>x", 1.0)
            courier.wake()
            until(lambda: [message["rule"] for message in there.messages] == ["stays"])


def test_kill_9_loses_no_message_and_repeats_have_the_same_identifier(place: Path | str) -> None:
    rng = random.Random(5)
    source = [
        str(Path(afresh.__file__).parent.parent),
        str(Path(__file__).parent),
        str(Path(__file__).parents[1] / "support"),
    ]
    acknowledged = 0
    with hook() as there:
        for _ in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(place), there.url, *source],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": source[0]},
            )
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            wanted = len(there.messages) + rng.randrange(5, 25)
            until(lambda wanted=wanted: len(there.messages) >= wanted, 60)  # type: ignore[misc]
            process.kill()
            rest, _ = process.communicate()
            acknowledged = max([acknowledged, *map(int, rest.split()[:-1])])
        with opened(place) as kept, telling(kept, [Rule("all", there.url)]):
            last = kept.totals().crawls
            until(lambda: bool(there.numbers) and max(there.numbers) >= last, 60)
        of_number: dict[int, set[str]] = {}
        for message in there.messages:
            of_number.setdefault(message["changes"][0]["number"], set()).add(message["id"])
    assert last >= acknowledged
    assert sorted(of_number) == list(range(1, last + 1))  # each at least once
    assert all(len(names) == 1 for names in of_number.values())
    assert len(set.union(*of_number.values())) == last  # and no two have the same


def test_a_receiver_that_hangs_holds_up_neither_the_end_nor_the_others(place: Path | str) -> None:
    with opened(place) as kept, hook() as hangs, hook() as good:
        hangs.seconds = 60.0
        rules = [Rule("hangs", hangs.url), Rule("good", good.url)]
        with telling(kept, rules, seconds=60.0) as courier:
            changed(kept, "https://e.org/a", "<p>x", 1.0)
            courier.wake()
            until(lambda: len(good.messages) == 1)
            began = time.monotonic()
            courier.stop(0.3)
            assert time.monotonic() - began < 3
        assert Outbox(kept).all()[1].waiting == 1  # it goes the next time
        assert isinstance(hangs, Hook)
