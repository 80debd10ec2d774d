"""From the command line to settings and store: what every command needs, and light enough for the quick ones."""

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.config import Config, load
from afresh.errors import ConfigError, InputError, StoreError
from afresh.store import KeepVersions, LastingStore, Sqlite, Store
from afresh.store.base import EVERYTHING
from afresh.types import ADDRESSES, Address, Copy
from afresh.units import show_size

if TYPE_CHECKING:
    from afresh.detect import Rules


FOR_MESSAGES = 2  # versions of each page that are kept where somebody is told of changes, if nothing else is said


def settings(config: Path | None, store: str | None) -> Config:
    """The settings; a store from the command line replaces theirs."""
    read = load(config)
    site_rules(read)
    return replace(read, store=replace(read.store, path=named(store))) if store else read


def named(store: str) -> Path | Address:
    """A store as it is named on the command line: the address of a database, or a file."""
    return Address(store) if store.startswith(ADDRESSES) else Path(store)


def place_of(config: Config) -> Path:
    """Beside this name is the socket of who runs on the store that the settings name."""
    path = config.store.path
    if isinstance(path, Path):
        return path
    from afresh.store.postgres.address import place_of as place_of_address

    return place_of_address(path)


def file_of(config: Config, what: str) -> Path:
    """The file of the store; InputError if it has none, and `what` needs it."""
    path = config.store.path
    if isinstance(path, Path):
        return path
    raise InputError(f"{what} a store in a file, and this one is in {path}.", hint="PostgreSQL has tools of its own.")


def may_be_there(config: Config) -> bool:
    """Whether there may be a store: of a database only the server knows."""
    path = config.store.path
    return isinstance(path, Address) or path.exists()


def in_file(kept: LastingStore, what: str) -> Sqlite:
    """A store that is in a file; InputError if it is not, and `what` needs that."""
    if not isinstance(kept, Sqlite):
        raise InputError(
            f"{what} a store in a file, and this one is in PostgreSQL.", hint="PostgreSQL has tools of its own."
        )
    return kept


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


def open_store(config: Config, *, create: bool, **in_server: Any) -> LastingStore:
    """The store that the settings name; `in_server` are arguments for one in PostgreSQL."""
    made = _opened(config, create=create, **in_server)
    made.title_of = _title_of
    return made


def _title_of(copy: Copy) -> str:
    from afresh.reading.title import title_in

    return title_in(copy.body, copy.content_type)


def _opened(config: Config, *, create: bool, **in_server: Any) -> LastingStore:
    kept = config.store
    history, keep_versions = kept.history, versions_of(config)
    inbox, size = kept.max_inbox, kept.max_bytes
    if isinstance(kept.path, Path):
        return Sqlite(
            kept.path, create=create, keep_crawls=history, max_inbox=inbox, max_bytes=size, keep_versions=keep_versions
        )
    try:
        from afresh.store.postgres import Postgres
    except ImportError:
        raise ConfigError(
            "A store in PostgreSQL needs a library that is not installed.", hint="pip install 'afresh[cluster]'"
        ) from None
    return Postgres(
        kept.path,
        create=create,
        keep_crawls=history,
        max_inbox=inbox,
        max_bytes=size,
        keep_versions=keep_versions,
        **in_server,
    )


def versions_of(config: Config) -> KeepVersions:
    """How many earlier versions of pages the settings want; those who are told of changes need the one before."""
    count = config.store.versions or (FOR_MESSAGES if config.notify else 0)
    return KeepVersions(count, config.store.versions_age, config.store.versions_bytes)


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
