"""Messages to whatever Apprise knows (chats, phones): an extra to install."""

import asyncio
import logging
from importlib import import_module

from afresh.notify.channels.base import DEADLINE, Undelivered, secret_in
from afresh.notify.message import Letter


class Apprise:
    """One address of Apprise's, such as tgram://TOKEN/CHAT."""

    def __init__(self, url: str, seconds: float = DEADLINE) -> None:
        self.url, self.seconds = url, seconds

    async def send(self, letter: Letter) -> None:
        """Let Apprise send it, in a thread."""
        try:
            async with asyncio.timeout(self.seconds):
                sent = await asyncio.to_thread(self._send, letter)
        except TimeoutError:
            raise Undelivered(f"Apprise did not deliver it in {self.seconds:g} s") from None
        if not sent:
            raise Undelivered("Apprise could not deliver it")

    def _send(self, letter: Letter) -> bool:
        try:
            apprise = import_module("apprise")
        except ImportError:
            raise Undelivered("Apprise is not installed: pip install 'afresh[apprise]'") from None
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it would name the address, which holds secrets
        ways = apprise.Apprise()
        if not ways.add(secret_in(self.url)):
            raise Undelivered("Apprise does not know such an address")
        return bool(ways.notify(title=letter.subject, body=letter.text))

    async def close(self) -> None:
        """Nothing stays open."""
