import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import AfreshError
from afresh.frontier import Eliminator, Seen, fingerprints, packed
from afresh.testing import check_seen

ODD = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
TOP = (1 << 64) - 1


@pytest.mark.parametrize("large", [1 << 24, 1, 5_000])
@pytest.mark.parametrize("bulk", [1 << 15, 1, 1_000])
def test_it_answers_as_a_plain_set_does(large: int, bulk: int) -> None:
    check_seen(lambda: Seen(large=large, bulk=bulk))


@pytest.mark.parametrize("large", [1 << 24, 1_000])
@pytest.mark.parametrize("bulk", [1 << 15, 1, 500])
@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, TOP), max_size=2_500), max_size=6), st.integers(0, TOP))
def test_any_batches(large: int, bulk: int, batches: list[list[int]], seed: int) -> None:
    seen, known = Seen(seed=seed, large=large, bulk=bulk), set[int]()
    for batch in batches:
        answer = seen.add_many(np.array(batch, np.uint64)).tolist()
        for fingerprint, new in zip(batch, answer, strict=True):
            assert new == (fingerprint not in known)
            known.add(fingerprint)
    assert len(seen) == len(known)


def unmixed(key: int) -> int:
    """The fingerprint that is mixed to a key: what somebody who knows the seed could compute."""

    def unshift(word: int, by: int) -> int:
        result = word
        for _ in range(64 // by + 1):
            result = word ^ (result >> by)
        return result

    word = unshift(key, 31) * pow(ODD[1], -1, 1 << 64) & TOP
    word = unshift(word, 27) * pow(ODD[0], -1, 1 << 64) & TOP
    return unshift(word, 30)


def crowd(count: int, bucket: int) -> NDArray[np.uint64]:
    return np.array([unmixed(bucket << 40 | nth * 977) for nth in range(count)], np.uint64)


KEYS = st.one_of(st.integers(0, TOP), st.integers(0, 50), st.integers(0, 60).map(lambda nth: unmixed(77 << 42 | nth)))


@settings(deadline=None)
@given(st.lists(KEYS, max_size=400), st.integers(0, 3))
def test_keys_are_put_in_order_and_equals_stay_in_theirs(batch: list[int], seed: int) -> None:
    keys = np.array(batch, np.uint64)
    words, order = np.empty_like(keys), np.empty(keys.size, np.uint32)
    packed.ordered(keys, np.uint64(seed), words, order, np.empty_like(words), np.empty_like(order))
    mixed = [int(packed.mixed(np.uint64(key), np.uint64(seed))) for key in batch]
    expected = sorted(range(len(batch)), key=mixed.__getitem__)  # stable
    assert order.tolist() == expected
    assert words.tolist() == [mixed[nth] for nth in expected]


def test_a_batch_larger_than_is_put_in_order_at_once_is_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.frontier.seen.LARGEST_BULK", 1_000)
    seen, keys = Seen(bulk=100), np.random.default_rng(6).integers(0, 3_000, 10_500, np.uint64)
    first = np.unique(keys, return_index=True)[1]
    assert np.flatnonzero(seen.add_many(keys)).tolist() == sorted(first)


def test_few_new_ones_in_a_large_batch_rewrite_no_set() -> None:
    seen, keys = Seen(large=10_000), np.random.default_rng(7).integers(0, TOP, 400_000, np.uint64)
    assert seen.add_many(keys).all()
    sizes = seen._main.size, seen._middle.size
    keys[::100] += np.uint64(1)
    assert seen.add_many(keys).sum() == 4_000
    assert (seen._main.size, seen._middle.size) == sizes
    assert not seen.add_many(keys).any()


def test_the_table_has_the_same_size_however_large_the_batches_were() -> None:
    keys = np.random.default_rng(8).integers(0, TOP, 3_000_000, np.uint64)
    one_by_one, together = Seen(large=2_500_000, bulk=1 << 62), Seen(large=2_500_000)
    for first, end in ((0, 2_000_000), (2_000_000, 3_000_000)):
        assert one_by_one.add_many(keys[first:end]).all()
        assert together.add_many(keys[first:end]).all()
        assert together._table.size == one_by_one._table.size
    assert together.nbytes <= one_by_one.nbytes * 1.01


def test_the_mixer_can_be_undone() -> None:
    assert int(packed.mixed(np.uint64(unmixed(0x123456789ABCDEF0)), np.uint64(0))) == 0x123456789ABCDEF0


@pytest.mark.parametrize("bulk", [1 << 15, 1_000, 1 << 30])
def test_thousands_of_keys_aimed_at_one_bucket_are_only_slower(bulk: int) -> None:
    seen, spread = Seen(large=2_000, bulk=bulk), np.random.default_rng(3).integers(0, TOP, 20_000, np.uint64)
    assert seen.add_many(spread).all()
    assert seen._main.counts.size, "the layout was meant to be the fine one"
    attack = crowd(30_000, 0xABCDEF)
    assert seen.add_many(attack).all()
    assert seen.add_many(np.random.default_rng(4).integers(0, TOP, 60_000, np.uint64)).all()
    assert not seen._main.counts.size, "a bucket of more than 255 does not fit the fine layout"
    assert not seen.add_many(attack).any()
    assert not seen.add_many(spread).any()
    assert len(seen) == 110_000


@pytest.mark.parametrize("count", [254, 255, 256, 257])
@pytest.mark.parametrize("bulk", [1 << 30, 1_000])
def test_a_bucket_that_is_just_full(count: int, bulk: int) -> None:
    spread = np.random.default_rng(5).integers(0, TOP, 200_000, np.uint64)
    attack, rest = np.split(crowd(300, 1 << 20), [count])
    seen = Seen(large=2_000, bulk=bulk)
    # One after another the last of these sends the others on into the large set; in bulk they go there together.
    parts = [spread[:100_000], attack, spread[100_000:]]
    for part in parts if bulk > 1_000 else [parts[0], np.concatenate(parts[1:])]:
        assert seen.add_many(part).all()
    assert bool(seen._main.counts.size) == (count <= 255)
    for part in (spread, attack):
        assert not seen.add_many(part).any()
    assert seen.add_many(rest).all()


def test_a_set_that_is_too_crowded_from_the_start_stays_coarse() -> None:
    seen = Seen(large=2_000)
    attack = crowd(6_000, 7)
    assert seen.add_many(attack).all()
    assert not seen._main.counts.size
    assert not seen.add_many(attack).any()


@pytest.mark.parametrize(("count", "most"), [(1_000_000, 8.5), (10_000_000, 6.4)])
def test_bytes_for_each_url(count: int, most: float) -> None:
    seen, rng = Seen(), np.random.default_rng(1)
    for _ in range(count // 1_000_000):
        seen.add_many(rng.integers(0, TOP, 1_000_000, np.uint64))
    assert seen.nbytes / len(seen) < most


def test_the_fine_layout_costs_five_bytes_and_its_tables() -> None:
    seen, rng = Seen(large=1 << 20), np.random.default_rng(1)
    for _ in range(5):
        seen.add_many(rng.integers(0, TOP, 1_000_000, np.uint64))
    tables = (1 << 24) + 4 * (1 << 18) + 4 * (1 << 16) + 8 * (1 << 16)
    middle = len(seen) / 100 + 8 * (1 << 16)
    assert seen.nbytes < 5 * len(seen) + tables + middle
    # The same sum at 10⁸, where the tables weigh little.
    assert (5e8 + tables + 1e6) / 1e8 < 5.2


def test_seed_and_input_forms() -> None:
    seen = Seen(seed=77)
    assert seen.add_many([77, 0, 77]).tolist() == [True, True, False]
    assert seen.add_many(np.array([[1, 2], [3, 77]], np.uint64)).tolist() == [True, True, True, False]
    assert len(seen) == 5
    with pytest.raises((OverflowError, ValueError, TypeError)):
        seen.add_many([-1])
    eliminator: Eliminator = seen
    assert len(eliminator) == 5


def test_too_many_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST", 1_500)
    with pytest.raises(AfreshError, match="URLs have been seen"):
        Seen().add_many(np.arange(5_000, dtype=np.uint64))


def test_fingerprints_depend_on_the_secret_and_on_nothing_else() -> None:
    urls = [f"https://example.org/{n}" for n in range(2_000)]
    plain, one, two = fingerprints(urls), fingerprints(urls, b"one secret"), fingerprints(urls, b"another")
    assert plain.dtype == one.dtype == np.uint64
    assert len({*plain.tolist(), *one.tolist(), *two.tolist()}) == 6_000
    assert fingerprints(iter(urls), b"one secret").tolist() == one.tolist()
    assert fingerprints([]).size == fingerprints([], b"x").size == 0
