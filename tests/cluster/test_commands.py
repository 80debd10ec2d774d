"""What the commands of a cluster say where something is not as it should be; no worker runs."""

import json
import subprocess

import pytest

from afresh.cluster.register import Register
from afresh.store.postgres import Postgres
from afresh.types import Page
from command_line import COMMAND
from postgres import Postgres as Server

PAGES = [Page(f"https://h{nth}.example/", f"h{nth}.example", float(nth)) for nth in range(40)]


@pytest.fixture
def url(server: Server) -> str:
    url = server.fresh("commands")
    with Postgres(url) as store:
        store.add(PAGES)
    return url


def said(*words: str) -> tuple[int, str]:
    """(the exit code, all that was printed on one line)."""
    done = subprocess.run([*COMMAND, "cluster", *words], capture_output=True, text=True, timeout=60)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_status_of_a_store_without_a_cluster_says_so(url: str) -> None:
    assert said("status", "--store", url) == (
        0,
        "There is no cluster on this store. Start one: afresh cluster up --shards 4",
    )
    code, text = said("status", "--store", url, "--json")
    assert (code, json.loads(text)["workers"], json.loads(text)["pages"]) == (0, 0, len(PAGES))


def test_the_sum_counts_pages_that_nobody_holds_just_now(url: str) -> None:
    register = Register(url)
    register.scale(2, budget=4.0)
    register.close()
    assert json.loads(said("status", "--store", url, "--json")[1])["pages"] == len(PAGES)


def test_an_older_schema_is_called_so(url: str, server: Server) -> None:
    server.run("commands", "ALTER TABLE afresh.cluster DROP COLUMN running")
    code, text = said("status", "--store", url)
    assert code != 0
    assert "is not the one that this afresh knows" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--budget", "5 MB/s"), "The budget of a cluster is a number of crawls."),
        (("--budget", "0.2 s/s"), "The budget of a cluster is a number of crawls."),
        (("--budget", "0/s"), "A budget of 0 crawls nothing."),
        (("--shards", "5000"), "There cannot be 5000 workers."),
        (("--shards", "3", "--address", "nonsense"), "There is no Ray at nonsense"),
    ],
)
def test_what_cannot_be_begun_changes_nothing(url: str, words: tuple[str, ...], sentence: str) -> None:
    if "--address" in words:
        pytest.importorskip("ray")
    code, text = said("up", "--store", url, *words)
    assert code != 0
    assert sentence in text
    assert "hint:" in text
    register = Register(url)
    assert register.wanted()[:2] == (False, 0)
    register.close()


def test_a_node_of_ray_is_drained_also_by_its_address_alone_and_no_other_is(url: str) -> None:
    register = Register(url)
    register.scale(1, budget=4.0)

    def beats(node: str) -> None:
        token = register.take(0, "x") or taken[0]
        taken.append(token)
        assert register.beat(0, token[0], spending=0.0, price=1.0, said={"node": node}) is not None

    taken: list[tuple[int, float]] = []
    beats("machine")
    code, text = said("drain", "machine", "--store", url)
    assert code != 0
    assert "they are not moved" in text
    assert "drained" not in register.wanted()[3]
    beats("10.0.0.7/ab12cd")
    code, text = said("drain", "10.0.0.8", "--store", url)
    assert (code != 0, "10.0.0.7/ab12cd" in text) == (True, True)
    assert said("drain", "10.0.0.7", "--store", url)[0] == 0
    assert register.wanted()[3]["drained"] == ["10.0.0.7"]
    assert said("drain", "10.0.0.7", "--back", "--store", url)[0] == 0
    assert register.wanted()[3]["drained"] == []
    register.close()
