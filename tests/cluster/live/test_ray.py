"""Workers as Ray's actors on three nodes of one machine: a node dies, another is drained, and all is as before."""

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
sys.path.append(str(Path(__file__).parent))
from crew import BUDGET, Crew, until

from afresh.cli.crew import serve
from afresh.cli.opening import settings
from afresh.types import Address

WORKERS = 2
pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A Ray of three nodes; the first has no room for workers."""
    from ray.cluster_utils import Cluster

    quiet = {"include_dashboard": False, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    yield cluster
    import ray

    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    made = Crew(tmp_path_factory.mktemp("ray"), WORKERS, by_processes=False)
    yield made
    made.close()


def test_a_node_that_dies_and_one_that_is_drained(nodes: Any, crew: Crew) -> None:
    import ray

    from afresh.cluster.actors import Actors, connect, name_of, start

    address = Address(crew.url)
    crew.register.scale(WORKERS, budget=BUDGET)
    connect(nodes.address)
    start(address, partial(serve, settings(crew.settings, crew.url)))
    until(crew.full_rate, 300, "the cluster at its full rate")

    def places() -> dict[int, str]:
        return {m.part: str(m.said.get("node", "")) for m in crew.register.members() if m.alive}

    before = places()
    assert len(set(before.values())) == 2, "one worker on each node"
    # A node dies with all that runs on it, without a word.
    dying = next(node for node in nodes.worker_nodes if before[0].endswith(f"/{node.node_id[:6]}"))
    began = time.monotonic()
    nodes.remove_node(dying, allow_graceful=False)
    until(lambda: len(places()) == WORKERS and before[0] not in places().values(), 60, "the worker on another node")
    until(crew.full_rate, 60, "the full rate again")
    assert time.monotonic() - began < 90
    # And the coordinator: Ray starts it again.
    ray.kill(ray.get_actor(f"{name_of(address)} coordinator", namespace="afresh"), no_restart=False)
    # Another node comes; the one that is left is drained.
    nodes.add_node(num_cpus=1, object_store_memory=80 << 20)
    (drained,) = set(places().values())
    crew.register.set(drained=[drained])
    until(lambda: len(places()) == WORKERS and drained not in places().values(), 90, "workers on the new node")
    until(crew.full_rate, 60, "the full rate there")
    # A worker that is no longer wanted leaves nothing behind that holds a process, or a share of the processors.
    actors = Actors(name_of(address), partial(serve, settings(crew.settings, crew.url)))
    crew.register.set(drained=[])  # each node has room for two
    crew.register.scale(WORKERS + 1)
    until(lambda: len(places()) == WORKERS + 1, 60, "one worker more")
    crew.register.scale(WORKERS)
    until(lambda: actors.about(WORKERS) is None, 30, "its end")
    crew.check()
    crew.register.stop()
    until(lambda: not places(), 40, "the end of all workers")
    until(lambda: all(actors.about(part) is None for part in range(WORKERS)), 30, "no actors left")
