"""A mail server on loopback that speaks SMTP with STARTTLS, and keeps what it is given."""

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer


class Mailbox(ThreadingTCPServer):
    """What it does, and what came."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, tls: ssl.SSLContext | None = None, silent: bool = False, refuses: bytes = b"") -> None:
        self.tls = tls
        self.endless = b""  # a line of its greeting, which it says for ever
        self.silent = silent  # takes connections and never says a word
        self.refuses = refuses  # what it answers to a recipient
        self.mails: list[bytes] = []
        self.logins: list[tuple[str, str]] = []
        self.plain_lines: list[bytes] = []  # that came without TLS
        super().__init__(("127.0.0.1", 0), _Talk)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """Whoever hangs up may."""


class _Talk(BaseRequestHandler):
    server: Mailbox
    request: socket.socket

    def handle(self) -> None:
        if self.server.silent:
            self.request.recv(1)  # until the other side hangs up
            return
        line = self.request
        with suppress(OSError):
            while self.server.endless:
                line.sendall(self.server.endless * 100)
        secure = False
        line.sendall(b"220 mail.example ESMTP\r\n")
        while said := self._until(line, b"\r\n"):
            if not secure:
                self.server.plain_lines.append(said)
            word, _, rest = said.strip().partition(b" ")
            match word.upper():
                case b"EHLO" | b"HELO":
                    starttls = b"" if self.server.tls is None or secure else b"250-STARTTLS\r\n"
                    line.sendall(b"250-mail.example\r\n" + starttls + b"250 AUTH PLAIN\r\n")
                case b"STARTTLS" if self.server.tls is not None:
                    line.sendall(b"220 go\r\n")
                    try:
                        self.request = line = self.server.tls.wrap_socket(line, server_side=True)
                    except ssl.SSLError:
                        return
                    secure = True
                case b"AUTH":
                    _, user, password = base64.b64decode(rest.split()[1]).split(b"\0")
                    self.server.logins.append((user.decode(), password.decode()))
                    line.sendall(b"235 welcome\r\n")
                case b"RCPT" if self.server.refuses:
                    line.sendall(self.server.refuses + b"\r\n")
                case b"DATA":
                    line.sendall(b"354 go on\r\n")
                    self.server.mails.append(self._until(line, b"\r\n.\r\n"))
                    line.sendall(b"250 taken\r\n")
                case b"QUIT":
                    line.sendall(b"221 bye\r\n")
                    return
                case _:
                    line.sendall(b"250 fine\r\n")

    @staticmethod
    def _until(line: socket.socket, end: bytes) -> bytes:
        found = b""
        with suppress(OSError):
            while not found.endswith(end) and (piece := line.recv(1)):
                found += piece
        return found

    def finish(self) -> None:
        self.request.close()


@contextmanager
def mailbox(*, tls: ssl.SSLContext | None = None, silent: bool = False, refuses: bytes = b"") -> Iterator[Mailbox]:
    """A mail server in threads of its own."""
    box = Mailbox(tls=tls, silent=silent, refuses=refuses)
    thread = threading.Thread(target=box.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield box
    finally:
        box.shutdown()
        box.server_close()
        thread.join(5)
