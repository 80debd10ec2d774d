"""Commands that steer what is kept, also while it runs: remove, pause, resume, refresh, and signal."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.checks import foreign_sender
from afresh.cli.handover import Handed, hand_over, said_of
from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import as_json, labelled, now
from afresh.errors import InputError
from afresh.store import LastingStore
from afresh.units import show_count

if TYPE_CHECKING:
    from afresh.store.messages import Pauses

MAX_COUNTED = 100_000  # pages of a tree
UrlFile = Annotated[Path | None, typer.Option("--file", "-f", help="A file of URLs, one a line; - for standard input.")]
OneHost = Annotated[str | None, typer.Option("--host", help="All pages of this host.")]
Urls = Annotated[list[str] | None, typer.Argument(help="Pages that are kept.")]


def remove(
    urls: Urls = None,
    host: OneHost = None,
    file: UrlFile = None,
    sitemap: Annotated[
        list[str] | None, typer.Option(help="Follow this sitemap no more; the pages that it named stay. Repeatable.")
    ] = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Forget pages, with their copies and their history; works while `afresh run` is running.

    A page that a crawl discovered may be found again: leave its host out with crawl.never, or its path with --exclude.
    With a folder that was added with --recursive, all that is in it goes.

    Example: afresh remove https://example.com/old
    """
    from afresh.cli.opening import open_store, settings
    from afresh.store.messages import TREES, of_definitions

    if host is None and not urls and file is None and not sitemap:
        raise InputError("There is nothing to remove.", hint="Give URLs, --host with a host, or --file with a file.")
    with open_store(settings(config, store), create=False) as kept:
        if sitemap:
            _leave(kept, sitemap, json)
        elif host is None:
            known = _known(kept, urls, file)
            trees = [url for url in known[0] if kept.get(TREES + url) is not None]
            if not trees:
                _for_pages(kept, "remove", known, "removed", json)
                return
            within = {state.page.url for url in trees for state in kept.states_under(url, MAX_COUNTED)} | set(known[0])
            hand_over(kept, of_definitions({TREES + url: None for url in trees}, now()))  # with all that is in them
            handed = _hand(kept, "remove", known[0])
            more = " and more" if len(within) >= MAX_COUNTED else ""
            facts = {"removed": len(within), "not_kept": len(known[1])}
            _tell(facts, f"{show_count(len(within), 'page')}{more} removed{_but(known[1])}.", handed, json)
        else:
            name, pages = _host(kept, host)
            handed = _hand(kept, "remove-host", [name])
            _tell({"removed": pages, "host": name}, f"{show_count(pages, 'page')} of {name} removed.", handed, json)


def _leave(kept: LastingStore, sitemaps: list[str], json: bool) -> None:
    """Follow some sitemaps no more."""
    from afresh.frontier import canonical
    from afresh.store.messages import FOLLOWED, of_definitions

    names = {FOLLOWED + canonical(url): None for url in sitemaps}
    for name in names:
        if kept.get(name) is None:
            url = name.removeprefix(FOLLOWED)
            raise InputError(f"{url[:200]} is not followed.", hint="Was it added with afresh add --sitemap?")
    handed = hand_over(kept, of_definitions(names, now()))
    _tell({"sitemaps": len(names)}, f"{show_count(len(names), 'sitemap')} followed no more.", handed, json)


