"""Wishes that come in through the console: the same as those of the commands, for pages of the web alone."""

import time
from typing import Any

from afresh.cli.handover import hand_over
from afresh.cli.opening import require_room, require_wanted
from afresh.config import Config
from afresh.errors import InputError
from afresh.store import Entry, LastingStore
from afresh.store.messages import of_pages, packed
from afresh.types import Page

Object = dict[str, Any]


def wish(kept: LastingStore, config: Config, kind: str, said: Object) -> Object:
    """Hand a wish over; what became of it. InputError if it cannot be carried out."""
    entries, facts = _adding(kept, config, said) if kind == "add" else _steering(kept, config, kind, said)
    handed = hand_over(kept, entries)
    return facts | {"taken": handed.taken, "running": handed.running}


def _adding(kept: LastingStore, config: Config, said: Object) -> tuple[list[Entry], Object]:
    from afresh.cli.looking import require_web
    from afresh.cli.pages import wishes_in
    from afresh.frontier import HostPatterns

    wanted = wishes_in(*(said.get(name) or None for name in ("importance", "shortest", "longest", "hours")))
    never, pages = HostPatterns(config.crawl.never), {}
    for text in said["urls"]:
        url, host = require_web(text)
        require_wanted(host, never)
        pages[url] = Page(url, host, added=time.time(), **wanted)
    new = sum(kept.state(url) is None for url in pages)
    if new:
        require_room(kept)
    return of_pages(pages.values(), time.time()), {"new": new, "known": len(pages) - new}


def _steering(kept: LastingStore, config: Config, kind: str, said: Object) -> tuple[list[Entry], Object]:
    from afresh.frontier import HostPatterns, canonical_or_none, host_of

    if "host" in said:
        host = said["host"].strip().lower()
        if next(iter(kept.states_of_host(host)), None) is None:
            raise InputError(f"There are no pages of the host {host[:200]}.", hint="See /api/v1/hosts.")
        return packed(f"{kind}-host", [host], time.time()), {"host": host}
    known: list[str] = []
    strange: list[str] = []
    for text in said["urls"]:
        url = text if kept.state(text) is not None else canonical_or_none(text)
        is_kept = url is not None and kept.state(url) is not None
        (known if is_kept else strange).append(url or text)
    if not known:
        raise InputError(f"{strange[0][:300]} is not kept.", hint="Check the address, or add it.")
    if kind == "refresh":
        never = HostPatterns(config.crawl.never)
        for url in known:
            require_wanted(host_of(url), never)
    return packed(kind, known, time.time()), {"pages": len(known), "not_kept": len(strange)}
