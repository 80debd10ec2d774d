"""A wire to a server that can be cut: bytes stop, and no connection is closed, as where a network is parted."""

import socket
import threading
from contextlib import suppress
from pathlib import Path


class Wire:
    """Listens on loopback and carries everything to a unix socket, while it is whole."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(self._to))
            except OSError:
                near.close()
                far.close()
                continue
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while part := one.recv(1 << 16):
                self._whole.wait()
                other.sendall(part)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Carry nothing from now on."""
        self._whole.clear()

    def mend(self) -> None:
        """Carry everything again; what was open before is closed."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._whole.set()

    def close(self) -> None:
        """Carry nothing any more."""
        self._listener.close()
        self.mend()
        for each in self._open:
            each.close()
