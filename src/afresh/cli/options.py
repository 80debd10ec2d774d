"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Settings file; default ./afresh.toml if it is there.", show_default=False),
]
StoreFile = Annotated[
    str | None,
    typer.Option("--store", "-s", help="Store file, or postgresql://…; overrides the settings.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
LogTarget = Annotated[
    str | None,
    typer.Option(
        "--log",
        help="Write a line for every event to this file (opened again at SIGHUP); - for standard output.",
        show_default=False,
    ),
]
LogFormat = Annotated[str, typer.Option("--log-format", help="plain or json.")]
Console = Annotated[
    str | None,
    typer.Option(
        help="Show it in the browser at this address and port, such as 127.0.0.1:8600; overrides the settings.",
        show_default=False,
    ),
]
Receive = Annotated[
    str | None,
    typer.Option(
        help="Receive signals at this address and port, such as 127.0.0.1:8090; overrides the settings.",
        show_default=False,
    ),
]
