"""The commands for a cluster: up, status, scale, drain and stop."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, errors, plain
from afresh.errors import ClusterError, ConfigError, InputError
from afresh.units import budget as read_budget
from afresh.units import show_rate

if TYPE_CHECKING:
    from types import ModuleType

    from afresh.cluster.register import Register
    from afresh.config import Config

STOP_SECONDS = 60.0

commands = typer.Typer(
    help="Many workers on one store in PostgreSQL, with one budget.\n\n"
    "Example: afresh cluster up --shards 4 --store postgresql://me@localhost/afresh",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@contextmanager
def _register(config: Path | None, store: str | None) -> "Iterator[tuple[Register, Config]]":
    from afresh.cli.crew import require_fit
    from afresh.cli.opening import settings
    from afresh.cluster.register import Register

    read = settings(config, store)
    register = Register(require_fit(read))
    try:
        yield register, read
    finally:
        register.close()


def up(
    shards: Annotated[
        int | None, typer.Option(help="How many workers; default: as many as before, or 2.", min=1)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="A Ray to run on, such as auto or ray://head:10001. Default: processes of this machine."),
    ] = None,
    budget: Annotated[str | None, typer.Option(help='Crawl rate of all together, such as "100/s".')] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """Start a cluster: workers that share the hosts of one store, and its budget.

    Without --address the workers are processes of this machine, and this command watches them until it is stopped
    (Ctrl-C or SIGTERM). With it Ray places them, and the command returns.

    Example: afresh cluster up --shards 4 --budget 100/s --store postgresql://me@localhost/afresh
    """
    from afresh.cli.crew import require_crawls
    from afresh.cli.opening import open_store
    from afresh.cluster.register import require_workers

    with _register(config, store) as (register, read):
        with open_store(read, create=True) as kept:
            if kept.is_run() and not any(member.alive for member in register.members()):
                kept.claim(brief=True)  # says who runs on it
        _, parts, before, _ = register.wanted()
        given = read.crawl.budget if budget is None else read_budget(budget)
        require_crawls(given)
        total = before if parts and budget is None else float(given)
        if not total > 0:
            raise ConfigError("A budget of 0 crawls nothing.", hint="Give a rate above 0, such as --budget 10/s.")
        count = shards or parts or 2
        require_workers(count)
        if address is not None:
            _ray().connect(address)  # before anything is changed
        if any(member.alive for member in register.members()):
            errors.print("A cluster runs on this store already: it goes on as is said here, also by who began it.")
        register.scale(count, budget=total)
        errors.print(f"{count} workers share {show_rate(total)}.", soft_wrap=True)
        if address is not None:
            from functools import partial

            from afresh.cli.crew import serve

            _ray().start(
                register.address,
                partial(serve, read),
                heard=lambda alive, wanted: errors.print(
                    f"{alive} of {wanted} workers have started; a node where they never ran compiles first."
                ),
            )
            errors.print("Ray has taken them over: see afresh cluster status.")
            return
        _watch(read, config, register)


def _ray() -> "ModuleType":
    try:
        from afresh.cluster import actors
    except ImportError:
        raise ConfigError(
            "Ray is not installed.", hint="pip install 'afresh[cluster]'; or leave --address out."
        ) from None
    return actors


def _watch(read: "Config", config: Path | None, register: "Register") -> None:
    """Keep workers running as processes, until a signal comes or the cluster is stopped."""
    from afresh.cli.crew import ADDRESS, require_fit
    from afresh.cluster.coordinator import Coordinator
    from afresh.cluster.processes import Processes

    def command(part: int) -> Sequence[str]:
        given = ["--config", str(config)] if config is not None else []
        return [sys.executable, "-m", "afresh", "cluster", "worker", str(part), *given]

    address = require_fit(read)
    workers = Processes(command, {ADDRESS: address.secret})
    coordinator = Coordinator(address, workers)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: coordinator.end())
    try:
        coordinator.run()
        register.stop()
        errors.print("Stopping: fetches under way are finished.")
    finally:
        workers.close()


def status(config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """Show each worker and the sum: pages, price, budget, rate, freshness stated, and how late it reports.

    Example: afresh cluster status --store postgresql://me@localhost/afresh
    """
    from afresh.cli.cluster_facts import cluster_facts

    with _register(config, store) as (register, _):
        whole, facts = cluster_facts(register)
    if json:
        typer.echo(as_json({**whole, "parts": facts}))
        return
    _print(whole, facts)


def _print(whole: dict[str, Any], facts: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from afresh.cluster.nodes import short

    if not whole["workers"]:
        console.print("There is no cluster on this store. Start one: afresh cluster up --shards 4")
        return
    state = "stopped" if not whole["running"] else "running" if any(each["alive"] for each in facts) else "none runs"
    moving = f", {whole['slices_moving']:,} of 4,096 slices change hands" if whole["slices_moving"] else ""
    console.print(f"{whole['workers']} workers ({state}), {show_rate(whole['budget'])} together{moving}")
    if whole["drained"]:
        console.print(f"drained: {plain(', '.join(whole['drained']))}")
    nodes = [each["node"] for each in facts if each["alive"]]
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("part", "node"):
        table.add_column(name, overflow="fold")
    for name in ("pages", "copies", "price", "budget/s", "rate/s", "fresh", "late"):
        table.add_column(name, justify="right")
    for each in facts:
        table.add_row(
            str(each["part"]),
            plain(short(each["node"], nodes)) if each["alive"] else "down",
            f"{each['pages']:,}",
            f"{each['copies']:,}",
            "-" if each["price"] is None else f"{each['price']:.3g}",
            f"{each['budget']:.4g}",
            f"{each['rate']:.4g}",
            "-" if each["fresh"] is None else f"{100 * each['fresh']:.1f}%",
            "-" if each["lag"] is None else f"{each['lag']:.1f}s",
        )
    fresh = "-" if whole["fresh"] is None else f"{100 * whole['fresh']:.1f}%"
    counts = f"{whole['pages']:,}", f"{whole['copies']:,}"
    table.add_row("sum", "", *counts, "", f"{whole['granted']:.4g}", f"{whole['rate']:.4g}", fresh, "")
    console.print(table)


def scale(
    workers: Annotated[int, typer.Argument(help="How many there are to be from now on.", min=1, max=4096)],
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Have another number of workers; about one host in so many moves, each when nothing of it is under way.

    Example: afresh cluster scale 5
    """
    with _register(config, store) as (register, _):
        running, parts, _, _ = register.wanted()
        _require_cluster(parts)
        moves = register.scale(workers, running=running)
    if json:
        typer.echo(as_json({"workers": workers, "slices": moves}))
        return
    console.print(f"{workers} workers from now on: {100 * moves / 4096:.1f}% of the hosts move.")


