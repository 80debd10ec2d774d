"""The battery for engines of the full-text index: every promise of `afresh.index.engines.Engine`."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import apsw

from afresh.index import FullText, Weights, check, parse
from afresh.index.engines import Engine
from afresh.index.queries import Query, Term
from afresh.index.scoring import Collection, Counted, Wanted, counted, score, wanted
from afresh.index.words import Tokenizer
from afresh.store import PageState, Record, Sqlite
from afresh.store.faults import transaction
from afresh.testing.store_model import require, require_same
from afresh.types import Copy, Crawl, Outcome, Page, Validators

_WORDS = ("ferry", "ferries", "boat", "harbour", "island", "time", "table", "café", "x1", "渡し船", "run", "running")
_HOSTS = ("a.example", "docs.b.example", "b.example", "b.example.evil.test")
_PAGES = 40


def check_engine(
    make: Callable[[], Engine], open_store: Callable[[], Sqlite], *, seed: int = 0, queries: int = 80
) -> None:
    """Put an engine through everything that `Engine` promises.

    `make` gives one more handle on the same kind of engine; `open_store` gives a new empty store each time.
    """
    for tokenizer in ("words", "english"):
        with open_store() as store:
            _finds(make, store, random.Random(seed), tokenizer, queries)  # noqa: S311 - not a secret
    with open_store() as store:
        _ranks(make, store)
    with open_store() as store:
        _forgets_what_was_not_saved(make, store)


def _record(url: str, host: str, body: str) -> Record:
    checked = Validators(fingerprint=1 + len(body))
    state = PageState(Page(url, host), None, checked, 1.0, 1.0, crawls=1)
    copy = Copy(url, body.encode(), "text/html", 1.0, 1.0, checked)
    return Record(Crawl(url, 1.0, Outcome.NEW, size=len(body)), state, copy)


def _body(rng: random.Random) -> str:
    title, heading, text = (" ".join(rng.choices(_WORDS, k=rng.randint(0, most))) for most in (4, 4, 40))
    return f"<title>{title}</title><h2>{heading}</h2><p>{text}</p>"


def _query(rng: random.Random) -> str:
    def term() -> str:
        one, two = rng.choices(_WORDS, k=2)
        return rng.choice([one, one, f'"{one} {two}"', one[:3] + "*", f"title:{one}", f'"{one} {two[:2]}"*'])

    made = " ".join(term() for _ in range(rng.randint(1, 3)))
    return rng.choice([made, made, f"{term()} OR {term()}", f"{made} -{rng.choice(_WORDS)}", f"{made} site:b.example"])


def _caught_up(store: Sqlite, index: FullText) -> None:
    """Write what is due, as the runner does."""
    check.rebuild(store, index, anew=False)


def _finds(make: Callable[[], Engine], store: Sqlite, rng: random.Random, tokenizer: str, queries: int) -> None:
    """All pages that a plain search over all copies finds, and no others, while pages come, change and go."""
    index, words = FullText(tokenizer=tokenizer, engine=make()), Tokenizer(tokenizer)
    store.accompany(index)
    hosts = {f"http://{host}/{nth}": host for nth in range(_PAGES) for host in [rng.choice(_HOSTS)]}
    store.add(Page(url, host) for url, host in hosts.items())
    bodies: dict[str, str] = {}
    for _ in range(3):
        some = {url: _body(rng) for url in rng.sample(sorted(hosts), _PAGES // 2)}
        store.write([_record(url, hosts[url], body) for url, body in some.items()])
        bodies |= some
        gone = rng.sample(sorted(bodies), 2)
        store.write([], removed=gone)
        bodies = {url: body for url, body in bodies.items() if url not in gone}
        hosts = {url: host for url, host in hosts.items() if url not in gone}
        _caught_up(store, index)
        require_same("what disagrees with the copies", list(check.problems(store, index)), [])
        require_same("what is damaged", check.sound_inside(store, index), "")
    contents = {url: index.content_of(Copy(url, body.encode(), "text/html", 0.0, 0.0)) for url, body in bodies.items()}
    plain = {url: counted(content, hosts[url], words) for url, content in contents.items()}
    reader = store.reader()
    other = FullText(tokenizer=tokenizer, engine=make())  # as another process has it
    try:
        require_same("counts()", other.counts(reader), (len(plain), sum(page.length for page in plain.values())))
        require_same("pages()", other.engine.pages(reader), len(plain))
        _same_answers(other, reader, words, plain, [parse(_query(rng)) for _ in range(queries)])
    finally:
        reader.close()


def _same_answers(
    index: FullText,
    reader: apsw.Connection,
    words: Tokenizer,
    plain: Mapping[str, Counted],
    asked: Sequence[Query],
) -> None:
    found_any = 0
    for query in asked:
        ready = wanted(query, words)
        sure = Wanted(query, ready.words, dict.fromkeys(ready.words, 1.0))
        right = {url for url, page in plain.items() if score(sure, page, Collection(1, 1.0), Weights()) > 0}
        found = index.search(reader, query, 100)
        require_same(f"what {query.text!r} finds", {each.url for each in found}, right)
        require(all(one.score >= two.score for one, two in pairwise(found)), "the best come first")
        for term in ready.words:
            alone = Wanted(Query(term), {term: ready.words[term]}, {term: 1.0})
            count = sum(score(alone, page, Collection(1, 1.0), Weights()) > 0 for page in plain.values())
            if term.column != "site":
                require_same(f"matching({term})", index.matching(reader, term), count)
        found_any += bool(found)
    require(found_any > len(asked) // 3, "some queries find something")


def _ranks(make: Callable[[], Engine], store: Sqlite) -> None:
    """A word in the title counts more than one in a heading, and that more than one in the text, by the weights."""
    index = FullText(engine=make())
    store.accompany(index)
    other = "boat island table"
    bodies = {
        "title": f"<title>ferry</title><h1>{other}</h1><p>{other}",
        "heading": f"<title>{other}</title><h1>ferry</h1><p>{other}",
        "text": f"<title>{other}</title><h1>{other}</h1><p>ferry",
        **{f"none{nth}": f"<title>{other}</title><h1>{other}</h1><p>{other}" for nth in range(9)},
    }
    store.add(Page(f"http://a.example/{name}", "a.example") for name in bodies)
    store.write([_record(f"http://a.example/{name}", "a.example", body) for name, body in bodies.items()])
    _caught_up(store, index)
    reader = store.reader()
    try:
        names = [each.url.rpartition("/")[2] for each in index.search(reader, parse("ferry"), 10)]
        require_same("the order by what words count", names, ["title", "heading", "text"])
        turned = FullText(engine=make(), weights=Weights(title=0.5, headings=0.1))
        require_same("the same with other weights", turned.search(reader, parse("ferry"), 1)[0].url[-4:], "text")
        require_same("what nothing has", index.search(reader, parse("lighthouse"), 10), [])
        require_same("matching() of that", index.matching(reader, Term("lighthouse")), 0)
    finally:
        reader.close()


def _forgets_what_was_not_saved(make: Callable[[], Engine], store: Sqlite) -> None:
    """What was put and not saved leaves no trace, and is written again from what is due."""
    index = FullText(engine=make())
    store.accompany(index)
    store.add(Page(f"http://a.example/{nth}", "a.example") for nth in range(3))
    store.write([_record("http://a.example/0", "a.example", "<p>ferry")])
    _caught_up(store, index)
    if not index.engine.batched:
        return
    store.write([_record(f"http://a.example/{nth}", "a.example", "<p>boat") for nth in range(3)])
    with store.writing() as connection, transaction(connection):
        index.engine.put(connection, 1, 7, ("a", "", "", "harbour"))
        index.engine.rest()
    again = FullText(engine=make())
    reader = store.reader()
    try:
        for word, count in (("ferry", 1), ("boat", 0), ("harbour", 0)):
            require_same(f"matching({word}) before", again.matching(reader, Term(word)), count)
        require_same("what disagrees while copies are due", list(check.problems(store, again)), [])
        _caught_up(store, again)
        for word, count in (("ferry", 0), ("boat", 3), ("harbour", 0)):
            require_same(f"matching({word}) after", again.matching(reader, Term(word)), count)
        _unsaved_note(again, store)
    finally:
        reader.close()


def _unsaved_note(index: FullText, store: Sqlite) -> None:
    """A page that was saved, and the store does not know it: the next writing mends it."""
    pages: Sequence[int] = store.numbers(["http://a.example/1"])
    store.write([_record("http://a.example/1", "a.example", "<p>island")])
    with store.writing() as connection, transaction(connection):
        index.engine.put(connection, pages[0], 7, ("a", "", "", "island"))
        index.engine.save()
        index.engine.rest()
    require_same("what disagrees after a kill", list(check.problems(store, index)), [])
    _caught_up(store, index)
    require_same("what disagrees then", list(check.problems(store, index)), [])
