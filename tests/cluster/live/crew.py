"""A cluster to try faults on: a server, a web that logs, workers as processes."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from afresh.cli.crew import ADDRESS
from afresh.cluster.coordinator import Coordinator
from afresh.cluster.processes import Processes
from afresh.cluster.register import Register
from afresh.errors import StoreError
from afresh.store.postgres import Postgres
from afresh.types import Address, Page
from logged_web import LoggedWeb
from postgres import Postgres as Server
from wire import Wire

GAP = 0.2
BUDGET = 40.0
SETTINGS = f"""[fetch]
allow_private = true
[politeness]
factor = 0
shortest_gap = "{GAP}s"
[crawl]
budget = "{BUDGET:g}/s"
sitemaps = false
"""


def until(holds: Callable[[], object], seconds: float, what: str) -> float:
    """Wait until something holds; how long it took. AssertionError if it takes longer."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - began


class Crew:
    """Workers 0, 1, … of which the last reaches the database over a wire that can be cut; `more` settings."""

    def __init__(
        self, folder: Path, workers: int, *, hosts: int = 40, pages: int = 4, by_processes: bool = True, more: str = ""
    ) -> None:
        self.server = Server()
        self.web = LoggedWeb(hosts, pages)
        self.url = self.server.fresh("crew")
        self.settings = folder / "afresh.toml"
        self.settings.write_text(SETTINGS + more)
        with Postgres(self.url) as store:
            store.add(Page(url, url.split("/")[2], time.time()) for url in self.web.urls())
        self.wire = Wire(self.server.folder / f".s.PGSQL.{self.server.port}")
        by_wire = f"postgresql://postgres@127.0.0.1:{self.wire.port}/crew"

        def command(part: int) -> list[str]:
            reach = by_wire if part == workers - 1 else self.url
            own = ["-m", "afresh", "cluster", "worker", str(part), "--config", str(self.settings)]
            return ["env", f"{ADDRESS}={reach}", sys.executable, *own]

        self.processes = Processes(command)
        self.register = Register(self.url)
        self.sums: list[float] = []  # of what was in force, sampled
        self._over = threading.Event()
        self.coordinator: Coordinator | None = None
        if by_processes:
            self.register.scale(workers, budget=BUDGET)
            self.watch()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def watch(self) -> None:
        """Have a coordinator."""
        self.coordinator = Coordinator(Address(self.url), self.processes)
        self._watching = threading.Thread(target=self.coordinator.run, daemon=True)
        self._watching.start()

    def unwatch(self) -> None:
        """Have none."""
        if self.coordinator is not None:
            self.coordinator.end()
            self._watching.join(20)
            self.coordinator.register.close()
            self.coordinator = None

    def _sample(self) -> None:
        register = Register(self.url, patience=1.0)
        while not self._over.wait(0.5):
            try:
                members = register.members()
            except Exception:
                continue
            self.sums.append(sum(max(each.budget, each.spending) for each in members if each.alive))
        register.close()

    def alive(self) -> int:
        """How many workers have a lease; 0 while nobody can tell."""
        try:
            return sum(member.alive for member in self.register.members())
        except StoreError:
            return 0

    def holder(self, part: int) -> tuple[str, float]:
        """(which process last had the lease of a part, how many seconds ago it was heard)."""
        return next((each.holder, each.lag) for each in self.register.members() if each.part == part)

    def full_rate(self) -> bool:
        """Whether nearly all of the budget is spent, and all of it is granted."""
        return self.web.rate(4.0) > 0.85 * BUDGET

    def check(self) -> None:
        """What must hold whatever happened."""
        assert self.web.at_once() == [], "a host was asked by two at once"
        assert self.web.too_soon(0.75 * GAP) == [], "a host did not rest"
        assert max(self.sums) <= BUDGET * (1 + 1e-6), "budget was doubled"

    def close(self) -> None:
        """End it all."""
        self._over.set()
        self._sampler.join(5)
        self.unwatch()
        self.wire.close()
        self.processes.close()
        self.web.close()
        self.register.close()
        self.server.close()
