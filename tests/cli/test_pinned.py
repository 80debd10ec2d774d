"""What an operator says of senders: muted, pinned, and free again; it outlasts learning and restarts."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from afresh.daemon.heard import TAKEN, HeardOf
from afresh.estimate import Senders
from afresh.estimate.grades import Grades
from afresh.store import Sqlite
from afresh.store.messages import PINNED, Pins

Run = Callable[..., CompletedProcess[str]]


def learn(senders: Senders, sender: str, *, changed: bool, crawls: int = 200) -> None:
    number = senders.number(sender)
    for _ in range(crawls):
        senders.learn("e.org", {(number, -1): 1}, by_time=0.1, weight=2.0, changed=changed)


def test_a_pin_holds_and_what_was_learned_comes_back() -> None:
    senders = Senders()
    learn(senders, "good", changed=True)
    learn(senders, "bad", changed=False)
    good, bad = senders.number("good"), senders.number("bad")
    before = senders.weight("e.org", bad)
    senders.pin("bad", "", 0.5)
    senders.pin("good", "", 1.0)
    assert abs(senders.weight("e.org", bad) - 0.5) < 0.05
    assert abs(senders.weight("elsewhere.org", bad) - 0.5) < 0.05
    learn(senders, "bad", changed=False, crawls=50)
    assert abs(senders.weight("e.org", bad) - 0.5) < 0.05, "crawls do not move it"
    senders.pin("good", "", 0.0)
    assert senders.weight("e.org", good) < 0.01
    again = Senders.from_text(senders.to_text())
    assert abs(again.weight("e.org", bad) - before) < 0.1, "what is kept is what was learned"
    senders.unpin()
    assert abs(senders.weight("e.org", bad) - before) < 0.1
    assert senders.weight("e.org", good) > 0.9


def test_signals_are_not_said_in_our_names_and_count_once_a_key(afresh: Run) -> None:
    afresh("add", "https://e.org/")
    ours = afresh("signal", "https://e.org/", "--sender", "sitemap")
    assert (ours.returncode, "one of afresh's own" in ours.stderr) == (2, True)
    assert afresh("signal", "https://e.org/", "--key", "7").stdout.startswith("1 signal heard.")
    again = afresh("signal", "https://e.org/", "--key", "7").stdout
    assert again == "Nothing new: that key was heard before.\n"


def test_a_sender_is_muted_on_the_command_line_and_grades_are_shown(afresh: Run, tmp_path: Path) -> None:
    afresh("add", "https://e.org/")
    senders, grades = Senders(), Grades()
    learn(senders, "cms", changed=True)
    learn(senders, "ping", changed=False)
    for nth in range(100):
        grades.hear("https://e.org/", "e.org", "cms", 100.0 * nth + 50, current=100.0 * nth, now=100.0 * nth + 50)
        grades.crawled("https://e.org/", "e.org", 100.0 * nth, 100.0 * nth + 100, changed=True, rate=0.01)
    with Sqlite(tmp_path / "afresh.db") as store:
        for nth in range(3):
            far = f"a-host-of-a-long-name-{nth}.example.com:8443"
            grades.hear(f"https://{far}/", far, "cms", 50.0, current=1.0, now=50.0)
        heard = HeardOf()
        heard.note("https://e.org/", "cms", 0.0, TAKEN)
        heard.crawled("https://e.org/", 10.0, changed=True)
        store.put({"senders": senders.to_text(), "grades": grades.to_text(), "heard": heard.to_text()})
    shown = afresh("show", "https://e.org/").stdout
    assert "signalled   1970-01-01 00:00:00" in shown, shown
    assert "cms, taken: the page had changed" in shown, shown
    assert "cms          a-host-of-a-long-name-0.example.com:8443" in afresh("senders").stdout, "whole, with its port"
    lines = afresh("senders").stdout.splitlines()
    row = next(line for line in lines if line.startswith("cms") and "e.org" in line)
    assert row.split()[:3] == ["cms", "e.org", "100"]
    assert max(map(len, lines)) <= 80
    for wrong, words in [
        (("--pin", "ping=7"), "from 0 to 1"),
        (("--mute", "ping", "--pin", "ping=1"), "Two things are said of ping"),
        (("--mute", "ping", "--host", "nosuch"), "No page of nosuch is kept"),
    ]:
        refused = afresh("senders", *wrong)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    noted = afresh("senders", "--pin", "nobody=0.5")
    assert (noted.returncode, "Nothing was heard yet of nobody." in noted.stderr) == (0, True), noted.stderr
    afresh("senders", "--free", "nobody")
    assert afresh("senders", "--mute", "ping", "--pin", "cms=0.25", "--host", "e.org").stdout.startswith(
        "ping weighs 0"
    )
    assert "0.25!" in afresh("senders").stdout
    facts = [json.loads(line) for line in afresh("senders", "--json").stdout.splitlines()]
    assert next(each for each in facts if each["sender"] == "cms")["grades"][0]["pinned"] == 0.25
    afresh("senders", "--free", "cms", "--free", "ping", "--host", "e.org")
    with Sqlite(tmp_path / "afresh.db") as store:
        assert Pins.from_text(store.get(PINNED)) == Pins()
    wrong = afresh("senders", "--pin", "cms")
    assert (wrong.returncode, "is not a sender and a weight" in wrong.stderr) == (2, True)
