"""What the workers of a cluster have learned, shown as one: on a real database, with workers' views and no worker."""

import html
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from afresh.cli import app
from afresh.cli.senders import BY_FORMER, BY_WORKERS
from afresh.cluster.ownership import owner_of_slice
from afresh.cluster.register import Register
from afresh.cluster.worker import OWN, SHARED
from afresh.estimate import Calibration, Senders
from afresh.estimate.grades import Grades
from afresh.estimate.senders import NOT_EARLY
from afresh.store.postgres import Part, Postgres
from afresh.store.slices import slice_of_host
from afresh.types import Address
from consoles import console

HOSTS = [f"h{nth}.example" for nth in range(40)]


def host_of(part: int, workers: int, *, later: int | None = None, of: int = 0) -> str:
    """A host that a worker owns, and (of so many) another one `later`."""
    return next(
        host
        for host in HOSTS
        if owner_of_slice(slice_of_host(host), workers) == part
        and (later is None or owner_of_slice(slice_of_host(host), of) == later)
    )


def take(register: Register, workers: int, *, before: dict[int, int] | None = None) -> dict[int, int]:
    """So many workers take their slices, after those of `before` let go of theirs; the tokens of their leases."""
    tokens = dict(before or {})
    register.scale(workers, budget=1.0)
    for part, token in tokens.items():
        register.hand_over(part, token)
    for part in range(workers):
        if part not in tokens:
            taken = register.take(part, f"process {part}")
            assert taken is not None
            tokens[part] = taken[0]
        register.slices(part, tokens[part])
    return tokens


@contextmanager
def worker(url: str, part: int, token: int) -> Iterator[Postgres]:
    """The store as a worker sees it."""
    with Postgres(url, part=Part(part, token, frozenset(), SHARED, OWN)) as kept:
        kept.claim()
        yield kept


def checks(kept: Postgres, statements: int, *, fresh: bool) -> None:
    """Some statements are checked, as a daemon does that goes on from what is kept."""
    calibration = Calibration.from_text(kept.get("calibration"))
    for _ in range(statements):
        calibration.add(0.95, fresh)
    kept.put({"calibration": calibration.to_text()})


def hears(kept: Postgres, host: str, crawls: int, *, lies: bool, sender: str = "cms", when: float = 1e6) -> None:
    """A sender tells of every window of a page there, in which it changed or not."""
    grades = Grades.from_text(kept.get("grades"))
    senders = Senders.recalled(kept.get)
    number = senders.number(sender)
    for nth in range(crawls):
        begin = when + 100.0 * nth
        grades.hear(f"https://{host}/", host, sender, begin + 50.0, current=begin, now=begin + 50.0)
        grades.crawled(f"https://{host}/", host, begin, begin + 100.0, changed=not lies, rate=0.002)
        senders.learn(host, {(number, NOT_EARLY): 1}, by_time=0.1, weight=2.0, changed=not lies)
    grades.grade(sender, host)
    kept.put({"grades": grades.to_text(), "senders": senders.to_text()})


