"""WebSub, as a subscriber: hubs are asked to push what is new, and what comes is checked.

Polling goes on, spaced by the last push: a hub that falls silent loses us nothing but time. Without an address under
which hubs can reach us nothing is asked of anybody.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import inf
from secrets import token_hex, token_urlsafe
from typing import Any
from urllib.parse import urlencode

from afresh.fetch import Fetcher
from afresh.frontier import canonical_or_none, host_of
from afresh.signals.websub import DEFAULT_LEASE, LONGEST_LEASE, Intent, is_signed
from afresh.sources.base import Runner
from afresh.sources.web.digest import SLACK, Look, look
from afresh.sources.web.lists import Hub, Lists
from afresh.types import Signal

SENDER = "websub"
KEPT = "websub "  # before an identifier: under this name the store holds a subscription
PATH = "/websub/"
MAX_TOPICS = 10_000
MAX_OF_HOST = 20
RENEW_AT = 0.8  # of a lease
VERIFY_SECONDS = 600.0  # that a hub has to ask back
FIRST_RETRY, LONGEST_RETRY = 60.0, 86_400.0
LOOK_SECONDS = 1.0
POSTS = 2  # in one look
_METHODS = ("sha1", "sha256", "sha384", "sha512")  # the weakest first

_log = logging.getLogger("afresh.websub")


@dataclass(slots=True)
class Subscription:
    """What is known of one topic."""

    name: str  # the last part of the callback: nobody can guess it
    host: str  # whose page or list it is about
    where: str  # that list or page
    topic: str
    hub: str
    secret: str
    callback: str = ""  # as the hub was told
    asked: str = ""  # what was asked of the hub and it has not asked back yet: subscribe, unsubscribe
    until: float = -inf  # the end of the lease
    next_try: float = -inf
    failures: int = 0
    method: str = ""  # the strongest that the hub has signed with: from then on nothing weaker counts
    pushed: float = -inf

    def is_active(self, now: float) -> bool:
        """Whether the hub has agreed to push, as far as we know."""
        return now < self.until


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came, checked: signals to be stored before it is acknowledged."""

    signals: tuple[Signal, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Subscriptions:
    """Asks hubs, answers what they ask back, and reads what they push.

    Invariant: nothing that comes without a valid signature has any effect; nothing is answered to a question about a
    subscription that was not asked for.
    """

    lists: Lists
    runner: Runner
    fetcher: Fetcher
    public_url: str
    never: Container[str] = ()
    recall: Callable[[str], str | None] = lambda name: None
    names: Callable[[str], list[tuple[str, int]]] = lambda prefix: []
    _by_name: dict[str, Subscription] = field(default_factory=dict)
    _by_topic: dict[tuple[str, str], Subscription] = field(default_factory=dict)  # hub and topic
    _of_host: dict[str, int] = field(default_factory=dict)
    _changed: dict[str, str | None] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Go on from what was kept before a restart."""
        latest = self.runner.clock() + LONGEST_LEASE
        for subscription in await asyncio.to_thread(self._recalled):
            if max(subscription.until, subscription.next_try) > latest:  # it was kept while a clock ran ahead
                subscription.until = subscription.next_try = -inf
            self._note(subscription)
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Let go; leases go on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def take(self) -> dict[str, str | None]:
        """What is to be kept since the last time."""
        changed, self._changed = self._changed, {}
        return changed

    def all(self) -> list[Subscription]:
        """Every subscription."""
        return list(self._by_name.values())

    def offered(self, hub: Hub) -> None:
        """A list or a page names its hubs: subscribe to the first that can be asked."""
        if not self.public_url or len(self._by_name) >= MAX_TOPICS or self._of_host.get(hub.host, 0) >= MAX_OF_HOST:
            return
        topic = canonical_or_none(hub.announced.itself, hub.at) if hub.announced.itself else hub.at
        for each in hub.announced.hubs:
            where = canonical_or_none(each, hub.at)
            if topic is None or where is None or host_of(where) in self.never:
                continue
            if (where, topic) not in self._by_topic:
                made = Subscription(token_urlsafe(24), hub.host, hub.topic, topic, where, token_hex(32))
                self._note(made)
                self._save(made)
            return

    def leave(self, subscription: Subscription) -> None:
        """Ask the hub to push no more."""
        subscription.asked, subscription.next_try = "unsubscribe", -inf
        self._save(subscription)

    def verify(self, name: str, intent: Intent) -> str | None:
        """What to answer a hub that asks whether it was really us; None: it was not."""
        subscription, now = self._by_name.get(name), self.runner.clock()
        if subscription is None or subscription.topic != intent.topic:
            return None
        if intent.mode == "denied":
            self._failed(subscription, now, longest=True)
            return ""
        if intent.mode != subscription.asked:
            return None
        if intent.mode == "unsubscribe":
            self._forget(subscription)
            return intent.challenge
        subscription.asked, subscription.failures = "", 0
        subscription.until, subscription.next_try = now + intent.lease, now + RENEW_AT * intent.lease
        self.lists.pushed(subscription.host, subscription.where, agreed=True)
        self._save(subscription)
        return intent.challenge

    async def deliver(self, name: str, body: bytes, signature: str) -> Delivery | None:
        """What a hub has pushed; None: nobody asked for it."""
        subscription, now = self._by_name.get(name), self.runner.clock()
        if subscription is None or not subscription.is_active(now):
            return None
        if not await asyncio.to_thread(is_signed, body, signature, subscription.secret):
            return Delivery(problem="The signature is not that of the hub.")
        method = signature.partition("=")[0].strip().lower()
        if subscription.method and _METHODS.index(method) < _METHODS.index(subscription.method):
            return Delivery(problem="The signature is weaker than those before.")
        known = self.lists.find(subscription.where)
        subscription.method, subscription.pushed = method, now
        self._save(subscription)
        if known is None:  # a page of its own
            news = [subscription.where] if self.runner.keeps(subscription.where) else []
            return Delivery(tuple(Signal(url, now, SENDER) for url in news))
        hosts = {subscription.host, host_of(known.url)}
        origins = tuple(f"{scheme}://{host}/" for host in hosts for scheme in ("http", "https"))
        said: Look = await asyncio.to_thread(
            look, known.kind, body, subscription.topic, lambda url: url.startswith(origins), known.roll, now
        )
        if not said.entries:
            return Delivery(problem=said.problem or "It names no page.")
        self.lists.found_by_push(known, list(said.pages))
        signals = tuple(
            Signal(url, min(now if when is None else when, now), SENDER)
            for url, when in said.pages.items()
            if self.runner.keeps(url) and (when is None or when <= now + SLACK)
        )
        self.lists.pushed(subscription.host, subscription.where, at=now)
        return Delivery(signals)

    async def _keep(self) -> None:
        """Subscribe, renew, and give up what nobody needs."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except Exception:
                _log.exception("subscriptions cannot be kept up")

    async def _look(self) -> None:
        now, posted = self.runner.clock(), 0
        for subscription in self.all():
            expired = subscription.until < now and subscription.until > -inf
            if expired:
                subscription.until = -inf
                self.lists.pushed(subscription.host, subscription.where, agreed=False)
                self._save(subscription)
            moved = bool(self.public_url) and subscription.callback not in ("", self._callback(subscription))
            if (now < subscription.next_try and not moved) or not self.public_url or posted >= POSTS:
                continue
            if not self._is_needed(subscription) and subscription.asked != "unsubscribe":
                if not subscription.is_active(now):
                    self._forget(subscription)
                    continue
                subscription.asked = "unsubscribe"
            posted += 1
            await self._ask(subscription, subscription.asked or "subscribe")

    def _is_needed(self, subscription: Subscription) -> bool:
        return self.lists.find(subscription.where) is not None or self.runner.keeps(subscription.where)

    def _callback(self, subscription: Subscription) -> str:
        return f"{self.public_url}{PATH}{subscription.name}"

    async def _ask(self, subscription: Subscription, mode: str) -> None:
        """Ask the hub for something, which it will ask back about."""
        subscription.asked, subscription.callback = mode, self._callback(subscription)
        said = {"hub.mode": mode, "hub.topic": subscription.topic, "hub.callback": subscription.callback}
        if mode == "subscribe":
            said |= {"hub.lease_seconds": f"{DEFAULT_LEASE:.0f}", "hub.secret": subscription.secret}
        # Kept before: the hub may ask back before it answers.
        subscription.next_try = self.runner.clock() + VERIFY_SECONDS
        self._save(subscription)
        fetched = await self.fetcher.post(subscription.hub, urlencode(said).encode())
        now = self.runner.clock()
        if subscription.asked and (fetched.reason or not 200 <= fetched.status < 300):
            _log.info("hub %s: %s", subscription.hub[:200], fetched.reason or f"status {fetched.status}")
            if mode == "unsubscribe" and subscription.failures >= 3:
                self._forget(subscription)
            else:
                self._failed(subscription, now)

    def _failed(self, subscription: Subscription, now: float, *, longest: bool = False) -> None:
        subscription.failures += 1
        wait = LONGEST_RETRY if longest else min(FIRST_RETRY * 2.0 ** min(subscription.failures - 1, 20), LONGEST_RETRY)
        subscription.next_try = now + wait
        if subscription.asked == "subscribe":
            subscription.asked = ""
        self._save(subscription)

    def _note(self, subscription: Subscription) -> None:
        self._by_name[subscription.name] = subscription
        self._by_topic[subscription.hub, subscription.topic] = subscription
        self._of_host[subscription.host] = self._of_host.get(subscription.host, 0) + 1

    def _forget(self, subscription: Subscription) -> None:
        if self._by_name.pop(subscription.name, None) is not None:
            self._by_topic.pop((subscription.hub, subscription.topic), None)
            self._of_host[subscription.host] = max(self._of_host.get(subscription.host, 1) - 1, 0)
            self.lists.pushed(subscription.host, subscription.where, agreed=False)
            self._changed[KEPT + subscription.name] = None

    def _save(self, subscription: Subscription) -> None:
        self._changed[KEPT + subscription.name] = json.dumps(asdict(subscription))

    def _recalled(self) -> list[Subscription]:
        found = []
        for name, _ in self.names(KEPT)[:MAX_TOPICS]:
            try:
                kept: Mapping[str, Any] = json.loads(self.recall(name) or "")
                fresh = Subscription("", "", "", "", "", "")
                found.append(Subscription(**{each: type(getattr(fresh, each))(kept[each]) for each in asdict(fresh)}))
            except (ValueError, TypeError, KeyError):
                self._changed[name] = None
        return found
