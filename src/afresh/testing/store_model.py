"""What a store must hold, said as plainly as possible: the oracle beside which stores are tried."""

import random
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace

from afresh.store.base import MAX_ALIKE, Failing, PageState, Record, Store, Totals
from afresh.types import CHANGES, Beliefs, Copy, Crawl, HostState, Outcome, Page, Validators


def require(holds: bool, sentence: str) -> None:
    """An assertion that stays when Python runs optimised."""
    if not holds:
        raise AssertionError(sentence)


def require_same(what: str, shown: object, expected: object) -> None:
    """Require that a store shows what is expected."""
    require(shown == expected, f"{what} gave\n  {shown!r}\nand should have given\n  {expected!r}")


@dataclass
class StoreModel:
    """Dictionaries that take what a store takes, and say what it must show."""

    keep_crawls: int
    states: dict[str, PageState] = field(default_factory=dict)
    copies: dict[str, Copy] = field(default_factory=dict)
    crawls: dict[str, list[Crawl]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, Crawl]]] = field(default_factory=dict)  # what is kept of them, and which each is
    hosts: dict[str, HostState] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    written: list[Crawl] = field(default_factory=list)  # every crawl, in the order of writing

    def add(self, pages: list[Page]) -> int:
        """Take in the pages that are new."""
        before = len(self.states)
        for page in pages:
            self.states.setdefault(page.url, PageState(page))
        return len(self.states) - before

    def write(self, records: list[Record]) -> None:
        """Take in finished crawls of pages that are there."""
        for record in records:
            url = record.state.page.url
            if record.copy:
                self.copies[url] = record.copy
            if record.crawl:
                self.crawls.setdefault(url, []).append(record.crawl)
                self.written.append(record.crawl)
                kept = [*self.history.get(url, []), (len(self.written), record.crawl)]
                run = {(crawl.outcome, crawl.reason) for _, crawl in kept[-MAX_ALIKE - 1 :]}
                if not record.crawl.outcome.refreshed and len(kept) > MAX_ALIKE and len(run) == 1:
                    del kept[-MAX_ALIKE]
                self.history[url] = kept[-self.keep_crawls :]
            if record.host:
                self.hosts[record.host.host] = record.host
            fetched = self.copies[url].fetched if url in self.copies else None
            self.states[url] = replace(record.state, page=self.states[url].page, fetched=fetched)

    def say(self, pages: list[Page]) -> None:
        """Set what an operator says of pages; where, when and how deep they are stays."""
        self.add(pages)
        for page in pages:
            state = self.states[page.url]
            told = state.page
            page = replace(page, host=told.host, added=told.added, depth=told.depth)
            self.states[page.url] = replace(state, page=page)

    def remove(self, urls: list[str]) -> None:
        """Forget pages that are there; their crawls stay counted."""
        for url in urls:
            for kept in (self.states, self.copies, self.crawls, self.history):
                kept.pop(url, None)

    def copy(self, url: str) -> Copy | None:
        """The current copy, confirmed when the page was."""
        kept, checked = self.copies.get(url), self.states[url].checked
        return replace(kept, checked=kept.fetched if checked is None else checked) if kept else None

    def changes(self) -> list[tuple[int, Crawl]]:
        """What is new, changed or gone, by its place among all crawls, as long as the bounded history holds it."""
        found = []
        for kept in self.history.values():
            outcomes = [None, *(crawl.outcome for _, crawl in kept)]
            for before, (nth, crawl) in zip(outcomes, kept, strict=False):
                if crawl.outcome in CHANGES and (before, crawl.outcome) != (Outcome.GONE, Outcome.GONE):
                    found.append((nth, crawl))
        return sorted(found, key=lambda each: each[0])

    def totals(self) -> Totals:
        """Counted one by one."""
        every = self.written
        changes = sum(crawl.outcome is Outcome.CHANGED for crawl in every)
        size = sum(len(copy.body) for copy in self.copies.values())
        return Totals(len(self.states), len(self.copies), len(every), changes, size)

    def put(self, name: str, value: str | None) -> None:
        """Set a named value, or forget it."""
        if value is None:
            self.named.pop(name, None)
        else:
            self.named[name] = value

    def compare(self, store: Store) -> None:
        """Require that a store shows exactly this."""
        shown = list(store.states())
        require_same("states()", [state for _, state in shown], list(self.states.values()))
        numbers = [number for number, _ in shown]
        require(numbers == sorted(set(numbers)) and min(numbers, default=1) >= 1, f"numbers must rise: {numbers}")
        for url, state in self.states.items():
            require_same(f"state({url!r})", store.state(url), state)
            require_same(f"copy({url!r})", store.copy(url), self.copy(url))
            newest = [crawl for _, crawl in self.history.get(url, [])[::-1]]
            require_same(f"history({url!r})", store.history(url, limit=self.keep_crawls + 1), newest)
            for prefix in (url[:-1], url):
                under = [self.states[each] for each in sorted(self.states) if each.startswith(prefix)]
                require_same(f"states_under({prefix!r})", store.states_under(prefix, 2), under[:2])
        changes = self.changes()
        require_same("changes()", store.changes(), changes)
        for at, (number, _) in enumerate(changes[:3]):
            require_same(f"changes(after={number})", store.changes(after=number, limit=2), changes[at + 1 : at + 3])
        counts = [
            (host, len(urls), sum(self.copy(url) is not None for url in urls))
            for host in sorted({state.page.host for state in self.states.values()})
            if (urls := [url for url, state in self.states.items() if state.page.host == host])
        ]
        require_same("pages_by_host()", list(store.pages_by_host()), counts)
        last = [
            (state.page.host, self.history[url][-1][1].outcome, self.history[url][-1][1].reason, self.copy(url) is None)
            for url, state in self.states.items()
            if state.failures and url in self.history
        ]
        alike = sorted(Counter(each[:3] for each in last).items())
        failing = [Failing(*each, pages, last.count((*each, True))) for each, pages in alike]
        require_same("failing()", store.failing(), failing)
        for name, host in self.hosts.items():
            require_same(f"host({name!r})", store.host(name), host)
        require_same("hosts()", {host.host: host for host in store.hosts()}, self.hosts)
        for name, value in self.named.items():
            require_same(f"get({name!r})", store.get(name), value)
        require_same("names('')", [name for name, _ in store.names("")], sorted(self.named))
        require_same("totals()", replace(store.totals(), stored_bytes=0, inbox_entries=0, inbox_bytes=0), self.totals())


