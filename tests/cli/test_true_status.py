"""What `afresh status` says of budgets, hours, and pages without a copy is true, now, and fits on 80 columns."""

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from afresh.cli.without_copy import held_without_copy
from afresh.cli.wording import held_lines, price_lines
from afresh.config import Config, store_named
from afresh.frontier import HostPatterns, host_of
from afresh.store import Memory, PageState, Record, Sqlite
from afresh.store.messages import Pauses
from afresh.store.socket_file import ask
from afresh.types import Beliefs, Copy, Crawl, HostState, Outcome, Page
from command_line import COMMAND, SETTINGS, synthetic_web

NOW = 1e9


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def failed(page: Page, outcome: Outcome, reason: str, host: HostState | None = None, **more: Any) -> Record:
    state = replace(PageState(page), crawls=1, failures=1, **more)
    return Record(Crawl(page.url, NOW, outcome, reason=reason), state, None, host)


def test_pages_without_a_copy_are_told_apart_by_what_holds_them_back() -> None:
    names = ("a/gone", "a/forbidden", "a/failing", "a/new", "b/new", "b/silent", "c/new", "d/new", "e/new")
    pages = {name: Page(f"http://{name[0]}.example/{name[2:]}", f"{name[0]}.example") for name in names}
    store = Memory()
    store.add(pages.values())
    store.write(
        [
            failed(pages["a/gone"], Outcome.GONE, "status_404"),
            failed(pages["a/forbidden"], Outcome.REFUSED, "robots"),
            failed(pages["a/failing"], Outcome.FAILED, "too_large"),
            failed(pages["b/silent"], Outcome.FAILED, "dns", HostState("b.example", NOW + 60, 2, "dns", NOW)),
        ]
    )
    pauses = Pauses(hosts=frozenset({"d.example"}))
    held = held_without_copy(store, HostPatterns(["c.example"]), pauses, NOW)
    assert held == {"gone": 1, "forbidden": 1, "failing": 1, "resting": 2, "paused": 1, "never": 1}
    assert sum(held.values()) == len(pages) - 2, "a/new and e/new can be crawled"
    said = "\n".join(held_lines(held))
    assert "7 pages without a copy are not crawled soon: 1 gone, 1 forbidden" in " ".join(said.split())


@pytest.mark.parametrize("many", [1, 9_999_999])
def test_the_sentence_about_first_crawls_counts_what_can_be_crawled_and_fits(many: int) -> None:
    held = dict.fromkeys(("gone", "forbidden", "failing", "resting", "never"), many)
    facts = {"pages": 7 * many, "copies": many, "held_without_copy": held, "price": 1.0, "budget_spare": False}
    facts |= {"freshness_weighted_by": "requests", "running": True, "waiting": 0}
    lines = "\n".join((*price_lines(facts), *held_lines(held))).splitlines()
    has = "1 page has no copy; it goes" if many == 1 else "9,999,999 pages have no copy; they go"
    assert f"             {has} first where hosts are ready" in lines
    assert max(map(len, lines)) <= 80
    assert not any("no copy" in line for line in price_lines(facts | {"running": False})), "nothing goes anywhere"


def test_pages_that_wait_for_their_share_are_not_said_to_go_first() -> None:
    facts = {"pages": 9_999_999, "copies": 9, "held_without_copy": {}, "price": 1.0, "budget_spare": False}
    facts |= {"freshness_weighted_by": "requests", "running": True, "waiting": 9_999_900}
    lines = "\n".join(price_lines(facts)).splitlines()
    said = " ".join(" ".join(lines).split())
    assert "9,999,990 pages have no copy; 9,999,900 wait for their turns, half of the orders" in said
    assert "first" not in said
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("sites", [1, 2])
def test_a_page_of_several_sites_is_not_said_to_wait_for_all_first_crawls(tmp_path: Path, sites: int) -> None:
    """Without a runner: of one site first crawls go first, and of several they take half of the orders."""
    now, page = time.time(), Page("http://site0.example/", "site0.example")
    state = PageState(page, Beliefs(change_rate=1e-3, observations=2), fetched=now, checked=now, crawls=2)
    with Sqlite(tmp_path / "afresh.db") as store:
        hosts = [f"site{nth % sites}.example" for nth in range(1_000)]
        store.add([page, *(Page(f"http://{host}/{nth}", host) for nth, host in enumerate(hosts))])
        store.write([Record(None, state, Copy(page.url, b"x", "text/plain", now, now))])
        store.put({"price": "0.25", "budget": "1.0"})
    said, facts = call(tmp_path, "show", page.url).stdout, call(tmp_path, "show", page.url, "--json").stdout
    told = json.loads(facts)
    if sites == 1:
        assert (told["first_crawls"], told["waiting"]) == (1_000, 0)
        assert told["due"] is None or told["due"] > now + 900.0
    else:
        assert (told["first_crawls"], told["waiting"]) == (0, 1_000)
        assert "1,000 pages wait for their first crawl, for which half of the orders are kept" in " ".join(said.split())


