"""From settings to what receives signals beside a running crawl."""

from collections import Counter
from typing import TYPE_CHECKING

from afresh.cli.terminal import show_address
from afresh.config import Config
from afresh.daemon.desk import Hinted
from afresh.frontier import HostPatterns
from afresh.signals.websub import Intent
from afresh.types import Fetched

if TYPE_CHECKING:
    from afresh.daemon import Daemon
    from afresh.serve.receive.indexnow import IndexNow
    from afresh.serve.receive.inlet import Inlet
    from afresh.serve.receive.listener import Listener
    from afresh.sources import Web
    from afresh.sources.web.subscriptions import Delivery


class Receiver:
    """A listener with its rooms, and what they hand over to."""

    def __init__(self, listener: "Listener", inlet: "Inlet", indexnow: "IndexNow | None", tally: Counter[str]) -> None:
        self.listener, self.inlet, self.indexnow, self.tally = listener, inlet, indexnow, tally
        self.address = ""

    async def start(self) -> tuple[str, int]:
        """Begin; where."""
        where = await self.listener.start()
        self.address = show_address(where)
        if self.indexnow is not None:
            self.indexnow.start()
        return where

    def summary(self) -> dict[str, object]:
        """Where it listens, and what became of deliveries since it began."""
        waiting = [] if self.indexnow is None else self.indexnow.waiting
        counts = {name: self.tally[name] for name in ("accepted", "refused")}
        return {"address": self.address, **counts, "key_files_awaited": waiting}

    async def stop(self) -> None:
        """Answer what was asked, and let go."""
        await self.listener.stop()
        if self.indexnow is not None:
            await self.indexnow.stop()
        await self.inlet.close()


class Beside:
    """What receivers ask of the crawl that they run beside."""

    def __init__(self, daemon: "Daemon", web: "Web") -> None:
        self._daemon, self._web = daemon, web
        self._hinted = Hinted()

    def clock(self) -> float:
        """The crawl's own."""
        return self._daemon.clock()

    def keeps_host(self, host: str) -> bool:
        """Whether pages of a host are kept."""
        return len(self._daemon.engine.first.slots_of_host(host)) > 0

    def wants(self, url: str, sender: str) -> bool:
        """Whether a page is kept, and this sender was not heard of it since its last crawl; it is heard now."""
        engine = self._daemon.engine
        if url not in engine or (current := engine.current(url)) is None:
            return False
        if self._hinted.since(url, sender, current):
            self._daemon.repeated(url, sender)
            return False
        self._hinted.note(url, sender, self._daemon.clock())
        return True

    async def proof(self, url: str) -> Fetched | None:
        """A file of a host, in its turn."""
        return await self._web.proof(url)

    def verify(self, name: str, intent: Intent) -> str | None:
        """A hub asks back."""
        subscriptions = self._web.subscriptions
        return None if subscriptions is None else subscriptions.verify(name, intent)

    async def deliver(self, name: str, body: bytes, signature: str) -> "Delivery | None":
        """A hub delivers."""
        subscriptions = self._web.subscriptions
        return None if subscriptions is None else await subscriptions.deliver(name, body, signature)


def receiver_for(config: Config, daemon: "Daemon") -> Receiver | None:
    """What receives signals; None if the settings want none."""
    receive = config.receive
    if receive.listen is None:
        return None
    from afresh.serve.receive.application import Handler, application
    from afresh.serve.receive.hook import Hooks
    from afresh.serve.receive.indexnow import IndexNow
    from afresh.serve.receive.inlet import Inlet
    from afresh.serve.receive.listener import Listener
    from afresh.serve.receive.tokens import Tokens, listed
    from afresh.serve.receive.websub import Callback
    from afresh.sources import Web
    from afresh.sources.web.subscriptions import PATH

    listed(receive.tokens)  # says what is wrong with the file before anything listens
    inlet = Inlet(daemon.store.post, daemon.wake)
    hooks = Hooks(
        Tokens(receive.tokens),
        inlet,
        max_body=receive.max_body,
        rate=receive.rate,
        never=HostPatterns(config.crawl.never),
        keeps=lambda url: url in daemon.engine,
        clock=daemon.clock,
    )
    routes: list[tuple[str, str, Handler]] = [("POST", "/signal", hooks.post)]
    web = next(source for source in daemon.sources.all if isinstance(source, Web))
    beside, indexnow = Beside(daemon, web), None
    if receive.indexnow > 0:
        indexnow = IndexNow(beside, inlet, daemon.store, receive.indexnow, receive.max_body)
        routes += [("GET", "/indexnow", indexnow.get), ("POST", "/indexnow", indexnow.post)]
    callback = Callback(beside, inlet, max_body=receive.max_body, clock=daemon.clock)
    routes += [("GET", PATH + "{name}", callback.get), ("POST", PATH + "{name}", callback.post)]
    tally: Counter[str] = Counter()
    made = Receiver(Listener(application(routes, tally), *receive.listen), inlet, indexnow, tally)
    daemon.questions["receiver"] = lambda _: made.summary()
    return made
