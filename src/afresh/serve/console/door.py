"""Who comes in: which names the console answers to, who may read, who may act, and what every answer says besides.

Without a token only reading is possible, and that only where the console listens on loopback and has no public address.
A browser gets a session for a token; the token itself never stands in an address or in a page.
"""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afresh.serve.receive.bodies import Refused
from afresh.serve.receive.meter import Meter
from afresh.serve.receive.tokens import Token, Tokens

COOKIE = "afresh_console"
SESSION_SECONDS = 12 * 3600.0  # without a request
MAX_SESSIONS = 1_000
MAX_COOKIES = 10  # of our name in one request
TRIES_A_SECOND, TRIES_AT_ONCE = 1.0, 20.0  # of tokens that do not exist, all together
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with less, a browser would not say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(slots=True)
class Session:
    """A browser that has shown a token."""

    presented: str
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    used: float = 0.0


class Door:
    """Decides who may read and act."""

    def __init__(self, tokens: Tokens, *, host: str, public_url: str = "") -> None:
        self.tokens = tokens
        public = urlsplit(public_url)
        self.public_origin = f"{public.scheme}://{public.netloc}".lower() if public_url else ""
        self._public_host = (public.hostname or "").lower()
        self.is_open = is_loopback(host) and not public_url
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._tries = Meter(rate=TRIES_A_SECOND, burst=TRIES_AT_ONCE)

    def require_name(self, request: Request) -> None:
        """Refused if the console is asked by a name that is not its own: a page elsewhere may have led a browser here
        under a name of its choice."""
        named = request.headers.getlist("host")
        name = name_in(named[0]) if len(named) == 1 else ""
        if not (name and (is_address(name) or name == "localhost" or name == self._public_host)):
            raise Refused(
                421, "This console is not known by that name.", "Ask for it by its address, or set console.public_url."
            )

    def token_of(self, request: Request) -> Token | None:
        """The token that a request shows, by itself or by its session; Refused if that is none."""
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme:
            if scheme.lower() != "bearer":
                raise _nobody("Send Authorization: Bearer TOKEN, made by `afresh token new`.")
            return self._known(presented.strip())
        session = self.session_of(request)
        return None if session is None else self.tokens.find(session.presented)

    def require(self, request: Request, scope: str) -> Token | None:
        """Who asks; Refused if they may not."""
        token = self.token_of(request)
        if scope == "read" and (self.is_open or (token is not None and token.may("read"))):
            return token
        if token is None:
            raise _nobody("Send Authorization: Bearer TOKEN, made by `afresh token new --scope act`.")
        if not token.may(scope):
            raise Refused(403, f"This token is not for that: its scope is {token.scope}.")
        return token

    def require_own_form(self, request: Request, form_key: str) -> Token:
        """Who sends a form of ours; Refused if it comes from elsewhere, or they may not act."""
        self.require_own_origin(request)
        session = self.session_of(request)
        if session is None:
            raise Refused(403, "Sign in first.", "A token with the scope act lets you in: afresh token new")
        if not secrets.compare_digest(session.form_key.encode(), form_key.encode("utf-8", "replace")):
            raise Refused(403, "This form is of another session.", "Load the page again.")
        token = self.tokens.find(session.presented)
        if token is None or not token.may("act"):
            raise Refused(403, "This token may only read.", "Make one with: afresh token new NAME --scope act")
        return token

    def require_own_origin(self, request: Request) -> None:
        """Refused if a browser says that a form comes from another site, or says nothing."""
        origin = request.headers.get("origin", "").lower()
        own = f"{request.url.scheme}://{request.headers.get('host', '')}".lower()
        if origin and origin not in (own, self.public_origin):
            raise Refused(403, "This form comes from another site.")
        if not origin and request.headers.get("sec-fetch-site") != "same-origin":
            raise Refused(403, "Nobody says where this form comes from.", "Programs use the API, with a token.")

    def session_of(self, request: Request) -> Session | None:
        """The session of a browser; None if it has none."""
        number = next((each for each in _cookies(request) if each in self._sessions), "")
        session = self._sessions.get(number)
        if session is None:
            return None
        now = time.monotonic()
        if now - session.used > SESSION_SECONDS:
            del self._sessions[number]
            return None
        session.used = now
        self._sessions.move_to_end(number)
        return session

    def sign_in(self, request: Request, presented: str) -> str:
        """Begin a session for a token; the cookie to set. Refused if there is no such token."""
        self.require_own_origin(request)
        token = self._known(presented)
        if not token.may("read"):
            raise Refused(403, "This token may only send signals.", "Make one with: afresh token new NAME --scope act")
        number = secrets.token_urlsafe(32)
        self._sessions[number] = Session(presented, used=time.monotonic())
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return self._set_cookie(number, SESSION_SECONDS)

    def sign_out(self, request: Request) -> str:
        """End a session; the cookie to set."""
        for number in _cookies(request):
            self._sessions.pop(number, None)
        return self._set_cookie("", 0)

    def _set_cookie(self, value: str, seconds: float) -> str:
        secure = "; Secure" if self.public_origin.startswith("https:") else ""
        return f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds:.0f}{secure}"

    def _known(self, presented: str) -> Token:
        token = self.tokens.find(presented)
        if token is None:
            if wait := self._tries.take("", 1.0, time.monotonic()):
                raise Refused(429, "Too many tokens that do not exist were tried.", Retry_After=str(wait))
            raise _nobody("`afresh token new NAME --scope act` makes one; `afresh token list` names them.")
        return token


def _nobody(hint: str) -> Refused:
    return Refused(401, "There is no such token, or none was sent.", hint, WWW_Authenticate="Bearer")


def _cookies(request: Request) -> list[str]:
    """The values of our cookie, whatever else is in the header: other programs on this machine set cookies for the same
    name, at whatever port, in forms of their own."""
    said = [each.strip().partition("=") for line in request.headers.getlist("cookie") for each in line.split(";")]
    return [value for name, _, value in said if name == COOKIE][:MAX_COOKIES]


def name_in(host: str) -> str:
    """The name or address in a Host header; "" if it makes no sense.

    >>> name_in("LocalHost:8600"), name_in("[::1]:8600"), name_in("[::1].evil"), name_in("a:b")
    ('localhost', '::1', '', '')
    """
    if host.startswith("["):
        name, closed, port = host[1:].partition("]")
        return name.lower() if closed and (not port or (port[0] == ":" and _is_port(port[1:]))) else ""
    name, colon, port = host.partition(":")
    return name.lower() if not colon or _is_port(port) else ""


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5


def is_address(name: str) -> bool:
    """Whether a name is an address in numbers, which nobody else can make point here."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen at."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


class Guarded:
    """The application behind the door: every answer carries what browsers have to be told."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, told)
