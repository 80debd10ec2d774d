"""`afresh cluster` on a real database, without workers: what it shows of nodes, and takes for one."""

import pytest
from typer.testing import CliRunner

from afresh.cli import app
from afresh.cluster.register import Register

NODES = ("10.0.0.7/4f87e4", "10.0.0.7/4f87e4", "10.0.0.123/22f1e7")


def run(url: str, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["cluster", *arguments, "--store", url])
    assert bool(result.exit_code) == bool(code), result.output
    hint = getattr(result.exception, "hint", "")
    return " ".join(f"{result.output} {result.exception} {hint}".split())


def test_a_node_is_drained_by_the_name_that_status_shows(url: str, register: Register) -> None:
    register.scale(len(NODES), budget=3.0)
    for part, node in enumerate(NODES):
        taken = register.take(part, f"process 9 on {node}")
        assert taken is not None
        register.beat(part, taken[0], spending=1.0, price=1.0, said={"node": node})
    shown = run(url, "status")
    assert " 10.0.0.7 " in shown
    assert " 10.0.0.123 " in shown
    run(url, "drain", "10.0.0.123")
    assert "drained: 10.0.0.123" in run(url, "status")
    run(url, "drain", "10.0.0.123", "--back")
    assert "drained" not in run(url, "status")
    # The whole name is taken as well, and taken back by the address.
    run(url, "drain", NODES[0])
    run(url, "drain", "10.0.0.7", "--back")
    assert "drained" not in run(url, "status")
    assert "is not drained" in run(url, "drain", "10.0.0.7", "--back", code=2)
    assert f"Workers run on: 10.0.0.123/22f1e7, {NODES[0]}." in run(url, "drain", "10.0.0.9", code=2)


@pytest.mark.filterwarnings("ignore")  # the library's own
def test_where_there_is_no_ray_nothing_is_changed(url: str, register: Register) -> None:
    before = register.wanted()
    said = run(url, "up", "--shards", "3", "--budget", "7/s", "--address", "nowhere", code=2)
    assert "There is no Ray at nowhere" in said
    assert register.wanted() == before
