"""Delivers messages beside a running crawl, in a thread with an event loop of its own.

What a receiver does, or does not do, holds up its own rule alone: the crawl never waits for it.
"""

import asyncio
import json
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from afresh.errors import AfreshError
from afresh.notify.channels.base import Channel, Undelivered
from afresh.notify.gather import Gatherer
from afresh.notify.message import Item, Letter
from afresh.notify.rules import Rule, identifier
from afresh.store.outbox import GATHERED, WAITING, Message

FIRST_RETRY, LONGEST_RETRY = 10.0, 3_600.0  # seconds after a failure; they double in between
MAX_REFUSALS = 5  # tries of a message that the receiver has answered and does not want
MAX_TRIES = 104  # of one that nobody takes: with the pauses between them, three days
DELIVERED_AT_ONCE = 50  # messages that were delivered leave the outbox together,
DELIVERED_SECONDS = 0.5  # or after this long
DIGEST = 500  # changes of one digest; more make several
LOOK_SECONDS = 1.0  # between two looks, where nobody calls
REST = 3.0  # times as long as reading changes took it rests: reading takes a quarter of a core at most
LAST_SECONDS = 5.0  # for what is due when the crawl ends
UNREADABLE = "it is damaged in the store"

_log = logging.getLogger("afresh.notify")


