"""What is derived of copies and kept in the same file, such as a full-text index: written with them, or not at all."""

from collections.abc import Iterable
from typing import Any, Protocol

import apsw

from afresh.types import Copy


class Companion(Protocol):
    """Keeps tables of its own in the store's file.

    Invariant: what it writes of a copy becomes durable in the transaction of the copy itself.
    """

    def begin(self, connection: apsw.Connection) -> None:
        """See to it that its tables are there, in the transaction that is open."""

    def prepare(self, copies: Iterable[Copy]) -> Any:
        """What takes time: read copies that are about to be written. No transaction is open."""

    def write(self, connection: apsw.Connection, prepared: Any) -> None:
        """Write what was prepared of them, in the transaction that has just written the copies."""
