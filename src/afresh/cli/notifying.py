"""From settings to those who are told of changes; and what is said of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from afresh import __version__
from afresh.cli.opening import site_rules
from afresh.cli.reasons import words
from afresh.cli.terminal import labelled, moment, plain
from afresh.config import Config, NotifySettings
from afresh.errors import ConfigError
from afresh.notify.channels.mail import MailServer
from afresh.notify.channels.opening import channel_for, kind_of, shown
from afresh.notify.rules import Rule
from afresh.units import show_count

if TYPE_CHECKING:
    from afresh.daemon import Daemon
    from afresh.notify import Courier
    from afresh.notify.channels.base import Channel
    from afresh.store import LastingStore
    from afresh.store.outbox import Outbox, Told


WATCHING = "watch-"  # begins the names of rules that `afresh watch` makes of its options


def rules_for(config: Config) -> list[Rule]:
    """The rules of the settings; ConfigError if one of them could never reach anybody."""
    rules = [_rule(each) for each in config.notify]
    for rule in rules:
        if kind_of(rule.to) == "mail" and not config.mail.server:
            raise ConfigError(
                f"The rule {rule.name} sends e-mail, and there is no mail server.",
                hint='Write server = "smtp://me@mail.example.com:587" below [mail].',
            )
    return rules


def _rule(each: NotifySettings) -> Rule:
    from afresh.frontier import HostPatterns
    from afresh.frontier.glob import Glob

    try:
        kind_of(each.to)
    except ConfigError as error:
        raise ConfigError(f"The rule {each.name}: {error.message}", hint=error.hint) from None
    return Rule(
        each.name,
        each.to,
        each.secret,
        HostPatterns(each.hosts) if each.hosts else None,
        tuple(Glob(pattern if pattern.endswith("$") else f"{pattern}$") for pattern in each.pages),
        frozenset(each.on),
        each.failures,
        each.appear,
        each.disappear,
        each.significance,
        each.quiet,
        each.digest,
    )


def channels_for(config: Config, rules: Iterable[Rule]) -> "dict[str, Channel]":
    """A channel for each rule."""
    mail = config.mail
    server = MailServer(mail.server, mail.password, mail.sender)
    return {rule.name: channel_for(rule, server, f"afresh/{__version__}") for rule in rules}


def courier_for(config: Config, kept: "LastingStore", clock: Callable[[], float] = time.time) -> "Courier | None":
    """Who tells of changes beside a run; None if nobody wants to hear of any."""
    rules = rules_for(config)
    if not rules:
        return None
    from afresh.detect import Detector
    from afresh.notify.courier import Courier
    from afresh.notify.gather import Gatherer

    counts = Detector(site_rules(config)).rules_of
    gatherer = Gatherer(kept, rules, counts=counts, clock=clock, words=words)
    return Courier(gatherer, lambda: channels_for(config, rules), clock=clock)


@asynccontextmanager
async def telling(courier: "Courier | None", daemon: "Daemon") -> AsyncIterator[None]:
    """Let a courier work beside a daemon, on its clock; it is woken by what is stored."""
    if courier is None:
        yield
        return
    beside(courier, daemon)
    await asyncio.to_thread(courier.start)
    try:
        yield
    finally:
        await asyncio.to_thread(courier.stop)


def beside(courier: "Courier", daemon: "Daemon") -> None:
    """Have a courier go by a daemon's clock, and woken by what it stores."""
    from afresh.daemon.events import Stored

    courier.clock = courier.gatherer.clock = daemon.clock
    daemon.listeners.append(lambda event: courier.wake() if isinstance(event, Stored) else None)


def facts_of(told: "Told", rules: dict[str, Rule], digest: float | None = None) -> dict[str, Any]:
    """How it stands with a rule whose next digest goes at a moment, for programs."""
    rule = rules.get(told.name)
    return {
        "rule": told.name,
        "to": None if rule is None else shown(rule.to),
        "delivered": told.delivered,
        "last_delivered": told.last,
        "waiting": told.waiting,
        "gathered": told.gathered,
        "next_digest": digest,
        "given_up": told.dead,
        "failures": told.failures,
        "failing_since": told.since,
        "problem": told.problem,
        "position": told.position,
    }


def notified(kept: "LastingStore", config: Config) -> list[dict[str, Any]]:
    """How it stands with all rules that the settings name, or whose messages are still there."""
    from afresh.store.outbox import Outbox

    rules = {rule.name: rule for rule in rules_for(config)}
    outbox = Outbox(kept)
    found = [facts_of(told, rules, _next_digest(outbox, told, rules.get(told.name))) for told in outbox.all()]
    counts = ("delivered", "waiting", "gathered", "given_up")
    return [each for each in found if each["to"] is not None or any(each[name] for name in counts)]


def _next_digest(outbox: "Outbox", told: "Told", rule: Rule | None) -> float | None:
    """When the next digest of a rule goes; None if it makes none."""
    if rule is None or rule.digest is None:
        return None
    from afresh.store.outbox import GATHERED

    gathered = outbox.messages(told.name, GATHERED) if told.gathered else []
    return gathered[0].due if gathered else rule.due(time.time())


def notified_lines(facts: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The same for people; in one line each where all is well."""
    for nth, each in enumerate(facts):
        said = [f"{each['rule']}: {show_count(each['delivered'], 'message')} delivered"]
        for name, word in (("waiting", "waiting"), ("gathered", "for the next digest"), ("given_up", "given up")):
            if each[name]:
                when = f", at {moment(each['next_digest'])}" if name == "gathered" and each["next_digest"] else ""
                said.append(f"{each[name]:,} {word}{when}")
        if each["to"] is None and not each["rule"].startswith(WATCHING):
            said.append("no rule of this name in the settings")
        yield labelled("telling" if not nth else "", ", ".join(said), 13)
        if each["failures"]:
            since = f"fails since {moment(each['failing_since'])}: {plain(each['problem'], 200)}"
            yield labelled("", since, 13)
