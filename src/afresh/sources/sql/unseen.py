"""Results that were run here, and that the store does not show yet: they are the newest that anybody has."""

import threading
from collections import OrderedDict

from afresh.sources.sql.rows import Rows

MAX_BYTES = 32 << 20


class Unseen:
    """Holds them until the store has as new a one."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, tuple[float, Rows]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, key: str, started: float, rows: Rows) -> None:
        """A run that was started then has brought this."""
        with self._lock:
            self._drop(key)
            self._rows[key] = started, rows
            self._bytes += len(rows.body)
            while self._bytes > MAX_BYTES:
                self._drop(next(iter(self._rows)))

    def newer(self, key: str, checked: float | None) -> tuple[float, Rows] | None:
        """(when it was started, rows), if that is newer than what the store has."""
        with self._lock:
            found = self._rows.get(key)
            if found is not None and checked is not None and checked >= found[0]:
                self._drop(key)
                return None
            return found

    def _drop(self, key: str) -> None:
        before = self._rows.pop(key, None)
        self._bytes -= len(before[1].body) if before is not None else 0
