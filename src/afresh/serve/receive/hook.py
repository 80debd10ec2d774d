"""`POST /signal`: who has a token says which pages have changed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Sequence

from starlette.requests import Request
from starlette.responses import Response

from afresh.checks import foreign_sender
from afresh.errors import ConfigError, SignalError
from afresh.frontier import Resolver, host_of
from afresh.serve.receive.bodies import Refused, answer, body_of, inflated
from afresh.serve.receive.inlet import Inlet
from afresh.serve.receive.meter import Meter
from afresh.serve.receive.tokens import Token, Tokens
from afresh.signals.hooks import read_hook
from afresh.store import Entry
from afresh.store.messages import of_signals
from afresh.types import Signal

BURST_SECONDS = 10.0  # of the rate, that a sender may send at once
SLACK = 300.0  # seconds that a sender's clock may be ahead of ours
MAX_KEY = 100
PIECE = 500  # addresses that are looked up between two chances for others
_BASE = "http://nowhere.invalid/"  # an address must be whole; the base only keeps a faster parser


class Hooks:
    """Takes what senders post."""

    def __init__(
        self,
        tokens: Tokens,
        inlet: Inlet,
        *,
        max_body: int,
        rate: float,
        never: Container[str],
        keeps: Callable[[str], bool],
        clock: Callable[[], float],
    ) -> None:
        self.keeps = keeps  # asked on the event loop alone
        self.tokens, self.inlet, self.max_body, self.never, self.clock = tokens, inlet, max_body, never, clock
        self._meter = Meter(rate=rate, burst=max(rate * BURST_SECONDS, 1.0))

    async def post(self, request: Request) -> Response:
        """Take one delivery: 202 once all of it is stored."""
        token = allowed(self.tokens, request, "signal")
        key = request.headers.get("idempotency-key", "")
        if len(key) > MAX_KEY or not key.isprintable():
            raise Refused(
                400, "The Idempotency-Key is too long, or cannot be printed.", f"Use up to {MAX_KEY} characters."
            )
        body = await body_of(request, self.max_body)
        kind, coding = request.headers.get("content-type", ""), request.headers.get("content-encoding", "")
        sender = request.query_params.get("sender", "")
        (urls, left_out), is_new = await self.inlet.take_once(
            lambda: self._read(token, inflated(body, coding, self.max_body), kind, sender, key)
        )
        strange = 0
        for first in range(0, len(urls), PIECE):
            strange += sum(not self.keeps(url) for url in urls[first : first + PIECE])
            await asyncio.sleep(0)
        facts: dict[str, object] = {"signals": len(urls) - strange}
        more = {"not_kept": strange, "left_out": left_out, "repeated": not is_new}
        return answer(202, facts | {name: value for name, value in more.items() if value})

    def _read(
        self, token: Token, body: bytes, kind: str, sender: str, key: str
    ) -> tuple[Sequence[Entry], tuple[list[str], dict[str, int]]]:
        """In a thread: the entries for the inbox; the pages, and how many addresses are left out, by reason."""
        now = self.clock()
        try:
            hook = read_hook(body, kind)
            sender = sender or token.name
            signals: list[Signal] = []
            left_out: Counter[str] = Counter()
            resolve = Resolver(_BASE)
            seen: set[tuple[str, str]] = set()
            known: set[str] = set()  # names that may be used
            for said in hook.items:
                url, who = (
                    resolve(said.url) if said.url.startswith(("http://", "https://")) else None,
                    said.sender or sender,
                )
                if who not in known:
                    known.add(foreign_sender(who))
                if url is None:
                    left_out["not a web address that can be kept"] += 1
                elif host_of(url) in self.never:
                    left_out["never to be crawled"] += 1
                elif (url, who) in seen:
                    left_out["said twice"] += 1
                else:
                    seen.add((url, who))
                    when = now if said.time is None or said.time > now + SLACK else min(said.time, now)
                    signals.append(Signal(url, when, who))
        except (SignalError, ConfigError) as error:
            raise Refused(400, error.message, error.hint) from None
        if not signals:
            raise Refused(422, f"No address can be used: {next(iter(left_out))}.")
        if wait := self._meter.take(token.name, len(signals), now):
            raise Refused(429, "This token sends too much.", "Send less, or raise receive.rate.", Retry_After=str(wait))
        key = key or hook.key
        entries = of_signals(signals, now, f"hook {token.name} {key}" if key else "")
        return entries, ([each.url for each in signals], dict(left_out))


def allowed(tokens: Tokens, request: Request, scope: str) -> Token:
    """The token that a request carries; Refused if it has none that is good for this."""
    scheme, _, presented = request.headers.get("authorization", "").partition(" ")
    token = tokens.find(presented.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise Refused(
            401,
            "There is no such token." if scheme.lower() == "bearer" and presented.strip() else "No token was sent.",
            "Send Authorization: Bearer TOKEN, made by `afresh token new`.",
            WWW_Authenticate="Bearer",
        )
    if not token.may(scope):
        raise Refused(403, f"This token is not for that: its scope is {token.scope}.")
    return token
