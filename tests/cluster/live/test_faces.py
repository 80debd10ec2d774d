"""What people and programs touch, with a cluster behind it: the console, the proxy, those who are told of changes."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

sys.path.append(str(Path(__file__).parent))
from crew import BUDGET, Crew, until

from afresh.store.outbox import Outbox
from afresh.store.postgres import Postgres
from afresh.store.slices import slice_of
from afresh.types import Outcome
from hook import Hook, hook
from hub import free_port

WORKERS = 2


@pytest.fixture(scope="module")
def told() -> Iterator[Hook]:
    with hook() as made:
        yield made


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory, told: Hook) -> Iterator[Crew]:
    rule = f'[[notify]]\nname = "all"\nto = "{told.url}"\n'
    made = Crew(tmp_path_factory.mktemp("faces"), WORKERS, more=rule)
    try:
        until(made.full_rate, 300, "the cluster at its full rate")
        yield made
    finally:
        made.close()


@contextmanager
def command(crew: Crew, *words: str) -> Iterator[int]:
    """A server of ours on the cluster's store; its port."""
    port = free_port()
    own = [sys.executable, "-m", "afresh", *words, "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen([*own, "--config", str(crew.settings), "--store", crew.url], cwd=crew.settings.parent)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(20)


def asked(port: int, path: str, **headers: str) -> tuple[bytes, dict[str, str]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read(), {name.lower(): value for name, value in answer.headers.items()}


def answers(port: int, path: str) -> bool:
    try:
        asked(port, path)
    except OSError:
        return False
    return True


def test_the_console_shows_all_workers_as_one_collection(crew: Crew) -> None:
    with command(crew, "console") as port:

        def api(path: str) -> Any:
            return json.loads(asked(port, f"/api/v1/{path}")[0])

        until(lambda: answers(port, "/api/v1/collection"), 60, "the console")
        until(lambda: api("collection")["expected_freshness"] is not None, 20, "a statement about all")
        whole = api("collection")
        assert (whole["running"], whole["workers"], whole["pages"]) == (True, WORKERS, len(crew.web.urls()))
        assert whole["budget"] == pytest.approx(BUDGET)
        assert whole["freshness_by"] == "runner"
        assert 0.0 < whole["expected_freshness"] <= 1.0
        assert {each["url"] for each in api("pages?limit=200")["pages"]} == set(crew.web.urls())
        assert {each["host"] for each in api("hosts")["hosts"]} >= {url.split("/")[2] for url in crew.web.urls()}
        url = crew.web.urls()[7]
        assert api(f"page?url={quote(url)}")["crawls"] > 0
        numbers = [json.loads(line)["number"] for line in asked(port, "/api/v1/changes?limit=50")[0].splitlines()]
        assert numbers == sorted(set(numbers))
        assert b"h7.localhost" in asked(port, "/pages?text=h7.")[0]
        token = subprocess.run(
            [sys.executable, "-m", "afresh", "token", "new", "me", "--scope", "act", "--config", str(crew.settings)],
            capture_output=True,
            text=True,
            check=True,
            cwd=crew.settings.parent,
        ).stdout.split()[0]
        before = len(crew.web.log)
        body = json.dumps({"urls": [url]}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        wish = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/refresh", data=body, headers=headers)
        with urllib.request.urlopen(wish, timeout=20) as answer:
            assert answer.status in (200, 202)
        until(
            lambda: url in {f"http://{host}{path}" for host, path, _, _ in crew.web.log[before:]}, 20, "a crawl of it"
        )


def test_the_proxy_serves_copies_of_all_workers_and_owners_hear_of_requests(crew: Crew) -> None:
    urls = [next(url for url in crew.web.urls() if slice_of(url) in crew.register.slices_of(part)) for part in (0, 1)]
    hosts = [url.split("/")[2] for url in urls]
    own = "".join(f'[[serve]]\nhost = "{host.split(":")[0]}"\norigin = "http://{host}"\n' for host in hosts)
    crew.settings.write_text(crew.settings.read_text() + own)
    with command(crew, "serve") as port:
        path = "/" + urls[0].rsplit("/", 1)[1]
        until(lambda: answers_at(port, hosts[0], path), 60, "the proxy")
        for url, host in zip(urls, hosts, strict=True):
            for _ in range(20):
                body, headers = asked(port, "/" + url.rsplit("/", 1)[1], Host=host.split(":")[0])
            assert b"<p>" in body
            assert "hit" in headers["cache-status"]
            assert 0.0 < float(headers["x-fresh-probability"]) <= 1.0
        with Postgres(crew.url) as store:
            until(lambda: all(wanted(store, url) > 0.0 for url in urls), 30, "what readers ask for with the owners")


def wanted(store: Postgres, url: str) -> float:
    state = store.state(url)
    return 0.0 if state is None or state.beliefs is None else state.beliefs.request_rate


def answers_at(port: int, host: str, path: str) -> bool:
    try:
        asked(port, path, Host=host.split(":")[0])
    except OSError:
        return False
    return True


def test_one_worker_tells_of_the_changes_of_all_and_each_once(crew: Crew, told: Hook) -> None:
    def of_all() -> bool:
        hosts = {change["url"].split("/")[2] for message in told.messages for change in message["changes"]}
        return {slice_of(f"http://{host}/") in crew.register.slices_of(0) for host in hosts} == {True, False}

    until(of_all, 60, "changes of both workers")
    killed = crew.processes.process(0)
    assert killed is not None
    before = len(told.messages)
    os.kill(killed, 9)
    until(lambda: len(told.messages) > before + 20, 60, "messages of who came in its place")
    crew.register.stop()
    until(lambda: crew.alive() == 0, 40, "the end of all workers")
    with Postgres(crew.url) as store:
        position = next(each.position for each in Outbox(store).all() if each.name == "all")
        changes = store.changes(after=min(told.numbers) - 1, limit=1_000_000)
        changed = {number for number, crawl in changes if number <= position and crawl.outcome is Outcome.CHANGED}
        waiting = {json.loads(each.body)["number"] for each in Outbox(store).messages("all", limit=10_000)}
    assert changed == set(told.numbers) | waiting
    names: dict[int, set[str]] = {}
    for message in told.messages:
        for change in message["changes"]:
            names.setdefault(change["number"], set()).add(message["id"])
    assert all(len(each) == 1 for each in names.values()), "told again under another name"
