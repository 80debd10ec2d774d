"""Workers and coordinator as Ray's actors: Ray starts them on its nodes, and again where a process or a node dies."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import ray as library
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from afresh.cluster.coordinator import Coordinator
from afresh.cluster.nodes import is_in
from afresh.cluster.register import Register
from afresh.errors import ClusterError
from afresh.types import Address

_log = logging.getLogger("afresh.cluster")

Serve = Callable[[int, str], None]  # (part, node): be a worker until the cluster is stopped
ray: Any = library  # it is not typed
NAMESPACE = "afresh"
AGAIN_SECONDS = 5.0  # between two starts of one worker
CALL_SECONDS = 1.0  # that an actor may take to answer
WORKERS_SECONDS = 300.0  # until all workers are heard of: a node where they never ran compiles first
TELL_SECONDS = 10.0  # between two words about how many there are


class _Seat:
    """Where a worker runs: one actor, in a process of its own, whose main thread answers."""

    def __init__(self, part: int, serve: Serve) -> None:
        self._part = part
        node = str(ray.util.get_node_ip_address())
        self.node = f"{node}/{ray.get_runtime_context().get_node_id()[:6]}"
        self._thread = threading.Thread(target=self._work, args=(serve,), name="afresh-worker", daemon=True)
        self._thread.start()

    def _work(self, serve: Serve) -> None:
        try:
            serve(self._part, self.node)
        except BaseException:
            _log.exception("Worker %d ended", self._part)
            os._exit(1)  # Ray starts the actor again

    def about(self) -> tuple[str, bool, int]:
        """(its node, whether it works, its process)."""
        return self.node, self._thread.is_alive(), os.getpid()


class Actors:
    """Keeps one actor for each part, on the node that has the fewest and is not drained."""

    def __init__(self, name: str, serve: Serve, *, cpus: float = 0.5) -> None:
        self._name, self._serve, self._cpus = name, serve, cpus
        # Those that a coordinator before this one has begun are ours as well.
        self._started = dict.fromkeys(self._found(), -AGAIN_SECONDS)
        self._last: dict[int, tuple[str, bool, int]] = {}  # what each has last answered

    def keep(self, parts: int, drained: frozenset[str], leased: frozenset[int]) -> None:
        """Start those that do not run, and move those that run on a drained node."""
        for part in [part for part in self._started if part >= parts and part not in leased]:
            self._end(part)  # it has ended its work, and would keep its process and its share of the processors
            del self._started[part]
        nodes = {_label(node): node["NodeID"] for node in ray.nodes() if node["Alive"]}
        free = [label for label in nodes if not is_in(label, drained) and nodes[label] not in self._headless(nodes)]
        seats = {part: found for part in range(parts) if (found := self.about(part)) is not None}
        for part in range(parts):
            node, works, _ = seats.get(part, ("", False, 0))
            if works and not (is_in(node, drained) and free):
                continue
            if time.monotonic() - self._started.get(part, -AGAIN_SECONDS) < AGAIN_SECONDS:
                continue
            self._started[part] = time.monotonic()
            self._end(part)
            if free:
                others = [seat for other, seat in seats.items() if other != part]
                chosen = emptiest(free, [label for label, works, _ in others if works])
                seats[part] = (chosen, True, 0)
                self._start(part, nodes[chosen])

    @staticmethod
    def _headless(nodes: Mapping[str, str]) -> set[str]:
        """Nodes without processors for workers."""
        return {node["NodeID"] for node in ray.nodes() if not node["Resources"].get("CPU")} & set(nodes.values())

    def about(self, part: int) -> tuple[str, bool, int] | None:
        """(node, whether it works, process) of a worker; None if there is no such actor, or it is gone for good.

        One that does not answer starts, compiles, or is being started again by Ray: it is left alone.
        """
        try:
            actor = ray.get_actor(self._actor(part), namespace=NAMESPACE)
            found: tuple[str, bool, int] = ray.get(actor.about.remote(), timeout=CALL_SECONDS)
        except (ray.exceptions.GetTimeoutError, ray.exceptions.ActorUnavailableError):
            return self._last.get(part, ("", True, 0))
        except (ValueError, ray.exceptions.RayError):
            return None
        self._last[part] = found
        return found

    def close(self) -> None:
        """End all that are left."""
        for part in list(self._started):
            self._end(part)

    def _actor(self, part: int) -> str:
        return f"{self._name} worker {part}"

    def _found(self) -> list[int]:
        begins = self._actor(0)[:-1]
        names = [str(name) for name in ray.util.list_named_actors()]
        return [int(name.removeprefix(begins)) for name in names if name.startswith(begins)]

    def _start(self, part: int, node: str) -> None:
        made: Any = ray.remote(_Seat)
        made.options(
            name=self._actor(part),
            namespace=NAMESPACE,
            lifetime="detached",
            max_restarts=-1,
            num_cpus=self._cpus,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=True),
        ).remote(part, self._serve)

    def _end(self, part: int) -> None:
        self._last.pop(part, None)
        with suppress(ValueError):
            ray.kill(ray.get_actor(self._actor(part), namespace=NAMESPACE), no_restart=True)


class _Watch:
    """The coordinator's actor: it may be killed at any moment, and Ray starts it again."""

    def __init__(self, secret: str, name: str, serve: Serve) -> None:
        actors = Actors(name, serve)
        self._coordinator = Coordinator(Address(secret), actors)
        self._thread = threading.Thread(target=self._work, name="afresh-coordinator", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        self._coordinator.run()
        self._coordinator.register.close()
        placer = self._coordinator.placer
        if placer is not None:
            placer.close()
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)

    def about(self) -> int:
        """Its process."""
        return os.getpid()