def pause(
    urls: Urls = None,
    host: OneHost = None,
    file: UrlFile = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Stop crawling until `afresh resume`: these URLs, a host, or everything if nothing is named.

    Copies stay, and a running `afresh run` obeys within a second. Fetches under way are still stored.

    Example: afresh pause --host example.com
    """
    _pause_or_resume("pause", urls, host, file, config, store, json)


def resume(
    urls: Urls = None,
    host: OneHost = None,
    file: UrlFile = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Undo `afresh pause`: for these URLs, for a host, or for everything if nothing is named.

    Each kind undoes only itself: a page that was paused by its URL stays paused when everything is resumed.

    Example: afresh resume --host example.com
    """
    _pause_or_resume("resume", urls, host, file, config, store, json)


def _pause_or_resume(
    wish: str,
    urls: list[str] | None,
    host: str | None,
    file: Path | None,
    config: Path | None,
    store: str | None,
    json: bool,
) -> None:
    from afresh.cli.opening import open_store, settings

    done, undoes = f"{wish}d", wish == "resume"
    with open_store(settings(config, store), create=False) as kept:
        before = _pauses(kept)
        if urls or file is not None:
            known, strange = _known(kept, urls, file)
            were = sum(state.page.paused for state in map(kept.state, known) if state is not None)
            handed = _hand(kept, wish, known)
            facts = {done: len(known), "not_kept": len(strange)}
            sentence = f"{show_count(len(known), 'page')} {done}{_but(strange)}."
            if undoes and were < len(known):
                not_paused = len(known) - were
                facts |= {done: were, "not_paused": not_paused}
                was = f"{show_count(not_paused, 'page was', 'pages were')} not paused by URL"
                sentence = f"{show_count(were, 'page')} {done}, {was}{_but(strange)}."
            _tell(facts, sentence, handed, json)
        elif host is not None:
            name, pages = _host(kept, host)
            handed = _hand(kept, f"{wish}-host", [name])
            was_not = undoes and name not in before.hosts
            sentence = f"{name} was not paused." if was_not else f"{name} {done}: {show_count(pages, 'page')}."
            _tell({done: 0 if was_not else pages, "host": name}, sentence, handed, json)
        else:
            handed = _hand(kept, f"{wish}-all", [True])
            was_not = undoes and not before.everything
            sentence = "Nothing was paused." if was_not else f"Everything {done}."
            if was_not and (before.hosts or _still_paused(kept)):
                sentence = "Not everything was paused: each pause is undone as it was made."
            _tell({done: "nothing" if was_not else "everything"}, sentence, handed, json)
        if wish == "resume" and not json and (left := _still_paused(kept)):
            typer.echo(left)


def _pauses(kept: LastingStore) -> "Pauses":
    from afresh.store import understood
    from afresh.store.messages import PAUSED, Pauses

    return understood(PAUSED, lambda: Pauses.from_text(kept.get(PAUSED)))


def _still_paused(kept: LastingStore) -> str:
    from afresh.cli.steered import paused_pages

    pauses = _pauses(kept)
    left = ["everything"] if pauses.everything else []
    left += sorted(pauses.hosts)[:5] + (["…"] if len(pauses.hosts) > 5 else [])
    if alone := paused_pages(kept):
        left.append(f"{show_count(alone, 'page')} by URL")
    return labelled("Still paused:", f"{', '.join(left)}.", 14) if left else ""


def _paused_of(kept: LastingStore, urls: Iterable[str]) -> dict[str, str]:
    """Pages among these that are paused, each with what ends that."""
    pauses, ends = _pauses(kept), {}
    for url in urls:
        state = kept.state(url)
        if state is None:
            continue
        if pauses.everything:
            ends[url] = "afresh resume"
        elif state.page.host in pauses.hosts:
            ends[url] = f"afresh resume --host {state.page.host}"
        elif state.page.paused:
            ends[url] = f"afresh resume {url}"
    return ends


def refresh(
    urls: Urls = None,
    file: UrlFile = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Crawl pages now, ahead of all others, as soon as the budget and their hosts allow it.

    Without a running `afresh run`, the next one crawls them first when it starts.

    Example: afresh refresh https://example.com/news
    """
    from afresh.cli.opening import open_store, require_wanted, settings
    from afresh.frontier import host_of
    from afresh.frontier.host_patterns import HostPatterns

    if not urls and file is None:
        raise InputError("There is nothing to refresh.", hint="Give URLs, or --file with a file of URLs.")
    read = settings(config, store)
    with open_store(read, create=False) as kept:
        found, never = _known(kept, urls, file), HostPatterns(read.crawl.never)
        for url in found[0]:
            require_wanted(host_of(url), never)
        _for_pages(kept, "refresh", found, "to be crawled next", json)
        if not json and (paused := _paused_of(kept, found[0])):
            is_paused, goes = ("is", "It goes") if len(paused) == 1 else ("are", "They go")
            first = next(iter(paused.values()))
            many = f"{len(paused):,} of them {is_paused}" if len(found[0]) > 1 else "It is"
            typer.echo(labelled("", f"{many} paused. {goes} first once resumed: {first}", 0))


def signal(
    urls: Annotated[list[str] | None, typer.Argument(help="Pages that may have changed.")] = None,
    sender: Annotated[str, typer.Option(help="Who says so; afresh learns how reliable each sender is.")] = "manual",
    file: UrlFile = None,
    key: Annotated[
        str, typer.Option(help="A name for this signal: sent again with the same key, it counts once.")
    ] = "",
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Say that pages may have changed. afresh learns for each sender how often that is true.

    Example: afresh signal https://example.com/news --sender cms
    """
    from afresh.cli.opening import open_store, settings
    from afresh.store.messages import of_signals
    from afresh.types import Signal

    if not urls and file is None:
        raise InputError("There is nothing to signal.", hint="Give URLs, or --file with a file of URLs.")
    foreign_sender(sender)
    if len(key) > 100:
        raise InputError("The key is too long.", hint="Give up to 100 characters.")
    with open_store(settings(config, store), create=False) as kept:
        known, strange = _known(kept, urls, file)
        when = now()
        entries = of_signals((Signal(url, when, sender) for url in known), when, key and f"{sender} {key}")
        handed = hand_over(kept, entries)
        if not handed.new_entries:
            said = {"signals": 0, "not_kept": len(strange), "repeated": True}
            typer.echo(as_json(said) if json else "Nothing new: that key was heard before.")
            return
        facts = {"signals": len(known), "not_kept": len(strange)}
        _tell(facts, f"{show_count(len(known), 'signal')} heard{_but(strange)}.", handed, json)


def _for_pages(kept: LastingStore, kind: str, found: tuple[list[str], list[str]], done: str, json: bool) -> None:
    known, strange = found
    handed = _hand(kept, kind, known)
    facts = {done.replace(" ", "_"): len(known), "not_kept": len(strange)}
    _tell(facts, f"{show_count(len(known), 'page')} {done}{_but(strange)}.", handed, json)


def _but(strange: list[str]) -> str:
    return f", {len(strange):,} not kept" if strange else ""


def _known(kept: LastingStore, urls: list[str] | None, file: Path | None) -> tuple[list[str], list[str]]:
    """Addresses of pages that are kept, and the others; InputError if none is."""
    from afresh.cli.keys import kept_key
    from afresh.cli.pages import lines_of

    lines: Iterable[str] = [*(urls or []), *(line.split()[0] for _, line in (lines_of(file) if file else ()))]
    found = list(dict.fromkeys(kept_key(line, kept) for line in lines))
    known = [url for url in found if kept.state(url) is not None]
    strange = [url for url in found if kept.state(url) is None]
    if not known:
        first = strange[0] if strange else "nothing"
        more = (
            f", nor {'is' if len(strange) == 2 else 'are'} {show_count(len(strange) - 1, 'other')}"
            if len(strange) > 1
            else ""
        )
        raise InputError(f"{first} is not kept{more}.", hint="Check the address, or add it: afresh add URL")
    return known, strange


def _host(kept: LastingStore, host: str) -> tuple[str, int]:
    """A host as its pages name it, and how many it has."""
    name = host.strip().lower().removeprefix("http://").removeprefix("https://").rstrip("/")
    for known, pages, _ in kept.pages_by_host():
        if known == name:
            return name, pages
    raise InputError(f"There are no pages of the host {name}.", hint="`afresh hosts` lists those that are kept.")


def _hand(kept: LastingStore, kind: str, items: list[object] | list[str] | list[bool]) -> Handed:
    from afresh.store.messages import packed

    return hand_over(kept, packed(kind, items, now()))


def _tell(facts: Mapping[str, object], sentence: str, handed: Handed, json: bool) -> None:
    if json:
        typer.echo(as_json({**facts, "running": handed.running, "taken": handed.taken}))
    else:
        typer.echo(sentence + said_of(handed))
