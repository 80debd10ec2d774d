"""Messages to a webhook: JSON by POST, signed as the Standard Webhooks specification says."""

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from hashlib import sha256

from afresh.fetch import Http
from afresh.notify.channels.base import Undelivered, secret_in
from afresh.notify.message import Letter

PREFIX = "whsec_"  # before a secret in base64


def signed(secret: str, identifier: str, when: int, body: bytes) -> str:
    """The signature of a message: of its identifier, the moment and the body.

    >>> signed("hush", "m1", 5, b"{}")
    'v1,UxbnKugw0SGU8yxLkanLF3yGIhKZoeUJ48MSTmEGa1c='
    """
    key = secret.encode()
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise Undelivered("the secret begins with whsec_ and is not in base64") from None
    said = hmac.new(key, f"{identifier}.{when}.".encode() + body, sha256).digest()
    return f"v1,{base64.b64encode(said).decode()}"


class Webhook:
    """One address. Nothing is sent on where it redirects, and no more of its answer counts than the status."""

    def __init__(self, url: str, secret: str, fetcher: Http, clock: Callable[[], float] = time.time) -> None:
        self.url, self.secret, self.fetcher, self.clock = url, secret, fetcher, clock

    async def send(self, letter: Letter) -> None:
        """Post it."""
        body, when = letter.to_json(), int(self.clock())
        headers = {"webhook-id": letter.id, "webhook-timestamp": str(when)}
        if self.secret:
            headers["webhook-signature"] = signed(secret_in(self.secret), letter.id, when, body)
        fetched = await self.fetcher.tell(secret_in(self.url), body, headers)
        if fetched.reason:
            raise Undelivered(f"{fetched.reason}")
        if fetched.location:
            raise Undelivered(f"HTTP {fetched.status}: it redirects, which is not followed", refused=True)
        if not 200 <= fetched.status < 300:
            refused = 400 <= fetched.status < 500 and fetched.status not in (408, 425, 429)
            raise Undelivered(f"HTTP {fetched.status}", retry_after=fetched.retry_after, refused=refused)

    async def close(self) -> None:
        """Let go of connections."""
        await self.fetcher.close()
