import random
import shutil
import threading
import tracemalloc
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


def put(waiting: Waiting, pages: list[tuple[str, str, int]], *, settled: bool = True) -> None:
    urls, hosts, depths = ([page[part] for page in pages] for part in range(3))
    waiting.put(np.arange(len(pages), dtype=np.uint64), urls, hosts, depths)
    assert len(waiting) >= len(pages)
    if settled:
        waiting.settle()


def replayed(waiting: Waiting) -> int:
    return sum(len(urls) for _, urls in waiting.replay(lambda url: url.split("/")[2]))


def left_in(waiting: Waiting) -> list[str]:
    return [url for number in range(len(waiting.names)) for url, _ in waiting.take(number, 1 << 30)]


def take_all(folder: Path) -> set[str]:
    waiting = Waiting(folder)
    replayed(waiting)
    return set(left_in(waiting))


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
            assert replayed(waiting) == 0
        assert len(waiting) == sum(map(len, plain.values())) == waiting.counts.sum()
    assert waiting.nbytes > 0
    waiting.close()


def test_a_chunk_may_end_exactly_where_a_part_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 1_000)
    monkeypatch.setattr(module, "MAX_CHUNK", 3)
    ends = 0
    for seed in range(60):
        rng, everything = random.Random(seed), list[str]()
        waiting = Waiting(tmp_path / str(seed), memory=2_000)
        for nth in range(30):
            pages = [
                (f"http://{host}/{'x' * rng.randrange(40)}{nth}-{number}", host, 3)
                for number in range(8)
                for host in [rng.choice(HOSTS)]
            ]
            everything += [url for url, _, _ in pages]
            put(waiting, pages)
        waiting.save()
        sizes = [path.stat().st_size for path in (tmp_path / str(seed)).glob("part-*")]
        assert max(sizes) <= module.PART_BYTES
        ends += sizes.count(module.PART_BYTES)
        assert sorted(left_in(waiting)) == sorted(everything)
        waiting.close()
    assert ends > 3  # that was the case in question


def test_a_kill_changes_nothing_and_names_what_was_out_since_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 60_000)
    rng, made = random.Random(3), 0
    everything, out, lately, back = set[str](), set[str](), set[str](), set[str]()
    waiting = Waiting(tmp_path / "w", memory=30_000)
    for nth in range(60):
        for _ in range(rng.randrange(6)):
            generation = waiting._generation
            pages = some(rng, made, rng.randrange(1, 40))
            made += len(pages)
            everything |= {url for url, _, _ in pages}
            if rng.random() < 0.2:
                urls, _, depths = zip(*pages, strict=True)
                waiting.note(np.arange(1, len(pages) + 1, dtype=np.uint64), urls, depths)
                taken = set(urls)
            else:
                put(waiting, pages)
                taken = set()
            if waiting._generation != generation:
                lately, back = set(), set()
            for number in range(len(waiting.names)):
                taken |= {url for url, _ in waiting.take(number, rng.randrange(9))}
            out, lately, back = out | taken, lately | taken, back - taken
            again = rng.sample(sorted(out), min(len(out), rng.randrange(4)))
            if again:
                generation = waiting._generation
                hosts = [url.split("/")[2] for url in again]
                waiting.put(np.zeros(len(again), np.uint64), again, hosts, [3] * len(again))
                waiting.settle()
                if waiting._generation != generation:
                    lately, back = set(), set()
                out, lately, back = out.difference(again), lately.difference(again), back.union(again)
        if rng.random() < 0.3:
            waiting.save()
            lately, back = set(), set()
        counts = waiting.counts.tolist()
        waiting._let_go()  # what a kill leaves: files as they are
        if nth % 3 == 0:  # killed in the middle of a write
            with (tmp_path / "w" / f"log-{waiting._generation}").open("ab") as log:
                log.write(b"\x05\x00\x00")
        waiting = Waiting(tmp_path / "w", memory=30_000)
        replayed(waiting)
        assert waiting.counts.tolist() == counts
        assert (set(waiting.out), waiting.back) == (lately, back)
    left = left_in(waiting)
    assert len(left) == len(set(left))
    assert set(left) | out == everything
    assert not set(left) & out
    waiting.close()


