"""Both engines keep every promise, and the one that saves in batches agrees with the copies after kills and damage."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from afresh.index import FullText, Search, check, parse, schema
from afresh.index.engines import Engine, Fts5, engine_named
from afresh.store import Sqlite
from afresh.testing import check_engine
from afresh.types import Page
from searched import fill, record


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[], Sqlite]:
    numbers = count()
    return lambda: Sqlite(tmp_path / f"{next(numbers)}.db")


def test_fts5(stores: Callable[[], Sqlite]) -> None:
    check_engine(Fts5, stores)


def tantivy() -> Engine:
    pytest.importorskip("tantivy", reason="The extra afresh[tantivy] is not installed.")
    return engine_named("tantivy")


def test_tantivy(stores: Callable[[], Sqlite]) -> None:
    check_engine(tantivy, stores)


def test_damage_is_found_and_mended_and_engines_can_be_changed(stores: Callable[[], Sqlite]) -> None:
    import random

    index = FullText(engine=tantivy())
    with stores() as kept:
        bodies = fill(kept, index, random.Random(3), 20)
        check.rebuild(kept, index, anew=False)
        folder = schema.folder_beside(kept.reader())
        largest = max(folder.rglob("*.idx"), key=lambda path: path.stat().st_size)
        whole = largest.read_bytes()
        largest.write_bytes(whole[:20] + bytes([whole[20] ^ 255]) + whole[21:])
        assert "is damaged" in check.sound_inside(kept, FullText(engine=tantivy()))
        index = FullText(engine=tantivy())
        assert check.rebuild(kept, index) == len(bodies)
        assert not check.sound_inside(kept, index)
        assert not list(check.problems(kept, index))
        with Search(kept.path, tell=False) as search:  # takes the engine that made the index
            assert {each.url for each in search.search("ferry").results}
        for path in folder.rglob("meta.json"):
            path.unlink()
        index = FullText(engine=tantivy())
        assert check.sound_inside(kept, index)
        kept.accompany(index)  # the folder is of no use: all copies are due
        check.rebuild(kept, index, anew=False)
        assert not list(check.problems(kept, index))
        kept.accompany(plain := FullText())
        check.rebuild(kept, plain, anew=False)
        assert not list(check.problems(kept, plain))
        assert not folder.exists()


def test_a_batch_is_caught_up_by_whoever_runs_next(stores: Callable[[], Sqlite]) -> None:
    with stores() as kept:
        kept.accompany(FullText(engine=tantivy()))
        kept.add([Page("http://a.example/1", "a.example")])
        kept.write([record("http://a.example/1", "a.example", "<title>Times</title><p>The ferry leaves at nine.")])
        with Search(kept.path, tell=False) as search:
            assert search.search("ferry").notice == "1 copy is not in the index yet"
            check.rebuild(kept, FullText(engine=tantivy()), anew=False)
            found = search.search('"ferry leaves"')
            assert [each.snippet for each in found.results] == ["The ferry leaves at nine."]
            assert found.notice != "1 copy is not in the index yet"
            assert search.search(str(parse("x" * 399 + "*"))).results == ()
