import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from afresh.errors import StoreError
from afresh.store import waiting as module
from afresh.store.waiting import Waiting, band_of

HOSTS = [f"h{nth}.example" for nth in range(7)]
DEPTHS = [0, 1, 2, 3, 4, 7, 8, 200]


def some(rng: random.Random, first: int, count: int) -> list[tuple[str, str, int]]:
    """Addresses with their hosts and depths; some are long, some have characters of all sorts."""
    return [
        (
            f"http://{host}/{'x/' * rng.randrange(9)}{nth}{rng.choice(['', 'é', '?x=' + 'y' * 2_000])}",
            host,
            rng.choice(DEPTHS),
        )
        for nth in range(first, first + count)
        for host in [rng.choice(HOSTS)]
    ]


def put(waiting: Waiting, pages: list[tuple[str, str, int]]) -> None:
    urls, hosts, depths = ([page[part] for page in pages] for part in range(3))
    waiting.put(np.arange(len(pages), dtype=np.uint64), urls, hosts, depths)


def put_again(waiting: Waiting) -> int:
    count = 0
    for _, urls, depths in waiting.replay():
        count += len(urls)
        waiting.queue_again(urls, [url.split("/")[2] for url in urls], depths)
    return count


def take_all(folder: Path) -> set[str]:
    waiting = Waiting(folder)
    put_again(waiting)
    return {url for number in range(len(waiting.names)) for url, _ in waiting.take(number, 1 << 30)}


@pytest.mark.parametrize("seed", range(4))
def test_it_does_what_plain_queues_do(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 60_000)  # so that there are many parts, and some are removed
    monkeypatch.setattr(module, "MAX_CHUNK", 7)
    rng, made = random.Random(seed), 0
    plain: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    waiting = Waiting(tmp_path / "w", memory=20_000)
    for _ in range(120):
        if rng.random() < 0.6:
            pages = some(rng, made, rng.randrange(30))
            made += len(pages)
            put(waiting, pages)
            for url, host, depth in pages:
                plain[host, band_of(url, depth)].append((url, min(depth, module.DEEPEST)))
        else:
            host, most = rng.choice(HOSTS), rng.randrange(1, 40)
            expected: list[tuple[str, int]] = []
            for band in range(module.BANDS):
                queue = plain[host, band]
                taken = queue[: most - len(expected)]
                del queue[: len(taken)]
                expected += taken
            number = waiting.number(host)
            assert (waiting.take(number, most) if number >= 0 else []) == expected
        if rng.random() < 0.1:
            waiting.close()
            waiting = Waiting(tmp_path / "w", memory=20_000)
            assert put_again(waiting) == 0
        assert len(waiting) == sum(map(len, plain.values())) == waiting.counts.sum()
    assert waiting.nbytes > 0
    waiting.close()


def test_a_kill_loses_nothing_and_brings_back_only_what_was_taken_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 60_000)
    rng, made = random.Random(3), 0
    everything, out = set[str](), set[str]()
    waiting = Waiting(tmp_path / "w", memory=30_000)
    for _ in range(40):
        for _ in range(rng.randrange(6)):
            pages = some(rng, made, rng.randrange(1, 40))
            made += len(pages)
            everything |= {url for url, _, _ in pages}
            put(waiting, pages)
            for number in range(len(waiting.names)):
                out |= {url for url, _ in waiting.take(number, rng.randrange(9))}
        if rng.random() < 0.3:
            waiting.save()
        waiting._let_go()  # what a kill leaves: files as they are
        waiting = Waiting(tmp_path / "w", memory=30_000)
        put_again(waiting)
    left = {url for number in range(len(waiting.names)) for url, _ in waiting.take(number, 1 << 30)}
    assert left | out == everything
    waiting.close()


def test_damage_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    waiting = Waiting(folder)
    put(waiting, some(random.Random(1), 0, 300))
    waiting.close()
    for name, place in (("state", 3), ("state", 60), ("part-0", 50)):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StoreError, match="damaged"):
            take_all(folder)
        (folder / name).write_bytes(whole)


def test_a_full_disk_is_said_and_nothing_that_was_put_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(tmp_path / "w", memory=10_000)
    pages = some(random.Random(1), 0, 200)
    put(waiting, pages)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(module, "_write_at", full)
        with pytest.raises(StoreError):
            put(waiting, some(random.Random(1), 200, 5))
        with pytest.raises(StoreError, match="closed after a failure"):
            put(waiting, pages[:1])
        waiting.close()
    assert take_all(tmp_path / "w") == {url for url, _, _ in pages}
