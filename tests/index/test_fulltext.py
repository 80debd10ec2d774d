"""The index answers as an obvious search over all copies would, and agrees with the copies whatever happens."""

import random
from pathlib import Path

import apsw
import pytest

from afresh.errors import AfreshError, InputError, StoreError
from afresh.index import FullText, Query, Search, Weights, check, parse, schema
from afresh.index.scoring import Collection, Counted, Wanted, counted, rarity, score, wanted
from afresh.index.search import rescored
from afresh.index.words import Tokenizer
from afresh.store import Sqlite
from afresh.types import Copy, Page
from searched import WORDS, fill, record


def query_of(rng: random.Random) -> str:
    def term() -> str:
        some = rng.choices(WORDS, k=2)
        return rng.choice([some[0], some[0], f'"{" ".join(some)}"', some[0][:3] + "*", f"title:{some[0]}"])

    made = " ".join(term() for _ in range(rng.randint(1, 3)))
    return rng.choice([made, made, f"{term()} OR {term()}", f"{made} -{rng.choice(WORDS)}", f"{made} site:b.example"])


@pytest.fixture
def kept(tmp_path: Path) -> Sqlite:
    return Sqlite(tmp_path / "afresh.db")


@pytest.mark.parametrize("tokenizer", ["words", "english"])
def test_results_are_those_of_a_search_over_all_copies(kept: Sqlite, tokenizer: str) -> None:
    rng, weights = random.Random(5), Weights(authority=0.0)
    index, words = FullText(tokenizer=tokenizer, weights=weights), Tokenizer(tokenizer)
    bodies = fill(kept, index, rng, 60)
    reader = kept.reader()
    pages: dict[str, Counted] = {}
    for url, (host, body) in bodies.items():
        pages[url] = counted(index.content_of(Copy(url, body.encode(), "text/html", 0.0, 0.0)), host, words)
    collection = Collection(len(pages), sum(page.length for page in pages.values()) / len(pages))
    assert index.counts(reader) == (len(pages), sum(page.length for page in pages.values()))
    found_any, some = 0, list(pages.values())
    for _ in range(150):
        query = parse(query_of(rng))
        asked = wanted(query, words)
        rare = {
            term: rarity(sum(score(alone(term, asked), page, collection, weights) > 0 for page in some), len(some))
            for term in asked.words
        }
        asked = Wanted(query, asked.words, rare)
        plain = {url: score(asked, page, collection, weights) for url, page in pages.items()}
        found = index.search(reader, query, 100)
        assert {each.url for each in found} == {url for url, points in plain.items() if points > 0}, query.text
        for each in found:
            assert each.score == pytest.approx(plain[each.url], rel=1e-9), query.text
        other = rescored(index, reader, words, asked, collection, [each._replace(score=1.0) for each in found])
        assert {each.url: each.score for each in other} == {each.url: pytest.approx(plain[each.url]) for each in found}
        found_any += bool(found)
    assert found_any > 75
    reader.close()


def alone(term: object, asked: Wanted) -> Wanted:
    """A query for one of its terms alone; every rarity is 1, so that finding it scores."""
    return Wanted(Query(term), {term: asked.words[term]}, {term: 1.0})  # type: ignore[arg-type, index, dict-item]


def test_links_raise_a_score_and_go_with_the_page_that_had_them(kept: Sqlite) -> None:
    kept.accompany(index := FullText())
    kept.add(Page(f"http://a.example/{name}", "a.example") for name in "abc")
    same = "<title>Ferry</title><p>Leaves at nine"
    kept.write([record(f"http://a.example/{name}", "a.example", same) for name in "ab"])
    kept.write([record("http://a.example/c", "a.example", "<p>See <a href=/b>there</a> and <a href='/b#x'>again</a>")])
    reader = kept.reader()
    first, second = index.search(reader, parse("ferry"), 5)
    assert (first.url[-1], first.links, second.links) == ("b", 1, 0)
    assert first.score == pytest.approx(second.score * Weights().of_links(1))
    kept.write([], removed=["http://a.example/c"])
    assert [each.links for each in index.search(reader, parse("ferry"), 5)] == [0, 0]
    assert not list(check.problems(kept, index))
    reader.close()


