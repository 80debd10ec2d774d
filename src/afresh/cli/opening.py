"""From the command line to settings and store: what every command needs, and light enough for the quick ones."""

from dataclasses import replace
from pathlib import Path

from afresh.config import Config, load
from afresh.store import Sqlite


def settings(config: Path | None, store: Path | None) -> Config:
    """The settings, with the store given on the command line in place of theirs."""
    read = load(config)
    return replace(read, store=replace(read.store, path=store)) if store else read


def open_store(config: Config, *, create: bool) -> Sqlite:
    """The store that the settings name."""
    return Sqlite(config.store.path, create=create, keep_crawls=config.store.history)