def told(url: str, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--store", url])
    assert result.exit_code == 0, result.output
    return result.output


def said(url: str) -> dict[str, dict[str, Any]]:
    """Senders by name, as the command tells programs."""
    return {each["sender"]: each for each in map(json.loads, told(url, "senders", "--json").splitlines())}


def grades_of(url: str, sender: str) -> dict[str, dict[str, Any]]:
    return {each["host"]: each for each in said(url)[sender]["grades"]}


def calibration(url: str) -> Any:
    return json.loads(told(url, "status", "--json"))["calibration"]


def test_calibration_adds_up_what_workers_checked_and_what_was_before_once(url: str, register: Register) -> None:
    with Postgres(url) as alone:
        checks(alone, 100, fresh=True)
    tokens = take(register, 3)
    for part, token in tokens.items():
        with worker(url, part, token) as kept:
            assert kept.get("calibration") is None  # it begins with nothing
            checks(kept, 10 * (part + 1), fresh=False)
    found = calibration(url)
    assert found["statements"] == 160
    assert found["rows"][0]["fresh"] == pytest.approx(100 / 160, abs=1e-3)
    assert found["bias"] == pytest.approx(0.95 - 100 / 160, abs=1e-3)
    # With fewer workers nothing that was checked is lost, nor when one begins again.
    tokens = take(register, 2, before=tokens)
    with worker(url, 1, tokens[1]) as kept:
        checks(kept, 5, fresh=True)
    assert calibration(url)["statements"] == 165
    assert "165 statements" in told(url, "status")


def test_before_any_worker_has_checked_it_is_what_one_process_left(url: str, register: Register) -> None:
    assert calibration(url) is None
    with Postgres(url) as alone:
        checks(alone, 7, fresh=True)
    take(register, 2)
    assert calibration(url)["statements"] == 7


def test_what_was_before_fades_as_it_would_have_with_one_process() -> None:
    before, one, other = (Calibration(memory=100.0) for _ in range(3))
    alone = Calibration(memory=100.0)
    for made, fresh in ((before, True), (one, False), (other, False)):
        for _ in range(50):
            made.add(0.5, fresh)
            alone.add(0.5, fresh)
    kept = [Calibration.from_text(each.to_text()) for each in (before, one, other)]
    together = Calibration.together(kept[0], kept[1:])
    old = together.rows()[0].statements * together.rows()[0].fresh
    assert old == pytest.approx(alone.rows()[0].statements * alone.rows()[0].fresh)
    again = Calibration.from_text(together.to_text())
    assert again.brier == pytest.approx(together.brier)


def test_grades_are_those_of_the_worker_that_holds_the_host(url: str, register: Register) -> None:
    first, second = host_of(0, 2), host_of(1, 2)
    with Postgres(url) as alone:  # knew both, and found them right
        hears(alone, first, 30, lies=False)
        hears(alone, second, 30, lies=False)
    tokens = take(register, 2)
    assert "worker" not in grades_of(url, "cms")[first]
    with worker(url, 0, tokens[0]) as kept:
        hears(kept, first, 200, lies=True, when=2e6)
    found = grades_of(url, "cms")
    assert (found[first]["heard"], found[first]["worker"], found[first]["former"]) == (230, 0, False)
    assert found[first]["precision"] < 0.4
    # The other has written nothing yet: it goes by what was before.
    assert (found[second]["heard"], found[second]["worker"], found[second]["former"]) == (30, None, False)
    assert found[second]["precision"] > 0.7
    assert found[first]["weight"] < found[second]["weight"]
    shown = told(url, "senders")
    assert BY_WORKERS in shown
    assert "*" not in shown


def test_where_the_new_worker_has_heard_nothing_the_latest_grade_of_another_is_shown_and_marked(
    url: str, register: Register
) -> None:
    host = host_of(0, 2, later=2, of=3)
    tokens = take(register, 2)
    with worker(url, 1, tokens[1]) as kept:  # had it long ago, and heard more
        hears(kept, host, 50, lies=False, when=1e6)
    with worker(url, 0, tokens[0]) as kept:
        hears(kept, host, 30, lies=True, when=2e6)
    tokens = take(register, 3, before=tokens)
    found = grades_of(url, "cms")[host]
    assert (found["heard"], found["worker"], found["former"]) == (30, 0, True)
    shown = told(url, "senders")
    assert f"{host}*" in shown
    assert BY_FORMER in shown
    # And once it has heard something, it is the one.
    with worker(url, 2, tokens[2]) as kept:
        hears(kept, host, 3, lies=True, when=3e6)
    found = grades_of(url, "cms")[host]
    assert (found["heard"], found["worker"], found["former"]) == (3, 2, False)
    assert f"{host}*" not in told(url, "senders")


def test_worth_is_the_mean_of_the_workers_and_what_was_checked_before_counts_once(url: str, register: Register) -> None:
    with Postgres(url) as alone:
        hears(alone, host_of(0, 3), 40, lies=False)
        hears(alone, host_of(0, 3), 40, lies=False, sender="ping")
    alone_said = said(url)
    tokens = take(register, 3)
    for part, token in tokens.items():
        with worker(url, part, token) as kept:
            hears(kept, host_of(part, 3), 20, lies=True, sender="ping")
    found = said(url)
    assert (alone_said["ping"]["checked"], found["ping"]["checked"], found["ping"]["workers"]) == (40, 100, 3)
    assert found["cms"]["checked"] == 40
    assert found["cms"]["evidence"] == pytest.approx(alone_said["cms"]["evidence"])
    assert found["ping"]["worth"] < 0.8 < alone_said["ping"]["worth"]
    assert found["ping"]["hosts"] == 3
    # Who has no hosts any more goes by nothing: with one worker it is what that one goes by.
    take(register, 1, before=tokens)
    with Postgres(url).as_its_owner(f"https://{HOSTS[0]}/") as of_one:
        alone_said = {each["sender"]: each for each in Senders.recalled(of_one.get).summary()}
    assert said(url)["ping"]["worth"] == pytest.approx(alone_said["ping"]["worth"])


def test_the_console_and_the_metrics_tell_the_same(url: str, register: Register, tmp_path: Path) -> None:
    host, moved = host_of(0, 2, later=0, of=3), host_of(0, 2, later=2, of=3)
    tokens = take(register, 2)
    with worker(url, 0, tokens[0]) as kept:
        hears(kept, host, 30, lies=True, sender="ping")
        hears(kept, moved, 30, lies=False)
        checks(kept, 9, fresh=True)
    take(register, 3, before=tokens)
    with console(tmp_path, database=Address(url)) as served, httpx.Client(base_url=served.base, timeout=60) as client:
        answer = client.get("/api/v1/senders").json()
        assert {(each["host"], each["worker"], each["former"]) for each in answer["grades"]} == {
            (host, 0, False),
            (moved, 0, True),
        }
        assert {each["sender"] for each in answer["senders"]} == {"ping", "cms"}
        page = client.get("/signals", headers={"Accept": "text/html"}).text
        assert f"{moved}*" in page.replace("<wbr>", "")
        assert BY_WORKERS in html.unescape(page)
        assert BY_FORMER in html.unescape(page)
        assert client.get("/api/v1/collection").json()["calibration"]["statements"] == 9
        metrics = dict(line.split(" ", 1) for line in client.get("/metrics").text.splitlines())
        assert float(metrics["afresh_calibration_bias_ratio"]) == pytest.approx(-0.05)


def test_a_process_that_runs_alone_again_is_not_taken_for_workers(url: str, register: Register) -> None:
    tokens = take(register, 2)
    with worker(url, 0, tokens[0]) as kept:
        hears(kept, host_of(0, 2), 30, lies=True)
        checks(kept, 9, fresh=True)
    for part, token in tokens.items():
        register.give_up(part, token)
    assert (calibration(url)["statements"], said(url)["cms"]["workers"]) == (9, 1)  # after it was stopped, too
    with Postgres(url) as alone:
        alone.claim()
    assert calibration(url) is None
    assert "No signals were heard yet" in told(url, "senders")
