"""URLs as fingerprints: the table against a dictionary, and what happens when two are alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine import Names
from afresh.engine.folders import folder_keys
from afresh.errors import StoreError
from afresh.estimate import branches_of, kin_of
from afresh.types import Page

MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=300)


def page(number: int) -> Page:
    return Page(f"http://h.example/{number}", "h.example")


@settings(deadline=None)
@given(MOVES, st.sampled_from([b"", b"secret"]))
def test_a_table_of_fingerprints_is_a_dictionary(moves: list[tuple[bool, int]], secret: bytes) -> None:
    names, model, free = Names(secret), dict[str, int](), list(range(400, -1, -1))
    urls = [page(number).url for number in range(401)]  # the same objects each time: the last one asked is remembered
    for comes, number in moves:
        url = urls[number]
        assert names.slot(url) == model.get(url, -1)
        if comes and url not in model:
            model[url] = free.pop()
            names.enter(model[url], page(number))
        elif not comes and url in model:
            slot = model.pop(url)
            names.leave(slot)
            free.append(slot)
        assert names.slot(url) == model.get(url, -1)
    assert len(names) == len(model)
    for number in range(401):
        assert names.slot(page(number).url) == model.get(page(number).url, -1)
    assert sorted(names.in_use().tolist()) == sorted(model.values())
    assert {each.url for each in names.pages()} == set(model)
    found = names.slots(names.marks(list(model)))
    assert found.tolist() == list(model.values())


def test_fingerprints_that_follow_each_other_in_the_table_are_found_when_one_of_them_leaves() -> None:
    """All want the same place: what stands behind a gap moves up, also round the end of the table."""
    names = Names()
    marks = np.array([(0xFFFF_FFFF << 32) | nth for nth in range(20)], np.uint64)
    names.enter_many(np.arange(20), marks, np.ones(20, np.int64))
    for gone in (3, 0, 19, 7):
        names.leave(gone)
    expected = [-1 if nth in (3, 0, 19, 7) else nth for nth in range(20)]
    assert names.slots(marks).tolist() == expected


def test_the_text_of_a_page_is_read_when_it_is_asked_for() -> None:
    read: list[int] = []
    names = Names(read=lambda number: read.append(number) or (page(number) if number < 3 else None))
    names.enter(0, page(1), number=1)
    names.enter(1, page(9))
    assert read == []
    assert names.page(0) == page(1)
    assert names.page(1) == page(9)
    assert read == [1]
    names.stored(1, page(9).url, 3)
    with pytest.raises(StoreError, match="number 3 is not in the store any more"):
        names.page(1)


def test_a_page_whose_fingerprint_is_anothers_is_left_out_and_counted() -> None:
    names = Names(read=page)
    names.enter(0, page(1), number=1)
    names.stored(0, page(1).url, 1)
    assert names.alike == 0
    names.stored(0, page(2).url, 2)
    assert names.alike == 1
    assert names.page(0) == page(1)


URLS = st.builds(
    lambda folders, name, rest: "https://a.example/" + "".join(f"{folder}/" for folder in folders) + name + rest,
    st.lists(st.sampled_from(["a", "b", "12", "7", "a.b", "ü", ""]), max_size=6),
    st.sampled_from(["", "x", "x.html", "y.html", "y.HTML", "17.html", "a.b.c", "x.toolong", "x.ürl", "."]),
    st.sampled_from(["", "?q=/a/b.c", "#f/g.h", "?a#b"]),
)


@given(st.lists(URLS, min_size=2, max_size=12), st.integers(0, 2**64 - 1))
def test_pages_of_one_key_are_on_one_branch_and_of_one_kin(urls: list[str], secret: int) -> None:
    keys = folder_keys(urls, np.zeros(len(urls), np.int64), secret).tolist()
    places = [(branches_of(url, "a.example"), kin_of(url, "a.example")) for url in urls]
    for key, place in zip(keys, places, strict=True):
        assert all(other == place for mine, other in zip(keys, places, strict=True) if mine == key)


def test_pages_of_a_folder_have_one_key_and_hosts_do_not_share_it() -> None:
    urls = [f"https://a.example/news/{nth}.html?x={nth}" for nth in range(9)]
    assert len(set(folder_keys(urls, np.zeros(9, np.int64)).tolist())) == 1
    assert len(set(folder_keys(urls, np.arange(9)).tolist())) == 9
