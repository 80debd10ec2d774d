"""Requests that came lately, by their bytes: the same bytes again mean the same, and need not be read again.

Only one whole request without a body, which came in one piece, was found to be in order and was answered from memory is
known here. A parser that is between two requests would be there again behind it, so it need not see the bytes.
"""

from afresh.serve.proxy.request import Request
from afresh.serve.proxy.routes import Site

MOST = 4096  # requests
LARGEST = 1024  # bytes of one
_END = b"\r\n\r\n"
_SECRET = ("authorization", "cookie", "proxy-authorization")


class Recent:
    """What certain bytes mean: the request, and the page of which site that is."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Request, Site, str]] = {}
        self.get = self._known.get

    def __len__(self) -> int:
        return len(self._known)

    def note(self, data: bytes, request: Request, site: Site, url: str) -> None:
        """These bytes were this request, if they were one request and nothing else."""
        if len(data) > LARGEST or data.find(_END) != len(data) - len(_END) or not request.keep_alive:
            return
        if not data.startswith(request.method.encode("ascii")) or any(name in request.fields for name in _SECRET):
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[data] = request, site, url
