"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Settings file; default ./afresh.toml if it is there.", show_default=False),
]
StoreFile = Annotated[
    Path | None, typer.Option("--store", "-s", help="Store file; overrides the settings.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
