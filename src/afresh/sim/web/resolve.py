"""Finds the synthetic web's host names on this machine, where the system's own resolver may not know *.localhost."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver


class LoopbackResolver(AbstractResolver):
    """For an aiohttp connector: every name under localhost is 127.0.0.1 (RFC 6761 §6.3), the rest is looked up."""

    def __init__(self) -> None:
        self._others: AbstractResolver | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host name."""
        if host == "localhost" or host.endswith(".localhost"):
            return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]
        if self._others is None:
            self._others = DefaultResolver()
        return await self._others.resolve(host, port, family)

    async def close(self) -> None:
        """Let go of the system's resolver."""
        if self._others is not None:
            await self._others.close()
