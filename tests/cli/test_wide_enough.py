"""What is printed for people: whole at 80 columns, with singulars where there is one, and enough to act on."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from afresh.cli.terminal import labelled
from afresh.store import Memory, PageState, Record, Sqlite
from afresh.store.messages import carry_out, packed
from afresh.types import Beliefs, Copy, Crawl, HostState, Outcome, Page, Validators

Run = Callable[..., subprocess.CompletedProcess[str]]
URL, HOST = "https://example.com/", "example.com"


def long_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 80]


def keep_one_page(path: Path, *, urgent: bool = False, **of_host: object) -> None:
    """A store with one page that was crawled once and then failed once."""
    now = time.time()
    with Sqlite(path, create=True) as store:
        page, body = Page(URL, HOST, added=now - 100), b"hello"
        store.add([page])
        validators = Validators(etag='"' + 60 * "e" + '"', last_modified="Tue, 17 Nov 2026 10:00:00 GMT", fingerprint=7)
        believed = Beliefs(1.0, 1 / 86400, 0.5, 1 / 864000, observations=1, shape=1.0)
        first = PageState(page, believed, validators, now - 90, now - 90, signals=1, crawls=1)
        copy = Copy(URL, body, "text/html; charset=utf-8", now - 90, now - 90, validators)
        store.write([Record(Crawl(URL, now - 90, Outcome.NEW, status=200, size=5, took=0.123456), first, copy)])
        second = PageState(page, believed, validators, now - 90, now - 90, signals=1, crawls=2, failures=1)
        failed = Crawl(URL, now - 50, Outcome.FAILED, 40.0, 1, 0.1, 500, reason="status_500", fresh_probability=0.9)
        host = HostState(HOST, now + 10, 1, "status_500", now - 50, **of_host)  # type: ignore[arg-type]
        store.write([Record(failed, second, None, host)])
        store.put({"price": "0.5", "budget": "1.0"})
        if urgent:
            store.write([], urgent=[URL])


def test_show_and_status_fit_on_80_columns_and_know_singulars(afresh: Run, tmp_path: Path) -> None:
    keep_one_page(tmp_path / "afresh.db")
    shown = afresh("show", URL).stdout
    assert long_lines(shown) == []
    assert "1 check tells" in " ".join(shown.split())
    assert "with 1 signal;" in " ".join(shown.split())
    assert "2 crawls, 0 changes, 1 failure in a row" in shown
    assert "\nwhy         " in shown
    status = afresh("status").stdout
    assert long_lines(status) == []
    assert status.startswith("1 page, 1 copy (not running)\n")
    assert "failing      1 page: 1 HTTP 500" in status
    for words in (["status"], ["hosts"], ["plan"], ["show", URL]):
        said = afresh(*words).stdout
        assert long_lines(said) == []
        assert "1 pages" not in said
        assert "1 hosts" not in said


def test_status_says_that_a_runner_compiles_or_was_killed(afresh: Run, tmp_path: Path) -> None:
    keep_one_page(tmp_path / "afresh.db")
    with Sqlite(tmp_path / "afresh.db") as store:
        store.claim()  # as a runner does, before it answers
        store.put({"compiling": repr(time.time()), "alive": repr(time.time())})
        shown = afresh("status").stdout
    assert shown.startswith("1 page, 1 copy (running)\nstarting     it compiles for this machine, since 20")
    assert long_lines(shown) == []
    shown = afresh("status").stdout
    assert shown.startswith("1 page, 1 copy (not running)\nstopped      without a word, after 20")
    assert long_lines(shown) == []


def test_without_requests_gains_are_seconds_and_nobody_is_said_to_ask_for_pages(afresh: Run, tmp_path: Path) -> None:
    keep_one_page(tmp_path / "afresh.db")
    shown = " ".join(afresh("show", URL).stdout.split())
    assert "wanted as all pages are" in shown
    assert "seconds of a fresh copy that a crawl now is expected to gain" in shown
    assert "seconds of a fresh copy that a refresh must gain" in afresh("status").stdout
    with Sqlite(tmp_path / "afresh.db") as store:
        store.put({"requests since": repr(time.time() - 1000)})
    assert "wanted as all pages are" not in " ".join(afresh("show", URL).stdout.split())


def test_a_refusal_names_the_setting_that_decides() -> None:
    from afresh.cli.reasons import words
    from afresh.config import template

    for reason in ("refused_address", "refused_port", "names_of_address", "store_full", "too_large"):
        setting = words(reason).rpartition("(")[2].rstrip(")")
        assert f"# {setting.rpartition('.')[2]} = " in template(), reason


def test_every_help_fits_on_80_columns(tmp_path: Path) -> None:
    from afresh.cli import app, experiments

    names = [[str(each.name)] for each in app.registered_commands]
    names += [["lab", str(each.name)] for each in experiments.registered_commands]
    code = (
        "import os, sys; os.environ['COLUMNS'] = '80'\n"
        "from afresh.cli import app\n"
        f"for words in {names!r}:\n"
        "    try: app([*words, '--help'], prog_name='afresh', standalone_mode=False)\n"
        "    except SystemExit: pass\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.count("Usage:") == len(names)
    assert long_lines(said) == []


def test_labelled_text_keeps_words_whole() -> None:
    address = "https://example.com/" + 90 * "x"
    assert labelled("why", f"see {address} now").splitlines() == [
        "why         see",
        12 * " " + address,
        12 * " " + "now",
    ]
    assert labelled("due", "") == "due         "


def test_a_refresh_that_waits_is_shown_with_what_it_waits_for(afresh: Run, tmp_path: Path) -> None:
    keep_one_page(tmp_path / "afresh.db")
    assert "refresh " not in afresh("show", URL).stdout
    assert afresh("refresh", URL).returncode == 0
    shown = afresh("show", URL).stdout
    assert "refresh     asked for; goes first as soon as a runner sees it" in shown
    assert "why         A refresh was asked for" in shown
    assert afresh("pause", "--host", HOST).returncode == 0
    shown = afresh("show", URL).stdout
    assert "refresh     asked for; waits for `afresh resume`" in shown
    assert "due         not while it is paused" in shown


def test_a_wish_for_a_refresh_survives_what_is_heard_meanwhile() -> None:
    """A signal writes the state of its page: that must not undo the wish."""
    from afresh.daemon.keeping import Keeper
    from afresh.engine import Engine
    from afresh.estimate import Grid
    from afresh.schedule import Greedy, Plain

    store = Memory()
    page = Page(URL, HOST)
    store.add([page])
    engine = Engine(scheduler=Plain(Greedy(), budget=1.0), estimator=Grid())
    keeper = Keeper(store=store, engine=engine, clock=lambda: 10.0)
    asyncio.run(keeper.take_in())
    store.post(packed("refresh", [URL], 10.0))
    carry_out(store.inbox()[0], store)
    keeper.said([], [URL])
    assert keeper.state(URL).urgent
    keeper.heard([URL], 0)
    asyncio.run(keeper.write())
    assert keeper.state(URL).urgent
    kept = store.state(URL)
    assert kept is not None
    assert (kept.urgent, kept.beliefs is None) == (True, False)


def test_senders_are_listed_with_what_their_signals_are_worth(afresh: Run, tmp_path: Path) -> None:
    from afresh.estimate import Senders

    keep_one_page(tmp_path / "afresh.db")
    assert "No signals were heard yet" in afresh("senders").stdout
    heard = Senders()
    cms, ping = heard.number("cms"), heard.number("p" * 90)
    for _ in range(50):
        heard.learn(HOST, {(cms, -1): 1}, by_time=0.1, weight=2.0, changed=True)
        heard.learn(HOST, {(ping, -1): 1}, by_time=0.1, weight=2.0, changed=False)
    before = heard.to_text().replace('"senders"', '"sources"')
    with Sqlite(tmp_path / "afresh.db") as store:
        store.put({"sources": before})  # as an earlier version wrote it
    said = afresh("senders").stdout
    assert long_lines(said.replace("p" * 90, "")) == []
    lines = said.splitlines()
    assert lines[1].split() == ["cms", "the", "best", "50", "-", "1"]
    lower, to, upper, *rest = lines[3].split()
    assert (to, rest) == ("to", ["%", "50", "-", "1"])
    assert 0 <= int(lower) < int(upper) < 30
    assert '"sender": "cms"' in afresh("senders", "--json").stdout


def test_few_signals_and_a_lone_sender_are_not_called_reliable(afresh: Run, tmp_path: Path) -> None:
    from afresh.estimate import Senders

    keep_one_page(tmp_path / "afresh.db")
    heard = Senders()
    cms = heard.number("cms")
    for signals, said in ((3, "too few"), (30, "the only one")):
        for _ in range(signals):
            heard.learn(HOST, {(cms, -1): 1}, by_time=0.1, weight=2.0, changed=True)
        with Sqlite(tmp_path / "afresh.db") as store:
            store.put({"senders": heard.to_text()})
        shown = afresh("senders").stdout
        assert said in shown
        assert "%" not in shown


def test_a_budget_of_a_path_is_accepted_and_shown(afresh: Run, tmp_path: Path) -> None:
    keep_one_page(tmp_path / "afresh.db")
    (tmp_path / "afresh.toml").write_text('[[site]]\nhost = "*.example.com"\npath = "/news/*"\nbudget = "100/h"\n')
    said = afresh("status")
    assert said.returncode == 0, said.stderr
    assert "path budget  *.example.com/news/*: 1.67/min" in said.stdout
