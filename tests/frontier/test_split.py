from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.frontier import Splitter, host_of, owner

HOSTS = [f"host{n}.example" for n in range(20_000)]


@pytest.mark.parametrize("owners", [1, 2, 7, 64])
def test_hosts_are_shared_out_evenly(owners: int) -> None:
    shares = Counter(owner(host, owners) for host in HOSTS)
    assert set(shares) == set(range(owners))
    even = len(HOSTS) / owners
    assert all(abs(share - even) < 6 * even**0.5 + 1 for share in shares.values())


@pytest.mark.parametrize("owners", [1, 2, 5, 31])
def test_a_new_owner_takes_its_share_and_no_other_host_moves(owners: int) -> None:
    moved = 0
    for host in HOSTS[:5_000]:
        before, after = owner(host, owners), owner(host, owners + 1)
        assert after in (before, owners)
        moved += before != after
    assert moved == pytest.approx(5_000 / (owners + 1), rel=0.25)


def test_the_owner_of_a_host_is_the_same_for_ever() -> None:
    # Written down once: another answer would send every host of a running cluster elsewhere.
    assert [owner(host, 16) for host in ("example.org", "example.com:8080", "xn--bcher-kva.example")] == [11, 10, 13]


@given(st.lists(st.integers(0, 300), max_size=200), st.integers(2, 6), st.integers(1, 20))
def test_every_url_comes_out_once_at_its_owner(numbers: list[int], owners: int, batch: int) -> None:
    splitter, out = Splitter(1, owners, batch=batch), []
    urls = [f"http://h{n}.example:81/{place}" for place, n in enumerate(numbers)]
    for url in urls:
        if splitter.take(url):
            out.append((1, url))
        for to, full in splitter.full():
            assert len(full) == batch
            out += [(to, item) for item in full]
    for to, rest in splitter.rest():
        assert len(rest) < batch
        out += [(to, item) for item in rest]
    assert sorted(url for _, url in out) == sorted(urls)
    assert all(to == owner(host_of(url), owners) for to, url in out)


def test_bad_numbers() -> None:
    for bad in (
        lambda: owner("a", 0),
        lambda: Splitter(3, 3),
        lambda: Splitter(-1, 3),
        lambda: Splitter(0, 1, batch=0),
    ):
        with pytest.raises(ValueError, match=" is "):
            bad()
