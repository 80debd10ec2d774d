"""Lists of pages: every part begins behind the one before it, in any order, and finds what a full look would find."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from afresh.cli.looking import StoreFacts
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import LastingStore, PageState, Record, Sqlite
from afresh.store.figures import HOUR, KEPT_HOURS, Figures, figures_kept, name_of, outdated, to_text
from afresh.store.listing import Listing, Wanted
from afresh.types import Address, Beliefs, Copy, Crawl, Outcome, Page
from postgres import Postgres as Server

NOW = 1_700_000_000.0


def page(nth: int) -> Page:
    host = ("a.example", "a.example:81", "b-a.example")[nth % 3]
    scheme = ("http", "https")[nth % 2]
    return Page(f"{scheme}://{host}/{'news' if nth % 5 else 'old'}/{nth * 37 % 100:02}", host, NOW, paused=nth % 7 == 0)


def state(nth: int) -> PageState:
    has, checked = nth % 4 != 3, NOW - nth % 10
    beliefs = Beliefs(change_rate=1e-12 if nth % 2 else 1.0)
    times = {"checked": checked, "fetched": NOW} if has else {}
    return PageState(page(nth), beliefs, **times, failures=nth % 3)  # type: ignore[arg-type]


def fill(store: LastingStore) -> None:
    states = [state(nth) for nth in range(60)]
    records = []
    for nth, each in enumerate(states):
        url, copy = each.page.url, None
        if each.fetched is not None:
            copy = Copy(url, b"x", "text/html", NOW, each.checked or NOW)
        records.append(Record(Crawl(url, NOW, Outcome.NEW if copy else Outcome.FAILED), each, copy))
        if nth % 6 in (1, 2):  # those that fail; one attempt that brings no answer decides nothing
            records.append(Record(Crawl(url, NOW + nth // 3, Outcome.GONE), each))
            records.append(Record(Crawl(url, NOW + 500, Outcome.FAILED), each))
    store.write(records, pages=[each.page for each in states])


@pytest.fixture(scope="module")
def in_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqlite]:
    path: Path = tmp_path_factory.mktemp("listing") / "s.db"
    with Sqlite(path) as store:
        fill(store)
        yield store


@pytest.fixture(scope="module")
def in_server() -> Iterator[LastingStore]:
    from afresh.store.postgres import Postgres

    server = Server()
    try:
        with Postgres(Address(server.fresh("listing"))) as store:
            fill(store)
            yield store
    finally:
        server.close()


@pytest.fixture(params=["in_file", "in_server"])
def kept(request: pytest.FixtureRequest) -> LastingStore:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def parts(kept: LastingStore, **wanted: object) -> Iterator[Listing]:
    after = ""
    while True:
        part = kept.listed(Wanted(after=after, **wanted))  # type: ignore[arg-type]
        yield part
        if not (after := part.after):
            return


def on_a(each: PageState) -> Page | None:
    return each.page if each.page.host == "a.example" else None


def is_fresh(each: PageState) -> bool:
    return each.gone is None and each.beliefs is not None and each.beliefs.change_rate < 1e-6


ANY: Callable[[PageState], bool] = lambda each: True  # noqa: E731
CASES: list[tuple[dict[str, object], Callable[[PageState], object], Callable[[PageState], bool]]] = [
    ({}, lambda each: each.page.url, ANY),
    ({"order": "added"}, lambda each: 0, ANY),
    ({"order": "checked"}, lambda each: each.checked, lambda each: each.checked is not None),
    ({"order": "failures"}, lambda each: -each.failures, lambda each: each.failures > 0),
    (
        {"state": "failing", "text": "news"},
        lambda each: -each.failures,
        lambda s: s.failures > 0 and s.gone is None and "news" in s.page.url,
    ),
    ({"state": "gone"}, lambda each: -(each.gone or 0.0), lambda each: each.gone is not None),
    ({"state": "gone", "host": "a.example"}, lambda s: s.page.url, lambda s: s.gone is not None and bool(on_a(s))),
    ({"state": "fresh"}, lambda s: s.page.url, lambda s: s.fetched is not None and is_fresh(s)),
    ({"state": "stale"}, lambda s: s.page.url, lambda s: s.fetched is not None and not is_fresh(s)),
    ({"state": "paused"}, lambda each: 0, lambda each: each.page.paused),
    ({"state": "without"}, lambda each: 0, lambda each: each.fetched is None),
    ({"state": "copy"}, lambda each: each.page.url, lambda each: each.fetched is not None),
    ({"host": "a.example"}, lambda each: each.page.url, lambda each: each.page.host == "a.example"),
    (
        {"host": "a.example", "state": "paused"},
        lambda s: s.page.url,
        lambda s: s.page.host == "a.example" and s.page.paused,
    ),
    ({"text": "https://a.example/n"}, lambda s: s.page.url, lambda s: s.page.url.startswith("https://a.example/n")),
    ({"text": "old"}, lambda each: each.page.url, lambda each: "old" in each.page.url),
    ({"text": "nowhere"}, lambda each: each.page.url, lambda each: False),
]


@pytest.mark.parametrize(("wanted", "order", "has"), CASES, ids=[str(case[0]) for case in CASES])
def test_parts_together_are_what_a_full_look_finds(
    kept: LastingStore,
    wanted: dict[str, object],
    order: Callable[[PageState], object],
    has: Callable[[PageState], bool],
) -> None:
    everything = [each for _, each in kept.states()]
    assert sum(each.gone is not None for each in everything) == 20
    if not isinstance(kept, Sqlite) and ({"checked", "without"} & {wanted.get("order"), wanted.get("state")}):
        order = lambda each: 0  # noqa: E731 - a server has no index of these
        has = has if "state" in wanted else ANY
    expected = sorted((each for each in everything if has(each)), key=order)  # type: ignore[arg-type]
    listed = [each for part in parts(kept, limit=7, **wanted) for each in part.pages]
    assert sorted(each.page.url for each in listed) == sorted(each.page.url for each in expected)
    assert [order(each) for each in listed] == [order(each) for each in expected]


def test_a_host_is_found_without_looking_at_others(kept: LastingStore) -> None:
    found = kept.listed(Wanted(host="a.example:81", limit=200))
    assert found.looked_at == len(found.pages) == 20
    for state in ("paused", "gone", "failing"):
        assert kept.listed(Wanted(state=state, limit=3)).looked_at == 3


def test_orders_come_from_an_index(in_file: Sqlite) -> None:
    from afresh.store import listing

    reader = in_file.reader()
    for statement in listing.STATEMENTS.values():
        steps = [row[3] for row in reader.execute(f"EXPLAIN QUERY PLAN {statement}", (0,) * statement.count("?"))]
        assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in steps), (statement, steps)
    reader.close()


def test_orders_come_from_an_index_in_a_server(in_server: LastingStore) -> None:
    from afresh.store.postgres import Postgres
    from afresh.store.postgres.statements import LISTED

    assert isinstance(in_server, Postgres)
    first = {"url": ("h", "i", 500), "added": (0, 500), "paused": (0, 500), "gone": (1e300, 0, 500)}
    with in_server.session() as connection:
        for way in ("seqscan", "bitmapscan", "sort"):  # which are cheaper where there are few pages
            connection.execute(f"SET enable_{way} = off".encode())
        for name, statement in LISTED.items():
            asked = dict(zip("abc", first.get(name, (1 << 62, 0, 500)), strict=False))
            plan = [row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), asked).fetchall()]
            assert not any("Seq Scan" in step for step in plan), (name, plan)
            assert name == "url" or not any("->  Sort" in step for step in plan), (name, plan)


@pytest.mark.parametrize("after", ["!", "e30", "WyJ1cmwiXQ", "WyJhZGRlZCIsIDFd", "W" * 30_000, "é"])
def test_a_place_that_nobody_gave_is_refused(kept: LastingStore, after: str) -> None:
    with pytest.raises(InputError):
        kept.listed(Wanted(after=after))


def test_the_latest_changes_are_looked_through_part_by_part(kept: LastingStore) -> None:
    facts, whole = StoreFacts(Config), kept.changes(limit=10_000)
    facts._kept = kept
    found, before = list[int](), None
    for _ in range(1_000):
        part = facts.latest_of(lambda url: True, 1_000, before, 3)
        found += [each["number"] for each in part.found]
        before = part.last
        if part.time is None:
            break
    assert len(whole) > 50
    assert found == [number for number, _ in whole][::-1]
    some = facts.latest_of(lambda url: url == whole[-1][1].url, 1, None, 10_000)
    assert [each["number"] for each in some.found] == [whole[-1][0]]


def test_figures_come_back_in_order_and_old_hours_go(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store:
        rows = [Figures(NOW + 60.0 * nth, freshness=nth / 200, crawls=nth) for nth in range(120)]
        for hour in {name_of(row.time) for row in rows}:
            store.put({hour: to_text(row for row in rows if name_of(row.time) == hour)})
        assert figures_kept(store, NOW) == rows
        assert figures_kept(store, rows[100].time) == rows[100:]
        store.put({name_of(NOW): '{"fields": ["time"], "rows": [["no number"]]}', "figures x": "1"})
        assert len(figures_kept(store, 0.0)) < 120
        later = NOW + KEPT_HOURS * HOUR
        assert name_of(NOW) not in outdated(store, later)
        store.put(outdated(store, later + 5 * HOUR))
        assert figures_kept(store, 0.0) == []