def page(nth: int) -> Page:
    """A page to play with."""
    return Page(f"https://host{nth % 3}.example/{nth}", f"host{nth % 3}.example", added=float(nth))


def record(state: PageState, outcome: Outcome, time: float, body: bytes | None = None) -> Record:
    """What a crawl of a page in this state leaves behind; with a body if there is a new copy."""
    url, validators = state.page.url, state.validators
    if body is not None:
        validators = Validators(f'"{time}"', "", zlib.crc32(body))
    new = PageState(
        state.page,
        Beliefs(1.0, 1 / (1 + time), 0.5, 0.25, state.crawls),
        validators,
        state.fetched if body is None else time,
        time if outcome.refreshed else state.checked,
        crawls=state.crawls + 1,
        changes=state.changes + (outcome is Outcome.CHANGED),
        failures=0 if outcome.refreshed else state.failures + 1,
        learned=f"{time}".encode(),
        noise=f"clock {time}",
        cost_same=time / 8,
        cost_new=None if time % 2 else time,
    )
    failed = not outcome.refreshed
    host = HostState(state.page.host, time + 1, int(failed), "dns" * failed, time if failed else None, time, 1.0, 2.0)
    copy = (
        None
        if body is None
        else Copy(url, body, "text/html", time, time, validators, {":status": "200", "age": str(time)})
    )
    return Record(Crawl(url, time, outcome, size=len(body or b""), reason="dns" * failed), new, copy, host)


def random_record(model: StoreModel, rng: random.Random, time: float) -> Record:
    """A crawl of some page of the model's."""
    outcome = rng.choice(list(Outcome))
    body = rng.randbytes(rng.randrange(200)) if outcome in (Outcome.NEW, Outcome.CHANGED) else None
    return record(model.states[rng.choice(list(model.states))], outcome, time, body)
