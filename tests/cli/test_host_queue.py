"""What is said where hosts, and not the budget, limit the crawl: due times, prices and plans count politeness."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from afresh.cli.plan_pages import shares_of_pages
from afresh.store import PageState, Record, Sqlite
from afresh.store.socket_file import ask
from afresh.types import Beliefs, Copy, Page, Validators
from command_line import COMMAND, SETTINGS, synthetic_web

Run = Callable[..., subprocess.CompletedProcess[str]]


def keep_pages(path: Path, hosts: dict[str, int]) -> None:
    """A store in which one host has most of the pages."""
    now = time.time()
    with Sqlite(path, create=True) as store:
        for host, count in hosts.items():
            for nth in range(count):
                page = Page(f"https://{host}/{nth}", host, added=now)
                store.add([page])
                state = PageState(page, Beliefs(1.0, 0.1, observations=9, shape=9.0), Validators(), now, now, crawls=9)
                store.write([Record(None, state, Copy(page.url, b"hello", "text/html", now, now, Validators()))])
        store.put({"price": "0.5", "budget": "20.0"})


def test_a_plan_asks_no_host_more_often_than_politeness_allows(afresh: Run, tmp_path: Path) -> None:
    keep_pages(tmp_path / "afresh.db", {"big.example": 30, "small.example": 2})
    assert afresh("plan", "--pages", "pages.jsonl", "--budget", "20/s").returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    rates, drawn = Counter[str](), Counter[str]()
    for row in rows:
        host = row["page"].split("/")[2]
        rates[host] += row["refresh_rate"]
        drawn[host] += 20 * row["refresh_probability"]
    assert rates["big.example"] == pytest.approx(1.0)  # once in politeness.shortest_gap
    assert max(*rates.values(), *drawn.values()) < 1.001
    facts = json.loads(afresh("plan", "--budget", "20/s", "--budget", "200/s", "--reach", "99%", "--json").stdout)
    first, second = (each["freshness"] for each in facts["budgets"])
    assert first == pytest.approx(second), "more budget buys nothing"
    assert "politeness allows at most" in facts["goals"][0]["why"]
    assert facts["politeness"].startswith("politeness allows 2/s of your 200/s")


def test_a_plan_shows_the_budget_in_force_and_not_ten_that_no_host_takes_up(afresh: Run, tmp_path: Path) -> None:
    keep_pages(tmp_path / "afresh.db", {"big.example": 30, "small.example": 2})
    (tmp_path / "afresh.toml").write_text('[[site]]\nhost = "big.example"\nbudget = "30/min"\nhours = "08:00-18:00"\n')
    facts = json.loads(afresh("plan", "--reach", "99%", "--json").stdout)
    budgets = [row["budget"] for row in facts["budgets"]]
    assert 20.0 in budgets
    assert sum(budget > 2.0 for budget in budgets) <= 2
    assert facts["politeness"].startswith("politeness allows 2/s of your 20/s")
    assert facts["rules"] == "what [[site]] says of budget, hours is not counted"
    assert facts["rules"] in " ".join(afresh("plan").stdout.split())


def test_shares_of_pages_need_no_hosts() -> None:
    import numpy as np

    arrays = {"request_rate": np.array([1.0, 1.0]), "change_rate": np.array([0.1, 0.1])}
    free = list(shares_of_pages(["a", "b"], arrays, 1.0))
    held = list(
        shares_of_pages(
            ["a", "b"], {**arrays, "host": np.array([0, 0], dtype=np.int64), "host_budget": np.array([0.5])}, 1.0
        )
    )
    assert sum(row["refresh_rate"] for row in free) == pytest.approx(1.0)
    assert sum(row["refresh_rate"] for row in held) == pytest.approx(0.5)
    assert sum(row["refresh_probability"] for row in held) == pytest.approx(0.5)


def test_without_a_runner_a_due_time_that_hosts_decide_is_not_foretold(afresh: Run, tmp_path: Path) -> None:
    keep_pages(tmp_path / "afresh.db", {"big.example": 30})
    shown = " ".join(afresh("show", "https://big.example/3").stdout.split())
    assert "due cannot be foretold while nothing runs: politeness allows 1/s of your 20/s" in shown
    keep_pages(tmp_path / "other.db", {f"h{nth}.example": 1 for nth in range(30)})
    assert "foretold" not in afresh("show", "https://h3.example/0", "--store", "other.db").stdout


def test_a_due_time_counts_the_queue_of_a_crowded_host(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS.replace('"0s"', '"200ms"'))
    with synthetic_web(pages=40, hosts=1, seed=3, day=60.0) as server:
        urls = list(server.urls())
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        words = [*COMMAND, "run", "--budget", "50/s"]
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            path, deadline = tmp_path / "afresh.db", time.monotonic() + 400
            while ask(path, "status") is None or Sqlite(path).totals().crawls < 60:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            told = [ask(path, "page", {"url": url}) for url in urls]
            began = time.time()
            assert all(each["spare"] for each in told)
            crowded = {each["url"]: each for each in told if each["ahead"] > 10 and each["due"] is not None}
            assert len(crowded) > 5
            while time.time() < began + 15.0:
                time.sleep(0.5)
            with Sqlite(path, create=False) as store:
                off = []
                for url, each in crowded.items():
                    later = [crawl.time for crawl in store.history(url, 50) if crawl.time > each["time"]]
                    if later:
                        off.append(abs(min(later) - each["due"]) / (each["due"] - each["time"]))
            assert len(off) > 5
            assert sorted(off)[len(off) // 2] < 0.3
            shown = subprocess.run(
                [*COMMAND, "show", urls[5]], cwd=tmp_path, capture_output=True, text=True, check=True
            )
            assert "Hosts take less than the budget" in " ".join(shown.stdout.split())
            status = subprocess.run([*COMMAND, "status"], cwd=tmp_path, capture_output=True, text=True, check=True)
            assert "hosts take less than the budget" in status.stdout
        finally:
            process.kill()
            process.wait()


def test_a_host_that_cannot_be_asked_so_often_is_what_show_tells_of(tmp_path: Path) -> None:
    with synthetic_web(pages=40, hosts=2, seed=3, day=60.0) as server:
        urls = list(server.urls())
        hosts = sorted({url.split("/")[2].split(":")[0] for url in urls})
        sites = f'[[site]]\nhost = "{hosts[0]}"\nlongest_interval = "1s"\n'
        sites += f'[[site]]\nhost = "{hosts[1]}"\nbudget = "2/s"\n'
        (tmp_path / "afresh.toml").write_text(SETTINGS.replace('"0s"', '"200ms"') + sites)
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        words = [*COMMAND, "run", "--budget", "50/s"]
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            path, deadline = tmp_path / "afresh.db", time.monotonic() + 400
            while ask(path, "status") is None or Sqlite(path).totals().crawls < 160:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            shown = {}
            for host in hosts:
                url = next(url for url in urls if url.split("/")[2].split(":")[0] == host)
                done = subprocess.run([*COMMAND, "show", url], cwd=tmp_path, capture_output=True, text=True, check=True)
                shown[host] = " ".join(done.stdout.split())
                told = ask(path, "page", {"url": url})
                if host == hosts[0]:
                    pages = sum(url.split("/")[2].split(":")[0] == host for url in urls)
                    assert told["every"] == pytest.approx(pages * told["turn"])
                else:
                    assert told["turn"] >= 0.5
            assert "It is wanted at least every 1 s, but its host allows about one crawl in" in shown[hosts[0]]
            assert "what pages of its host must gain, at the host's own budget;" in shown[hosts[1]]
        finally:
            process.kill()
            process.wait()