def test_a_stopped_store_shows_the_budget_of_the_next_run_beside_that_of_the_last(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page("http://a.example/", "a.example"), Page("http://a.example/2", "a.example", hours=closed_now())])
        store.put({"price": "0.25", "budget": "20.0", "alive": "0"})
    (tmp_path / "afresh.toml").write_text('[crawl]\nbudget = "5/s"\nbudget_hours = ["00:00-24:00 = 10/s"]\n')
    said = call(tmp_path, "status").stdout
    assert "budget       10/s, 2 % of it" in said
    assert "             by the settings, for the next run; the last run had 20/s\n" in said
    assert "go first" not in said
    assert "hours        1 page is outside its hours\n" in said
    assert max(map(len, said.splitlines())) <= 80


def closed_now() -> str:
    """Hours that do not hold for the next half day."""
    hour = (time.gmtime().tm_hour + 12) % 24
    return f"{hour:02}:00-{hour:02}:30"


def test_a_running_status_tells_of_options_hours_and_settings_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=6, hosts=3, seed=3, day=60.0) as server:
        urls = list(server.urls())
        with Sqlite(tmp_path / "afresh.db") as store:
            store.add(Page(url, host_of(url), hours=closed_now() if nth < 2 else "") for nth, url in enumerate(urls))
        words = ["run", "--budget", "7/s", "--log", "log.txt"]
        process = subprocess.Popen([*COMMAND, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 300  # where nothing is compiled yet
            while (ask(tmp_path / "afresh.db", "status") or {}).get("pages") != 6 and time.monotonic() < deadline:
                time.sleep(0.1)
            said = call(tmp_path, "status").stdout
            assert "budget       7/s, " in said
            assert "set by --budget: the budget and hours of the settings do not hold\n" in said
            assert "hours        2 pages are outside their hours\n" in said
            process.send_signal(signal.SIGHUP)
            while "read again" not in (tmp_path / "log.txt").read_text() and time.monotonic() < deadline:
                time.sleep(0.05)
            (tmp_path / "afresh.toml").write_text(SETTINGS + "\nconcurency = 3\n")
            wrong = call(tmp_path, "status")
            assert wrong.returncode == 0, wrong.stderr
            assert "(running)" in wrong.stdout
            assert "budget       7/s\n" in wrong.stdout
            assert "Warning: There is no setting" in wrong.stderr
            assert "The runner goes on with what it read before." in " ".join(wrong.stderr.split())
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        assert b"The settings were read again." in errors, "also with a log"
        assert "The settings were read again." in (tmp_path / "log.txt").read_text()
    stopped = call(tmp_path, "status")
    assert (stopped.returncode, stopped.stdout) == (2, ""), "nobody is there to be asked"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[store]\npath = "a.db"\nhistory = "much"\n', "a.db"),
        ('[store]\npath = "a.db"\n[crawl]\nbudget = 5/s\n', "a.db"),
        ("[crawl]\nbudget = 5/s\n", str(Config().store.path)),
        ("[store]\npath = a.db\n", None),
        ("[store\npath = 'a.db'\n", None),
        ("store = 3\n", None),
    ],
)
def test_the_store_is_found_in_settings_that_are_wrong_elsewhere(tmp_path: Path, text: str, path: str | None) -> None:
    (tmp_path / "x.toml").write_text(text)
    assert store_named(tmp_path / "x.toml") == (None if path is None else tmp_path / path)
