"""From the command line to settings and store: what every command needs, and light enough for the quick ones."""

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.config import Config, load
from afresh.errors import ConfigError, InputError, StoreError
from afresh.store import KeepVersions, Sqlite, Store
from afresh.store.base import EVERYTHING
from afresh.units import show_size

if TYPE_CHECKING:
    from afresh.detect import Rules


def settings(config: Path | None, store: Path | None) -> Config:
    """The settings; a store from the command line replaces theirs."""
    read = load(config)
    site_rules(read)
    return replace(read, store=replace(read.store, path=store)) if store else read


def site_rules(config: Config) -> "dict[str, Rules]":
    """The sites' own rules for what counts as a change, by host; ConfigError if a selector cannot be used."""
    if not config.site:
        return {}
    from afresh.detect import Rules

    rules = {}
    for site in config.site:
        try:
            rules[site.host.lower()] = Rules(site.keep, site.drop, site.compare)
        except ValueError as error:
            hint = 'Write it like "main", ".price", "#news > li" or "a[rel=next]".'
            raise ConfigError(f"In the rules for {site.host}, {error}.", hint=hint) from None
    return rules


def open_store(config: Config, *, create: bool) -> Sqlite:
    """The store that the settings name."""
    kept = config.store
    return Sqlite(
        kept.path,
        create=create,
        keep_crawls=kept.history,
        max_inbox=kept.max_inbox,
        max_bytes=kept.max_bytes,
        keep_versions=versions_of(config),
    )


def versions_of(config: Config) -> KeepVersions:
    """How many earlier versions of pages the settings want."""
    return KeepVersions(config.store.versions, config.store.versions_age, config.store.versions_bytes)


def require_room(kept: Store) -> None:
    """StoreError if there is no room for new pages."""
    space = kept.space()
    if space.takes != EVERYTHING:
        raise StoreError(
            f"The store takes {space.takes}: {show_size(space.used)} of {show_size(space.bound)} are used.",
            hint="Raise store.max_bytes, or remove pages. Nothing was added.",
        )


def require_wanted(host: str, never: Container[str]) -> None:
    """InputError if the settings say never to crawl one of the hosts."""
    if host in never:
        raise InputError(
            f"{host} is never to be crawled: crawl.never names it.",
            hint="Leave it out, or take it out of the settings.",
        )