def name_of(address: Address) -> str:
    """What the actors of a store are called."""
    return f"afresh {sha256(str(address).encode()).hexdigest()[:12]}"


def connect(ray_address: str) -> None:
    """Reach a Ray; ClusterError if there is none."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told that it runs
    try:
        ray.init(
            ray_address,
            namespace=NAMESPACE,
            ignore_reinit_error=True,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    except (ConnectionError, ray.exceptions.RayError, RuntimeError, ValueError, ImportError) as error:
        raise ClusterError(
            f"There is no Ray at {ray_address} ({' '.join(str(error).split())[:200]}).",
            hint="pip install 'ray[client]', which ray:// needs."
            if "ray[client]" in str(error)
            else "Start one: ray start --head; then --address auto on that machine, ray://HOST:10001 from elsewhere.",
        ) from None


def start(
    address: Address,
    serve: Serve,
    *,
    workers_in: float = WORKERS_SECONDS,
    heard: Callable[[int, int], object] = lambda alive, wanted: None,
) -> None:
    """Have Ray run the coordinator, which starts the workers; returns when all of them have been heard of.

    `heard` is told, now and then, how many of how many have been.
    """
    made: Any = ray.remote(_Watch)
    name = name_of(address)
    made.options(
        name=f"{name} coordinator",
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        num_cpus=0,
    ).remote(address.secret, name, serve)
    register = Register(address)
    try:
        began = told = time.monotonic()
        while True:
            running, wanted, _, _ = register.wanted()
            alive = sum(member.alive for member in register.members())
            if alive >= wanted:
                return
            if not running:
                raise ClusterError("The cluster was stopped meanwhile.", hint="Start it again: afresh cluster up")
            now = time.monotonic()
            if now - began > workers_in:
                raise ClusterError(
                    f"{alive} of {wanted} workers have started within {workers_in:.0f} s.",
                    hint="Those that still compile go on by themselves: see afresh cluster status, and Ray's own log.",
                )
            if now - told > TELL_SECONDS:
                told = now
                heard(alive, wanted)
            time.sleep(0.5)
    finally:
        register.close()


def _label(node: Any) -> str:
    return f"{node['NodeManagerAddress']}/{node['NodeID'][:6]}"


def emptiest(free: Sequence[str], seats: Sequence[str]) -> str:
    """The node on which the fewest work, of those that may have one more.

    >>> emptiest(["10.0.0.7/4f87e4", "10.0.0.8/22f1e7"], ["10.0.0.7/4f87e4"])
    '10.0.0.8/22f1e7'
    """
    return min(free, key=seats.count)