def drain(
    node: Annotated[str, typer.Argument(help="A node, as afresh cluster status shows it.")],
    back: Annotated[bool, typer.Option("--back", help="Let workers run there again.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
) -> None:
    """Move the workers of a node to others, in order, so that it can be taken away (Ray only).

    Example: afresh cluster drain 10.0.0.7
    """
    from afresh.cluster.nodes import is_in

    with _register(config, store) as (register, _):
        _, parts, _, settings = register.wanted()
        _require_cluster(parts)
        drained = set(settings.get("drained", ()))
        alive = [member for member in register.members() if member.alive]
        known = {member.node for member in alive}
        if not back and alive and not any(member.is_placed_by_ray for member in alive):
            raise InputError(
                "These workers are processes that were started on their machines: they are not moved.",
                hint="End `afresh cluster up` there. Nodes that come and go need Ray: `up --address auto`.",
            )
        if not back and not any(is_in(name, {node}) for name in known):
            raise InputError(
                f"No worker runs on {plain(node)}.",
                hint=f"Workers run on: {plain(', '.join(sorted(known))) or 'no node'}.",
            )
        again = {name for name in drained if is_in(name, {node})}
        if back and not again:
            raise InputError(
                f"{plain(node)} is not drained.",
                hint=f"Drained are: {plain(', '.join(sorted(drained))) or 'no nodes'}.",
            )
        register.set(drained=sorted(drained - again if back else drained | {node}))
    console.print(
        f"{plain(node)} gets no workers from now on." if not back else f"{plain(node)} may have workers again."
    )


def stop(config: ConfigFile = None, store: StoreFile = None) -> None:
    """Stop all workers in order; `afresh cluster up` starts them again.

    Example: afresh cluster stop
    """
    with _register(config, store) as (register, _):
        _, parts, _, _ = register.wanted()
        _require_cluster(parts)
        register.stop()
        if not _until(lambda: not any(member.alive for member in register.members()), STOP_SECONDS):
            raise ClusterError(
                "Some workers did not end in time.", hint="Their leases end by themselves: see afresh cluster status."
            )
    console.print("All workers have ended; nothing that was acknowledged is lost.")


def _require_cluster(parts: int) -> None:
    if not parts:
        raise InputError("There is no cluster on this store.", hint="Start one: afresh cluster up --shards 4")


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _worker(part: Annotated[int, typer.Argument(help="Its number.", min=0)], config: ConfigFile = None) -> None:
    """Be one worker; `afresh cluster up` starts these.

    Example: AFRESH_CLUSTER_STORE=postgresql://me@db/afresh afresh cluster worker 0
    """
    from afresh.cli.crew import worker

    worker(part, config)


commands.command("up", short_help="Start workers, and watch them.")(up)
commands.command("status", short_help="Each worker, and the sum.")(status)
commands.command("scale", short_help="Have another number of workers.")(scale)
commands.command("drain", short_help="Move workers away from a node.")(drain)
commands.command("stop", short_help="Stop all workers in order.")(stop)
commands.command("worker", hidden=True)(_worker)