@pytest.mark.parametrize("where", ["_write_chunks", "_write_state", "_remove_logs"])
def test_what_comes_in_during_a_step_waits_after_it_and_survives_a_kill_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    rng = random.Random(9)
    before, during = some(rng, 0, 300), some(rng, 300, 50)
    waiting = Waiting(tmp_path / "w", memory=1 << 30)
    put(waiting, before)
    taken = [url for number in range(len(waiting.names)) for url, _ in waiting.take(number, 5)]
    handed = [url for url in taken if rng.random() < 0.5]
    waiting.handed = lambda: (handed, [1] * len(handed))
    reached, go_on = threading.Event(), threading.Event()
    own = getattr(Waiting, where)

    def held(self: Waiting, *given: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            reached.set()
            go_on.wait(20)
        own(self, *given)

    with monkeypatch.context() as context:
        context.setattr(Waiting, where, held)
        waiting._begin_step()
        assert reached.wait(20)
        assert waiting.stepping
        put(waiting, during, settled=False)
        shutil.copytree(tmp_path / "w", tmp_path / "killed")
        go_on.set()
        order = left_in(waiting)
    expected = {url for url, _, _ in before + during} - set(taken)
    assert set(order) == expected
    assert len(order) == len(expected)
    waiting.close()
    for _ in range(2):  # a second start finds the same, as if it had been killed at once
        killed = Waiting(tmp_path / "killed", memory=1 << 30)
        replayed(killed)
        assert set(handed) <= set(killed.out) <= set(taken)
        killed._let_go()
    killed = Waiting(tmp_path / "killed", memory=1 << 30)
    replayed(killed)
    assert sorted(left_in(killed)) == sorted(expected)
    killed.save()
    killed.close()
    assert len(list((tmp_path / "killed").glob("log-*"))) == 1


def test_a_log_of_an_earlier_version_is_named_as_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = some(random.Random(5), 0, 50)
    waiting = Waiting(tmp_path / "w")
    with monkeypatch.context() as context:
        context.setattr(module, "_PUT", 0)  # it did not say what was done
        put(waiting, pages)
    waiting._let_go()
    waiting = Waiting(tmp_path / "w")
    assert replayed(waiting) == 50
    assert waiting.out == {url: min(depth, module.DEEPEST) for url, _, depth in pages}
    assert not len(waiting)
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


def test_a_length_that_lies_is_damage_and_no_unfinished_end(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path / "w")
    for first in range(0, 300, 30):
        put(waiting, some(random.Random(1), first, 30))
    shutil.copytree(tmp_path / "w", tmp_path / "killed")
    waiting.close()
    log = next((tmp_path / "killed").glob("log-*"))
    whole = log.read_bytes()
    log.write_bytes(whole[:6] + bytes([whole[6] ^ 255]) + whole[7:])
    for _ in range(2):  # nothing of it is cut off
        with pytest.raises(StoreError, match="damaged in the middle"):
            Waiting(tmp_path / "killed")
    log.write_bytes(whole[:-3])
    assert len(take_all(tmp_path / "killed")) == 270


def test_files_that_are_missing_are_said_to_be_and_the_others_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    waiting = Waiting(folder)
    put(waiting, some(random.Random(1), 0, 300))
    waiting.save()
    put(waiting, some(random.Random(1), 300, 30))
    shutil.copytree(folder, tmp_path / "killed")
    waiting.close()
    for name in ("state", "log-1"):
        shutil.copytree(tmp_path / "killed", tmp_path / name)
        (tmp_path / name / name).unlink()
        with pytest.raises(StoreError, match=f"{name} of the waiting URLs is missing"):
            Waiting(tmp_path / name)
        assert (tmp_path / name / "part-0").exists()
    for stranger in ("log-x", "part-x", "log-²"):
        (tmp_path / "killed" / stranger).touch()
    assert len(take_all(tmp_path / "killed")) == 330


def test_memory_stays_within_the_setting_where_a_little_of_many_hosts_is_taken(tmp_path: Path) -> None:
    memory = 400_000
    waiting = Waiting(tmp_path / "w", memory=memory)
    hosts = [f"h{nth}.example" for nth in range(50)]
    for host in hosts:
        urls = [f"http://{host}/{'x' * 60}/{nth}" for nth in range(500)]
        waiting.put(np.arange(500, dtype=np.uint64), urls, [host] * 500, [1] * 500)
    waiting.save()
    for turn in range(3):
        for nth, host in enumerate(hosts):
            assert waiting.take(nth, 1) == [(f"http://{host}/{'x' * 60}/{turn}", 1)]
            assert waiting.nbytes < memory
    steps = len(list((tmp_path / "w").glob("log-*"))), waiting._generation
    put(waiting, [("http://h1.example/", "h1.example", 0)])
    assert (len(list((tmp_path / "w").glob("log-*"))), waiting._generation) == steps  # there is no need of a step
    waiting.close()
    assert len(take_all(tmp_path / "w")) == 50 * 497 + 1


def test_a_log_is_done_again_record_by_record(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path / "w", memory=64 << 20)
    count = 20_000
    urls = [f"http://h.example/{nth}" for nth in range(count)]
    waiting.put(np.arange(count, dtype=np.uint64), urls, ["h.example"] * count, [1] * count)
    waiting.save()
    for _ in range(count):
        waiting.take(0, 1)
    shutil.copytree(tmp_path / "w", tmp_path / "killed")
    waiting.close()
    tracemalloc.start()
    killed = Waiting(tmp_path / "killed", memory=64 << 20)
    opened, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert opened < 2_000_000  # were all of it in memory it would be five million
    replayed(killed)
    assert len(killed.out) == count
    killed.close()


def test_a_full_disk_is_said_and_nothing_that_was_put_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(tmp_path / "w", memory=10_000)
    pages = some(random.Random(1), 0, 200)
    put(waiting, pages)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(module, "_write_at", full)
        later = some(random.Random(1), 200, 5)
        put(waiting, later, settled=False)  # a thread notices
        with pytest.raises(StoreError, match="full"):
            waiting.take(0, 1)
        with pytest.raises(StoreError, match="closed after a failure"):
            put(waiting, pages[:1])
        waiting.close()
    assert take_all(tmp_path / "w") == {url for url, _, _ in pages + later}
