"""`afresh token`: who may send signals to a running crawl, or ask it things."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from afresh.cli.options import ConfigFile, Json
from afresh.cli.terminal import as_json, console, plain

commands = typer.Typer(
    help="Tokens for what others send to a running crawl.\n\nExample: afresh token new cms --scope signal",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="What to call it; also the sender, where a signal names none.")]


@commands.command("new", short_help="Make a token and print it, once.")
def new(
    name: Name,
    scope: Annotated[str, typer.Option(help="signal: send signals; read: look; act: both, and steer.")] = "signal",
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Make a token and print it. It is shown once: only its hash is kept.

    Example: afresh token new cms --scope signal
    """
    from afresh.config import load
    from afresh.serve.receive import tokens

    token = tokens.new(load(config).receive.tokens, name, scope)
    typer.echo(as_json({"name": name, "scope": scope, "token": token}) if json else token)


@commands.command("list", short_help="The names of all tokens.")
def list_tokens(config: ConfigFile = None, json: Json = False) -> None:
    """List the tokens: name, scope, when each was made.

    Example: afresh token list
    """
    from afresh.config import load
    from afresh.serve.receive import tokens

    found = tokens.listed(load(config).receive.tokens)
    for token in found:
        made = datetime.fromtimestamp(token.created, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        if json:
            typer.echo(as_json({"name": token.name, "scope": token.scope, "created": made}))
        else:
            console.print(f"{plain(token.name, 40):40} {token.scope:8} {made}")
    if not found and not json:
        console.print("There are no tokens. `afresh token new NAME` makes one.")


@commands.command("revoke", short_help="Make a token useless.")
def revoke(name: Name, config: ConfigFile = None) -> None:
    """Make a token useless, within a second also for a running crawl.

    Example: afresh token revoke cms
    """
    from afresh.config import load
    from afresh.serve.receive import tokens

    tokens.revoke(load(config).receive.tokens, name)
    typer.echo(f"The token {name} is revoked.")