def test_a_search_says_how_old_and_how_likely_fresh_each_result_is(kept: Sqlite) -> None:
    kept.accompany(FullText())
    kept.add([Page("http://a.example/1", "a.example")])
    kept.write([record("http://a.example/1", "a.example", "<title>Times</title><p>The ferry leaves at nine.", 100.0)])
    with Search(kept.path, clock=lambda: 160.0) as search:
        found = search.search("ferry")
        assert [(each.title, each.snippet, each.age) for each in found.results] == [
            ("Times", "The ferry leaves at nine.", 60.0)
        ]
        assert search.search("ferry", host="other.example").results == ()
        assert search.search("ferry site:example").results
    said = {entry.kind: entry.body for entry in kept.inbox()}
    assert '["ferry", 160.0, 1.0]' in said["searched"]
    assert "http://a.example/1" in said["requests"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing to search"),
        ("!!! --", "nothing to search"),
        ('"open', "not closed"),
        ("(open", "not closed"),
        ("shut)", "was not opened"),
        ("-only", "must not be there"),
        ("a OR", "follows after an OR"),
        ("a NOT", "follows after a NOT"),
        ("site:", "follows after site:"),
        ("site:%%", "is not a site"),
        ("x " * 40, "more than 32"),
        ("x" * 500, "longer than"),
        ("(" * 20 + "a" + ")" * 20, "within each other"),
    ],
)
def test_a_bad_query_gets_a_sentence(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse(text)


def test_a_host_is_found_at_any_port_and_with_a_port_at_that_one_alone(kept: Sqlite) -> None:
    kept.accompany(index := FullText())
    hosts = ["127.0.0.1:8000", "127.0.0.1:8001", "www.b.example:8000", "b.example:8000", "b.example"]
    kept.add(Page(f"http://{host}/", host) for host in hosts)
    kept.write([record(f"http://{host}/", host, "<p>The ferry time table") for host in hosts])
    expected = {
        "127.0.0.1": hosts[:2],
        "127.0.0.1:8000": hosts[:1],
        "0.0.1.8000": [],
        "b.example": hosts[2:],
        "example": hosts[2:],
        "b.example:8000": ["b.example:8000"],
        "example:8000": [],
    }
    with Search(kept.path, tell=False) as search:
        for asked, some in expected.items():
            for found in (search.search(f"ferry site:{asked}"), search.search("ferry", host=asked)):
                assert sorted(each.url for each in found.results) == sorted(f"http://{each}/" for each in some), asked
        for phrase in ('"time ta"*', '"time ta*"', '"ferry time ta*"', '"tab*"'):
            assert len(search.search(phrase).results) == len(hosts), phrase
        assert search.search('"ferry ta*"').results == ()
        assert parse('"time ta*"').text == '"time ta"*'
    assert not list(check.problems(kept, index))


def test_a_search_with_wrong_arguments_gets_a_sentence_and_a_hint(kept: Sqlite) -> None:
    kept.accompany(FullText())
    kept.write([])
    wrong: list[dict[str, object]] = [
        {"words": None},
        {"words": b"ferry"},
        {"host": 3},
        {"fresh": 5},
        {"fresh": float("nan")},
        {"fresh": "0.9"},
        {"limit": "3"},
        {"limit": 2.5},
        {"limit": 0},
    ]
    with Search(kept.path) as search:
        for each in wrong:
            with pytest.raises(AfreshError) as told:
                search.search(**({"words": "ferry"} | each))  # type: ignore[arg-type]
            assert told.value.hint, each


def test_no_query_can_break_the_index(kept: Sqlite) -> None:
    """Whatever people type is understood, or refused with a sentence: never an error of the database."""
    index, rng = FullText(), random.Random(7)
    fill(kept, index, rng, 10)
    reader = kept.reader()
    signs = [
        '"',
        "(",
        ")",
        "*",
        "-",
        ":",
        "^",
        "+",
        "{",
        "}",
        "'",
        "\\",
        "\0",
        "\ud800",
        "ß",
        "渡",
        "NEAR",
        "OR",
        "AND",
        " ",
    ]
    understood = 0
    for _ in range(1500):
        text = "".join(rng.choice([*signs, "boat", "title:", "site:", "é"]) for _ in range(rng.randint(1, 9)))
        try:
            query = parse(text)
        except InputError:
            continue
        index.search(reader, query, 5)
        assert parse(query.text).text == query.text, text
        understood += 1
    assert understood > 300
    reader.close()


def test_what_others_write_is_due_and_taken_up(kept: Sqlite) -> None:
    index = FullText()
    bodies = fill(kept, index, random.Random(1), 12)
    kept.companion = None  # a process without an index: triggers note what it does
    url, (host, _) = next(iter(bodies.items()))
    kept.write([record(url, host, "<p>lighthouse")], removed=[list(bodies)[1]])
    reader = kept.reader()
    assert index.search(reader, parse("lighthouse"), 5) == []
    assert not list(check.problems(kept, index))  # noted as due is no disagreement
    assert check.rebuild(kept, index, anew=False) == 1
    assert [each.url for each in index.search(reader, parse("lighthouse"), 5)] == [url]
    assert not list(check.problems(kept, index))
    reader.close()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE search_docs SET checksum = checksum + 1 WHERE page = (SELECT min(page) FROM search_docs)",
        "DELETE FROM search_docs WHERE page = (SELECT max(page) FROM search_docs)",
        "DELETE FROM search WHERE rowid = (SELECT max(page) FROM search_docs)",
        "UPDATE search_links SET pages = pages + 1",
        "UPDATE search_data SET block = x'00ff' WHERE id > 10",
        "UPDATE search_config SET v = 99 WHERE k = 'version'",
        "UPDATE search_state SET value = 7 WHERE name = 'docs'",
    ],
)
def test_damage_is_found_and_mended(kept: Sqlite, harm: str) -> None:
    index = FullText()
    bodies = fill(kept, index, random.Random(2), 20)
    assert not list(check.problems(kept, index))
    assert not check.sound_inside(kept, index)
    damager = apsw.Connection(str(kept.path))
    damager.execute(harm)
    damager.close()
    path = kept.path
    kept.close()
    with Sqlite(path) as again:
        assert check.sound_inside(again, index) or list(check.problems(again, index))
        assert check.rebuild(again, index) == len(bodies)
        assert not check.sound_inside(again, index)
        assert not list(check.problems(again, index))


def test_another_tokenizer_makes_the_index_anew_and_dropping_it_leaves_nothing(kept: Sqlite) -> None:
    bodies = fill(kept, FullText(), random.Random(3), 10)
    kept.accompany(index := FullText(tokenizer="english"))
    assert check.rebuild(kept, index, anew=False) == len(bodies)
    with kept.writing() as connection:
        schema.drop(connection)
        left = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'search%'").fetchall()
    assert left == []
    with pytest.raises(StoreError, match="has no index"):
        Search(kept.path)
