"""Messages by e-mail: SMTP with TLS."""

import asyncio
import io
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from afresh.notify.channels.base import DEADLINE, Undelivered, secret_in
from afresh.notify.message import Letter
from afresh.reading.title import one_line

MAX_SAID = 64 << 10  # bytes that a mail server may say over one connection, before TLS and behind it


@dataclass(frozen=True, slots=True)
class MailServer:
    """How mail leaves: `smtp://user@host:587` (with STARTTLS) or `smtps://user@host:465`, the password apart."""

    url: str
    password: str = ""  # itself, $NAME or @FILE
    sender: str = ""
    tls: ssl.SSLContext | None = None  # None: certificates are checked as the system says


def letter_as_mail(letter: Letter, sender: str, to: str) -> EmailMessage:
    """The letter as a mail. Its headers are one line each, whatever a page is called."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"] = sender, to
    mail["Subject"] = one_line(letter.subject, 200)
    mail["Date"] = format_datetime(datetime.fromtimestamp(letter.made, UTC))
    mail["Message-ID"] = f"<{letter.id}@{sender.rpartition('@')[2] or 'localhost'}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.text.encode("utf-8", "replace").decode())
    return mail


class Mail:
    """One recipient. A server that does not answer in time is left."""

    def __init__(self, to: str, server: MailServer, seconds: float = DEADLINE) -> None:
        self.to, self.server, self.seconds = to, server, seconds

    async def send(self, letter: Letter) -> None:
        """Hand it to the server, in a thread of its own, which ends at the deadline."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        open_now: list[smtplib.SMTP] = []

        def finish(error: Exception | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        def work() -> None:
            error: Exception | None = None
            try:
                self._send(letter, open_now.append)
            except Undelivered as undelivered:
                error = undelivered
            except (OSError, smtplib.SMTPException, ValueError) as problem:
                error = _undelivered(problem)
            with suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(finish, error)

        threading.Thread(target=work, name="afresh-mail", daemon=True).start()
        try:
            async with asyncio.timeout(self.seconds):
                await done
        except TimeoutError:
            raise Undelivered(f"the mail server did not take it in {self.seconds:g} s") from None
        finally:
            for connection in open_now:  # whatever the thread waits for ends now
                _break(connection)

    def _send(self, letter: Letter, opened: Callable[[smtplib.SMTP], None]) -> None:
        said = urlsplit(secret_in(self.server.url))
        host, user = said.hostname or "", unquote(said.username or "")
        context = self.server.tls or ssl.create_default_context()
        secure = said.scheme == "smtps"
        if secure:
            connection: smtplib.SMTP = _SecureServer(timeout=self.seconds, context=context)
        else:
            connection = _Server(timeout=self.seconds)
        opened(connection)
        with connection:
            connection._host = host  # type: ignore[attr-defined] # the name that its certificate must have
            connection.connect(host, said.port or (465 if secure else 587))
            connection.ehlo()
            if not secure and (connection.has_extn("starttls") or not _is_here(host)):
                connection.starttls(context=context)
                connection.ehlo()
                secure = True
            password = secret_in(self.server.password or unquote(said.password or ""))
            if user and password:
                if not secure:
                    raise Undelivered("the password is not sent without TLS")
                connection.login(user, password)
            mail = letter_as_mail(letter, self.server.sender or user, self.to)
            connection.send_message(mail, self.server.sender or user, [self.to])

    async def close(self) -> None:
        """Nothing stays open."""


class _Bounded(io.BufferedReader):
    """What a server says, up to a bound: replies may have any number of lines, and are kept until their last."""

    left = MAX_SAID

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line."""
        line = super().readline(size)
        self.left -= len(line)
        if self.left < 0:
            raise Undelivered("the mail server says too much")
        return line


class _BoundedMixin:
    """A client of a server that may say so much, and no more."""

    file: io.BufferedReader | None
    sock: socket.socket | None

    def getreply(self) -> tuple[int, bytes]:
        """The next reply of the server."""
        if self.file is None and self.sock is not None:
            self.file = _Bounded(self.sock.makefile("rb", buffering=0))
        found: tuple[int, bytes] = super().getreply()  # type: ignore[misc]
        return found


class _Server(_BoundedMixin, smtplib.SMTP):
    """TLS begins after the greeting, if at all."""


class _SecureServer(_BoundedMixin, smtplib.SMTP_SSL):
    """TLS from the start."""


def _is_here(host: str) -> bool:
    """Whether a server is on this machine, to which nobody else listens."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _break(connection: smtplib.SMTP) -> None:
    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _undelivered(error: Exception) -> Undelivered:
    """What went wrong, in words of ours: what a server answers may hold what was sent to it."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return Undelivered("the mail server refuses the user or the password")
        case smtplib.SMTPRecipientsRefused():
            codes = [code for code, _ in error.recipients.values()]
            return Undelivered("the mail server refuses the recipient", refused=all(code >= 500 for code in codes))
        case smtplib.SMTPNotSupportedError():
            return Undelivered("the mail server offers no STARTTLS, or no login")
        case smtplib.SMTPResponseException(smtp_code=code):
            return Undelivered(f"the mail server answers {code}", refused=500 <= code < 600)
        case smtplib.SMTPException():
            return Undelivered("the mail server closed the connection")
        case ssl.SSLCertVerificationError():
            return Undelivered(f"the mail server's certificate: {one_line(error.verify_message, 100)}")
        case ssl.SSLError():
            return Undelivered("no TLS with the mail server")
        case TimeoutError():
            return Undelivered("the mail server does not answer")
        case OSError():
            return Undelivered(f"no connection to the mail server: {error.strerror or 'its name is not known'}")
    return Undelivered("the mail cannot be written: an address in it is none")
