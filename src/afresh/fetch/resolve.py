"""From host names to addresses: bounded in time, in number and in threads, and every address shown to the guard."""

import asyncio
import ipaddress
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from afresh.fetch.guard import Guard

MOST_THREADS = 64  # lookups in the system's resolver at once; one that hangs keeps its place until it ends
MOST_ADDRESSES = 4  # tried of each family
MOST_NAMES = 10_000  # remembered
SECONDS_KEPT = 60.0

Found = Mapping[str, Any]  # an address: its `host` in numbers, its `port` and `family`


class Resolver(Protocol):
    """Finds addresses; those of aiohttp fit."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> Sequence[Found]:
        """Addresses of a host name; OSError if there are none."""

    async def close(self) -> None:
        """Let go of what is held."""


class LookupTimeout(OSError):
    """The name was not resolved in time."""


class SystemResolver:
    """Asks the system, in threads of its own.

    The event loop's threads are few and shared with the store: names that hang must not take them. These threads are
    daemons, so that a lookup that hangs does not hold up the end of the program either.
    """

    def __init__(self, ask: Callable[..., list[Any]] = socket.getaddrinfo, *, threads: int = MOST_THREADS) -> None:
        self._ask = ask
        self._places = asyncio.Semaphore(threads)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[Found]:
        """Addresses of a host name; OSError if there are none."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[Found]] = loop.create_future()

        def tell(say: Callable[[], None]) -> None:
            self._places.release()
            if not found.done():  # nobody waits any more
                say()

        def look_up() -> None:
            try:
                results = self._addresses(host, port, family)
            except (OSError, UnicodeError) as error:
                failure = OSError(str(error))
                say: Callable[[], None] = lambda: found.set_exception(failure)  # noqa: E731
            else:
                say = lambda: found.set_result(results)  # noqa: E731
            with suppress(RuntimeError):  # the loop may be gone by now
                loop.call_soon_threadsafe(tell, say)

        threading.Thread(target=look_up, name=f"lookup of {host}", daemon=True).start()
        return await found

    def _addresses(self, host: str, port: int, family: int) -> list[Found]:
        rows = self._ask(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return [_result(host, str(address[0]), port, kind) for kind, _, _, _, address in rows]

    async def close(self) -> None:
        """Nothing to let go of."""


def _result(name: str, address: str, port: int, family: int) -> Found:
    return {"hostname": name, "host": address, "port": port, "family": family}


class Lookup:
    """Any resolver, made safe: a time limit, a few addresses, and none at all if the guard refuses one of them.

    A name with both public and private addresses is a mistake or an attack; using only its public ones would make the
    outcome a matter of luck. `localhost` and every name below it are loopback, as RFC 6761 asks of applications.
    """

    def __init__(self, inner: Resolver, guard: Guard, *, seconds: float) -> None:
        self.inner = inner
        self.guard = guard
        self.seconds = seconds

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[Found]:
        """Addresses that may be connected to."""
        self.guard.check_port(port)
        results = await self._look_up(host, port, family)
        for each in results:
            self.guard.check_address(each["host"])
        return _few(results)

    async def _look_up(self, host: str, port: int, family: socket.AddressFamily) -> Sequence[Found]:
        if (numeric := _numeric(host)) is not None:  # nobody need be asked
            return [_result(host, host, port, numeric)]
        name = host.lower().rstrip(".")
        if name == "localhost" or name.endswith(".localhost"):
            return [_result(host, "127.0.0.1", port, socket.AF_INET)]
        try:
            async with asyncio.timeout(self.seconds):
                results = await self.inner.resolve(host, port, family)
        except TimeoutError:
            raise LookupTimeout(f"{host} was not resolved in {self.seconds:g} s") from None
        if not results:
            raise OSError(f"{host} has no address")
        return results

    async def close(self) -> None:
        """Let go of the resolver inside."""
        await self.inner.close()


def _few(results: Sequence[Found]) -> list[Found]:
    """The first addresses of each family, so that neither crowds the other out."""
    taken: Counter[int] = Counter()
    kept = []
    for each in results:
        taken[each["family"]] += 1
        if taken[each["family"]] <= MOST_ADDRESSES:
            kept.append(each)
    return kept


def _numeric(host: str) -> int | None:
    """The family of an address in numbers; None for a name."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return None
    return socket.AF_INET if version == 4 else socket.AF_INET6


class Names:
    """What was looked up, remembered for a minute; who asks for a name that is being looked up waits for that."""

    def __init__(self, lookup: Lookup, clock: Callable[[], float] = time.monotonic) -> None:
        self.lookup = lookup
        self.clock = clock
        self._known: dict[tuple[str, int], tuple[float, list[Found]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[list[Found]]] = {}

    async def find(self, host: str, port: int) -> list[Found]:
        """Addresses that may be connected to, at least one; OSError if there is none."""
        until, known = self._known.get((host, port), (0.0, []))
        if self.clock() < until:
            return known
        asking = self._asking.get((host, port))
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self.lookup.resolve(host, port))
            self._asking[host, port] = asking
            asking.add_done_callback(lambda task: self._learn((host, port), task))
        return await asyncio.shield(asking)  # one who gives up must not take the answer from the others

    def _learn(self, key: tuple[str, int], task: "asyncio.Task[list[Found]]") -> None:
        self._asking.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return  # a failure is not remembered: the host's rest keeps it from being asked for again at once
        if len(self._known) >= MOST_NAMES and key not in self._known:
            self._known.pop(next(iter(self._known)))
        self._known[key] = (self.clock() + SECONDS_KEPT, task.result())

    def forget(self) -> None:
        """Look everything up anew."""
        self._known.clear()

    async def close(self) -> None:
        """Stop asking."""
        for task in self._asking.values():
            task.cancel()
        await self.lookup.close()
