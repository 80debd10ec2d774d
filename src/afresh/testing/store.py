"""The battery for stores: every promise of `afresh.store.base.Store` that one process can see kept."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from afresh.errors import InboxFull, StoreError, StoreLocked
from afresh.store.base import (
    ENTRY_BYTES,
    MAX_ALIKE,
    MAX_ENTRY_BYTES,
    Entry,
    Heard,
    KeepVersions,
    PageState,
    Record,
    Store,
    Totals,
    Version,
)
from afresh.testing.store_model import StoreModel, page, random_record, record, require, require_same
from afresh.types import Beliefs, Copy, Crawl, HostState, Importance, Outcome, Page, Validators


def check_store(
    make: Callable[[], Store],
    again: Callable[[Store], Store] | None = None,
    *,
    keep_crawls: int = 5,
    seed: int = 0,
    steps: int = 100,
) -> None:
    """Put stores through everything that `Store` promises.

    `make` gives a new empty store that keeps `keep_crawls` crawls of a page; `again`, for stores that last, opens
    what a store has open a second time. `seed` and `steps` steer the random walk at the end.
    """
    for check in (_starts_empty, _adds_in_order, _keeps_what_add_said, _refuses_whole_batches, _streams, _posts):
        with make() as store:
            check(store)
    for bounded in (
        _bounds_history,
        _shortens_runs,
        _keeps_odd_values,
        _keeps_the_copy,
        _keeps_state_alone,
        _keeps_versions,
        _tells_what_is_gone,
        _says,
        _removes,
    ):
        with make() as store:
            bounded(store, StoreModel(keep_crawls))
    with make() as store:
        _walks(store, StoreModel(keep_crawls), random.Random(seed), steps)  # noqa: S311 - not a secret
    with make() as store:
        _bounds_its_inbox(store)
    _serves_threads(make)
    _closes(make)
    if again:
        _lasts(make, again, keep_crawls)


def _starts_empty(store: Store) -> None:
    StoreModel(1).compare(store)
    require_same("state of a strange page", store.state("https://nowhere.example/"), None)
    require_same("copy of a strange page", store.copy("https://nowhere.example/"), None)
    require_same("history of a strange page", store.history("https://nowhere.example/"), [])
    require_same("a strange name", store.get("nothing"), None)
    store.write([])
    store.put({})
    require_same("totals() of an empty store", store.totals(), Totals())


def _adds_in_order(store: Store) -> None:
    model, pages = StoreModel(1), [page(nth) for nth in (5, 3, 9, 3)]
    require_same("add()", store.add(iter(pages)), 3)
    require_same("add() of known pages and a new one", store.add([*pages, page(1)]), 1)
    model.add([*pages, page(1)])
    model.compare(store)
    shown = list(store.states())
    for at, (number, _) in enumerate(shown):
        require_same(f"states(after={number})", list(store.states(after=number)), shown[at + 1 :])


def _keeps_what_add_said(store: Store) -> None:
    told = replace(page(1), importance=Importance(2.5))
    store.add([told])
    store.add([page(1)])
    other = PageState(replace(page(1), host="other.example", added=99.0))
    store.write([record(other, Outcome.FAILED, 1.0)])
    state = store.state(told.url)
    require_same("the page of a state", state and state.page, told)
    require_same(
        "add() of a known page",
        store.add([replace(page(1), host="other.example", importance=Importance(4.0, times=True))]),
        0,
    )
    state = store.state(told.url)
    require_same(
        "the page after another importance", state and state.page, replace(told, importance=Importance(4.0, times=True))
    )


def _refuses_whole_batches(store: Store) -> None:
    model = StoreModel(1)
    for taker in (store, model):
        taker.add([page(1), page(2)])
    good = record(PageState(page(1)), Outcome.NEW, 1.0, b"body")
    strange = record(PageState(page(3)), Outcome.NEW, 1.0, b"body")
    try:
        store.write([good, strange])
        raise AssertionError("a crawl of a page that is not kept must be refused")
    except StoreError:
        model.compare(store)

    def breaks() -> Iterator[Record]:
        yield good
        raise RuntimeError("the source of the records broke")

    with suppress(RuntimeError):
        store.write(breaks())
    model.compare(store)
    # And the refusal has not spoilt the store.
    store.write([good])
    model.write([good])
    model.compare(store)


def _streams(store: Store) -> None:
    store.add([page(1), page(2)])
    urls = []
    for _, state in store.states():
        urls.append(state.page.url)
        # The consumer may write and add in between, and what comes meanwhile is seen.
        store.write([record(state, Outcome.NEW, 1.0, b"x")])
        if len(urls) == 2:
            store.add([page(3)])
    require_same("states() while pages are added", urls, [page(nth).url for nth in (1, 2, 3)])


def _bounds_history(store: Store, model: StoreModel) -> None:
    for taker in (store, model):
        taker.add([page(1), page(2)])
    for nth in range(2 * model.keep_crawls + 1):
        batch = [record(model.states[page(1).url], Outcome.CHANGED, float(nth), bytes(nth))]
        for taker in (store, model):
            taker.write(batch)
    model.compare(store)
    require_same("history(limit=1)", len(store.history(page(1).url, limit=1)), 1)
    require_same("history(limit=0)", store.history(page(1).url, limit=0), [])


def _shortens_runs(store: Store, model: StoreModel) -> None:
    for taker in (store, model):
        taker.add([page(1)])
    outcomes = [Outcome.NEW, *[Outcome.GONE] * 3, Outcome.CHANGED, *[Outcome.FAILED] * (2 * MAX_ALIKE), Outcome.GONE]
    for nth, outcome in enumerate(outcomes):
        body = bytes(nth) if outcome in (Outcome.NEW, Outcome.CHANGED) else None
        batch = [record(model.states[page(1).url], outcome, float(nth), body)]
        for taker in (store, model):
            taker.write(batch)
        model.compare(store)


def _keeps_odd_values(store: Store, model: StoreModel) -> None:
    odd = "nul \0 half \udc80 \ud800 emoji 🙂 quote ' \" \n"
    strange = [
        Page("https://ü.example/🙂?'\"", "", -1.5, Importance(0.0)),
        Page("x", "h\0", 1e300, Importance(1e-300)),
        Page("", ""),
    ]
    for taker in (store, model):
        taker.add(strange)
    for nth, body in enumerate((b"", b"\0" * 3_000_000, random.Random(7).randbytes(100_000))):  # noqa: S311
        state = model.states[strange[nth].url]
        marks = (0, 2**63, 2**64 - 1)
        validators = Validators(odd, odd[::-1], marks[nth])
        state = replace(
            state, validators=validators, fetched=2.0, checked=2.5, learned=bytes(range(256)), signals=2**40
        )
        url, host = state.page.url, HostState(state.page.host, float("inf"), 3)
        crawl = Crawl(url, 2.0, Outcome.FAILED, 0.1 + 0.2, 5, 1e-9, 999, 2**40, 0.3, odd, 0.0)
        batch = [Record(crawl, state, Copy(url, body, odd, 2.0, 2.5, validators, {odd: odd[::-1]}), host)]
        for taker in (store, model):
            taker.write(batch)
    model.named = {"": "", "price": "0.1", odd[:4]: odd}
    store.put(model.named)
    store.put({"price": "0.2"})
    model.named["price"] = "0.2"
    model.compare(store)
    store.put({"price": None, "price of gold": "7", "never there": None})
    del model.named["price"]
    model.named["price of gold"] = "7"
    require_same("get() of what was forgotten", store.get("price"), None)
    require_same("names('price')", store.names("price"), [("price of gold", 1)])
    model.compare(store)


def _keeps_the_copy(store: Store, model: StoreModel) -> None:
    for taker in (store, model):
        taker.add([page(1)])
    bodies = {Outcome.NEW: b"first", Outcome.CHANGED: b"second, longer"}
    for time, outcome in enumerate((Outcome.FAILED, Outcome.NEW, Outcome.UNCHANGED, Outcome.GONE, Outcome.CHANGED)):
        batch = [record(model.states[page(1).url], outcome, float(time), bodies.get(outcome))]
        for taker in (store, model):
            taker.write(batch)
        model.compare(store)
    # A state that claims a copy which is not there is not believed.
    for taker in (store, model):
        taker.add([page(2)])
    lie = replace(PageState(page(2)), fetched=1.0)
    store.write([record(lie, Outcome.FAILED, 9.0)])
    state = store.state(page(2).url)
    require_same("fetched without a copy", state and state.fetched, None)


def _keeps_versions(store: Store, model: StoreModel) -> None:
    """What a copy was is kept where versions are wanted, within the bounds, and goes with its page."""
    url = page(1).url

    def crawled(outcome: Outcome, time: float, body: bytes | None) -> int:
        """Write a crawl; its number."""
        batch = [record(model.states[url], outcome, time, body)]
        for taker in (store, model):
            taker.write(batch)
        return len(model.written)

    for taker in (store, model):
        taker.add([page(1)])
    require_same("versions() without a copy", store.versions(url), [])
    crawled(Outcome.NEW, 1.0, b"one")
    two = crawled(Outcome.CHANGED, 2.0, b"two")
    require_same(
        "versions() where none are wanted", store.versions(url), [Version(two, 2.0, "text/html", 3, appeared=2.0)]
    )
    store.keep_versions = KeepVersions(count=2, seconds=100.0, bytes=1 << 20)
    crawled(Outcome.UNCHANGED, 3.0, b"two but for noise")
    crawled(Outcome.FAILED, 4.0, None)
    four = crawled(Outcome.CHANGED, 5.0, b"four")
    kept = [
        Version(four, 5.0, "text/html", 4, appeared=5.0),
        Version(two, 3.0, "text/html", 17, four, 5.0, appeared=2.0),
    ]
    require_same("versions() after a change", store.versions(url), kept)
    before, now = store.version(url, two), store.version(url, four)
    require_same("the body of before", before and before.body, b"two but for noise")
    require_same("the version of now", now, store.copy(url))
    require_same("a version that is not kept", store.version(url, 99), None)
    five, six = crawled(Outcome.CHANGED, 6.0, b"five"), crawled(Outcome.CHANGED, 7.0, b"six")
    require_same("numbers within the bound", [each.number for each in store.versions(url)], [six, five, four])
    seven = crawled(Outcome.CHANGED, 150.0, b"seven")
    require_same("numbers within the time", [each.number for each in store.versions(url)], [seven, six])
    store.keep_versions = KeepVersions(count=2, bytes=10)
    eight = crawled(Outcome.CHANGED, 151.0, bytes(random.Random(1).randbytes(100)))  # noqa: S311 - not a secret
    nine = crawled(Outcome.CHANGED, 152.0, b"nine")
    require_same("numbers within the bytes", [each.number for each in store.versions(url)], [nine])
    require(store.version(url, eight) is None, "a version beyond the bytes must go")
    store.write([], removed=[url])
    model.remove([url])
    require_same("versions() of a page that was removed", store.versions(url), [])
    model.compare(store)


def _tells_what_is_gone(store: Store, model: StoreModel) -> None:
    """Since when a page is gone follows from its crawls, whatever a state says, also of several in one batch."""
    url, state = page(1).url, replace(PageState(page(1)), gone=77.0)
    store.add([page(1)])
    said = [Outcome.NEW, Outcome.GONE, Outcome.FAILED, Outcome.GONE, Outcome.BUSY, Outcome.UNCHANGED, Outcome.GONE]
    gone: list[float | None] = [None, 1.0, 1.0, 1.0, 1.0, None, 6.0]
    batch = [
        record(state, outcome, float(nth), b"body" if outcome is Outcome.NEW else None)
        for nth, outcome in enumerate(said)
    ]
    for each, since in zip(batch, gone, strict=True):
        store.write([each])
        found = store.state(url)
        require_same("since when a page is gone", found and found.gone, since)
    for some, since in ((batch[5:6], None), (batch[1:3], 1.0), (batch[4:6], None), (batch[2:], 6.0)):
        store.write(some)
        found = store.state(url)
        require_same("since when a page is gone, after a batch", found and found.gone, since)
    store.write([Record(None, state)])
    found = store.state(url)
    require_same("since when a page is gone, after news without a crawl", found and found.gone, 6.0)


def _keeps_state_alone(store: Store, model: StoreModel) -> None:
    for taker in (store, model):
        taker.add([page(1)])
    batch = [record(PageState(page(1)), Outcome.NEW, 1.0, b"body")]
    heard = Record(None, replace(batch[0].state, signals=3))
    for taker in (store, model):
        taker.write(batch)
        taker.write([heard])
    model.compare(store)
    # What is heard later is all that it sets, after the records of its batch; of a page that is not kept, nothing.
    known = Beliefs(1.0, 0.5, 0.25, 0.125, observations=3)
    later = [Heard(url, known, 4, b"more") for url in (page(1).url, "https://nowhere.example/")]
    store.write([heard], heard=later)
    model.write([Record(None, replace(heard.state, beliefs=known, signals=4, learned=b"more"))])
    model.compare(store)


def _says(store: Store, model: StoreModel) -> None:
    """What an operator says of a page is set as a whole, and touches nothing else of it."""
    for taker in (store, model):
        taker.add([page(1)])
        taker.write([record(PageState(page(1)), Outcome.NEW, 1.0, b"body")])
    told = replace(
        page(1), importance=Importance(2.0, times=True), shortest=60.0, longest=3600.0, hours="08:00-20:00", paused=True
    )
    other = replace(page(2), popularity=2.5)
    require_same("new pages of write()", store.write([], pages=[told, other, replace(told, host="moved.example")]), 1)
    model.say([told, other])
    model.compare(store)
    urgent = replace(model.states[page(1).url], urgent=True)
    store.write([], urgent=[page(1).url, "https://nowhere.example/"])
    model.write([Record(None, urgent)])
    model.compare(store)
    after = [record(model.states[page(1).url], Outcome.UNCHANGED, 2.0)]
    for taker in (store, model):
        taker.write(after)
    require(not model.states[page(1).url].urgent, "a crawl ends the urgency of its page")
    model.compare(store)
    store.write([], pages=[page(1)])
    model.say([page(1)])
    model.compare(store)
    hosts = {state.page.host for state in model.states.values()}
    for host in hosts:
        expected = [state for state in model.states.values() if state.page.host == host]
        require_same(f"states_of_host({host!r})", list(store.states_of_host(host)), expected)


def _removes(store: Store, model: StoreModel) -> None:
    for taker in (store, model):
        taker.add([page(nth) for nth in range(4)])
        taker.write([record(PageState(page(nth)), Outcome.NEW, 1.0, b"body") for nth in range(3)])
    numbers = [number for number, _ in store.states()]
    store.write([], removed=[page(1).url, page(3).url, "https://nowhere.example/"])
    model.remove([page(1).url, page(3).url])
    model.compare(store)
    for taker in (store, model):
        taker.add([page(1)])
    model.compare(store)
    require(list(store.states())[-1][0] > numbers[-1], "a page that is added again must get a number of its own")
    # Crawls are counted for ever, so that a reader of changes misses none and is told none twice.
    seen = [number for number, _ in store.changes()]
    batch = [record(PageState(page(1)), Outcome.NEW, 2.0, b"again")]
    for taker in (store, model):
        taker.write(batch)
    require([number for number, _ in store.changes(after=max(seen))] == [4], "a crawl's number was used twice")
    model.compare(store)


def _posts(store: Store) -> None:
    """What is posted waits, in order and once, until the batch that holds its effect is written."""
    store.add([page(1)])
    entries = [Entry("wish", f'{{"nth": {nth}}}', 10.0 + nth, key=f"key {nth % 3}" if nth else "") for nth in range(5)]
    require_same("post()", store.post(entries), 4)
    require_same("post() of the same again", store.post(entries[1:]), 0)
    shown = store.inbox()
    require_same(
        "inbox()", [(e.kind, e.body, e.received) for e in shown], [(e.kind, e.body, e.received) for e in entries[:4]]
    )
    numbers = [entry.number for entry in shown]
    require(numbers == sorted(set(numbers)) and numbers[0] >= 1, f"numbers must rise: {numbers}")
    require_same("inbox(after, limit)", store.inbox(after=numbers[0], limit=2), shown[1:3])
    size = sum(len(entry.body) + ENTRY_BYTES for entry in shown)
    require_same("totals of the inbox", (store.totals().inbox_entries, store.totals().inbox_bytes), (4, size))
    with suppress(StoreError):
        store.write([record(PageState(page(9)), Outcome.NEW, 1.0, b"body")], values={"a": "b"}, taken=numbers)
    require_same("the inbox after a refused batch", (store.inbox(), store.get("a")), (shown, None))
    store.write([record(PageState(page(1)), Outcome.NEW, 1.0, b"body")], values={"a": "b"}, taken=numbers[:2])
    require_same("the inbox after a batch", (store.inbox(), store.get("a")), (shown[2:], "b"))
    store.write([], taken=[*numbers, 99])
    require_same(
        "an emptied inbox", (store.inbox(), store.totals().inbox_entries, store.totals().inbox_bytes), ([], 0, 0)
    )
    require_same("post() of what took effect before", store.post(entries[1:2]), 0)
    require_same("post() of something else", store.post([Entry("wish", "[]")]), 1)
    require(store.inbox()[0].number > numbers[-1], "a number of the inbox was used twice")


def _bounds_its_inbox(store: Store) -> None:
    big = Entry("wish", "x" * MAX_ENTRY_BYTES)
    count = 0
    try:
        while count < 100_000:
            store.post([big] * 100)
            count += 100
    except InboxFull as error:
        require(bool(error.hint), "InboxFull must give a hint")
    require_same("a full inbox", (store.totals().inbox_entries, count < 100_000), (count, True))
    for body, key in (("x" * (MAX_ENTRY_BYTES + 1), ""), ("\u00fc", ""), ("", "k" * 1000)):
        try:
            Entry("wish", body, key=key)
        except ValueError:
            continue
        raise AssertionError(f"an entry that is too large or no ASCII must be refused: {body[:50]}")


def _walks(store: Store, model: StoreModel, rng: random.Random, steps: int) -> None:
    """Do random things to store and model, and compare them now and then."""
    for step in range(steps):
        if not model.states or rng.random() < 0.3:
            pages = [page(rng.randrange(30)) for _ in range(rng.randrange(5))]
            require_same("add()", store.add(pages), model.add(pages))
        elif rng.random() < 0.1:
            name, value = rng.choice("abc"), str(step) if rng.random() < 0.7 else None
            store.put({name: value})
            model.put(name, value)
        else:
            batch = [random_record(model, rng, float(step)) for _ in range(rng.randrange(6))]
            store.write(batch)
            model.write(batch)
        if rng.random() < 0.2:
            model.compare(store)
    model.compare(store)


def _serves_threads(make: Callable[[], Store]) -> None:
    """One thread writes while others read: every state and copy they see belongs to one crawl."""
    broken: list[str] = []
    with make() as store:
        store.add([page(1)])
        store.write([record(PageState(page(1)), Outcome.NEW, 0.0, b"0.0")])
        done = threading.Event()

        def look() -> None:
            while not done.is_set() and not broken:
                copy, state = store.copy(page(1).url), store.state(page(1).url)
                if copy is None or copy.body != str(copy.fetched).encode() or copy.fetched != copy.checked:
                    broken.append(f"a reader saw a mixed copy: {copy}")
                elif state is None or state.learned != str(state.fetched).encode() or state.fetched != state.checked:
                    broken.append(f"a reader saw a mixed state: {state}")

        readers = [threading.Thread(target=look) for _ in range(2)]
        for reader in readers:
            reader.start()
        for nth in range(1, 50):
            store.write([record(PageState(page(1)), Outcome.CHANGED, float(nth), str(float(nth)).encode())])
        done.set()
        for reader in readers:
            reader.join()
    require(not broken, broken[0] if broken else "")


def _closes(make: Callable[[], Store]) -> None:
    store = make()
    store.add([page(1)])
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        store.claim,
        store.totals,
        lambda: store.add([page(2)]),
        lambda: store.write([]),
        lambda: store.put({"a": "b"}),
        lambda: store.post([]),
        lambda: store.inbox(),
        lambda: list(store.states()),
        lambda: store.states_under("http", 1),
        lambda: list(store.hosts()),
        lambda: store.copy(page(1).url),
    ]
    for use in uses:
        try:
            use()
        except StoreError:
            continue
        raise AssertionError("a closed store must refuse to work")


def _lasts(make: Callable[[], Store], again: Callable[[Store], Store], keep_crawls: int) -> None:
    """What was written is there when the store is opened again, and only one may run on it."""
    model, first = StoreModel(keep_crawls), make()
    first.claim()
    first.claim()
    with again(first) as second:
        for use in (second.claim, lambda: second.write([]), lambda: second.put({"a": "b"})):
            try:
                use()
            except StoreLocked as error:
                require(bool(error.hint), "StoreLocked must give a hint")
                continue
            raise AssertionError("two runners on one store")
        # But pages may be added and read, and each sees the other's at once; and so may wishes.
        require_same("post() beside a runner", second.post([Entry("wish", "{}", key="once")]), 1)
        require_same("inbox() of the runner", [entry.body for entry in first.inbox()], ["{}"])
        require_same("add() beside a runner", second.add([page(1), page(2)]), 2)
        model.add([page(1), page(2)])
        model.compare(first)
        _walks(first, model, random.Random(1), 30)  # noqa: S311
        model.compare(second)
        first.close()
        second.claim()
    with again(first) as third:
        model.compare(third)
        require_same("inbox() after all closed", [entry.body for entry in third.inbox()], ["{}"])
        require_same("post() of a key of before", third.post([Entry("wish", "{}", key="once")]), 0)
        third.claim()
