"""One line for every answer, in the common format with two fields more, or as JSON; written by a thread of its own."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from time import time

from afresh.errors import ConfigError
from afresh.serve.proxy.lines import LineWriter
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Request

MAX_TARGET = 2048  # characters of an address that a line holds
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PLAIN = str.maketrans({**{code: f"\\x{code:02x}" for code in (*range(32), 34, 92, *range(127, 256))}})


class AccessLog:
    """Writes lines. `trusted`: from these networks, X-Forwarded-For is taken for the reader's address."""

    def __init__(
        self, path: Path | None, form: str = "common", trusted: Sequence[IPv4Network | IPv6Network] = ()
    ) -> None:
        try:
            self._lines = LineWriter(path)
        except OSError as error:
            raise ConfigError(
                f"The access log {path} cannot be written: {error.strerror}.", hint="Name a file in a folder of yours."
            ) from None
        self._json = form == "json"
        self._trusted = tuple(trusted)

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out, or as much of it as there will be; `how`: hit, stale, checked, miss, joined, pass; own, if
        it was ours; broken, if its origin did not bring it to its end; left, if its reader did not wait for that.
        """
        self._note(connection, request, status, size, how)

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""
        self._note(connection, None, status, 0, "own")

    def _note(self, connection: Connection, request: Request | None, status: int, size: int, how: str) -> None:
        now = time()
        reader = reader_of(connection.peer, request, self._trusted)
        method, target, version, host = "-", "-", "1.1", "-"
        if request is not None:
            method, version, host = request.method, request.version, request.authority or "-"
            target = request.target[:MAX_TARGET].decode("latin-1")
        if self._json:
            said = {"time": round(now, 3), "client": reader, "method": method, "host": host, "uri": target}
            self._lines.write(json.dumps(said | {"status": status, "bytes": size, "cache": how}))
            return
        self._lines.write(
            f'{reader} - - [{_clock(int(now))}] "{method} {target.translate(_PLAIN)} HTTP/{version}" '
            f"{status} {size} {host.translate(_PLAIN)} {how}"
        )

    def again(self) -> None:
        """Open the file anew: somebody has moved it away."""
        self._lines.again()

    def close(self) -> None:
        """Write what is left."""
        self._lines.close()


@lru_cache(2)
def _clock(seconds: int) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at.day:02}/{_MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000"


def reader_of(peer: str, request: Request | None, trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """A reader's address: the connection's, or the last one in X-Forwarded-For that no trusted proxy has."""
    said = request.fields.get("x-forwarded-for", "") if request is not None and trusted else ""
    if not said or not _among(peer, trusted):
        return peer
    for word in reversed(said.split(",")[-10:]):
        text = word.strip()
        try:
            address = str(ip_address(text))
        except ValueError:
            return peer
        if not _among(address, trusted):
            return address
    return peer


def _among(text: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)
