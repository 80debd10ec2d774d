"""A live crawl of ordinary hosts, alone and beside hostile ones, and what the hostile ones cost.

`python hostile_run.py PORT SECONDS EVILS BODY FOLDER` crawls, and prints what came of it as JSON.
"""

import asyncio
import gc
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

ORDINARY = 15
WARM_UP = 3.0  # seconds that are not counted: robots.txt, first crawls, compiling
GAP = 0.25  # seconds that a host rests
CONCURRENCY = 32
UNWRITTEN = 64 << 20  # crawl.max_unwritten, in bytes
HERE = Path(__file__).parent


@dataclass
class Result:
    """What one crawl was like."""

    per_minute: float = 0.0  # crawls of ordinary hosts
    peak: int = 0  # bytes of memory
    cpu: float = 0.0  # seconds of the crawler's processor time a second
    lag: float = 0.0  # the longest that the event loop was held up, in seconds
    evils: dict[str, dict[str, int]] = field(default_factory=dict)  # behaviour, outcome, count
    late: list[str] = field(default_factory=list)  # functions that were compiled, or loaded, only while hosts waited
    said: str = ""  # on standard error


@contextmanager
def hostile_server():  # type: ignore[no-untyped-def]
    """The port of a server in a process of its own."""
    command = [sys.executable, str(HERE / "hostile_behaviours.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def crawl(port: int, seconds: float, *, evils: list[str], body: int, folder: Path) -> Result:
    """Crawl for a while in a process of its own; without evils, the ordinary hosts alone."""
    words = [str(port), str(seconds), ",".join(evils), str(body), str(folder)]
    process = subprocess.run(
        [sys.executable, str(Path(__file__)), *words], capture_output=True, text=True, timeout=seconds + 120
    )
    if process.returncode:
        raise AssertionError(process.stderr[-3000:])
    return Result(**json.loads(process.stdout), said=process.stderr)


def bound(body: int) -> int:
    """How much more memory hostile hosts may take, by the settings: bodies under way, twice, and what is kept."""
    robots = 32 << 20
    return CONCURRENCY * 2 * body + robots + UNWRITTEN + (64 << 20)


async def _crawl(port: int, seconds: float, evils: list[str], body: int, folder: Path) -> Result:
    from afresh.cli.build import addresses_for, detector_for, engine_for, fetcher_for, permits_for
    from afresh.config import parse
    from afresh.daemon import Daemon, SteadyClock
    from afresh.daemon.events import Finished
    from afresh.frontier import Scope, host_of
    from afresh.sources.web import Discovery, Web
    from afresh.store import Sqlite
    from afresh.types import Page
    from live_site import Names

    settings = parse(
        f'[crawl]\nbudget = "300/s"\nconcurrency = {CONCURRENCY}\ngrace = "1s"\nmax_unwritten = "{UNWRITTEN}B"\n'
        f'[fetch]\nallow_networks = "127.0.0.0/8"\nmax_body = "{body}B"\ntimeout = "10s"\n'
        f'[politeness]\nfactor = 0\nshortest_gap = "{GAP}s"\nfirst_back_off = "1s"\n'
    )
    hosts = [f"ordinary{nth}.example:{port}" for nth in range(ORDINARY)]
    hosts += [f"{name.replace('_', '-')}.evil{nth}.example:{port}" for nth, name in enumerate(evils)]
    clock, result, began = SteadyClock(), Result(), 0.0
    with Sqlite(folder / f"{len(evils)}.db") as store:
        store.add([Page(f"http://{host}/", host) for host in hosts])
        fetcher = fetcher_for(settings, clock)
        # Every name has an address of its own, or they would share the limits for one.
        fetcher.resolver = Names(
            lambda host: f"127.{crc32(host.encode()) % 250 + 1}.{crc32(host[::-1].encode()) % 250}.9"
        )
        counted, outcomes = 0, {}

        def hear(event: object) -> None:
            nonlocal counted
            if isinstance(event, Finished):
                name = host_of(event.crawl.url).split(".")[0]
                if name.startswith("ordinary"):
                    counted += time.monotonic() >= began + WARM_UP
                else:
                    found = outcomes.setdefault(name, Counter())
                    found[event.crawl.reason or str(event.crawl.outcome)] += 1

        engine = engine_for(settings, len(hosts), to_come=1000)
        daemon = Daemon(
            engine=engine,
            sources=Web(
                fetcher,
                permits=permits_for(settings, store),
                addresses=addresses_for(settings, engine.lanes),
                discovery=Discovery(Scope(), most_pages=20_000),
            ),
            store=store,
            detector=detector_for(settings),
            clock=clock,
            concurrency=settings.crawl.concurrency,
            grace=settings.crawl.grace,
            max_unwritten=settings.crawl.max_unwritten,
            listeners=[hear],
        )
        running, began, used = asyncio.create_task(daemon.run()), time.monotonic(), time.process_time()
        while time.monotonic() < began + WARM_UP + seconds and not running.done():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            result.lag = max(result.lag, time.monotonic() - before - 0.01)
        took = time.monotonic() - began - WARM_UP
        daemon.stop()
        await running
        await fetcher.close()
    result.per_minute = 60 * counted / took
    result.cpu = (time.process_time() - used) / (took + WARM_UP)
    result.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result.evils = {name: dict(found) for name, found in sorted(outcomes.items())}
    return result


def _compiled() -> set[str]:
    """Our compiled functions that are in memory, each with the types that it was compiled for."""
    from numba.core.dispatcher import Dispatcher

    ours = [each for each in gc.get_objects() if issubclass(type(each), Dispatcher)]
    names = [(f"{each.py_func.__module__}.{each.py_func.__name__}", each) for each in ours]
    return {f"{name}{types}" for name, each in names if name.startswith("afresh.") for types in each.signatures}


def main() -> None:
    """One crawl, and its result as JSON."""
    from afresh.cli.build import compile_all

    sys.path.insert(0, str(HERE))
    port, seconds, evils, body, folder = sys.argv[1:]
    compile_all()
    names = [name for name in evils.split(",") if name]
    before = _compiled()
    result = asyncio.run(_crawl(int(port), float(seconds), names, int(body), Path(folder)))
    result.late = sorted(_compiled() - before)
    said = vars(result)
    said.pop("said")
    print(json.dumps(said))


if __name__ == "__main__":
    main()
