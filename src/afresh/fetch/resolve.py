"""From host names to addresses: bounded in time, in number and in threads, and every address shown to the guard."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from afresh.fetch.guard import Guard

MOST_THREADS = 64  # lookups in the system's resolver at once; one that hangs keeps its place until it ends
MOST_ADDRESSES = 4  # tried of each family


class LookupTimeout(OSError):
    """The name was not resolved in time."""


class SystemResolver(AbstractResolver):
    """Asks the system, in threads of its own.

    The event loop's threads are few and shared with the store: names that hang must not take them. These threads are
    daemons, so that a lookup that hangs does not hold up the end of the program either.
    """

    def __init__(self, ask: Callable[..., list[Any]] = socket.getaddrinfo, *, threads: int = MOST_THREADS) -> None:
        self._ask = ask
        self._places = asyncio.Semaphore(threads)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Addresses of a host name; OSError if there are none."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()

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

    def _addresses(self, host: str, port: int, family: int) -> list[ResolveResult]:
        rows = self._ask(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return [_result(host, str(address[0]), port, kind) for kind, _, _, _, address in rows]

    async def close(self) -> None:
        """Nothing to let go of."""


def _result(name: str, address: str, port: int, family: int) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=name, host=address, port=port, family=family, proto=0, flags=flags)


class Lookup(AbstractResolver):
    """Any resolver, made safe: a time limit, a few addresses, and none at all if the guard refuses one of them.

    A name with both public and private addresses is a mistake or an attack; using only its public ones would make the
    outcome a matter of luck. `localhost` and every name below it are loopback, as RFC 6761 asks of applications.
    """

    def __init__(self, inner: AbstractResolver, guard: Guard, *, seconds: float) -> None:
        self.inner = inner
        self.guard = guard
        self.seconds = seconds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Addresses that may be connected to."""
        self.guard.check_port(port)
        results = await self._look_up(host, port, family)
        for each in results:
            self.guard.check_address(each["host"])
        return _few(results)

    async def _look_up(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
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


def _few(results: list[ResolveResult]) -> list[ResolveResult]:
    """The first addresses of each family, so that neither crowds the other out."""
    taken: Counter[int] = Counter()
    kept = []
    for each in results:
        taken[each["family"]] += 1
        if taken[each["family"]] <= MOST_ADDRESSES:
            kept.append(each)
    return kept
