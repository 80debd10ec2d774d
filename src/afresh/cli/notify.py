"""`afresh notify`: who is told of changes; try a rule, and have messages sent again that were given up."""

import asyncio
import time
from typing import Annotated

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, console, labelled, moment, plain
from afresh.errors import InputError
from afresh.units import show_count

commands = typer.Typer(
    help="Who is told of changes: the tables [[notify]] of the settings.\n\nExample: afresh notify test",
    no_args_is_help=True,
    rich_markup_mode=None,
)
RuleName = Annotated[str | None, typer.Argument(help="A rule, by its name; none: all.")]
LISTED = 20


@commands.command("test", short_help="Send a test message by each rule.")
def try_out(name: RuleName = None, config: ConfigFile = None, json: Json = False) -> None:
    """Send a test message by each rule, or by one, and say whether it arrived.

    Quiet hours and digests do not hold for tests. Exit code 2 if one did not arrive.

    Example: afresh notify test prices
    """
    from afresh.cli.notifying import channels_for, rules_for
    from afresh.cli.opening import settings
    from afresh.notify.channels.base import Undelivered
    from afresh.notify.channels.opening import shown
    from afresh.notify.message import Letter
    from afresh.notify.rules import identifier

    read = settings(config, None)
    rules = [rule for rule in rules_for(read) if name in (None, rule.name)]
    if not rules:
        _no_rule(name)

    async def send() -> dict[str, str]:
        problems, now = {}, time.time()
        for rule, channel in zip(rules, channels_for(read, rules).values(), strict=True):
            letter = Letter(identifier(rule.name, "test", repr(now)), rule.name, now, (), test=True)
            try:
                await channel.send(letter)
            except Undelivered as undelivered:
                problems[rule.name] = undelivered.problem
            await channel.close()
        return problems

    problems = asyncio.run(send())
    if json:
        told = [{"rule": each.name, "to": shown(each.to), "problem": problems.get(each.name)} for each in rules]
        typer.echo(as_json({"rules": told}))
    else:
        for each in rules:
            said = f"did not arrive: {problems[each.name]}" if each.name in problems else "delivered"
            console.print(labelled(plain(each.name, 40), f"{plain(shown(each.to))}: {plain(said)}", 13))
    if problems:
        raise typer.Exit(2)


@commands.command("list", short_help="What was delivered, waits, or was given up.")
def listed(name: RuleName = None, config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """How it stands with each rule; with a name, also the messages that wait or were given up.

    Example: afresh notify list prices
    """
    from dataclasses import asdict

    from afresh.cli.notifying import notified, notified_lines
    from afresh.cli.opening import open_store, settings
    from afresh.store.outbox import DEAD, WAITING, Outbox

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        found = [each for each in notified(kept, read) if name in (None, each["rule"])]
        states = (WAITING, DEAD) if name is not None else ()
        messages = [each for state in states for each in Outbox(kept).messages(name or "", state, LISTED)]
    if json:
        held = [{key: value for key, value in asdict(each).items() if key != "body"} for each in messages]
        typer.echo(as_json({"rules": found, "messages": held}))
        return
    if not found:
        console.print("Nobody was told of anything yet: rules begin with the next afresh run.")
    for line in notified_lines(found):
        console.print(line)
    for each in messages:
        what = "given up" if each.state == DEAD else f"due {moment(each.due)}"
        tried = f", {show_count(each.tries, 'try', 'tries')}: {each.problem}" if each.tries else ""
        console.print(labelled("", f"{each.id}: {what}{plain(tried)}", 13))


@commands.command("retry", short_help="Send messages again that were given up.")
def retry(name: RuleName = None, config: ConfigFile = None, store: StoreFile = None, json: Json = False) -> None:
    """Put messages that were given up back into the outbox of their rules, also while `afresh run` is running.

    Example: afresh notify retry prices
    """
    from afresh.cli.opening import open_store, settings
    from afresh.store.outbox import Outbox

    with open_store(settings(config, store), create=False) as kept:
        outbox = Outbox(kept)
        names = [each.name for each in outbox.all() if name in (None, each.name)]
        if name is not None and not names:
            _no_rule(name)
        count = sum(outbox.revive(each, time.time()) for each in names)
    typer.echo(as_json({"messages": count}) if json else f"{show_count(count, 'message')} to be sent again.")


@commands.command("forget", short_help="Drop what is left of a rule that is no more.")
def forget(
    name: Annotated[str, typer.Argument(help="A rule that is not in the settings any more.")],
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Drop the messages of a rule that is not in the settings any more, and what is known of it.

    Example: afresh notify forget prices
    """
    from afresh.cli.opening import open_store, settings
    from afresh.store.outbox import Outbox

    read = settings(config, store)
    if any(each.name == name for each in read.notify):
        raise InputError(f"The rule {name} is in the settings.", hint="Take its table [[notify]] out first.")
    with open_store(read, create=False) as kept:
        outbox = Outbox(kept)
        if all(each.name != name for each in outbox.all()):
            _no_rule(name)
        count = outbox.forget(name)
    typer.echo(as_json({"messages": count}) if json else f"{name} is forgotten, with {show_count(count, 'message')}.")


def _no_rule(name: str | None) -> None:
    if name is None:
        raise InputError("Nobody is to be told of anything.", hint="Write a table [[notify]]: see docs/notify.md.")
    raise InputError(f"There is no rule {name[:80]!r}.", hint="Its table [[notify]] has that name.")
