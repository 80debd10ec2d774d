"""The command line in processes of its own, against a synthetic web in a thread of its own."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from afresh.sim.web import Server, Site, SiteOptions

COMMAND = [sys.executable, "-c", "from afresh.cli import main; main()"]
SETTINGS = '[fetch]\nallow_private = true\n[politeness]\nfactor = 0\nshortest_gap = "0s"\n[crawl]\nbudget = "120/s"\n'


@contextmanager
def synthetic_web(**options: object) -> Iterator[Server]:
    """A site in a thread of its own."""
    began = time.monotonic()
    server = Server(Site(SiteOptions(**options)), clock=lambda: time.monotonic() - began)  # type: ignore[arg-type]
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def whole_lines(output: bytes) -> list[dict[str, object]]:
    """What was acknowledged: a line cut off by the kill was not."""
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
