"""A webhook on loopback that keeps what it is given, and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook(ThreadingHTTPServer):
    """What came, and what is answered."""

    daemon_threads = True
    block_on_close = False  # a test may leave one that hangs

    def __init__(self, port: int = 0) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []  # headers and body of what was taken
        self.asked = 0
        self.paths: list[str] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.endless = False  # the answer's body
        self.seconds = 0.0  # that an answer takes
        self.lock = threading.Lock()
        self.pause = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What was taken, as JSON."""
        with self.lock:
            return [json.loads(body) for _, body in self.received]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the changes that were told of."""
        return [change["number"] for message in self.messages for change in message["changes"]]

    def handle_error(self, *_: object) -> None:
        """Whoever hangs up may."""


class _Handler(BaseHTTPRequestHandler):
    server: Hook
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.pause.wait(self.server.seconds)
        with self.server.lock:
            self.server.asked += 1
            self.server.paths.append(self.path)
            if 200 <= self.server.status < 300:
                self.server.received.append((dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(1 << 30) if self.server.endless else "0")
        self.end_headers()
        if self.server.endless:
            with suppress(OSError):
                for _ in range(1 << 14):
                    self.wfile.write(bytes(1 << 16))

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def hook(port: int = 0) -> Iterator[Hook]:
    """A webhook in threads of its own."""
    server = Hook(port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.pause.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
