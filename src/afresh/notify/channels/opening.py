"""From what a rule says of where messages go to the channel that carries them."""

import shlex
from urllib.parse import urlsplit

from afresh.errors import ConfigError
from afresh.fetch import Guard, Http, Limits
from afresh.notify.channels.base import DEADLINE, Channel
from afresh.notify.channels.command import Command
from afresh.notify.channels.mail import Mail, MailServer
from afresh.notify.channels.screen import Screen
from afresh.notify.channels.webhook import Webhook
from afresh.notify.channels.with_apprise import Apprise
from afresh.notify.rules import Rule

_HINT = 'Write "https://…", "mailto:me@example.com", "command:PROGRAM", "apprise:SCHEME://…", or "$NAME" for a webhook.'


def kind_of(to: str) -> str:
    """Which kind of channel is meant: webhook, mail, command, apprise or screen; ConfigError if none is.

    >>> kind_of("https://example.com/hook"), kind_of("$HOOK"), kind_of("mailto:me@example.com")
    ('webhook', 'webhook', 'mail')
    """
    if to.startswith(("$", "@")) and len(to) > 1:
        return "webhook"
    scheme, colon, rest = to.partition(":")
    if scheme in ("http", "https") and _is_address(to):
        return "webhook"
    if colon and scheme == "mailto" and "@" in rest and not set(rest) & set("\r\n,; ?<>"):
        return "mail"
    if colon and scheme == "command" and _words(rest):
        return "command"
    if colon and scheme == "apprise" and "://" in rest:
        return "apprise"
    if to == "screen:":
        return "screen"
    raise ConfigError(f"{shown(to)!r} is no place for messages.", hint=_HINT)


def shown(to: str) -> str:
    """Where messages go, without what may be secret in it: the path of a webhook, the address of a chat.

    >>> shown("https://me:x@hooks.example.com/T0/B1"), shown("apprise:tgram://token/chat"), shown("$HOOK")
    ('https://hooks.example.com/…', 'apprise:tgram://…', '$HOOK')
    """
    if to.startswith(("mailto:", "$", "@", "screen:")):
        return to[:200]
    if to.startswith("command:"):
        return f"command:{(_words(to.removeprefix('command:')) or ['?'])[0][:80]}"
    scheme, found, rest = to.partition("://")
    if not found:
        return to[:20]
    if not scheme.startswith("http"):
        return f"{scheme[:60]}://…"
    host = rest.partition("/")[0].rpartition("@")[2]
    return f"{scheme}://{host[:200]}/…"


def channel_for(rule: Rule, server: MailServer, agent: str = "afresh", seconds: float = DEADLINE) -> Channel:
    """The channel of a rule; its connections belong to the event loop that it is first used in."""
    kind, _, rest = kind_of(rule.to), *rule.to.partition(":")[1:]
    match kind:
        case "webhook":
            return Webhook(rule.to, rule.secret, fetcher_for(agent, seconds))
        case "mail":
            return Mail(rest, server, seconds)
        case "command":
            return Command(_words(rest), seconds)
        case "screen":
            return Screen()
    return Apprise(rest, seconds)


def fetcher_for(agent: str, seconds: float = DEADLINE) -> Http:
    """What posts to webhooks. Whoever wrote the rule chose the address, so it may be a private one, at any port."""
    limits = Limits(seconds=seconds, connect=min(seconds, 10.0), body=64 << 10, connections=16)
    return Http(user_agent=agent, limits=limits, guard=Guard(allow_private=True, ports=range(1, 65536)))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _is_address(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname) and url.isprintable() and " " not in url
    except ValueError:
        return False
