"""What the console tells, found where the commands find it: from the runner, the store and the settings."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from afresh.config import Config
from afresh.errors import InputError, NotYet, StoreError
from afresh.serve.console.facts import STARTS, LookBack
from afresh.store import LastingStore, PageState, Sqlite, understood
from afresh.store.figures import Figures, figures_kept
from afresh.store.listing import Wanted, fresh_probability
from afresh.store.messages import PAUSED, Pauses
from afresh.store.socket_file import ask

if TYPE_CHECKING:
    from afresh.detect.diff import Gap, Row

MAX_HOSTS = 100_000
SIBLINGS = 8
CRAWLS_A_CHANGE = 20  # that are looked through for the latest changes, where no index leads to them
Object = dict[str, Any]


class StoreFacts:
    """Facts for one thread, with connections of its own."""

    def __init__(self, settings: Callable[[], Config]) -> None:
        self._settings = settings
        self._kept: LastingStore | None = None

    @property
    def kept(self) -> LastingStore:
        """The store, opened when it is first needed."""
        from afresh.cli.opening import open_store

        if self._kept is None:
            self._kept = open_store(self._settings(), create=False)
        return self._kept

    def is_run(self) -> bool:
        """Whether a runner is there, who can be asked."""
        return self.kept.is_run()

    def collection(self) -> Object:
        """Of the collection as a whole."""
        from afresh.cli.collection import collection_facts

        when = time.time()
        return collection_facts(self.kept, self._settings(), when) | {"time": when}

    def pages(self, wanted: Wanted) -> Object:
        """A part of the list of pages, and where the next one begins."""
        listing = self.kept.listed(wanted)
        return {"pages": self._rows(listing.pages), "next": listing.after or None, "looked_at": listing.looked_at}

    def _rows(self, states: Sequence[PageState]) -> list[Object]:
        """Some pages in short, in every list of them the same."""
        urls, said = [state.page.url for state in states], None
        with suppress(InputError):  # together, very long addresses are too long for a question
            said = ask(self.kept.path, "fresh", {"urls": urls}) if urls else []
        fresh = said if isinstance(said, list) and len(said) == len(urls) else [None] * len(urls)
        when, pauses = time.time(), understood(PAUSED, lambda: Pauses.from_text(self.kept.get(PAUSED)))
        return [self._row(state, when, share, pauses) for state, share in zip(states, fresh, strict=True)]

    def _row(self, state: PageState, when: float, fresh: float | None, pauses: Pauses) -> Object:
        page = state.page
        crawls = self.kept.history(page.url, 1) if state.failures else []
        if fresh is None or state.gone is not None:
            fresh = fresh_probability(state, when)
        return {
            "url": page.url,
            "host": page.host,
            "checked": state.checked,
            "fetched": state.fetched,
            "fresh_probability": fresh if state.fetched is not None else None,
            "change_rate": None if state.beliefs is None else state.beliefs.change_rate,
            "crawls": state.crawls,
            "changes": state.changes,
            "failures": state.failures,
            "reason": crawls[0].reason if crawls else "",
            "gone": state.gone is not None,
            "gone_since": state.gone,
            "paused": page.paused or pauses.everything or page.host in pauses.hosts,
        }

    def _require_compiled(self) -> None:
        """NotYet while a runner compiles what the answer needs: it is not compiled here a second time."""
        from afresh.cli.collection import COMPILING

        if self.kept.get(COMPILING) is not None and self.kept.is_run():
            raise NotYet(STARTS, hint="It compiles for this machine, once, for a minute or two. Then this is told.")

    def page(self, url: str, history: int) -> Object | None:
        """One page; None if it is not kept."""
        self._require_compiled()
        from afresh.cli.page_facts import page_facts

        facts = page_facts(self.kept, self._settings(), self._key(url), time.time(), history)
        return None if facts is None else facts | {"siblings": self._siblings(facts["url"])}

    def _key(self, url: str) -> str:
        """The address of a page as it is kept; it may have been typed otherwise."""
        from afresh.frontier import canonical_or_none

        return url if self.kept.state(url) is not None else canonical_or_none(url) or url

    def _siblings(self, url: str) -> list[Object]:
        """Pages beside one, whose changes tell of its own: the first of its folder."""
        folder = url[: url.rindex("/") + 1]
        beside = [state for state in self.kept.states_under(folder, SIBLINGS + 1) if state.page.url != url]
        return self._rows(beside[:SIBLINGS])

    def hosts(self) -> list[Object]:
        """Every host, the most troubled first."""
        from afresh.cli.hosts import host_facts

        return list(islice(host_facts(self.kept, self._settings().crawl.never, time.time()), MAX_HOSTS))

    def senders(self) -> Object:
        """Who sends signals, and what they are worth."""
        from afresh.cli.senders import grade_facts, sender_facts

        return {"senders": sender_facts(self.kept), "grades": grade_facts(self.kept)}

    def kinds(self) -> Object:
        """Kinds of pages."""
        from afresh.cli.kinds import kind_facts

        return kind_facts(self.kept)

    def changes(self, after: int, limit: int) -> list[Object]:
        """What was found new, changed or gone, behind a number."""
        from afresh.cli.feeds import facts_of_changes

        return facts_of_changes(self.kept, self.kept.changes(after=after, limit=limit))

    def latest(self, limit: int) -> list[Object]:
        """The latest of these, the newest first."""
        return self.latest_of(lambda url: True, limit, None, limit).found

    def latest_of(self, has: Callable[[str], bool], limit: int, before: int | None, looked_at: int) -> LookBack:
        """The latest of these whose addresses match, among so many before a number (None: the newest)."""
        from afresh.cli.feeds import facts_of_changes

        kept = self.kept
        if isinstance(kept, Sqlite):
            found = kept.latest_changes(looked_at, *([] if before is None else [before]))
            last, is_all = found[-1][0] if found else 0, len(found) < looked_at
        else:
            end = kept.totals().crawls if before is None else before - 1
            last = max(end - CRAWLS_A_CHANGE * looked_at, 0) + 1
            behind = kept.changes(after=last - 1, limit=CRAWLS_A_CHANGE * looked_at)
            found = [each for each in behind[::-1] if before is None or each[0] < before]
            is_all = last == 1
        matching = [each for each in found if has(each[1].url)][:limit]
        when = None if is_all else found[-1][1].time if found else math.nan
        return LookBack(facts_of_changes(kept, matching), last, when)

    def last_number(self) -> int:
        """The highest that a crawl of this collection was ever given; its page may be removed since."""
        return self.kept.totals().crawls

    def versions(self, url: str) -> list[Object]:
        """The versions of a page that are kept, the newest first."""
        return [asdict(each) for each in self.kept.versions(self._key(url))]

    def difference(self, url: str, since: int | None, until: int | None) -> Object | None:
        """What changed between two versions, or at the last change; None if these are not kept."""
        from afresh.cli.diff import chosen
        from afresh.cli.opening import site_rules
        from afresh.detect import Detector
        from afresh.detect.diff import counted, inline
        from afresh.detect.texts import compared

        self._require_compiled()
        kept, url = self.kept, self._key(url)
        found = kept.versions(url)
        state = kept.state(url)
        if state is None or len(found) < 2:
            return None
        old, new = chosen(url, found, *(None if each is None else str(each) for each in (since, until)))
        before, after = kept.version(url, old.number), kept.version(url, new.number)
        if before is None or after is None:
            return None
        rows = compared(before, after, Detector(site_rules(self._settings())).rules_of(state.page.host))
        removed, added = counted(rows or [])
        shown = None if rows is None else _shown(rows, inline(rows))
        words = {"removed": removed, "added": added}
        return {"url": url, "from": asdict(old), "to": asdict(new), "words": words, "rows": shown}

    def text_of_change(self, change: Object) -> Object:
        """What a change was about: title, words, and the text of the blocks; None where that is not kept."""
        from afresh.cli.feeds import text_of_change
        from afresh.cli.opening import site_rules
        from afresh.detect import Detector

        self._require_compiled()
        try:
            state = self.kept.state(change["url"])
        except StoreError:  # its row is damaged: who follows the feed must get beyond it nevertheless
            return {"title": "", "words": None, "blocks": None}
        host = "" if state is None else state.page.host
        return text_of_change(self.kept, change, Detector(site_rules(self._settings())).rules_of(host))

    def plan(self, budgets: Sequence[float], goals: Sequence[float]) -> Object:
        """What budgets buy, and what goals cost."""
        from afresh.cli.plan import plan_facts

        self._require_compiled()
        return plan_facts(self.kept, self._settings(), list(budgets), list(goals))

    def settings(self) -> list[Object]:
        """All settings as they are in force."""
        from afresh.cli.settings_shown import settings_in

        return settings_in(self._settings())

    def identity(self) -> str:
        """A name that no other collection has, and that stays."""
        return self.kept.identity()

    def figures(self, since: float) -> list[Figures]:
        """How it was, the oldest first."""
        if isinstance(self.kept, Sqlite):  # a light client is enough
            return figures_kept(self.kept, since)
        from afresh.cli.cluster_facts import figures_of_all

        return figures_of_all(self.kept, since)

    def counts(self) -> Object | None:
        """What the runner has counted since it began; None if none runs."""
        said = ask(self.kept.path, "counts")
        return said if isinstance(said, dict) else None

    def wish(self, kind: str, said: Object) -> Object:
        """Hand a wish over; what became of it."""
        from afresh.cli.wishing import wish

        if not self.kept.is_run():
            raise InputError(
                "Nothing runs on this store: the console only reads.", hint="Start afresh run --console instead."
            )
        return wish(self.kept, self._settings(), kind, said)

    def close(self) -> None:
        """Let go of the store."""
        if self._kept is not None:
            self._kept.close()


def _shown(rows: "Sequence[Row]", parts: "Sequence[Row | Gap]") -> list[Object]:
    """Rows and gaps for programs; a single row that is left out between others is shown: a gap takes as much room."""
    from afresh.cli.diff import as_row
    from afresh.detect.diff import Gap

    shown, at = list[Object](), 0
    for each in parts:
        if isinstance(each, Gap) and (each.rows > 1 or len(parts) == 1):
            shown.append({"kind": "gap", "rows": each.rows})
            at += each.rows
        else:
            shown.append(as_row(rows[at]))
            at += 1
    return shown


def require_web(url: str) -> tuple[str, str]:
    """(address, host) of a page of the web; InputError if it is something else: who is elsewhere cannot have files or
    databases of this machine read."""
    from afresh.frontier import canonical, host_of

    if not url.strip().lower().startswith(("http://", "https://")):
        raise InputError(f"{url[:200]} is no web address.", hint="Write it like https://example.com/")
    address = canonical(url.strip())
    return address, host_of(address)