class Courier:
    """Reads changes into the outbox, and carries its messages away.

    Invariant: what was delivered may be delivered again after a kill, with the same identifier; nothing that was not
    delivered leaves the outbox, but messages that were given up, which are kept as such.
    """

    def __init__(
        self,
        gatherer: Gatherer,
        channels: Callable[[], Mapping[str, Channel]],
        *,
        clock: Callable[[], float] = time.time,
        first_retry: float = FIRST_RETRY,
        rng: random.Random | None = None,
    ) -> None:
        self.gatherer, self.outbox, self.rules = gatherer, gatherer.outbox, gatherer.rules
        self.channels = channels  # made in the thread, whose loop their connections belong to
        self.clock = clock
        self.first_retry = first_retry
        self.rng = rng or random.Random()  # noqa: S311 - spreads retries, and is no secret
        self._thread = threading.Thread(target=self._work, name="afresh-notify", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._called: list[asyncio.Event] = []
        self._ending = False

    def start(self) -> None:
        """Begin; a rule that is new begins with the changes from now on."""
        self.gatherer.begin()
        now = self.clock()
        for rule in self.rules:  # a clock that ran ahead, or settings of before, may have put things off for too long
            self.outbox.bring_forward(rule.name, GATHERED, rule.due(now), beyond=rule.due(now))
            loud = now if rule.quiet is None else rule.quiet.closes(now)
            self.outbox.bring_forward(rule.name, WAITING, loud, beyond=loud + LONGEST_RETRY)
        self._thread.start()
        self._ready.wait()

    def wake(self) -> None:
        """Something changed; any thread may call."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it is over
                loop.call_soon_threadsafe(self._call)

    def stop(self, seconds: float = LAST_SECONDS) -> None:
        """End, once what is due was tried, or after this long; what is left stays in the outbox."""
        self._ending = True
        if self._thread.ident is None:  # it never began
            return
        self.wake()
        self._thread.join(seconds)
        loop = self._loop
        if self._thread.is_alive() and loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._cancel)
            self._thread.join(seconds)

    def _call(self) -> None:
        for event in self._called:
            event.set()

    def _cancel(self) -> None:
        for task in asyncio.all_tasks():
            task.cancel()

    def _work(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        channels = self.channels()
        self._called = [asyncio.Event() for _ in range(len(self.rules) + 1)]
        self._ready.set()
        read = asyncio.Event()  # all changes of before the end are in the outbox
        first, *others = self._called
        deliveries = [
            self._deliver(rule, channels[rule.name], event, read)
            for rule, event in zip(self.rules, others, strict=True)
        ]
        try:
            await asyncio.gather(self._gather(first, read), *deliveries)
        finally:
            for channel in channels.values():
                await channel.close()

    async def _gather(self, called: asyncio.Event, read: asyncio.Event) -> None:
        """Read changes into the outbox until the end, and once more then."""
        while True:
            ending = self._ending
            found = 0
            try:
                found = await asyncio.to_thread(self.gatherer.step)
            except AfreshError as error:
                if ending:
                    return
                _log.warning("Changes cannot be read for those who are told of them: %s", error.message)
            except Exception:
                _log.exception("Changes cannot be read for those who are told of them")
            if found:
                self._call()
                await asyncio.sleep(0.0 if ending else REST * self.gatherer.took)
            elif ending:
                read.set()
                self._call()
                return
            else:
                await self._called_soon(called)

    @staticmethod
    async def _called_soon(called: asyncio.Event, seconds: float = LOOK_SECONDS) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await called.wait()
        called.clear()

    async def _deliver(self, rule: Rule, channel: Channel, called: asyncio.Event, read: asyncio.Event) -> None:
        """Carry the messages of one rule away, one after the other, until the end."""
        while True:
            more, ending = False, read.is_set()
            try:
                await asyncio.to_thread(self.make_digest, rule)
                more = await self.deliver_some(rule, channel)
            except AfreshError as error:
                if ending:
                    return
                _log.warning("Messages of the rule %s cannot be read or noted: %s", rule.name, error.message)
            except Exception:
                _log.exception("Messages of the rule %s cannot be carried", rule.name)
            if ending and not more:
                return
            if not more:
                await self._called_soon(called)

    def make_digest(self, rule: Rule) -> bool:
        """Make one message of what was gathered, if its time has come; whether there was any.

        A rule that has no digest any more may still have parts of one.
        """
        now = self.clock()
        parts = self.outbox.messages(rule.name, GATHERED, 1)
        if not parts or parts[0].due > now:
            return False
        found = [part for part in self.outbox.messages(rule.name, GATHERED, DIGEST) if part.due <= now]
        parts = [part for part in found if readable(part)]
        for part in found:
            if part not in parts:
                self._give_up(part, UNREADABLE)
        if not parts:
            return False
        name = identifier(rule.name, "digest", parts[0].id, parts[-1].id, len(parts))
        body = json.dumps([json.loads(part.body) for part in parts])
        self.outbox.join(parts, Message(rule.name, name, now, now, body))
        return True

    async def deliver_some(self, rule: Rule, channel: Channel) -> bool:
        """Deliver what is due; whether there may be more."""
        messages = await asyncio.to_thread(self.outbox.messages, rule.name, limit=DELIVERED_AT_ONCE)
        done: list[Message] = []
        noted = time.monotonic()
        try:
            for message in messages:
                if message.due > self.clock():
                    return False
                if not readable(message):
                    await asyncio.to_thread(self._give_up, message, UNREADABLE)
                    continue
                try:
                    await channel.send(letter_of(message))
                except Undelivered as undelivered:
                    problem = undelivered
                except Exception as error:  # a fault of ours, which must not end the others
                    _log.exception("A message of the rule %s cannot be sent", rule.name)
                    problem = Undelivered(f"fault: {type(error).__name__}")
                else:
                    done.append(message)
                    if time.monotonic() - noted > DELIVERED_SECONDS:
                        await self._note(rule, done)
                        noted = time.monotonic()
                    continue
                await self._note(rule, done)
                await self._put_off(rule, message, problem)
                return False
        finally:
            await self._note(rule, done)
        return len(messages) == DELIVERED_AT_ONCE

    async def _note(self, rule: Rule, done: list[Message]) -> None:
        if done:
            delivered = list(done)
            done.clear()
            await asyncio.to_thread(self.outbox.delivered, delivered, self.clock())

    async def _put_off(self, rule: Rule, message: Message, undelivered: Undelivered) -> None:
        """A message did not arrive: when to try it again, if at all. Those behind it wait as well."""
        now, tries = self.clock(), message.tries + 1
        pause = min(self.first_retry * 2.0 ** min(message.tries, 20), LONGEST_RETRY) * self.rng.uniform(0.5, 1.0)
        if undelivered.retry_after is not None:
            pause = min(max(pause, undelivered.retry_after), LONGEST_RETRY)
        problem = undelivered.problem[:300]
        if tries >= (MAX_REFUSALS if undelivered.refused else MAX_TRIES):
            await asyncio.to_thread(self._give_up, message, problem)
            return
        if not message.tries:
            _log.warning("A message of the rule %s did not arrive: %s. It is tried again.", rule.name, problem)
        await asyncio.to_thread(self.outbox.failed, message, problem, now=now, due=now + pause)

    def _give_up(self, message: Message, problem: str) -> None:
        _log.warning("A message of the rule %s did not arrive: %s. It is given up.", message.rule, problem)
        self.outbox.failed(message, problem, now=self.clock(), due=None)


def readable(message: Message) -> bool:
    """Whether a message is as it was written: one that the store has lost must not hold up those behind it."""
    try:
        letter_of(message)
    except (ValueError, TypeError, LookupError, AttributeError):
        return False
    return True


def letter_of(message: Message) -> Letter:
    """The message of the outbox as channels take it."""
    said = json.loads(message.body)
    facts: Sequence[Mapping[str, object]] = said if isinstance(said, list) else [said]
    return Letter(message.id, message.rule, message.made, [Item.recalled(each) for each in facts])
